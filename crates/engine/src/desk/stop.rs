//! Runs are asked to stop, by a person or by their schedule's overlap policy.

use punctual_core::{Outcome, StartId, StopKind};
use punctual_store::record::decode_body;
use punctual_store::{LiveState, RunKey, RunWrite, StoredRun, TreeKey};

use super::Desk;
use super::end::Recorded;
use crate::error::EngineError;
use crate::shard::Target;
use crate::verb::{Verb, Work};

impl Desk {
    /// Whether runs of this queue stand for something that goes on elsewhere.
    pub(super) fn is_followed(&self, queue: &str) -> bool {
        self.config.followed_queue.as_deref() == Some(queue)
    }

    fn is_of_followed(&self, stored: &StoredRun) -> bool {
        // Decoding is for those who have such queues.
        self.config.followed_queue.is_some()
            && decode_body(&stored.run.made.body).is_ok_and(|body| self.is_followed(&body.action.queue))
    }

    /// Asks a run to stop. One that nobody has is over at once; one that a worker has is over when the worker says so, or,
    /// if it is terminated, at once. False if it had ended before.
    pub(crate) async fn stop(&self, run: RunKey, kind: StopKind) -> Result<bool, EngineError> {
        let Some(stored) = self.load_run(run).await? else {
            return Err(EngineError::NotFound(format!("run {run}")));
        };
        if stored.closing.is_some() {
            // Whoever asks again may not have been answered, nor the node told that its worker asks.
            self.tell_of(run);
            return Ok(false);
        }
        let running = matches!(stored.run.state, LiveState::Running { .. });
        match kind {
            // What is followed may be between two attempts: who has it next hears of the wish, and whoever took it just now too.
            StopKind::Cancel if running || (stored.run.attempt > 0 && self.is_of_followed(&stored)) => {
                self.write_run(RunWrite::Stop { run, kind }).await?;
                self.watches().ask_to_stop(run, kind, self.clock.now());
                // Its worker may beat its heart elsewhere.
                self.tell_of(run);
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
