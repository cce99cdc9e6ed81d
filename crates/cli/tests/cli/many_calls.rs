//! Thousands of calls in flight: a slow target takes memory in proportion, its limit holds, and nobody else waits for it.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

use super::server::{PATIENCE, Process, TestServer};

/// Calls that are held open.
const HELD: usize = 2_000;

/// Calls that wait for a place behind them.
const WAITING: usize = 500;

/// Kilobytes that one call in flight may take, with its connection, its task and its lease. It is some 50.
const CALL_KB_MAX: u64 = 100;

/// Milliseconds that a call to another target may take meanwhile, on a busy machine.
const OTHER_MS_MAX: i64 = 2_000;

/// A target that hands over every connection with the request on it, and leaves the answer to others.
fn target() -> (String, Receiver<(TcpStream, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (tell, heard) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut request, mut bytes) = (String::new(), [0; 4096]);
            // The body is JSON and ends with its outermost brace.
            while !request.ends_with('}') {
                let count = stream.read(&mut bytes).unwrap();
                assert!(count > 0, "a call ends in the middle: {request}");
                request.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
            }
            if tell.send((stream, request)).is_err() {
                return;
            }
        }
    });
    (url, heard)
}

fn answer(mut stream: TcpStream) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\n7");
}

fn key(request: &str) -> String {
    let lines = request.lines().filter_map(|line| line.split_once(": "));
    let mut keys = lines.filter(|(name, _)| name.eq_ignore_ascii_case("idempotency-key"));
    keys.next().expect("every call has a key").1.to_owned()
}

/// Memory of a process, in KB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// This process holds the other ends.
fn raise_own_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let needed = 2 * HELD as u64;
    if current.is_some_and(|current| current < needed) {
        let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum });
        raised.unwrap_or_else(|_| {
            panic!("{needed} open files are needed here: raise the hard limit (ulimit -Hn)")
        });
    }
}

#[test]
fn two_thousand_calls_wait_for_a_slow_target_and_delay_no_other() {
    raise_own_limit();
    let (slow, held) = target();
    let (quick, asked) = target();
    thread::spawn(move || asked.into_iter().for_each(|(stream, _)| answer(stream)));
    let most = HELD.to_string();
    let more = ["--allow-private", "--calls-max=4000", "--calls-per-target-max", &most];
    let server = TestServer::start_in(tempfile::tempdir().unwrap(), "127.0.0.1:0", &more);
    let patient = ["--overlap=allow_all", "--http-timeout=10m"];
    let create = |id: &str, when: &[&str], url: &str| {
        server.ok(&[&["schedule", "create", id, "--http", url], when, &patient[..]].concat());
    };
    create("quick", &["--manual"], &quick);
    server.trigger("quick");
    server.runs_until("quick", |runs| (runs[0]["outcome"] == "succeeded").then_some(()));
    let before = memory(server.process.id());

    // As many occurrences of the past as the target may hold, and some that have to wait.
    const SCHEDULES: usize = 5;
    let first: jiff::Timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
    let last =
        (first + jiff::SignedDuration::from_secs(((HELD + WAITING) / SCHEDULES - 1) as i64)).to_string();
    for index in 0..SCHEDULES {
        let id = format!("slow-{index}");
        create(&id, &["--every=1s", "--paused"], &slow);
        server.ok(&["schedule", "backfill", &id, "--from=2020-01-01T00:00:00Z", "--through", &last]);
    }
    let mut open = Vec::new();
    while open.len() < HELD {
        open.push(held.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{} calls are open", open.len())));
    }
    let during = memory(server.process.id());

    for _ in 0..20 {
        server.trigger("quick");
    }
    let took: Vec<i64> = server.runs_until("quick", |runs| {
        let done = runs.iter().filter(|run| run["outcome"] == "succeeded");
        let took: Vec<i64> = done.map(|run| millis(&run["closed_at"]) - millis(&run["created_at"])).collect();
        (took.len() == 21).then_some(took)
    });
    let longest = took.iter().max().unwrap();
    let each = during.saturating_sub(before) / HELD as u64;
    eprintln!("memory: {before} KB before, {during} KB with {HELD} calls in flight: {each} KB each");
    eprintln!("another target meanwhile: {longest} ms at most, from start to end");
    assert!(each <= CALL_KB_MAX, "{each} KB for each call in flight");
    assert!(*longest <= OTHER_MS_MAX, "{took:?}");
    assert!(held.try_recv().is_err(), "no more than {HELD} at a time");

    // Those that waited come as the others go, and each start was heard of once.
    let mut keys = BTreeSet::new();
    let mut count = 0;
    for (stream, request) in open.into_iter().chain(std::iter::from_fn(|| held.recv_timeout(PATIENCE).ok())) {
        keys.insert(key(&request));
        answer(stream);
        count += 1;
        if count == HELD + WAITING {
            break;
        }
    }
    assert_eq!((count, keys.len()), (HELD + WAITING, HELD + WAITING));
    let give_up = Instant::now() + PATIENCE;
    while server.json(&["queue", "describe", "punctual.calls"])["running_count"] != 0 {
        assert!(Instant::now() < give_up, "some calls do not end");
    }
    eprintln!("memory: {} KB at the end", memory(server.process.id()));
}

#[test]
fn a_limit_that_was_changed_is_in_force_after_a_restart_and_the_rest_of_the_queue_stays() {
    let server = TestServer::start_in(tempfile::tempdir().unwrap(), "127.0.0.1:0", &["--allow-private"]);
    server.ok(&["schedule", "create", "x", "--manual", "--http=http://127.0.0.1:9/"]);
    server.ok(&["queue", "update", "punctual.calls", "--concurrency=77"]);
    let limits = |server: &TestServer| {
        let queue = server.json(&["queue", "describe", "punctual.calls"])["queue"].clone();
        (queue["key_concurrency_max"].as_u64(), queue["concurrency_max"].as_u64())
    };
    assert_eq!(limits(&server), (Some(100), Some(77)));

    let server = server.restart_with(&["--calls-per-target-max=7"]);
    let give_up = Instant::now() + PATIENCE;
    while limits(&server) != (Some(7), Some(77)) {
        assert!(Instant::now() < give_up, "{:?}", limits(&server));
    }
}

#[test]
fn a_server_has_as_many_open_files_as_its_settings_need_or_says_that_it_has_not() {
    let serve = |limit: &str, more: &str| {
        let line = format!("{limit}; exec \"$0\" serve --listen=127.0.0.1:0 --database=memory: {more}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_punctual")]).stderr(Stdio::piped());
        let process = Process::spawn(shell);
        process.stdout.recv_timeout(PATIENCE).expect("it is ready");
        process
    };
    let server = serve("ulimit -S -n 256", "--calls-max=500 --connections-max=300");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(line.split_whitespace().nth(3), Some("1056"), "{line}");

    let server = serve("ulimit -n 256", "--calls-max=500");
    let note = server.hears("note: ");
    assert!(note.contains("256 files may be open, and calls_max 500 can need 756"), "{note}");
    assert!(note.contains("raise the limit (ulimit -n, LimitNOFILE=) or lower --calls-max"), "{note}");
}

fn millis(instant: &Value) -> i64 {
    instant.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}
