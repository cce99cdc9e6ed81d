//! A run as the task that an activity worker gets.

use jiff::{SignedDuration, Timestamp};
use punctual_core::RetryPolicy;
use punctual_engine::Claimed;
use punctual_store::LiveState;
use serde_json::Value;

use super::super::payloads;
use super::super::wire::common;
use super::super::wire::service::PollActivityTaskQueueResponse;
use super::token::Attempt;
use crate::convert::time::{length_to_wire, to_wire};

/// How long something may take that has no bound: there is always one in Temporal, and some SDKs insist on being told.
const UNBOUNDED: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

/// A run as its worker needs it. The workflow that a worker is told of is the run itself: its name and its number.
pub(super) fn task(
    claimed: &Claimed,
    attempt: &Attempt,
    heartbeat_details: Option<common::Payloads>,
) -> PollActivityTaskQueueResponse {
    let Claimed { live, body, .. } = claimed;
    let (action, timeouts) = (&body.action, &body.action.timeouts);
    let started_at = match &live.state {
        LiveState::Running { started_at, .. } => *started_at,
        LiveState::Ready | LiveState::BackingOff { .. } => live.made.created_at,
    };
    let bound = timeouts.start_to_close.or(timeouts.schedule_to_close);
    // When an attempt became ready is not kept; a later one was, at the latest, when it began.
    let ready_at = if live.attempt == 1 { live.made.created_at } else { started_at };
    PollActivityTaskQueueResponse {
        task_token: attempt.token(),
        workflow_namespace: body.namespace.to_string(),
        workflow_type: Some(common::WorkflowType { name: action.handler.to_string() }),
        workflow_execution: Some(common::WorkflowExecution {
            workflow_id: body.name.to_string(),
            run_id: live.made.run.to_string(),
        }),
        activity_type: Some(common::ActivityType { name: action.handler.to_string() }),
        activity_id: live.made.run.to_string(),
        header: Some(header(claimed)),
        input: Some(payloads::read(&action.input)),
        heartbeat_details,
        scheduled_time: Some(time(live.made.created_at)),
        current_attempt_scheduled_time: Some(time(ready_at)),
        started_time: Some(time(started_at)),
        attempt: i32::try_from(live.attempt).unwrap_or(i32::MAX),
        schedule_to_close_timeout: Some(length(timeouts.schedule_to_close.unwrap_or(UNBOUNDED))),
        start_to_close_timeout: Some(length(bound.unwrap_or(UNBOUNDED))),
        heartbeat_timeout: timeouts.heartbeat.map(length),
        retry_policy: Some(retry_policy(&action.retry)),
        ..PollActivityTaskQueueResponse::default()
    }
}

/// What an activity has no field for: the schedule, and the time that it is for.
fn header(claimed: &Claimed) -> common::Header {
    let schedule = Some(&claimed.body.schedule).filter(|schedule| !schedule.is_empty());
    let nominal = claimed.live.made.origin.map(|(_, start)| start.nominal_time());
    let fields = [
        ("punctual-schedule-id", schedule.map(ToString::to_string)),
        ("punctual-nominal-time", nominal.map(|time| time.to_string())),
    ];
    let encoded = |text: String| common::Payload {
        metadata: [("encoding".to_owned(), b"json/plain".to_vec())].into(),
        data: Value::from(text).to_string().into(),
        ..common::Payload::default()
    };
    let fields = fields.into_iter().filter_map(|(name, text)| Some((name.to_owned(), encoded(text?))));
    common::Header { fields: fields.collect() }
}

fn retry_policy(retry: &RetryPolicy) -> common::RetryPolicy {
    common::RetryPolicy {
        initial_interval: Some(length(retry.backoff_first)),
        backoff_coefficient: f64::from(retry.backoff_percent) / 100.0,
        maximum_interval: Some(length(retry.backoff_max)),
        // Zero means as often as it takes.
        maximum_attempts: i32::try_from(retry.attempts_max).unwrap_or(0),
        non_retryable_error_types: retry.non_retryable.iter().map(ToString::to_string).collect(),
    }
}

fn time(at: Timestamp) -> prost_types::Timestamp {
    to_wire(at)
}

fn length(length: SignedDuration) -> prost_types::Duration {
    length_to_wire(length)
}
