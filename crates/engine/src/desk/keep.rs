//! Which runs this node looks after, where several nodes share a database.
//!
//! Every live run has a keeper: the node that made it, handed it out, sent it back, or heard of its worker last. The keeper watches
//! its lease and its deadlines in memory. What is watched may be old: before a deadline counts, the stored run is read, and
//! if another node keeps it, that one will see to it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::StopKind;
use punctual_store::record::decode_body;
use punctual_store::{Batch, Kept, LiveRun, LiveState, News, RunKey, StoreError, StoredRun, Unit};

use super::Desk;
use super::outside::CALLBACK_WORKER;
use super::watch::{Change, Lease, Watch};
use crate::error::EngineError;

/// Runs that are read at a time.
const PAGE: usize = 1_000;

/// How long to wait before a run is looked at again, when the database did not answer.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How long whoever keeps a run that waits for its callback has to pass a cancel on.
const CALLBACK_GRACE: SignedDuration = SignedDuration::from_secs(15);

impl Desk {
    /// Changes of runs, which this node looks after from then on.
    pub(super) fn batch(&self, units: Vec<Unit>) -> Batch {
        Batch { units, keeper: self.node.keeper, patient: false }
    }

    /// Tells others to look at a run, if there may be any.
    pub(super) fn tell_of(&self, run: RunKey) {
        if self.node.shared {
            self.store.tell(News::Stop(run));
        }
    }

    /// Looks after runs that others have left behind; says how many there are.
    pub(crate) async fn adopt(&self, kept: Kept) -> Result<usize, EngineError> {
        let (mut after, mut count) = (None, 0);
        loop {
            let page = self.store.live_runs(kept.clone(), after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(count) };
            after = Some(last.made.run);
            count += page.len();
            self.take_over(&page).await?;
        }
    }

    /// Looks after these runs from now on.
    pub(super) async fn take_over(&self, runs: &[LiveRun]) -> Result<(), EngineError> {
        let watched = self.watch_all(runs);
        if watched.is_empty() {
            return Ok(());
        }
        let kept = self.store.keep(watched.clone(), self.node.keeper).await.inspect_err(|_| self.doubt());
        // Whoever kept them may be alive after all: it must not take a worker's silence there for its death, nor for its life.
        // It may be written though it was not answered.
        for live in runs.iter().filter(|live| live.keeper != self.node.keeper) {
            self.tell_of(live.made.run);
        }
        kept?;
        // Whoever looked before saw another keeper, and must not end the watch.
        self.watches().mark(&watched);
        // Somebody may have changed them just before: from now on such news find them here.
        self.read_again(&watched).await.inspect_err(|_| self.doubt())?;
        self.metrics.runs_adopted.add(watched.len() as u64);
        self.show_running();
        Ok(())
    }

    /// Watches what there is to watch about runs of which nothing is known yet; says about which there is.
    pub(super) fn watch_all(&self, runs: &[LiveRun]) -> Vec<RunKey> {
        let now = self.clock.now();
        let mut watches = self.watches();
        let mut watched = Vec::new();
        for live in runs {
            let Ok(body) = decode_body(&live.made.body) else {
                tracing::error!(run = %live.made.run, "a run's body makes no sense; it is left alone");
                continue;
            };
            if let Some(watch) = self.watch_of(live, &body, now, None) {
                watches.set_new(live.made.run, watch);
                watched.push(live.made.run);
            }
        }
        watched
    }

    /// Watches what is stored now about these runs.
    pub(super) async fn read_again(&self, runs: &[RunKey]) -> Result<(), EngineError> {
        let unsure = self.read(runs).await?;
        self.read(&unsure).await?;
        Ok(())
    }

    /// The same; says which runs are watched since, and were not before.
    async fn read(&self, runs: &[RunKey]) -> Result<Vec<RunKey>, EngineError> {
        let mut unsure = Vec::new();
        for some in runs.chunks(PAGE) {
            let moment = self.watches().now();
            let stored = self.store.load_runs(some.to_vec()).await?;
            for (run, stored) in some.iter().zip(&stored) {
                if self.refresh(*run, live(stored), moment) == Look::Unsure {
                    unsure.push(*run);
                }
            }
        }
        Ok(unsure)
    }

    /// Compares everything that is watched with what is stored under this node's name.
    pub(crate) async fn reconcile(self: Arc<Desk>) {
        if let Err(error) = self.try_reconcile().await {
            tracing::warn!(%error, "the runs of this node could not be read again; the next round will try");
            self.doubt();
        }
    }

    async fn try_reconcile(&self) -> Result<(), EngineError> {
        let (before, mut mine, mut after) = (self.watches().runs(), HashSet::new(), None);
        let mut again = Vec::new();
        loop {
            let moment = self.watches().now();
            let page = self.store.live_runs(Kept::By(self.node.keeper), after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.made.run);
            for live in &page {
                mine.insert(live.made.run);
                if self.refresh(live.made.run, Some(live), moment) == Look::Unsure {
                    again.push(live.made.run);
                }
            }
        }
        again.extend(before.into_iter().filter(|run| !mine.contains(run)));
        self.read_again(&again).await?;
        self.show_running();
        self.directives.notify_waiters();
        Ok(())
    }

