//! Runs without a schedule: enqueued, delayed, deduplicated, waited for, tried again.

use std::process::Stdio;

use rustix::process::Signal;

use super::server::TestServer;
use super::text;

fn enqueue<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "enqueue", "--queue=mail", "--handler=send"], more].concat()
}

fn with_queue() -> TestServer {
    let server = TestServer::start();
    server.ok(&["queue", "create", "mail"]);
    server
}

#[test]
fn a_run_has_what_it_was_given() {
    let server = with_queue();
    let said = server.json(&enqueue(&[
        "--input={\"to\": 7}",
        "--priority=-5",
        "--key=customer-7",
        "--dedup=digest-7",
        "--name=digest of 7",
        "--attempts=5",
        "--start-to-close=1h",
    ]));
    let run = said["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let page = server.ok(&["run", "describe", &run]);
    for part in [
        "name      digest of 7",
        "state     queued",
        "handler   send on queue mail",
        "priority  -5",
        "key       customer-7",
        "dedup     digest-7",
        "input     {\"to\":7}",
    ] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
    assert!(!page.contains("attempt") && !page.contains("schedule "), "there is none yet:\n{page}");
    let list = server.ok(&["run", "list", "--queue=mail"]);
    let row: Vec<&str> = list.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..5], [run.as_str(), "-", "-", "queued", "-"], "{list}");
}

#[test]
fn a_second_run_of_the_same_id_is_refused_or_is_the_first() {
    let server = with_queue();
    let first = server.ok(&enqueue(&["--dedup=once"]));
    let run = first.split_whitespace().nth(2).unwrap();
    assert_eq!(first, format!("enqueued run {run} on queue mail\n"));
    let stderr = server.fails(&enqueue(&["--dedup=once"]), 4);
    assert!(stderr.contains("once"), "{stderr}");
    for word in ["return_existing", "return-existing"] {
        let said = server.ok(&enqueue(&["--dedup=once", "--on-duplicate", word]));
        assert_eq!(said, format!("run {run} is on queue mail already\n"));
    }
    let again = ["--request-id=r1", "--output=json"];
    let (first, second) = (server.ok(&enqueue(&again)), server.ok(&enqueue(&again)));
    let id =
        |said: &str| serde_json::from_str::<serde_json::Value>(said).unwrap()["runs"][0]["run_id"].clone();
    assert_eq!(id(&first), id(&second), "repeating a request is harmless");
}

#[test]
fn what_is_not_due_yet_waits() {
    let server = with_queue();
    server.ok(&enqueue(&["--delay=1h"]));
    server.ok(&enqueue(&["--at=2050-01-01"]));
    let runs = server.json(&["run", "list", "--queue=mail"])["runs"].clone();
    assert_eq!(runs.as_array().unwrap().len(), 2);
    assert_eq!(runs[0]["next_attempt_time"], "2050-01-01T00:00:00Z", "{runs:#}");
    let output = server.run(&["worker", "--queue=mail", "--exec=true", "--runs-max=1", "--help"]);
    assert!(output.status.success());
    assert_eq!(server.ok(&["run", "list", "--state=running"]), "no runs\n");
}

#[test]
fn waiting_ends_with_the_runs_and_tells_how_they_ended() {
    let server = with_queue();
    let worker = server.spawn(&["worker", "--queue=mail", "--exec=read x; echo \"$x\"; exit ${x#exit }"]);
    worker.hears("takes runs");
    let said = server.ok(&enqueue(&["--input=0", "--wait"]));
    assert!(
        said.starts_with("run ") && said.contains(" succeeded after ") && said.ends_with(": 0\n"),
        "{said}"
    );
    let output = server.run(&enqueue(&["--input=65", "--wait", "--count=2"]));
    let said = text(&output.stdout);
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 2), "{said}");
    assert!(said.contains(" failed (dead letter) after ") && said.contains("exit_65"), "{said}");
    let said = server.json(&enqueue(&["--input=0", "--wait", "--count=3"]));
    assert_eq!(said["runs"][2]["outcome"], "succeeded");

    let failed = server.json(&["run", "list", "--dead-letters"])["runs"][0]["run_id"].clone();
    let output = server.run(&["run", "retry", failed.as_str().unwrap(), "--wait"]);
    assert_eq!(output.status.code(), Some(1), "it fails again: {}", text(&output.stderr));
    worker.signal(Signal::INT);
    assert_eq!(worker.wait(), Some(0));

    let waiting = server.spawn(&enqueue(&["--wait", "--key=nobody comes"]));
    server.runs_of_queue("mail", |runs| runs.iter().any(|run| run["key"] == "nobody comes").then_some(()));
    waiting.signal(Signal::INT);
    waiting.hears("1 run goes on without you");
    assert_eq!(waiting.wait(), Some(1));
}

#[test]
fn many_are_enqueued_in_one_command() {
    let server = with_queue();
    let said = server.ok(&enqueue(&["--count=2500", "--request-id=many"]));
    assert!(said.starts_with("enqueued 2500 runs on queue mail, from "), "{said}");
    assert_eq!(server.json(&["queue", "describe", "mail"])["queued_count"], 2500);
    server.ok(&enqueue(&["--count=2500", "--request-id=many"]));
    assert_eq!(server.json(&["queue", "describe", "mail"])["queued_count"], 2500, "nothing happens twice");
}

#[test]
fn what_makes_no_sense_is_refused_by_the_name_of_its_option() {
    let server = with_queue();
    for (args, exit_code, said) in [
        (&["--priority=101"][..], 6, "--priority "),
        (&["--attempts=0"], 6, "--retry-attempts is 0, at least 1 is needed"),
        (&["--start-to-close=0s"], 6, "--start-to-close is 0s"),
        (&["--delay=1h", "--at=2050-01-01"], 2, "cannot be used with"),
        (&["--delay=-1h"], 2, "--delay is negative"),
        (&["--at=soon"], 2, "--at is not an instant, found `soon`"),
        (&["--on-duplicate=reject"], 2, "--dedup"),
        (&["--dedup=x", "--count=2"], 2, "--dedup makes one run, found --count 2"),
        (&["--count=0"], 2, "--count"),
        (&["--input={"], 2, "--input is not JSON"),
        (&["--handler="], 2, "--handler"),
    ] {
        let stderr = server.fails(&enqueue(args), exit_code);
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{args:?}: {stderr}");
    }
    server.fails(&["run", "enqueue", "--queue=mail"], 2);
    let stderr = server.fails(&["run", "enqueue", "--queue=nope", "--handler=send"], 3);
    assert!(stderr.contains("nope"), "{stderr}");
    let stderr = server.fails(&["run", "retry", "12345"], 3);
    assert!(stderr.contains("12345"), "{stderr}");
    let live = server.ok(&enqueue(&[]));
    let live = live.split_whitespace().nth(2).unwrap();
    let stderr = server.run(&["run", "retry", live]);
    assert_ne!(stderr.status.code(), Some(0), "a run that is live is not tried again");
}

#[test]
fn input_comes_from_stdin() {
    let server = with_queue();
    let mut command = server.command(&enqueue(&["--input=-", "--output=json"]));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"[1, 2]").unwrap();
    let said: serde_json::Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    let run = said["runs"][0]["run_id"].as_str().unwrap();
    assert_eq!(server.json(&["run", "describe", run])["input"]["json"][1], 2);
}
