//! Those who wait for an answer, and ask again with the same request if none comes.

use punctual_core::{Answer, Completion};
use punctual_engine::relay::answer_of;
use punctual_engine::shard::{Assignment, Refusal, Target, Ticket};
use punctual_engine::{Verb, Work};
use punctual_store::{Closing, Keeper, RunKey, RunWrite, ShardId, TreeKey, shard_of};

use super::World;
use super::agenda::Happening;
use super::node::Who;
use crate::workload::Order;

/// How often somebody asks again who need not be heard.
const TRIES_MAX: u32 = 10;

/// Something that somebody waits for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    wish: Wish,
    tries: u32,
}

#[derive(Clone, Debug)]
enum Wish {
    /// A command of a client.
    Order(Order),
    /// A run outside has ended.
    Report(TreeKey, Completion),
    /// A run on the queue is over: it and its schedule are told in one unit.
    Close { run: RunKey, attempt: Option<u32>, tree: TreeKey, completion: Completion },
    /// A node was told such an end, and answers another one under this name.
    Told { at: Who, to: Keeper, ticket: u64 },
}

impl Asked {
    pub(super) fn order(order: Order) -> Asked {
        Asked { wish: Wish::Order(order), tries: 0 }
    }

    pub(super) fn report(tree: TreeKey, completion: Completion) -> Asked {
        Asked { wish: Wish::Report(tree, completion), tries: 0 }
    }

    pub(super) fn close(run: RunKey, attempt: Option<u32>, tree: TreeKey, completion: Completion) -> Asked {
        Asked { wish: Wish::Close { run, attempt, tree, completion }, tries: 0 }
    }

    pub(super) fn told(at: Who, to: Keeper, ticket: u64) -> Asked {
        Asked { wish: Wish::Told { at, to, ticket }, tries: 0 }
    }

    /// Whether it waits for a node for as long as it takes: what a queue reports is durable, and first wishes are kept.
    fn is_patient(&self) -> bool {
        match &self.wish {
            Wish::Order(order) => matches!(order.work, Work::Create(_)),
            Wish::Report(..) | Wish::Told { .. } => false,
            Wish::Close { .. } => true,
        }
    }

    fn assignment(&self, ticket: Ticket) -> Option<Assignment> {
        let (target, work, runs) = match &self.wish {
            Wish::Order(order) => (Target::Name(order.key.clone()), order.work.clone(), Vec::new()),
            Wish::Report(tree, completion) => {
                (Target::Tree(*tree), Work::Change(Verb::Complete(completion.clone())), Vec::new())
            }
            Wish::Close { run, attempt, tree, completion } => {
                let work = Work::Change(Verb::Complete(completion.clone()));
                (Target::Tree(*tree), work, vec![close(*run, *attempt, completion)])
            }
            Wish::Told { .. } => return None,
        };
        Some(Assignment { ticket: Some(ticket), target, work, runs, tries: 0 })
    }
}

fn close(run: RunKey, attempt: Option<u32>, completion: &Completion) -> RunWrite {
    let Completion { outcome, payload, completed_at, .. } = completion.clone();
    RunWrite::Close { run, attempt, closing: Closing { outcome, closed_at: completed_at, payload } }
}

impl World {
    /// Turns to somebody who serves.
    pub(super) fn ask(&mut self, asked: Asked) {
        let Some(shard) = self.shard_of(&asked) else { return };
        let Some(who) = self.any_server(shard) else { return self.ask_again(asked) };
        // The engine's desk knows which runs are over and hands on no second word about them.
        let counts = match &asked.wish {
            Wish::Close { run, attempt: Some(attempt), .. } => self.counts(*run, *attempt),
            Wish::Close { run, attempt: None, .. } => self.is_live(*run),
            Wish::Order(_) | Wish::Report(..) | Wish::Told { .. } => true,
        };
        if !counts {
            return;
        }
        let ticket = self.wait_for(asked.clone());
        if let Some(work) = asked.assignment(ticket) {
            self.at(0, Happening::Serve { who, shard, work: Box::new(work) });
        }
    }

    /// Somebody waits for an answer, for a while.
    pub(super) fn wait_for(&mut self, asked: Asked) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.waiting.insert(ticket, asked);
        let patience = self.random.between(20, 60);
        self.at(patience, Happening::LosePatience(ticket));
        ticket
    }

    fn shard_of(&self, asked: &Asked) -> Option<ShardId> {
        let key = match &asked.wish {
            Wish::Order(order) => &order.key,
            Wish::Report(tree, _) | Wish::Close { tree, .. } => &self.chronicle.tales.get(tree)?.key,
            Wish::Told { .. } => return None,
        };
        Some(shard_of(key, self.knobs.shards))
    }

    fn ask_again(&mut self, asked: Asked) {
        if asked.tries < TRIES_MAX || asked.is_patient() {
            let asked = Asked { tries: asked.tries.saturating_add(1), ..asked };
            // Where nodes may be away for hours, nobody asks every second.
            let delay = self.random.between(3, 8 + self.knobs.lease_seconds / 60);
            self.at(delay, Happening::Ask(Box::new(asked)));
        }
    }

    pub(super) fn lose_patience(&mut self, ticket: Ticket) {
        if let Some(asked) = self.waiting.remove(&ticket) {
            self.ask_again(asked);
        }
    }

    /// An answer reaches whoever waits for it, if it still does.
    pub(super) fn answered(&mut self, ticket: Ticket, answer: Result<Answer, Refusal>) {
        let Some(asked) = self.waiting.remove(&ticket) else { return };
        match (&asked.wish, answer) {
            (Wish::Told { at, to, ticket }, answer) => {
                self.tell_answer(*at, *to, *ticket, answer_of(&answer));
            }
            (_, Err(Refusal::NotOwner | Refusal::Unavailable(_) | Refusal::Aborted { .. })) => {
                self.ask_again(asked);
            }
            (Wish::Order(order), Ok(answer)) => {
                if !self.chronicle.knows(&order.key, &order.request, &answer) {
                    self.found("what is answered is durable", format!("{order:?} got {answer:?}"));
                }
            }
            (Wish::Close { tree, completion, .. }, Ok(_)) => {
                if self.dispatcher.ended(*tree, completion.start).is_none() {
                    let seen = format!("the run of {} was said to be over", completion.start);
                    self.found("what is answered is durable", seen);
                }
            }
            // Its schedule is gone; the run has ended all the same.
            (Wish::Close { run, attempt, completion, .. }, Err(Refusal::NotFound)) => {
                let write = close(*run, *attempt, completion);
                self.write_run(write);
            }
            (_, Err(Refusal::Quarantined(reason))) => {
                self.found("no schedule breaks", format!("refused: {reason}"));
            }
            (Wish::Close { run, attempt: Some(attempt), .. }, Err(Refusal::RunMoved)) => {
                let (run, attempt) = (*run, *attempt);
                if self.counts(run, attempt) {
                    let seen = format!("attempt {attempt} of run {run} was told that it has moved on");
                    self.found("what counts is heard", seen);
                }
            }
            (Wish::Report(..), Ok(_))
            | (_, Err(Refusal::NotFound | Refusal::Rejected(_) | Refusal::RunMoved)) => {}
        }
    }
}
