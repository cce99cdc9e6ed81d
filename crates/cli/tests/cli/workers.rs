//! `worker`: a command for each run, through failures, requests to stop, and restarts of the server.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::server::{TestServer, in_time};
use super::text;

/// Runs one worker until it has had this many runs, and gives what it said.
#[track_caller]
fn work(server: &TestServer, queue: &str, exec: &str, more: &[&str]) -> String {
    let args = ["worker", "--queue", queue, "--exec", exec];
    let output = server.run(&[&args[..], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stderr).to_owned()
}

fn wait_for_reader(pipe: &Path) {
    let pipe = pipe.to_owned();
    in_time(move || drop(OpenOptions::new().write(true).open(pipe).unwrap()));
}

fn wait_for_writer(pipe: PathBuf) -> String {
    in_time(move || fs::read_to_string(pipe).unwrap())
}

#[test]
fn a_command_gets_its_run_and_its_output_is_the_result() {
    let server = TestServer::start();
    server.manual("sum", &["--input={\"a\": [1, 2]}", "--handler=add"]);
    let run = server.trigger("sum");
    let exec = "echo \"working on $PUNCTUAL_RUN_ID\" >&2; printf '{\"input\":%s,' \"$(cat)\"; \
                printf '\"env\":\"%s %s %s %s %s\"}' $PUNCTUAL_ATTEMPT $PUNCTUAL_SCHEDULE_ID $PUNCTUAL_HANDLER \
                $PUNCTUAL_NAMESPACE $PUNCTUAL_QUEUE";
    let said = work(&server, "sum", exec, &["--runs-max=1", "--worker-id=w1"]);
    assert!(said.contains("worker w1 takes runs from queue sum"), "{said}");
    assert!(said.contains(&format!("run {run} of sum: succeeded")), "{said}");

    let about = server.json(&["run", "describe", &run]);
    assert_eq!(about["outcome"], "succeeded");
    assert_eq!(about["worker_id"], "w1");
    assert_eq!(about["result"]["json"]["input"]["a"][1], 2);
    assert_eq!(about["result"]["json"]["env"], "1 sum add default sum");
    assert!(server.ok(&["run", "logs", &run]).ends_with(&format!("#1  working on {run}\n")));
    assert_eq!(server.ok(&["run", "logs", &run, "--plain"]), format!("working on {run}\n"));

    server.ok(&["schedule", "trigger", "sum"]);
    work(&server, "sum", "echo \"last was $PUNCTUAL_LAST_RESULT\"", &["--runs-max=1"]);
    let result =
        server.json(&["run", "list", "--schedule=sum"])["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let result = server.json(&["run", "describe", &result])["result"]["json"].clone();
    assert!(result.as_str().unwrap().starts_with("last was {\"env\":"), "{result}");
    assert!(server.ok(&["schedule", "describe", "sum"]).contains("last result"));
}

#[test]
fn a_failure_is_tried_again_and_its_last_words_are_kept() {
    let server = TestServer::start();
    server.manual("flaky", &[]);
    let run = server.trigger("flaky");
    let exec = "test $PUNCTUAL_ATTEMPT = 2 || { echo not yet >&2; exit 75; }; echo fine";
    let said = work(&server, "flaky", exec, &["--runs-max=2"]);
    assert!(said.contains("failed (exit_75), it will be tried again"), "{said}");
    let about = server.json(&["run", "describe", &run]);
    assert_eq!((about["outcome"].as_str(), about["attempt"].as_u64()), (Some("succeeded"), Some(2)));
    assert_eq!(about["result"]["json"], "fine");

    for (id, exec, kind, outcome) in [
        ("data", "echo wrong customer >&2; exit 65", "exit_65", "failed"),
        ("signal", "kill -9 $$", "signal_9", "failed"),
        ("missing", "no-such-program-here", "exit_127", "failed"),
    ] {
        server.manual(id, &["--retry-attempts=1"]);
        let run = server.trigger(id);
        work(&server, id, exec, &["--runs-max=1"]);
        let about = server.json(&["run", "describe", &run]);
        assert_eq!(
            (about["outcome"].as_str(), about["failure"]["kind"].as_str()),
            (Some(outcome), Some(kind))
        );
    }
    let page = server.ok(&["schedule", "describe", "data"]);
    assert!(
        page.contains("exit_65: the command ended with exit code 65:") && page.contains("wrong customer"),
        "{page}"
    );
}

#[test]
fn exit_65_is_not_tried_again_whatever_the_schedule_says() {
    let server = TestServer::start();
    server.manual("data", &["--retry-attempts=9"]);
    let run = server.trigger("data");
    let said = work(&server, "data", "exit 65", &["--runs-max=1"]);
    assert!(said.ends_with("failed (exit_65)\n"), "{said}");
    assert_eq!(server.json(&["run", "describe", &run])["outcome"], "failed");
}

#[test]
fn words_without_a_shell_and_other_peoples_handlers() {
    let server = TestServer::start();
    server.manual("plain", &["--retry-attempts=1"]);
    let run = server.trigger("plain");
    let output = server.run(&[
        "worker",
        "--queue=plain",
        "--runs-max=1",
        "--no-shell",
        "--",
        "printf",
        "%s",
        "$HOME a",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(server.json(&["run", "describe", &run])["result"]["json"], "$HOME a");

    server.ok(&["schedule", "trigger", "plain"]);
    let said = work(&server, "plain", "true", &["--runs-max=1", "--handler=other"]);
    assert!(said.contains("failed (unknown_handler)"), "{said}");
}

#[test]
fn a_cancelled_command_that_ignores_the_request_is_killed_after_its_grace() {
    let server = TestServer::start();
    server.manual("deaf", &[]);
    let run = server.trigger("deaf");
    let up = server.pipe("up");
    let exec = format!("trap '' TERM; echo up > {}; while :; do sleep 1; done", up.display());
    let worker = server.spawn(&["worker", "--queue=deaf", "--exec", &exec, "--grace=300ms", "--runs-max=1"]);
    assert_eq!(wait_for_writer(up), "up\n");
    let said = server.ok(&["run", "cancel", &run]);
    assert_eq!(said, format!("run {run} is asked to stop; it is running\n"));
    worker.hears("cancelled");
    assert_eq!(worker.wait(), Some(0));
    assert_eq!(server.json(&["run", "describe", &run])["outcome"], "cancelled");
}

#[test]
fn a_terminated_run_is_dropped_at_once() {
    let server = TestServer::start();
    server.manual("deaf", &[]);
    let run = server.trigger("deaf");
    let up = server.pipe("up");
    let exec = format!("trap '' TERM; echo up > {}; while :; do sleep 1; done", up.display());
    let worker = server.spawn(&["worker", "--queue=deaf", "--exec", &exec, "--grace=1h", "--runs-max=1"]);
    wait_for_writer(up);
    assert_eq!(server.ok(&["run", "terminate", &run]), format!("run {run} is terminated\n"));
    worker.hears("is not ours any more");
    assert_eq!(worker.wait(), Some(0));
}

#[test]
fn a_server_that_is_killed_and_comes_back_loses_nothing() {
    let server = TestServer::start();
    server.manual("long", &[]);
    let run = server.trigger("long");
    let gate = server.pipe("gate");
    let exec = format!("echo before >&2; cat {} >/dev/null; echo after >&2; echo done", gate.display());
    let worker = server.spawn(&["worker", "--queue=long", "--exec", &exec, "--runs-max=1"]);
    worker.hears("attempt 1 begins");

    let server = server.restart();
    wait_for_reader(&gate);
    worker.hears(&format!("run {run} of long: succeeded"));
    assert_eq!(worker.wait(), Some(0));
    let about = server.json(&["run", "describe", &run]);
    assert_eq!((about["outcome"].as_str(), about["attempt"].as_u64()), (Some("succeeded"), Some(1)));
    assert_eq!(about["result"]["json"], "done");
    assert!(server.ok(&["run", "logs", &run]).contains("after"));
}

#[test]
fn one_interrupt_waits_for_the_command_and_two_end_it() {
    let server = TestServer::start();
    server.manual("long", &[]);
    let run = server.trigger("long");
    let gate = server.pipe("gate");
    let exec = format!("cat {} >/dev/null; echo done", gate.display());
    let worker = server.spawn(&["worker", "--queue=long", "--exec", &exec]);
    worker.hears("attempt 1 begins");
    worker.signal(Signal::INT);
    worker.hears("waiting for 1 in progress");
    wait_for_reader(&gate);
    assert_eq!(worker.wait(), Some(0));
    assert_eq!(server.json(&["run", "describe", &run])["outcome"], "succeeded");

    server.ok(&["schedule", "trigger", "long"]);
    let worker = server.spawn(&["worker", "--queue=long", "--exec", &exec]);
    worker.hears("attempt 1 begins");
    worker.signal(Signal::INT);
    worker.hears("waiting for 1 in progress");
    worker.signal(Signal::TERM);
    worker.hears("failed (worker_stopped), it will be tried again");
    assert_eq!(worker.wait(), Some(1));

    let idle = server.spawn(&["worker", "--queue=long", "--exec=true", "--output=json", "--runs-max=1"]);
    let line = idle.stdout.recv_timeout(super::server::PATIENCE).unwrap();
    assert!(line.contains("\"event\":\"ready\""), "{line}");
    assert_eq!(idle.wait(), Some(0));
}

#[test]
fn the_run_of_a_worker_that_died_goes_to_another() {
    let server = TestServer::start();
    server.manual("heavy", &[]);
    let run = server.trigger("heavy");
    let worker = server.spawn(&["worker", "--queue=heavy", "--exec=sleep 3", "--lease=1s"]);
    worker.hears("attempt 1 begins");
    worker.signal(Signal::KILL);
    worker.wait();

    let said = work(&server, "heavy", "echo saved", &["--runs-max=1"]);
    assert!(said.contains("attempt 2 begins"), "{said}");
    let about = server.json(&["run", "describe", &run]);
    assert_eq!(
        (about["outcome"].as_str(), about["result"]["json"].as_str()),
        (Some("succeeded"), Some("saved"))
    );
}

#[test]
fn a_result_that_is_too_large_is_a_failure() {
    let server = TestServer::start();
    server.manual("large", &[]);
    let run = server.trigger("large");
    work(&server, "large", "head -c 2000000 /dev/zero | tr '\\0' x", &["--runs-max=1"]);
    let about = server.json(&["run", "describe", &run]);
    assert_eq!(about["failure"]["kind"], "result_refused");
    assert_eq!(about["outcome"], "failed");
}

#[test]
fn what_a_command_leaves_behind_is_ended_with_it() {
    let server = TestServer::start();
    server.manual("litter", &[]);
    let run = server.trigger("litter");
    work(&server, "litter", "sleep 1000 & echo $!", &["--runs-max=1"]);
    let about = server.json(&["run", "describe", &run]);
    assert_eq!(about["outcome"], "succeeded");
    let process = about["result"]["json"].as_u64().unwrap();
    // One that has ended and that nobody has buried yet has no words.
    let words = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    assert_eq!(words, "", "process {process} is still there");
}

#[test]
fn a_worker_waits_for_a_server_that_is_not_there_yet() {
    let server = TestServer::start();
    server.manual("early", &[]);
    let run = server.trigger("early");
    let listen = server.address.strip_prefix("http://").unwrap().to_owned();
    server.process.signal(Signal::TERM);
    assert_eq!(server.process.wait(), Some(0));
    let worker = server.spawn(&["worker", "--queue=early", "--exec=true", "--runs-max=1"]);
    worker.hears("the server does not answer");

    let server = TestServer::start_in(server.directory, &listen, &[]);
    worker.hears("the server answers again");
    assert_eq!(worker.wait(), Some(0));
    assert_eq!(server.json(&["run", "describe", &run])["outcome"], "succeeded");
}
