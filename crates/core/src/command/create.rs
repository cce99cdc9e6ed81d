//! `create`: a new schedule, maybe paused, triggered or backfilled at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Answer, Backfill, Pause, Trigger};
use crate::generator::Generator;
use crate::id::{RequestId, ScheduleKey};
use crate::invoker::Invoker;
use crate::limits::Limits;
use crate::note::Note;
use crate::rejection::Rejection;
use crate::schedule::Definition;
use crate::scheduler::Scheduler;
use crate::transition::{Effects, Transition};
use crate::tree::ScheduleTree;

/// A new schedule.
#[derive(Clone, Debug)]
pub struct Create {
    /// Which one.
    pub key: ScheduleKey,
    /// What the user asked for, checked.
    pub definition: Arc<Definition>,
    /// Starts of the spec that may happen; nothing means no limit.
    pub remaining_actions: Option<u32>,
    /// What to do at once.
    pub initial: InitialPatch,
    /// The client's name for this; creating again with the same one gives the same answer.
    pub request: RequestId,
}

/// What to do with a schedule as it is created.
#[derive(Clone, Debug, Default)]
pub struct InitialPatch {
    /// Start it paused.
    pub pause: Option<Pause>,
    /// Start one now.
    pub trigger: Option<Trigger>,
    /// Start those of past ranges.
    pub backfills: Vec<Backfill>,
}

impl ScheduleTree {
    /// Makes a tree. The first occurrence is strictly after the creation.
    pub fn create(
        now: Timestamp,
        limits: &Limits,
        effects: &mut Effects,
        create: Create,
    ) -> Result<(ScheduleTree, Answer), Rejection> {
        let id_bytes = create.key.namespace.len().max(create.key.schedule.len()).max(create.request.0.len());
        if id_bytes > limits.id_bytes_max || create.key.schedule.is_empty() {
            return Err(Rejection::LimitReached("an id is empty or too long"));
        }
        let mut tree = ScheduleTree {
            scheduler: Scheduler::new(create.key.clone(), create.definition.clone(), now),
            generator: Generator { watermark: now },
            invoker: Invoker::new(now),
            backfillers: BTreeMap::new(),
            last_completion: None,
        };
        tree.scheduler.remaining_actions = create.remaining_actions;
        let answer = tree.apply(now, limits, effects, ScheduleTree::begin, create)?;
        effects.changed.definition = true;
        Ok((tree, answer))
    }

    fn begin(&mut self, tx: &mut Transition<'_>, create: Create) -> Result<Answer, Rejection> {
        let InitialPatch { pause, trigger, backfills } = create.initial;
        let mut keys = Vec::new();
        if let Some(pause) = pause {
            self.set_pause(tx, pause)?;
        }
        if let Some(trigger) = trigger {
            keys.push(self.add_trigger(tx, create.request.key(0), trigger));
        }
        for (index, backfill) in backfills.into_iter().enumerate() {
            keys.push(self.add_backfill(tx, create.request.key(index + 1), backfill)?);
        }
        tx.changed().state = true;
        tx.note(Note::Created);
        let answer = Answer { revision: self.scheduler.revision(), keys: keys.into() };
        self.scheduler.remember(create.request, &answer, tx.limits());
        Ok(answer)
    }

    /// What to answer when somebody creates a schedule that exists: the same as before, or a refusal.
    pub fn created_before(&self, request: &RequestId) -> Result<Answer, Rejection> {
        self.scheduler.answer_to(request).ok_or(Rejection::AlreadyExists)
    }
}
