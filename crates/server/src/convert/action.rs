//! What a start does: a run for a worker, or a call that the server makes itself.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::SignedDuration;
use punctual_actions::{Call, CommandCall, HttpCall, NexusCall};
use punctual_api::v1;
use punctual_api::v1::action::Kind;
use punctual_core::{RetryPolicy, RunAction, Timeouts};

use super::payload;
use super::queue::priority;
use super::time::{length, length_to_wire};
use crate::status::Fault;

/// The queue of calls that the server makes itself; every namespace has its own.
pub(crate) const CALLS_QUEUE: &str = "punctual.calls";

/// The queue of starts at a Temporal cluster behind this server; every namespace has its own.
pub(crate) const WORKFLOWS_QUEUE: &str = "punctual.workflows";

/// Whether the server works a queue itself.
pub(crate) fn is_served_here(queue: &str) -> bool {
    queue == CALLS_QUEUE || queue == WORKFLOWS_QUEUE
}

/// How long a call may take to end by its callback, if nobody says otherwise.
const CALLBACK_TIME: SignedDuration = SignedDuration::from_hours(24);

/// How long a command may take, if nobody says otherwise.
const COMMAND_TIME: SignedDuration = SignedDuration::from_hours(1);

/// What the user asked for, as a run does it.
pub(crate) fn from_wire(wire: v1::Action) -> Result<RunAction, Fault> {
    match wire.kind {
        None => Err(Fault::field("", "is missing, expected one of queue, http, nexus, command")),
        Some(Kind::Queue(queue)) => on_queue(queue).map_err(|fault| fault.within("queue")),
        Some(Kind::Http(http)) => by_http(http).map_err(|fault| fault.within("http")),
        Some(Kind::Nexus(nexus)) => by_nexus(nexus).map_err(|fault| fault.within("nexus")),
        Some(Kind::Command(command)) => by_command(command).map_err(|fault| fault.within("command")),
    }
}

fn on_queue(wire: v1::QueueAction) -> Result<RunAction, Fault> {
    if wire.queue.is_empty() {
        return Err(Fault::field("queue", "is empty, expected the name of a declared queue"));
    }
    if is_served_here(&wire.queue) {
        return Err(Fault::field(
            "queue",
            format!("{} is for calls that the server makes itself", wire.queue),
        ));
    }
    if wire.handler.is_empty() {
        return Err(Fault::field("handler", "is empty, expected the name of a worker's function"));
    }
    Ok(RunAction {
        queue: wire.queue.into(),
        handler: wire.handler.into(),
        input: payload::bytes_or_none("input", wire.input.as_ref())?,
        retry: retry(wire.retry.unwrap_or_default()).map_err(|fault| fault.within("retry"))?,
        timeouts: timeouts(wire.timeouts.unwrap_or_default()).map_err(|fault| fault.within("timeouts"))?,
        priority: priority("priority", wire.priority)?,
        key: wire.key.into(),
        call: None,
    })
}

fn by_http(wire: v1::HttpAction) -> Result<RunAction, Fault> {
    let statuses = wire.retry_statuses.iter().map(|status| {
        u16::try_from(*status).ok().filter(|status| (100..600).contains(status)).ok_or_else(|| {
            Fault::field("retry_statuses", format!("has {status}, expected statuses from 100 to 599"))
        })
    });
    let call = Call::Http(HttpCall {
        url: wire.url,
        method: if wire.method.is_empty() { "POST".into() } else { wire.method },
        headers: sorted(wire.headers),
        body: (!wire.body.is_empty()).then_some(wire.body),
        connect_timeout_ms: millis("connect_timeout", wire.connect_timeout.as_ref())?,
        timeout_ms: millis("timeout", wire.timeout.as_ref())?,
        retry_statuses: statuses.collect::<Result<_, _>>()?,
        redirects_max: wire.redirects_max,
    });
    called(&call, "http", wire.input.as_ref(), wire.retry, wire.timeouts, CALLBACK_TIME)
}

fn by_nexus(wire: v1::NexusAction) -> Result<RunAction, Fault> {
    let call = Call::Nexus(NexusCall {
        endpoint: wire.endpoint,
        service: wire.service,
        operation: wire.operation,
        headers: sorted(wire.headers),
        input: None,
        operation_timeout_ms: millis("operation_timeout", wire.operation_timeout.as_ref())?,
        timeout_ms: millis("timeout", wire.timeout.as_ref())?,
    });
    called(&call, "nexus", wire.input.as_ref(), wire.retry, wire.timeouts, CALLBACK_TIME)
}

fn by_command(wire: v1::CommandAction) -> Result<RunAction, Fault> {
    let call = Call::Command(CommandCall {
        argv: wire.argv,
        env: sorted(wire.env),
        cwd: (!wire.cwd.is_empty()).then_some(wire.cwd),
        timeout_ms: None,
        output_bytes_max: None,
    });
    called(&call, "command", wire.input.as_ref(), wire.retry, wire.timeouts, COMMAND_TIME)
}

fn called(
    call: &Call,
    handler: &str,
    input: Option<&v1::Payload>,
    retry_wire: Option<v1::RetryPolicy>,
    timeouts_wire: Option<v1::Timeouts>,
    time: SignedDuration,
) -> Result<RunAction, Fault> {
    let mut timeouts =
        timeouts(timeouts_wire.unwrap_or_default()).map_err(|fault| fault.within("timeouts"))?;
    timeouts.start_to_close = timeouts.start_to_close.or(Some(time));
    Ok(RunAction {
        queue: CALLS_QUEUE.into(),
        handler: handler.into(),
        input: payload::bytes_or_none("input", input)?,
        retry: retry(retry_wire.unwrap_or_default()).map_err(|fault| fault.within("retry"))?,
        timeouts,
        priority: 0,
        // Calls to one target share its places, so that a dead one delays no other.
        key: call.target().into(),
        call: Some(call.to_json().into()),
    })
}

