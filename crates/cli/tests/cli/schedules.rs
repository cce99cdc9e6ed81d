//! Every verb of schedules, runs and queues against a real server, for people and for programs.

use rustix::process::Signal;

use super::server::{PATIENCE, TestServer};

#[test]
fn a_schedule_is_created_described_listed_changed_and_deleted() {
    let server = TestServer::start();
    assert_eq!(server.ok(&["queue", "create", "mail"]), "declared queue mail\n");

    let said = server.ok(&[
        "schedule",
        "create",
        "report",
        "0 9 * * MON-FRI",
        "--zone=Europe/Berlin",
        "--queue=mail",
        "--input={\"customer\": 7}",
        "--overlap=buffer_one",
        "--retry-attempts=5",
        "--start-to-close=1h",
        "--pause-after-failures=3",
        "--remaining=10",
        "--jitter=1m",
    ]);
    assert!(said.starts_with("created report: At 09:00, Monday through Friday, in Europe/Berlin."), "{said}");
    assert!(said.contains("\nnext "), "{said}");

    let page = server.ok(&["schedule", "describe", "report"]);
    for part in [
        "schedule   report",
        "state      open",
        "when       At 09:00, Monday through Friday, in Europe/Berlin.",
        "report on queue mail with {\"customer\":7}, at most 5 attempts, start to close 1 h",
        "overlap buffer one",
        "pauses after 3 failures",
        "remaining  10",
        "counted    0 started",
        "next (Europe/Berlin)",
        " 09:00:00  ",
    ] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
    let described = server.json(&["schedule", "describe", "report"]);
    assert_eq!(described["schedule"]["spec"]["crons"][0]["text"], "0 9 * * MON-FRI");
    assert_eq!(described["schedule"]["action"]["queue"]["input"]["json"]["customer"], 7);
    assert_eq!(described["schedule"]["policies"]["overlap"], "buffer_one");

    let list = server.ok(&["schedule", "list"]);
    assert!(list.starts_with("id      state  when"), "{list}");
    assert!(list.contains("report  open   At 09:00, Monday through Friday, in Europe/Berlin"), "{list}");
    assert!(server.ok(&["schedule", "list", "--brief"]).contains("report  open"));
    assert_eq!(server.ok(&["schedule", "count"]), "1\n");
    assert_eq!(server.json(&["schedule", "count", "--paused=true"])["count"], 0);
    assert_eq!(
        server.ok(&["schedule", "list", "--namespace=elsewhere"]),
        "no schedules in namespace elsewhere\n"
    );

    let said = server.ok(&[
        "schedule",
        "update",
        "report",
        "0 10 * * *",
        "--overlap=skip",
        "--pause-after-failures=none",
        "--expected-revision=1",
    ]);
    assert!(said.starts_with("updated report to revision 2"), "{said}");
    let described = server.json(&["schedule", "describe", "report"]);
    assert_eq!(described["schedule"]["spec"]["crons"][0]["text"], "0 10 * * *");
    assert_eq!(described["schedule"]["spec"]["zone"], "Europe/Berlin", "what no option speaks of stays");
    assert_eq!(described["schedule"]["policies"]["overlap"], "skip");
    assert!(described["schedule"]["policies"]["pause_after_failures"].is_null());
    assert_eq!(described["schedule"]["action"]["queue"]["retry"]["attempts_max"], 5);
    let said = server.fails(&["schedule", "update", "report", "--overlap=skip", "--expected-revision=1"], 4);
    assert_eq!(
        said,
        "error: revision is 2, request expected 1\n       help: describe it again, then decide again\n"
    );

    assert_eq!(server.ok(&["schedule", "delete", "report"]), "deleted report\n");
    assert_eq!(server.ok(&["schedule", "count"]), "0\n");
    assert_eq!(server.fails(&["schedule", "pause", "report"], 6), "error: the schedule is closed\n");
}

