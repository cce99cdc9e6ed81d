//! Runs on a queue without a schedule, so that the queue is useful alone; and what becomes of those that failed.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::{LastCompletion, RunAction};
use punctual_store::record::RunBody;
use punctual_store::{Bytes, DOCUMENT_BYTES_MAX, Document, Queue, RunFilter, RunKey, RunQuery, StoredRun};

use super::Engine;
use super::queues::check_name;
use crate::desk::{CallbackEnd, MakeError, Order, Recorded, Request};
use crate::error::EngineError;

/// A run to put on a queue.
#[derive(Clone, Debug)]
pub struct RunOrder {
    /// A name for people.
    pub name: Arc<str>,
    /// What it is to do; its queue is that of the request.
    pub action: RunAction,
    /// While a run of the queue with this id is live, no second one is made.
    pub dedup: Option<Arc<str>>,
    /// What to do when there is one.
    pub on_duplicate: OnDuplicate,
    /// Not to be claimed before this.
    pub not_before: Option<Timestamp>,
}

/// What to do when a live run has the same deduplication id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// Refuse the request.
    #[default]
    Reject,
    /// Give back the run that is there.
    ReturnExisting,
}

/// A run that is on its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// Which one.
    pub run: RunKey,
    /// It was there before.
    pub existing: bool,
}

/// Runs of one request.
const RUNS_MAX: usize = 1_000;

/// Bytes of a deduplication id or a key.
const ID_BYTES_MAX: usize = 200;

/// Rows that are looked at for one step of a purge.
const PURGE_STEP: usize = 500;

impl Engine {
    /// Puts runs on a queue, all or none. With a request id, asking again gives the same runs.
    pub async fn enqueue(
        &self,
        namespace: &str,
        queue: &str,
        orders: Vec<RunOrder>,
        request: Option<Arc<str>>,
    ) -> Result<Vec<Enqueued>, EngineError> {
        let place = Arc::new(self.inner.router.admit()?);
        if orders.is_empty() || orders.len() > RUNS_MAX {
            return Err(EngineError::Invalid(format!(
                "runs must be 1 to {RUNS_MAX}, found {}",
                orders.len()
            )));
        }
        if self.is_stopping() {
            return Err(EngineError::Stopping);
        }
        for order in &orders {
            check_order(order)?;
        }
        if let Some(id) = twice(&orders) {
            return Err(EngineError::Invalid(format!("deduplication id {id:?} stands in the request twice")));
        }
        let queue = self.find_queue(namespace, queue).await?;
        let mut answers: Vec<Option<Enqueued>> = vec![None; orders.len()];
        // Each round settles at least one, unless its duplicate ended just then.
        for _ in 0..=2 * orders.len() {
            let open: Vec<usize> = (0..orders.len()).filter(|place| answers[*place].is_none()).collect();
            if open.is_empty() {
                break;
            }
            let wanted: Vec<Order> = open.iter().map(|place| wanted(&queue, &orders[*place])).collect();
            let there = answers.iter().map(|answer| answer.map(|answer| answer.run)).collect();
            let request = request.clone().map(|id| Request { namespace: namespace.into(), id, there });
            match self.inner.desk.make(wanted, request, place.clone()).await {
                Ok(runs) => {
                    for (place, run) in open.into_iter().zip(runs) {
                        answers[place] = Some(Enqueued { run, existing: false });
                    }
                }
                Err(MakeError::Repeated(runs)) => {
                    return Ok(runs.into_iter().map(|run| Enqueued { run, existing: true }).collect());
                }
                Err(MakeError::Duplicate(run)) => self.settle_duplicate(run, &orders, &mut answers).await?,
                Err(MakeError::Other(error)) => return Err(error),
            }
        }
        let settled: Option<Vec<Enqueued>> = answers.into_iter().collect();
        settled.ok_or(EngineError::Aborted { tries: 1 })
    }