fn sorted(map: HashMap<String, String>) -> BTreeMap<String, String> {
    map.into_iter().collect()
}

fn millis(field: &str, given: Option<&prost_types::Duration>) -> Result<Option<u64>, Fault> {
    let given = length(field, given)?;
    given
        .map(|length| {
            u64::try_from(length.as_millis())
                .ok()
                .filter(|millis| *millis > 0)
                .ok_or_else(|| Fault::field(field, "is less than a millisecond, more than that is needed"))
        })
        .transpose()
}

/// The largest factor between two waits, in hundredths.
const PERCENT_MAX: f64 = 1_000_000.0;

/// How attempts follow each other.
pub(crate) fn retry(wire: v1::RetryPolicy) -> Result<RetryPolicy, Fault> {
    let default = RetryPolicy::default();
    let factor = wire.backoff_factor.unwrap_or(f64::from(default.backoff_percent) / 100.0);
    let percent = (factor * 100.0).round();
    if !(100.0..=PERCENT_MAX).contains(&percent) {
        return Err(Fault::field("backoff_factor", format!("is {factor}, expected 1 to 10000")));
    }
    let attempts_max = wire.attempts_max.unwrap_or(default.attempts_max);
    if attempts_max == 0 {
        return Err(Fault::field("attempts_max", "is 0, at least 1 is needed"));
    }
    Ok(RetryPolicy {
        attempts_max,
        backoff_first: length("backoff_first", wire.backoff_first.as_ref())?.unwrap_or(default.backoff_first),
        backoff_percent: percent as u32,
        backoff_max: length("backoff_max", wire.backoff_max.as_ref())?.unwrap_or(default.backoff_max),
        non_retryable: wire.non_retryable.into_iter().map(Arc::from).collect(),
    })
}

/// How long things may take.
pub(crate) fn timeouts(wire: v1::Timeouts) -> Result<Timeouts, Fault> {
    let positive = |field: &str, given: Option<&prost_types::Duration>| match length(field, given)? {
        Some(SignedDuration::ZERO) => Err(Fault::field(field, "is 0s, more than that is needed")),
        length => Ok(length),
    };
    Ok(Timeouts {
        start_to_close: positive("start_to_close", wire.start_to_close.as_ref())?,
        schedule_to_close: positive("schedule_to_close", wire.schedule_to_close.as_ref())?,
        heartbeat: positive("heartbeat", wire.heartbeat.as_ref())?,
    })
}

/// What a run does, as the user asked for it; nothing if it makes no sense any more.
pub(crate) fn to_wire(action: &RunAction) -> Option<Kind> {
    let (input, retry, timeouts) = (
        payload::payload(&action.input),
        Some(retry_to_wire(&action.retry)),
        Some(timeouts_to_wire(&action.timeouts)),
    );
    let Some(call) = &action.call else {
        return Some(Kind::Queue(v1::QueueAction {
            queue: action.queue.to_string(),
            handler: action.handler.to_string(),
            input,
            retry,
            timeouts,
            priority: action.priority.into(),
            key: action.key.to_string(),
        }));
    };
    let unsorted = |map: BTreeMap<String, String>| map.into_iter().collect();
    let length = |millis: Option<u64>| {
        millis.map(|millis| {
            length_to_wire(SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX)))
        })
    };
    Some(match Call::from_json(call).ok()? {
        Call::Http(call) => Kind::Http(v1::HttpAction {
            url: call.url,
            method: call.method,
            headers: unsorted(call.headers),
            body: call.body.unwrap_or_default(),
            input,
            connect_timeout: length(call.connect_timeout_ms),
            timeout: length(call.timeout_ms),
            retry_statuses: call.retry_statuses.into_iter().map(u32::from).collect(),
            redirects_max: call.redirects_max,
            retry,
            timeouts,
        }),
        Call::Nexus(call) => Kind::Nexus(v1::NexusAction {
            endpoint: call.endpoint,
            service: call.service,
            operation: call.operation,
            headers: unsorted(call.headers),
            input,
            operation_timeout: length(call.operation_timeout_ms),
            timeout: length(call.timeout_ms),
            retry,
            timeouts,
        }),
        Call::Command(call) => Kind::Command(v1::CommandAction {
            argv: call.argv,
            env: unsorted(call.env),
            cwd: call.cwd.unwrap_or_default(),
            input,
            retry,
            timeouts,
        }),
    })
}

fn retry_to_wire(retry: &RetryPolicy) -> v1::RetryPolicy {
    let RetryPolicy { attempts_max, backoff_first, backoff_percent, backoff_max, non_retryable } = retry;
    v1::RetryPolicy {
        attempts_max: Some(*attempts_max),
        backoff_first: Some(length_to_wire(*backoff_first)),
        backoff_factor: Some(f64::from(*backoff_percent) / 100.0),
        backoff_max: Some(length_to_wire(*backoff_max)),
        non_retryable: non_retryable.iter().map(ToString::to_string).collect(),
    }
}

fn timeouts_to_wire(timeouts: &Timeouts) -> v1::Timeouts {
    v1::Timeouts {
        start_to_close: timeouts.start_to_close.map(length_to_wire),
        schedule_to_close: timeouts.schedule_to_close.map(length_to_wire),
        heartbeat: timeouts.heartbeat.map(length_to_wire),
    }
}
