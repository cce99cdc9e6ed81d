//! Who may have which run now: every limit of a queue, counted anew at every claim.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::Inner;
use crate::{Claim, LiveRun, LiveState, QueueKey, QueueSettings, Rate, RunKey, Taken};

impl Inner {
    /// Hands out one run after another, as long as every limit allows another one.
    pub(super) fn claim(&mut self, claim: &Claim) -> Taken {
        let mut taken = Taken::default();
        let Some(settings) = self.queues.get(&claim.queue).map(|queue| queue.made.settings.clone()) else {
            return taken;
        };
        if settings.paused {
            return taken;
        }
        while taken.runs.len() < claim.runs_max && self.has_place(claim, &settings) {
            let whole = Arc::from("");
            if let Some(time) = settings.rate.and_then(|rate| self.opens_at(claim, &whole, rate, false)) {
                taken.next_time = self.is_waiting(claim.queue).then_some(time);
                break;
            }
            match self.next(claim, &settings) {
                Ok(run) => taken.runs.extend(self.start(claim, &settings, run)),
                Err(time) => {
                    taken.next_time = time;
                    break;
                }
            }
        }
        taken
    }

    fn has_place(&self, claim: &Claim, settings: &QueueSettings) -> bool {
        let running = |mine: bool| {
            let counts = |live: &&LiveRun| match &live.state {
                LiveState::Running { worker, .. } => {
                    live.made.queue == claim.queue && (!mine || *worker == claim.worker)
                }
                LiveState::Ready | LiveState::BackingOff { .. } => false,
            };
            self.live.values().filter(counts).count() as u64
        };
        let below = |bound: Option<u32>, mine| bound.is_none_or(|bound| running(mine) < bound.into());
        below(settings.concurrency_max, false) && below(settings.worker_concurrency_max, true)
    }

    /// When a rate lets another one go, if not now. The windows of keys are kept beside that of the queue.
    fn opens_at(&self, claim: &Claim, key: &Arc<str>, rate: Rate, of_key: bool) -> Option<Timestamp> {
        let place = (claim.queue, window(key, of_key));
        let starts = self.starts.get(&place)?;
        let most = usize::try_from(rate.starts_max.max(1)).unwrap_or(usize::MAX);
        let oldest = starts.len().checked_sub(most).map(|index| starts[index])?;
        let opens = oldest.checked_add(rate.per).unwrap_or(Timestamp::MAX);
        (opens > claim.now).then_some(opens)
    }

    /// The run whose turn it is, or when a rate lets one go.
    fn next(&self, claim: &Claim, settings: &QueueSettings) -> Result<RunKey, Option<Timestamp>> {
        if !settings.is_keyed() {
            return self.first_in_line(claim.queue).map(|live| live.made.run).ok_or(None);
        }
        let keys: BTreeSet<Arc<str>> = self.ready(claim.queue).map(|live| live.made.key.clone()).collect();
        let mut open: Vec<(u64, i64, RunKey)> = Vec::new();
        let mut opens_at: Option<Timestamp> = None;
        for key in keys {
            let of_key = |live: &&LiveRun| live.made.queue == claim.queue && live.made.key == key;
            let is_running = |live: &&LiveRun| matches!(live.state, LiveState::Running { .. });
            let running = self.live.values().filter(of_key).filter(is_running).count() as u64;
            if settings.key_concurrency_max.is_some_and(|bound| running >= bound.into()) {
                continue;
            }
            if let Some(time) = settings.key_rate.and_then(|rate| self.opens_at(claim, &key, rate, true)) {
                opens_at = Some(opens_at.map_or(time, |soonest| soonest.min(time)));
                continue;
            }
            let turn = self.turns.get(&(claim.queue, key.clone())).copied().unwrap_or(0);
            let first = self.ready(claim.queue).filter(of_key).min_by_key(|live| self.rank(live));
            open.extend(first.map(|live| (turn, self.rank(live).0, live.made.run)));
        }
        open.into_iter().min().map(|(.., run)| run).ok_or(opens_at)
    }

    /// A key that nobody waited for goes to the end of the round.
    pub(super) fn queue_up(&mut self, queue: QueueKey, key: &Arc<str>) {
        if !self.ready(queue).any(|live| live.made.key == *key) {
            let round = self.handed_out.get(&queue).copied().unwrap_or(0);
            self.turns.insert((queue, key.clone()), round);
        }
    }

    fn start(&mut self, claim: &Claim, settings: &QueueSettings, run: RunKey) -> Option<LiveRun> {
        let handed_out = self.handed_out.entry(claim.queue).or_default();
        *handed_out += 1;
        let round = *handed_out;
        let live = self.live.get_mut(&run)?;
        live.attempt += 1;
        live.keeper = claim.keeper;
        live.state = LiveState::Running { worker: claim.worker.clone(), started_at: claim.now };
        let (live, key) = (live.clone(), live.made.key.clone());
        for (rate, of_key) in [(settings.rate, false), (settings.key_rate, true)] {
            let Some(rate) = rate else { continue };
            let starts = self.starts.entry((claim.queue, window(&key, of_key))).or_default();
            starts.push(claim.now);
            // Only the latest ones, as many as the rate allows, decide about the next.
            let most = usize::try_from(rate.starts_max.max(1)).unwrap_or(usize::MAX);
            starts.drain(..starts.len().saturating_sub(most));
        }
        self.turns.insert((claim.queue, key), round);
        Some(live)
    }

    /// Windows are kept as long as their rate is.
    pub(super) fn forget_windows(&mut self, queue: QueueKey, settings: &QueueSettings) {
        self.starts.retain(|(of, window), _| {
            let rate = if &**window == QUEUE_WINDOW { settings.rate } else { settings.key_rate };
            *of != queue || rate.is_some()
        });
    }

    pub(super) fn first_in_line(&self, queue: QueueKey) -> Option<&LiveRun> {
        self.ready(queue).min_by_key(|live| self.rank(live))
    }

    fn ready(&self, queue: QueueKey) -> impl Iterator<Item = &LiveRun> {
        self.live.values().filter(move |live| live.made.queue == queue && live.state == LiveState::Ready)
    }

    fn is_waiting(&self, queue: QueueKey) -> bool {
        self.ready(queue).next().is_some()
    }

    fn rank(&self, live: &LiveRun) -> (i64, RunKey) {
        (self.ranks.get(&live.made.run).copied().unwrap_or(0), live.made.run)
    }
}

/// The name of a window: that of the queue as a whole stands apart from those of its keys.
fn window(key: &str, of_key: bool) -> Arc<str> {
    if of_key { format!("key:{key}").into() } else { QUEUE_WINDOW.into() }
}

const QUEUE_WINDOW: &str = "queue";
