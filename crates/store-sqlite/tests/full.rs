//! A full disk: whoever asks is told, nothing is half written, and the store goes on when there is room again.

use std::path::{Path, PathBuf};
use std::process::Command;

use jiff::Timestamp;
use punctual_store::{Batch, NewRun, QueueKey, RunKey, RunWrite, Store, StoreError, Unit};
use punctual_store_sqlite::{Options, Sqlite};

/// A small file system, unmounted in the end.
struct Disk(PathBuf);

impl Disk {
    fn mount(folder: &Path) -> Option<Disk> {
        let path = folder.join("disk");
        std::fs::create_dir(&path).expect("a folder is made");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=6m", "none"]).arg(&path).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(Disk(path))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

fn batch(first: i64) -> Batch {
    let unit = |run| {
        let made = NewRun {
            run: RunKey(run),
            queue: QueueKey(1),
            origin: None,
            due_time: Timestamp::UNIX_EPOCH,
            created_at: Timestamp::UNIX_EPOCH,
            priority: 0,
            key: "".into(),
            dedup: None,
            not_before: None,
            body: vec![1; 10_000].into(),
        };
        Unit { tree: None, runs: vec![RunWrite::Insert(made)], request: None }
    };
    Batch::of(vec![unit(first), unit(first + 1)])
}

#[tokio::test]
async fn the_store_recovers_when_there_is_room_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(disk) = Disk::mount(folder.path()) else {
        eprintln!(
            "NOT TESTED: no small file system can be mounted here, so nothing is known about full disks"
        );
        return;
    };
    let ballast = disk.0.join("ballast");
    std::fs::write(&ballast, vec![0; 3 << 20]).expect("there is room");
    let path = disk.0.join("punctual.db");
    let store = Sqlite::open(&path, Options::default()).expect("there is room");
    let mut written = 0;
    let refusal = loop {
        match store.commit(batch(written + 1)).await {
            Ok(answers) => assert!(answers.iter().all(Result::is_ok)),
            Err(refusal) => break refusal,
        }
        written += 2;
        assert!(written < 10_000, "the disk is never full");
    };
    assert!(matches!(&refusal, StoreError::Unavailable { reason } if reason.contains("full")), "{refusal}");
    for _ in 0..5 {
        assert!(store.commit(batch(written + 1)).await.is_err(), "it is still full");
        let live = store.live_runs(Default::default(), None, usize::MAX).await.expect("it can still be read");
        assert_eq!(live.len() as i64, written, "nothing is half written");
    }
    assert_eq!(store.queue_depth(QueueKey(1)).await.map(|depth| depth.ready), Ok(written as u64));

    std::fs::remove_file(&ballast).expect("room is made");

    let answers = store.commit(batch(written + 1)).await.expect("there is room again");
    assert!(answers.iter().all(Result::is_ok));
    drop(store);
    let store = Sqlite::open(&path, Options::default()).expect("the file is whole");
    let live = store.live_runs(Default::default(), None, usize::MAX).await.expect("the store answers");
    assert_eq!(live.len() as i64, written + 2);
}
