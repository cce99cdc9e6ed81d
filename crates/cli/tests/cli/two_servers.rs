//! Two servers on one PostgreSQL: whichever is asked tells what happens at both.

use std::collections::BTreeSet;

use punctual_testkit::Postgres;

use super::server::{PATIENCE, TestServer, until};

/// Schedules enough that each server drives some of them.
const SCHEDULES: usize = 12;

#[test]
fn either_server_tells_of_starts_and_workers_of_both() {
    let postgres = Postgres::start_careless().expect("PostgreSQL starts");
    let database = postgres.create_database("both").unwrap();
    let start = |node: &str| {
        let node = format!("--node={node}");
        let more = ["--shard-lease=1s", &node];
        TestServer::start_on(&database, tempfile::tempdir().unwrap(), "127.0.0.1:0", &more)
    };
    let servers = [start("left"), start("right")];
    let drives = |node: &str| {
        let shards = servers[0].json(&["shards"]);
        let mine =
            |shard: &&serde_json::Value| shard["node_id"].as_str().is_some_and(|it| it.starts_with(node));
        shards["shards"].as_array().unwrap().iter().filter(mine).count()
    };
    until(|| match (drives("left"), drives("right")) {
        (left, right) if left > 0 && right > 0 => Ok(()),
        found => Err(format!("both should drive some, found {found:?}")),
    });
    servers[0].ok(&["queue", "create", "work"]);
    let names: BTreeSet<String> = (0..SCHEDULES).map(|number| format!("s{number}")).collect();
    for name in &names {
        let overlap = "--overlap=allow_all";
        servers[0].ok(&["schedule", "create", name, "--every=1s", "--queue=work", overlap]);
    }

    for server in &servers {
        let watch = server.spawn(&["schedule", "watch", "--output=json"]);
        let (mut missing, mut began) = (names.clone(), BTreeSet::new());
        while !missing.is_empty() {
            let line =
                watch.stdout.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no word of {missing:?}"));
            let event: serde_json::Value = serde_json::from_str(&line).unwrap();
            let name = event["schedule_id"].as_str().unwrap().to_owned();
            if event["kind"] == "run_started" {
                let start = event["start"]["nominal_time"].to_string();
                assert!(began.insert((name.clone(), start)), "told twice: {event:#}");
                missing.remove(&name);
            }
        }
    }

    let worker = servers[0].spawn(&["worker", "--queue=work", "--exec=true", "--worker-id=near"]);
    worker.hears("near");
    for server in &servers {
        until(|| {
            let about = server.ok(&["queue", "describe", "work"]);
            about.contains("near").then_some(()).ok_or(about)
        });
    }
}