    /// A live run has the id of one of the orders: whoever can live with it gets that run.
    async fn settle_duplicate(
        &self,
        run: RunKey,
        orders: &[RunOrder],
        answers: &mut [Option<Enqueued>],
    ) -> Result<(), EngineError> {
        let found = self.inner.store.load_runs(vec![run]).await?.into_iter().next().flatten();
        // It may have ended since; then there is nothing in the way any more.
        let dedup = found.and_then(|stored| stored.run.made.dedup);
        for (order, answer) in orders.iter().zip(answers.iter_mut()) {
            if answer.is_some() || order.dedup.is_none() || order.dedup != dedup {
                continue;
            }
            match order.on_duplicate {
                OnDuplicate::Reject => {
                    let id = order.dedup.as_deref().unwrap_or_default();
                    return Err(EngineError::AlreadyExists(format!("run {run} has deduplication id {id:?}")));
                }
                OnDuplicate::ReturnExisting => *answer = Some(Enqueued { run, existing: true }),
            }
        }
        Ok(())
    }

    /// Tries a run that ended badly again, as a run of its own.
    pub async fn retry_run(&self, namespace: &str, run: RunKey) -> Result<RunKey, EngineError> {
        let view = self.run(namespace, run).await?;
        if !view.stored.is_dead_letter {
            let how = match &view.stored.closing {
                Some(closing) => {
                    format!("it ended as {:?} or was dealt with before", closing.outcome).to_lowercase()
                }
                None => "it has not ended".to_owned(),
            };
            return Err(EngineError::Invalid(format!("run {run} is no dead letter: {how}")));
        }
        self.inner.desk.revive(view.stored).await.map_err(|error| refused(error, run))
    }

    /// Tries dead letters of a queue again; says how many, and whether there may be more.
    pub async fn retry_dead_letters(
        &self,
        namespace: &str,
        queue: &str,
        runs_max: usize,
    ) -> Result<(u64, bool), EngineError> {
        let queue = self.find_queue(namespace, queue).await?;
        let (dead, more) = self.some_runs(&queue, RunFilter::DeadLetter, runs_max).await?;
        let mut count = 0;
        for dead in dead {
            match self.inner.desk.revive(dead).await {
                Ok(_) => count += 1,
                // Somebody else was faster, or another run has its id now.
                Err(MakeError::Duplicate(_) | MakeError::Repeated(_)) => {}
                Err(MakeError::Other(EngineError::Aborted { .. })) => {}
                Err(MakeError::Other(error)) => return Err(error),
            }
        }
        Ok((count, more))
    }

    /// Takes runs out of a queue: those that wait, or the dead letters. Says how many, and whether there may be more.
    pub async fn purge_queue(
        &self,
        namespace: &str,
        queue: &str,
        dead_letters: bool,
        runs_max: usize,
    ) -> Result<(u64, bool), EngineError> {
        let queue = self.find_queue(namespace, queue).await?;
        let filters: &[RunFilter] =
            if dead_letters { &[RunFilter::DeadLetter] } else { &[RunFilter::Ready, RunFilter::BackingOff] };
        let (mut count, mut more) = (0, false);
        for filter in filters {
            let left = runs_max.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
            if left == 0 {
                return Ok((count, true));
            }
            let (found, beyond) = self.some_runs(&queue, *filter, left).await?;
            more |= beyond;
            for step in found.chunks(PURGE_STEP) {
                let (desk, step) = (self.inner.desk.clone(), step.to_vec());
                count += match dead_letters {
                    true => desk.bury(&step).await?,
                    false => self.inner.desk.to_the_end(async move { desk.discard(&step).await }).await?,
                };
            }
        }
        Ok((count, more))
    }

