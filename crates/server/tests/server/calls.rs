//! Calls that the server makes itself: each becomes one run, is repeated with the same key, and ends as its target says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use punctual_api::{json, v1};
use punctual_server::Config;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::bed::{Bed, config};
use crate::http::{raw, request, send};

/// A request that the target got.
#[derive(Clone, Debug)]
pub struct Got {
    pub head: String,
    pub body: String,
}

impl Got {
    pub fn header(&self, name: &str) -> String {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
            .next()
            .unwrap_or_default()
    }
}

/// A web server that answers as it is told, one answer after another; the last one for ever.
pub struct Target {
    pub address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
    pub news: mpsc::UnboundedReceiver<Got>,
}

impl Target {
    pub async fn answering(answers: &[&str]) -> Target {
        Target::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), answers)
    }

    pub fn on(listener: TcpListener, answers: &[&str]) -> Target {
        let address = listener.local_addr().unwrap();
        let answers: Vec<String> = answers.iter().map(ToString::to_string).collect();
        let (got, (sender, news)) = (Arc::new(Mutex::new(Vec::new())), mpsc::unbounded_channel());
        let seen = got.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut bytes = Vec::new();
                let mut length = None;
                loop {
                    let mut part = [0; 4096];
                    let count = stream.read(&mut part).await.unwrap_or(0);
                    bytes.extend_from_slice(&part[..count]);
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    if let Some((head, body)) = text.split_once("\r\n\r\n") {
                        let named = head.lines().find_map(|line| {
                            let (name, value) = line.split_once(": ")?;
                            name.eq_ignore_ascii_case("content-length")
                                .then(|| value.parse::<usize>().unwrap())
                        });
                        length = Some(named.unwrap_or(0));
                        if body.len() >= named.unwrap_or(0) {
                            break;
                        }
                    }
                    if count == 0 {
                        break;
                    }
                }
                if length.is_none() {
                    continue;
                }
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let (head, body) = text.split_once("\r\n\r\n").unwrap();
                let request = Got { head: head.to_owned(), body: body.to_owned() };
                let place = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(request.clone());
                    seen.len() - 1
                };
                let _ = sender.send(request);
                let answer = answers.get(place).or(answers.last()).unwrap();
                if answer.is_empty() {
                    // Closed without a word.
                    continue;
                }
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Target { address, got, news }
    }

    pub fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }
}

pub fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub fn open() -> Config {
    let mut config = config();
    config.allow_private = true;
    config.allow_commands = true;
    config
}

pub async fn create(bed: &mut Bed, id: &str, action: &str) {
    let asked = v1::CreateScheduleRequest {
        schedule_id: id.into(),
        schedule: Some(json::from_json(format!("{{ \"action\": {action} }}").as_bytes()).unwrap()),
        ..v1::CreateScheduleRequest::default()
    };
    bed.client.schedules.create(asked).await.unwrap();
}

/// Waits until the only run of a schedule is closed, by watching the schedule.
async fn ended(bed: &mut Bed, id: &str) -> v1::Run {
    let asked = v1::WatchScheduleRequest { namespace: String::new(), schedule_id: id.into() };
    let mut events = bed.client.schedules.watch(asked).await.unwrap().into_inner();
    loop {
        let asked = v1::ListRunsRequest { schedule_id: id.into(), ..Default::default() };
        let runs = bed.client.runs.list(asked).await.unwrap().into_inner().runs;
        if let Some(run) = runs.iter().find(|run| run.state == v1::run_state::Word::Closed as i32) {
            return bed.run(&run.run_id.clone()).await;
        }
        // The stream tells of every change; whether it is the one that is waited for is seen above.
        tokio::time::timeout(std::time::Duration::from_secs(20), events.message())
            .await
            .expect("news in time")
            .unwrap();
    }
}

