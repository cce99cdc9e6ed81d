//! Where a look for ready runs begins.
//!
//! Runs are claimed from the front of an index, so what was claimed lies there dead until it is removed. While somebody holds a
//! snapshot open nothing is removed, and every look would pass over all of it. So when looks from the front take long, the next
//! ones begin a little before the place where the last one ended, and a scout looks at what is in front of that, now and then and
//! on a connection of its own. What becomes ready there is seen at once if this process writes it, soon after another says that
//! something is ready, else when the scout comes by. When the scout is quick again, so is everybody, and looks begin at the front.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual_store::{News, QueueKey, RunWrite, Unit};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::news::Listeners;
use crate::pool::Pool;
use crate::queues::Queues;

/// A look that took less costs nothing worth saving.
const COST_MIN: Duration = Duration::from_millis(20);

/// So many slow looks in a row are no accident.
const SLOW_LOOKS: u32 = 3;

/// The scout is under way at most one part in so many of the time.
const REST: u32 = 20;

/// The same when there may be something in front.
const REST_IN_DOUBT: u32 = 4;

/// Ranks are milliseconds. Nodes commit a little after they have stamped a run, and not in the order of the stamps.
const SLACK: i64 = 250;

/// The front.
pub(crate) const FRONT: i64 = i64::MIN;

/// Where looks begin, by queue.
#[derive(Default)]
pub(crate) struct Floors {
    floors: Mutex<HashMap<i64, Floor>>,
    /// The scout may have to go earlier.
    changed: Notify,
}

struct Floor {
    /// Looks from the front that were slow, one after another.
    slow_looks: u32,
    /// Where looks begin; nothing: at the front.
    rank: Option<i64>,
    /// What the last look at the front took, and when it ended.
    cost: Duration,
    looked_at: Instant,
    /// There may be something in front.
    doubted: bool,
}

impl Floor {
    fn scout_at(&self) -> Instant {
        self.looked_at + self.cost * if self.doubted { REST_IN_DOUBT } else { REST }
    }
}

impl Floors {
    fn floors(&self) -> MutexGuard<'_, HashMap<i64, Floor>> {
        self.floors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rank at which the next look begins.
    pub(crate) fn begin(&self, queue: i64) -> i64 {
        self.floors().get(&queue).and_then(|floor| floor.rank).unwrap_or(FRONT)
    }

    /// A look that began there has taken so long, and has brought runs up to this rank.
    pub(crate) fn looked(&self, queue: i64, from: i64, took: Duration, last: Option<i64>) {
        let (mut floors, slow) = (self.floors(), took >= COST_MIN);
        let raised = last.map(|rank| rank.saturating_sub(SLACK));
        match floors.get_mut(&queue) {
            None if from == FRONT && slow && raised.is_some() => {
                let looked_at = Instant::now();
                let floor = Floor { slow_looks: 1, rank: None, cost: took, looked_at, doubted: false };
                floors.insert(queue, floor);
            }
            None => {}
            Some(floor) if floor.rank.is_none() => match raised {
                _ if !slow => drop(floors.remove(&queue)),
                Some(raised) => {
                    (floor.cost, floor.looked_at) = (took, Instant::now());
                    floor.slow_looks += 1;
                    if floor.slow_looks >= SLOW_LOOKS {
                        floor.rank = Some(raised);
                        self.changed.notify_one();
                    }
                }
                // Nothing is ready: where it will be is not known.
                None => {}
            },
            // If it was lowered in the meantime, there is something that this look may not have seen.
            Some(floor) if floor.rank == Some(from) => floor.rank = raised.max(floor.rank),
            Some(_) => {}
        }
    }

    /// This was just written here.
    pub(crate) fn written<'a>(&self, units: impl Iterator<Item = &'a Unit>, queues: &Queues) {
        if self.floors().is_empty() {
            return;
        }
        for write in units.flat_map(|unit| &unit.runs) {
            match write {
                RunWrite::Insert(made) => {
                    let rank = queues.of(made.queue.0).settings.rank(made.created_at, made.priority);
                    self.lower(made.queue.0, rank);
                }
                // It is ready again, and neither its rank nor its queue is known.
                RunWrite::Release { .. } => self.doubt_all(),
                _ => {}
            }
        }
    }

    /// A run of this rank is ready.
    pub(crate) fn lower(&self, queue: i64, rank: i64) {
        if let Some(floor) = self.floors().get_mut(&queue) {
            floor.rank = floor.rank.map(|floor| floor.min(rank));
        }
    }

    /// Something became ready, and its rank is not known.
    pub(crate) fn doubt(&self, queue: i64) {
        if let Some(floor) = self.floors().get_mut(&queue) {
            floor.doubted = true;
            self.changed.notify_one();
        }
    }

    fn doubt_all(&self) {
        self.floors().values_mut().for_each(|floor| floor.doubted = true);
        self.changed.notify_one();
    }

    /// Nothing that is remembered of a queue holds any more.
    pub(crate) fn forget(&self, queue: i64) {
        self.floors().remove(&queue);
    }

    /// Nothing that is remembered holds any more: what was claimed may be ready again.
    pub(crate) fn forget_all(&self) {
        self.floors().clear();
    }

    /// Where the scout goes next, up to which rank, and when.
    fn next(&self) -> Option<(i64, i64, Instant)> {
        let floors = self.floors();
        let active = floors.iter().filter_map(|(queue, floor)| Some((*queue, floor.rank?, floor.scout_at())));
        active.min_by_key(|(_, _, at)| *at)
    }

    /// What the scout found in front: the first that is ready, if there is one.
    fn scouted(&self, queue: i64, took: Duration, first: Option<i64>) {
        let mut floors = self.floors();
        if took < COST_MIN {
            floors.remove(&queue);
        } else if let Some(floor) = floors.get_mut(&queue) {
            (floor.cost, floor.looked_at, floor.doubted) = (took, Instant::now(), false);
            floor.rank = floor.rank.map(|rank| first.map_or(rank, |first| rank.min(first)));
        }
    }
}

