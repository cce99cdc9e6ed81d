//! Watchers at other nodes: who wants to hear of what, and how much they are told.
//!
//! What happens to a schedule is known where it is written. Whoever watches at another node says so again and again; what
//! happens meanwhile is told, up to a rate. It is for people who look: nothing rests on it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use punctual_core::ScheduleKey;
use punctual_store::{Keeper, News, Store, Told, Watch};
use tokio::sync::broadcast;

use crate::outlet::Happened;

/// How long the word that somebody watches holds.
const HOLDS: SignedDuration = SignedDuration::from_secs(10);

/// Watches of other nodes at a time; what more they want to hear of is not told.
const WATCHES_MAX: usize = 1_000;

/// What is told in a second: a namespace may have more to tell than nodes should tell each other.
const TOLD_MAX: u64 = 500;

/// Events that a slow watcher may be behind before it misses some.
const EVENTS_KEPT: usize = 4_096;

/// Something that happened at another node, to a schedule that is watched at this one.
#[derive(Clone, Debug)]
pub enum Elsewhere {
    /// This.
    Happened(Happened),
    /// So much more than was told.
    Untold(u64),
}

/// Who watches elsewhere, and the way to those who watch here.
pub(crate) struct Watchers {
    store: Arc<dyn Store>,
    me: Keeper,
    events: broadcast::Sender<Elsewhere>,
    /// Whether anybody may watch elsewhere: usually nobody does, and then nothing else is looked at.
    any: AtomicBool,
    watched: Mutex<Watched>,
}

/// What is watched elsewhere, until when, and how much was told in this second.
#[derive(Default)]
struct Watched {
    until: BTreeMap<Watch, Timestamp>,
    second: i64,
    told: u64,
    untold: u64,
}

/// What is to be told about something that happened.
#[derive(Debug, PartialEq, Eq)]
struct Telling {
    /// Somebody watches, and there is room.
    told: bool,
    /// So much was not told in the seconds before.
    untold: u64,
}

impl Watchers {
    pub(crate) fn new(store: Arc<dyn Store>, me: Keeper) -> Watchers {
        let (events, _) = broadcast::channel(EVENTS_KEPT);
        Watchers { store, me, events, any: AtomicBool::new(false), watched: Mutex::default() }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Elsewhere> {
        self.events.subscribe()
    }

    /// Somebody watches at a node, maybe at this one.
    pub(crate) fn hear_of_watch(&self, at: Keeper, watch: Watch, now: Timestamp) {
        if at != self.me {
            self.watched.lock().unwrap_or_else(PoisonError::into_inner).add(watch, now);
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// Something happened at a node, maybe at this one. Nobody may be watching.
    pub(crate) fn hear(&self, told: Told) {
        let Told { from, key, at, note, run } = told;
        if from != self.me {
            let _ = self.events.send(Elsewhere::Happened(Happened { key: Arc::new(key), at, note, run }));
        }
    }

    pub(crate) fn hear_of_untold(&self, from: Keeper, count: u64) {
        if from != self.me {
            let _ = self.events.send(Elsewhere::Untold(count));
        }
    }

    /// Whether anybody may watch elsewhere.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Something happened here.
    pub(crate) fn tell(&self, happened: &Happened) {
        if !self.any() {
            return;
        }
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let Telling { told, untold } = watched.happened(&happened.key, happened.at);
        self.any.store(!watched.until.is_empty(), Ordering::Relaxed);
        drop(watched);
        if untold > 0 {
            self.store.tell(News::Untold { from: self.me, count: untold });
        }
        if told {
            let Happened { key, at, note, run } = happened.clone();
            let told = Told { from: self.me, key: (*key).clone(), at, note, run };
            self.store.tell(News::Happened(Box::new(told)));
        }
    }
}

impl Watched {
    fn add(&mut self, watch: Watch, now: Timestamp) {
        if self.until.len() >= WATCHES_MAX {
            self.until.retain(|_, until| *until > now);
        }
        if self.until.len() < WATCHES_MAX || self.until.contains_key(&watch) {
            self.until.insert(watch, now.checked_add(HOLDS).unwrap_or(Timestamp::MAX));
        }
    }

    fn happened(&mut self, key: &ScheduleKey, at: Timestamp) -> Telling {
        let mut untold = 0;
        if self.second != at.as_second() {
            (self.second, self.told) = (at.as_second(), 0);
            untold = std::mem::take(&mut self.untold);
            self.until.retain(|_, until| *until > at);
        }
        let mut watch = Watch { namespace: key.namespace.clone(), schedule: None };
        let mut watched = self.until.contains_key(&watch);
        if !watched {
            watch.schedule = Some(key.schedule.clone());
            watched = self.until.contains_key(&watch);
        }
        let told = watched && self.told < TOLD_MAX;
        self.told += u64::from(told);
        self.untold += u64::from(watched && !told);
        Telling { told, untold }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).expect("a time")
    }

    fn watch(schedule: Option<&str>) -> Watch {
        Watch { namespace: "default".into(), schedule: schedule.map(Into::into) }
    }

    fn is_told(watched: &mut Watched, namespace: &str, schedule: &str, milliseconds: i64) -> bool {
        watched.happened(&ScheduleKey::new(namespace, schedule), at(milliseconds)).told
    }

    #[test]
    fn only_what_is_watched_is_told_and_only_while_it_is() {
        let mut watched = Watched::default();
        assert!(!is_told(&mut watched, "default", "a", 0));
        watched.add(watch(Some("a")), at(0));
        assert!(is_told(&mut watched, "default", "a", 1_000));
        assert!(!is_told(&mut watched, "default", "b", 1_000) && !is_told(&mut watched, "other", "a", 1_000));
        watched.add(watch(None), at(2_000));
        assert!(is_told(&mut watched, "default", "b", 2_000) && !is_told(&mut watched, "other", "b", 2_000));
        assert!(is_told(&mut watched, "default", "b", 11_999));
        assert!(!is_told(&mut watched, "default", "a", 12_000), "nobody said it again");
        assert!(watched.until.is_empty());
    }

    #[test]
    fn what_is_too_much_is_counted_and_the_count_is_told() {
        let mut watched = Watched::default();
        watched.add(watch(None), at(0));
        let told = (0..TOLD_MAX + 70).filter(|_| is_told(&mut watched, "default", "a", 500)).count();
        assert_eq!(told as u64, TOLD_MAX);
        let key = ScheduleKey::new("default", "a");
        assert_eq!(watched.happened(&key, at(1_000)), Telling { told: true, untold: 70 });
        assert_eq!(watched.happened(&key, at(2_000)), Telling { told: true, untold: 0 });
    }

    #[test]
    fn watches_have_a_bound_and_those_that_are_over_make_room() {
        let mut watched = Watched::default();
        for number in 0..WATCHES_MAX + 10 {
            watched.add(watch(Some(&number.to_string())), at(0));
        }
        assert_eq!(watched.until.len(), WATCHES_MAX);
        watched.add(watch(Some("new")), at(20_000));
        assert_eq!(watched.until.keys().collect::<Vec<_>>(), [&watch(Some("new"))]);
    }
}
