//! One schedule as one tree of components: who may borrow whom, and the one way through a transition.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::backfiller::Backfiller;
use crate::command::Change;
use crate::completion::LastCompletion;
use crate::generator::Generator;
use crate::id::{RequestKey, ScheduleKey, StartId};
use crate::invoker::Invoker;
use crate::ledger::{NotStarted, Supersede};
use crate::limits::Limits;
use crate::mutant::{self, Mutant};
use crate::note::Note;
use crate::rejection::Rejection;
use crate::schedule::{Definition, Target, is_manual_only};
use crate::scheduler::{Lifecycle, Scheduler};
use crate::start::{BufferedStart, Phase};
use crate::task::Task;
use crate::transition::{Dispatch, Effects, Transition};

/// One schedule: definition, state, and everything on its way.
///
/// A change is a plain function. It gets the tree and a transition and can reach nothing else; if it refuses, the
/// caller throws the tree away and keeps the stored one.
#[derive(Clone, Debug)]
pub struct ScheduleTree {
    pub(crate) scheduler: Scheduler,
    pub(crate) generator: Generator,
    pub(crate) invoker: Invoker,
    pub(crate) backfillers: BTreeMap<RequestKey, Backfiller>,
    pub(crate) last_completion: Option<Box<LastCompletion>>,
}

/// Rounds of tasks in one transition; each round decides at least one start, and starts are bounded.
const ROUNDS_MAX: usize = 10_000;

impl ScheduleTree {
    /// Makes one change at one time, then does whatever follows from it. What was due before is decided first, as
    /// things were.
    pub fn apply<Request, Response>(
        &mut self,
        now: Timestamp,
        limits: &Limits,
        effects: &mut Effects,
        change: Change<Request, Response>,
        request: Request,
    ) -> Result<Response, Rejection> {
        let mut tx = Transition::new(self.advance(now), limits, effects);
        if !mutant::is(Mutant::UpdateForgetsWhatWasDue) {
            self.settle(&mut tx);
        }
        let response = change(self, &mut tx, request)?;
        self.settle(&mut tx);
        self.finish(tx);
        Ok(response)
    }

    /// Does whatever is due: the timer fired, or the tree was just loaded.
    pub fn wake(&mut self, now: Timestamp, limits: &Limits, effects: &mut Effects) {
        let mut tx = Transition::new(self.advance(now), limits, effects);
        self.settle(&mut tx);
        self.end_retention(&mut tx);
        self.finish(tx);
    }

    /// What an owner that has just loaded the tree hands to the dispatcher again.
    pub fn plan_execute(&self, now: Timestamp, limits: &Limits) -> Vec<Dispatch> {
        self.invoker.plan_execute(now, self.target(), limits.dispatches_max)
    }

    /// Reads a little of whatever the next transition will read, and gives a number that means nothing. Who has many trees to
    /// wake fetches them from memory together so, in [`GLANCES`](ScheduleTree::GLANCES) rounds: what a round reads, the one
    /// before has made known.
    pub fn glance(&self, round: u8) -> usize {
        let ScheduleTree { scheduler, generator, invoker, backfillers, last_completion } = self;
        match round {
            0 => {
                let times =
                    [scheduler.clock, scheduler.last_event_at, generator.watermark, invoker.paced_until()];
                let lengths = [invoker.starts.len(), invoker.recent.len(), scheduler.requests().len()];
                let times = times.iter().map(|time| time.subsec_nanosecond() as usize);
                times.chain(lengths).fold(backfillers.len() ^ scheduler.skips.len(), |sum, read| sum ^ read)
            }
            1 => {
                let starts = invoker.starts.iter().rev().take(4);
                let starts = starts.map(|start| usize::from(start.holds_place() ^ start.input.is_some()));
                let recent = invoker.recent.last().map_or(0, |recent| recent.outcome() as usize);
                let requests = scheduler.requests().first().map_or(0, |(request, _)| request.0.len());
                let completion =
                    last_completion.as_ref().map_or(0, |last| usize::from(last.result.is_some()));
                let key = Arc::strong_count(&scheduler.key) ^ scheduler.key.namespace.len();
                starts.fold(scheduler.definition.glance(), |sum, start| sum ^ start)
                    ^ (recent ^ requests ^ completion ^ key)
            }
            _ => {
                let ScheduleKey { namespace, schedule } = &*scheduler.key;
                let requests = scheduler.requests().first().map_or("", |(request, _)| &request.0);
                let texts = [namespace, schedule, requests];
                let texts = texts.map(|text| text.as_bytes().first().map_or(0, |read| usize::from(*read)));
                texts.iter().fold(scheduler.definition.compiled.glance(1), |sum, read| sum ^ read)
            }
        }
    }

    /// Rounds of [`glance`](ScheduleTree::glance).
    pub const GLANCES: u8 = 3;

    /// When the schedule wants to be woken: one time for the whole tree, the earliest.
    pub fn next_time(&self, limits: &Limits) -> Option<Timestamp> {
        let scheduler = &self.scheduler;
        if !scheduler.is_open() {
            return scheduler.close_time(false, limits);
        }
        let resume = scheduler.pause.as_ref().and_then(|pause| pause.until);
        let outside = self.target() == Target::Outside;
        let times = [
            self.generator.next_time(scheduler),
            self.invoker.next_time(outside, limits),
            self.backfillers.values().map(|backfiller| backfiller.not_before).min(),
            scheduler.close_time(self.is_idle(), limits),
            resume,
        ];
        times.into_iter().flatten().min()
    }

