//! Declared queues: known to every driver, refused where they are not.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use jiff::SignedDuration;
use punctual_store::{NewQueue, Queue, QueueDepth, QueueKey, QueueSettings, Rate};

use tokio::sync::Notify;

use super::Engine;
use crate::driver::declared;
use crate::error::EngineError;

/// The queues that this node knows, by namespace and name.
#[derive(Default)]
pub(super) struct Queues(RwLock<ByName>, Notify);

type ByName = HashMap<(Arc<str>, Arc<str>), Queue>;

/// Bytes of a queue's name.
const NAME_BYTES_MAX: usize = 200;

/// Starts in one window of a rate: as many times are remembered for each window.
const RATE_STARTS_MAX: u32 = 100_000;

/// The longest window of a rate.
const RATE_PER_MAX: SignedDuration = SignedDuration::from_hours(24);

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
        self.check_settings(&settings)?;
        let made = NewQueue {
            namespace: namespace.into(),
            name: name.into(),
            settings: settings.clone(),
            created_at: self.now(),
        };
        let queue = self.inner.store.create_queue(made).await?;
        if queue.made.settings != settings {
            return Err(EngineError::AlreadyExists(format!("queue {name:?} exists with other settings")));
        }
        self.learn(queue.clone());
        Ok(queue)
    }

    /// Changes the settings of a queue; whoever waits for its runs looks again.
    pub async fn update_queue(
        &self,
        namespace: &str,
        name: &str,
        settings: QueueSettings,
    ) -> Result<Queue, EngineError> {
        self.check_settings(&settings)?;
        let queue = self.find_queue(namespace, name).await?;
        let updated = self.inner.store.update_queue(queue.queue, settings).await?;
        let updated = updated.ok_or_else(|| EngineError::UnknownQueue(name.to_owned()))?;
        self.learn(updated.clone());
        self.inner.desk.ring(updated.queue);
        Ok(updated)
    }

    fn check_settings(&self, settings: &QueueSettings) -> Result<(), EngineError> {
        let most = self.inner.config.limits.note_bytes_max;
        let invalid = |message: String| Err(EngineError::Invalid(message));
        if settings.description.len() > most {
            return invalid(format!("description has {} bytes, at most {most}", settings.description.len()));
        }
        let bounds = [
            ("concurrency_max", settings.concurrency_max),
            ("worker_concurrency_max", settings.worker_concurrency_max),
            ("key_concurrency_max", settings.key_concurrency_max),
        ];
        if let Some((name, _)) = bounds.iter().find(|(_, bound)| *bound == Some(0)) {
            return invalid(format!("{name} must be at least 1, found 0; pause the queue to stop it"));
        }
        for (name, rate) in [("rate", settings.rate), ("key_rate", settings.key_rate)] {
            let Some(Rate { starts_max, per }) = rate else { continue };
            if starts_max == 0 || starts_max > RATE_STARTS_MAX {
                return invalid(format!(
                    "{name}.starts_max must be 1 to {RATE_STARTS_MAX}, found {starts_max}"
                ));
            }
            if per < SignedDuration::from_millis(1) || per > RATE_PER_MAX {
                return invalid(format!("{name}.per must be a millisecond to a day, found {per:#}"));
            }
        }
        let step = settings.priority_step;
        if step < SignedDuration::ZERO || step > RATE_PER_MAX {
            return invalid(format!("priority_step must be zero to a day, found {step:#}"));
        }
        Ok(())
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

    /// Ends when a queue is declared; at once if it is.
    pub async fn queue_declared(&self, namespace: &str, name: &str) -> Result<(), EngineError> {
        loop {
            // Who listens before looking misses nothing. What other nodes declare is heard here too.
            let news = self.inner.queues.1.notified();
            if self.has_queue(namespace, name).await? {
                return Ok(());
            }
            news.await;
        }
    }

    /// Whether a queue was declared.
    pub async fn has_queue(&self, namespace: &str, name: &str) -> Result<bool, EngineError> {
        match self.find_queue(namespace, name).await {
            Ok(_) => Ok(true),
            Err(EngineError::UnknownQueue(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether anything was declared in a namespace.
    pub async fn has_namespace(&self, namespace: &str) -> Result<bool, EngineError> {
        let known =
            |engine: &Engine| engine.all_queues().iter().any(|queue| *queue.made.namespace == *namespace);
        if known(self) {
            return Ok(true);
        }
        // Another node may have declared it.
        self.refresh_queues().await?;
        Ok(known(self))
    }

    /// Namespaces in which anything was declared, by name.
    pub async fn namespaces(&self) -> Result<Vec<Arc<str>>, EngineError> {
        self.refresh_queues().await?;
        let names = self.all_queues().into_iter().map(|queue| queue.made.namespace);
        let names: std::collections::BTreeSet<_> = names.collect();
        Ok(names.into_iter().collect())
    }

    /// Queues of this name in all namespaces, once there are more of them than so many.
    pub async fn queues_named(&self, name: &str, more_than: usize) -> Vec<Queue> {
        loop {
            let news = self.inner.queues.1.notified();
            let named: Vec<Queue> = match self.inner.queues.0.read() {
                Ok(queues) => queues.values().filter(|queue| &*queue.made.name == name).cloned().collect(),
                Err(_) => Vec::new(),
            };
            if named.len() > more_than {
                return named;
            }
            news.await;
        }
    }

    /// The name of a queue, by its key.
    pub fn queue_name(&self, key: QueueKey) -> Option<Arc<str>> {
        let queues = self.inner.queues.0.read().ok()?;
        queues.values().find(|queue| queue.queue == key).map(|queue| queue.made.name.clone())
    }

    /// Depths of all known queues, for the metrics.
    pub async fn queue_depths(&self) -> Result<Vec<(Queue, QueueDepth)>, EngineError> {
        let queues = self.all_queues();
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

    pub(super) fn all_queues(&self) -> Vec<Queue> {
        let queues = self.inner.queues.0.read();
        queues.map(|queues| queues.values().cloned().collect()).unwrap_or_default()
    }

    fn learn(&self, queue: Queue) {
        let place = (queue.made.namespace.clone(), queue.made.name.clone());
        self.inner.desk.learn(queue.queue, &queue.made.settings);
        let Ok(mut queues) = self.inner.queues.0.write() else { return };
        if queues.insert(place, queue.clone()).is_none() {
            // Under the lock: whoever finds it known finds the drivers told, even if somebody else heard of it first.
            self.inner.router.tell_all(|| declared(&queue));
            drop(queues);
            self.inner.queues.1.notify_waiters();
        }
    }
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
