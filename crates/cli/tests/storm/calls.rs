//! Calls that the server makes itself are neither lost nor doubled when it is killed in the middle of them.
//!
//! The target answers late, not at all, with refusals, with half an answer, and with "accepted" and a callback, sometimes two;
//! it remembers every idempotency key. Afterwards every start has one run that succeeded, and one key at the target.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use punctual_api::{json, v1};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::process::Node;
use crate::random::{self, Random};

const KILLS: usize = 25;
const SCHEDULES: [&str; 4] = ["http-a", "http-b", "nexus-a", "nexus-b"];

/// How often a key was called with, and for which runs.
#[derive(Default)]
struct Called {
    calls: u64,
    runs: BTreeMap<String, u64>,
}

type Seen = Arc<Mutex<BTreeMap<String, Called>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_or_doubled_by_kills() {
    let seed = random::seed();
    eprintln!("calls seed {seed}; repeat with STORM_SEED={seed}");
    let mut random = Random(seed);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap();
    let seen = Seen::default();
    tokio::spawn(serve(listener, seen.clone(), seed));
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--allow-private", "--worker-lease", "2s"];
    let mut node = Node::start_with(&folder.path().join("calls.db"), &flags).await;
    for id in SCHEDULES {
        let more = r#""retry": { "attempts_max": 200, "backoff_first": "0.050s", "backoff_max": "1s" }, "timeouts": { "start_to_close": "20s" }"#;
        let action = match id.starts_with("http") {
            true => format!(
                r#"{{ "http": {{ "url": "http://{target}/{{{{schedule_id}}}}", "timeout": "1s", {more} }} }}"#
            ),
            false => format!(
                r#"{{ "nexus": {{ "endpoint": "http://{target}", "service": "s", "operation": "{id}", "timeout": "1s", {more} }} }}"#
            ),
        };
        let schedule = format!(
            r#"{{ "spec": {{ "intervals": [{{ "every": "1s" }}] }}, "policies": {{ "overlap": "allow_all" }}, "action": {action} }}"#
        );
        let create = v1::CreateScheduleRequest {
            schedule_id: id.into(),
            request_id: id.into(),
            schedule: Some(json::from_json(schedule.as_bytes()).unwrap()),
            ..Default::default()
        };
        node.client().schedules.create(create).await.unwrap();
    }
    let begun = Instant::now();
    while node.kills < KILLS {
        tokio::time::sleep(Duration::from_millis(random.below(1_200))).await;
        node.kill();
        node.restart().await;
    }
    let stormy = begun.elapsed();
    for id in SCHEDULES {
        crate::pause(&node, id).await;
    }
    let mut runs = 0;
    for id in SCHEDULES {
        runs += rest(&node, id).await;
    }
    verify(&node, &seen, runs).await;
    let (keys, calls) = {
        let seen = seen.lock().unwrap();
        (seen.len(), seen.values().map(|called| called.calls).sum::<u64>())
    };
    eprintln!(
        "calls: {KILLS} kills in {:.0} s, {runs} starts, {keys} keys, {calls} calls made: 0 lost, 0 doubled",
        stormy.as_secs_f64()
    );
    node.stop().await;
}

