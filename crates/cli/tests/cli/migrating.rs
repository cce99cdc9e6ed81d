//! `migrate`: a server goes on with PostgreSQL where it was with its file, and nothing starts twice.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use punctual_testkit::Postgres;
use rustix::process::Signal;
use serde_json::Value;

use super::server::{PATIENCE, Process, TestServer, bare};
use super::text;

/// One server for all tests here.
fn postgres() -> &'static Postgres {
    static POSTGRES: OnceLock<Postgres> = OnceLock::new();
    POSTGRES.get_or_init(|| Postgres::start_careless().expect("PostgreSQL starts"))
}

fn migrate(source: &str, target: &str, more: &[&str]) -> Output {
    bare(&[&["migrate", source, target], more].concat()).output().unwrap()
}

fn source_of(server: &TestServer) -> String {
    format!("sqlite:{}", server.directory.path().join("punctual.db").display())
}

/// Nominal time and number of each run of a schedule.
fn starts(server: &TestServer, schedule: &str) -> Vec<(String, String)> {
    let found = server.json(&["run", "list", "--schedule", schedule, "--limit=1000"]);
    let text = |run: &Value, name: &str| run[name].as_str().unwrap_or_default().to_owned();
    let runs = found["runs"].as_array().unwrap().iter();
    runs.map(|run| (text(run, "nominal_time"), text(run, "run_id"))).collect()
}

#[test]
fn a_server_goes_on_where_it_was() {
    let server = TestServer::start();
    server.ok(&["queue", "create", "mail", "--concurrency=3", "--rate=5/1m", "--key-concurrency=1"]);
    server.ok(&["queue", "create", "ticks"]);
    server.ok(&["schedule", "create", "tick", "--every=1s", "--queue=ticks", "--overlap=allow_all"]);
    for overlap in ["skip", "buffer_one", "buffer_all", "cancel_other", "terminate_other"] {
        server.ok(&["schedule", "create", overlap, "--every=2s", "--queue=ticks", "--overlap", overlap]);
    }
    server.ok(&["schedule", "create", "sleeping", "@daily", "--paused=until Monday"]);
    server.ok(&["run", "enqueue", "--queue=mail", "--handler=send", "--count=9", "--attempts=1"]);
    server.ok(&["worker", "--queue=mail", "--exec=exit 65", "--runs-max=1"]);
    let holder = server.spawn(&["worker", "--queue=mail", "--exec=sleep 600", "--worker-id=w1"]);
    holder.hears("attempt 1 begins");
    server.runs_until("tick", |runs| (runs.len() >= 3).then_some(()));
    server.ok(&["worker", "--queue=ticks", "--exec=true", "--runs-max=5"]);

    let (source, target) = (source_of(&server), postgres().create_database("goes_on").unwrap());
    let output = migrate(&source, &target, &[]);
    assert_eq!(output.status.code(), Some(8), "a server has the file");
    assert!(text(&output.stderr).contains("is in use by process "), "{}", text(&output.stderr));
    holder.signal(Signal::KILL);
    let before = starts(&server, "tick");
    let about = ["sleeping", "skip", "buffer_all"]
        .map(|id| server.json(&["schedule", "describe", id])["schedule"].clone());
    server.process.signal(Signal::TERM);
    server.process.wait();

    let output = migrate(&source, &target, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.starts_with("table          rows  seconds\nqueue          3     "), "{said}");
    for part in [
        "compared every one",
        "start the server with: punctual serve --database postgresql://",
        "keep it as a backup",
    ] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    let again = migrate(&source, &target, &["--output=json"]);
    let again: Value = serde_json::from_str(text(&again.stdout)).unwrap();
    assert_eq!((&again["was_finished"], again["tables"].as_array().unwrap().len()), (&Value::Bool(true), 15));

    let server = TestServer::start_on(&target, server.directory, "127.0.0.1:0", &["--worker-lease=1s"]);
    assert_eq!(server.ok(&["schedule", "count"]), "7\n");
    let now = ["sleeping", "skip", "buffer_all"]
        .map(|id| server.json(&["schedule", "describe", id])["schedule"].clone());
    for (before, now) in about.iter().zip(&now) {
        for part in ["spec", "policies", "action", "paused"] {
            assert_eq!(before[part], now[part], "{part}");
        }
    }
    // The runs of before are there, the occurrences since then have their runs, and none has two.
    let give_up = Instant::now() + PATIENCE;
    let after = loop {
        let after = starts(&server, "tick");
        if after.len() >= before.len() + 5 {
            break after;
        }
        assert!(Instant::now() < give_up, "{after:?}");
    };
    let known: BTreeSet<_> = after.iter().cloned().collect();
    for start in &before {
        assert!(known.contains(start), "{start:?} is not in {after:?}");
    }
    let times: BTreeSet<&String> = after.iter().map(|(time, _)| time).collect();
    assert_eq!(times.len(), after.len(), "no occurrence has two runs: {after:?}");
    let seconds: Vec<i64> =
        times.iter().map(|time| time.parse::<jiff::Timestamp>().unwrap().as_second()).collect();
    assert!(seconds.windows(2).all(|pair| pair[1] == pair[0] + 1), "no occurrence has none: {after:?}");
    // The limits are what they were, a dead letter is one still, and the run whose worker is gone becomes another.
    assert!(server.ok(&["queue", "describe", "mail"]).contains("5 in 1 min"));
    let give_up = Instant::now() + PATIENCE;
    loop {
        let dead = server.json(&["run", "list", "--queue=mail", "--dead-letters"]);
        match dead["runs"].as_array().unwrap().len() {
            1 => assert!(Instant::now() < give_up, "{dead:#}"),
            count => break assert_eq!(count, 2, "{dead:#}"),
        }
    }
    server.ok(&["worker", "--queue=ticks", "--exec=true", "--runs-max=5", "--lease=1s"]);
}

