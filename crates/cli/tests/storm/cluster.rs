//! Three nodes on one PostgreSQL, and nothing that happens to them or to it loses, doubles or hides a start.
//!
//! Nodes are killed, stopped, cut off, drained and joined by others, one has a clock that is two minutes off, and the database
//! crashes and drops its connections, while workers and clients turn to any node. Afterwards every occurrence has one outcome.

mod clients;
mod clock;
mod faults;
mod gaps;
mod narrow;
mod proxy;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clients::{Caller, Said, Told, impatient};
use faults::Weather;
use gaps::{Starts, share};
use proxy::Proxy;
use punctual_api::{Client, v1};
use punctual_testkit::Postgres;

use crate::plan::{Plan, QUEUE, plans, queue};
use crate::policies::Bounds;
use crate::process::{Node, Setting};
use crate::random::{self, Random};
use crate::workers::{Seen, Worker};
use crate::{drain, set_up, verify};

const DATABASE: &str = "storm";

/// How long a node that says nothing is believed to be alive.
const LEASE: Duration = Duration::from_secs(2);

/// How much longer than the lease a takeover may take here. In ten storms on a busy machine it was 0.6 s at most, and the goal
/// is one; but three servers, a database and their faults on two shared cores need room for pauses of the machine itself.
const TAKEOVER_MAX: Duration = Duration::from_secs(3);

/// How late a schedule may be that was given away in order. The goal is a tenth of a second, and half of them are late by a few
/// milliseconds; but all of this shares two cores, and a new process starts on them meanwhile. A hand-over that waits for a lease
/// is found: of one that is renewed three times in its length, two thirds are left at least.
const HAND_OVER_MAX: Duration = Duration::from_millis(1_300);

const BOUNDS: Bounds = Bounds {
    // As long as the database is down, or the way to it is frozen.
    late_max: Duration::from_secs(10),
    // Several takeovers in a row, each time before the new owner has asked: it was ten seconds once.
    stop_max: Duration::from_secs(20),
};

/// How long it may take until nothing is on its way any more: runs that hang end after four seconds, a few times.
const REST_MAX: Duration = Duration::from_secs(60);

