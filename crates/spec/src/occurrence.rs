//! The questions that a compiled spec answers: next, previous, all in a range, and whether.

use jiff::Timestamp;

use crate::compile::CompiledSpec;
use crate::jitter;
use crate::wall::Search;
use crate::zone::timestamp;

/// One time that a spec yields.
///
/// ```
/// use punctual_spec::Spec;
///
/// let compiled = Spec::new().cron("0 12 * * *").compile()?;
/// let noon = compiled.next("2026-01-01T00:00:00Z".parse().unwrap()).unwrap();
/// assert_eq!(noon.nominal_time, noon.due_time);
/// # Ok::<(), punctual_spec::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Occurrence {
    /// Before jitter; identifies the occurrence.
    pub nominal_time: Timestamp,
    /// After jitter; when it should start.
    pub due_time: Timestamp,
}

impl CompiledSpec {
    /// The first occurrence whose nominal time is after this instant.
    ///
    /// ```
    /// use punctual_spec::Spec;
    ///
    /// let compiled = Spec::new().cron("0 0 29 2 *").compile()?;
    /// let next = compiled.next("2026-01-01T00:00:00Z".parse().unwrap()).unwrap();
    /// assert_eq!(next.nominal_time.to_string(), "2028-02-29T00:00:00Z");
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    #[inline]
    pub fn next(&self, after: Timestamp) -> Option<Occurrence> {
        self.next_second(floor_second(after)).map(|nominal| self.occurrence(nominal))
    }

    /// The last occurrence whose nominal time is before this instant: when it last fired.
    ///
    /// ```
    /// use punctual_spec::Spec;
    ///
    /// let compiled = Spec::new().cron("0 9 * * MON-FRI").zone("Europe/Berlin").compile()?;
    /// let last = compiled.previous("2026-01-05T07:59:59Z".parse().unwrap()).unwrap();
    /// assert_eq!(last.nominal_time.to_string(), "2026-01-02T08:00:00Z");
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn previous(&self, before: Timestamp) -> Option<Occurrence> {
        // A fraction of a second after an occurrence, that occurrence is already before.
        let fraction = i64::from(before.subsec_nanosecond() != 0);
        self.previous_second(floor_second(before) + fraction).map(|nominal| self.occurrence(nominal))
    }

