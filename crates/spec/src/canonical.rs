//! Turns every text of a spec into its structured form, and checks what can be checked without a zone.

use crate::calendar::{self, Calendar, CalendarText};
use crate::error::Error;
use crate::limits::{RULES_MAX, SEED_BYTES_MAX, TEXTS_BYTES_MAX, TIMES_MAX};
use crate::parse::{self, CronRule, Hasher};
use crate::spec::{Cron, Environment, Spec};

/// A spec in canonical form, and what its texts looked like where that matters to a reader.
pub(crate) struct Canonical {
    pub(crate) spec: Spec,
    /// Cron strings (by index) in which a `#` was read as a comment although it touches a field, and where.
    pub(crate) touching_hashes: Vec<(usize, usize)>,
    /// Cron strings (by index) with a sixth field that says nothing, and their minute, hour and day.
    pub(crate) idle_years: Vec<(usize, [String; 3])>,
    /// The same as `touching_hashes`, for cron strings of exclusions.
    pub(crate) excluded_hashes: Vec<(usize, usize)>,
}

pub(crate) fn canonical(spec: &Spec, environment: &Environment) -> Result<Canonical, Error> {
    check_size(spec, environment)?;
    let hasher = Hasher::new(environment.seed());
    let mut result = Spec {
        calendar_texts: Vec::new(),
        crons: Vec::new(),
        exclusion_texts: Vec::new(),
        exclusion_crons: Vec::new(),
        ..spec.clone()
    };
    let (mut touching_hashes, mut excluded_hashes, mut idle_years) = (Vec::new(), Vec::new(), Vec::new());

    for (index, text) in spec.calendar_texts.iter().enumerate() {
        result.calendars.push(read_text(text, hasher).map_err(within("calendar_text", index))?);
    }
    let mut zones = Vec::new();
    for (index, cron) in spec.crons.iter().enumerate() {
        let parsed = read_cron(cron, hasher).map_err(within("cron", index))?;
        touching_hashes.extend(parsed.touching_hash.map(|at| (index, at)));
        idle_years.extend(parsed.idle_year.map(|fields| (index, fields)));
        zones.push(parsed.zone);
        match parsed.rule {
            CronRule::Calendars(calendars) => result.calendars.extend(calendars),
            CronRule::Interval(interval) => result.intervals.push(interval),
        }
    }
    for (index, text) in spec.exclusion_texts.iter().enumerate() {
        result.exclusions.push(read_text(text, hasher).map_err(within("exclude_text", index))?);
    }
    for (index, cron) in spec.exclusion_crons.iter().enumerate() {
        let parsed = read_cron(cron, hasher).map_err(within("exclude_cron", index))?;
        excluded_hashes.extend(parsed.touching_hash.map(|at| (index, at)));
        let refused = |message: &str, part: &str| {
            let at = cron.text.find(part).unwrap_or(0);
            let error = Error::value(message).at(at..at + part.len()).in_text(&cron.text);
            Err(error.in_field(&format!("exclude_cron[{index}]")))
        };
        match (parsed.rule, parsed.zone) {
            (CronRule::Calendars(calendars), None) => result.exclusions.extend(calendars),
            (CronRule::Calendars(_), Some(zone)) => {
                return refused("an exclusion cannot name a zone, it follows the spec's", &zone);
            }
            (CronRule::Interval(_), _) => {
                return refused("an interval cannot be excluded, only calendars can", "@every");
            }
        }
    }
    adopt_zone(&mut result, &spec.crons, zones)?;
    if !result.zone.is_empty() && result.zone_data.is_none() {
        // Names are found in any case; the canonical form has the proper spelling.
        let named_by = spec.crons.first().filter(|_| spec.zone.is_empty());
        let zone = environment.zones().get(&result.zone).map_err(|error| match named_by {
            Some(cron) => pointed_at(error, &cron.text, &result.zone).in_field("cron[0].zone"),
            None => error.in_field("zone"),
        })?;
        result.zone = zone.name().to_owned();
    }

    for (index, calendar) in spec.calendars.iter().enumerate() {
        calendar::check(calendar).map_err(within("calendar", index))?;
    }
    for (index, calendar) in spec.exclusions.iter().enumerate() {
        calendar::check(calendar).map_err(within("exclude", index))?;
    }
    minimise(&mut result);
    for (index, interval) in result.intervals.iter().enumerate() {
        interval.seconds().map_err(within("interval", index))?;
    }
    for (index, time) in result.times.iter().enumerate() {
        if time.subsec_nanosecond() != 0 {
            let message = format!("{time} has a fraction of a second, rules know whole seconds only");
            return Err(Error::value(message).in_field(&format!("at[{index}]")));
        }
    }
    Ok(Canonical { spec: result, touching_hashes, idle_years, excluded_hashes })
}

