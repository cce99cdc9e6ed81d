//! A database that the release before has written: servers of this release that start on it at once go on with it, and nothing
//! is lost, doubled or read wrongly.

use std::collections::BTreeSet;
use std::path::Path;

use punctual_core::Action;
use punctual_store::record::{decode_schedule, encode_schedule};
use punctual_testkit::Postgres;
use rustix::process::Signal;

use super::server::TestServer;

/// A record as the release before wrote it.
fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../store/fixtures/v1/{name}.bin"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.trim().chars().collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap()).collect()
}

/// Makes of a database what the release before would have left: its schema, and its records of queues, actions and runs.
fn downgrade(postgres: &Postgres, database: &str) {
    let query = |sql: &str| postgres.query(database, sql).unwrap();
    let known = query("SELECT encode(definition, 'hex') FROM punctual.schedule");
    let mut schedule = decode_schedule(&bytes(&known)).unwrap();
    schedule.action = Action { payload: fixture("action").into(), ..schedule.action };
    query(&format!("UPDATE punctual.schedule SET definition = '\\x{}'", hex(&encode_schedule(&schedule))));
    query(&format!("UPDATE punctual.run_live SET body = '\\x{}'", hex(&fixture("body"))));
    query(&format!(
        "UPDATE punctual.queue SET settings = '\\x{}' WHERE name = 'work'",
        hex(&fixture("queue"))
    ));
    query("DROP FUNCTION punctual.tell; DROP TABLE punctual.channel, punctual.document");
    query("ALTER TABLE punctual.node DROP COLUMN report");
    query("UPDATE punctual.meta SET number = 1 WHERE name = 'version'");
}

/// The nominal times of a schedule's runs, in seconds.
fn seconds(server: &TestServer, schedule: &str) -> Vec<i64> {
    let found = server.json(&["run", "list", "--schedule", schedule, "--limit=1000"]);
    let time = |run: &serde_json::Value| run["nominal_time"].as_str().unwrap().parse::<jiff::Timestamp>();
    found["runs"].as_array().unwrap().iter().map(|run| time(run).unwrap().as_second()).collect()
}

#[test]
fn servers_of_this_release_go_on_with_what_the_one_before_wrote() {
    let postgres = Postgres::start_careless().expect("PostgreSQL starts");
    let database = postgres.create_database("before").unwrap();
    let directory = || tempfile::tempdir().unwrap();
    let start = || TestServer::start_on(&database, directory(), "127.0.0.1:0", &["--shard-lease=1s"]);

    let server = start();
    server.ok(&["queue", "create", "work"]);
    let every = ["schedule", "create", "nightly", "--every=1s", "--queue=work", "--overlap=allow_all"];
    server.ok(&every);
    server.runs_until("nightly", |runs| (runs.len() >= 2).then_some(()));
    server.process.signal(Signal::TERM);
    server.process.wait();
    let before = postgres.query("before", "SELECT count(*) FROM punctual.run_live").unwrap();
    downgrade(&postgres, "before");

    let servers = std::thread::scope(|scope| [0, 1].map(|_| scope.spawn(start)).map(|it| it.join().unwrap()));
    for server in &servers {
        let about = server.json(&["schedule", "describe", "nightly"]);
        let action = &about["schedule"]["action"]["queue"];
        assert_eq!((&action["queue"], &action["handler"]), (&"work".into(), &"report".into()), "{about:#}");
        assert!(server.ok(&["queue", "describe", "work"]).contains("nightly reports"));
    }
    let version =
        postgres.query("before", "SELECT number FROM punctual.meta WHERE name = 'version'").unwrap();
    assert_ne!(version.trim(), "1", "the schema is this release's");

    // Runs of before and of after are worked on, at whichever server, with what the old record says.
    let before: usize = before.trim().parse().unwrap();
    let runs_max = format!("--runs-max={}", before + 2);
    let exec = "--exec=test \"$PUNCTUAL_HANDLER\" = report && grep -q '\"day\":1'";
    for server in &servers {
        server.ok(&["worker", "--queue=work", exec, &runs_max]);
    }
    let closed =
        servers[1].json(&["run", "list", "--schedule=nightly", "--outcome=succeeded", "--limit=1000"]);
    assert!(closed["runs"].as_array().unwrap().len() >= 2 * (before + 2), "{closed:#}");
    let times = seconds(&servers[0], "nightly");
    let once: BTreeSet<i64> = times.iter().copied().collect();
    assert_eq!(once.len(), times.len(), "no occurrence has two runs: {times:?}");
    let (first, last) = (once.first().unwrap(), once.last().unwrap());
    assert_eq!((last - first + 1) as usize, once.len(), "no occurrence has none: {times:?}");
}

/// What the release after this one does to a database while servers of this one run: its schema is added to, and a record that only it
/// can read, which it would write a release later, is met.
#[test]
fn servers_go_on_beside_those_of_the_next_release_and_those_that_start_are_refused() {
    let postgres = Postgres::start_careless().expect("PostgreSQL starts");
    let database = postgres.create_database("after").unwrap();
    let query = |sql: &str| postgres.query("after", sql).unwrap();
    let server =
        TestServer::start_on(&database, tempfile::tempdir().unwrap(), "127.0.0.1:0", &["--shard-lease=1s"]);
    server.ok(&["queue", "create", "work"]);
    for name in ["readable", "unreadable"] {
        let create = ["schedule", "create", name, "--every=1s", "--queue=work", "--overlap=allow_all"];
        server.ok(&create);
        server.runs_until(name, |runs| (!runs.is_empty()).then_some(()));
    }

    for table in
        ["state", "schedule", "schedule_name", "run_live", "run_closed", "node", "lease", "queue", "ledger"]
    {
        query(&format!("ALTER TABLE punctual.{table} ADD COLUMN of_later bigint"));
    }
    query("UPDATE punctual.meta SET number = number + 1 WHERE name = 'version'");
    query(
        "UPDATE punctual.state SET bytes = set_byte(bytes, 0, 99), sequence = sequence + 1
        WHERE tree = (SELECT tree FROM punctual.schedule WHERE id = 'unreadable')",
    );

    let count = seconds(&server, "readable").len();
    server.runs_until("readable", |runs| (runs.len() >= count + 3).then_some(()));
    server.ok(&["worker", "--queue=work", "--exec=true", "--runs-max=3"]);
    let broken = || server.run(&["doctor", "--output", "json"]);
    let begun = std::time::Instant::now();
    while !super::text(&broken().stdout).contains("record version is 99") {
        assert!(begun.elapsed() < super::server::PATIENCE, "{:?}", broken());
    }
    let times = seconds(&server, "readable");
    let once: BTreeSet<i64> = times.iter().copied().collect();
    assert_eq!(once.len(), times.len(), "no occurrence has two runs: {times:?}");
    assert_eq!(
        (once.last().unwrap() - once.first().unwrap() + 1) as usize,
        once.len(),
        "none is missing: {times:?}"
    );

    let refused =
        super::server::bare(&["serve", "--listen=127.0.0.1:0", "--database", &database]).output().unwrap();
    assert_eq!(refused.status.code(), Some(8), "{refused:?}");
    assert!(super::text(&refused.stderr).contains("used by a later release"), "{refused:?}");
}
