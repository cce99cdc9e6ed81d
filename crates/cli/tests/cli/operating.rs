//! `top`, `doctor`, `backup` and `restore`: an operator sees how a server is, copies it, and brings the copy back.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use super::server::{TestServer, bare};
use super::{file, text};

#[test]
fn one_sample_has_numbers_queues_and_runs() {
    let server = TestServer::start();
    server.ok(&["queue", "create", "mail", "--concurrency=3"]);
    server.ok(&["run", "enqueue", "--queue=mail", "--handler=send", "--count=2"]);
    let worker = server.spawn(&["worker", "--queue=mail", "--exec=sleep 600", "--worker-id=w1"]);
    worker.hears("attempt 1 begins");
    // Without a terminal there is nothing to draw on, so that `--once` is only for those who have one.
    for args in [&["top"][..], &["top", "--once"]] {
        let page = server.ok(args);
        for part in [
            "node         node-1 (0.1.0, sqlite) at http://127.0.0.1:",
            "started      0\n",
            "not started  0\n",
            "lateness     p50 -, p99 -",
            "running      1\n",
            "queues\n",
            "3 at a time",
            "longest runs\n",
            "send on queue mail",
        ] {
            assert!(page.contains(part), "{part:?} is not in\n{page}");
        }
        let row = page.lines().find(|line| line.trim_start().starts_with("mail")).unwrap();
        let row: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(row[..5], ["mail", "open", "1", "1", "0"], "{page}");
    }
    let sample = server.json(&["top"]);
    assert_eq!(
        sample["running_count"].as_u64().or_else(|| sample["running_count"].as_str()?.parse().ok()),
        Some(1)
    );
    assert_eq!(sample["longest"][0]["worker_id"], "w1", "{sample:#}");
    worker.signal(Signal::KILL);

    let output = super::run(&["top", "--once", "--address=127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("no server at 127.0.0.1:1"), "{}", text(&output.stderr));
}

#[test]
fn a_healthy_server_has_no_findings_and_a_dead_letter_is_one() {
    let server = TestServer::start();
    let said = server.ok(&["doctor"]);
    assert!(said.starts_with("check "), "{said}");
    for check in ["timers", "clock", "quarantine", "queues", "engine"] {
        let row = said.lines().find(|line| line.starts_with(check)).unwrap_or_else(|| panic!("{said}"));
        assert!(row.contains("fine"), "{said}");
    }
    assert!(!said.contains("what to do"), "{said}");
    let found = server.json(&["doctor", "--mend"]);
    assert_eq!(found["findings"][0]["health"], "fine");
    server.ok(&["run", "enqueue", "--handler=send", "--attempts=1"]);
    server.ok(&["worker", "--queue=default", "--exec=exit 65", "--runs-max=1"]);
    let output = server.run(&["doctor"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(9), "{said}");
    assert!(
        said.contains("warning") && said.contains("\nwhat to do\n  dead_letters: punctual run list"),
        "{said}"
    );
    assert_eq!(super::run(&["doctor", "--address=127.0.0.1:1"]).status.code(), Some(5));
}

#[test]
fn a_copy_comes_back_as_it_was() {
    let server = TestServer::start();
    server.ok(&["queue", "create", "mail", "--rate=5/1m"]);
    server.ok(&["schedule", "create", "report", "0 9 * * MON-FRI", "--queue=mail", "--zone=Asia/Tokyo"]);
    server.ok(&["run", "enqueue", "--queue=mail", "--handler=send", "--input={\"to\": 7}"]);
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    let copy = copy.to_str().unwrap();
    let said = server.ok(&["backup", copy]);
    assert!(said.starts_with("copied ") && said.ends_with(&format!("into {copy}\n")), "{said}");
    assert_eq!(fs::metadata(copy).unwrap().permissions().mode() & 0o777, 0o600, "it may be secret");
    assert!(!fs::exists(format!("{copy}.part")).unwrap());

    let stderr = server.fails(&["backup", copy], 4);
    assert!(stderr.contains("exists already") && stderr.contains("--force"), "{stderr}");
    let said = server.json(&["backup", copy, "--force"]);
    assert_eq!(said["bytes"].as_u64().unwrap(), fs::metadata(copy).unwrap().len());

    // What happens after the copy is not in it.
    server.ok(&["schedule", "create", "late", "@daily"]);
    let database = format!("sqlite:{}", server.directory.path().join("punctual.db").display());
    let restore =
        |more: &[&str]| bare(&[&["restore", copy, "--database", &database], more].concat()).output().unwrap();
    let output = restore(&["--force"]);
    assert_eq!(output.status.code(), Some(8), "a server is running");
    assert!(text(&output.stderr).contains("is in use by process "), "{}", text(&output.stderr));
    server.process.signal(Signal::KILL);
    server.process.wait();
    let output = restore(&[]);
    assert_eq!(output.status.code(), Some(4), "there is a database");
    assert!(text(&output.stderr).contains("exists already"), "{}", text(&output.stderr));
    // A server that was killed leaves its log behind; it must not be read as a part of the copy.
    assert!(server.directory.path().join("punctual.db-wal").exists());
    let output = restore(&["--force"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("start the server with: punctual serve --database sqlite:"));
    assert!(!server.directory.path().join("punctual.db-wal").exists());
    assert!(!server.directory.path().join("punctual.db.part").exists());

    let server = TestServer::start_in(server.directory, "127.0.0.1:0", &[]);
    assert_eq!(server.ok(&["schedule", "count"]), "1\n");
    let about = server.json(&["schedule", "describe", "report"]);
    assert_eq!(about["schedule"]["spec"]["zone"], "Asia/Tokyo");
    let runs = server.json(&["run", "list", "--queue=mail"])["runs"].clone();
    let run = runs[0]["run_id"].as_str().unwrap();
    assert_eq!(server.json(&["run", "describe", run])["input"]["json"]["to"], 7);
    assert!(server.ok(&["queue", "describe", "mail"]).contains("5 in 1 min"));

    let elsewhere = format!("sqlite:{}", folder.path().join("new.db").display());
    let output = bare(&["restore", copy, "--database", &elsewhere]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn only_a_whole_copy_of_ours_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target.db");
    let database = format!("sqlite:{}", target.display());
    let mut header = b"SQLite format 3\0".to_vec();
    header.resize(4_096, 0);
    header[16..18].copy_from_slice(&4_096_u16.to_be_bytes());
    let foreign = file("foreign.db", &header);
    header[68..72].copy_from_slice(&0x506e_6374_u32.to_be_bytes());
    header[28..32].copy_from_slice(&9_u32.to_be_bytes());
    let cut = file("cut.db", &header);
    let note = file("note.txt", b"no database");
    for (args, exit_code, said) in [
        (&[note.as_str()][..], 2, "it does not begin like an SQLite file"),
        (&[&foreign], 2, "its application id is 0x0, expected 0x506e6374"),
        (&[&cut], 2, "it has 4096 bytes, expected 9 pages of 4096"),
        (&["missing.db"], 2, "missing.db: No such file"),
    ] {
        let output = bare(&[&["restore", "--database", &database], args].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(exit_code), "{args:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(said), "{args:?}: {}", text(&output.stderr));
        assert!(!target.exists() && !folder.path().join("target.db.part").exists());
    }
    header[28..32].copy_from_slice(&1_u32.to_be_bytes());
    let whole = file("whole.db", &header);
    for (database, said) in [
        ("memory:".to_owned(), "--database is not a file, found `memory:`"),
        (format!("sqlite:{whole}"), "is the database itself"),
        ("sqlite:/nowhere/at/all.db".to_owned(), "/nowhere/at/all.db: No such file"),
    ] {
        let output = bare(&["restore", &whole, "--database", &database, "--force"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
}

#[test]
fn a_server_without_a_file_has_no_copy() {
    let mut command = bare(&["serve", "--listen=127.0.0.1:0", "--database=memory:", "--log-filter=error"]);
    command.stderr(std::process::Stdio::null());
    let server = super::server::Process::spawn(command);
    let ready = server.stdout.recv_timeout(super::server::PATIENCE).unwrap();
    let address = ready.strip_prefix("ready at ").and_then(|rest| rest.split(',').next()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    let output = bare(&["backup", copy.to_str().unwrap(), "--address", address]).output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", text(&output.stderr));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}
