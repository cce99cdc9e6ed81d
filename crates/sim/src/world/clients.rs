//! Those who wait for an answer, and ask again with the same request if none comes.

use punctual_core::{Answer, Completion};
use punctual_engine::shard::{Assignment, Event, Refusal, Target, Ticket};
use punctual_engine::{Verb, Work};
use punctual_store::{Closing, RunKey, RunWrite, TreeKey};

use super::World;
use super::agenda::Happening;
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

    /// Whether it waits for a node for as long as it takes: what a queue reports is durable, and first wishes are kept.
    fn is_patient(&self) -> bool {
        match &self.wish {
            Wish::Order(order) => matches!(order.work, Work::Create(_)),
            Wish::Report(..) => false,
            Wish::Close { .. } => true,
        }
    }

    fn assignment(&self, ticket: Ticket) -> Assignment {
        let (target, work, runs) = match &self.wish {
            Wish::Order(order) => (Target::Name(order.key.clone()), order.work.clone(), Vec::new()),
            Wish::Report(tree, completion) => {
                (Target::Tree(*tree), Work::Change(Verb::Complete(completion.clone())), Vec::new())
            }
            Wish::Close { run, attempt, tree, completion } => {
                let work = Work::Change(Verb::Complete(completion.clone()));
                (Target::Tree(*tree), work, vec![close(*run, *attempt, completion)])
            }
        };
        Assignment { ticket: Some(ticket), target, work, runs, tries: 0 }
    }
}

fn close(run: RunKey, attempt: Option<u32>, completion: &Completion) -> RunWrite {
    let Completion { outcome, payload, completed_at, .. } = completion.clone();
    RunWrite::Close { run, attempt, closing: Closing { outcome, closed_at: completed_at, payload } }
}

impl World {
    /// Turns to somebody who serves.
    pub(super) fn ask(&mut self, asked: Asked) {
        let Some(by) = self.any_server() else { return self.ask_again(asked) };
        // The engine's desk knows which runs are over and hands on no second word about them.
        let counts = match &asked.wish {
            Wish::Close { run, attempt: Some(attempt), .. } => self.counts(*run, *attempt),
            Wish::Close { run, attempt: None, .. } => self.is_live(*run),
            Wish::Order(_) | Wish::Report(..) => true,
        };
        if !counts {
            return;
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let assignment = asked.assignment(ticket);
        self.waiting.insert(ticket, asked);
        let patience = self.random.between(20, 60);
        self.at(patience, Happening::LosePatience(ticket));
        self.tell_shard(by, Event::Submit(assignment));
    }

    fn ask_again(&mut self, asked: Asked) {
        if asked.tries < TRIES_MAX || asked.is_patient() {
            let asked = Asked { tries: asked.tries.saturating_add(1), ..asked };
            let delay = self.random.between(3, 8);
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
