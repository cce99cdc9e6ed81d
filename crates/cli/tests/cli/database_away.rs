//! Servers whose database is down, or takes only reads, say that they are not ready and why; when it is back they go on by
//! themselves, and nothing that was acknowledged is lost.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use jiff::Timestamp;
use punctual_testkit::Postgres;
use serde_json::Value;

use super::server::{PATIENCE, TestServer, bare, until};
use super::text;

/// The exit code of a command that nobody answered, or not in time.
const UNAVAILABLE: i32 = 5;

fn start_two(database: &str) -> [TestServer; 2] {
    ["left", "right"].map(|node| {
        let node = format!("--node={node}");
        TestServer::start_on(
            database,
            tempfile::tempdir().unwrap(),
            "127.0.0.1:0",
            &["--shard-lease=1s", &node],
        )
    })
}

/// Whether it is ready, and if not, why.
fn trouble(server: &TestServer) -> Option<String> {
    let said = server.fetch("/readyz");
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {said}"));
    let is_ready = head.starts_with("HTTP/1.1 200");
    assert!(is_ready || head.starts_with("HTTP/1.1 503"), "{said}");
    assert_eq!(body["ready"], is_ready, "{said}");
    (!is_ready).then(|| body["reason"].as_str().unwrap_or_else(|| panic!("found {said}")).to_owned())
}

#[track_caller]
fn until_ready(servers: &[TestServer]) {
    for server in servers {
        until(|| trouble(server).map_or(Ok(()), Err));
    }
}

/// Somebody who makes schedules at one server until told to stop.
struct Maker<'t> {
    address: &'t str,
    name: &'t str,
    /// How many have been acknowledged to all makers.
    count: &'t AtomicUsize,
    stop: &'t AtomicBool,
}

impl Maker<'_> {
    /// Gives those that were acknowledged. Whoever is refused is told to come again, or is not answered in time.
    fn make(self) -> BTreeSet<String> {
        let mut acknowledged = BTreeSet::new();
        for number in 0.. {
            if self.stop.load(Ordering::SeqCst) {
                break;
            }
            let id = format!("{}-{number}", self.name);
            let create = ["schedule", "create", &id, "--manual", "--queue=work", "--timeout=3s"];
            let output = bare(&create).env("PUNCTUAL_ADDRESS", self.address).output().unwrap();
            match output.status.code() {
                Some(0) => {
                    acknowledged.insert(id);
                    self.count.fetch_add(1, Ordering::SeqCst);
                }
                code => assert_eq!(code, Some(UNAVAILABLE), "{}", text(&output.stderr)),
            }
        }
        acknowledged
    }
}

/// Gives what was acknowledged while somebody made schedules at both servers before this happened, meanwhile, and afterwards.
fn meanwhile(servers: &[TestServer; 2], happens: impl FnOnce()) -> BTreeSet<String> {
    let (stop, count) = (&AtomicBool::new(false), &AtomicUsize::new(0));
    let addresses = servers.each_ref().map(|server| &server.address[..]);
    let makers = [("left", addresses[0]), ("right", addresses[1])];
    let makers = makers.map(|(name, address)| Maker { address, name, count, stop });
    std::thread::scope(|scope| {
        let making = makers.map(|maker| scope.spawn(|| maker.make()));
        let some_more = || {
            let enough = count.load(Ordering::SeqCst) + 5;
            until(|| {
                let found = count.load(Ordering::SeqCst);
                (found >= enough)
                    .then_some(())
                    .ok_or_else(|| format!("{found} of {enough} were acknowledged"))
            });
        };
        let happened = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            some_more();
            happens();
            some_more();
        }));
        // Whatever happened, they stop.
        stop.store(true, Ordering::SeqCst);
        let made = making.into_iter().flat_map(|making| making.join().unwrap()).collect();
        happened.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        made
    })
}

/// The seconds that a schedule has started for by itself.
fn seconds(server: &TestServer, schedule: &str) -> BTreeSet<i64> {
    let found = server.json(&["run", "list", "--schedule", schedule, "--limit=1000"]);
    let runs = found["runs"].as_array().unwrap().iter().filter(|run| run["origin"] == "spec");
    let second =
        |run: &Value| run["nominal_time"].as_str().unwrap().parse::<Timestamp>().unwrap().as_second();
    let all: Vec<i64> = runs.map(second).collect();
    let once: BTreeSet<i64> = all.iter().copied().collect();
    assert_eq!(once.len(), all.len(), "no second has two runs: {all:?}");
    once
}

