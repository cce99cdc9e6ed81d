//! A target that is down for longer than the catch-up window: what was started in time is delivered once, and the rest is in the ledger.
//!
//! The window bounds when a start may happen, not how long its call is tried.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use punctual_api::{json, v1};
use punctual_engine::{Clock, SystemClock};
use punctual_server::{Config, Server};
use tokio::net::TcpSocket;

use crate::bed::Bed;
use crate::calls::{Target, answer, open};

/// A clock that runs so many times faster than the machine's: the outage takes three seconds, and a start may be late by one.
const FACTOR: f64 = 10.0;

struct FastClock {
    begun: Instant,
    first: Timestamp,
}

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        self.first + SignedDuration::from_secs_f64(self.begun.elapsed().as_secs_f64() * FACTOR)
    }

    fn real(&self, length: SignedDuration) -> Duration {
        length.max(SignedDuration::ZERO).unsigned_abs().div_f64(FACTOR)
    }
}

/// The shortest window that there is.
const WINDOW: SignedDuration = SignedDuration::from_secs(10);

/// Occurrences of each schedule: the last one is 25 s after the first.
const COUNT: usize = 6;
const STEP: SignedDuration = SignedDuration::from_secs(5);

/// Leases are of the fast clock too, and a busy machine must not lose one.
fn patient() -> Config {
    let mut config = open();
    config.shard_lease = SignedDuration::from_mins(5);
    config.worker_lease = SignedDuration::from_hours(1);
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_started_in_time_is_delivered_once_and_the_rest_is_in_the_ledger() {
    // A socket that nobody listens on refuses connections, and keeps its port.
    let down = TcpSocket::new_v4().unwrap();
    down.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/hook", down.local_addr().unwrap());
    let clock = Arc::new(FastClock { begun: Instant::now(), first: SystemClock.now() });
    let mut bed = Bed::of(Server::start_at(patient(), clock.clone()).await.unwrap()).await;
    let first = Timestamp::from_second(clock.now().as_second() + 10).unwrap();
    let times: Vec<Timestamp> =
        (0..COUNT).map(|index| first + STEP.checked_mul(index as i32).unwrap()).collect();
    for (id, overlap, attempts_max) in [
        ("each", "allow_all", 100),
        ("in-turn", "buffer_all", 100),
        ("alone", "skip", 100),
        ("once", "allow_all", 1),
    ] {
        create(&mut bed, id, overlap, attempts_max, &times, &url).await;
    }

    // Every time has come, the first one long before its window's end, and nobody was there to hear of it.
    until(&mut bed, |states| {
        states["each"].len() == COUNT && states["once"].iter().filter(|run| is_closed(run)).count() == COUNT
    })
    .await;
    assert!(clock.now().duration_since(first) > WINDOW + WINDOW);
    let target = Target::on(down.listen(1_024).unwrap(), &[&answer("200 OK", "", "7")]);
    let mut decided = false;
    while !decided {
        until(&mut bed, |states| states.values().flatten().all(is_closed)).await;
        decided = true;
        for time in &times {
            decided &= why(&mut bed, "in-turn", *time).await.verdict() != v1::verdict::Word::OnItsWay;
        }
    }

    let runs = runs(&mut bed).await;
    let delivered = deliveries(&target);
    // Started in time, so tried for as long as it takes, and then done once.
    assert_eq!(runs["each"].len(), COUNT);
    for run in runs["each"].iter().chain(&runs["in-turn"]).chain(&runs["alone"]) {
        assert_eq!(run.outcome(), v1::outcome::Word::Succeeded, "{run:?}");
        assert_eq!(delivered.get(&run.run_id), Some(&1), "{run:?}: {delivered:?}");
        let said = why(&mut bed, &run.schedule_id, instant(run.nominal_time)).await;
        assert_eq!((said.verdict(), &said.run_id), (v1::verdict::Word::Started, &run.run_id), "{said:?}");
    }
    assert!(runs["each"].iter().all(|run| run.attempt > 1), "{:?}", runs["each"]);
    // Out of attempts before the target was back: a dead letter, and never delivered.
    for run in &runs["once"] {
        assert_eq!((run.outcome(), run.dead_letter), (v1::outcome::Word::Failed, true), "{run:?}");
        assert_eq!(delivered.get(&run.run_id), None);
        let said = why(&mut bed, "once", instant(run.nominal_time)).await;
        assert_eq!(said.verdict(), v1::verdict::Word::Started, "{said:?}");
    }
    let total: usize = ["each", "in-turn", "alone"].iter().map(|id| runs[*id].len()).sum();
    assert_eq!(delivered.len(), total, "nothing else was delivered");

    // While the first run was tried, the others of these were not started: each of them has a reason.
    let skipped = ledger(&mut bed, "alone").await;
    assert_eq!(skipped, vec![(v1::verdict::Word::Skipped, v1::reason::Word::Overlap); COUNT - 1]);
    let missed = ledger(&mut bed, "in-turn").await;
    assert_eq!(
        missed,
        vec![(v1::verdict::Word::Missed, v1::reason::Word::Window); COUNT - runs["in-turn"].len()]
    );
    // The second one was due 20 s before the target came back.
    let said = why(&mut bed, "in-turn", times[1]).await;
    assert_eq!((said.verdict(), said.reason()), (v1::verdict::Word::Missed, v1::reason::Word::Window));
    assert!(
        said.explanation.contains("was missed: its catch-up window had passed (it is 10s now)"),
        "{said:?}"
    );
    let said = why(&mut bed, "alone", times[1]).await;
    assert!(said.explanation.contains("was skipped: a run was still in progress"), "{said:?}");
    bed.stop().await;
}

async fn create(bed: &mut Bed, id: &str, overlap: &str, attempts_max: u32, times: &[Timestamp], url: &str) {
    let schedule = serde_json::json!({
        "spec": { "times": times.iter().map(ToString::to_string).collect::<Vec<_>>() },
        "policies": { "overlap": overlap, "catchup_window": "10s" },
        "action": { "http": { "url": url, "retry": { "attempts_max": attempts_max, "backoff_max": "5s" } } },
    });
    let asked = v1::CreateScheduleRequest {
        schedule_id: id.into(),
        schedule: Some(json::from_json(schedule.to_string().as_bytes()).unwrap()),
        ..Default::default()
    };
    bed.client.schedules.create(asked).await.unwrap();
}

fn is_closed(run: &v1::Run) -> bool {
    run.state() == v1::run_state::Word::Closed
}

/// Runs by schedule; a schedule without one is there too.
async fn runs(bed: &mut Bed) -> BTreeMap<String, Vec<v1::Run>> {
    let mut found: BTreeMap<String, Vec<v1::Run>> = BTreeMap::new();
    for id in ["each", "in-turn", "alone", "once"] {
        let asked = v1::ListRunsRequest { schedule_id: id.into(), ..Default::default() };
        found.insert(id.into(), bed.client.runs.list(asked).await.unwrap().into_inner().runs);
    }
    found
}

/// Waits until the runs are as expected: whatever changes them is told to watchers.
async fn until(bed: &mut Bed, expected: impl Fn(&BTreeMap<String, Vec<v1::Run>>) -> bool) {
    let mut events =
        bed.client.schedules.watch(v1::WatchScheduleRequest::default()).await.unwrap().into_inner();
    loop {
        let found = runs(bed).await;
        if expected(&found) {
            return;
        }
        let news = tokio::time::timeout(Duration::from_secs(20), events.message()).await;
        news.unwrap_or_else(|_| panic!("nothing happens any more: {found:#?}")).unwrap();
    }
}

/// How often the target heard of each run, by its idempotency key: one key for each run, whatever the attempt.
fn deliveries(target: &Target) -> BTreeMap<String, usize> {
    let (mut counts, mut keys) = (BTreeMap::new(), BTreeMap::new());
    for got in target.got() {
        let (run, key) = (got.header("punctual-run-id"), got.header("idempotency-key"));
        assert_eq!(keys.entry(key).or_insert(run.clone()), &run, "a key is for one run");
        *counts.entry(run).or_insert(0) += 1;
    }
    counts
}

async fn why(bed: &mut Bed, id: &str, time: Timestamp) -> v1::WhyScheduleResponse {
    let time = Some(prost_types::Timestamp { seconds: time.as_second(), nanos: 0 });
    let asked = v1::WhyScheduleRequest { namespace: String::new(), schedule_id: id.into(), time };
    bed.client.schedules.why(asked).await.unwrap().into_inner()
}

fn instant(time: Option<prost_types::Timestamp>) -> Timestamp {
    Timestamp::from_second(time.unwrap().seconds).unwrap()
}

/// Why occurrences did not start, each on its own.
async fn ledger(bed: &mut Bed, id: &str) -> Vec<(v1::verdict::Word, v1::reason::Word)> {
    let asked = v1::ScheduleLedgerRequest { schedule_id: id.into(), ..Default::default() };
    let entries = bed.client.schedules.ledger(asked).await.unwrap().into_inner().entries;
    let each = |entry: &v1::LedgerEntry| vec![(entry.verdict(), entry.reason()); entry.count as usize];
    entries.iter().flat_map(each).collect()
}
