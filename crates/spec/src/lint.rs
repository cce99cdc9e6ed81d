//! Finds what is legal but probably not meant.

use jiff::Timestamp;
use jiff::civil::Date;

use crate::calendar::{Calendar, Range};
use crate::canonical::{self, Canonical};
use crate::compile::{self, CompiledSpec};
use crate::error::Error;
use crate::explain::words::{and, duration};
use crate::interval::Interval;
use crate::occurrence::floor_second;
use crate::spec::{Dialect, Environment, Spec};
use crate::wall::Search;

mod clock_changes;

/// One finding.
///
/// ```
/// use punctual_spec::{Environment, LintCode, Spec};
///
/// let spec = Spec::new().cron("0 0 31 2 *");
/// let lints = spec.lint(&Environment::default(), "2026-01-01T00:00:00Z".parse().unwrap())?;
/// assert_eq!(lints[0].code, LintCode::NeverFires);
/// assert_eq!(lints[0].to_string(), "never fires: no date fits all of its fields");
/// # Ok::<(), punctual_spec::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lint {
    /// Which kind it is.
    pub code: LintCode,
    /// What was found, in one line.
    pub message: String,
    /// What to do about it.
    pub help: String,
    /// The part of the spec it is about, as in [`Error::field`]; empty if it is the whole.
    pub field: String,
    /// The byte of that part's text, where there is one.
    pub position: Option<usize>,
    /// The local dates it is about, in order.
    pub dates: Vec<Date>,
}

impl std::fmt::Display for Lint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// The kinds of findings.
///
/// ```
/// use punctual_spec::{Environment, LintCode, Spec};
///
/// let now = "2026-01-01T00:00:00Z".parse().unwrap();
/// let lints = Spec::new().cron("0 0 * * 5#3").lint(&Environment::default(), now)?;
/// assert!(lints.iter().any(|lint| lint.code == LintCode::HashComment));
/// # Ok::<(), punctual_spec::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LintCode {
    /// There are sources, but no occurrence before 2101.
    NeverFires,
    /// The last occurrence is past.
    NeverAgain,
    /// Within two years, a wall time that the spec names does not exist and is skipped.
    DstGap,
    /// Within two years, a wall time that the spec names exists twice and fires twice.
    DstFold,
    /// Day of month and day of week must both hold, unlike in classic cron.
    DayFieldsAnded,
    /// An exclusion removes a single second of the day, although the spec fires at others.
    MidnightExclusion,
    /// `5#3` was read as 5 and a comment.
    HashComment,
    /// The sixth field is a year of `*`: probably seconds were meant to come first.
    SixFields,
    /// More than one occurrence a minute.
    HighRate,
}

impl LintCode {
    /// The stable name of the kind.
    ///
    /// ```
    /// assert_eq!(punctual_spec::LintCode::DstGap.name(), "dst_gap");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            LintCode::NeverFires => "never_fires",
            LintCode::NeverAgain => "never_again",
            LintCode::DstGap => "dst_gap",
            LintCode::DstFold => "dst_fold",
            LintCode::DayFieldsAnded => "day_fields_anded",
            LintCode::MidnightExclusion => "midnight_exclusion",
            LintCode::HashComment => "hash_comment",
            LintCode::SixFields => "six_fields",
            LintCode::HighRate => "high_rate",
        }
    }
}

pub(crate) fn lint(spec: &Spec, environment: &Environment, now: Timestamp) -> Result<Vec<Lint>, Error> {
    let canonical = canonical::canonical(spec, environment)?;
    let compiled = compile::compile(&canonical.spec, environment)?;
    let mut lints = Vec::new();
    lints.extend(never(&canonical.spec, &compiled, environment, now));
    let some_hours = some_hours(&canonical.spec, environment)?;
    lints.extend(clock_changes::lints(&compiled, &some_hours, floor_second(now)));
    lints.extend(anded(spec, environment));
    lints.extend(midnight_exclusions(spec, &canonical.spec, environment));
    lints.extend(hash_comments(spec, &canonical));
    lints.extend(canonical.idle_years.iter().map(|(index, fields)| six_fields(*index, fields)));
    lints.extend(high_rate(&compiled, floor_second(now)));
    Ok(lints)
}

