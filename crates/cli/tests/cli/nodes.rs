//! `nodes`, `node` and `shards` tell which servers share a database and who drives what, while one of them is drained, comes
//! back, and is killed.

use punctual_testkit::Postgres;
use rustix::process::Signal;
use serde_json::Value;

use super::server::{TestServer, until};

const SHARDS: usize = 8;

/// The nodes by the part of their names before the number, with their state and the number of their shards.
fn by_table(server: &TestServer) -> Vec<(String, String, usize)> {
    let said = server.ok(&["nodes"]);
    let mut lines = said.lines();
    let header: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["node", "state", "shards", "version", "up"], "{said}");
    let node = |line: &str| {
        let mut columns = line.split_whitespace().filter(|column| *column != "*");
        let mut next = || columns.next().unwrap_or_else(|| panic!("found {said}")).to_owned();
        let (name, state, shards) = (next(), next(), next());
        (name.split('#').next().unwrap().to_owned(), state, shards.parse().unwrap())
    };
    let mut nodes: Vec<_> = lines.take_while(|line| !line.is_empty()).map(node).collect();
    nodes.sort();
    nodes
}

fn nodes(server: &TestServer) -> Vec<Value> {
    server.json(&["nodes"])["nodes"].as_array().unwrap().clone()
}

fn is_of(node: &Value, name: &str) -> bool {
    node["node_id"].as_str().is_some_and(|id| id.starts_with(&format!("{name}#")))
}

/// Who drives each shard, and its epoch, which counts its owners.
fn shards(server: &TestServer) -> Vec<(String, u64)> {
    let said = server.ok(&["shards"]);
    let rows = said.lines().skip(1).map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, node, epoch] = columns[..] else { panic!("found {said}") };
        (node.split('#').next().unwrap().to_owned(), epoch.parse().unwrap())
    });
    rows.collect()
}

#[track_caller]
fn until_nodes_are(server: &TestServer, expected: &[(&str, &str, usize)]) {
    until(|| {
        let found = by_table(server);
        let same = found
            .iter()
            .map(|(name, state, shards)| (&name[..], &state[..], *shards))
            .eq(expected.iter().copied());
        same.then_some(()).ok_or_else(|| format!("expected {expected:?}, found {found:?}"))
    });
}

#[test]
fn whoever_is_drained_or_killed_is_seen_and_its_shards_move() {
    let postgres = Postgres::start_careless().expect("PostgreSQL starts");
    let database = postgres.create_database("nodes").unwrap();
    let start = |node: &str| {
        let (node, shards) = (format!("--node={node}"), format!("--shards={SHARDS}"));
        let more = ["--shard-lease=2s", &node, &shards];
        TestServer::start_on(&database, tempfile::tempdir().unwrap(), "127.0.0.1:0", &more)
    };
    let (left, right) = (start("left"), start("right"));
    for server in [&left, &right] {
        until_nodes_are(server, &[("left", "alive", SHARDS / 2), ("right", "alive", SHARDS / 2)]);
    }
    for node in nodes(&left) {
        assert_eq!((&node["alive"], &node["shard_count"]), (&true.into(), &(SHARDS / 2).into()), "{node:#}");
        assert_ne!(node["draining"], true, "{node:#}");
        assert_eq!(node["answers"] == true, is_of(&node, "left"), "{node:#}");
    }
    let line = |said: &str, name: &str| said.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let said = left.ok(&["nodes"]);
    assert!(line(&said, "left#").contains(" * ") && !line(&said, "right#").contains('*'), "{said}");
    assert!(said.ends_with("\n\n* answers\n"), "{said}");
    let before = shards(&left);

    let said = left.ok(&["node", "drain", "right"]);
    assert!(said.starts_with("right#") && said.ends_with(": drained, drives 0 shards\n"), "{said}");
    until_nodes_are(&left, &[("left", "alive", SHARDS), ("right", "drained", 0)]);
    let drained = nodes(&right).into_iter().find(|node| is_of(node, "right")).unwrap();
    assert_eq!((&drained["alive"], &drained["draining"]), (&true.into(), &true.into()), "{drained:#}");
    let moved = shards(&right);
    assert_eq!(moved.len(), SHARDS);
    for ((owner, epoch), (owner_before, epoch_before)) in moved.iter().zip(&before) {
        assert_eq!(owner, "left");
        assert_eq!(epoch > epoch_before, owner_before == "right", "an epoch for each owner");
    }
    until(|| {
        let said = right.fetch("/readyz");
        let says_so = said.starts_with("HTTP/1.1 503") && said.contains(r#""reason":"draining""#);
        says_so.then_some(()).ok_or(said)
    });
    assert!(left.fetch("/readyz").starts_with("HTTP/1.1 200"));

    left.ok(&["node", "resume", "right"]);
    until_nodes_are(&right, &[("left", "alive", SHARDS / 2), ("right", "alive", SHARDS / 2)]);

    right.process.signal(Signal::KILL);
    right.process.wait();
    until_nodes_are(&left, &[("left", "alive", SHARDS)]);
    assert!(shards(&left).iter().all(|(owner, _)| owner == "left"));
    assert!(nodes(&left).iter().all(|node| is_of(node, "left")), "who is gone is struck off");
}
