//! The verbs of queues.

use punctual_api::v1;
use punctual_engine::{EngineError, QueueSettings};
use punctual_store::{Queue, QueueDepth};

use crate::app::{App, namespace};
use crate::convert::page::{self, List};
use crate::convert::time::to_wire;
use crate::status::{Fault, NOT_FOUND, NOT_SUPPORTED};

pub(crate) async fn create(
    app: &App,
    asked: v1::CreateQueueRequest,
) -> Result<v1::CreateQueueResponse, Fault> {
    let namespace = namespace(&asked.namespace);
    let wire = asked.queue.unwrap_or_default();
    check(&wire)?;
    app.engine.create_queue(namespace, &wire.queue, QueueSettings::default()).await?;
    let (queue, depth) = app.engine.describe_queue(namespace, &wire.queue).await?;
    Ok(v1::CreateQueueResponse { description: Some(description(&queue, depth)) })
}

/// Limits that are not obeyed yet are refused: accepting them would be a promise.
fn check(queue: &v1::Queue) -> Result<(), Fault> {
    if queue.queue.is_empty() {
        return Err(Fault::field("queue.queue", "is empty, expected the name of the queue"));
    }
    let asked = [
        ("concurrency_max", queue.concurrency_max.is_some()),
        ("worker_concurrency_max", queue.worker_concurrency_max.is_some()),
        ("rate", queue.rate.is_some()),
        ("paused", queue.paused),
    ];
    match asked.iter().find(|(_, asked)| *asked) {
        Some((name, _)) => {
            let message = format!("{name} is not obeyed by this release yet, so it is refused");
            Err(Fault::new(&NOT_SUPPORTED, message).at(format!("queue.{name}")))
        }
        None => Ok(()),
    }
}

pub(crate) async fn list(app: &App, asked: v1::ListQueuesRequest) -> Result<v1::ListQueuesResponse, Fault> {
    let size = page::size(asked.page_size)?;
    let after = page::place(List::Queues, &asked.page_token)?;
    let namespace = namespace(&asked.namespace);
    let mut found = app.engine.list_queues(namespace).await?;
    found.retain(|queue| after.as_deref().is_none_or(|after| &*queue.made.name > after));
    found.sort_by(|left, right| left.made.name.cmp(&right.made.name));
    let more = found.len() > size;
    found.truncate(size);
    let next = found.last().filter(|_| more).map(|queue| page::token(List::Queues, &queue.made.name));
    let mut queues = Vec::with_capacity(found.len());
    for queue in found {
        let (queue, depth) = app.engine.describe_queue(namespace, &queue.made.name).await?;
        queues.push(description(&queue, depth));
    }
    Ok(v1::ListQueuesResponse { queues, next_page_token: next.unwrap_or_default() })
}

pub(crate) async fn describe(
    app: &App,
    asked: v1::DescribeQueueRequest,
) -> Result<v1::DescribeQueueResponse, Fault> {
    let found = app.engine.describe_queue(namespace(&asked.namespace), &asked.queue).await;
    let (queue, depth) = found.map_err(addressed)?;
    Ok(v1::DescribeQueueResponse { description: Some(description(&queue, depth)) })
}

/// A queue that a request is about, and that does not exist, is not found; one that a schedule names is undeclared.
pub(super) fn addressed(error: EngineError) -> Fault {
    match &error {
        EngineError::UnknownQueue(_) => Fault { reason: &NOT_FOUND, ..Fault::from(error) },
        _ => error.into(),
    }
}

fn description(queue: &Queue, depth: QueueDepth) -> v1::QueueDescription {
    v1::QueueDescription {
        queue: Some(v1::Queue { queue: queue.made.name.to_string(), ..v1::Queue::default() }),
        created_at: Some(to_wire(queue.made.created_at)),
        queued_count: depth.ready,
        backing_off_count: depth.backing_off,
        running_count: depth.running,
        // The engine does not know these yet.
        oldest_queued_at: None,
        workers: Vec::new(),
    }
}
