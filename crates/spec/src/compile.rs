//! Spec to CompiledSpec: checked once, then every question is answered in bounded work.
//!
//! 1. Each calendar becomes a rule: a set of days and a set of times.
//! 2. Named calendars that roll move days; everything else that forbids becomes an exclusion.
//! 3. The exclusions are cut out of the rules, so no search ever steps over excluded seconds one by one.
//! 4. For intervals, which are no product of days and times, the days with a surviving tick are listed.
//! 5. The first and the last occurrence are found; outside of them nothing needs to be searched.

use jiff::Timestamp;

use crate::civil::SECONDS_PER_DAY;
use crate::days::DaySet;
use crate::error::Error;
use crate::interval::Ticks;
use crate::limits::{COMPILE_STEPS_MAX, COMPILED_RULES_MAX};
use crate::occurrence::floor_second;
use crate::spec::{Environment, Fold, Gap, Spec};
use crate::time_of_day::TimeOfDay;
use crate::wall::{Search, WallRule};
use crate::zone::Zone;

mod cut;
mod rules;
mod sparse;

pub(crate) use rules::calendar_rule;
pub(crate) use sparse::SparseTicks;

/// A spec that was checked and can be asked.
///
/// All answers are exact, need no heap and take bounded work: a search never walks through excluded seconds,
/// years without an occurrence, or times after the last one. It is cheap to keep and can be shared by threads.
///
/// ```
/// use punctual_spec::Spec;
///
/// let compiled = Spec::new().cron("@hourly").compile()?;
/// let after = "2026-01-01T00:30:00Z".parse().unwrap();
/// assert_eq!(compiled.next(after).unwrap().nominal_time.to_string(), "2026-01-01T01:00:00Z");
/// assert_eq!(compiled.previous(after).unwrap().nominal_time.to_string(), "2026-01-01T00:00:00Z");
/// # Ok::<(), punctual_spec::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CompiledSpec {
    /// Calendars, with the exclusions cut out.
    pub(crate) rules: Box<[WallRule]>,
    /// Intervals that nothing is taken from.
    pub(crate) ticks: Box<[Ticks]>,
    /// Intervals with exclusions.
    pub(crate) sparse: Option<Box<SparseTicks>>,
    /// Explicit times that survived, in order.
    pub(crate) times: Box<[i64]>,
    /// What was cut out.
    pub(crate) excluded: Box<[WallRule]>,
    /// The sources as they were before the exclusions, where jitter needs to know.
    pub(crate) raw: Option<Box<RawSources>>,
    pub(crate) zone: Zone,
    pub(crate) gap: Gap,
    pub(crate) fold: Fold,
    /// The first and the last occurrence; nothing when it never fires.
    pub(crate) span: Option<(i64, i64)>,
    pub(crate) jitter_ms: u64,
    pub(crate) seed: Box<str>,
}

impl CompiledSpec {
    /// Reads a little of what an answer needs, and gives a number that means nothing. Who has many to ask fetches them from
    /// memory together so, in rounds: what a round reads, the one before has made known.
    #[doc(hidden)]
    pub fn glance(&self, round: u8) -> usize {
        if round == 0 {
            return self.rules.len() ^ self.jitter_ms as usize ^ usize::from(self.span.is_some());
        }
        let rule = self.rules.first().map_or(0, |rule| usize::from(rule.is_empty()));
        let tick = self.ticks.first().map_or(0, |tick| tick.period as usize);
        rule ^ tick ^ usize::from(self.seed.as_bytes().first().copied().unwrap_or_default())
    }
}

/// The sources without the exclusions: jitter never reaches the next time of these.
#[derive(Clone, Debug)]
pub(crate) struct RawSources {
    pub(crate) rules: Box<[WallRule]>,
    pub(crate) ticks: Box<[Ticks]>,
    pub(crate) times: Box<[i64]>,
}

/// The last second of 2100 in UTC; nothing occurs later.
pub(crate) const LAST_SECOND: i64 = (crate::civil::DAY_MAX as i64 + 1) * SECONDS_PER_DAY - 1;

