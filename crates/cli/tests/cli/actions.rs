//! What a schedule does: one kind of action, in plain words, and changed without losing the rest.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::server::{TestServer, in_time};

/// A server that allows what the tests need.
fn permissive() -> TestServer {
    let more = ["--allow-commands", "--allow-private"];
    TestServer::start_in(tempfile::tempdir().unwrap(), "127.0.0.1:0", &more)
}

fn action(server: &TestServer, id: &str) -> serde_json::Value {
    server.json(&["schedule", "describe", id])["schedule"]["action"].clone()
}

#[test]
fn every_kind_is_created_described_and_listed() {
    let server = permissive();
    server.ok(&["queue", "create", "mail"]);
    let create = |args: &[&str]| server.ok(&[&["schedule", "create"], args].concat());
    create(&["report", "@daily", "--queue=mail", "--priority=-5", "--key=customer-7"]);
    assert!(!server.ok(&["schedule", "list"]).contains("does"), "queues alone need no column");
    create(&[
        "ping",
        "@hourly",
        "--http=http://127.0.0.1:9/hook?at={{nominal_time}}",
        "--method=PUT",
        "--header=Authorization: Bearer secret",
        "--header=X-Team:  a:b ",
        "--body={\"x\": {{input}}}",
        "--http-timeout=5s",
        "--retry-status=404,429",
        "--input=[1]",
        "--retry-attempts=4",
    ]);
    create(&["bill", "@monthly", "--nexus=http://127.0.0.1:9/n", "--service=billing", "--operation=charge"]);
    create(&["tidy", "@daily", "--exec=find 'old exports' -delete", "--env=A=b=c", "--cwd=/tmp"]);
    create(&["words", "@daily", "--", "echo", "--flag", "a b"]);

    for (id, sentence) in [
        ("report", "report on queue mail, priority -5, key customer-7, at most 3 attempts"),
        (
            "ping",
            "PUT http://127.0.0.1:9/hook?at={{nominal_time}} with [1], headers Authorization X-Team, a body of 16 bytes",
        ),
        ("ping", "request timeout 5.0 s, tried again after 404 429, at most 4 attempts"),
        ("bill", "operation charge of billing at http://127.0.0.1:9/n, at most 3 attempts"),
        ("tidy", "command find 'old exports' -delete, in /tmp, variables A, at most 3 attempts"),
        ("words", "command echo --flag 'a b', at most"),
    ] {
        let page = server.ok(&["schedule", "describe", id]);
        assert!(page.contains(sentence), "{sentence:?} is not in\n{page}");
        assert!(!page.contains("secret"), "values of headers are not for the eye:\n{page}");
    }
    let ping = action(&server, "ping")["http"].clone();
    assert_eq!((&ping["headers"]["X-Team"], &ping["timeout"]), (&"a:b".into(), &"5s".into()), "{ping:#}");
    assert_eq!(action(&server, "tidy")["command"]["env"]["A"], "b=c");
    let list = server.ok(&["schedule", "list"]);
    assert!(list.lines().next().unwrap().ends_with("last  does"), "{list}");
    for phrase in
        ["report on queue mail", "PUT http://127.0.0.1:9/hook", "operation charge of billing", "command find"]
    {
        assert!(list.contains(phrase), "{phrase:?} is not in\n{list}");
    }
}

#[test]
fn an_update_changes_what_it_names_and_another_kind_takes_its_place() {
    let server = permissive();
    let update = |args: &[&str]| server.ok(&[&["schedule", "update", "ping"], args].concat());
    server.ok(&[
        "schedule",
        "create",
        "ping",
        "@hourly",
        "--http=http://127.0.0.1:9/a",
        "--header=A: 1",
        "--input=7",
    ]);
    let said = update(&["--method=PUT", "--retry-attempts=9"]);
    assert!(said.ends_with("action.http.method, action.http.retry.attempts_max\n"), "{said}");
    let http = action(&server, "ping")["http"].clone();
    assert_eq!((&http["url"], &http["method"]), (&"http://127.0.0.1:9/a".into(), &"PUT".into()));
    assert_eq!((&http["headers"]["A"], &http["retry"]["attempts_max"]), (&"1".into(), &9.into()));
    update(&["--header=none"]);
    assert!(action(&server, "ping")["http"]["headers"]["A"].is_null());

    let said = update(&["--queue=default", "--priority=3"]);
    assert!(said.contains("action.queue"), "{said}");
    let queue = action(&server, "ping")["queue"].clone();
    assert_eq!((&queue["queue"], &queue["handler"]), (&"default".into(), &"ping".into()), "{queue:#}");
    assert_eq!((&queue["priority"], &queue["input"]["json"]), (&3.into(), &7.into()), "the input stays");
    assert_eq!(queue["retry"]["attempts_max"], 9, "attempts stay");
    assert!(queue["timeouts"]["start_to_close"].is_null(), "timeouts are those of the kind: {queue:#}");
    update(&["--", "true"]);
    assert_eq!(action(&server, "ping")["command"]["argv"][0], "true");
    for (args, said) in [
        (&["--method=PUT"][..], "--method makes no sense for an action of the kind command"),
        (&["--nexus=http://127.0.0.1:9"], "--service and --operation"),
        (&["--priority=1"], "help: it goes with --queue"),
    ] {
        let stderr = server.fails(&[&["schedule", "update", "ping"], args].concat(), 2);
        assert!(stderr.contains(said), "{args:?}: {stderr}");
    }
}