#[test]
fn pause_skip_why_and_ledger_tell_one_story() {
    let server = TestServer::start();
    server.ok(&["queue", "create", "default"]);
    server.ok(&["schedule", "create", "yearly", "0 9 1 1 *", "--zone=Asia/Tokyo", "--paused=not yet"]);
    let page = server.ok(&["schedule", "describe", "yearly"]);
    assert!(page.contains("paused") && page.contains(": not yet"), "{page}");
    assert!(server.ok(&["schedule", "why", "yearly", "2050-01-01T09:00"]).contains("verdict  while paused"));

    assert_eq!(server.ok(&["schedule", "resume", "yearly"]), "resumed yearly\n");
    assert_eq!(
        server.ok(&["schedule", "pause", "yearly", "--note=x", "--until=2050-01-01"]),
        "paused yearly\n"
    );
    let until = server.json(&["schedule", "describe", "yearly"])["schedule"]["state"]["until"].clone();
    assert_eq!(until, "2049-12-31T15:00:00Z", "a local date is one of the schedule's zone");
    server.ok(&["schedule", "resume", "yearly"]);

    let why = server.ok(&["schedule", "why", "yearly", "2050-01-01T09:00"]);
    assert!(why.contains("verdict  coming") && why.contains("Sat 2050-01-01 09:00:00"), "{why}");
    assert_eq!(
        server.ok(&["schedule", "skip", "yearly", "2050-01-01T09:00"]),
        "yearly will not start at 2050-01-01T09:00\n"
    );
    let why = server.json(&["schedule", "why", "yearly", "2050-01-01T00:00:00Z"]);
    assert_eq!(why["verdict"], "will_be_skipped");
    assert!(server.ok(&["schedule", "describe", "yearly"]).contains("\nskips\n"));
    server.ok(&["schedule", "unskip", "yearly", "2050-01-01T09:00"]);
    assert_eq!(server.json(&["schedule", "why", "yearly", "2050-01-01T00:00:00Z"])["verdict"], "coming");
    let why = server.ok(&["schedule", "why", "yearly", "2050-01-01T09:01"]);
    assert!(
        why.contains("verdict   no occurrence") && why.contains("previous") && why.contains("next"),
        "{why}"
    );

    let preview = server.ok(&["schedule", "preview", "yearly", "--from=2050-01-01", "--count=2"]);
    assert!(
        preview.starts_with("At 09:00 on the 1st of January, in Asia/Tokyo.\n\n#  local (Asia/Tokyo)"),
        "{preview}"
    );
    assert!(preview.contains("1  Sat 2050-01-01 09:00:00  2050-01-01T00:00:00Z"), "{preview}");
    assert_eq!(
        server.ok(&["schedule", "ledger", "yearly"]),
        "no such entries: occurrences that started are in `punctual run list`\n"
    );
}

#[test]
fn a_backfill_waits_for_its_runs_and_can_be_cancelled() {
    let server = TestServer::start();
    server.manual("idle", &[]);
    server.ok(&["schedule", "create", "daily", "@daily", "--queue=idle", "--overlap=allow_all"]);
    let worker = server.spawn(&["worker", "--queue=idle", "--exec=true", "--concurrency=2"]);
    let range = ["--from=2026-01-01", "--through=2026-01-05", "--note=again"];
    let output = server.run(&[&["schedule", "backfill", "daily", "--wait"], &range[..]].concat());
    let said = super::text(&output.stdout);
    assert!(said.starts_with("backfill ") && said.ends_with(" of daily is done: 5 started\n"), "{said}");
    assert!(super::text(&output.stderr).contains("in progress"), "{}", super::text(&output.stderr));
    worker.signal(Signal::INT);
    assert_eq!(worker.wait(), Some(0));

    let list = server.ok(&["schedule", "list", "--limit=1"]);
    assert_eq!(list.lines().count(), 2);
    let output = server.run(&["schedule", "list", "--limit=1"]);
    assert_eq!(super::text(&output.stderr), "note: there are more than 1, --limit lists more\n");
    assert!(server.ok(&["schedule", "list"]).contains("succeeded"));
    assert_eq!(server.ok(&["run", "list", "--schedule=daily"]).lines().count(), 6);

    let said = server.json(&[
        "schedule",
        "backfill",
        "daily",
        "--from=2026-01-01",
        "--through=2026-02-01",
        "--pace=1h",
    ]);
    let key = said["request_keys"][0].as_str().unwrap().to_owned();
    assert!(server.ok(&["schedule", "describe", "daily"]).contains(&key));
    assert_eq!(
        server.ok(&["schedule", "cancel-backfill", "daily", &key]),
        format!("cancelled backfill {key}\n")
    );
    server.fails(&["schedule", "cancel-backfill", "daily", "0123456789abcdef"], 3);
}

