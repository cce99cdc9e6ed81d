//! Runs are asked to stop, by a person or by their schedule's overlap policy.

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Outcome, StartId, StopKind};
use punctual_store::record::decode_body;
use punctual_store::{LiveState, RunKey, RunWrite, TreeKey};

use super::Desk;
use super::end::Recorded;
use super::outside::CALLBACK_WORKER;
use super::watch::Watch;
use crate::error::EngineError;
use crate::shard::Target;
use crate::verb::{Verb, Work};

/// How long whoever keeps a run that waits for its callback has to pass a cancel on.
const CALLBACK_GRACE: SignedDuration = SignedDuration::from_secs(15);

impl Desk {
    /// Asks a run to stop. One that nobody has is over at once; one that a worker has is over when the worker says so, or,
    /// if it is terminated, at once. False if it had ended before.
    pub(crate) async fn stop(&self, run: RunKey, kind: StopKind) -> Result<bool, EngineError> {
        let Some(stored) = self.load_run(run).await? else {
            return Err(EngineError::NotFound(format!("run {run}")));
        };
        if stored.closing.is_some() {
            return Ok(false);
        }
        let running = matches!(stored.run.state, LiveState::Running { .. });
        match kind {
            StopKind::Cancel if running => {
                self.write_run(RunWrite::Stop { run, kind }).await?;
                let mut watches = self.watches();
                if let Some(mut lease) = watches.any_lease(run).cloned() {
                    lease.stop = lease.stop.max(Some(kind));
                    // Nobody may be there to hear of it: then it ends by itself after a while.
                    if &*lease.worker == CALLBACK_WORKER {
                        let end = self.clock.now().checked_add(CALLBACK_GRACE);
                        lease.until = lease.until.min(end.unwrap_or(Timestamp::MAX));
                    }
                    watches.set(run, Watch::Running(Box::new(lease)));
                }
                drop(watches);
                self.alarm.notify_one();
                self.directives.notify_waiters();
                Ok(true)
            }
            StopKind::Cancel => {
                Ok(self.close_stored(&stored, Outcome::Cancelled, None).await? == Recorded::Closed)
            }
            StopKind::Terminate => {
                Ok(self.close_stored(&stored, Outcome::Terminated, None).await? == Recorded::Closed)
            }
        }
    }

    /// A schedule wants one of its runs to stop, and wants to know that the wish has arrived. It asks again if this fails.
    pub(super) async fn stop_for_schedule(
        &self,
        tree: TreeKey,
        start: StartId,
        run: Option<RunKey>,
        kind: StopKind,
    ) {
        let Some(run) = run else { return };
        if let Err(error) = self.stop(run, kind).await {
            tracing::warn!(%run, %error, "a run could not be asked to stop; its schedule asks again");
            return;
        }
        let Ok(Some(stored)) = self.load_run(run).await else { return };
        if stored.closing.is_some() {
            return;
        }
        let Ok(body) = decode_body(&stored.run.made.body) else { return };
        let key = punctual_core::ScheduleKey { namespace: body.namespace, schedule: body.schedule };
        let work = Work::Change(Verb::StopsDelivered(vec![start]));
        if let Err(refusal) = self.router.submit(&key, Target::Tree(tree), work, Vec::new()).await {
            tracing::debug!(%run, ?refusal, "a delivered stop was not recorded; its schedule asks again");
        }
    }
}
