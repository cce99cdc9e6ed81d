//! Random units: schedules and runs, right ones and such as a store must refuse.

use jiff::SignedDuration;
use punctual_core::{NotStarted, Origin, Outcome, RequestKey, ScheduleKey, Skip, StartId, StopKind, Verdict};

use super::queue::{KEYS, WORKERS};
use super::{NAMES, Pair};
use crate::conformance::support::{at, bytes, closing, entry, new_run, next};
use crate::{
    Batch, Closing, Epoch, Expected, Lifespan, NewRun, RunKey, RunRequest, RunWrite, Sequence, ShardId,
    Store, TreeKey, TreeRef, TreeView, TreeWrite, Unit,
};

impl Pair {
    pub(super) async fn commit(&mut self, place: &str) {
        self.again.clear();
        self.closed.clear();
        let mut batch = Batch::default();
        for _ in 0..1 + self.random.below(5) {
            let tree = if self.random.one_in(3) { None } else { Some(self.tree_write().await) };
            let mut runs = Vec::new();
            for _ in 0..self.random.below(4) {
                runs.extend(self.run_write().await);
            }
            let request = self.random.one_in(6).then(|| self.request(&runs));
            batch.units.push(Unit { tree, runs, request });
        }
        let answers = (self.store.commit(batch.clone()).await, self.twin.commit(batch.clone()).await);
        assert_eq!(answers.0, answers.1, "{place}: commit of {batch:#?}");
    }

    async fn tree_write(&mut self) -> TreeWrite {
        let known = self.random.pick(&self.trees).copied().filter(|_| !self.random.one_in(5));
        let write = match known {
            Some(tree) => {
                let stored = self.twin.load_now(&[TreeRef::Key(tree)]).remove(0);
                let sequence = stored.map_or(1, |stored| stored.sequence.0);
                let wrong = if self.random.one_in(8) { 1 } else { 0 };
                TreeWrite { expected: Expected::At(Sequence(sequence + wrong)), ..next(tree, sequence) }
            }
            None => {
                let tree = TreeKey(self.key().await);
                self.trees.push(tree);
                let namespace = if self.random.one_in(6) { "elsewhere" } else { "default" };
                let key = ScheduleKey::new(namespace, NAMES[self.random.below(NAMES.len())]);
                let holder = self.twin.load_now(&[TreeRef::Name(key.clone())]).remove(0);
                let replaces = match self.random.below(6) {
                    0 => None,
                    1 => self.random.pick(&self.trees).copied(),
                    _ => holder.map(|holder| holder.tree),
                };
                TreeWrite { expected: Expected::New { key, replaces }, ..next(tree, 0) }
            }
        };
        self.with_parts(write)
    }

    fn with_parts(&mut self, write: TreeWrite) -> TreeWrite {
        let shard = ShardId((write.tree.0 % 4) as u32);
        let random = &mut self.random;
        let held = self.leases.iter().rev().find(|lease| lease.shard == shard).map(|lease| lease.epoch);
        let epoch = match random.below(6) {
            0..=2 => None,
            3 => Some(Epoch(random.below(4) as u64)),
            _ => held,
        };
        let view = TreeView {
            lifespan: [Lifespan::Open, Lifespan::Completed, Lifespan::Deleted][random.below(3)],
            paused: random.one_in(2),
            queue: random.pick(&self.queues).copied(),
        };
        let text = random.number().to_string();
        let mut ledger = Vec::new();
        for _ in 0..random.below(3) {
            let from = random.below(500) as i64;
            let wide = if random.one_in(2) { random.below(50) as i64 } else { 0 };
            let origin = if random.one_in(2) {
                Origin::Spec
            } else {
                Origin::Request(RequestKey(random.number() | 1))
            };
            let verdict = if random.one_in(2) {
                Verdict::NotStarted(NotStarted::Dropped)
            } else {
                Verdict::NotStarted(NotStarted::Skipped(Skip::Overlap))
            };
            // No two are decided at one instant: of those, any may go first.
            self.decided += 1;
            let decided_at = at(random.below(600) as i64) + SignedDuration::from_nanos(self.decided);
            ledger.push(punctual_core::Entry { origin, verdict, decided_at, ..entry(from, from + wide) });
        }
        TreeWrite {
            shard,
            epoch,
            definition: random.one_in(4).then(|| bytes(&text)),
            view: random.one_in(3).then_some(view),
            state: bytes(&format!("state {text}")),
            completion: random.one_in(4).then(|| random.one_in(2).then(|| bytes(&text))),
            due_time: (!random.one_in(5)).then(|| at(random.below(1_000) as i64)),
            ledger,
            retired: random.one_in(12),
            ..write
        }
    }

