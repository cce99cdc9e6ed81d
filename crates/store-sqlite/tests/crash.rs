//! What was answered is there, although the process was killed at any moment.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use jiff::Timestamp;
use punctual_core::ScheduleKey;
use punctual_store::{
    Batch, Expected, NewRun, QueueKey, RunKey, RunWrite, Sequence, ShardId, Store, StoreError, TreeKey,
    TreeRef, TreeWrite, Unit,
};
use punctual_store_sqlite::{Options, Sqlite};

const FILE: &str = "PUNCTUAL_CRASH_FILE";
const KILLS: usize = 20;
const SCHEDULES: i64 = 8;

fn write(tree: i64, expected: Expected, state: u64) -> TreeWrite {
    TreeWrite {
        tree: TreeKey(tree),
        shard: ShardId(0),
        epoch: None,
        expected,
        definition: None,
        view: None,
        state: state.to_le_bytes().to_vec().into(),
        completion: None,
        due_time: None,
        ledger: Vec::new(),
        retired: false,
    }
}

/// What the child does until it is killed: advances schedules, one run each, and says so after each answer.
async fn commit_for_ever(path: &Path) -> Result<(), StoreError> {
    let store = Sqlite::open(path, Options::default()).expect("the lock of the killed is gone");
    let mut sequences = Vec::new();
    for tree in 1..=SCHEDULES {
        let loaded = store.load(vec![TreeRef::Key(TreeKey(tree))]).await?.remove(0);
        if loaded.is_none() {
            let expected = Expected::New { key: ScheduleKey::new("n", &tree.to_string()), replaces: None };
            let unit = Unit { tree: Some(write(tree, expected, 1)), runs: Vec::new(), request: None };
            store.commit(Batch::of(vec![unit])).await?.remove(0)?;
        }
        sequences.push(loaded.map_or(1, |stored| stored.sequence.0));
    }
    loop {
        let first = store.reserve(SCHEDULES as u32).await?;
        let units = (1..=SCHEDULES).zip(&sequences).map(|(tree, sequence)| {
            let made = NewRun {
                run: RunKey(first + tree),
                queue: QueueKey(1),
                origin: None,
                due_time: Timestamp::UNIX_EPOCH,
                created_at: Timestamp::UNIX_EPOCH,
                priority: 0,
                key: "".into(),
                dedup: None,
                not_before: None,
                body: [0; 100].into(),
            };
            let tree = Some(write(tree, Expected::At(Sequence(*sequence)), sequence + 1));
            Unit { tree, runs: vec![RunWrite::Insert(made)], request: None }
        });
        for answer in store.commit(Batch::of(units.collect())).await? {
            answer?;
        }
        sequences.iter_mut().for_each(|sequence| *sequence += 1);
        eprintln!("{}", sequences[0]);
    }
}

#[tokio::test]
async fn no_answered_commit_is_lost_by_a_kill() {
    if let Some(path) = std::env::var_os(FILE) {
        commit_for_ever(Path::new(&path)).await.expect("the child commits until it is killed");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("punctual.db");
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "no_answered_commit_is_lost_by_a_kill", "--nocapture"])
            .env(FILE, &path)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the child begins");
        let said = child.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(said).lines();
        let mut last = 0;
        for line in lines.by_ref().take(3 + kill * 7) {
            let line = line.expect("the child writes text");
            last = line.parse::<u64>().unwrap_or_else(|_| panic!("the child said {line}"));
        }
        child.kill().expect("the child is killed");
        child.wait().expect("the child ends");
        // What it said between the last line we waited for and its death counts too.
        last = lines.filter_map(|line| line.ok()?.parse().ok()).last().unwrap_or(last);

        let store = Sqlite::open(&path, Options::default()).expect("the file is whole");
        let refs = (1..=SCHEDULES).map(|tree| TreeRef::Key(TreeKey(tree))).collect();
        let trees = store.load(refs).await.expect("the store answers");
        let live = store.live_runs(Default::default(), None, usize::MAX).await.expect("the store answers");
        let sequences: Vec<u64> =
            trees.into_iter().map(|tree| tree.expect("it was made").sequence.0).collect();
        assert!(sequences[0] >= last, "{last} was answered, {} is there", sequences[0]);
        assert!(
            sequences.iter().all(|sequence| *sequence == sequences[0]),
            "a batch is whole: {sequences:?}"
        );
        let starts = sequences.iter().map(|sequence| sequence - 1).sum::<u64>();
        assert_eq!(live.len() as u64, starts, "every advance has its run");
    }
}
