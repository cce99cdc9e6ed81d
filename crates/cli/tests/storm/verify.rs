//! What must be true afterwards: one outcome for every occurrence, one run for every start, policies kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use punctual_api::{Client, v1};

use crate::plan::{NAMESPACE, Plan};
use crate::policies::{self, Bounds, Stops};
use crate::workers::Seen;

/// Compares ledger, runs and what workers received; gives the figures.
pub async fn everything(client: &Client, plans: &[Plan], seen: &Seen, bounds: Bounds) -> String {
    let (mut occurrences, mut started, mut not_started) = (0, 0, BTreeMap::<&str, u64>::new());
    let (mut known_runs, mut latest, mut stops) = (BTreeMap::new(), Duration::ZERO, BTreeMap::new());
    for plan in plans {
        let description = describe(client, &plan.name).await;
        let runs = runs(client, &plan.name).await;
        let ledger = ledger(client, &plan.name).await;
        let outcomes = outcomes(plan, &description, &runs, &ledger);
        occurrences += outcomes.len();
        started += runs.len();
        for entry in &ledger {
            *not_started.entry(entry.verdict().as_str_name()).or_default() += entry.count;
        }
        let figures = policies::check_overlap(plan, &runs, &ledger, bounds);
        let figures = figures.unwrap_or_else(|wrong| panic!("{}: {wrong}", plan.name));
        latest = latest.max(figures.latest_report);
        if plan.stops_others() {
            let stops: &mut Stops = stops.entry(plan.overlap.as_str_name()).or_default();
            *stops = stops.and(figures.stops);
        }
        check_counters(plan, &description, &runs, &ledger);
        known_runs.extend(runs.into_iter().map(|run| (run.run_id.clone(), run)));
    }
    check_received(&known_runs, seen);
    assert!(stops.values().all(|stops| stops.count > 0), "nobody was ever in the way: {stops:?}");
    let stopped = stops.iter().map(|(policy, stops)| {
        let slowest = stops.slowest.as_secs_f64();
        format!("{} by {policy}, at most {slowest:.2} s after somebody else was due", stops.count)
    });
    let stopped: Vec<String> = stopped.collect();
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    format!(
        "{occurrences} occurrences: {started} started, not started {not_started:?}; 0 lost, 0 doubled, 0 unexplained; \
         workers died {} times, hung {}, answered twice {}, were told to cancel {}, reported into the void {}, stale {}; \
         a report was on its way for {:.3} s; stopped {}",
        count(&seen.deaths),
        count(&seen.hangs),
        count(&seen.twice),
        count(&seen.cancels),
        count(&seen.lost_answers),
        count(&seen.stale),
        latest.as_secs_f64(),
        stopped.join(", "),
    )
}

/// Every second that the schedule should have started at, from its creation to its end or pause, has exactly one outcome.
fn outcomes(
    plan: &Plan,
    description: &v1::ScheduleDescription,
    runs: &[v1::Run],
    ledger: &[v1::LedgerEntry],
) -> BTreeSet<i64> {
    let created = description.created_at.as_ref().unwrap();
    let state = description.schedule.as_ref().unwrap().state.as_ref();
    let paused_at = state.and_then(|state| state.paused_at.as_ref());
    let end = description.closed_at.as_ref().or(paused_at).expect("deleted or paused");
    // Strictly after the creation, up to the end.
    let expected: BTreeSet<i64> =
        (created.seconds + 1..=end.seconds).filter(|second| second % plan.every_seconds == 0).collect();
    let mut found: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.origin() != v1::origin::Kind::Request) {
        let nominal = run.nominal_time.as_ref().unwrap();
        assert_eq!(nominal.nanos, 0);
        found.entry(nominal.seconds).or_default().push(format!("run {}", run.run_id));
    }
    for entry in ledger.iter().filter(|entry| entry.origin() != v1::origin::Kind::Request) {
        let (from, through) = (entry.from.as_ref().unwrap().seconds, entry.through.as_ref().unwrap().seconds);
        let covered: Vec<i64> = (from..=through).filter(|second| second % plan.every_seconds == 0).collect();
        assert_eq!(covered.len() as u64, entry.count, "{}: {entry:?}", plan.name);
        for second in covered {
            found.entry(second).or_default().push(format!("{:?}", entry.verdict()));
        }
    }
    for (second, outcomes) in &found {
        assert_eq!(outcomes.len(), 1, "{} at {second} has more than one outcome: {outcomes:?}", plan.name);
        assert!(
            expected.contains(second),
            "{} at {second} should have no outcome, has {outcomes:?}",
            plan.name
        );
    }
    // One that is spread over its second may not have been due at the end.
    let open = expected.last().copied().filter(|last| plan.is_spread && *last == end.seconds);
    for second in expected.iter().filter(|second| Some(**second) != open) {
        assert!(found.contains_key(second), "{} at {second} has no outcome", plan.name);
    }
    expected
}

