//! Turns options into a checked spec.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use punctual_spec::{
    CalendarRule, Cron, Dialect, Environment, Fold, Gap, Interval, Roll, Spec, Zones, parse_duration,
};

use super::{SpecOptions, calendar, files};
use crate::fault;
use crate::instant::{self, InstantReader};
use crate::local_zone::LocalZone;
use crate::request::Request;

pub fn request(options: &SpecOptions, expressions: &[String], now: Timestamp) -> Result<Request> {
    ensure_source(options, expressions)?;
    build(options, expressions, "", now)
}

/// The same for a spec that the server keeps: it may be a part of one, and dates from a file become its own.
pub fn part(options: &SpecOptions, expressions: &[String], zone: &str, now: Timestamp) -> Result<Request> {
    ensure!(
        options.seed.is_empty(),
        fault::new("--seed is for previews", "a stored schedule draws jitter and H from its own name")
    );
    ensure!(
        options.dialect.is_none() || !expressions.is_empty() || !options.exclude.is_empty(),
        fault::new("--dialect says how to read cron strings, and there is none", "give the cron string too")
    );
    let mut request = build(options, expressions, zone, now)?;
    if let (Some(path), None) = (&options.exclude_dates, options.roll) {
        request.spec.exclusion_dates.extend(files::listed_dates("--exclude-dates", path)?);
        request.spec.calendar_rules.retain(|rule| rule.calendar != path.display().to_string());
    }
    Ok(request)
}

fn build(options: &SpecOptions, expressions: &[String], zone: &str, now: Timestamp) -> Result<Request> {
    let mut spec = zoned(options, expressions)?;
    if spec.zone.is_empty() {
        spec.zone = zone.to_owned();
    }
    let mut environment = Environment::default().with_seed(options.seed.as_str());

    // Local times need the zone, and a cron string may be what names it.
    let zone_name = match spec.canonical(&environment) {
        Ok(canonical) => canonical.zone,
        Err(_) if is_split(expressions) => return Err(split_by_the_shell(expressions)),
        Err(error) => return Err(error.into()),
    };
    let zone = match (&options.tzif, &spec.zone_data) {
        (Some(path), Some(bytes)) => {
            LocalZone::from_tzif(&zone_name, bytes).with_context(|| format!("--tzif {}", path.display()))?
        }
        _ => LocalZone::named(&zone_name)?,
    };

    let mut instants = InstantReader::new(now, &zone);
    sources(options, &mut spec, &mut instants)?;
    bounds(options, &mut spec, &mut instants)?;
    let notes = instants.notes;
    exclusions(options, &mut spec)?;
    environment = named_calendars(options, &mut spec, environment)?;

    let compiled = spec.compile_in(&environment)?;
    let tzdata = spec.zone_data.is_none().then(|| Zones::bundled().version().to_owned());
    Ok(Request { spec, environment, compiled, zone, tzdata, notes })
}

fn ensure_source(options: &SpecOptions, expressions: &[String]) -> Result<()> {
    let lists = [expressions, &options.every, &options.at, &options.calendar];
    ensure!(
        lists.iter().any(|list| !list.is_empty()),
        fault::new(
            "there is nothing that could fire",
            "give a cron string in quotes, as in '0 9 * * MON-FRI', or --every, --at or --calendar",
        )
    );
    Ok(())
}

/// The cron strings and the zone.
fn zoned(options: &SpecOptions, expressions: &[String]) -> Result<Spec> {
    let dialect = dialect(options);
    let (gap, fold) = (options.gap.map(Gap::from), options.fold.map(Fold::from));
    let mut spec = Spec::new().gap(gap.unwrap_or_default()).fold(fold.unwrap_or_default());
    spec.crons = expressions.iter().map(|text| Cron::new(dialect, text.as_str())).collect();
    spec.zone = options.zone.clone().unwrap_or_default();
    if let Some(path) = &options.tzif {
        spec.zone_data = Some(files::tzif(path)?);
        if options.zone.is_none() {
            spec.zone = path.display().to_string();
        }
    }
    Ok(spec)
}

fn dialect(options: &SpecOptions) -> Dialect {
    options.dialect.map(Dialect::from).unwrap_or_default()
}

