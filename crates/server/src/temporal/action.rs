//! Actions: a workflow to start becomes a run on the queue of that name, and is shown again as it came.

use std::sync::Arc;

use jiff::SignedDuration;
use prost::Message;
use punctual_core::{Payload, RetryPolicy, RunAction, Timeouts};
use punctual_temporal_api::{Fields, ScheduleAction};

use super::payloads;
use super::refusal::Refusal;
use super::wire::common::{Payloads, WorkflowType};
use super::wire::workflow::NewWorkflowExecutionInfo;
use super::wire::{common, enums, taskqueue};
use crate::convert::action::{WORKFLOWS_QUEUE, is_served_here};
use crate::convert::time::{length, length_to_wire};
use crate::limits::PAYLOAD_BYTES_MAX;

/// Bytes of a name, as Temporal bounds them.
const NAME_BYTES_MAX: usize = 1_000;

/// What is put behind the workflow id of each start: a dash and a time.
const SUFFIX_BYTES: usize = 21;

/// Bytes of a fairness key, as Temporal bounds them.
const FAIRNESS_KEY_BYTES_MAX: usize = 64;

/// The priority of those who name none.
const PRIORITY_USUAL: i32 = 3;

/// Numbers of fields of `NewWorkflowExecutionInfo`, where it is changed without being decoded.
const TASK_QUEUE: u32 = 3;
const INPUT: u32 = 4;
const RETRY_POLICY: u32 = 9;

/// What a start does, in both forms.
pub(super) struct Started {
    pub(super) action: RunAction,
    pub(super) run_id_base: Arc<str>,
    /// In canonical form, less the input.
    pub(super) kept: Vec<u8>,
    /// Attributes of each workflow, to be checked.
    pub(super) search_attributes: Option<common::SearchAttributes>,
}

impl Started {
    /// The same where there is a cluster behind this server: the run is its start there, which carries the whole action.
    pub(super) fn at(mut self, has_upstream: bool) -> Started {
        if has_upstream {
            self.action = RunAction {
                queue: WORKFLOWS_QUEUE.into(),
                // What the action says of these is for the cluster. A start is tried until the cluster has it.
                retry: RetryPolicy { attempts_max: u32::MAX, ..RetryPolicy::default() },
                timeouts: Timeouts::default(),
                call: Some(self.kept.as_slice().into()),
                ..self.action
            };
        }
        self
    }
}

/// Reads an action. The only kind that Temporal has is the start of a workflow.
pub(super) fn from_wire(given: Option<ScheduleAction>) -> Result<Started, Refusal> {
    let mut given = given.ok_or_else(|| Refusal::invalid("schedule action is not set on request"))?;
    let unreadable = |error| Refusal::invalid(format!("schedule action cannot be read: {error}"));
    let info = given.started_workflow().map_err(unreadable)?;
    let info = info.ok_or_else(|| Refusal::invalid("schedule action must be to start a workflow"))?;
    let action = run_action(&info)?;
    check_base(&info.workflow_id)?;
    complete(&mut given, &info).map_err(unreadable)?;
    given.edit_workflow(|fields| fields.remove(INPUT)).map_err(unreadable)?;
    let kept = given.encode_to_vec();
    if kept.len() > PAYLOAD_BYTES_MAX {
        let message =
            format!("action has {} bytes beside its input, at most {PAYLOAD_BYTES_MAX}", kept.len());
        return Err(Refusal::invalid(message));
    }
    Ok(Started {
        action,
        run_id_base: info.workflow_id.into(),
        kept,
        search_attributes: info.search_attributes,
    })
}

fn check_base(id: &str) -> Result<(), Refusal> {
    if id.len() + SUFFIX_BYTES > NAME_BYTES_MAX {
        let most = NAME_BYTES_MAX - SUFFIX_BYTES;
        return Err(Refusal::invalid(format!(
            "workflow id has {} bytes, at most {most} are allowed",
            id.len()
        )));
    }
    Ok(())
}