const CLOCK_AHEAD_SECONDS: u64 = 120;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_doubled_or_unexplained_by_a_storm_over_a_cluster() {
    let seed = random::seed();
    eprintln!("cluster seed {seed}; repeat with STORM_SEED={seed}");
    let folder = tempfile::tempdir().unwrap().keep();
    eprintln!("logs of the nodes are in {}", folder.display());
    let mut weather = start(seed, &folder).await;
    let clients: Vec<Client> = weather.nodes.values().map(|node| impatient(&node.address())).collect();
    let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Seen::default()));
    let plans = all_plans();
    set_up(&weather.nodes["a"], &[queue(), narrow::queue()], &plans).await;
    let workers: Vec<_> = (0..12u64)
        .map(|index| (index, if index < 8 { QUEUE } else { narrow::QUEUE }))
        .map(|(index, queue)| {
            Worker::new(index, seed ^ index, queue, clients.clone(), stop.clone(), seen.clone())
        })
        .map(|worker| tokio::spawn(worker.run()))
        .collect();
    let people = People::start(seed, &clients);

    let begun = Instant::now();
    weather.storm().await;
    let stormy = begun.elapsed();

    let mut caller = people.caller("end", 0);
    let (told, mayflies) = people.stop().await;
    for plan in &plans {
        caller.pause(&plan.name).await;
    }
    seen.over.store(true, Ordering::SeqCst);
    let node = &weather.nodes["a"];
    come_to_rest(&weather.postgres).await;
    drain(node.client(), &plans).await;
    stop.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await.unwrap();
    }

    let everything: Vec<Plan> = plans.into_iter().chain(mayflies).collect();
    let report = verify::everything(&node.client(), &everything, &seen, BOUNDS).await;
    for (name, told) in &told {
        check_told(&node.client(), name, told).await;
    }
    let happened = &weather.happened;
    let (verbs, tries) =
        (caller.said.verbs.load(Ordering::Relaxed), caller.said.tries.load(Ordering::Relaxed));
    eprintln!("cluster: {happened:?} in {:.0} s", stormy.as_secs_f64());
    eprintln!("cluster: {report}; {verbs} verbs of clients acknowledged in {tries} tries");
    let deadlocks = weather.postgres.log().matches("deadlock detected").count();
    eprintln!("cluster: {deadlocks} deadlocks in the database");
    check_narrow(&weather, &seen).await;
    check_gaps(&weather);
    for node in std::mem::take(&mut weather.nodes).into_values() {
        node.stop().await;
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A database and three nodes: `b` with a wrong clock, `c` with a way to the database that can be cut.
async fn start(seed: u64, folder: &Path) -> Weather {
    let postgres = Postgres::start().unwrap();
    let database = postgres.create_database(DATABASE).unwrap();
    let proxy = Proxy::start(postgres.port()).await;
    let behind = database.replace(&format!(":{}/", postgres.port()), &format!(":{}/", proxy.port));
    let setting = |name: &str, database: &str| {
        let flags = ["--node", name, "--shards", "12", "--shard-lease", "2s", "--worker-lease", "2s"];
        Setting {
            database: database.into(),
            flags: flags.map(str::to_owned).to_vec(),
            environment: Vec::new(),
            log: Some(folder.join(name)),
        }
    };
    let mut wrong = setting("b", &database);
    clock::put_ahead(&mut wrong, CLOCK_AHEAD_SECONDS);
    let settings = [("a", setting("a", &database)), ("b", wrong), ("c", setting("c", &behind))];
    let mut nodes = BTreeMap::new();
    for (name, setting) in settings {
        nodes.insert(name, Node::launch(setting).await);
    }
    let ahead = clock::ahead(&folder.join("b"));
    assert!(ahead > CLOCK_AHEAD_SECONDS as i64 - 20, "the clock of b is {ahead} s ahead");
    Weather {
        random: Random(seed),
        postgres,
        proxy,
        nodes,
        another: setting("d", &database),
        blows: Vec::new(),
        calm_at: Instant::now(),
        happened: BTreeMap::new(),
    }
}

/// Those of the other storm, some to measure how long they wait, and some that clients change.
fn all_plans() -> Vec<Plan> {
    use v1::overlap::Policy;
    let probe = |index: usize| Plan {
        is_spread: true,
        ..Plan::every_second(&format!("{}{index}", gaps::PROBE), Policy::AllowAll)
    };
    let mut plans = plans();
    plans.extend((0..gaps::PROBES).map(probe));
    plans.extend(narrow::plans());
    plans.extend(DISTURBED.map(|(name, overlap)| Plan::every_second(name, overlap)));
    plans
}

const DISTURBED: [(&str, v1::overlap::Policy); 4] = [
    ("disturbed-skip", v1::overlap::Policy::Skip),
    ("disturbed-buffer-one", v1::overlap::Policy::BufferOne),
    ("disturbed-buffer-all", v1::overlap::Policy::BufferAll),
    ("disturbed-allow-all", v1::overlap::Policy::AllowAll),
];

/// Clients that do things to schedules while the storm is on.
struct People {
    stop: Arc<AtomicBool>,
    said: Arc<Said>,
    clients: Vec<Client>,
    seed: u64,
    disturbing: Vec<tokio::task::JoinHandle<(String, Told)>>,
    creating: Vec<tokio::task::JoinHandle<Vec<Plan>>>,
}

impl People {
    fn start(seed: u64, clients: &[Client]) -> People {
        let mut people = People {
            stop: Arc::default(),
            said: Arc::default(),
            clients: clients.to_vec(),
            seed,
            disturbing: Vec::new(),
            creating: Vec::new(),
        };
        for (index, (name, _)) in DISTURBED.iter().enumerate() {
            let caller = people.caller(name, index as u64);
            people.disturbing.push(tokio::spawn(caller.disturb((*name).to_owned())));
        }
        for index in 0..2 {
            let caller = people.caller(&format!("mayfly-{index}"), 100 + index);
            people.creating.push(tokio::spawn(caller.create_and_delete()));
        }
        people
    }

    fn caller(&self, name: &str, index: u64) -> Caller {
        Caller {
            name: name.into(),
            random: Random(self.seed.wrapping_add(0x1000 + index)),
            clients: self.clients.clone(),
            stop: self.stop.clone(),
            said: self.said.clone(),
        }
    }

    async fn stop(self) -> (Vec<(String, Told)>, Vec<Plan>) {
        self.stop.store(true, Ordering::SeqCst);
        let (mut told, mut made) = (Vec::new(), Vec::new());
        for task in self.disturbing {
            told.push(task.await.unwrap());
        }
        for task in self.creating {
            made.extend(task.await.unwrap());
        }
        (told, made)
    }
}

/// Waits until no run is live, also those of schedules that are deleted.
async fn come_to_rest(postgres: &Postgres) {
    let begun = Instant::now();
    loop {
        let live = postgres.query(DATABASE, "SELECT count(*) FROM punctual.run_live").unwrap();
        if live.trim() == "0" {
            return;
        }
        if begun.elapsed() > REST_MAX {
            let runs = "SELECT run, tree, state, attempt, stop, keeper, worker, created_at, since, not_before
                FROM punctual.run_live ORDER BY run LIMIT 20";
            let (runs, nodes) =
                (postgres.query(DATABASE, runs), postgres.query(DATABASE, "TABLE punctual.node"));
            panic!("runs do not come to rest:\n{}nodes:\n{}", runs.unwrap(), nodes.unwrap());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn check_narrow(weather: &Weather, seen: &Seen) {
    let mut runs = Vec::new();
    for plan in narrow::plans() {
        runs.extend(verify::runs(&weather.nodes["a"].client(), &plan.name).await);
    }
    let stored = narrow::Stored::read(&weather.postgres);
    let found = narrow::check(&runs, &seen.held.lock().unwrap(), stored);
    eprintln!("cluster: queue with limits: {}", found.unwrap_or_else(|wrong| panic!("{wrong}")));
}

fn check_gaps(weather: &Weather) {
    let gaps = Starts::read(&weather.postgres).gaps(&weather.blows);
    for (kind, gaps) in &gaps {
        eprintln!("cluster: lease of {} s, node {kind}: {gaps}", LEASE.as_secs());
    }
    for (kind, gaps) in &gaps {
        let latest = share(&gaps.lateness, 99);
        if *kind == faults::HANDED_OVER {
            assert!(latest < HAND_OVER_MAX, "{kind}: {gaps}");
        } else {
            assert!(share(&gaps.silences, 99).max(latest) < LEASE + TAKEOVER_MAX, "{kind}: {gaps}");
        }
    }
}

/// Each acknowledged trigger has one outcome, and what was paused started nothing by itself.
async fn check_told(client: &Client, name: &str, told: &Told) {
    let runs = verify::runs(client, name).await;
    let ledger = verify::ledger(client, name).await;
    let asked_for = |origin: v1::origin::Kind| origin == v1::origin::Kind::Request;
    let started = runs.iter().filter(|run| asked_for(run.origin())).count();
    let refused: u64 = ledger.iter().filter(|entry| asked_for(entry.origin())).map(|entry| entry.count).sum();
    assert_eq!(started + refused as usize, told.triggers, "{name}: triggers");
    for (paused_at, resumed_at) in &told.pauses {
        let within = |run: &&v1::Run| {
            let second = run.nominal_time.as_ref().unwrap().seconds;
            paused_at.as_second() < second && second < resumed_at.as_second() && !asked_for(run.origin())
        };
        let wrong: Vec<_> = runs.iter().filter(within).map(|run| &run.run_id).collect();
        assert!(wrong.is_empty(), "{name} was paused from {paused_at} to {resumed_at}: {wrong:?}");
    }
}
