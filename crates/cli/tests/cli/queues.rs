//! Queues keep to their limits, are paused and purged, and give back what failed.

use super::server::TestServer;
use super::text;

#[test]
fn limits_are_declared_changed_and_removed() {
    let server = TestServer::start();
    server.ok(&[
        "queue",
        "create",
        "mail",
        "--concurrency=20",
        "--worker-concurrency=5",
        "--rate=100/1s",
        "--key-concurrency=2",
        "--key-rate=5/1m",
        "--priority-step=30s",
        "--description=what we send",
    ]);
    let page = server.ok(&["queue", "describe", "mail"]);
    for part in [
        "description    what we send",
        "state          open",
        "limits         20 at a time, 5 a worker, 100 in 1.0 s, 2 a key, 5 in 1 min a key",
        "priority step  30 s",
        "queued         0",
    ] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
    assert!(server.ok(&["queue", "list"]).contains("20 at a time, 5 a worker, 100 in 1.0 s"));

    let said = server.ok(&[
        "queue",
        "update",
        "mail",
        "--no-concurrency",
        "--no-worker-concurrency",
        "--no-key-concurrency",
        "--no-key-rate",
        "--rate=7/1m",
    ]);
    assert_eq!(said, "updated queue mail: limits 7 in 1 min\n");
    let queue = server.json(&["queue", "describe", "mail"])["queue"].clone();
    assert!(queue["concurrency_max"].is_null() && queue["key_rate"].is_null(), "{queue}");
    assert_eq!(queue["description"], "what we send", "what no option speaks of stays");
    assert_eq!(server.ok(&["queue", "update", "mail", "--no-rate"]), "updated queue mail: no limits\n");

    assert_eq!(server.ok(&["queue", "pause", "mail"]), "paused queue mail\n");
    assert!(server.ok(&["queue", "list"]).contains("mail     paused"), "{}", server.ok(&["queue", "list"]));
    assert_eq!(server.ok(&["queue", "resume", "mail"]), "resumed queue mail\n");
    assert_eq!(server.json(&["queue", "describe", "mail"])["queue"]["paused"], false);
}

#[test]
fn what_makes_no_sense_for_a_queue_is_refused() {
    let server = TestServer::start();
    server.ok(&["queue", "create", "mail"]);
    for (args, exit_code, said) in [
        (&["update", "mail"][..], 2, "there is nothing to change"),
        (&["update", "mail", "--rate=fast"], 2, "--rate is not so many in so much time, found `fast`"),
        (&["update", "mail", "--key-rate=5"], 2, "--key-rate is not so many in so much time"),
        (&["update", "mail", "--rate=5/0s"], 2, "--rate is not so many"),
        (&["update", "mail", "--rate=1/1s", "--no-rate"], 2, "cannot be used with"),
        (&["update", "mail", "--concurrency=-1"], 2, "invalid value"),
        (&["update", "nope", "--no-rate"], 3, "nope"),
        (&["update", "mail", "--rate=1/30d"], 6, "error: --rate must be a millisecond to a day"),
        (
            &["update", "mail", "--key-concurrency=0"],
            6,
            "error: --key-concurrency must be at least 1, found 0",
        ),
        (&["pause", "nope"], 3, "nope"),
        (&["resume", "nope"], 3, "nope"),
        (&["purge", "nope", "--yes"], 3, "nope"),
        (&["purge", "mail"], 2, "--yes purges without asking"),
        (&["retry", "nope"], 3, "nope"),
        (&["retry", "mail", "--max=0"], 2, "--max"),
    ] {
        let stderr = server.fails(&[&["queue"], args].concat(), exit_code);
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{args:?}: {stderr}");
    }
}

#[test]
fn a_paused_queue_hands_nothing_out_and_can_be_purged() {
    let server = TestServer::start();
    server.ok(&["queue", "create", "mail", "--paused"]);
    server.ok(&["run", "enqueue", "--queue=mail", "--handler=send", "--count=1500"]);
    let page = server.ok(&["queue", "describe", "mail"]);
    assert!(page.contains("state          paused") && page.contains("queued         1500"), "{page}");
    assert!(page.contains("first in line"), "{page}");
    assert_eq!(server.ok(&["queue", "purge", "mail", "--yes"]), "purged 1500 runs of queue mail\n");
    assert_eq!(server.json(&["queue", "describe", "mail"])["queued_count"], 0);
    assert_eq!(server.json(&["queue", "purge", "mail", "--yes"])["count"], 0);
}

#[test]
fn dead_letters_are_listed_tried_again_and_purged() {
    let server = TestServer::start();
    server.ok(&["queue", "create", "mail"]);
    let enqueue = ["run", "enqueue", "--queue=mail", "--handler=send", "--attempts=1", "--count=3"];
    server.ok(&enqueue);
    let fail = ["worker", "--queue=mail", "--exec=exit 65", "--runs-max=3"];
    assert_eq!(server.run(&fail).status.code(), Some(0));

    let list = server.ok(&["run", "list", "--queue=mail", "--dead-letters"]);
    assert_eq!(list.lines().filter(|line| line.contains("failed (dead letter)")).count(), 3, "{list}");
    let first = server.json(&["run", "list", "--dead-letters"])["runs"][0]["run_id"].clone();
    let first = first.as_str().unwrap();
    let page = server.ok(&["run", "describe", first]);
    assert!(page.contains(&format!("try it again with: punctual run retry {first}")), "{page}");
    let said = server.ok(&["run", "retry", first]);
    assert!(said.starts_with(&format!("run {first} is tried again as run ")), "{said}");
    assert_eq!(server.json(&["run", "describe", first])["dead_letter"], false);

    let said = server.run(&["queue", "retry", "mail", "--max=1"]);
    assert_eq!(text(&said.stdout), "1 dead letter of queue mail tried again\n");
    assert_eq!(
        server.ok(&["queue", "purge", "mail", "--dead-letters", "--yes"]),
        "purged 1 dead letters of queue mail\n"
    );
    assert_eq!(server.ok(&["run", "list", "--dead-letters"]), "no runs\n");
    assert_eq!(server.ok(&["queue", "retry", "mail"]), "0 dead letters of queue mail tried again\n");
    assert_eq!(
        server.json(&["queue", "describe", "mail"])["queued_count"],
        2,
        "the two that are tried again"
    );
    server.fails(&["run", "list", "--dead-letters", "--state=running"], 2);
}
