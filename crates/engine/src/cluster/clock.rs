//! The database's clock, told on this machine: what all nodes fire by, however wrong their own clocks are.
//!
//! A reading of the database's clock is known to be at most half a round trip off. Between two readings a monotonic clock counts
//! on, which nobody can set. A reading replaces the one before if it is the better one, considering how that one has aged.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use punctual_store::{Store, StoreError};

use crate::clock::Clock;

/// Readings that are taken at the start; the best one counts.
const FIRST_READINGS: usize = 5;

/// How far two clocks are believed to drift apart: one part in so many.
const DRIFT: u32 = 5_000;

/// The database's clock.
pub(crate) struct DatabaseClock {
    /// Says how long a wait is; what time it is, nobody asks it.
    pace: Arc<dyn Clock>,
    reading: Mutex<Reading>,
}

/// What the database's clock said.
#[derive(Clone, Copy, Debug)]
struct Reading {
    time: Timestamp,
    at: Instant,
    /// It may be off by this much, either way.
    error: Duration,
}

impl Reading {
    fn new(said: Timestamp, asked_at: Instant, heard_at: Instant) -> Reading {
        let error = heard_at.duration_since(asked_at) / 2;
        let time = said.checked_add(error).unwrap_or(Timestamp::MAX);
        Reading { time, at: heard_at, error }
    }

    fn at(&self, instant: Instant) -> Reading {
        let age = instant.saturating_duration_since(self.at);
        let time = self.time.checked_add(age).unwrap_or(Timestamp::MAX);
        Reading { time, at: instant, error: self.error + age / DRIFT }
    }

    /// Whether a later reading should replace this one: it is no worse, or the two cannot both be right.
    fn yields_to(&self, later: &Reading) -> bool {
        let here = self.at(later.at);
        let apart = later.time.duration_since(here.time).unsigned_abs();
        later.error <= here.error || apart > later.error + here.error
    }
}

impl DatabaseClock {
    pub(crate) async fn new(store: &dyn Store, pace: Arc<dyn Clock>) -> Result<DatabaseClock, StoreError> {
        let mut best: Option<Reading> = None;
        for _ in 0..FIRST_READINGS {
            let asked_at = Instant::now();
            let reading = Reading::new(store.now().await?, asked_at, Instant::now());
            if best.is_none_or(|best| best.yields_to(&reading)) {
                best = Some(reading);
            }
        }
        let best = best.expect("at least one reading was taken");
        Ok(DatabaseClock { pace, reading: Mutex::new(best) })
    }

    /// Takes note of what the database's clock said between two moments.
    pub(crate) fn heard(&self, said: Timestamp, asked_at: Instant, heard_at: Instant) {
        let later = Reading::new(said, asked_at, heard_at);
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if reading.yields_to(&later) {
            let off = later.time.duration_since(reading.at(later.at).time);
            if off.abs() > SignedDuration::from_secs(1) {
                tracing::warn!(off = %format_args!("{off:#}"), "the database's clock has jumped; following it");
            }
            *reading = later;
        }
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        let reading = *self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        reading.at(Instant::now()).time
    }

    fn real(&self, length: SignedDuration) -> Duration {
        self.pace.real(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(first: Reading) -> DatabaseClock {
        DatabaseClock { pace: Arc::new(crate::SystemClock), reading: Mutex::new(first) }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn a_better_reading_counts_a_worse_one_does_not_until_the_clock_has_jumped() {
        let (start, millis) = (Instant::now(), Duration::from_millis);
        let clock = clock(Reading::new(at(0), start, start + millis(2)));
        let told = |after: u64| {
            let reading = *clock.reading.lock().unwrap();
            reading.at(start + millis(after)).time
        };
        assert_eq!(told(2), at(1));

        // It took long: the answer may be anywhere in between.
        clock.heard(at(105), start + millis(100), start + millis(140));
        assert_eq!(told(202), at(201), "the first reading still counts");

        clock.heard(at(300), start + millis(300), start + millis(300));
        assert_eq!(told(302), at(302), "a quick answer is a good one");

        clock.heard(at(60_000), start + millis(400), start + millis(500));
        assert_eq!(told(500), at(60_050), "no error explains that: the clock was set");
    }

    #[test]
    fn an_old_reading_gives_way_to_a_slow_one() {
        let start = Instant::now();
        let clock = clock(Reading::new(at(0), start, start));
        let later = start + Duration::from_secs(3_600);
        // The machine's clock runs a little slow.
        clock.heard(at(3_600_100), later, later + Duration::from_millis(20));
        assert_eq!(clock.reading.lock().unwrap().time, at(3_600_110));
    }
}