    /// A run that was made here has ended elsewhere: its deadline need not be waited for.
    pub(crate) fn has_ended(&self, run: RunKey) {
        self.watches().remove(run);
        self.show_running();
    }

    /// Somebody else has changed these runs, or looks after them now.
    pub(crate) async fn look_at(&self, runs: Vec<RunKey>) {
        let mut alone = Vec::new();
        self.look_at_all(runs, &mut alone).await;
        for run in alone {
            self.look_at_all(vec![run], &mut Vec::new()).await;
        }
    }

    /// The same; those that have to be looked at one by one, since one of them cannot be read, are left to whoever asks.
    async fn look_at_all(&self, mut runs: Vec<RunKey>, alone: &mut Vec<RunKey>) {
        loop {
            let moment = {
                let watches = self.watches();
                runs.retain(|run| watches.is_watched(*run));
                watches.now()
            };
            if runs.is_empty() {
                return;
            }
            let stored = match self.store.load_runs(runs.clone()).await {
                Ok(stored) => stored,
                Err(StoreError::Corrupted { .. }) => return alone.append(&mut runs),
                Err(_) => {
                    tokio::time::sleep(LOOK_AGAIN).await;
                    continue;
                }
            };
            let mut stored = stored.iter();
            // Those that went on meanwhile are looked at again.
            runs.retain(|run| self.refresh(*run, stored.next().and_then(live), moment) != Look::Counts);
            self.show_running();
            // Whoever waits in a heartbeat of one hears what is to be done.
            self.directives.notify_waiters();
        }
    }

    /// Watches what was stored a moment ago: nothing, if the run has ended or somebody else looks after it.
    pub(super) fn refresh(&self, run: RunKey, live: Option<&LiveRun>, moment: Change) -> Look {
        let now = self.clock.now();
        let mut watches = self.watches();
        if watches.changed_since(run, moment) {
            return Look::Overtaken;
        }
        let Some(live) = live.filter(|live| live.keeper == self.node.keeper) else {
            watches.remove(run);
            return Look::Counts;
        };
        let is_new = !watches.is_watched(run);
        let same = watches.lease(run, live.attempt).is_some_and(|lease| is_held(live, lease));
        let watch = match decode_body(&live.made.body) {
            Ok(_) if same => None,
            Ok(body) => self.watch_of(live, &body, now, None),
            Err(_) => None,
        };
        match watch {
            Some(watch) => watches.set(run, watch),
            None if same => {}
            None => watches.remove(run),
        }
        if let Some(kind) = live.stop {
            watches.ask_to_stop(run, kind, now);
        }
        if is_new && watches.is_watched(run) { Look::Unsure } else { Look::Counts }
    }

    /// What a deadline is about, as it is stored; nothing if it is not for this node to deal with any more.
    pub(super) async fn still(&self, run: RunKey, watch: &Watch) -> Result<Option<StoredRun>, EngineError> {
        let moment = self.watches().now();
        let stored = self.load_run(run).await?;
        let mine = live(&stored).filter(|live| live.keeper == self.node.keeper);
        let same = mine.is_some_and(|live| match (watch, &live.state) {
            (Watch::Queued { .. }, LiveState::Ready) => true,
            (Watch::BackingOff { not_before, .. }, LiveState::BackingOff { not_before: stored }) => {
                not_before == stored
            }
            (Watch::Running(lease), _) => is_held(live, lease),
            (Watch::Queued { .. } | Watch::BackingOff { .. }, _) => false,
        });
        if !same {
            if self.refresh(run, live(&stored), moment) == Look::Unsure {
                self.read_again(&[run]).await?;
            }
            self.show_running();
            return Ok(None);
        }
        Ok(stored)
    }

    pub(super) fn show_running(&self) {
        self.metrics.running.set(self.watches().running() as u64);
        self.alarm.notify_one();
    }
}

/// What a look at a stored run is worth when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It is watched as it was seen.
    Counts,
    /// It went on here since: nobody else would look after what it is now, and if that is old too, its deadline tells.
    Overtaken,
    /// It was not watched, and is now. It may have ended or gone elsewhere while it was looked at: another look tells.
    Unsure,
}

/// A run that has not ended.
pub(super) fn live(stored: &Option<StoredRun>) -> Option<&LiveRun> {
    stored.as_ref().filter(|stored| stored.closing.is_none()).map(|stored| &stored.run)
}

/// Whether a worker has a run by this very lease.
fn is_held(live: &LiveRun, lease: &Lease) -> bool {
    match &live.state {
        LiveState::Running { worker, .. } => live.attempt == lease.attempt && *worker == lease.worker,
        LiveState::Ready | LiveState::BackingOff { .. } => false,
    }
}

impl super::watch::Watches {
    /// Takes note that somebody wants a run to stop.
    pub(super) fn ask_to_stop(&mut self, run: RunKey, kind: StopKind, now: Timestamp) {
        let Some(mut lease) = self.any_lease(run).cloned() else { return };
        lease.stop = lease.stop.max(Some(kind));
        // Nobody may be there to hear of it: then it ends by itself after a while.
        if &*lease.worker == CALLBACK_WORKER {
            lease.until = lease.until.min(now.checked_add(CALLBACK_GRACE).unwrap_or(Timestamp::MAX));
        }
        self.set(run, Watch::Running(Box::new(lease)));
    }
}