fn check_counters(
    plan: &Plan,
    description: &v1::ScheduleDescription,
    runs: &[v1::Run],
    ledger: &[v1::LedgerEntry],
) {
    let counters = description.counters.as_ref().unwrap();
    assert_eq!(counters.started, runs.len() as u64, "{}", plan.name);
    let not_started: u64 = ledger.iter().map(|entry| entry.count).sum();
    let counted = counters.skipped
        + counters.missed
        + counters.dropped
        + counters.paused
        + counters.exhausted
        + counters.superseded;
    assert_eq!(counted, not_started, "{}", plan.name);
}

/// Workers received only runs that exist; what was acknowledged is kept; every success was received.
fn check_received(runs: &BTreeMap<String, v1::Run>, seen: &Seen) {
    let received = seen.received.lock().unwrap();
    for (run_id, received) in received.iter() {
        let run = runs.get(run_id).unwrap_or_else(|| panic!("run {run_id} was received, and is not there"));
        assert_eq!(run.schedule_id, received.schedule);
        assert_eq!(run.nominal_time.as_ref().unwrap().seconds, received.nominal_second);
        assert!(received.attempts.iter().all(|attempt| *attempt <= run.attempt), "run {run_id}");
    }
    for (run_id, attempts) in seen.acknowledged.lock().unwrap().iter() {
        let run = &runs[run_id];
        assert!(
            attempts.contains(&run.attempt),
            "run {run_id}: attempt {attempts:?} was acknowledged, {} counts",
            run.attempt
        );
        assert_eq!(run.state(), v1::run_state::Word::Closed);
    }
    for run in runs.values() {
        assert_eq!(run.state(), v1::run_state::Word::Closed, "run {}", run.run_id);
        if run.outcome() == v1::outcome::Word::Succeeded {
            assert!(
                received.contains_key(&run.run_id),
                "run {} succeeded, and nobody received it",
                run.run_id
            );
        }
    }
}

async fn describe(client: &Client, name: &str) -> v1::ScheduleDescription {
    let describe = v1::DescribeScheduleRequest { namespace: NAMESPACE.into(), schedule_id: name.into() };
    client.clone().schedules.describe(describe).await.unwrap().into_inner().description.unwrap()
}

pub async fn runs(client: &Client, name: &str) -> Vec<v1::Run> {
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let list = v1::ListRunsRequest {
            namespace: NAMESPACE.into(),
            schedule_id: name.into(),
            page_size: 500,
            page_token,
            ..Default::default()
        };
        let page = client.clone().runs.list(list).await.unwrap().into_inner();
        all.extend(page.runs);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return all;
        }
    }
}

pub async fn ledger(client: &Client, name: &str) -> Vec<v1::LedgerEntry> {
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let list = v1::ScheduleLedgerRequest {
            namespace: NAMESPACE.into(),
            schedule_id: name.into(),
            page_size: 500,
            page_token,
            ..Default::default()
        };
        let page = client.clone().schedules.ledger(list).await.unwrap().into_inner();
        all.extend(page.entries);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return all;
        }
    }
}
