//! Ends of runs go to whoever drives their schedules.
//!
//! A worker may turn to any node, and its run may be of a schedule that another node drives. A guest could write both, but then
//! the owner's copy of the schedule would be old with every end, and one of the two would come too late again and again. So the
//! owner is told, writes the end together with whatever else it writes, and says so. Nothing rests on it: whoever hears nothing
//! in time writes as a guest. Both may do so; the run ends once.

use std::collections::HashMap;
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
    told: Mutex<Told<oneshot::Sender<EndingAnswer>>>,
}

impl Relay {
    pub(crate) fn new(store: Arc<dyn Store>, me: Keeper, patience: Duration) -> Relay {
        Relay { store, me, patience, told: Mutex::default() }
    }

    /// Has the owner write the end of a run; nothing if this is none, or if the owner did not do it.
    pub(crate) async fn send(&self, shard: ShardId, work: &Assignment) -> Option<Result<Answer, Refusal>> {
        let (waiter, answer) = oneshot::channel();
        let ending = ending_of(self.me, shard, work)?;
        let ending = self.told().tell(ending, waiter);
        let ticket = ending.ticket;
        self.store.tell(News::Ending(Box::new(ending)));
        let answer = tokio::time::timeout(self.patience, answer).await;
        self.told().take(ticket);
        meaning_of(answer.ok()?.ok()?)
    }

    /// The owner has answered somebody.
    pub(crate) fn answered(&self, to: Keeper, ticket: u64, answer: EndingAnswer) {
        let waiter = if to == self.me { self.told().take(ticket) } else { None };
        if let Some(waiter) = waiter {
            let _ = waiter.send(answer);
        }
    }

    /// Shards may have moved, or answers may have been missed: whoever waits sees to it alone.
    pub(crate) fn give_up(&self) {
        drop(self.told().take_all());
    }

    /// Answers whoever told the end of a run.
    pub(crate) fn answer(&self, to: Keeper, ticket: u64, result: &Result<Answer, Refusal>) {
        self.store.tell(News::Written { to, ticket, answer: answer_of(result) });
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told<oneshot::Sender<EndingAnswer>>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ends that a node has told and heard nothing of yet, each with whoever waits for it.
#[derive(Debug)]
pub struct Told<W> {
    tickets: u64,
    waiting: HashMap<u64, W>,
}

impl<W> Default for Told<W> {
    fn default() -> Told<W> {
        Told { tickets: 0, waiting: HashMap::new() }
    }
}

impl<W> Told<W> {
    /// Somebody waits for an end to be written. Gives it its name.
    pub fn tell(&mut self, ending: Ending, waiter: W) -> Ending {
        self.tickets += 1;
        self.waiting.insert(self.tickets, waiter);
        Ending { ticket: self.tickets, ..ending }
    }

    /// Whoever waits for this one, once: it was answered, or was waited for long enough.
    pub fn take(&mut self, ticket: u64) -> Option<W> {
        self.waiting.remove(&ticket)
    }

    /// Everybody who waits, in the order in which they came.
    pub fn take_all(&mut self) -> Vec<W> {
        let mut all: Vec<(u64, W)> = self.waiting.drain().collect();
        all.sort_by_key(|(ticket, _)| *ticket);
        all.into_iter().map(|(_, waiter)| waiter).collect()
    }
}

/// A piece of work as the end of a run, for whoever drives its schedule; nothing if it is something else.
pub fn ending_of(from: Keeper, shard: ShardId, work: &Assignment) -> Option<Ending> {
    let (Target::Tree(tree), Work::Change(Verb::Complete(completion))) = (&work.target, &work.work) else {
        return None;
    };
    let [RunWrite::Close { run, attempt, closing }] = &work.runs[..] else { return None };
    if closing.payload.as_ref().is_some_and(|payload| payload.len() > PAYLOAD_BYTES_MAX) {
        return None;
    }
    let (tree, start, run, attempt) = (*tree, completion.start, *run, *attempt);
    Some(Ending { from, ticket: 0, shard, tree, start, run, attempt, closing: closing.clone() })
}

/// The same piece of work again, at the owner.
pub fn work_of(ending: Ending) -> Assignment {
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

/// What the owner says about it.
pub fn answer_of(result: &Result<Answer, Refusal>) -> EndingAnswer {
    match result {
        Ok(_) => EndingAnswer::Written,
        Err(Refusal::RunMoved) => EndingAnswer::RunMoved,
        Err(_) => EndingAnswer::Refused,
    }
}

/// What that means to whoever told it; nothing if it has to be done without the owner.
pub fn meaning_of(answer: EndingAnswer) -> Option<Result<Answer, Refusal>> {
    match answer {
        EndingAnswer::Written => Some(Ok(Answer { revision: Revision(0), keys: Box::default() })),
        EndingAnswer::RunMoved => Some(Err(Refusal::RunMoved)),
        EndingAnswer::Refused => None,
    }
}
