//! Attempts that end elsewhere: a call was accepted, and a callback will say how it ended.

use punctual_core::{Failure, Outcome};
use punctual_store::{Bytes, LiveState, RunKey, RunWrite};

use jiff::Timestamp;

use super::Desk;
use super::end::Recorded;
use super::keep::live;
use super::watch::Watch;
use crate::error::EngineError;

/// Who has an attempt that waits for its callback.
pub const CALLBACK_WORKER: &str = "punctual.callback";

impl Desk {
    /// From now on nobody beats a heart for this attempt. False if it did not count any more: its callback was faster.
    pub(crate) async fn await_callback(&self, run: RunKey, attempt: u32) -> Result<bool, EngineError> {
        let write = RunWrite::HandOver { run, attempt, worker: CALLBACK_WORKER.into() };
        if !self.write_run(write).await? {
            return Ok(false);
        }
        if self.node.shared && self.watches().lease(run, attempt).is_none() {
            let stored = self.load_run(run).await?;
            self.take_over(live(&stored).cloned().as_slice()).await?;
            self.tell_of(run);
            return Ok(true);
        }
        let mut watches = self.watches();
        if let Some(mut lease) = watches.lease(run, attempt).cloned() {
            lease.worker = CALLBACK_WORKER.into();
            lease.length = jiff::SignedDuration::MAX;
            lease.until = Timestamp::MAX;
            watches.set(run, Watch::Running(Box::new(lease)));
        }
        Ok(true)
    }

    /// A callback says how a run ended. It may come before its call was recorded as accepted, during another attempt, or
    /// twice: the first one counts, whatever the attempt, since all attempts are the same call to whoever was called.
    pub(crate) async fn callback(
        &self,
        run: RunKey,
        end: Result<Option<Bytes>, CallbackEnd>,
    ) -> Result<Recorded, EngineError> {
        let Some(stored) = self.load_run(run).await? else { return Ok(Recorded::Stale) };
        if stored.closing.is_some() {
            return Ok(Recorded::Stale);
        }
        match (end, &stored.run.state) {
            (Ok(result), _) => self.close_stored(&stored, Outcome::Succeeded, result).await,
            (Err(CallbackEnd::Cancelled), _) => self.close_stored(&stored, Outcome::Cancelled, None).await,
            (Err(CallbackEnd::Failed(failure)), LiveState::Running { .. }) => {
                match self.find_lease(run, stored.run.attempt).await? {
                    Some(lease) => self.attempt_failed(run, &lease, Outcome::Failed, &failure, None).await,
                    None => Ok(Recorded::Stale),
                }
            }
            // The attempt that failed is over already.
            (Err(CallbackEnd::Failed(_)), LiveState::Ready | LiveState::BackingOff { .. }) => {
                Ok(Recorded::Stale)
            }
        }
    }
}

/// How a run ended elsewhere, if not well.
#[derive(Clone, Debug)]
pub enum CallbackEnd {
    /// Badly.
    Failed(Failure),
    /// It was asked to stop, and did.
    Cancelled,
}