fn finding(code: LintCode, message: impl Into<String>, help: impl Into<String>) -> Lint {
    let (message, help) = (message.into(), help.into());
    Lint { code, message, help, field: String::new(), position: None, dates: Vec::new() }
}

fn never(spec: &Spec, compiled: &CompiledSpec, environment: &Environment, now: Timestamp) -> Option<Lint> {
    if spec.calendars.is_empty() && spec.intervals.is_empty() && spec.times.is_empty() {
        return None;
    }
    if let Some(last) = compiled.last() {
        return (last <= now).then(|| {
            let message = format!("never fires again: the last occurrence was {last}");
            finding(LintCode::NeverAgain, message, "check years and end time")
        });
    }
    let without = |change: fn(&mut Spec)| {
        let mut changed = spec.clone();
        change(&mut changed);
        compile::compile(&changed, environment).is_ok_and(|compiled| !compiled.never_fires())
    };
    let unexcluded = without(|spec| {
        spec.exclusions.clear();
        spec.exclusion_dates.clear();
        spec.calendar_rules.clear();
    });
    let unbounded = without(|spec| (spec.start_time, spec.end_time) = (None, None));
    let (why, help) = if unexcluded {
        ("its exclusions remove every occurrence", "narrow the exclusions")
    } else if unbounded {
        ("nothing lies between its start and end times", "widen the bounds; nothing fires after 2100")
    } else {
        ("no date fits all of its fields", "check days that months do not have, and empty fields")
    };
    Some(finding(LintCode::NeverFires, format!("never fires: {why}"), help))
}

/// Cron strings and texts that restrict both day fields; a structured calendar says so on purpose.
fn anded(spec: &Spec, environment: &Environment) -> Vec<Lint> {
    let chooses = |ranges: &[Range], all: usize| {
        let values: std::collections::BTreeSet<i32> =
            ranges.iter().flat_map(|range| range.values()).collect();
        values.len() < all
    };
    let both = |calendar: &Calendar| chooses(&calendar.day_of_month, 31) && chooses(&calendar.day_of_week, 7);
    let mut lints = Vec::new();
    let mut check = |source: Spec, place: String| {
        let calendars = source.canonical(environment).map(|spec| spec.calendars).unwrap_or_default();
        if calendars.iter().any(both) {
            let message = "day of month and day of week must both hold, unlike in classic cron";
            let help = "if either should be enough, use the unix dialect or two cron strings";
            lints.push(Lint { field: place, ..finding(LintCode::DayFieldsAnded, message, help) });
        }
    };
    for (index, cron) in spec.crons.iter().enumerate().filter(|(_, cron)| cron.dialect == Dialect::Temporal) {
        check(Spec::new().cron(cron.text.clone()), format!("cron[{index}]"));
    }
    for (index, text) in spec.calendar_texts.iter().enumerate() {
        check(Spec::new().calendar_text(text.clone()), format!("calendar_text[{index}]"));
    }
    lints
}