/// Whether the arguments look like one cron string that was not quoted.
fn is_split(expressions: &[String]) -> bool {
    let is_word = |text: &String| !text.contains(char::is_whitespace) && !text.starts_with('@');
    expressions.len() > 1 && expressions.iter().all(is_word)
}

fn split_by_the_shell(expressions: &[String]) -> anyhow::Error {
    let message = format!("`{}` is no cron string, only a part of one", expressions[0]);
    fault::new(message, "put the whole string in quotes, or the shell splits it: '0 9 * * MON-FRI'")
}

fn sources(options: &SpecOptions, spec: &mut Spec, instants: &mut InstantReader<'_>) -> Result<()> {
    let anchor = instants.read_optional("--anchor", options.anchor.as_ref())?;
    for text in &options.every {
        let interval = interval(text).context("--every")?;
        ensure_whole_seconds(text, &interval)?;
        spec.intervals.push(match anchor {
            Some(anchor) => interval.anchored_at(anchor),
            None => interval,
        });
    }
    for text in &options.at {
        spec.times.push(instants.read("--at", text)?);
    }
    for text in &options.calendar {
        spec.calendar_texts.push(calendar::calendar(text)?);
    }
    Ok(())
}

fn interval(text: &str) -> Result<Interval, punctual_spec::Error> {
    let (every, phase) = text.split_once('/').map_or((text, None), |(every, phase)| (every, Some(phase)));
    let interval = Interval::every(parse_duration(every.trim())?);
    Ok(match phase {
        Some(phase) => interval.phase(parse_duration(phase.trim())?),
        None => interval,
    })
}

/// What is left of a second would be cut off without a word.
fn ensure_whole_seconds(text: &str, interval: &Interval) -> Result<()> {
    let second = SignedDuration::from_secs(1);
    let is_cut = |length: SignedDuration| length.subsec_nanos() != 0;
    // Less than a second is refused by the spec itself.
    ensure!(
        interval.every < second || !(is_cut(interval.every) || is_cut(interval.phase)),
        fault::new(
            format!("--every has a part of a second, expected whole seconds, found `{text}`"),
            "a spec has no times between seconds"
        )
    );
    Ok(())
}

fn bounds(options: &SpecOptions, spec: &mut Spec, instants: &mut InstantReader<'_>) -> Result<()> {
    spec.start_time = instants.read_optional("--start", options.start.as_ref())?;
    spec.end_time = instants.read_optional("--end", options.end.as_ref())?;
    if let Some(text) = &options.jitter {
        spec.jitter = parse_duration(text.trim()).context("--jitter")?;
        ensure!(
            spec.jitter >= SignedDuration::ZERO,
            fault::new(format!("--jitter is negative, found `{text}`"), "an occurrence is never due early")
        );
    }
    Ok(())
}

fn exclusions(options: &SpecOptions, spec: &mut Spec) -> Result<()> {
    let dialect = dialect(options);
    spec.exclusion_crons = options.exclude.iter().map(|text| Cron::new(dialect, text.as_str())).collect();
    for text in &options.exclude_date {
        let date = instant::date(text.trim()).ok_or_else(|| {
            fault::new(format!("--exclude-date is not a date, found `{text}`"), "write it as `2026-12-25`")
        })?;
        spec.exclusion_dates.push(date);
    }
    Ok(())
}

/// Files of dates become named calendars under the name of the file.
fn named_calendars(options: &SpecOptions, spec: &mut Spec, environment: Environment) -> Result<Environment> {
    let mut environment = environment;
    let mut add = |option: &str, path: &Path| -> Result<String> {
        let name = path.display().to_string();
        let calendar = files::dates(option, path)?;
        environment = std::mem::take(&mut environment).with_calendar(name.as_str(), calendar);
        Ok(name)
    };
    let roll = options.roll.map_or(Roll::Skip, Roll::from);
    if let Some(path) = &options.exclude_dates {
        spec.calendar_rules.push(CalendarRule::exclude(add("--exclude-dates", path)?).roll(roll));
    }
    if let Some(path) = &options.only_dates {
        spec.calendar_rules.push(CalendarRule::only_on(add("--only-dates", path)?).roll(roll));
    }
    if let Some(path) = &options.business_closed {
        spec.business_calendar = Some(add("--business-closed", path)?);
    }
    Ok(environment)
}