#[test]
fn a_killed_migration_goes_on_and_keeps_servers_out() {
    let server = TestServer::start();
    server.ok(&["run", "enqueue", "--handler=send", "--count=20000"]);
    let source = source_of(&server);
    // What a killed server leaves behind is in its log.
    server.process.signal(Signal::KILL);
    server.process.wait();
    let target = postgres().create_database("killed").unwrap();
    let (mut wait, mut kept_out) = (Duration::from_millis(20), 0);
    let moved: Value = loop {
        let mut command = bare(&["migrate", &source, &target, "--output=json"]);
        command.stderr(std::process::Stdio::piped());
        let process = Process::spawn(command);
        if let Ok(line) = process.stdout.recv_timeout(wait) {
            assert_eq!(process.wait(), Some(0));
            let lines: Vec<String> = [line].into_iter().chain(process.stdout.iter()).collect();
            break serde_json::from_str(&lines.concat()).unwrap();
        }
        let signal = if kept_out % 2 == 0 { Signal::KILL } else { Signal::INT };
        process.signal(signal);
        process.wait();
        kept_out += usize::from(is_kept_out(&target, server.directory.path()));
        wait += Duration::from_millis(40);
    };
    assert!(kept_out > 0, "it was never ended in the middle");
    assert_eq!(moved["rows"].as_u64().unwrap(), 20_001 + request_rows(&moved), "{moved:#}");
    let server = TestServer::start_on(&target, server.directory, "127.0.0.1:0", &[]);
    assert!(server.ok(&["queue", "describe", "default"]).contains("20000"));
}

fn request_rows(moved: &Value) -> u64 {
    let tables = moved["tables"].as_array().unwrap().iter();
    tables.filter(|table| table["table"] == "request").map(|table| table["rows"].as_u64().unwrap()).sum()
}

/// Whether a server refuses the target, and says why; one that starts is a mistake unless nothing was begun.
fn is_kept_out(target: &str, directory: &Path) -> bool {
    let mut command = bare(&["serve", "--listen=127.0.0.1:0", "--database", target]);
    command.current_dir(directory).stderr(std::process::Stdio::piped());
    let process = Process::spawn(command);
    match process.stdout.recv_timeout(PATIENCE) {
        Ok(_) => {
            process.signal(Signal::TERM);
            process.wait();
            false
        }
        Err(_) => {
            process.hears("a migration to this database is not finished");
            assert_eq!(process.wait(), Some(8));
            true
        }
    }
}

#[test]
fn what_cannot_be_moved_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let target = postgres().create_database("refused").unwrap();
    let note = super::file("no-database.txt", b"no database");
    let missing = format!("sqlite:{}", folder.path().join("missing.db").display());
    for (source, target, exit_code, said) in [
        ("memory:", target.as_str(), 2, "SOURCE is not a file, found `memory:`"),
        (target.as_str(), target.as_str(), 2, "SOURCE is not a file"),
        (missing.as_str(), "sqlite:other.db", 2, "TARGET is no PostgreSQL database"),
        (missing.as_str(), target.as_str(), 2, "missing.db: No such file"),
        (&format!("sqlite:{note}"), target.as_str(), 2, "is no Punctual database: it is no SQLite file"),
    ] {
        let output = migrate(source, target, &[]);
        assert_eq!(output.status.code(), Some(exit_code), "{source}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(said), "{source}: {}", text(&output.stderr));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let server = TestServer::start();
    let source = source_of(&server);
    server.process.signal(Signal::TERM);
    server.process.wait();
    let output = migrate(&source, "postgres://127.0.0.1:1/x", &[]);
    assert_eq!(output.status.code(), Some(8), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("cannot connect to 127.0.0.1:1"), "{}", text(&output.stderr));
    let other = TestServer::start_on(&target, tempfile::tempdir().unwrap(), "127.0.0.1:0", &["--node=other"]);
    other.ok(&["schedule", "create", "own", "@daily"]);
    let output = migrate(&source, &target, &[]);
    assert_eq!(output.status.code(), Some(8), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("the node other"), "{}", text(&output.stderr));
    other.process.signal(Signal::TERM);
    other.process.wait();
    for more in [&[][..], &["--restart"]] {
        let output = migrate(&source, &target, more);
        assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
        assert!(
            text(&output.stderr).contains("the target is not empty: it has schedules"),
            "{}",
            text(&output.stderr)
        );
    }
}