/// All cron strings name the same zone or none does, and it is the spec's zone too.
fn adopt_zone(spec: &mut Spec, crons: &[Cron], zones: Vec<Option<String>>) -> Result<(), Error> {
    let Some(named) = zones.first().cloned() else { return Ok(()) };
    let conflict = |index: usize, message: String| {
        let error = Error::value(format!("conflicting timezone names: {message}"));
        let name = zones[index].as_deref().unwrap_or("");
        Err(pointed_at(error, &crons[index].text, name).in_field(&format!("cron[{index}]")))
    };
    let word = |zone: &Option<String>| zone.clone().map_or("no zone".to_owned(), |zone| format!("`{zone}`"));
    for (index, zone) in zones.iter().enumerate().skip(1) {
        if *zone != named {
            let message = format!("the first cron string has {}, this one {}", word(&named), word(zone));
            return conflict(index, message);
        }
    }
    let Some(name) = named else { return Ok(()) };
    if spec.zone_data.is_some() {
        return conflict(0, format!("`{name}` beside time zone data"));
    }
    if !spec.zone.is_empty() && !spec.zone.eq_ignore_ascii_case(&name) {
        return conflict(0, format!("`{name}` in the cron string, `{}` in the spec", spec.zone));
    }
    spec.zone = name;
    Ok(())
}

/// Points at a part of a text, or at all of it.
fn pointed_at(error: Error, text: &str, part: &str) -> Error {
    let span = text.find(part).filter(|_| !part.is_empty()).map_or(0..text.len(), |at| at..at + part.len());
    error.at(span).in_text(text)
}

fn read_text(text: &CalendarText, hasher: Hasher<'_>) -> Result<Calendar, Error> {
    let calendar = parse::calendar_text(text, hasher)?;
    calendar::check(&calendar)?;
    Ok(calendar)
}

fn read_cron(cron: &Cron, hasher: Hasher<'_>) -> Result<parse::ParsedCron, Error> {
    let parsed = parse::cron(cron, hasher)?;
    if let CronRule::Calendars(calendars) = &parsed.rule {
        calendars.iter().try_for_each(calendar::check)?;
    }
    Ok(parsed)
}

fn within(list: &str, index: usize) -> impl FnOnce(Error) -> Error {
    let place = format!("{list}[{index}]");
    move |error| error.in_field(&place)
}

fn minimise(spec: &mut Spec) {
    for calendar in spec.calendars.iter_mut().chain(&mut spec.exclusions) {
        let fields = [
            &mut calendar.second,
            &mut calendar.minute,
            &mut calendar.hour,
            &mut calendar.day_of_month,
            &mut calendar.month,
            &mut calendar.day_of_week,
            &mut calendar.year,
        ];
        for range in fields.into_iter().flatten() {
            let filled = range.filled();
            *range = calendar::Range::new(filled.start, filled.end, filled.step);
        }
    }
}

fn check_size(spec: &Spec, environment: &Environment) -> Result<(), Error> {
    let rules = spec.calendars.len()
        + spec.calendar_texts.len()
        + spec.crons.len()
        + spec.intervals.len()
        + spec.exclusions.len()
        + spec.exclusion_texts.len()
        + spec.exclusion_crons.len()
        + spec.calendar_rules.len();
    if rules > RULES_MAX {
        return Err(Error::limit(format!("spec has {rules} rules, at most {RULES_MAX} are allowed")));
    }
    for (name, found) in [("at", spec.times.len()), ("exclude_date", spec.exclusion_dates.len())] {
        if found > TIMES_MAX {
            let message = format!("{name} lists {found} values, at most {TIMES_MAX} are allowed");
            return Err(Error::limit(message).in_field(name));
        }
    }
    // The step count of a range is bounded by its field, so only the number of ranges can grow.
    let ranges = spec.calendars.iter().chain(&spec.exclusions).map(ranges_of).sum::<usize>();
    if ranges > 16 * RULES_MAX {
        return Err(Error::limit(format!(
            "spec has {ranges} ranges, at most {} are allowed",
            16 * RULES_MAX
        )));
    }
    let crons = spec.crons.iter().chain(&spec.exclusion_crons).map(|cron| cron.text.len());
    let texts = spec.calendar_texts.iter().chain(&spec.exclusion_texts).map(text_bytes);
    let bytes = crons.chain(texts).sum::<usize>();
    if bytes > TEXTS_BYTES_MAX {
        return Err(Error::limit(format!(
            "spec has {bytes} bytes of text, at most {TEXTS_BYTES_MAX} are read"
        )));
    }
    if environment.seed().len() > SEED_BYTES_MAX {
        return Err(Error::limit(format!("seed has more than {SEED_BYTES_MAX} bytes")));
    }
    Ok(())
}

fn text_bytes(text: &CalendarText) -> usize {
    let CalendarText { second, minute, hour, day_of_month, month, day_of_week, year, comment } = text;
    [second, minute, hour, day_of_month, month, day_of_week, year, comment].map(String::len).iter().sum()
}

fn ranges_of(calendar: &Calendar) -> usize {
    calendar.second.len()
        + calendar.minute.len()
        + calendar.hour.len()
        + calendar.day_of_month.len()
        + calendar.day_of_month_terms.len()
        + calendar.month.len()
        + calendar.day_of_week.len()
        + calendar.day_of_week_terms.len()
        + calendar.year.len()
}
