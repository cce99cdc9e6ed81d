//! `skip` and `unskip`: one occurrence that should not happen, and a change of mind.

use jiff::Timestamp;

use super::{Answer, Command};
use crate::rejection::Rejection;
use crate::transition::Transition;
use crate::tree::ScheduleTree;

/// One occurrence that should not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkipOccurrence {
    /// Its nominal time.
    pub nominal_time: Timestamp,
}

/// One that should happen after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnskipOccurrence {
    /// Its nominal time.
    pub nominal_time: Timestamp,
}

impl ScheduleTree {
    /// Marks one coming occurrence as not to happen.
    pub fn skip(
        &mut self,
        tx: &mut Transition<'_>,
        command: Command<SkipOccurrence>,
    ) -> Result<Answer, Rejection> {
        self.once(tx, command, |tree, tx, _, SkipOccurrence { nominal_time }| {
            let coming = nominal_time > tree.generator.watermark;
            if !coming || !tree.scheduler.definition.compiled.matches(nominal_time) {
                return Err(Rejection::NotFound("a coming occurrence at that time"));
            }
            if tree.scheduler.skips.len() >= tx.limits().skips_max {
                return Err(Rejection::LimitReached("too many occurrences are marked to be skipped"));
            }
            tree.scheduler.skips.insert(nominal_time);
            Ok(Vec::new())
        })
    }

    /// Takes the mark back.
    pub fn unskip(
        &mut self,
        tx: &mut Transition<'_>,
        command: Command<UnskipOccurrence>,
    ) -> Result<Answer, Rejection> {
        self.once(tx, command, |tree, _, _, UnskipOccurrence { nominal_time }| {
            if !tree.scheduler.skips.remove(&nominal_time) {
                return Err(Rejection::NotFound("a skipped occurrence at that time"));
            }
            Ok(Vec::new())
        })
    }
}
