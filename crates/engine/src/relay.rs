//! Ends of runs go to whoever drives their schedules.
//!
//! A worker may turn to any node, and its run may be of a schedule that another node drives. A guest could write both, but then
//! the owner's copy of the schedule would be old with every end, and one of the two would come too late again and again. So the
//! owner is told, writes the end together with whatever else it writes, and says so. Nothing rests on it: whoever hears nothing
//! in time writes as a guest. Both may do so; the run ends once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use punctual_core::{Answer, Completion, Revision};
use punctual_store::{Ending, EndingAnswer, Keeper, News, RunWrite, ShardId, Store};
use tokio::sync::oneshot;

use crate::shard::{Assignment, Refusal, Target};
use crate::verb::{Verb, Work};

/// A result that is larger goes no such way: news are short.
const PAYLOAD_BYTES_MAX: usize = 2_000;

/// Ends that are on their way to their owners.
pub(crate) struct Relay {
    store: Arc<dyn Store>,
    me: Keeper,
    /// How long the owner may take. It has a lease of this length: after it somebody else is the owner.
    patience: Duration,
    tickets: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<EndingAnswer>>>,
}

impl Relay {
    pub(crate) fn new(store: Arc<dyn Store>, me: Keeper, patience: Duration) -> Relay {
        Relay { store, me, patience, tickets: AtomicU64::default(), waiting: Mutex::default() }
    }

    /// Has the owner write the end of a run; nothing if this is none, or if the owner did not do it.
    pub(crate) async fn send(&self, shard: ShardId, work: &Assignment) -> Option<Result<Answer, Refusal>> {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let ending = self.ending(ticket, shard, work)?;
        let (waiter, answer) = oneshot::channel();
        self.waiting().insert(ticket, waiter);
        self.store.tell(News::Ending(Box::new(ending)));
        let answer = tokio::time::timeout(self.patience, answer).await;
        self.waiting().remove(&ticket);
        match answer {
            Ok(Ok(EndingAnswer::Written)) => Some(Ok(Answer { revision: Revision(0), keys: Box::default() })),
            Ok(Ok(EndingAnswer::RunMoved)) => Some(Err(Refusal::RunMoved)),
            Ok(Ok(EndingAnswer::Refused) | Err(_)) | Err(_) => None,
        }
    }

    fn ending(&self, ticket: u64, shard: ShardId, work: &Assignment) -> Option<Ending> {
        let (Target::Tree(tree), Work::Change(Verb::Complete(completion))) = (&work.target, &work.work)
        else {
            return None;
        };
        let [RunWrite::Close { run, attempt, closing }] = &work.runs[..] else { return None };
        if closing.payload.as_ref().is_some_and(|payload| payload.len() > PAYLOAD_BYTES_MAX) {
            return None;
        }
        let (tree, start, run, attempt) = (*tree, completion.start, *run, *attempt);
        Some(Ending { from: self.me, ticket, shard, tree, start, run, attempt, closing: closing.clone() })
    }

    /// The owner has answered somebody.
    pub(crate) fn answered(&self, to: Keeper, ticket: u64, answer: EndingAnswer) {
        let waiter = if to == self.me { self.waiting().remove(&ticket) } else { None };
        if let Some(waiter) = waiter {
            let _ = waiter.send(answer);
        }
    }

    /// Shards may have moved, or answers may have been missed: whoever waits sees to it alone.
    pub(crate) fn give_up(&self) {
        self.waiting().clear();
    }

    /// Answers whoever told the end of a run.
    pub(crate) fn answer(&self, to: Keeper, ticket: u64, result: &Result<Answer, Refusal>) {
        let answer = match result {
            Ok(_) => EndingAnswer::Written,
            Err(Refusal::RunMoved) => EndingAnswer::RunMoved,
            Err(_) => EndingAnswer::Refused,
        };
        self.store.tell(News::Written { to, ticket, answer });
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<EndingAnswer>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same piece of work again, at the owner.
pub(crate) fn work_of(ending: Ending) -> Assignment {
    let Ending { tree, start, run, attempt, closing, .. } = ending;
    let completion = Completion {
        start,
        outcome: closing.outcome,
        payload: closing.payload.clone(),
        completed_at: closing.closed_at,
    };
    Assignment {
        ticket: None,
        target: Target::Tree(tree),
        work: Work::Change(Verb::Complete(completion)),
        runs: vec![RunWrite::Close { run, attempt, closing }],
        tries: 0,
    }
}