/// Waits until nothing of a schedule is on its way, and says how many starts it had.
async fn rest(node: &Node, id: &str) -> u64 {
    let begun = Instant::now();
    loop {
        let asked = v1::DescribeScheduleRequest { namespace: String::new(), schedule_id: id.into() };
        let description =
            node.client().schedules.describe(asked).await.unwrap().into_inner().description.unwrap();
        if description.in_progress.is_empty() && description.buffered.is_empty() {
            let counters = description.counters.unwrap();
            assert_eq!(counters.missed + counters.dropped + counters.skipped, 0, "{id}: {counters:?}");
            return counters.started;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{id}: {:?}", description.in_progress.first());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn verify(node: &Node, seen: &Seen, starts: u64) {
    let (mut token, mut closed) = (String::new(), BTreeMap::new());
    loop {
        let asked = v1::ListRunsRequest { page_size: 1_000, page_token: token, ..Default::default() };
        let page = node.client().runs.list(asked).await.unwrap().into_inner();
        closed.extend(page.runs.into_iter().map(|run| (run.run_id.clone(), run)));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    let seen = seen.lock().unwrap();
    assert_eq!(closed.len() as u64, starts, "one run for each start");
    for run in closed.values() {
        assert_eq!(run.outcome, v1::outcome::Word::Succeeded as i32, "{run:?}");
    }
    assert_eq!(seen.len() as u64, starts, "one key for each start");
    let mut called = BTreeMap::new();
    for (key, found) in seen.iter() {
        assert_eq!(found.runs.len(), 1, "{key} stands for one run: {:?}", found.runs);
        for run in found.runs.keys() {
            assert!(closed.contains_key(run), "run {run} is known");
            assert!(called.insert(run.clone(), key).is_none(), "run {run} has one key");
        }
    }
}

async fn serve(listener: TcpListener, seen: Seen, seed: u64) {
    let mut number = seed;
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        number += 1;
        tokio::spawn(answer(stream, seen.clone(), Random(number)));
    }
}

async fn answer(mut stream: TcpStream, seen: Seen, mut random: Random) {
    let Some(head) = read(&mut stream).await else { return };
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    let nexus = header("nexus-request-id");
    let Some(key) = nexus.clone().or_else(|| header("idempotency-key")) else { return };
    let run = header("punctual-run-id").expect("every call names its run");
    {
        let mut seen = seen.lock().unwrap();
        let called = seen.entry(key).or_default();
        called.calls += 1;
        *called.runs.entry(run).or_default() += 1;
    }
    let callback = header("punctual-callback-url").or_else(|| {
        let query = head.split_once("callback=")?.1.split([' ', '&']).next()?.to_owned();
        Some(query.replace("%3A", ":").replace("%2F", "/"))
    });
    let accepted = if nexus.is_some() {
        "201 Created\r\ncontent-type: application/json\r\ncontent-length: 31\r\n\r\n{\"token\":\"t\",\"state\":\"running\"}\n"
    } else {
        "202 Accepted\r\ncontent-length: 0\r\n\r\n"
    };
    let word = match random.below(10) {
        0 => "503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
        1 => "429 Too Many Requests\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n",
        2 => "200 OK\r\ncontent-length: 100\r\n\r\nhalf",
        3 => return,
        4 => {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            return;
        }
        5 | 6 => {
            let url = callback.expect("a call that may be accepted has a callback");
            // Before the answer, or after it; sometimes twice.
            if random.below(2) == 0 {
                tokio::spawn(call_back(url.clone()));
            }
            tokio::time::sleep(Duration::from_millis(random.below(50))).await;
            tokio::spawn(call_back(url));
            accepted
        }
        7 => {
            tokio::time::sleep(Duration::from_millis(random.below(600))).await;
            "200 OK\r\ncontent-length: 2\r\n\r\nok"
        }
        _ => "200 OK\r\ncontent-length: 2\r\n\r\nok",
    };
    let _ = stream.write_all(format!("HTTP/1.1 {word}").as_bytes()).await;
}

/// Says that it is done, until somebody has heard it.
async fn call_back(url: String) {
    let (address, path) =
        url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a plain URL");
    let request = format!(
        "POST /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: 4\r\n\r\ndone"
    );
    for _ in 0..300 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let Ok(mut stream) = TcpStream::connect(address).await else { continue };
        let mut said = String::new();
        if stream.write_all(request.as_bytes()).await.is_ok()
            && stream.read_to_string(&mut said).await.is_ok()
            && said.starts_with("HTTP/1.1 200")
        {
            return;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4_096];
        let count = stream.read(&mut part).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().ok())?
        });
        if body.len() >= length.unwrap_or(0) {
            return Some(head.to_owned());
        }
    }
}