/// Exclusions that look like a day but remove one second of it.
fn midnight_exclusions(spec: &Spec, canonical: &Spec, environment: &Environment) -> Vec<Lint> {
    let midnight = compile::calendar_rule(&Calendar::midnight(), &None).time;
    let only_midnight = |calendar: &Calendar| compile::calendar_rule(calendar, &None).time == midnight;
    let whole_days = |interval: &Interval| {
        interval.seconds().is_ok_and(|(period, phase)| period % 86_400 == 0 && phase % 86_400 == 0)
    };
    let times_at_midnight = canonical.times.iter().all(|time| time.as_second() % 86_400 == 0);
    let intervals_at_midnight = canonical.intervals.iter().all(whole_days);
    if times_at_midnight && intervals_at_midnight && canonical.calendars.iter().all(only_midnight) {
        return Vec::new();
    }
    // Each exclusion on its own, so that a finding names it as the user listed it.
    let structured = spec.exclusions.iter().map(|calendar| Spec::new().exclude(calendar.clone()));
    let texts = spec.exclusion_texts.iter().map(|text| Spec::new().exclude_text(text.clone()));
    let crons = spec.exclusion_crons.iter().map(|cron| Spec::new().exclude_cron(cron.clone()));
    let named = |list: &'static str| move |(index, spec): (usize, Spec)| (format!("{list}[{index}]"), spec);
    let all = structured.enumerate().map(named("exclude"));
    let all = all.chain(texts.enumerate().map(named("exclude_text")));
    let all = all.chain(crons.enumerate().map(named("exclude_cron")));
    let removes_midnight = |spec: &Spec| {
        let exclusions = spec.canonical(environment).map(|spec| spec.exclusions).unwrap_or_default();
        exclusions.iter().any(only_midnight)
    };
    all.filter(|(_, spec)| removes_midnight(spec))
        .map(|(field, _)| {
            let message = "this exclusion removes midnight only, not the whole day";
            let help = "write `*` for its second, minute and hour to exclude the day";
            Lint { field, ..finding(LintCode::MidnightExclusion, message, help) }
        })
        .collect()
}

fn hash_comments(spec: &Spec, canonical: &Canonical) -> Vec<Lint> {
    let lint = |list: &str, index: usize, text: &str, at: usize| {
        let (before, after) =
            (text[..at].split_whitespace().next_back().unwrap_or(""), text[at + 1..].trim());
        let message =
            format!("`{before}#{after}` is read as `{before}` and a comment, not as an nth weekday");
        let help = "use the quartz dialect for the nth weekday, or put a blank before the comment";
        let field = format!("{list}[{index}]");
        Lint { field, position: Some(at), ..finding(LintCode::HashComment, message, help) }
    };
    let sources = canonical.touching_hashes.iter();
    let sources = sources.map(|&(index, at)| lint("cron", index, &spec.crons[index].text, at));
    let excluded = canonical.excluded_hashes.iter();
    let excluded =
        excluded.map(|&(index, at)| lint("exclude_cron", index, &spec.exclusion_crons[index].text, at));
    sources.chain(excluded).collect()
}

fn six_fields(index: usize, [minute, hour, day]: &[String; 3]) -> Lint {
    let read_as = format!("minute `{minute}`, hour `{hour}`, day `{day}`");
    let message = format!("six fields begin with the minute and end with the year: {read_as}");
    let help = "for seconds first use the quartz dialect, else drop the last `*`";
    Lint { field: format!("cron[{index}]"), ..finding(LintCode::SixFields, message, help) }
}

/// The spec without the calendars that fire in every hour of the day.
fn some_hours(canonical: &Spec, environment: &Environment) -> Result<CompiledSpec, Error> {
    let mut spec = canonical.clone();
    spec.calendars.retain(|calendar| compile::calendar_rule(calendar, &None).time.hours.count_ones() < 24);
    spec.intervals.clear();
    spec.times.clear();
    compile::compile(&spec, environment)
}

/// Looks at the hour after the next occurrence of each rule, since a rule may be dense at another time than the next.
fn high_rate(compiled: &CompiledSpec, now: i64) -> Option<Lint> {
    const HOUR: i64 = 3_600;
    const RULES_LOOKED_AT_MAX: usize = 50;
    let by_rule = compiled
        .rules
        .iter()
        .take(RULES_LOOKED_AT_MAX)
        .filter_map(|rule| Search { rules: std::slice::from_ref(rule), ..compiled.search() }.next(now));
    let mut most = 0;
    for first in by_rule.chain(compiled.next_second(now)) {
        let mut count = 0;
        let mut at = first - 1;
        while let Some(next) = compiled.next_second(at).filter(|next| *next < first + HOUR) {
            count += 1;
            at = next;
        }
        most = most.max(count);
    }
    (most > 60).then(|| {
        let message = format!("fires {most} times within an hour, about every {}", duration(HOUR / most));
        finding(LintCode::HighRate, message, "make sure that each start is cheap, or let one run do many")
    })
}

fn dates_in_words(dates: &[Date]) -> String {
    and(dates.iter().map(|date| date.to_string()))
}