    async fn run_write(&mut self) -> Option<RunWrite> {
        let known = self.random.pick(&self.runs).copied();
        let kind = self.random.below(15);
        let Some(run) = known.filter(|_| kind > 3) else { return self.insert().await };
        let attempt = self.random.below(3) as u32;
        let text = bytes(&self.random.number().to_string());
        Some(match kind {
            4 | 5 => {
                let not_before = at(self.random.below(1_000) as i64);
                RunWrite::Retry { run, attempt, not_before, failure: text }
            }
            6 => RunWrite::Release { run },
            7 => {
                let kind = if self.random.one_in(2) { StopKind::Cancel } else { StopKind::Terminate };
                RunWrite::Stop { run, kind }
            }
            8 | 9 => {
                let (progress, log_tail) = (self.random.one_in(2), self.random.one_in(2));
                let (progress, log_tail) = (progress.then(|| text.clone()), log_tail.then_some(text));
                RunWrite::Details { run, attempt, progress, log_tail }
            }
            10 => RunWrite::Bury { run },
            11 => RunWrite::HandOver { run, attempt, worker: WORKERS[self.random.below(3)].into() },
            _ if self.again.contains(&run) => return None,
            _ => {
                self.closed.insert(run);
                let outcome = [Outcome::Succeeded, Outcome::Failed, Outcome::TimedOut][self.random.below(3)];
                let closed_at = at(self.random.below(600) as i64);
                let closing = Closing { closed_at, ..closing(outcome) };
                RunWrite::Close { run, attempt: (!self.random.one_in(3)).then_some(attempt), closing }
            }
        })
    }

    async fn insert(&mut self) -> Option<RunWrite> {
        let known = self.random.pick(&self.runs).copied();
        let live = self.twin.live_runs(Default::default(), None, usize::MAX).await.expect("memory answers");
        let is_live = |run: &RunKey| live.iter().any(|live| live.made.run == *run);
        let known = known.filter(|run| is_live(run) && !self.closed.contains(run));
        let run = match known.filter(|_| self.random.one_in(8)) {
            Some(run) => {
                self.again.insert(run);
                run
            }
            None => {
                let run = RunKey(self.key().await);
                self.runs.push(run);
                run
            }
        };
        let queue = *self.random.pick(&self.queues)?;
        self.nominal_ms += 1;
        let origin = if self.random.one_in(2) {
            Origin::Spec
        } else {
            Origin::Request(RequestKey(self.random.number() | 1))
        };
        let start = StartId { nominal_ms: self.nominal_ms, origin };
        let tree = self.random.pick(&self.trees).copied();
        let origin = tree.filter(|_| !self.random.one_in(3)).map(|tree| (tree, start));
        let random = &mut self.random;
        let not_before = random.one_in(5).then(|| at(random.below(1_000) as i64));
        Some(RunWrite::Insert(NewRun {
            origin,
            created_at: at(random.below(200) as i64),
            priority: if random.one_in(3) { random.below(7) as i16 - 3 } else { 0 },
            key: KEYS[random.below(KEYS.len())].into(),
            dedup: random.one_in(3).then(|| KEYS[random.below(KEYS.len())].into()),
            not_before,
            ..new_run(run, queue)
        }))
    }

    fn request(&mut self, runs: &[RunWrite]) -> RunRequest {
        let made = runs.iter().filter_map(|write| match write {
            RunWrite::Insert(made) => Some(made.run),
            _ => None,
        });
        RunRequest {
            namespace: if self.random.one_in(4) { "elsewhere".into() } else { "default".into() },
            id: KEYS[self.random.below(KEYS.len())].into(),
            runs: made.collect(),
            made_at: at(self.random.below(600) as i64),
        }
    }
}