/// A schedule that starts every second goes on, and has started every second.
#[track_caller]
fn goes_on(server: &TestServer, schedule: &str) {
    let last = seconds(server, schedule).last().copied();
    until(|| {
        let now = seconds(server, schedule).last().copied();
        (now > last).then_some(()).ok_or_else(|| format!("no start since {last:?}"))
    });
    let seconds = seconds(server, schedule);
    let (first, last) = (seconds.first().unwrap(), seconds.last().unwrap());
    assert_eq!((last - first + 1) as usize, seconds.len(), "every second has one: {seconds:?}");
}

#[track_caller]
fn are_there(server: &TestServer, acknowledged: &BTreeSet<String>) {
    let found = server.json(&["schedule", "list", "--limit=1000"]);
    let found: BTreeSet<&str> =
        found["schedules"].as_array().unwrap().iter().map(|it| it["schedule_id"].as_str().unwrap()).collect();
    let lost: Vec<_> = acknowledged.iter().filter(|id| !found.contains(&id[..])).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
}

fn set_up(servers: &[TestServer; 2]) {
    servers[0].ok(&["queue", "create", "work"]);
    for number in 0..4 {
        let name = format!("every-second-{number}");
        servers[0].ok(&["schedule", "create", &name, "--every=1s", "--queue=work", "--overlap=allow_all"]);
    }
}

#[track_caller]
fn all_is_well(servers: &[TestServer; 2], acknowledged: &BTreeSet<String>) {
    until_ready(servers);
    for server in servers {
        (0..4).for_each(|number| goes_on(server, &format!("every-second-{number}")));
        are_there(server, acknowledged);
    }
}

/// Waits until both have said that they are not ready, and why; gives the reasons.
#[track_caller]
fn until_not_ready(servers: &[TestServer; 2]) -> Vec<String> {
    let give_up = Instant::now() + PATIENCE;
    let mut reasons = [None, None];
    while reasons.iter().any(Option::is_none) {
        assert!(Instant::now() < give_up, "a server is ready without its database: {reasons:?}");
        for (server, reason) in servers.iter().zip(&mut reasons) {
            assert!(server.fetch("/healthz").starts_with("HTTP/1.1 200"), "it lives");
            *reason = reason.take().or_else(|| trouble(server));
        }
    }
    reasons.into_iter().flatten().collect()
}

#[test]
fn servers_are_not_ready_while_their_database_is_down_and_go_on_without_a_restart() {
    let mut postgres = Postgres::start_careless().expect("PostgreSQL starts");
    let servers = start_two(&postgres.create_database("down").unwrap());
    set_up(&servers);
    until_ready(&servers);

    let acknowledged = meanwhile(&servers, || {
        // It is back within a second, so that one look may come too late.
        let crash = AtomicBool::new(true);
        let reasons = std::thread::scope(|scope| {
            scope.spawn(|| {
                let give_up = Instant::now() + PATIENCE;
                while crash.load(Ordering::SeqCst) && Instant::now() < give_up {
                    postgres.crash_and_restart().unwrap();
                }
            });
            let reasons = until_not_ready(&servers);
            crash.store(false, Ordering::SeqCst);
            reasons
        });
        assert_eq!(reasons, ["the database does not answer"; 2]);
        until_ready(&servers);
    });

    all_is_well(&servers, &acknowledged);
}

#[test]
fn servers_are_not_ready_while_their_database_takes_only_reads_and_go_on_when_it_takes_writes() {
    let postgres = Postgres::start_careless().expect("PostgreSQL starts");
    let servers = start_two(&postgres.create_database("reads").unwrap());
    set_up(&servers);
    until_ready(&servers);
    // Connections stay: each obeys from its next transaction on.
    let read_only = |word: &str| {
        let set = format!("ALTER SYSTEM SET default_transaction_read_only = {word}");
        postgres.query("postgres", &set).unwrap();
        postgres.query("postgres", "SELECT pg_reload_conf()").unwrap();
    };

    let acknowledged = meanwhile(&servers, || {
        read_only("on");
        let reasons = until_not_ready(&servers);
        assert_eq!(reasons, ["the database does not answer"; 2]);
        for server in &servers {
            let output = server.run(&["schedule", "trigger", "every-second-0", "--timeout=2s"]);
            assert_eq!(output.status.code(), Some(UNAVAILABLE), "{}", text(&output.stderr));
            // It stays so for as long as the database does.
            assert!(trouble(server).is_some());
        }
        read_only("off");
        until_ready(&servers);
    });

    all_is_well(&servers, &acknowledged);
}