#[test]
fn one_schedule_has_one_kind_of_action() {
    let server = TestServer::start();
    for (args, exit_code, said) in [
        (
            &["--http=http://example.com", "--exec=true"][..],
            2,
            "an action has one kind, found --http and --exec",
        ),
        (&["--queue=default", "--nexus=http://example.com"], 2, "found --queue and --nexus"),
        (&["--handler=x", "--", "true"], 2, "found --handler and a program after --"),
        (&["--exec=true", "--", "true"], 2, "cannot be used with"),
        (&["--method=GET"], 2, "--method makes no sense for an action of the kind queue"),
        (&["--http=http://example.com", "--env=A=b"], 2, "help: it goes with --exec"),
        (&["--exec=true", "--header=A: b"], 2, "help: it goes with --http or --nexus"),
        (&["--nexus=http://example.com", "--service=s"], 2, "--service and --operation"),
        (&["--http=http://example.com", "--header=none of that"], 2, "--header has no name and value"),
        (&["--http=http://example.com", "--header=A: 1", "--header=A: 2"], 2, "--header names `A` twice"),
        (&["--http=http://example.com", "--retry-status=soon"], 2, "--retry-status is not a status"),
        (&["--http=http://example.com", "--retry-status=99"], 6, "--retry-status has 99"),
        (&["--http=http://example.com", "--body=@missing"], 2, "--body @missing: No such file"),
        (&["--exec=a | b"], 2, "--exec has `|`, and no shell runs the command"),
        (&["--exec=true", "--env=A"], 2, "--env has no name and value"),
        (&["--queue=default", "--priority=200"], 6, "--priority "),
        (&["--queue="], 6, "--queue is empty"),
    ] {
        let stderr = server.fails(&[&["schedule", "create", "x", "@daily"], args].concat(), exit_code);
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{args:?}: {stderr}");
    }
}

#[test]
fn what_the_operator_does_not_allow_is_refused_with_the_flag_that_would() {
    let server = TestServer::start();
    let commands =
        "commands are not permitted here; start the server with --allow-commands (setting allow_commands)";
    let networks = |option: &str, address: &str| {
        format!(
            "error: {option}: address {address} is not public; start the server with --allow-networks {address}/32"
        )
    };
    for (args, said) in [
        (&["--exec=true"][..], format!("error: --exec: {commands}")),
        (&["--", "true"], format!("error: --exec: {commands}")),
        (&["--http=http://127.0.0.1:9/"], networks("--http", "127.0.0.1") + " (setting allow_networks) or --allow-private (setting allow_private)"),
        (&["--http=http://169.254.169.254/"], networks("--http", "169.254.169.254") + " (setting allow_networks) to permit it; --allow-private does not"),
        (&["--nexus=http://10.0.0.1/", "--service=s", "--operation=o"], networks("--nexus", "10.0.0.1")),
        (&["--http=http://localhost:9/"], "error: --http: localhost is the server's own machine; start the server with --allow-networks 127.0.0.1/32".to_owned()),
    ] {
        let stderr = server.fails(&[&["schedule", "create", "x", "@daily"], args].concat(), 6);
        assert!(stderr.starts_with(&said), "{args:?}: expected\n{said}\nfound\n{stderr}");
        assert!(!stderr.contains("schedule.action"), "a field of the wire is not what was typed: {stderr}");
    }

    // What was allowed when the schedule was made may not be any more: then the run says so.
    let server = permissive();
    server.ok(&["schedule", "create", "ping", "--manual", "--http=http://127.0.0.1:9/"]);
    server.ok(&["schedule", "create", "tidy", "--manual", "--exec=true"]);
    let server = server.restart();
    for (id, said) in [("ping", "--allow-private (setting allow_private)"), ("tidy", commands)] {
        server.trigger(id);
        let run = server.runs_until(id, |runs| {
            runs.first()
                .filter(|run| run["state"] == "closed")
                .map(|run| run["run_id"].as_str().unwrap().to_owned())
        });
        let about = server.json(&["run", "describe", &run]);
        assert_eq!(about["failure"]["kind"], "not_allowed", "{about:#}");
        assert!(about["failure"]["message"].as_str().unwrap().contains(said), "{about:#}");
    }
}