    async fn some_runs(
        &self,
        queue: &Queue,
        filter: RunFilter,
        runs_max: usize,
    ) -> Result<(Vec<StoredRun>, bool), EngineError> {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let query = RunQuery {
                namespace: queue.made.namespace.clone(),
                queue: Some(queue.queue),
                filter: Some(filter),
                before,
                count: (runs_max - found.len()).min(PURGE_STEP),
                ..RunQuery::default()
            };
            let page = self.inner.store.runs(query).await?;
            found.extend(page.items);
            before = page.next.as_deref().and_then(|next| next.parse().ok()).map(RunKey);
            if before.is_none() || found.len() >= runs_max {
                return Ok((found, before.is_some()));
            }
        }
    }

    /// An attempt's end will be told by a callback. False if it did not count any more.
    pub async fn await_callback(&self, run: RunKey, attempt: u32) -> Result<bool, EngineError> {
        let desk = self.inner.desk.clone();
        self.inner.desk.to_the_end(async move { desk.await_callback(run, attempt).await }).await
    }

    /// A callback tells how a run ended.
    pub async fn callback(
        &self,
        namespace: &str,
        run: RunKey,
        end: Result<Option<Bytes>, CallbackEnd>,
    ) -> Result<Recorded, EngineError> {
        let place = self.inner.router.admit()?;
        self.run(namespace, run).await?;
        let desk = self.inner.desk.clone();
        let hearing = async move {
            let _place = place;
            desk.callback(run, end).await
        };
        self.inner.desk.to_the_end(hearing).await
    }

    /// A small document by its name, and how often it was written.
    pub async fn document(&self, name: &str) -> Result<Option<Document>, EngineError> {
        Ok(self.inner.store.document(name.into()).await?)
    }

    /// Writes a document, if it was written this often so far; false if it was not.
    pub async fn put_document(&self, name: &str, version: u64, bytes: &[u8]) -> Result<bool, EngineError> {
        if bytes.len() > DOCUMENT_BYTES_MAX {
            let found = bytes.len();
            return Err(EngineError::Invalid(format!(
                "{name} would have {found} bytes, at most {DOCUMENT_BYTES_MAX}"
            )));
        }
        Ok(self.inner.store.put_document(name.into(), version, bytes.into()).await?)
    }

    /// The secret of the database, for signing.
    pub async fn secret(&self, fresh: [u8; 32]) -> Result<[u8; 32], EngineError> {
        Ok(self.inner.store.secret(fresh).await?)
    }
}

fn check_order(order: &RunOrder) -> Result<(), EngineError> {
    check_name("handler", &order.action.handler)?;
    for (what, text) in
        [("key", &*order.action.key), ("deduplication id", order.dedup.as_deref().unwrap_or(""))]
    {
        if text.len() > ID_BYTES_MAX {
            return Err(EngineError::Invalid(format!(
                "{what} has {} bytes, at most {ID_BYTES_MAX}",
                text.len()
            )));
        }
    }
    Ok(())
}

fn wanted(queue: &Queue, order: &RunOrder) -> Order {
    let action = RunAction { queue: queue.made.name.clone(), ..order.action.clone() };
    let (namespace, name) = (queue.made.namespace.clone(), order.name.clone());
    let body = RunBody { namespace, schedule: "".into(), name, action, last: LastCompletion::default() };
    Order { queue: queue.queue, body, dedup: order.dedup.clone(), not_before: order.not_before }
}

/// An id that two orders of one request have.
fn twice(orders: &[RunOrder]) -> Option<Arc<str>> {
    let mut ids: Vec<&Arc<str>> = orders.iter().filter_map(|order| order.dedup.as_ref()).collect();
    ids.sort();
    ids.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone())
}

fn refused(error: MakeError, run: RunKey) -> EngineError {
    match error {
        MakeError::Duplicate(other) => {
            EngineError::AlreadyExists(format!("run {other} has the deduplication id of run {run}"))
        }
        MakeError::Repeated(_) | MakeError::Other(EngineError::Aborted { .. }) => {
            EngineError::Invalid(format!("run {run} was dealt with before"))
        }
        MakeError::Other(error) => error,
    }
}
