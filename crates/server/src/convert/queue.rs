//! Queues: their settings, and runs that are put on them without a schedule.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_api::v1;
use punctual_core::RunAction;
use punctual_engine::{OnDuplicate, RunOrder, Sighting};
use punctual_store::{Queue, QueueDepth, QueueSettings, Rate};

use super::action::{retry, timeouts};
use super::time::{instant, length, length_to_wire, to_wire};
use super::{payload, word};
use crate::status::{Fault, INVALID_MASK, found};

/// What was asked for, where it is not the default.
pub(crate) fn settings(wire: &v1::Queue) -> Result<QueueSettings, Fault> {
    Ok(QueueSettings {
        description: wire.description.as_str().into(),
        concurrency_max: wire.concurrency_max,
        worker_concurrency_max: wire.worker_concurrency_max,
        rate: rate("rate", wire.rate.as_ref())?,
        key_concurrency_max: wire.key_concurrency_max,
        key_rate: rate("key_rate", wire.key_rate.as_ref())?,
        priority_step: length("priority_step", wire.priority_step.as_ref())?
            .unwrap_or(QueueSettings::default().priority_step),
        paused: wire.paused,
    })
}

fn rate(field: &str, wire: Option<&v1::Rate>) -> Result<Option<Rate>, Fault> {
    let Some(wire) = wire else { return Ok(None) };
    let per = length(&format!("{field}.per"), wire.per.as_ref())?;
    let missing = || Fault::field(format!("{field}.per"), "is missing, expected a length of time such as 1s");
    Ok(Some(Rate { starts_max: wire.starts_max, per: per.ok_or_else(missing)? }))
}

/// The settings of before, with the named ones changed. No mask means all of them.
pub(crate) fn merged(
    before: &QueueSettings,
    wire: &v1::Queue,
    mask: Option<&prost_types::FieldMask>,
) -> Result<QueueSettings, Fault> {
    let asked = settings(wire)?;
    let Some(mask) = mask.filter(|mask| !mask.paths.is_empty()) else { return Ok(asked) };
    let mut merged = before.clone();
    for path in &mask.paths {
        match path.as_str() {
            "description" => merged.description = asked.description.clone(),
            "concurrency_max" => merged.concurrency_max = asked.concurrency_max,
            "worker_concurrency_max" => merged.worker_concurrency_max = asked.worker_concurrency_max,
            "rate" => merged.rate = asked.rate,
            "key_concurrency_max" => merged.key_concurrency_max = asked.key_concurrency_max,
            "key_rate" => merged.key_rate = asked.key_rate,
            "priority_step" => merged.priority_step = asked.priority_step,
            "paused" => merged.paused = asked.paused,
            other => {
                let message = format!(
                    "{} is no setting of a queue, expected description, concurrency_max, worker_concurrency_max, \
                     rate, key_concurrency_max, key_rate, priority_step or paused",
                    found(other)
                );
                return Err(Fault::new(&INVALID_MASK, message).at("update_mask"));
            }
        }
    }
    Ok(merged)
}

/// A queue and what is on it.
pub(crate) fn description(queue: &Queue, depth: QueueDepth, workers: Vec<Sighting>) -> v1::QueueDescription {
    let settings = &queue.made.settings;
    let rate_to_wire =
        |rate: Rate| v1::Rate { starts_max: rate.starts_max, per: Some(length_to_wire(rate.per)) };
    let workers = workers.into_iter().map(|worker| v1::WorkerSighting {
        worker_id: worker.worker.to_string(),
        seen_at: Some(to_wire(worker.seen_at)),
        running_count: worker.running,
    });
    v1::QueueDescription {
        queue: Some(v1::Queue {
            queue: queue.made.name.to_string(),
            concurrency_max: settings.concurrency_max,
            worker_concurrency_max: settings.worker_concurrency_max,
            rate: settings.rate.map(rate_to_wire),
            paused: settings.paused,
            key_concurrency_max: settings.key_concurrency_max,
            key_rate: settings.key_rate.map(rate_to_wire),
            priority_step: Some(length_to_wire(settings.priority_step)),
            description: settings.description.to_string(),
        }),
        created_at: Some(to_wire(queue.made.created_at)),
        queued_count: depth.ready,
        backing_off_count: depth.backing_off,
        running_count: depth.running,
        oldest_queued_at: depth.first_made_at.map(to_wire),
        workers: workers.collect(),
    }
}

/// One run to put on a queue.
pub(crate) fn order(wire: v1::RunOrder, now: Timestamp) -> Result<RunOrder, Fault> {
    if wire.handler.is_empty() {
        return Err(Fault::field("handler", "is empty, expected the name of a worker's function"));
    }
    let action = RunAction {
        handler: wire.handler.as_str().into(),
        input: payload::bytes_or_none("input", wire.input.as_ref())?,
        retry: retry(wire.retry.unwrap_or_default()).map_err(|fault| fault.within("retry"))?,
        timeouts: timeouts(wire.timeouts.unwrap_or_default()).map_err(|fault| fault.within("timeouts"))?,
        priority: priority("priority", wire.priority)?,
        key: wire.key.as_str().into(),
        ..RunAction::default()
    };
    let name = if wire.name.is_empty() { &wire.handler } else { &wire.name };
    Ok(RunOrder {
        name: name.as_str().into(),
        action,
        dedup: (!wire.deduplication_id.is_empty()).then(|| Arc::from(wire.deduplication_id)),
        on_duplicate: match word("on_duplicate", wire.on_duplicate)? {
            v1::on_duplicate::Policy::Unspecified | v1::on_duplicate::Policy::Reject => OnDuplicate::Reject,
            v1::on_duplicate::Policy::ReturnExisting => OnDuplicate::ReturnExisting,
        },
        not_before: not_before(wire.not_before.as_ref(), wire.delay.as_ref(), now)?,
    })
}

fn not_before(
    time: Option<&prost_types::Timestamp>,
    delay: Option<&prost_types::Duration>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Fault> {
    match (instant("not_before", time)?, length("delay", delay)?) {
        (Some(_), Some(_)) => {
            Err(Fault::field("delay", "is given together with not_before, expected one of them"))
        }
        (time, None) => Ok(time),
        (None, Some(delay)) => {
            let time = now.checked_add(delay);
            time.map(Some).map_err(|_| Fault::field("delay", "ends after the last time that there is"))
        }
    }
}

/// The priorities that there are.
const PRIORITY_MAX: i32 = 100;

/// A priority within its bounds.
pub(crate) fn priority(field: &str, given: i32) -> Result<i16, Fault> {
    let fine = (-PRIORITY_MAX..=PRIORITY_MAX).contains(&given);
    let fault = || Fault::field(field, format!("is {given}, expected -{PRIORITY_MAX} to {PRIORITY_MAX}"));
    i16::try_from(given).ok().filter(|_| fine).ok_or_else(fault)
}

/// A window that a page of a purge may have.
pub(crate) fn runs_max(given: u32) -> Result<usize, Fault> {
    match given {
        0 => Ok(1_000),
        1..=10_000 => Ok(given as usize),
        other => Err(Fault::field("runs_max", format!("is {other}, expected 1 to 10000"))),
    }
}
