//! Nothing is lost, doubled or unexplained when the server is killed a hundred times under load.
//!
//! A real server on a real file, killed with SIGKILL at random moments, stopped for longer than every lease, and started again;
//! workers that work, die, hang and answer twice. Afterwards the ledger, the runs and what workers received are compared.

mod calls;
mod cluster;
mod disk;
mod plan;
mod policies;
mod process;
mod random;
mod verify;
mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plan::{NAMESPACE, Plan, QUEUE, plans};
use policies::Bounds;
use process::Node;
use punctual_api::{Client, v1};
use random::Random;
use workers::{Seen, Worker};

const BOUNDS: Bounds = Bounds {
    // The time of an end is read when the report arrives, and the schedule may decide about an occurrence before it hears of it.
    late_max: Duration::from_millis(250),
    // A process may be stopped for seven seconds, and killed several times before it has asked.
    stop_max: Duration::from_secs(20),
};

const KILLS: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_doubled_or_unexplained_by_a_hundred_kills() {
    let seed = random::seed();
    eprintln!("storm seed {seed}; repeat with STORM_SEED={seed}");
    let mut random = Random(seed);
    let folder = tempfile::tempdir().unwrap();
    let mut node = Node::start(&folder.path().join("storm.db")).await;
    let plans = plans();
    set_up(&node, &[plan::queue()], &plans).await;
    let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Seen::default()));
    let workers: Vec<_> = (0..8u64)
        .map(|index| {
            let worker =
                Worker::new(index, seed ^ index, QUEUE, vec![node.client()], stop.clone(), seen.clone());
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
    seen.over.store(true, Ordering::SeqCst);
    drain(node.client(), &plans).await;
    stop.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await.unwrap();
    }
    let report = verify::everything(&node.client(), &plans, &seen, BOUNDS).await;
    eprintln!(
        "storm: {} kills in {:.0} s ({:.1} s down in all), {report}",
        node.kills,
        stormy.as_secs_f64(),
        downtime.as_secs_f64()
    );
    node.stop().await;
}

async fn set_up(node: &Node, queues: &[v1::Queue], plans: &[Plan]) {
    let mut client = node.client();
    for queue in queues {
        let create = v1::CreateQueueRequest {
            namespace: NAMESPACE.into(),
            queue: Some(queue.clone()),
            request_id: format!("queue {}", queue.queue),
        };
        client.queues.create(create).await.unwrap();
    }
    for plan in plans {
        client.schedules.create(plan.create()).await.unwrap();
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