    /// Whether it is in use: neither completed nor deleted.
    pub fn is_open(&self) -> bool {
        self.scheduler.is_open()
    }

    /// What the user asked for.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.scheduler.definition
    }

    /// The latest time that this schedule has seen.
    pub fn clock(&self) -> Timestamp {
        self.scheduler.clock
    }

    /// What the next run is told about those before it.
    pub fn last_completion(&self) -> Option<&LastCompletion> {
        self.last_completion.as_deref()
    }

    /// Which schedule this is.
    pub fn key(&self) -> &Arc<ScheduleKey> {
        &self.scheduler.key
    }

    /// A start on its way or in progress.
    pub fn start(&self, id: StartId) -> Option<&BufferedStart> {
        self.invoker.starts.iter().find(|start| start.id == id)
    }

    /// All starts on their way or in progress, in the order in which they were asked for.
    pub fn starts(&self) -> impl Iterator<Item = &BufferedStart> {
        self.invoker.starts.iter()
    }

    /// Whether it is in use, and if not, since when.
    pub fn lifecycle(&self) -> Lifecycle {
        self.scheduler.lifecycle
    }

    /// Whether it starts nothing but manual starts.
    pub fn is_paused(&self) -> bool {
        self.scheduler.pause.is_some()
    }

    /// Time never runs backwards for one schedule, whatever the clocks of its owners do.
    fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.scheduler.clock =
            if mutant::is(Mutant::ClockRunsBackwards) { now } else { self.scheduler.clock.max(now) };
        self.scheduler.clock
    }

    /// Runs tasks until none is left.
    fn settle(&mut self, tx: &mut Transition<'_>) {
        if !self.scheduler.is_open() {
            return;
        }
        self.resume_when_due(tx);
        for task in [Task::Generate, Task::Backfill, Task::ProcessBuffer, Task::Close] {
            tx.add_task(task);
        }
        self.ask_about_silent_runs(tx);
        for _ in 0..ROUNDS_MAX {
            let Some(task) = tx.take_task() else { return };
            self.run(tx, task);
        }
        panic!("tasks of {:?} do not come to an end", self.scheduler.key);
    }

    /// Before a deleted schedule goes for good, starts that nobody answered for get their verdict: nothing ends silently.
    fn end_retention(&mut self, tx: &mut Transition<'_>) {
        let over = self.scheduler.close_time(false, tx.limits()).is_some_and(|time| time <= tx.now());
        if self.scheduler.is_open() || !over {
            return;
        }
        let unanswered = |start: &&BufferedStart| !matches!(start.phase, Phase::Running { .. });
        let ids: Vec<StartId> = self.invoker.starts.iter().filter(unanswered).map(|start| start.id).collect();
        for id in ids {
            self.invoker.reject(tx, &mut self.scheduler, id, NotStarted::Superseded(Supersede::Delete));
        }
    }

    fn run(&mut self, tx: &mut Transition<'_>, task: Task) {
        match task {
            Task::Generate => self.generator.generate(tx, &mut self.scheduler, &mut self.invoker.inbox()),
            Task::Backfill => self.run_backfills(tx),
            Task::ProcessBuffer => self.invoker.process_buffer(tx, &mut self.scheduler),
            Task::Close => {
                let idle = self.is_idle();
                self.scheduler.close(tx, idle);
            }
        }
    }

    fn run_backfills(&mut self, tx: &mut Transition<'_>) {
        let keys: Vec<RequestKey> = self.backfillers.keys().copied().collect();
        let share = keys.len();
        for key in keys {
            let room = tx.limits().backfill_room(self.invoker.waiting(), self.invoker.starts.len(), share);
            let Some(backfiller) = self.backfillers.get_mut(&key) else { continue };
            if backfiller.backfill(tx, key, &self.scheduler, &mut self.invoker.inbox(), room) {
                self.backfillers.remove(&key);
                tx.note(Note::BackfillEnded(key));
                tx.add_task(Task::Close);
            }
        }
    }

    /// An outside run of which nothing was heard is asked for, so that a lost report blocks nobody for ever.
    fn ask_about_silent_runs(&mut self, tx: &mut Transition<'_>) {
        if self.target() != Target::Outside || mutant::is(Mutant::SilentRunsAreNotAskedFor) {
            return;
        }
        let patience = tx.limits().reconcile_after;
        for start in &mut self.invoker.starts {
            let Phase::Running { seen_at, .. } = &mut start.phase else { continue };
            if seen_at.checked_add(patience).is_ok_and(|limit| limit <= tx.now()) {
                *seen_at = tx.now();
                tx.check(start.id);
            }
        }
    }

    /// Whether nothing waits, runs or will come; a paused schedule is never idle.
    pub(crate) fn is_idle(&self) -> bool {
        let scheduler = &self.scheduler;
        let future = !scheduler.is_exhausted()
            && scheduler.definition.compiled.next(self.generator.watermark).is_some();
        // A schedule that only people start has no end of its own.
        let for_people = is_manual_only(&scheduler.definition.schedule.spec);
        let busy = !self.backfillers.is_empty() || !self.invoker.starts.is_empty();
        scheduler.pause.is_none() && !busy && !future && !for_people
    }

    pub(crate) fn target(&self) -> Target {
        self.scheduler.definition.schedule.action.target
    }

    fn finish(&self, tx: Transition<'_>) {
        let timer = self.next_time(tx.limits());
        let over = !self.scheduler.is_open() && timer.is_none_or(|time| time <= tx.now());
        let retired = over && self.scheduler.lifecycle != Lifecycle::Open;
        tx.finish(timer.filter(|_| !retired), retired);
    }
}
