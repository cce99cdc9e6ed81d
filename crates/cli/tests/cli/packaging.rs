//! What is packaged fits the binary: the dashboard shows the metrics that there are, and the unit of systemd starts what there is.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::server::TestServer;
use super::{run, text};

fn packaged(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    fs::read_to_string(path).unwrap()
}

/// Every text in a value, however deep.
fn texts<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::Object(values) => values.values().for_each(|value| texts(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Names that begin like our metrics, in some text.
fn metrics(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split(|letter| !is_part(letter)).filter(|word| word.starts_with("punctual_")).collect()
}

/// Metrics that a server serves, by the name under which each is described.
fn described(answer: &str) -> BTreeSet<&str> {
    answer.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect()
}

/// Metrics that some panel asks for, histograms by their own name instead of those of their parts.
fn shown<'d>(dashboard: &'d Value, described: &BTreeSet<&str>) -> BTreeSet<&'d str> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let asked = targets.flat_map(|target| metrics(target["expr"].as_str().unwrap()));
    let whole = |name: &'d str| {
        let parts = ["_bucket", "_sum", "_count"].into_iter();
        let mut whole = parts.filter_map(|part| name.strip_suffix(part));
        whole.find(|whole| described.contains(whole)).unwrap_or(name)
    };
    asked.map(whole).collect()
}

#[test]
fn every_metric_is_on_the_dashboard_and_every_metric_of_the_dashboard_is_served() {
    let dashboard: Value = serde_json::from_str(&packaged("grafana-dashboard.json")).unwrap();
    let mut named = Vec::new();
    texts(&dashboard, &mut named);
    let named: BTreeSet<&str> = named.into_iter().flat_map(metrics).collect();
    // Some are served only in front of a Temporal cluster, though it need not answer.
    let upstream = ["--temporal-upstream", "http://127.0.0.1:1"];
    let server = TestServer::start_in(tempfile::tempdir().unwrap(), "127.0.0.1:0", &upstream);
    let answer = server.fetch("/metrics");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    let served = metrics(&answer);
    let unknown: Vec<&&str> = named.difference(&served).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not served");
    let described = described(&answer);
    assert!(described.len() > 20, "{described:?}");
    let shown = shown(&dashboard, &described);
    let unseen: Vec<&&str> = described.difference(&shown).collect();
    assert!(unseen.is_empty(), "no panel shows {unseen:?}");
}

#[test]
fn every_panel_has_a_place_and_the_chosen_data_source() {
    let dashboard: Value = serde_json::from_str(&packaged("grafana-dashboard.json")).unwrap();
    assert!(dashboard["id"].is_null(), "whoever imports it gets a number of his own");
    let variables: Vec<&str> = dashboard["templating"]["list"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|v| v["name"].as_str())
        .collect();
    assert_eq!(variables, ["datasource", "instance"]);
    let (mut ids, mut places) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{} has the id of another", panel["title"]);
        let place = &panel["gridPos"];
        assert!(
            places.insert((place["x"].as_u64(), place["y"].as_u64())),
            "{} is upon another",
            panel["title"]
        );
        if panel["type"] == "row" {
            continue;
        }
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}");
            assert!(target["expr"].as_str().unwrap().contains("instance=~\"$instance\""), "{target}");
        }
    }
}

#[test]
fn the_unit_starts_what_there_is_and_waits_long_enough() {
    let unit = packaged("punctual.service");
    let setting = |name: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("the unit lacks {name}")).to_owned()
    };
    let started = setting("ExecStart");
    let words: Vec<&str> = started.split(' ').collect();
    assert_eq!(words[..2], ["/usr/local/bin/punctual", "serve"]);
    assert!(started.contains("--database sqlite:${STATE_DIRECTORY}/punctual.db"), "{started}");
    let output = run(&[&["config", "--output=json"], &words[2..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let settings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let settings = settings["settings"].as_array().unwrap();
    let shutdown = settings.iter().find(|setting| setting["name"] == "shutdown").unwrap();
    let seconds = |text: &str| text.trim_end_matches('s').parse::<u64>().unwrap();
    assert!(seconds(&setting("TimeoutStopSec")) > seconds(shutdown["value"].as_str().unwrap()));
    assert_eq!((setting("Restart").as_str(), setting("StateDirectory").as_str()), ("on-failure", "punctual"));

    // Where systemd is, it has the last word.
    let file =
        super::file("punctual.service", unit.replace("/usr/local/bin/punctual", "/bin/true").as_bytes());
    let checked = Command::new("systemd-analyze").args(["verify", "--man=no", &file]).output();
    if let Ok(checked) = checked {
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        let faults: Vec<&str> = said.lines().filter(|line| line.contains("punctual.service")).collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }
}
