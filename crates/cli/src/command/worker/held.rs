//! The runs that the worker has, what they wrote, and what others wish for them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

use punctual_api::v1;
use tokio::sync::{Notify, watch};

use crate::clock;
use crate::limits::{FAILURE_LINES_MAX, LOG_BYTES_MAX};
use crate::wire::time;

/// What others wish for a run, the strongest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wish {
    /// Carry on.
    GoOn,
    /// The person at the worker wants to leave: stop, to be tried again elsewhere.
    Stop,
    /// Somebody cancelled it: stop.
    Cancel,
    /// It is not this worker's any more: stop at once, nothing it does counts.
    Gone,
}

/// The runs that the worker has.
#[derive(Debug, Default)]
pub struct Held {
    runs: Mutex<BTreeMap<String, HeldRun>>,
    /// There is a run now, or something to say about one.
    pub news: Notify,
}

#[derive(Debug)]
struct HeldRun {
    token: u32,
    attempt: u32,
    wish: watch::Sender<Wish>,
    /// Lines that no heartbeat has carried yet.
    unsent: VecDeque<v1::LogLine>,
    unsent_bytes: usize,
    /// The last lines, for a failure.
    last: VecDeque<String>,
    /// The command has ended and its end is being reported.
    is_complete: bool,
}

impl Held {
    fn runs(&self) -> MutexGuard<'_, BTreeMap<String, HeldRun>> {
        self.runs.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes a run in, and gives what it should listen to.
    pub fn take(&self, run: &v1::ClaimedRun) -> watch::Receiver<Wish> {
        let (wish, wishes) = watch::channel(Wish::GoOn);
        let held = HeldRun {
            token: run.token,
            attempt: run.attempt,
            wish,
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            last: VecDeque::new(),
            is_complete: false,
        };
        self.runs().insert(run.run_id.clone(), held);
        self.news.notify_one();
        wishes
    }

    /// The command of a run has ended: what is wished for it does not matter any more.
    pub fn complete(&self, run_id: &str) {
        if let Some(held) = self.runs().get_mut(run_id) {
            held.is_complete = true;
        }
    }

    /// The end of a run is recorded.
    pub fn release(&self, run_id: &str) {
        self.runs().remove(run_id);
    }

    /// Passes a wish on; a weaker one never takes the place of a stronger one.
    pub fn wish(&self, run_id: &str, wish: Wish) {
        if let Some(held) = self.runs().get(run_id).filter(|held| !held.is_complete) {
            held.wish.send_if_modified(|current| {
                let stronger = wish > *current;
                *current = wish.max(*current);
                stronger
            });
        }
    }

    pub fn wish_all(&self, wish: Wish) {
        let ids: Vec<String> = self.runs().keys().cloned().collect();
        for id in ids {
            self.wish(&id, wish);
        }
    }

    /// Keeps a line of a command's stderr.
    pub fn log(&self, run_id: &str, text: String) {
        let mut runs = self.runs();
        let Some(held) = runs.get_mut(run_id) else { return };
        held.last.push_back(text.clone());
        if held.last.len() > FAILURE_LINES_MAX {
            held.last.pop_front();
        }
        held.unsent_bytes += text.len() + 1;
        let logged_at = Some(time::to_wire(clock::moment()));
        held.unsent.push_back(v1::LogLine { logged_at, attempt: held.attempt, text });
        while held.unsent_bytes > LOG_BYTES_MAX {
            let Some(dropped) = held.unsent.pop_front() else { break };
            held.unsent_bytes -= dropped.text.len() + 1;
        }
    }

    /// The last lines of a command's stderr.
    pub fn last_lines(&self, run_id: &str) -> Vec<String> {
        self.runs().get(run_id).map(|held| held.last.iter().cloned().collect()).unwrap_or_default()
    }

    /// The lines that nobody has carried yet.
    pub fn take_lines(&self, run_id: &str) -> Vec<v1::LogLine> {
        self.runs().get_mut(run_id).map(HeldRun::take_lines).unwrap_or_default()
    }

    /// A sign of life for every run, with its new lines.
    pub fn pulses(&self) -> Vec<v1::RunHeartbeat> {
        let mut runs = self.runs();
        let pulses = runs.iter_mut().map(|(run_id, held)| v1::RunHeartbeat {
            run_id: run_id.clone(),
            token: held.token,
            progress: None,
            // A run that has ended carries its last lines itself.
            log_lines: if held.is_complete { Vec::new() } else { held.take_lines() },
        });
        pulses.collect()
    }

    /// Takes lines back that did not arrive.
    pub fn give_back(&self, pulses: Vec<v1::RunHeartbeat>) {
        let mut runs = self.runs();
        for pulse in pulses {
            let Some(held) = runs.get_mut(&pulse.run_id) else { continue };
            for line in pulse.log_lines.into_iter().rev() {
                held.unsent_bytes += line.text.len() + 1;
                held.unsent.push_front(line);
            }
        }
    }
}

impl HeldRun {
    fn take_lines(&mut self) -> Vec<v1::LogLine> {
        self.unsent_bytes = 0;
        std::mem::take(&mut self.unsent).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held() -> (Held, watch::Receiver<Wish>) {
        let held = Held::default();
        let run = v1::ClaimedRun { run_id: "7".into(), token: 3, attempt: 1, ..v1::ClaimedRun::default() };
        let wishes = held.take(&run);
        (held, wishes)
    }

    #[test]
    fn a_weaker_wish_never_takes_the_place_of_a_stronger_one() {
        let (held, wishes) = held();
        held.wish("7", Wish::Cancel);
        held.wish_all(Wish::Stop);
        assert_eq!(*wishes.borrow(), Wish::Cancel);
        held.complete("7");
        held.wish("7", Wish::Gone);
        assert_eq!(*wishes.borrow(), Wish::Cancel);
    }

    #[test]
    fn lines_that_did_not_arrive_are_sent_again_in_order_and_are_bounded() {
        let (held, _wishes) = held();
        held.log("7", "one".into());
        let pulses = held.pulses();
        held.log("7", "two".into());
        held.give_back(pulses);
        let lines: Vec<String> = held.take_lines("7").into_iter().map(|line| line.text).collect();
        assert_eq!(lines, ["one", "two"]);

        for _ in 0..100 {
            held.log("7", "x".repeat(4_000));
        }
        assert!(held.take_lines("7").len() <= LOG_BYTES_MAX / 4_000);
        assert_eq!(held.last_lines("7").len(), FAILURE_LINES_MAX);
    }
}