#[test]
fn watch_tells_what_happens_until_it_has_told_enough() {
    let server = TestServer::start();
    server.manual("deploy", &[]);
    let watch = server.spawn(&["schedule", "watch", "deploy", "--count=1"]);
    watch.hears("watching deploy");
    let all = server.spawn(&["schedule", "watch", "--output=json"]);
    // It says nothing before something happens, so things happen until it does.
    let first = loop {
        server.ok(&["schedule", "pause", "deploy"]);
        if let Ok(line) = all.stdout.recv_timeout(std::time::Duration::from_millis(300)) {
            break line;
        }
    };
    assert!(serde_json::from_str::<serde_json::Value>(&first).unwrap()["kind"] == "paused", "{first}");
    let line = watch.stdout.recv_timeout(PATIENCE).unwrap();
    assert!(line.contains("deploy") && line.ends_with("the schedule was paused"), "{line}");
    assert_eq!(watch.wait(), Some(0));
    all.signal(Signal::INT);
    assert_eq!(all.wait(), Some(0));
}

#[test]
fn queues_and_runs_are_shown_and_runs_are_stopped() {
    let server = TestServer::start();
    server.manual("deploy", &["--trigger-now"]);
    let run = server
        .runs_until("deploy", |runs| runs.first().map(|run| run["run_id"].as_str().unwrap().to_owned()));
    let queue = server.ok(&["queue", "describe", "deploy"]);
    assert!(queue.contains("queued         1"), "{queue}");
    // A run that waits for a worker is not running, and has had no attempt.
    let page = server.ok(&["schedule", "describe", "deploy"]);
    let row = page.lines().find(|line| line.trim_start().starts_with(&format!("{run} "))).unwrap();
    assert!(page.contains("\nin progress\n") && row.contains("  queued  ") && row.ends_with("  -"), "{page}");
    assert!(server.ok(&["queue", "list"]).contains("deploy"));
    assert_eq!(server.json(&["queue", "list"])["queues"][1]["queue"]["queue"], "deploy");

    let page = server.ok(&["run", "describe", &run]);
    assert!(page.contains("state     queued") && page.contains("deploy on queue deploy"), "{page}");
    assert_eq!(server.ok(&["run", "logs", &run]), "");
    assert_eq!(server.ok(&["run", "cancel", &run]), format!("run {run} is cancelled\n"));
    assert_eq!(server.json(&["run", "describe", &run])["outcome"], "cancelled");
    assert!(server.ok(&["run", "list", "--outcome=cancelled"]).contains("cancelled"));
    assert_eq!(server.ok(&["run", "list", "--state=running"]), "no runs\n");

    server.ok(&["schedule", "trigger", "deploy", "--input=[1]"]);
    let second = server.runs_until("deploy", |runs| {
        (runs.len() == 2).then(|| runs[0]["run_id"].as_str().unwrap().to_owned())
    });
    assert_eq!(server.json(&["run", "describe", &second])["input"]["json"][0], 1);
    assert_eq!(server.ok(&["run", "terminate", &second]), format!("run {second} is terminated\n"));
}

#[test]
fn repeating_a_request_changes_nothing_more() {
    let server = TestServer::start();
    server.manual("once", &[]);
    let args = ["schedule", "trigger", "once", "--overlap=allow_all", "--request-id=r1", "--output=json"];
    assert_eq!(server.ok(&args), server.ok(&args));
    server.ok(&["schedule", "trigger", "once", "--overlap=allow_all", "--request-id=r2"]);
    server.runs_until("once", |runs| (runs.len() == 2).then_some(()));
}

#[test]
fn input_comes_from_a_file_or_from_stdin() {
    let server = TestServer::start();
    let path = super::file("input.json", b"{\"from\": \"file\"}");
    server.manual("fed", &[&format!("--input=@{path}")]);
    let input = |id: &str| {
        server.json(&["schedule", "describe", id])["schedule"]["action"]["queue"]["input"]["json"].clone()
    };
    assert_eq!(input("fed")["from"], "file");

    let mut command = server.command(&["schedule", "update", "fed", "--input=-"]);
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"[1, 2]").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(input("fed")[1], 2);
}
