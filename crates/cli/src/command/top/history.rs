//! The last minute of a server's numbers: rates and lateness are differences of what it counts.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use punctual_api::v1;

use crate::limits::SAMPLES_MAX;
use crate::wire::time;

/// Samples of one life of a server, the latest last.
#[derive(Debug, Default)]
pub struct History {
    samples: VecDeque<Sample>,
    started_at: Option<Timestamp>,
}

/// What was counted up to one moment.
#[derive(Clone, Debug, Default)]
struct Sample {
    at: Timestamp,
    started: u64,
    not_started: BTreeMap<String, u64>,
    lateness: Lateness,
}

/// How late starts were: bounds in seconds, none for the last, and how many were at most so late.
#[derive(Clone, Debug, Default)]
pub struct Lateness(Vec<(Option<f64>, u64)>);

/// A stretch of time at the end of the history.
#[derive(Clone, Copy, Debug)]
pub enum Stretch {
    /// Between the last two samples.
    Interval,
    /// All that is remembered, about a minute.
    Minute,
}

impl History {
    /// Adds a sample. A server that was started anew counts from zero, so what was before is forgotten.
    pub fn add(&mut self, stats: &v1::StatsResponse) {
        let started_at = time::from_wire(stats.started_at.as_ref());
        if self.started_at != started_at {
            self.samples.clear();
            self.started_at = started_at;
        }
        let at = time::from_wire(stats.now.as_ref()).unwrap_or_default();
        self.samples.push_back(Sample {
            at,
            started: stats.started,
            not_started: stats.not_started.iter().map(|(word, count)| (word.clone(), *count)).collect(),
            lateness: Lateness::of(stats),
        });
        while self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
    }

    /// Starts in a second, lately.
    pub fn started_rate(&self) -> f64 {
        self.latest_two().map_or(0.0, |(before, now)| rate(before, now, |sample| sample.started))
    }

    /// Occurrences that were not started in a second, lately, by verdict; only those that there were.
    pub fn not_started_rates(&self) -> Vec<(String, f64)> {
        let Some((before, now)) = self.latest_two() else { return Vec::new() };
        let count = |sample: &Sample, word: &str| sample.not_started.get(word).copied().unwrap_or(0);
        let words = now.not_started.keys().map(|word| {
            let rate = rate(before, now, |sample| count(sample, word));
            (word.clone(), rate)
        });
        words.filter(|(_, rate)| *rate > 0.0).collect()
    }

    /// Starts in a second, for each two samples that follow each other.
    pub fn started_rates(&self) -> Vec<u64> {
        let pairs = self.samples.iter().zip(self.samples.iter().skip(1));
        pairs.map(|(before, now)| rate(before, now, |sample| sample.started).round() as u64).collect()
    }

    /// How late the starts of a stretch were.
    pub fn lateness(&self, stretch: Stretch) -> Lateness {
        let before = match stretch {
            Stretch::Interval => self.latest_two().map(|(before, _)| before),
            Stretch::Minute => self.samples.front(),
        };
        match (before, self.samples.back()) {
            (Some(before), Some(now)) => now.lateness.since(&before.lateness),
            _ => Lateness::default(),
        }
    }

    /// How long a stretch is.
    pub fn length(&self, stretch: Stretch) -> SignedDuration {
        let before = match stretch {
            Stretch::Interval => self.latest_two().map(|(before, _)| before),
            Stretch::Minute => self.samples.front(),
        };
        match (before, self.samples.back()) {
            (Some(before), Some(now)) => now.at.duration_since(before.at),
            _ => SignedDuration::ZERO,
        }
    }

    fn latest_two(&self) -> Option<(&Sample, &Sample)> {
        let count = self.samples.len();
        Some((self.samples.get(count.checked_sub(2)?)?, self.samples.back()?))
    }
}

fn rate(before: &Sample, now: &Sample, count: impl Fn(&Sample) -> u64) -> f64 {
    let seconds = now.at.duration_since(before.at).as_secs_f64();
    let difference = count(now).saturating_sub(count(before)) as f64;
    if seconds > 0.0 { difference / seconds } else { 0.0 }
}

