//! Random values of everything that records hold, from a seed.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    Action, Answer, BackfillRequest, BackfillSnapshot, BufferedStart, CatchupCount, Failure, LastCompletion,
    Lifecycle, Miss, NotStarted, OnResume, Origin, OverlapPolicy, PauseState, Payload, Phase, Policies,
    RecentRun, RecentSnapshot, RequestId, RequestKey, RetryPolicy, Revision, RunAction, Schedule, Skip,
    Snapshot, StartId, Stop, StopKind, Supersede, Target, Timeouts,
};
use punctual_spec::Spec;
use punctual_store::record::{RunBody, TreeState};
use punctual_store::{QueueSettings, Rate, RunKey};

pub struct Generator(u64);

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator(seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(1))
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound.max(1) as u64) as usize
    }

    fn chance(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Small, large and largest numbers alike.
    fn wide(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => u64::MAX,
            _ => self.number() >> self.below(64),
        }
    }

    fn count(&mut self) -> u32 {
        self.wide() as u32
    }

    fn time(&mut self) -> Timestamp {
        match self.below(10) {
            0 => Timestamp::MIN,
            1 => Timestamp::MAX,
            2 => Timestamp::UNIX_EPOCH,
            _ => {
                let (second, nanos) = (self.below(4_000_000_000) as i64, self.below(1_000_000_000) as i32);
                Timestamp::new(second - 500_000_000, nanos).expect("in range")
            }
        }
    }

    fn duration(&mut self) -> SignedDuration {
        match self.below(6) {
            0 => SignedDuration::MAX,
            1 => SignedDuration::MIN,
            _ => SignedDuration::from_nanos((self.wide() >> 1) as i64),
        }
    }

    fn text(&mut self) -> Arc<str> {
        let letters = ["a", "Z", "0", "-", " ", "\u{0}", "é", "\u{1f552}", "\"", "\\"];
        (0..self.below(12)).map(|_| letters[self.below(letters.len())]).collect::<String>().into()
    }

    fn payload(&mut self) -> Payload {
        (0..self.below(40)).map(|_| self.number() as u8).collect()
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Generator) -> T) -> Option<T> {
        self.chance().then(|| make(self))
    }

    fn several<T>(&mut self, mut make: impl FnMut(&mut Generator) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| make(self)).collect()
    }

    fn overlap(&mut self) -> OverlapPolicy {
        use OverlapPolicy::{AllowAll, BufferAll, BufferOne, CancelOther, Skip, TerminateOther};
        [Skip, BufferOne, BufferAll, CancelOther, TerminateOther, AllowAll][self.below(6)]
    }

    fn request_key(&mut self) -> RequestKey {
        RequestKey(self.wide().max(1))
    }

    fn start_id(&mut self) -> StartId {
        let origin = if self.chance() { Origin::Spec } else { Origin::Request(self.request_key()) };
        StartId { nominal_ms: self.wide() as i64, origin }
    }

    fn reason(&mut self) -> NotStarted {
        [
            NotStarted::Skipped(Skip::User),
            NotStarted::Missed(Miss::Refused),
            NotStarted::Dropped,
            NotStarted::Exhausted,
            NotStarted::Superseded(Supersede::Delete),
        ][self.below(5)]
    }

    fn stop(&mut self) -> Stop {
        let kind = if self.chance() { StopKind::Cancel } else { StopKind::Terminate };
        Stop { kind, attempts: self.count(), not_before: self.maybe(Generator::time) }
    }

    fn phase(&mut self) -> Phase {
        match self.below(5) {
            0 => Phase::Waiting,
            1 => Phase::Deferred,
            2 => Phase::Ready {
                attempt: self.count(),
                not_before: self.time(),
                sent_at: self.maybe(Generator::time),
            },
            3 => Phase::Doubtful { verdict: self.reason(), ask_at: self.time() },
            _ => Phase::Running {
                started_at: self.time(),
                seen_at: self.time(),
                stop: self.maybe(Generator::stop),
            },
        }
    }

    fn start(&mut self) -> BufferedStart {
        BufferedStart {
            id: self.start_id(),
            due_time: self.time(),
            overlap: self.overlap(),
            phase: self.phase(),
            input: self.maybe(Generator::payload),
        }
    }

    fn backfill(&mut self) -> BackfillSnapshot {
        let request = BackfillRequest {
            from: self.time(),
            through: self.time(),
            overlap: self.maybe(Generator::overlap),
            pace: self.maybe(Generator::duration),
            note: self.text(),
        };
        BackfillSnapshot {
            key: self.request_key(),
            request,
            watermark: self.time(),
            taken: self.wide(),
            not_before: self.time(),
            blocked_passes: self.count(),
        }
    }

    fn recent(&mut self) -> RecentRun {
        let (nominal_ms, request, packed) = (self.wide() as i64, self.wide(), self.wide());
        RecentRun::restore(RecentSnapshot { nominal_ms, request, packed })
    }

    fn snapshot(&mut self) -> Snapshot<'static> {
        let lifecycle = match self.below(3) {
            0 => Lifecycle::Open,
            1 => Lifecycle::Completed { completed_at: self.time() },
            _ => Lifecycle::Deleted { deleted_at: self.time() },
        };
        Snapshot {
            revision: Revision(self.wide()),
            lifecycle,
            pause: self.maybe(|from| PauseState {
                paused_at: from.time(),
                note: from.text(),
                until: from.maybe(Generator::time),
            }),
            remaining_actions: self.maybe(Generator::count),
            failures_in_a_row: self.count(),
            counters: std::array::from_fn(|_| self.count()),
            created_at: self.time(),
            last_event_at: self.time(),
            clock: self.time(),
            skips: self.several(Generator::time),
            requests: self
                .several(|from| {
                    let keys = from.several(Generator::request_key).into();
                    (RequestId(from.text()), Answer { revision: Revision(from.wide()), keys })
                })
                .into(),
            watermark: self.time(),
            paced_until: self.time(),
            starts: self.several(Generator::start).into(),
            recent: self.several(Generator::recent).into(),
            backfills: self.several(Generator::backfill),
        }
    }

    pub fn state(&mut self) -> TreeState<'static> {
        let snapshot = self.snapshot();
        let runs = self.several(|from| (from.start_id(), RunKey(from.wide() as i64)));
        TreeState { snapshot, runs: runs.into() }
    }

    pub fn schedule(&mut self) -> Schedule {
        let mut spec = Spec::new();
        for _ in 0..self.below(3) {
            spec = spec.cron(["0 9 * * 1-5", "@hourly", "*/5 * * * *"][self.below(3)]);
        }
        if self.chance() {
            spec = spec.zone("Europe/Berlin");
        }
        let target = if self.chance() { Target::Queue } else { Target::Outside };
        let latest = CatchupCount::Latest(self.count());
        Schedule {
            spec,
            action: Action { target, run_id_base: self.text(), payload: self.payload() },
            policies: Policies {
                overlap: self.overlap(),
                concurrency: self.count(),
                catchup_window: self.maybe(Generator::duration),
                catchup_count: if self.chance() { CatchupCount::All } else { latest },
                catchup_pace: self.maybe(Generator::duration),
                pause_after_failures: self.maybe(Generator::count),
                on_resume: if self.chance() { OnResume::Skip } else { OnResume::CatchUp },
            },
            attachment: if self.chance() { [].into() } else { self.payload() },
        }
    }

    pub fn action(&mut self) -> RunAction {
        RunAction {
            queue: self.text(),
            handler: self.text(),
            input: self.payload(),
            retry: RetryPolicy {
                attempts_max: self.count(),
                backoff_first: self.duration(),
                backoff_percent: self.count(),
                backoff_max: self.duration(),
                non_retryable: self.several(Generator::text),
            },
            timeouts: Timeouts {
                start_to_close: self.maybe(Generator::duration),
                schedule_to_close: self.maybe(Generator::duration),
                heartbeat: self.maybe(Generator::duration),
            },
            priority: self.wide() as i16,
            key: self.text(),
            call: self.maybe(Generator::payload),
        }
    }

    pub fn queue(&mut self) -> QueueSettings {
        let rate = |from: &mut Generator| Rate { starts_max: from.count(), per: from.duration() };
        QueueSettings {
            description: self.text(),
            concurrency_max: self.maybe(Generator::count),
            worker_concurrency_max: self.maybe(Generator::count),
            rate: self.maybe(rate),
            key_concurrency_max: self.maybe(Generator::count),
            key_rate: self.maybe(rate),
            priority_step: self.duration(),
            paused: self.chance(),
        }
    }

    pub fn completion(&mut self) -> LastCompletion {
        LastCompletion { result: self.maybe(Generator::payload), failure: self.maybe(Generator::payload) }
    }

    pub fn body(&mut self) -> RunBody {
        let (namespace, schedule, name) = (self.text(), self.text(), self.text());
        RunBody { namespace, schedule, name, action: self.action(), last: self.completion() }
    }

    pub fn failure(&mut self) -> Failure {
        let (kind, message, details) = (self.text(), self.text(), self.maybe(Generator::payload));
        Failure { kind, message, details, retryable: self.chance() }
    }
}