fn run_action(info: &NewWorkflowExecutionInfo) -> Result<RunAction, Refusal> {
    let handler = info.workflow_type.as_ref().map(|kind| kind.name.as_str()).unwrap_or_default();
    if handler.is_empty() || handler.len() > NAME_BYTES_MAX {
        let message = format!("workflow type must be set, with at most {NAME_BYTES_MAX} bytes");
        return Err(Refusal::invalid(message));
    }
    let queue = info.task_queue.as_ref().map(|queue| queue.name.as_str()).unwrap_or_default();
    if queue.is_empty() {
        return Err(Refusal::invalid("task queue is not set on request"));
    }
    if is_served_here(queue) {
        return Err(Refusal::invalid(format!(
            "task queue {queue} is for calls that the server makes itself"
        )));
    }
    if !info.cron_schedule.is_empty() {
        return Err(Refusal::invalid("a scheduled workflow must not have a cron schedule of its own"));
    }
    let reuse = enums::WorkflowIdReusePolicy::try_from(info.workflow_id_reuse_policy);
    use enums::WorkflowIdReusePolicy::{AllowDuplicate, Unspecified};
    if !matches!(reuse, Ok(Unspecified | AllowDuplicate)) {
        return Err(Refusal::invalid(
            "a scheduled workflow must not have a workflow id reuse policy of its own",
        ));
    }
    timeout("workflow task timeout", info.workflow_task_timeout)?;
    let priority = info.priority.clone().unwrap_or_default();
    if priority.fairness_key.len() > FAIRNESS_KEY_BYTES_MAX {
        let message = format!("fairness key has more than {FAIRNESS_KEY_BYTES_MAX} bytes");
        return Err(Refusal::invalid(message));
    }
    Ok(RunAction {
        queue: queue.into(),
        handler: handler.into(),
        input: input(info.input.as_ref())?,
        retry: retry(info.retry_policy.as_ref())?,
        timeouts: Timeouts {
            start_to_close: timeout("workflow run timeout", info.workflow_run_timeout)?,
            schedule_to_close: timeout("workflow execution timeout", info.workflow_execution_timeout)?,
            heartbeat: None,
        },
        // Both count upwards from the most urgent one.
        priority: match priority.priority_key {
            0 => 0,
            key => i16::try_from(key - PRIORITY_USUAL).ok().filter(|step| step.abs() <= 100).ok_or_else(
                || Refusal::invalid(format!("priority key is {key}, expected 1 to {}", 100 + PRIORITY_USUAL)),
            )?,
        },
        key: priority.fairness_key.into(),
        call: None,
    })
}

fn input(given: Option<&Payloads>) -> Result<Payload, Refusal> {
    let kept = payloads::keep(given.unwrap_or(&Payloads::default()));
    if kept.len() > PAYLOAD_BYTES_MAX {
        let message = format!("input has {} bytes, at most {PAYLOAD_BYTES_MAX} are allowed", kept.len());
        return Err(Refusal::invalid(message));
    }
    Ok(kept)
}

fn timeout(field: &str, given: Option<prost_types::Duration>) -> Result<Option<SignedDuration>, Refusal> {
    Ok(length(field, given.as_ref())?.filter(|length| !length.is_zero()))
}

/// How attempts follow each other; without a policy a workflow has one attempt.
fn retry(given: Option<&common::RetryPolicy>) -> Result<RetryPolicy, Refusal> {
    let Some(given) = given else {
        return Ok(RetryPolicy { attempts_max: 1, ..RetryPolicy::default() });
    };
    let (first, factor, longest) = waits(given)?;
    Ok(RetryPolicy {
        // Zero means as often as it takes.
        attempts_max: match given.maximum_attempts {
            0 => u32::MAX,
            attempts => u32::try_from(attempts)
                .map_err(|_| Refusal::invalid("maximum attempts of the retry policy are negative"))?,
        },
        backoff_first: first,
        backoff_percent: (factor * 100.0).round() as u32,
        backoff_max: longest,
        non_retryable: given.non_retryable_error_types.iter().map(|kind| kind.as_str().into()).collect(),
    })
}

