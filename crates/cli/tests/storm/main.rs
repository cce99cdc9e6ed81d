//! Nothing is lost, doubled or unexplained when the server is killed a hundred times under load.
//!
//! A real server on a real file, killed with SIGKILL at random moments, stopped for longer than every lease, and started again;
//! workers that work, die, hang and answer twice. Afterwards the ledger, the runs and what workers received are compared.

mod calls;
mod cluster;
mod disk;
mod process;
mod random;
mod verify;
mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use process::Node;
use punctual_api::{Client, v1};
use random::Random;
use workers::{Seen, Worker};

/// How long the end of a run may be on its way to its schedule: its time is read when the report arrives, and the schedule may
/// decide about an occurrence before it hears of it.
const LATE_MAX: Duration = Duration::from_millis(250);

const KILLS: usize = 100;
const QUEUE: &str = "storm";
const NAMESPACE: &str = "default";

/// What is on while the server is killed: every overlap policy, alone and with room for two.
struct Plan {
    name: String,
    overlap: v1::overlap::Policy,
    concurrency: u32,
    every_seconds: i64,
}

fn plans() -> Vec<Plan> {
    use v1::overlap::Policy;
    let policies = [
        ("skip", Policy::Skip),
        ("buffer-one", Policy::BufferOne),
        ("buffer-all", Policy::BufferAll),
        ("cancel-other", Policy::CancelOther),
        ("terminate-other", Policy::TerminateOther),
        ("allow-all", Policy::AllowAll),
    ];
    let mut plans = Vec::new();
    for (word, overlap) in policies {
        for concurrency in [1, 2] {
            for every_seconds in [1, 3] {
                let name = format!("{word}-{concurrency}-every-{every_seconds}");
                plans.push(Plan { name, overlap, concurrency, every_seconds });
            }
        }
    }
    plans
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_doubled_or_unexplained_by_a_hundred_kills() {
    let seed = random::seed();
    eprintln!("storm seed {seed}; repeat with STORM_SEED={seed}");
    let mut random = Random(seed);
    let folder = tempfile::tempdir().unwrap();
    let mut node = Node::start(&folder.path().join("storm.db")).await;
    let plans = plans();
    set_up(&node, &plans).await;
    let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Seen::default()));
    let workers: Vec<_> = (0..8u64)
        .map(|index| {
            let worker = Worker::new(index, seed ^ index, vec![node.client()], stop.clone(), seen.clone());
            tokio::spawn(worker.run())
        })
        .collect();

    let begun = Instant::now();
    let mut downtime = Duration::ZERO;
    let mut round = 0;
    while node.kills < KILLS {
        round += 1;
        // Moments are random so that a kill falls anywhere between two writes.
        tokio::time::sleep(Duration::from_millis(random.below(900))).await;
        if round % 40 == 20 {
            // Longer than the leases of shards and workers.
            node.freeze(Duration::from_secs(7)).await;
            continue;
        }
        if round % 25 == 10 {
            node.second_process_is_refused();
        }
        let down = Instant::now();
        node.kill();
        node.restart().await;
        downtime += down.elapsed();
    }
    let stormy = begun.elapsed();

    for plan in &plans {
        pause(&node, &plan.name).await;
    }
    drain(node.client(), &plans).await;
    stop.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await.unwrap();
    }
    let report = verify::everything(&node.client(), &plans, &seen, LATE_MAX).await;
    eprintln!(
        "storm: {} kills in {:.0} s ({:.1} s down in all), {report}",
        node.kills,
        stormy.as_secs_f64(),
        downtime.as_secs_f64()
    );
    node.stop().await;
}

async fn set_up(node: &Node, plans: &[Plan]) {
    let mut client = node.client();
    let queue = v1::CreateQueueRequest {
        namespace: NAMESPACE.into(),
        queue: Some(v1::Queue { queue: QUEUE.into(), ..Default::default() }),
        request_id: "queue".into(),
    };
    client.queues.create(queue).await.unwrap();
    for plan in plans {
        client.schedules.create(plan.create()).await.unwrap();
    }
}

impl Plan {
    fn create(&self) -> v1::CreateScheduleRequest {
        let seconds = |seconds: i64| Some(prost_types::Duration { seconds, nanos: 0 });
        let action = v1::QueueAction {
            queue: QUEUE.into(),
            handler: "work".into(),
            retry: Some(v1::RetryPolicy {
                attempts_max: Some(50),
                backoff_first: seconds(0),
                ..Default::default()
            }),
            timeouts: Some(v1::Timeouts {
                start_to_close: seconds(4),
                heartbeat: seconds(2),
                ..Default::default()
            }),
            ..Default::default()
        };
        let interval = v1::Interval { every: seconds(self.every_seconds), ..Default::default() };
        let schedule = v1::Schedule {
            spec: Some(v1::Spec { intervals: vec![interval], ..Default::default() }),
            action: Some(v1::Action { kind: Some(v1::action::Kind::Queue(action)), ..Default::default() }),
            policies: Some(v1::Policies {
                overlap: self.overlap.into(),
                concurrency: Some(self.concurrency),
                ..Default::default()
            }),
            ..Default::default()
        };
        v1::CreateScheduleRequest {
            namespace: NAMESPACE.into(),
            schedule_id: self.name.clone(),
            request_id: format!("create {}", self.name),
            schedule: Some(schedule),
            ..Default::default()
        }
    }
}

async fn pause(node: &Node, name: &str) {
    let pause = v1::PauseScheduleRequest {
        namespace: NAMESPACE.into(),
        schedule_id: name.into(),
        request_id: format!("pause {name}"),
        ..Default::default()
    };
    node.client().schedules.pause(pause).await.unwrap();
}

/// Waits until no schedule has anything on its way.
async fn drain(mut client: Client, plans: &[Plan]) {
    let begun = Instant::now();
    for plan in plans {
        loop {
            let describe =
                v1::DescribeScheduleRequest { namespace: NAMESPACE.into(), schedule_id: plan.name.clone() };
            let description =
                client.schedules.describe(describe).await.unwrap().into_inner().description.unwrap();
            if description.in_progress.is_empty() && description.buffered.is_empty() {
                break;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "{} does not come to rest: {} in progress, {} waiting",
                plan.name,
                description.in_progress.len(),
                description.buffered.len()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