const QUICK: &str = r#""retry": { "attempts_max": 4, "backoff_first": "0.010s" }"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_made_and_its_answer_is_the_result() {
    let target = Target::answering(&[&answer("200 OK", "", r#"{"rows": 3}"#)]).await;
    let mut bed = Bed::with(open()).await;
    let action = format!(
        r#"{{ "http": {{ "url": "http://{}/hook/{{{{schedule_id}}}}", "headers": {{ "x-team": "blue" }}, "input": {{ "json": {{ "n": 1 }} }} }} }}"#,
        target.address
    );
    create(&mut bed, "nightly", &action).await;
    bed.trigger("nightly").await;

    let run = ended(&mut bed, "nightly").await;

    assert_eq!(run.outcome, v1::outcome::Word::Succeeded as i32, "{run:?}");
    assert_eq!(json::to_value(&run.result.unwrap()).unwrap()["json"]["rows"], 3);
    let got = &target.got()[0];
    assert!(got.head.starts_with("POST /hook/nightly "), "{}", got.head);
    assert_eq!((got.header("x-team").as_str(), got.header("punctual-attempt").as_str()), ("blue", "1"));
    let body: serde_json::Value = serde_json::from_str(&got.body).unwrap();
    assert_eq!((body["schedule_id"].as_str(), &body["input"]["n"]), (Some("nightly"), &1.into()));
    let described = bed.describe("nightly").await;
    let action = json::to_value(&described.schedule.unwrap().action.unwrap()).unwrap();
    assert_eq!(action["http"]["headers"]["x-team"], "blue");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_are_tried_again_with_the_same_key_and_then_end_as_a_dead_letter() {
    let bad = answer("503 Service Unavailable", "retry-after: 0\r\n", r#"{"why": "busy"}"#);
    let good = answer("200 OK", "", "7");
    let target = Target::answering(&[&bad, "", &good]).await;
    let mut bed = Bed::with(open()).await;
    let action = format!(r#"{{ "http": {{ "url": "http://{}/", {QUICK} }} }}"#, target.address);
    create(&mut bed, "flaky", &action).await;
    bed.trigger("flaky").await;
    let run = ended(&mut bed, "flaky").await;
    assert_eq!((run.outcome, run.attempt), (v1::outcome::Word::Succeeded as i32, 3));
    let keys: Vec<String> = target.got().iter().map(|got| got.header("idempotency-key")).collect();
    assert_eq!(keys.len(), 3);
    assert!(!keys[0].is_empty() && keys.iter().all(|key| *key == keys[0]), "{keys:?}");

    let refusing = Target::answering(&[&answer("404 Not Found", "", r#"{"why": "gone"}"#)]).await;
    let action = format!(r#"{{ "http": {{ "url": "http://{}/", {QUICK} }} }}"#, refusing.address);
    create(&mut bed, "gone", &action).await;
    bed.trigger("gone").await;
    let run = ended(&mut bed, "gone").await;
    assert_eq!((run.outcome, run.attempt, run.dead_letter), (v1::outcome::Word::Failed as i32, 1, true));
    let failure = run.failure.unwrap();
    assert_eq!(failure.kind, "http_404");
    assert_eq!(json::to_value(&failure.details.unwrap()).unwrap()["json"]["why"], "gone");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_ends_what_was_accepted_and_only_a_true_one() {
    let accepted = answer("202 Accepted", "", "");
    let mut target = Target::answering(&[&accepted]).await;
    let mut bed = Bed::with(open()).await;
    let action = format!(r#"{{ "http": {{ "url": "http://{}/" }} }}"#, target.address);
    create(&mut bed, "long", &action).await;
    bed.trigger("long").await;
    let url = target.news.recv().await.unwrap().header("punctual-callback-url");
    let path =
        url.strip_prefix(&format!("http://{}", bed.address)).unwrap_or_else(|| panic!("{url}")).to_owned();

    let mut forged = path.clone();
    let last = forged.pop().unwrap();
    forged.push(if last == 'A' { 'B' } else { 'A' });
    for wrong in [forged.as_str(), "/v1/callbacks/x", "/v1/callbacks/punctual"] {
        let refused = send(bed.address, "POST", wrong, b"{}").await;
        assert_eq!(
            (refused.status, refused.json()["reason"].as_str().unwrap()),
            (401, "invalid_token"),
            "{wrong}"
        );
    }
    // It may come before the answer to the call was recorded: the target has not even been hung up on.
    let first = send(bed.address, "POST", &path, br#"{"rows": 5}"#).await;
    assert_eq!(
        (first.status, first.json()["state"].as_str().unwrap()),
        (200, "recorded"),
        "{}",
        first.text()
    );
    let again = raw(bed.address, &request("POST", &path, "punctual-outcome: failed\r\n", b"")).await;
    assert_eq!((again.status, again.json()["state"].as_str().unwrap()), (200, "stale"), "{}", again.text());

    let run = ended(&mut bed, "long").await;
    assert_eq!(run.outcome, v1::outcome::Word::Succeeded as i32);
    assert_eq!(json::to_value(&run.result.unwrap()).unwrap()["json"]["rows"], 5);
    assert_eq!(target.got().len(), 1);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nexus_operation_ends_by_its_callback() {
    let started = answer("201 Created", "", r#"{"token": "t1", "state": "running"}"#);
    let mut target = Target::answering(&[&started]).await;
    let mut bed = Bed::with(open()).await;
    let action = format!(
        r#"{{ "nexus": {{ "endpoint": "http://{}", "service": "billing", "operation": "close month", "input": {{ "json": 1 }} }} }}"#,
        target.address
    );
    create(&mut bed, "month", &action).await;
    bed.trigger("month").await;
    let got = target.news.recv().await.unwrap();
    assert!(got.head.starts_with("POST /billing/close%20month?callback="), "{}", got.head);
    let callback = got.head.split("callback=").nth(1).unwrap().split([' ', '&']).next().unwrap();
    let url = callback.replace("%3A", ":").replace("%2F", "/");
    let path = url.split_once(&bed.address.to_string()).unwrap().1.to_owned();
    let failed = raw(
        bed.address,
        &request("POST", &path, "nexus-operation-state: failed\r\n", br#"{"message": "no money"}"#),
    )
    .await;
    assert_eq!(failed.status, 200, "{}", failed.text());
    let run = ended(&mut bed, "month").await;
    assert_eq!(run.outcome, v1::outcome::Word::Failed as i32, "{run:?}");
    assert_eq!(run.failure.unwrap().message, "no money");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_reaches_the_operation_that_was_taken_on() {
    let started = answer("201 Created", "", r#"{"token": "t1", "state": "running"}"#);
    let mut target = Target::answering(&[&started, &answer("202 Accepted", "", "")]).await;
    let mut config = open();
    config.worker_lease = jiff::SignedDuration::from_secs(1);
    let mut bed = Bed::with(config).await;
    let action = format!(
        r#"{{ "nexus": {{ "endpoint": "http://{}", "service": "s", "operation": "o" }} }}"#,
        target.address
    );
    create(&mut bed, "op", &action).await;
    bed.trigger("op").await;
    target.news.recv().await.unwrap();
    let run = loop {
        let asked = v1::ListRunsRequest { schedule_id: "op".into(), ..Default::default() };
        let runs = bed.client.runs.list(asked).await.unwrap().into_inner().runs;
        if let Some(run) = runs.into_iter().find(|run| run.worker_id == "punctual.callback") {
            break run;
        }
        tokio::task::yield_now().await;
    };
    let asked = v1::CancelRunRequest { run_id: run.run_id, ..Default::default() };
    bed.client.runs.cancel(asked).await.unwrap();

    let cancel = target.news.recv().await.unwrap();

    assert!(cancel.head.starts_with("POST /s/o/cancel"), "{}", cancel.head);
    assert!(cancel.head.contains("t1"), "{}", cancel.head);
    let run = ended(&mut bed, "op").await;
    assert_eq!(run.outcome, v1::outcome::Word::Cancelled as i32);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_runs_where_it_is_allowed_and_dies_when_it_is_cancelled() {
    let mut bed = Bed::with(open()).await;
    let echo =
        r#"{ "command": { "argv": ["sh", "-c", "echo note >&2; cat"], "input": { "json": { "n": 2 } } } }"#;
    create(&mut bed, "echo", echo).await;
    bed.trigger("echo").await;
    let run = ended(&mut bed, "echo").await;
    assert_eq!(run.outcome, v1::outcome::Word::Succeeded as i32, "{run:?}");
    assert_eq!(json::to_value(&run.result.unwrap()).unwrap()["json"]["n"], 2);
    let asked = v1::RunLogsRequest { run_id: run.run_id, ..Default::default() };
    let lines = bed.client.runs.logs(asked).await.unwrap().into_inner().lines;
    assert!(lines.iter().any(|line| line.text.contains("note")), "{lines:?}");

    create(&mut bed, "sleeper", r#"{ "command": { "argv": ["sleep", "600"] } }"#).await;
    bed.trigger("sleeper").await;
    let running = loop {
        let asked = v1::ListRunsRequest { schedule_id: "sleeper".into(), ..Default::default() };
        let runs = bed.client.runs.list(asked).await.unwrap().into_inner().runs;
        if let Some(run) = runs.into_iter().find(|run| run.state == v1::run_state::Word::Running as i32) {
            break run;
        }
        tokio::task::yield_now().await;
    };
    let asked = v1::CancelRunRequest { run_id: running.run_id, ..Default::default() };
    bed.client.runs.cancel(asked).await.unwrap();
    let run = ended(&mut bed, "sleeper").await;
    assert_eq!(run.outcome, v1::outcome::Word::Cancelled as i32);
    bed.stop().await;
}
