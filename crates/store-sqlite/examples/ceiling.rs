//! How close the store comes to a bare loop that writes the same rows: `cargo run --release --example ceiling`.
//!
//! Each unit is one start: the state of one of 100,000 schedules is rewritten, and one run is inserted. Both sides use the
//! same tables and settings; the bare loop compares the sequence too, but knows no units, no epochs and no threads.
//!
//! The store is measured twice. "Alone" waits for each batch before it makes the next, so both sides make as many durable
//! writes: that is the fair ratio. "Ahead" has the next batch waiting, as an engine would; the writer may take two at once.

use std::collections::VecDeque;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Origin, ScheduleKey, StartId};
use punctual_store::{
    Batch, Bytes, Epoch, Expected, NewRun, NodeId, QueueKey, Reply, RunKey, RunWrite, Sequence, ShardId,
    Store, StoreError, TreeKey, TreeWrite, Unit,
};
use punctual_store_sqlite::{Options, Sqlite};
use rusqlite::Connection;

type Outcome<T> = Result<T, Box<dyn Error>>;

const SCHEDULES: usize = 100_000;
const STATE_BYTES: usize = 250;
const BODY_BYTES: usize = 160;
const QUEUE: i64 = 1;
/// Each figure is the best of this many rounds, since the disk is shared.
const ROUNDS: usize = 3;

fn main() -> Outcome<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "/tmp".into());
    let folder = tempfile::tempdir_in(folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (bare_path, store_path) = (folder.path().join("bare.db"), folder.path().join("store.db"));
    let mut plans = Vec::new();
    for path in [&bare_path, &store_path] {
        let store = Sqlite::open(path, Options::default())?;
        plans.push(runtime.block_on(Plan::fill(&store))?);
    }
    let store = Sqlite::open(&store_path, Options::default())?;
    let bare = open_bare(&bare_path)?;
    eprintln!("batch   bare units/s   store, alone  ratio   store, ahead  ratio");
    for (size, batches) in [(10, 500), (100, 300), (1_000, 80), (10_000, 10)] {
        let mut best = [0.0_f64; 3];
        for _ in 0..ROUNDS {
            let measured = [
                measure_bare(&bare, &mut plans[0], size, batches)?,
                runtime.block_on(measure_store(&store, &mut plans[1], size, batches, 1))?,
                runtime.block_on(measure_store(&store, &mut plans[1], size, batches, 2))?,
            ];
            best = std::array::from_fn(|side| best[side].max(measured[side]));
        }
        let [bare, alone, ahead] = best;
        let ratios = (alone / bare, ahead / bare);
        eprintln!("{size:>5} {bare:>14.0} {alone:>14.0} {:>6.2} {ahead:>14.0} {:>6.2}", ratios.0, ratios.1);
    }
    Ok(())
}

/// What comes next: schedules in a scattered order, as timers come due, and their sequences.
struct Plan {
    next: usize,
    first_tree: i64,
    next_run: i64,
    sequences: Vec<u64>,
    state: Bytes,
    body: Bytes,
}

/// One start.
struct Start {
    tree: i64,
    sequence: u64,
    run: i64,
    time: Timestamp,
}

impl Plan {
    /// Makes the schedules.
    async fn fill(store: &Sqlite) -> Outcome<Plan> {
        let first_tree = store.reserve(SCHEDULES as u32).await?;
        let state: Bytes = vec![7; STATE_BYTES].into();
        for chunk in (0..SCHEDULES as i64).collect::<Vec<_>>().chunks(10_000) {
            let units = chunk.iter().map(|place| {
                let key = ScheduleKey::new("default", &format!("schedule-{place:06}"));
                let expected = Expected::New { key, replaces: None };
                let definition = Some(vec![9; 400].into());
                let write = tree_write(first_tree + place, expected, None, state.clone());
                Unit { tree: Some(TreeWrite { definition, ..write }), runs: Vec::new(), request: None }
            });
            for answer in store.commit(Batch::of(units.collect())).await? {
                answer?;
            }
        }
        let body = vec![8; BODY_BYTES].into();
        let next_run = first_tree + SCHEDULES as i64;
        Ok(Plan { next: 0, first_tree, next_run, sequences: vec![1; SCHEDULES], state, body })
    }