pub(crate) fn compile(spec: &Spec, environment: &Environment) -> Result<CompiledSpec, Error> {
    let zone = zone(spec, environment)?;
    let mut meter = Meter::default();
    let sources = rules::sources(spec, environment, &mut meter)?;
    let excluded = rules::exclusions(spec, environment, &mut meter)?;
    let mut ticks = Vec::new();
    for interval in &spec.intervals {
        let (period, phase) = interval.seconds()?;
        ticks.push(Ticks { period, phase });
    }
    ticks.sort_unstable();
    ticks.dedup();

    let (low, high) = bounds(spec);
    let mut times: Vec<i64> = spec.times.iter().map(|time| time.as_second()).collect();
    times.sort_unstable();
    times.dedup();
    let jitter_ms = spec.jitter.as_millis().clamp(0, i128::from(i64::MAX)) as u64;
    let cut_times = times.iter().any(|time| !(low..=high).contains(time));
    let raw = (jitter_ms > 0 && (!excluded.is_empty() || cut_times)).then(|| {
        let (rules, ticks) = (sources.clone().into(), ticks.clone().into());
        Box::new(RawSources { rules, ticks, times: times.clone().into() })
    });
    times.retain(|time| (low..=high).contains(time));

    let mut sparse = None;
    if !excluded.is_empty() {
        let shown = Search { rules: &excluded, zone: &zone, gap: Gap::Skip, fold: Fold::Both, excluded: &[] };
        meter.step(
            times.len() as u64 * excluded.len() as u64 / 4,
            "looking up the times among the exclusions",
        )?;
        times.retain(|time| knows(&zone, *time) && !shown.matches(*time));
        if !ticks.is_empty() {
            let everything = WallRule { days: DaySet::all(), time: TimeOfDay::ALL };
            let allowed = cut::cut(vec![everything], &excluded, &mut meter)?;
            sparse =
                Some(Box::new(SparseTicks::new(std::mem::take(&mut ticks), &allowed, &zone, &mut meter)?));
        }
    }
    let rules = rules::merge(cut::cut(sources, &excluded, &mut meter)?);
    let mut compiled = CompiledSpec {
        rules: rules.into(),
        ticks: ticks.into(),
        sparse,
        times: times.into(),
        // Only an occurrence that moves out of a gap asks for them again.
        excluded: if spec.gap == Gap::After { excluded.into() } else { Box::default() },
        raw,
        zone,
        gap: spec.gap,
        fold: spec.fold,
        span: Some((low, high)),
        jitter_ms,
        seed: environment.seed().into(),
    };
    compiled.span = compiled.next_second(low - 1).and_then(|first| {
        let last = compiled.previous_second(high + 1)?;
        (first <= high && last >= low).then_some((first, last))
    });
    Ok(compiled)
}

/// Whether calendars know the local date of an instant; beyond 2000 to 2100 nothing can be said to be allowed.
fn knows(zone: &Zone, instant: i64) -> bool {
    let day = (instant + zone.stretch_at(instant).1.offset).div_euclid(SECONDS_PER_DAY);
    (i64::from(crate::civil::DAY_MIN)..=i64::from(crate::civil::DAY_MAX)).contains(&day)
}

/// The seconds between which anything may occur, both included.
fn bounds(spec: &Spec) -> (i64, i64) {
    let low = spec.start_time.map_or(0, floor_second).max(0);
    let high = spec.end_time.map_or(LAST_SECOND, floor_second).min(LAST_SECOND);
    (low.min(LAST_SECOND + 1), high.max(-1))
}

fn zone(spec: &Spec, environment: &Environment) -> Result<Zone, Error> {
    match &spec.zone_data {
        Some(bytes) => Zone::from_tzif(&spec.zone, bytes).map_err(|error| error.in_field("zone_data")),
        None => environment.zones().get(&spec.zone).map_err(|error| error.in_field("zone")),
    }
}

/// Counts the steps of one compilation and refuses to take too many.
#[derive(Default)]
pub(crate) struct Meter {
    steps: u64,
}

impl Meter {
    pub(crate) fn step(&mut self, count: u64, doing: &str) -> Result<(), Error> {
        self.steps += count;
        if self.steps > COMPILE_STEPS_MAX {
            return Err(Error::limit(format!(
                "spec is too costly to check: {doing} needs more than {COMPILE_STEPS_MAX} steps"
            ))
            .with_help("use fewer rules, exclude whole days, or list the dates in a named calendar"));
        }
        Ok(())
    }

    /// A list of days was made by going through a century, a pattern by going through 28 shapes of a month.
    pub(crate) fn days(&mut self, made: &DaySet, doing: &str) -> Result<(), Error> {
        self.step(if made.is_listed() { 100 } else { 5 }, doing)
    }

    pub(crate) fn rules(&self, count: usize) -> Result<(), Error> {
        if count > COMPILED_RULES_MAX {
            return Err(Error::limit(format!(
                "spec is too costly: its exclusions split the calendars into more than {COMPILED_RULES_MAX} rules"
            ))
            .with_help("exclude whole days or whole hours rather than scattered seconds"));
        }
        Ok(())
    }
}

impl CompiledSpec {
    /// Whether nothing will ever happen: there is no source, or bounds and exclusions leave none of it before 2101.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// assert!(Spec::new().cron("0 0 30 2 *").compile()?.never_fires());
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn never_fires(&self) -> bool {
        self.span.is_none()
    }

    /// The first nominal time of all.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// let compiled = Spec::new().cron("0 0 29 2 1").compile()?;
    /// assert_eq!(compiled.first().unwrap().to_string(), "2016-02-29T00:00:00Z");
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn first(&self) -> Option<Timestamp> {
        self.span.map(|(first, _)| crate::zone::timestamp(first))
    }

    /// The last nominal time of all: after it, nothing happens again.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// let compiled = Spec::new().cron("0 0 * * * 2026").compile()?;
    /// assert_eq!(compiled.last().unwrap().to_string(), "2026-12-31T00:00:00Z");
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn last(&self) -> Option<Timestamp> {
        self.span.map(|(_, last)| crate::zone::timestamp(last))
    }

    /// The zone in force: the spec's, or the one that its cron strings name.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// let compiled = Spec::new().cron("CRON_TZ=Asia/Tokyo 0 9 * * *").compile()?;
    /// assert_eq!(compiled.zone().name(), "Asia/Tokyo");
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    pub(crate) fn search(&self) -> Search<'_> {
        let CompiledSpec { rules, zone, gap, fold, excluded, .. } = self;
        Search { rules, zone, gap: *gap, fold: *fold, excluded }
    }
}