/// The waits of a retry policy, with Temporal's defaults for what is not set.
fn waits(given: &common::RetryPolicy) -> Result<(SignedDuration, f64, SignedDuration), Refusal> {
    let first = timeout("initial interval", given.initial_interval)?.unwrap_or(SignedDuration::from_secs(1));
    let factor = if given.backoff_coefficient == 0.0 { 2.0 } else { given.backoff_coefficient };
    if !(1.0..=10_000.0).contains(&factor) {
        return Err(Refusal::invalid(format!("backoff coefficient is {factor}, expected 1 to 10000")));
    }
    let longest = timeout("maximum interval", given.maximum_interval)?;
    let longest = longest.unwrap_or(first.checked_mul(100).unwrap_or(SignedDuration::MAX));
    if longest < first {
        return Err(Refusal::invalid("maximum interval is less than the initial interval"));
    }
    Ok((first, factor, longest))
}

/// Fills in what Temporal's canonical form has, and leaves everything else as it came.
fn complete(action: &mut ScheduleAction, info: &NewWorkflowExecutionInfo) -> Result<(), prost::DecodeError> {
    let waits = info.retry_policy.as_ref().and_then(|policy| waits(policy).ok());
    let mut outcome = Ok(());
    action.edit_workflow(|fields| outcome = complete_fields(fields, waits))?;
    outcome
}

fn complete_fields(
    fields: &mut Fields,
    waits: Option<(SignedDuration, f64, SignedDuration)>,
) -> Result<(), prost::DecodeError> {
    const KIND: u32 = 2;
    let mut queue = Fields::read(&fields.content(TASK_QUEUE).unwrap_or_default())?;
    if !queue.has(KIND) {
        queue.put_number(KIND, enums::TaskQueueKind::Normal as u64);
        fields.put(TASK_QUEUE, queue.bytes());
    }
    if let (Some(bytes), Some((first, factor, longest))) = (fields.content(RETRY_POLICY), waits) {
        let mut policy = Fields::read(&bytes)?;
        policy.put(1, length_to_wire(first).encode_to_vec());
        policy.put_double(2, factor);
        policy.put(3, length_to_wire(longest).encode_to_vec());
        fields.put(RETRY_POLICY, policy.bytes());
    }
    Ok(())
}

/// An action as clients see it: as it came, if it still says what runs do; else made from what they do.
pub(super) fn shown(action: &RunAction, run_id_base: &str, kept: &[u8]) -> ScheduleAction {
    let input = payloads::read(&action.input);
    let came = ScheduleAction::decode(kept).ok().filter(|_| !kept.is_empty());
    let came = came.and_then(|mut came| {
        if !input.payloads.is_empty() {
            came.edit_workflow(|fields| fields.put(INPUT, input.encode_to_vec())).ok()?;
        }
        Some(came)
    });
    let same = |came: &ScheduleAction| {
        from_wire(Some(came.clone())).is_ok_and(|read| {
            let read = read.at(*action.queue == *WORKFLOWS_QUEUE);
            is_same(&read.action, action) && *read.run_id_base == *run_id_base
        })
    };
    came.filter(same).unwrap_or_else(|| {
        ScheduleAction::start_workflow(&NewWorkflowExecutionInfo {
            workflow_id: run_id_base.into(),
            workflow_type: Some(WorkflowType { name: action.handler.to_string() }),
            task_queue: Some(taskqueue::TaskQueue {
                name: action.queue.to_string(),
                kind: enums::TaskQueueKind::Normal.into(),
                ..Default::default()
            }),
            input: Some(input).filter(|input| !input.payloads.is_empty()),
            workflow_run_timeout: action.timeouts.start_to_close.map(length_to_wire),
            workflow_execution_timeout: action.timeouts.schedule_to_close.map(length_to_wire),
            retry_policy: Some(retry_shown(&action.retry)),
            ..Default::default()
        })
    })
}

/// Whether two actions say the same, as far as Temporal has words for it.
fn is_same(one: &RunAction, other: &RunAction) -> bool {
    let heartbeat = other.timeouts.heartbeat;
    RunAction { timeouts: Timeouts { heartbeat, ..one.timeouts }, ..one.clone() } == *other
}

