//! Declared queues: known to every driver, refused where they are not.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use punctual_store::{NewQueue, Queue, QueueDepth, QueueKey};

use super::Engine;
use crate::error::EngineError;
use crate::shard::Event;

/// What can be set about a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// For people.
    pub description: Arc<str>,
}

/// The queues that this node knows, by namespace and name.
#[derive(Default)]
pub(super) struct Queues(RwLock<ByName>);

type ByName = HashMap<(Arc<str>, Arc<str>), Queue>;

/// Bytes of a queue's name.
const NAME_BYTES_MAX: usize = 200;

impl Engine {
    /// Declares a queue. Declaring it again with the same settings is harmless.
    pub async fn create_queue(
        &self,
        namespace: &str,
        name: &str,
        settings: QueueSettings,
    ) -> Result<Queue, EngineError> {
        check_name("queue name", name)?;
        check_name("namespace", namespace)?;
        if settings.description.len() > self.inner.config.limits.note_bytes_max {
            return Err(EngineError::Invalid("the description is too long".into()));
        }
        let bytes: Arc<[u8]> = settings.description.as_bytes().into();
        let made = NewQueue {
            namespace: namespace.into(),
            name: name.into(),
            settings: bytes.clone(),
            created_at: self.now(),
        };
        let queue = self.inner.store.create_queue(made).await?;
        if queue.made.settings != bytes {
            return Err(EngineError::AlreadyExists(format!("queue {name:?} exists with other settings")));
        }
        self.learn(queue.clone());
        Ok(queue)
    }

    /// The queues of a namespace, by name.
    pub async fn list_queues(&self, namespace: &str) -> Result<Vec<Queue>, EngineError> {
        let queues = self.inner.store.queues(Some(namespace.into())).await?;
        queues.iter().cloned().for_each(|queue| self.learn(queue));
        Ok(queues)
    }

    /// A queue and how much is in it.
    pub async fn describe_queue(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<(Queue, QueueDepth), EngineError> {
        let queue = self.find_queue(namespace, name).await?;
        let depth = self.inner.store.queue_depth(queue.queue).await?;
        Ok((queue, depth))
    }

    /// A declared queue, or the error that says that there is none.
    pub(super) async fn find_queue(&self, namespace: &str, name: &str) -> Result<Queue, EngineError> {
        let place = (Arc::from(namespace), Arc::from(name));
        let known = |engine: &Engine| {
            engine.inner.queues.0.read().ok().and_then(|queues| queues.get(&place).cloned())
        };
        if let Some(queue) = known(self) {
            return Ok(queue);
        }
        // Another node may have declared it.
        self.refresh_queues().await?;
        known(self).ok_or_else(|| EngineError::UnknownQueue(name.to_owned()))
    }

    /// The name of a queue, by its key.
    pub fn queue_name(&self, key: QueueKey) -> Option<Arc<str>> {
        let queues = self.inner.queues.0.read().ok()?;
        queues.values().find(|queue| queue.queue == key).map(|queue| queue.made.name.clone())
    }

    /// Depths of all known queues, for the metrics.
    pub async fn queue_depths(&self) -> Result<Vec<(Queue, QueueDepth)>, EngineError> {
        let queues: Vec<Queue> =
            self.inner.queues.0.read().map(|queues| queues.values().cloned().collect()).unwrap_or_default();
        let mut depths = Vec::new();
        for queue in queues {
            let depth = self.inner.store.queue_depth(queue.queue).await?;
            depths.push((queue, depth));
        }
        depths.sort_by_key(|(queue, _)| queue.queue);
        Ok(depths)
    }

    pub(super) async fn refresh_queues(&self) -> Result<(), EngineError> {
        for queue in self.inner.store.queues(None).await? {
            self.learn(queue);
        }
        Ok(())
    }

    pub(super) fn all_queues(&self) -> Vec<Event> {
        let queues = self.inner.queues.0.read();
        queues.map(|queues| queues.values().map(declared).collect()).unwrap_or_default()
    }

    fn learn(&self, queue: Queue) {
        let place = (queue.made.namespace.clone(), queue.made.name.clone());
        let news = match self.inner.queues.0.write() {
            Ok(mut queues) => queues.insert(place, queue.clone()).is_none(),
            Err(_) => false,
        };
        if news {
            self.inner.router.tell_all(|| declared(&queue));
        }
    }
}

fn declared(queue: &Queue) -> Event {
    let (namespace, name) = (queue.made.namespace.clone(), queue.made.name.clone());
    Event::QueueDeclared { namespace, name, queue: queue.queue }
}

/// Names that can be put into a path, a log line and a label.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), EngineError> {
    let fine = |letter: char| !letter.is_control() && letter != '/';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(fine) || name.trim() != name {
        return Err(EngineError::Invalid(format!(
            "{what} must be 1 to {NAME_BYTES_MAX} bytes without control characters, slashes or spaces around it, found {name:?}"
        )));
    }
    Ok(())
}