impl Lateness {
    /// All that was counted.
    pub fn of(stats: &v1::StatsResponse) -> Lateness {
        let bucket = |bucket: &v1::LatenessBucket| {
            let bound = time::duration_from_wire(bucket.at_most.as_ref());
            (bound.map(|bound| bound.as_secs_f64()), bucket.count)
        };
        Lateness(stats.lateness.iter().map(bucket).collect())
    }

    fn since(&self, before: &Lateness) -> Lateness {
        let pairs = self.0.iter().enumerate().map(|(index, (bound, count))| {
            let counted = before.0.get(index).map_or(0, |(_, count)| *count);
            (*bound, count.saturating_sub(counted))
        });
        Lateness(pairs.collect())
    }

    /// The lateness that this share of the starts did not exceed, in seconds, as exact as the buckets are; infinite beyond the
    /// last one, and nothing where nothing started.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let total = self.0.last().map(|(_, count)| *count).filter(|count| *count > 0)?;
        let wanted = total as f64 * share;
        let (mut low, mut seen) = (0.0, 0);
        for (bound, count) in &self.0 {
            let within = count.saturating_sub(seen) as f64;
            if *count as f64 >= wanted && within > 0.0 {
                let Some(high) = bound else { return Some(f64::INFINITY) };
                return Some(low + (high - low) * ((wanted - seen as f64).max(0.0) / within));
            }
            (low, seen) = (bound.unwrap_or(low), *count);
        }
        Some(f64::INFINITY)
    }

    /// The same for people.
    pub fn text(&self, share: f64) -> String {
        match self.quantile(share) {
            None => "-".to_owned(),
            Some(seconds) if seconds.is_infinite() => "very late".to_owned(),
            Some(seconds) if seconds < 0.01 => format!("{:.1} ms", seconds * 1e3),
            Some(seconds) if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
            Some(seconds) => format!("{seconds:.1} s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample at a second, with so many starts at most 1 s, at most 10 s and at all late.
    fn stats(life: i64, second: i64, skipped: u64, counts: [u64; 3]) -> v1::StatsResponse {
        let instant = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let bound = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
        let bounds = [bound(1), bound(10), None];
        v1::StatsResponse {
            now: instant(life + second),
            started_at: instant(life),
            started: counts[2],
            not_started: [("skipped".to_owned(), skipped), ("missed".to_owned(), 0)].into(),
            lateness: bounds
                .into_iter()
                .zip(counts)
                .map(|(at_most, count)| v1::LatenessBucket { at_most, count })
                .collect(),
            ..v1::StatsResponse::default()
        }
    }

    #[test]
    fn rates_and_lateness_are_of_the_last_interval() {
        let mut history = History::default();
        assert_eq!((history.started_rate(), history.started_rates().len()), (0.0, 0));
        history.add(&stats(100, 0, 0, [100, 100, 100]));
        history.add(&stats(100, 2, 4, [100, 110, 110]));
        assert_eq!(history.started_rate(), 5.0);
        assert_eq!(history.not_started_rates(), [("skipped".to_owned(), 2.0)]);
        assert_eq!(history.lateness(Stretch::Interval).quantile(0.5), Some(5.5));
        history.add(&stats(100, 3, 4, [100, 110, 111]));
        assert_eq!(history.started_rates(), [5, 1]);
        assert_eq!(history.lateness(Stretch::Interval).quantile(0.5), Some(f64::INFINITY));
        assert_eq!(history.lateness(Stretch::Minute).text(0.1), "2.0 s");
        assert_eq!(history.length(Stretch::Minute), SignedDuration::from_secs(3));
    }

    #[test]
    fn a_server_that_was_started_anew_has_a_new_history() {
        let mut history = History::default();
        history.add(&stats(100, 50, 9, [7, 8, 9]));
        history.add(&stats(200, 0, 0, [1, 1, 1]));
        assert_eq!((history.started_rate(), history.lateness(Stretch::Minute).quantile(0.5)), (0.0, None));
    }

    #[test]
    fn a_minute_is_remembered_and_no_more() {
        let mut history = History::default();
        for second in 0..1_000 {
            history.add(&stats(0, second, 0, [0, 0, second.unsigned_abs()]));
        }
        assert_eq!(history.started_rates().len(), SAMPLES_MAX - 1);
        assert_eq!(history.length(Stretch::Minute), SignedDuration::from_secs(60));
    }
}
