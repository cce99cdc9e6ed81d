//! A disk that is full: nothing that was acknowledged is lost, and the server goes on when there is room again.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use punctual_api::v1;

use crate::plan::{NAMESPACE, QUEUE, queue};
use crate::process::Node;
use crate::set_up;

/// A small file system of its own, gone when this is dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=3m", "punctual-test"])
            .arg(folder.path())
            .status();
        mount.is_ok_and(|status| status.success()).then_some(SmallDisk(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_nothing_and_is_recovered_from() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("SKIPPED LOUDLY: no small file system can be mounted here, so a full disk was not tried");
        return;
    };
    let node = Node::start(&disk.path().join("small.db")).await;
    set_up(&node, &[queue()], &[]).await;
    let mut client = node.client();
    // Something that takes all the room that is left.
    let ballast = disk.path().join("ballast");
    let mut acknowledged = Vec::new();
    for index in 0..3 {
        client.schedules.create(create(index)).await.unwrap();
        acknowledged.push(index);
    }
    fill(&ballast);

    let begun = Instant::now();
    let (mut refused, mut index) = (0, 3);
    while refused == 0 {
        match client.schedules.create(create(index)).await {
            Ok(_) => acknowledged.push(index),
            Err(status) => {
                assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}");
                refused += 1;
            }
        }
        index += 1;
        assert!(begun.elapsed() < Duration::from_secs(60), "the disk is full, and nobody notices");
    }
    std::fs::remove_file(&ballast).unwrap();
    let begun = Instant::now();
    while let Err(status) = client.schedules.create(create(index)).await {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "there is room again, and nothing goes on: {status:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    acknowledged.push(index);

    for index in &acknowledged {
        let describe =
            v1::DescribeScheduleRequest { namespace: NAMESPACE.into(), schedule_id: format!("s{index}") };
        client.schedules.describe(describe).await.unwrap();
    }
    eprintln!(
        "full disk: {} schedules acknowledged, all there; the server went on by itself",
        acknowledged.len()
    );
    node.stop().await;
}

fn fill(ballast: &Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(ballast).unwrap();
    while file.write_all(&[7; 4_096]).is_ok() {}
}

fn create(index: usize) -> v1::CreateScheduleRequest {
    let note = "x".repeat(900);
    let action = v1::QueueAction { queue: QUEUE.into(), handler: note, ..Default::default() };
    let schedule = v1::Schedule {
        spec: Some(v1::Spec {
            crons: vec![v1::Cron { text: "0 0 1 1 *".into(), ..Default::default() }],
            ..Default::default()
        }),
        action: Some(v1::Action { kind: Some(v1::action::Kind::Queue(action)), ..Default::default() }),
        ..Default::default()
    };
    v1::CreateScheduleRequest {
        namespace: NAMESPACE.into(),
        schedule_id: format!("s{index}"),
        request_id: format!("create {index}"),
        schedule: Some(schedule),
        ..Default::default()
    }
}