    /// All occurrences with nominal times in `(after, through]`, in order.
    ///
    /// ```
    /// use punctual_spec::Spec;
    ///
    /// let compiled = Spec::new().cron("@hourly").compile()?;
    /// let day = ("2026-01-01T00:00:00Z".parse().unwrap(), "2026-01-02T00:00:00Z".parse().unwrap());
    /// assert_eq!(compiled.iterate(day.0, day.1).count(), 24);
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn iterate(&self, after: Timestamp, through: Timestamp) -> Occurrences<'_> {
        Occurrences { spec: self, after: floor_second(after), through: floor_second(through) }
    }

    /// Whether an occurrence has exactly this nominal time.
    ///
    /// ```
    /// use punctual_spec::Spec;
    ///
    /// let compiled = Spec::new().cron("30 9 * * *").compile()?;
    /// assert!(compiled.matches("2026-01-01T09:30:00Z".parse().unwrap()));
    /// assert!(!compiled.matches("2026-01-01T09:30:01Z".parse().unwrap()));
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn matches(&self, instant: Timestamp) -> bool {
        let second = instant.as_second();
        let Some((first, last)) = self.span else { return false };
        instant.subsec_nanosecond() == 0
            && (first..=last).contains(&second)
            && (self.search().matches(second)
                || self.ticks.iter().any(|ticks| ticks.contains(second))
                || self.times.binary_search(&second).is_ok()
                || self.sparse.as_ref().is_some_and(|sparse| sparse.matches(&self.zone, second)))
    }

    #[inline]
    pub(crate) fn next_second(&self, after: i64) -> Option<i64> {
        let (first, last) = self.span?;
        if after >= last {
            return None;
        }
        let after = after.max(first - 1);
        let mut best = i64::MAX;
        if !self.rules.is_empty() {
            best = self.search().next(after).unwrap_or(i64::MAX);
        }
        for ticks in &self.ticks {
            best = best.min(ticks.after(after));
        }
        if let Some(time) = self.times.get(self.times.partition_point(|time| *time <= after)) {
            best = best.min(*time);
        }
        if let Some(sparse) = &self.sparse {
            best = best.min(sparse.next(&self.zone, after).unwrap_or(i64::MAX));
        }
        (best <= last).then_some(best)
    }

    pub(crate) fn previous_second(&self, before: i64) -> Option<i64> {
        let (first, last) = self.span?;
        if before <= first {
            return None;
        }
        let before = before.min(last + 1);
        let mut best = i64::MIN;
        if !self.rules.is_empty() {
            best = self.search().previous(before).unwrap_or(i64::MIN);
        }
        for ticks in &self.ticks {
            best = best.max(ticks.before(before));
        }
        if let Some(time) = self.times[..self.times.partition_point(|time| *time < before)].last() {
            best = best.max(*time);
        }
        if let Some(sparse) = &self.sparse {
            best = best.max(sparse.previous(&self.zone, before).unwrap_or(i64::MIN));
        }
        (best >= first).then_some(best)
    }

    #[inline]
    fn occurrence(&self, nominal: i64) -> Occurrence {
        let nominal_time = timestamp(nominal);
        if self.jitter_ms == 0 {
            return Occurrence { nominal_time, due_time: nominal_time };
        }
        let room_ms = match self.following(nominal) {
            Some(following) => (following - nominal) as u64 * 1_000,
            None => u64::MAX,
        };
        let offset = jitter::offset_ms(&self.seed, nominal, self.jitter_ms.min(room_ms));
        let due_time = Timestamp::from_millisecond(nominal * 1_000 + offset as i64).unwrap_or(nominal_time);
        Occurrence { nominal_time, due_time }
    }

    /// The next time of the sources themselves: jitter never reaches it. Exclusions and the end do not count.
    fn following(&self, nominal: i64) -> Option<i64> {
        let (rules, ticks, times) = match &self.raw {
            Some(raw) => (&raw.rules, &raw.ticks, &raw.times),
            None => (&self.rules, &self.ticks, &self.times),
        };
        let search = Search { rules, excluded: &[], ..self.search() };
        let by_rule = if rules.is_empty() { None } else { search.next(nominal) };
        let by_interval = ticks.iter().map(|ticks| ticks.after(nominal));
        let by_time = times.get(times.partition_point(|time| *time <= nominal)).copied();
        by_rule.into_iter().chain(by_interval).chain(by_time).min()
    }
}

/// Occurrences in order; see [`CompiledSpec::iterate`].
///
/// ```
/// use punctual_spec::Spec;
///
/// let compiled = Spec::new().cron("0 0 1 1 *").compile()?;
/// let (after, through) = ("2026-06-01T00:00:00Z".parse().unwrap(), "2029-06-01T00:00:00Z".parse().unwrap());
/// let mut new_years = compiled.iterate(after, through);
/// assert_eq!(new_years.next().unwrap().nominal_time.to_string(), "2027-01-01T00:00:00Z");
/// assert_eq!(new_years.count(), 2);
/// # Ok::<(), punctual_spec::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Occurrences<'a> {
    spec: &'a CompiledSpec,
    after: i64,
    through: i64,
}

impl Iterator for Occurrences<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        let nominal = self.spec.next_second(self.after).filter(|nominal| *nominal <= self.through)?;
        self.after = nominal;
        Some(self.spec.occurrence(nominal))
    }
}

/// The second that an instant lies in; the time library cuts toward zero instead.
#[inline]
pub(crate) fn floor_second(instant: Timestamp) -> i64 {
    instant.as_second() - i64::from(instant.subsec_nanosecond() < 0)
}
