//! `trigger`: one start now, whatever the spec, the pause or the limits say.

use jiff::Timestamp;

use super::{Answer, Command};
use crate::id::{Origin, RequestKey, StartId};
use crate::rejection::Rejection;
use crate::schedule::{OverlapPolicy, Payload};
use crate::transition::Transition;
use crate::tree::ScheduleTree;

/// One start now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trigger {
    /// A policy of its own; nothing means the schedule's.
    pub overlap: Option<OverlapPolicy>,
    /// Input of its own.
    pub input: Option<Payload>,
    /// The nominal time; nothing means now.
    pub nominal_time: Option<Timestamp>,
}

impl ScheduleTree {
    /// Starts one now.
    pub fn trigger(
        &mut self,
        tx: &mut Transition<'_>,
        command: Command<Trigger>,
    ) -> Result<Answer, Rejection> {
        self.once(tx, command, |tree, tx, request, trigger| {
            Ok(vec![tree.checked_trigger(tx, request.key(0), trigger)?])
        })
    }

    pub(super) fn checked_trigger(
        &mut self,
        tx: &mut Transition<'_>,
        key: RequestKey,
        trigger: Trigger,
    ) -> Result<RequestKey, Rejection> {
        if self.invoker.inbox().room(tx.limits()) == 0 {
            return Err(Rejection::LimitReached("the buffer is full"));
        }
        Ok(self.add_trigger(tx, key, trigger))
    }

    pub(super) fn add_trigger(
        &mut self,
        tx: &mut Transition<'_>,
        key: RequestKey,
        trigger: Trigger,
    ) -> RequestKey {
        let overlap = trigger.overlap.unwrap_or(self.scheduler.policies().overlap);
        let nominal = trigger.nominal_time.unwrap_or(tx.now());
        let id = StartId::new(nominal, Origin::Request(key));
        let now = tx.now();
        self.invoker.inbox().enqueue(tx, id, now, overlap, trigger.input);
        key
    }
}
