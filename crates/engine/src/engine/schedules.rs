//! The verbs that change schedules.

use std::sync::Arc;

use punctual_core::{
    Action, Answer, Command, Create, Definition, InitialPatch, Payload, Policies, Rejection, RequestId,
    RunAction, Schedule, ScheduleKey, Target as Place, Update,
};
use punctual_spec::{Environment, Spec};
use punctual_store::record::{decode_action, encode_action};

use super::Engine;
use super::queues::check_name;
use crate::error::EngineError;
use crate::router::explain;
use crate::shard::Target;
use crate::verb::{Verb, Work};

/// A schedule to make.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// Which one.
    pub key: ScheduleKey,
    /// When.
    pub spec: Spec,
    /// What a run is to do.
    pub action: RunAction,
    /// The first part of every run's name; the schedule's id if empty.
    pub run_id_base: Arc<str>,
    /// How starts get along.
    pub policies: Policies,
    /// What a front door keeps with it; empty for none.
    pub attachment: Payload,
    /// Starts of the spec that may happen; nothing means no limit.
    pub remaining_actions: Option<u32>,
    /// What to do at once.
    pub initial: InitialPatch,
    /// The client's name for this.
    pub request: RequestId,
}

/// How often an update without an expected revision meets other changes before it gives up.
const UPDATE_TRIES_MAX: u32 = 5;

impl Engine {
    /// Makes a schedule. Its queue must have been declared.
    pub async fn create(&self, new: NewSchedule) -> Result<Answer, EngineError> {
        check_name("schedule id", &new.key.schedule)?;
        check_name("namespace", &new.key.namespace)?;
        let _place = self.inner.router.admit()?;
        let base = if new.run_id_base.is_empty() { new.key.schedule.clone() } else { new.run_id_base };
        let action = Action { target: Place::Queue, run_id_base: base, payload: encode_action(&new.action) };
        let schedule =
            Schedule { spec: new.spec, action, policies: new.policies, attachment: new.attachment };
        let definition = self.define(schedule, &new.key).await?;
        let create = Create {
            key: new.key.clone(),
            definition,
            remaining_actions: new.remaining_actions,
            initial: new.initial,
            request: new.request,
        };
        let work = Work::Create(Box::new(create));
        let answer =
            self.inner.router.submit(&new.key, Target::Name(new.key.clone()), work, Vec::new()).await;
        answer.map_err(|refusal| explain(refusal, &new.key))
    }

    /// Changes a schedule that exists, by any verb but update.
    pub async fn change(&self, key: &ScheduleKey, verb: Verb) -> Result<Answer, EngineError> {
        let _place = self.inner.router.admit()?;
        self.submit(key, verb).await
    }

    /// Changes parts of a schedule. Parts are merged with the schedule as it is; if others change it at the same time the
    /// merge is done anew, unless the client named the revision that it saw.
    pub async fn update(
        &self,
        key: &ScheduleKey,
        change: impl Fn(&mut Schedule) -> Result<(), EngineError>,
        update: Command<Update>,
    ) -> Result<Answer, EngineError> {
        let _place = self.inner.router.admit()?;
        let mut tries = 0;
        loop {
            tries += 1;
            let described = self.describe(key).await?;
            let before = described.description.definition.schedule();
            let mut schedule = before.clone();
            change(&mut schedule)?;
            let mut command = update.clone();
            if schedule != *before {
                command.body.definition = Some(self.define(schedule, key).await?);
            }
            let named = command.body.expected_revision;
            command.body.expected_revision = named.or(Some(described.description.revision));
            match self.submit(key, Verb::Update(command)).await {
                Err(EngineError::Rejected(Rejection::RevisionMismatch { .. })) if named.is_none() => {
                    if tries >= UPDATE_TRIES_MAX {
                        return Err(EngineError::Aborted { tries });
                    }
                }
                answer => return answer,
            }
        }
    }

    async fn submit(&self, key: &ScheduleKey, verb: Verb) -> Result<Answer, EngineError> {
        let answer =
            self.inner.router.submit(key, Target::Name(key.clone()), Work::Change(verb), Vec::new()).await;
        answer.map_err(|refusal| explain(refusal, key))
    }

    /// Checks a schedule: its spec, its policies, its queue.
    async fn define(&self, schedule: Schedule, key: &ScheduleKey) -> Result<Arc<Definition>, EngineError> {
        let action = decode_action(&schedule.action.payload)
            .map_err(|error| EngineError::Invalid(format!("the action makes no sense: {error}")))?;
        if action.handler.is_empty() {
            return Err(EngineError::Invalid("the action names no handler".into()));
        }
        if action.retry.attempts_max == 0 {
            return Err(EngineError::Invalid("attempts_max is 0, at least 1 is needed".into()));
        }
        self.find_queue(&key.namespace, &action.queue).await?;
        Definition::new(schedule, key, &Environment::default()).map_err(EngineError::Rejected)
    }
}