    fn start(&mut self) -> Start {
        // Coprime to the number of schedules, so that every one has its turn.
        let place = self.next * 61_803 % SCHEDULES;
        self.next += 1;
        self.sequences[place] += 1;
        self.next_run += 1;
        Start {
            tree: self.first_tree + place as i64,
            sequence: self.sequences[place] - 1,
            run: self.next_run,
            time: Timestamp::UNIX_EPOCH + SignedDuration::from_millis(1_800_000_000_000 + self.next as i64),
        }
    }
}

fn tree_write(tree: i64, expected: Expected, epoch: Option<Epoch>, state: Bytes) -> TreeWrite {
    TreeWrite {
        tree: TreeKey(tree),
        shard: ShardId(0),
        epoch,
        expected,
        definition: None,
        view: None,
        state,
        completion: None,
        due_time: Some(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_800_000_000)),
        ledger: Vec::new(),
        retired: false,
    }
}

async fn measure_store(
    store: &Sqlite,
    plan: &mut Plan,
    size: usize,
    batches: usize,
    waiting_max: usize,
) -> Outcome<f64> {
    let lease = store.acquire(ShardId(0), NodeId("node".into()), SignedDuration::from_hours(1)).await?;
    let epoch = lease.map(|lease| lease.epoch);
    let no_key: Arc<str> = "".into();
    let batch = |plan: &mut Plan| {
        let units = (0..size).map(|_| {
            let Start { tree, sequence, run, time } = plan.start();
            let origin = Some((TreeKey(tree), StartId::new(time, Origin::Spec)));
            let queue = QueueKey(QUEUE);
            let body = plan.body.clone();
            let made = NewRun {
                run: RunKey(run),
                queue,
                origin,
                due_time: time,
                created_at: time,
                priority: 0,
                key: no_key.clone(),
                dedup: None,
                not_before: None,
                body,
            };
            let write = tree_write(tree, Expected::At(Sequence(sequence)), epoch, plan.state.clone());
            Unit { tree: Some(write), runs: vec![RunWrite::Insert(made)], request: None }
        });
        Batch::of(units.collect())
    };
    let begun = Instant::now();
    let mut waiting = VecDeque::new();
    for _ in 0..batches {
        waiting.push_back(store.commit(batch(plan)));
        if waiting.len() == waiting_max {
            finish(waiting.pop_front()).await?;
        }
    }
    finish(waiting.pop_front()).await?;
    Ok((size * batches) as f64 / begun.elapsed().as_secs_f64())
}

/// Waits for one batch, if there is one.
async fn finish(waiting: Option<Reply<'_, Vec<Result<(), StoreError>>>>) -> Outcome<()> {
    let Some(waiting) = waiting else { return Ok(()) };
    for answer in waiting.await? {
        answer?;
    }
    Ok(())
}

/// The store's own settings; see `src/open.rs`.
fn open_bare(path: &Path) -> rusqlite::Result<Connection> {
    let bare = Connection::open(path)?;
    bare.pragma_update(None, "journal_mode", "WAL")?;
    bare.pragma_update(None, "synchronous", "FULL")?;
    bare.pragma_update(None, "foreign_keys", false)?;
    bare.pragma_update(None, "cache_size", -24 * 1_024)?;
    bare.pragma_update(None, "wal_autocheckpoint", 16_384)?;
    Ok(bare)
}

fn measure_bare(bare: &Connection, plan: &mut Plan, size: usize, batches: usize) -> Outcome<f64> {
    let mut update = bare.prepare(include_str!("../queries/commit_update_state.sql"))?;
    let mut insert = bare.prepare(include_str!("../queries/commit_insert_plain_run.sql"))?;
    let due_time = 1_800_000_000_000_000_000_i64;
    let begun = Instant::now();
    for _ in 0..batches {
        bare.execute_batch("BEGIN IMMEDIATE")?;
        for _ in 0..size {
            let Start { tree, sequence, run, time } = plan.start();
            let changed = update.execute((tree, sequence as i64, due_time, &plan.state[..]))?;
            assert_eq!(changed, 1, "schedule {tree} was not at sequence {sequence}");
            let nanos = time.as_nanosecond() as i64;
            let (ms, body) = (time.as_millisecond(), &plan.body[..]);
            insert.execute((run, QUEUE, tree, ms, 0, ms, nanos, nanos, body))?;
        }
        bare.execute_batch("COMMIT")?;
    }
    Ok((size * batches) as f64 / begun.elapsed().as_secs_f64())
}