fn retry_shown(retry: &RetryPolicy) -> common::RetryPolicy {
    common::RetryPolicy {
        initial_interval: Some(length_to_wire(retry.backoff_first)),
        backoff_coefficient: f64::from(retry.backoff_percent) / 100.0,
        maximum_interval: Some(length_to_wire(retry.backoff_max)),
        maximum_attempts: i32::try_from(retry.attempts_max).unwrap_or(0),
        non_retryable_error_types: retry.non_retryable.iter().map(ToString::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::action::CALLS_QUEUE;

    fn info() -> NewWorkflowExecutionInfo {
        NewWorkflowExecutionInfo {
            workflow_id: "report".into(),
            workflow_type: Some(WorkflowType { name: "Report".into() }),
            task_queue: Some(taskqueue::TaskQueue { name: "work".into(), ..Default::default() }),
            ..Default::default()
        }
    }

    fn read(info: &NewWorkflowExecutionInfo) -> Result<Started, String> {
        from_wire(Some(ScheduleAction::start_workflow(info)))
            .map_err(|refusal| tonic::Status::from(refusal).message().to_owned())
    }

    #[test]
    fn what_is_shown_is_what_came_with_defaults_and_unknown_fields() {
        let mut given = ScheduleAction::start_workflow(&NewWorkflowExecutionInfo {
            input: Some(Payloads {
                payloads: vec![common::Payload { data: vec![1, 2].into(), ..Default::default() }],
            }),
            retry_policy: Some(common::RetryPolicy { maximum_attempts: 4, ..Default::default() }),
            memo: Some(common::Memo::default()),
            ..info()
        });
        given.edit_workflow(|fields| fields.put(9_000, b"new".to_vec())).unwrap();
        given.0.put(77, b"newer".to_vec());
        let Started { action, run_id_base, kept, .. } = from_wire(Some(given.clone())).ok().unwrap();
        assert_eq!((&*action.queue, &*action.handler, action.retry.attempts_max), ("work", "Report", 4));

        let shown = shown(&action, &run_id_base, &kept);

        let workflow = shown.started_workflow().unwrap().unwrap();
        let policy = workflow.retry_policy.clone().unwrap();
        assert_eq!((policy.initial_interval.unwrap().seconds, policy.backoff_coefficient), (1, 2.0));
        assert_eq!((policy.maximum_interval.unwrap().seconds, policy.maximum_attempts), (100, 4));
        assert_eq!(workflow.task_queue.as_ref().unwrap().kind(), enums::TaskQueueKind::Normal);
        assert_eq!(workflow.input, given.started_workflow().unwrap().unwrap().input);
        assert_eq!(shown.0.content(77).as_deref(), Some(b"newer".as_slice()));
        let fields = Fields::read(&shown.0.content(1).unwrap()).unwrap();
        assert_eq!(fields.content(9_000).as_deref(), Some(b"new".as_slice()));
        let again = from_wire(Some(shown.clone())).ok().unwrap();
        assert_eq!((again.action, again.kept), (action, kept), "canonical once is canonical for ever");
    }

    #[test]
    fn an_action_that_others_changed_is_shown_as_it_is_now() {
        let Started { mut action, run_id_base, kept, .. } = read(&info()).ok().unwrap();
        action.handler = "Other".into();
        let shown = shown(&action, &run_id_base, &kept).started_workflow().unwrap().unwrap();
        assert_eq!(shown.workflow_type.unwrap().name, "Other");
    }

    #[test]
    fn what_a_schedule_cannot_start_is_refused() {
        let refused = |change: fn(&mut NewWorkflowExecutionInfo)| {
            let mut info = info();
            change(&mut info);
            read(&info).err().unwrap_or_default()
        };
        assert!(refused(|info| info.cron_schedule = "@daily".into()).contains("cron"));
        assert!(refused(|info| info.workflow_id_reuse_policy = 3).contains("reuse policy"));
        assert!(refused(|info| info.task_queue = None).contains("task queue is not set"));
        assert!(
            refused(|info| info.task_queue.as_mut().unwrap().name = CALLS_QUEUE.into()).contains("calls")
        );
        assert!(refused(|info| info.workflow_type = None).contains("workflow type"));
        assert!(refused(|info| info.workflow_id = "x".repeat(980)).contains("at most 979"));
        let negative = prost_types::Duration { seconds: -1, nanos: 0 };
        assert!(read(&NewWorkflowExecutionInfo { workflow_run_timeout: Some(negative), ..info() }).is_err());
        assert!(from_wire(None).is_err() && from_wire(Some(ScheduleAction::default())).is_err());
    }
}