#[test]
fn times_that_are_over_and_parts_of_seconds_are_not_taken_silently() {
    let server = TestServer::start();
    let create = ["schedule", "create", "x"];
    let stderr = server.fails(&[&create[..], &["--at=2020-01-01T00:00Z"]].concat(), 2);
    assert!(stderr.starts_with("error: --at 2020-01-01T00:00:00Z is over, it is "), "{stderr}");
    let output = server.run(&[&create[..], &["--at=2020-01-01", "--at=2050-01-01"]].concat());
    assert_eq!(output.status.code(), Some(0));
    let said = super::text(&output.stderr);
    assert_eq!(said, "note: --at 2020-01-01T00:00:00Z is over and never starts\n");
    for every in ["1.5s", "1m/500ms"] {
        let stderr = server.fails(&["schedule", "create", "y", "--every", every], 2);
        assert!(
            stderr.contains(&format!(
                "--every has a part of a second, expected whole seconds, found `{every}`"
            )),
            "{stderr}"
        );
    }
}

/// Takes one request, up to a text that it has, and answers it.
fn take(target: &TcpListener, until: &'static str, status: &'static str, body: &'static str) -> String {
    let target = target.try_clone().unwrap();
    in_time(move || {
        let (mut stream, _) = target.accept().unwrap();
        let mut request = String::new();
        let mut bytes = [0; 4096];
        while !request.contains(until) {
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0, "expected {until:?} in {request}");
            request.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        request
    })
}

#[test]
fn a_cancel_reaches_an_operation_that_was_taken_on_before_the_server_was_killed() {
    let server = permissive();
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/n", target.local_addr().unwrap());
    let create = ["schedule", "create", "month-end", "--manual", "--service=billing", "--operation=close"];
    server.ok(&[&create[..], &["--nexus", &url, "--header=X-Run: {{run_id}}"]].concat());
    let run = server.trigger("month-end");
    let started = take(&target, "\r\n\r\n", "201 Created", r#"{"token": "t-1", "state": "running"}"#);
    assert!(started.starts_with("POST /n/billing/close?callback="), "{started}");
    server.runs_until("month-end", |runs| (runs[0]["worker_id"] == "punctual.callback").then_some(()));

    let server = server.restart_with(&["--allow-private"]);
    let about = server.json(&["run", "describe", &run]);
    assert_eq!(
        (&about["state"], &about["progress"]["json"]["operation_token"]),
        (&"running".into(), &"t-1".into())
    );
    server.ok(&["run", "cancel", &run]);
    let cancelled = take(&target, "\r\n\r\n", "202 Accepted", "");

    assert!(cancelled.starts_with("POST /n/billing/close/cancel HTTP/1.1\r\n"), "{cancelled}");
    let head = cancelled.to_lowercase();
    assert!(head.contains("nexus-operation-token: t-1\r\n"), "{cancelled}");
    assert!(head.contains(&format!("x-run: {run}\r\n")), "headers are those of the start: {cancelled}");
    let outcome = server.runs_until("month-end", |runs| runs[0]["outcome"].as_str().map(str::to_owned));
    assert_eq!(outcome, "cancelled");
}

#[test]
fn a_start_is_a_request_or_a_command() {
    let server = permissive();
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", target.local_addr().unwrap());
    server.ok(&["schedule", "create", "ping", "--manual", "--http", &url, "--method=PUT", "--body=hello"]);
    server.ok(&["schedule", "trigger", "ping"]);
    let request = take(&target, "hello", "200 OK", "42");
    assert!(request.starts_with("PUT /hook HTTP/1.1"), "{request}");
    let is_done = |runs: &[serde_json::Value]| {
        let run = runs.first().filter(|run| run["state"] == "closed")?;
        Some((run["outcome"].as_str()?.to_owned(), run["run_id"].as_str()?.to_owned()))
    };
    let (outcome, run) = server.runs_until("ping", is_done);
    let about = server.ok(&["run", "describe", &run]);
    assert_eq!(outcome, "succeeded", "{about}");

    server.ok(&[
        "schedule",
        "create",
        "tidy",
        "--manual",
        "--trigger-now",
        "--env=WHO=world",
        "--exec=sh -c 'echo $WHO'",
    ]);
    let (outcome, run) = server.runs_until("tidy", is_done);
    let about = server.ok(&["run", "describe", &run]);
    assert_eq!(outcome, "succeeded", "{about}");
    assert!(about.contains("world"), "{about}");
}