/// Looks at what is in front of where others begin, for as long as the store lives.
pub(crate) async fn keep_scouting(pool: Pool, queues: Arc<Queues>, listeners: Arc<Listeners>) {
    loop {
        let changed = queues.floors.changed.notified();
        let Some((queue, rank, at)) = queues.floors.next() else {
            changed.await;
            continue;
        };
        tokio::select! {
            () = tokio::time::sleep_until(at) => {}
            () = changed => continue,
        }
        let begun = Instant::now();
        let sql = "SELECT rank FROM punctual.run_live WHERE queue = $1 AND state = 0 AND rank < $2
            ORDER BY rank, run LIMIT 1";
        let found = match pool.session().await {
            Ok((session, _guard)) => session.within(session.find(sql, &[&queue, &rank])).await,
            Err(fault) => Err(fault),
        };
        // It may fail only because it took too long: then it is not tried for as much longer.
        let took = begun.elapsed().max(if found.is_err() { COST_MIN } else { Duration::ZERO });
        let first = found.ok().flatten().map(|row| row.get(0));
        queues.floors.scouted(queue, took, first);
        if first.is_some() {
            listeners.hear(&News::Ready(QueueKey(queue)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Duration = Duration::from_secs(1);

    /// Looks from the front have been slow, and the last one ended at this rank.
    fn slow_up_to(rank: i64) -> Floors {
        let floors = Floors::default();
        for _ in 0..SLOW_LOOKS {
            assert_eq!(floors.begin(1), FRONT);
            floors.looked(1, FRONT, SLOW, Some(rank));
        }
        floors
    }

    #[test]
    fn while_looks_are_quick_they_begin_at_the_front() {
        let floors = Floors::default();
        for took in [SLOW, Duration::ZERO, SLOW, SLOW, Duration::ZERO, SLOW] {
            floors.looked(1, FRONT, took, Some(7_000));
            assert_eq!(floors.begin(1), FRONT);
        }
    }

    #[test]
    fn after_slow_looks_the_next_begins_before_where_the_last_ended() {
        let floors = slow_up_to(7_000);
        assert_eq!((floors.begin(1), floors.begin(2)), (7_000 - SLACK, FRONT));
        floors.looked(1, 7_000 - SLACK, Duration::ZERO, Some(9_000));
        assert_eq!(floors.begin(1), 9_000 - SLACK);
        floors.looked(1, 9_000 - SLACK, Duration::ZERO, None);
        floors.looked(1, 9_000 - SLACK, Duration::ZERO, Some(8_000));
        assert_eq!(floors.begin(1), 9_000 - SLACK, "it goes back only when there is a reason");
    }

    #[test]
    fn what_becomes_ready_in_front_is_seen_even_if_a_look_is_under_way() {
        let floors = slow_up_to(7_000);
        let begun = floors.begin(1);
        floors.lower(1, 3_000);
        floors.lower(1, 5_000);
        floors.looked(1, begun, Duration::ZERO, Some(9_000));
        assert_eq!(floors.begin(1), 3_000);
    }

    #[tokio::test(start_paused = true)]
    async fn the_scout_rests_in_proportion_and_sooner_when_in_doubt() {
        let floors = slow_up_to(7_000);
        let begun = Instant::now();
        assert_eq!(floors.next(), Some((1, 7_000 - SLACK, begun + SLOW * REST)));
        floors.doubt(2);
        floors.doubt(1);
        assert_eq!(floors.next().map(|(_, _, at)| at), Some(begun + SLOW * REST_IN_DOUBT));
        tokio::time::advance(SLOW).await;
        floors.scouted(1, SLOW, Some(2_000));
        assert_eq!(floors.next(), Some((1, 2_000, begun + SLOW + SLOW * REST)));
        floors.scouted(1, Duration::ZERO, None);
        assert_eq!((floors.next(), floors.begin(1)), (None, FRONT), "the snapshot is gone");
    }
}
