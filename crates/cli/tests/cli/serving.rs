//! `serve` and `config`: a ready line, orderly stops, and one clear line with its exit code when it cannot start.

use std::io::Write;
use std::net::TcpStream;
use std::process::Stdio;

use rustix::process::Signal;

use super::server::{PATIENCE, Process, TestServer, bare};
use super::{file, run, text};

#[test]
fn an_interrupt_stops_the_server_in_order_and_its_state_is_kept() {
    let server = TestServer::start();
    server.manual("kept", &[]);
    server.process.signal(Signal::INT);
    assert_eq!(server.process.wait(), Some(0));

    let server = TestServer::start_in(server.directory, "127.0.0.1:0", &[]);
    assert_eq!(server.ok(&["schedule", "count"]), "1\n");
    server.process.signal(Signal::TERM);
    assert_eq!(server.process.wait(), Some(0));
}

#[test]
fn a_second_interrupt_does_not_wait_for_anybody() {
    let args = ["serve", "--listen=127.0.0.1:0", "--database=memory:", "--shutdown=10m"];
    let mut command = bare(&args);
    command.stderr(Stdio::piped());
    let server = Process::spawn(command);
    let ready = server.stdout.recv_timeout(PATIENCE).unwrap();
    let address = ready.strip_prefix("ready at http://").and_then(|rest| rest.split(',').next()).unwrap();
    // A request whose body never comes.
    let mut client = TcpStream::connect(address).unwrap();
    let head = "POST /v1/namespaces/default/queues HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{";
    client.write_all(head.as_bytes()).unwrap();

    server.signal(Signal::INT);
    server.hears("stopping");
    server.signal(Signal::INT);
    let code = server.wait();
    assert_eq!(code, Some(1));
}

#[test]
fn what_prevents_a_start_is_one_line_with_a_number() {
    let server = TestServer::start();
    let port = server.address.strip_prefix("http://").unwrap();
    let used = format!("sqlite:{}", server.directory.path().join("punctual.db").display());
    let bad = file("bad.toml", b"listen = 5\nlisten_to = 'x'\n");
    for (args, exit_code, said) in [
        (&["--listen", port, "--database=memory:"][..], 7, "cannot listen on 127.0.0.1:"),
        (&["--listen=127.0.0.1:0", "--database", &used], 8, "is in use by"),
        (&["--listen=127.0.0.1:0", "--database=sqlite:/proc/nope/p.db"], 8, "/proc/nope/p.db"),
        (&["--listen=here", "--database=memory:"], 2, "listen (from --listen) is \"here\""),
        (&["--listen=0.0.0.0:0", "--database=memory:"], 2, "--insecure"),
        (&["--database=postgres:x"], 2, "database (from --database)"),
        (&["--config", &bad], 2, "bad.toml"),
        (&["--config=missing.toml"], 2, "--config missing.toml: No such file"),
        (&["--worker-lease=-1s"], 2, "worker_lease"),
    ] {
        let output = run(&[&["serve", "--log-filter=error"], args].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(exit_code), "{args:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert_eq!(text(&output.stdout), "");
    }
}

#[test]
fn config_says_what_is_in_force_and_from_where() {
    let settings = file("good.toml", b"watchers_max = 5\n");
    let args = ["config", "--listen=127.0.0.1:9000", "--config", &settings];
    let output = super::command(&args).env("PUNCTUAL_SHUTDOWN", "3s").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let rows: Vec<Vec<&str>> =
        text(&output.stdout).lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(rows[0], ["name", "value", "source"]);
    for row in [
        ["listen", "127.0.0.1:9000", "flag"],
        ["shutdown", "3s", "environment"],
        ["watchers_max", "5", "file"],
        ["database", "sqlite:punctual.db", "default"],
    ] {
        assert!(rows.contains(&row.to_vec()), "{row:?} is not in {rows:?}");
    }
    let output = run(&["config", "--output=json"]);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["settings"][0]["name"], "listen");
}

#[test]
fn the_demo_is_alive() {
    let server = TestServer::start_in(tempfile::tempdir().unwrap(), "127.0.0.1:0", &["--demo"]);
    let list = server.ok(&["schedule", "list"]);
    assert!(list.contains("demo-echo  "), "{list}");
    let watch = server.spawn(&["schedule", "watch", "--count=1"]);
    assert_eq!(watch.wait(), Some(0));
}
