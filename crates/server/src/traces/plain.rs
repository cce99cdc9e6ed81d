//! Runs without a schedule. Nobody is told of their ends, so those that are open are known here, and looked at in turn.
//!
//! Most ends are reported to this server by a worker and are known at once; the look finds the others: timeouts, lost workers, purges.
//! What was open when the server was started is known when a worker takes it.

use std::collections::BTreeSet;

use punctual_engine::RunView;
use punctual_store::RunKey;

/// Runs that are known at a time; of more, some get no trace unless a worker reports their end.
const OPEN_MAX: usize = 10_000;

/// Runs that one look asks about.
const LOOK_MAX: usize = 500;

/// What a handler knows about a run without a schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PlainNews {
    /// It was made, or taken by a worker.
    Open(RunKey),
    /// A run has ended, maybe one with a schedule.
    Over(RunKey),
}

/// Open runs without a schedule.
#[derive(Debug, Default)]
pub(super) struct PlainRuns {
    open: BTreeSet<RunKey>,
    /// The next look begins behind this one.
    seen: Option<RunKey>,
}

impl PlainRuns {
    /// Takes note; gives the run if it is one of these and over.
    pub(super) fn hear(&mut self, news: PlainNews) -> Option<RunKey> {
        match news {
            PlainNews::Open(run) => {
                if self.open.len() < OPEN_MAX {
                    self.open.insert(run);
                }
                None
            }
            PlainNews::Over(run) => self.open.remove(&run).then_some(run),
        }
    }

    /// The next few to look at; from the beginning when all had their turn.
    pub(super) fn turn(&mut self) -> Vec<RunKey> {
        let behind = |run: &&RunKey| self.seen.is_none_or(|seen| **run > seen);
        let turn: Vec<RunKey> = self.open.iter().filter(behind).take(LOOK_MAX).copied().collect();
        self.seen = turn.last().copied().filter(|_| turn.len() == LOOK_MAX);
        turn
    }

    /// Forgets those that are over, and gives them.
    pub(super) fn looked_at(&mut self, turn: &[RunKey], found: &[RunView]) -> Vec<RunKey> {
        let is_open = |view: &&RunView| view.stored.closing.is_none();
        let open: BTreeSet<RunKey> =
            found.iter().filter(is_open).map(|view| view.stored.run.made.run).collect();
        // Who ended it may have said so in the meantime.
        turn.iter().copied().filter(|run| !open.contains(run) && self.open.remove(run)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_open_run_has_its_turn_and_an_end_is_heard_once() {
        let mut runs = PlainRuns::default();
        for run in 1..=700 {
            assert_eq!(runs.hear(PlainNews::Open(RunKey(run))), None);
        }
        assert_eq!(runs.hear(PlainNews::Over(RunKey(7))), Some(RunKey(7)));
        assert_eq!(runs.hear(PlainNews::Over(RunKey(7))), None);
        assert_eq!(
            runs.hear(PlainNews::Over(RunKey(9_999))),
            None,
            "a run with a schedule is not one of these"
        );

        let first = runs.turn();
        assert_eq!((first.len(), first[0], first[499]), (500, RunKey(1), RunKey(501)));
        let second = runs.turn();
        assert_eq!((second.len(), second[0], second[198]), (199, RunKey(502), RunKey(700)));
        assert_eq!(runs.turn(), first, "and again");

        assert_eq!(runs.looked_at(&first[..2], &[]), first[..2], "what is gone is over");
        assert_eq!(runs.looked_at(&first[..2], &[]), []);
    }
}
