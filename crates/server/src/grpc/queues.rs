//! The verbs of queues.

use punctual_api::v1;
use punctual_engine::EngineError;
use punctual_store::QueueSettings;

use crate::app::{App, namespace};
use crate::convert::page::{self, List};
use crate::convert::queue::{description, merged, runs_max, settings};
use crate::status::{Fault, NOT_FOUND};

pub(crate) async fn create(
    app: &App,
    asked: v1::CreateQueueRequest,
) -> Result<v1::CreateQueueResponse, Fault> {
    let namespace = namespace(&asked.namespace);
    let wire = asked.queue.unwrap_or_default();
    if wire.queue.is_empty() {
        return Err(Fault::field("queue.queue", "is empty, expected the name of the queue"));
    }
    let settings = settings(&wire).map_err(|fault| fault.within("queue"))?;
    app.engine.create_queue(namespace, &wire.queue, settings).await?;
    Ok(v1::CreateQueueResponse { description: Some(look(app, namespace, &wire.queue).await?) })
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
        queues.push(look(app, namespace, &queue.made.name).await?);
    }
    Ok(v1::ListQueuesResponse { queues, next_page_token: next.unwrap_or_default() })
}

pub(crate) async fn describe(
    app: &App,
    asked: v1::DescribeQueueRequest,
) -> Result<v1::DescribeQueueResponse, Fault> {
    let description = look(app, namespace(&asked.namespace), &asked.queue).await?;
    Ok(v1::DescribeQueueResponse { description: Some(description) })
}

pub(crate) async fn update(
    app: &App,
    asked: v1::UpdateQueueRequest,
) -> Result<v1::UpdateQueueResponse, Fault> {
    let wire = asked.settings.unwrap_or_default();
    if !wire.queue.is_empty() && wire.queue != asked.queue {
        return Err(Fault::field("settings.queue", "names another queue; a queue cannot be renamed"));
    }
    let change = |before: &QueueSettings| {
        merged(before, &wire, asked.update_mask.as_ref()).map_err(|fault| fault.within("settings"))
    };
    change_settings(app, &asked.namespace, &asked.queue, change).await
}

pub(crate) async fn pause(app: &App, asked: v1::PauseQueueRequest) -> Result<v1::UpdateQueueResponse, Fault> {
    let change = |before: &QueueSettings| Ok(QueueSettings { paused: true, ..before.clone() });
    change_settings(app, &asked.namespace, &asked.queue, change).await
}

pub(crate) async fn resume(
    app: &App,
    asked: v1::ResumeQueueRequest,
) -> Result<v1::UpdateQueueResponse, Fault> {
    let change = |before: &QueueSettings| Ok(QueueSettings { paused: false, ..before.clone() });
    change_settings(app, &asked.namespace, &asked.queue, change).await
}

async fn change_settings(
    app: &App,
    given: &str,
    queue: &str,
    change: impl Fn(&QueueSettings) -> Result<QueueSettings, Fault>,
) -> Result<v1::UpdateQueueResponse, Fault> {
    let namespace = namespace(given);
    let (before, _) = app.engine.describe_queue(namespace, queue).await.map_err(addressed)?;
    app.engine.update_queue(namespace, queue, change(&before.made.settings)?).await?;
    Ok(v1::UpdateQueueResponse { description: Some(look(app, namespace, queue).await?) })
}

pub(crate) async fn purge(app: &App, asked: v1::PurgeQueueRequest) -> Result<v1::PurgeQueueResponse, Fault> {
    let (namespace, most) = (namespace(&asked.namespace), runs_max(asked.runs_max)?);
    let purged = app.engine.purge_queue(namespace, &asked.queue, asked.dead_letters, most).await;
    let (count, more) = purged.map_err(addressed)?;
    Ok(v1::PurgeQueueResponse { count, more })
}

pub(crate) async fn retry(
    app: &App,
    asked: v1::RetryDeadLettersRequest,
) -> Result<v1::RetryDeadLettersResponse, Fault> {
    let (namespace, most) = (namespace(&asked.namespace), runs_max(asked.runs_max)?);
    let retried = app.engine.retry_dead_letters(namespace, &asked.queue, most).await;
    let (count, more) = retried.map_err(addressed)?;
    Ok(v1::RetryDeadLettersResponse { count, more })
}

/// A queue that a request is about, and that does not exist, is not found; one that a schedule names is undeclared.
pub(super) fn addressed(error: EngineError) -> Fault {
    match &error {
        EngineError::UnknownQueue(_) => Fault { reason: &NOT_FOUND, ..Fault::from(error) },
        _ => error.into(),
    }
}

pub(super) async fn look(app: &App, namespace: &str, queue: &str) -> Result<v1::QueueDescription, Fault> {
    let (queue, depth) = app.engine.describe_queue(namespace, queue).await.map_err(addressed)?;
    let workers = app.engine.workers_of(queue.queue).await?;
    Ok(description(&queue, depth, workers))
}
