//! Timers in memory: when each schedule of a shard, or each run of a node, wants to be looked at.
//!
//! Two plain maps: by time, and by key so that a timer can really be moved or cancelled. About 60 bytes a timer; a
//! durable start costs a hundred times what this does, so nothing cleverer is needed.

use std::collections::BTreeSet;
use std::hash::Hash;

use jiff::Timestamp;
use punctual_store::KeyMap;

/// At most one timer for each key.
#[derive(Clone, Debug)]
pub struct Timers<K> {
    by_time: BTreeSet<(i64, K)>,
    by_key: KeyMap<K, i64>,
}

impl<K: Copy + Ord + Hash> Default for Timers<K> {
    fn default() -> Timers<K> {
        Timers { by_time: BTreeSet::new(), by_key: KeyMap::default() }
    }
}

/// Microseconds, rounded up: a timer never comes before its time.
fn micros(time: Timestamp) -> i64 {
    let micros = time.as_microsecond();
    if time.subsec_nanosecond() % 1_000 > 0 { micros + 1 } else { micros }
}

impl<K: Copy + Ord + Hash> Timers<K> {
    /// Sets, moves or cancels the timer of a key.
    pub fn set(&mut self, key: K, time: Option<Timestamp>) {
        let time = time.map(micros);
        let before = match time {
            Some(time) => self.by_key.insert(key, time),
            None => self.by_key.remove(&key),
        };
        if before == time {
            return;
        }
        if let Some(before) = before {
            self.by_time.remove(&(before, key));
        }
        if let Some(time) = time {
            self.by_time.insert((time, key));
        }
    }

    /// Sets a timer, unless the key has an earlier one; says whether it did.
    pub fn bring_forward(&mut self, key: K, time: Timestamp) -> bool {
        let later = self.by_key.get(&key).is_none_or(|set| *set > micros(time));
        if later {
            self.set(key, Some(time));
        }
        later
    }

    /// When the next timer comes.
    pub fn next_time(&self) -> Option<Timestamp> {
        let (time, _) = self.by_time.first()?;
        Some(Timestamp::from_microsecond(*time).unwrap_or(Timestamp::MAX))
    }

    /// The keys whose timers have come, the earliest first. They stay where they are.
    pub fn due(&self, now: Timestamp) -> impl Iterator<Item = K> {
        let now = now.as_microsecond();
        self.by_time.iter().take_while(move |(time, _)| *time <= now).map(|(_, key)| *key)
    }

    /// Takes the key of the earliest timer that has come.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<K> {
        let (time, key) = *self.by_time.first()?;
        if time > now.as_microsecond() {
            return None;
        }
        self.by_time.pop_first();
        self.by_key.remove(&key);
        Some(key)
    }

    /// Whether a key has one.
    pub fn contains(&self, key: K) -> bool {
        self.by_key.contains_key(&key)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn timers_come_in_order_and_can_be_moved_and_cancelled() {
        let mut timers = Timers::default();
        for key in 0..5 {
            timers.set(key, Some(at(10 + key)));
        }
        timers.set(3, Some(at(1)));
        timers.set(0, None);

        assert!(!timers.bring_forward(3, at(5)) && timers.bring_forward(2, at(9)));
        timers.set(2, Some(at(12)));

        assert_eq!(timers.next_time(), Some(at(1)));
        assert_eq!(timers.pop_due(at(0)), None);
        let popped: Vec<i64> = std::iter::from_fn(|| timers.pop_due(at(13))).collect();
        assert_eq!(popped, [3, 1, 2]);
        assert_eq!((timers.len(), timers.pop_due(at(100)), timers.is_empty()), (1, Some(4), true));
    }

    #[test]
    fn a_timer_never_comes_before_its_time() {
        let mut timers = Timers::default();
        timers.set((), Some(at(1) + SignedDuration::from_nanos(1)));
        assert_eq!(timers.pop_due(at(1)), None);
        assert_eq!(timers.pop_due(at(1) + SignedDuration::from_micros(1)), Some(()));
    }
}
