//! Starts, ends and stops of runs that run outside, where calls and answers get lost.

use punctual_core::{Completion, Dispatch, Dispatched, Seen, Sighting, StartId, StopKind};
use punctual_engine::Verb;
use punctual_store::{RunKey, TreeKey};

use super::World;
use super::agenda::Happening;
use super::clients::Asked;
use super::node::Process;
use crate::checker::{self, Violation};
use crate::dispatcher::Ended;

impl World {
    /// A run begins, in truth.
    pub(super) fn begin_run(&mut self, tree: TreeKey, start: StartId) -> Result<(), Violation> {
        if self.dispatcher.knows(tree, start) {
            return checker::broken("exactly one start", format!("{start} began twice"));
        }
        self.dispatcher.begin(tree, start, self.now);
        checker::check_run_began(self, tree, start)
    }

    /// A start call reaches the dispatcher; its answer may not come back.
    pub(super) fn start(&mut self, by: Process, tree: TreeKey, dispatch: Dispatch) -> Result<(), Violation> {
        let start = dispatch.start;
        let started = Dispatched::Started { started_at: self.now };
        let answer = if self.dispatcher.knows(tree, start) {
            started
        } else if self.random.chance(self.knobs.start_fails) {
            Dispatched::Failed
        } else if self.random.chance(self.knobs.start_refused) {
            self.dispatcher.refuse(tree, start);
            Dispatched::Refused
        } else if self.dispatcher.refused(tree, start) {
            Dispatched::Refused
        } else {
            self.begin_run(tree, start)?;
            let seconds = self.random.between(1, self.knobs.run_seconds_max);
            self.at(seconds, Happening::RunEnds { tree, start });
            started
        };
        if !self.random.chance(self.knobs.start_silent) {
            self.submit(by, tree, Verb::Record(vec![(start, answer)]));
        }
        Ok(())
    }

    pub(super) fn run_ends(&mut self, tree: TreeKey, start: StartId) {
        let outcome = self.workload.outcome();
        let Some(ended) = self.dispatcher.end(tree, start, self.now, outcome) else { return };
        if self.random.chance(self.knobs.completion_lost) {
            return;
        }
        let copies = 1 + usize::from(self.random.chance(self.knobs.completion_twice));
        for _ in 0..copies {
            let delay = self.random.between(0, 10);
            self.at(delay, Happening::Ask(Box::new(Asked::report(tree, report(start, ended)))));
        }
    }

    pub(super) fn stop(
        &mut self,
        by: Process,
        tree: TreeKey,
        start: StartId,
        run: Option<RunKey>,
        kind: StopKind,
    ) {
        let lost = self.random.chance(self.knobs.start_silent);
        if lost {
            return;
        }
        let heeds = kind == StopKind::Terminate || self.random.chance(700);
        let delivered = match run {
            Some(run) => self.stop_on_queue(run, kind, heeds),
            None if self.is_queued(tree) => {
                return self.found("a stop reaches its run", format!("nobody knows the run of {start}"));
            }
            None => {
                if heeds && self.dispatcher.is_running(tree, start) {
                    self.at(2, Happening::RunEnds { tree, start });
                }
                true
            }
        };
        if delivered {
            self.submit(by, tree, Verb::StopsDelivered(vec![start]));
        }
    }

    fn is_queued(&self, tree: TreeKey) -> bool {
        self.chronicle.tales.get(&tree).is_some_and(|tale| tale.view.queue.is_some())
    }

    /// Somebody asks the keeper of a start what has become of it. Of a start that became no run, a queue says so too.
    pub(super) fn look(&mut self, by: Process, tree: TreeKey, start: StartId) {
        let seen = match self.dispatcher.ended(tree, start) {
            Some(ended) => Seen::Ended(report(start, ended)),
            None if self.dispatcher.is_running(tree, start) => Seen::Running,
            None => Seen::Gone,
        };
        self.submit(by, tree, Verb::Reconcile(vec![Sighting { start, seen }]));
    }
}

fn report(start: StartId, ended: Ended) -> Completion {
    Completion { start, outcome: ended.outcome, payload: None, completed_at: ended.at }
}
