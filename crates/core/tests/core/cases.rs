//! The published cases about schedules, with the better answer where the original loses something.

use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    Backfill, Decision, Limits, Origin, Outcome, OverlapPolicy, Pause, RequestKey, Resume, ScheduleKey,
    ScheduleTree, StartId, Trigger, decide,
};
use punctual_sim::bed::{Bed, plan};
use serde_json::Value;

use crate::wire::{self, instant, list};

fn cases(kind: &str) -> Vec<Value> {
    let text = include_str!("../../../spec/tests/cases/temporal-spec-cases.json");
    let all: Vec<Value> = serde_json::from_str(text).unwrap();
    all.into_iter().filter(|case| case["kind"] == kind).collect()
}

fn policy(name: &str) -> Option<OverlapPolicy> {
    Some(match name {
        "SKIP" => OverlapPolicy::Skip,
        "BUFFER_ONE" => OverlapPolicy::BufferOne,
        "BUFFER_ALL" => OverlapPolicy::BufferAll,
        "CANCEL_OTHER" => OverlapPolicy::CancelOther,
        "TERMINATE_OTHER" => OverlapPolicy::TerminateOther,
        "ALLOW_ALL" => OverlapPolicy::AllowAll,
        "UNSPECIFIED" => return None,
        other => panic!("{other}"),
    })
}

fn seconds(value: &Value) -> Option<SignedDuration> {
    let text = value.as_str()?;
    Some(SignedDuration::from_secs(text.strip_suffix('s').unwrap().parse().unwrap()))
}

#[test]
fn overlap_decisions() {
    let cases = cases("overlap");
    assert_eq!(cases.len(), 14);
    for case in &cases {
        let own = policy(case["schedulePolicy"].as_str().unwrap()).unwrap();
        let waiting: Vec<(i64, OverlapPolicy)> = list(case, "buffer")
            .map(|start| {
                (start["id"].as_i64().unwrap(), policy(start["policy"].as_str().unwrap()).unwrap_or(own))
            })
            .collect();
        let running = case["running"] == true;
        let found: Decision<i64> = decide(&waiting, running, usize::from(!running));
        let expect = &case["expect"];
        let ids = |value: &Value| -> Vec<i64> {
            value.as_array().into_iter().flatten().chain(Some(value)).filter_map(Value::as_i64).collect()
        };
        assert_eq!(found.overlapping, ids(&expect["startNowOverlapping"]), "{case}");
        assert_eq!(found.chosen, ids(&expect["startNow"]), "{case}");
        assert_eq!(found.kept, ids(&expect["keepBuffered"]), "{case}");
        assert_eq!(Value::Bool(found.cancel), expect["cancelRunning"], "{case}");
        assert_eq!(Value::Bool(found.terminate), expect["terminateRunning"], "{case}");
        assert_eq!(Value::from(found.skipped.len()), expect["overlapSkipped"], "{case}");
        // Better than the original (gap 12): nobody vanishes, each start stands in exactly one list.
        let total = [&found.overlapping, &found.chosen, &found.kept, &found.skipped, &found.superseded];
        assert_eq!(total.iter().map(|part| part.len()).sum::<usize>(), waiting.len(), "{case}");
    }
}

#[test]
fn catchup_windows() {
    let cases = cases("catchupWindow");
    assert_eq!(cases.len(), 5);
    for case in &cases {
        let limits = Limits {
            catchup_window_default: seconds(&case["default"]).unwrap(),
            catchup_window_min: seconds(&case["minimum"]).unwrap(),
            ..Limits::default()
        };
        assert_eq!(Some(limits.catchup_window(seconds(&case["window"]))), seconds(&case["expect"]), "{case}");
    }
}

/// The original counts history and runs against the room and then forgives ten; we count waiting starts alone (gap 13).
/// So its "buffered minus retained" is our "waiting".
#[test]
fn backfill_capacities() {
    let cases = cases("backfillCapacity");
    assert_eq!(cases.len(), 26);
    for case in &cases {
        let number = |key: &str| case[key].as_i64().unwrap();
        let limits = Limits {
            buffered_starts_max: number("maxBufferSize") as usize,
            buffer_reserve: number("generatorReserve") as usize,
            ..Limits::default()
        };
        let waiting = (number("buffered") - number("retained")).max(0) as usize;
        let room = limits.backfill_room(waiting, waiting, number("rangeBackfillers").max(0) as usize);
        assert_eq!(Value::from(room), case["expect"], "{case}");
    }
}

#[test]
fn run_ids_and_idempotency_keys() {
    for case in cases("workflowId") {
        let start = StartId::new(instant(case["nominal"].as_str().unwrap()), Origin::Spec);
        assert_eq!(start.run_id(case["base"].as_str().unwrap()), case["expect"].as_str().unwrap());
    }
    let cases = cases("requestId");
    assert_eq!(cases.len(), 2);
    for case in &cases {
        let key =
            ScheduleKey::new(case["namespaceId"].as_str().unwrap(), case["scheduleId"].as_str().unwrap());
        let start = StartId { nominal_ms: case["nominalUnixMillis"].as_i64().unwrap(), origin: Origin::Spec };
        let due = Timestamp::from_millisecond(case["actualUnixMillis"].as_i64().unwrap()).unwrap();
        let found = start.idempotency_key(&key, case["conflictToken"].as_u64().unwrap(), due);
        let expected = case["expect"].as_str().unwrap();
        // Requests have keys of their own here; the derived part is the same.
        assert_eq!(found.rsplit_once("auto-").unwrap().1, &expected[expected.len() - 36..], "{case}");
        if case["backfillId"] == "" {
            assert_eq!(found, expected);
        }
    }
    let manual = StartId { nominal_ms: 0, origin: Origin::Request(RequestKey(7)) };
    assert_eq!(manual.run_id("base"), "base-1970-01-01T00:00:00Z-0000000000000007");
}

#[test]
fn results_and_failures_are_handed_on() {
    let cases = cases("lastCompletion");
    assert_eq!(cases.len(), 1);
    let mut bed = Bed::with(punctual_sim::bed::every("1h"));
    for (index, step) in list(&cases[0], "steps").enumerate() {
        bed.advance_to(format!("{:02}:00", index + 1).as_str());
        let sees = |payload: Option<&[u8]>| payload.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        let last = bed.describe().last_completion;
        assert_eq!(sees(last.result.as_deref()).as_deref(), step["seesResult"].as_str(), "{step}");
        assert_eq!(sees(last.failure.as_deref()).as_deref(), step["seesFailure"].as_str(), "{step}");
        let start = bed.runs.last().unwrap().start;
        match (&step["outcome"]["result"], &step["outcome"]["failure"]) {
            (Value::String(result), _) => {
                _ = bed.complete_start(start, Outcome::Succeeded, Some(result.as_bytes()));
            }
            (_, Value::String(failure)) => {
                _ = bed.complete_start(start, Outcome::Failed, Some(failure.as_bytes()));
            }
            _ => {}
        }
    }
}

#[test]
fn timelines() {
    let cases = cases("timeline");
    assert_eq!(cases.len(), 16);
    cases.iter().for_each(timeline);
}

/// Something that happens at a time of its own.
enum Event<'c> {
    Patch(&'c Value),
    Update(&'c Value),
    End(&'c Value),
    Check(&'c Value),
}

fn timeline(case: &Value) {
    let mut plan = plan(wire::spec(&case["spec"]).unwrap());
    let created = instant(case["createdAt"].as_str().unwrap());
    plan.created_at = case["lastProcessedTime"].as_str().map_or(created, instant);
    plan.policies.overlap = policy(case["overlapPolicy"].as_str().unwrap()).unwrap();
    plan.policies.catchup_window = seconds(&case["catchupWindow"]);
    plan.run_id_base = case["baseWorkflowId"].as_str().unwrap().into();
    plan.remaining_actions = case["limitedActions"].as_u64().map(|left| left as u32);
    if let Some(size) = case["maxBufferSize"].as_u64() {
        plan.limits.buffered_starts_max = size as usize;
    }
    if let Some((namespace, schedule)) = case["jitterSeed"].as_str().and_then(|seed| seed.split_once('-')) {
        plan.key = ScheduleKey::new(namespace, schedule);
    }
    if case["initiallyPaused"] == true {
        plan.initial.pause = Some(Pause { note: "".into(), until: None });
    }

    let time = |value: &Value, key: &str| value[key].as_str().map(instant);
    let mut events: Vec<(Timestamp, Event<'_>)> = Vec::new();
    events.extend(list(case, "patches").map(|patch| (time(patch, "at").unwrap(), Event::Patch(patch))));
    events.extend(list(case, "updates").map(|update| (time(update, "at").unwrap(), Event::Update(update))));
    events.extend(list(case, "runs").filter_map(|run| Some((time(run, "end")?, Event::End(run)))));
    events.extend(list(case, "checks").map(|check| (time(check, "at").unwrap(), Event::Check(check))));
    events.sort_by_key(|(at, _)| *at);

    let mut bed = Bed::with(plan);
    // A run that is not said to end has ended before the next one begins.
    let open_ended = list(case, "runs").all(|run| run["end"].is_null());
    if created > bed.now {
        bed.away_until(created);
    }
    for (at, event) in &events {
        advance(&mut bed, *at, open_ended);
        match event {
            Event::Patch(patch) => apply_patch(&mut bed, patch),
            Event::Update(update) => apply_update(&mut bed, update),
            Event::End(run) => {
                let id = run["workflowId"].as_str().unwrap();
                let found = bed.runs.iter().find(|seen| seen.id.starts_with(id) && seen.ended.is_none());
                let start = found.unwrap_or_else(|| panic!("{id} does not run: {case} {:?}", bed.runs)).start;
                bed.complete_start(start, Outcome::Succeeded, None);
            }
            Event::Check(check) => check_counters(&bed, check, case),
        }
    }
    let last_start = list(case, "runs").map(|run| time(run, "start").unwrap()).max().unwrap();
    advance(&mut bed, last_start, open_ended);
    // Manual starts carry their request behind Temporal's id (gap 7), so the beginning is compared.
    let runs: Vec<&Value> = list(case, "runs").collect();
    let found = bed.runs.iter().map(|run| (run.id.as_str(), run.started_at));
    // Some timelines end while later times are still coming.
    let found: Vec<_> = found.filter(|(_, started_at)| *started_at <= last_start).collect();
    assert_eq!(found.len(), runs.len(), "{case}: {found:?}");
    for (run, (id, started_at)) in runs.iter().zip(found) {
        assert!(id.starts_with(run["workflowId"].as_str().unwrap()), "{case}: {id}");
        assert_eq!(started_at, time(run, "start").unwrap(), "{case}: {id}");
    }
    for (key, stops) in [("cancelRequestedAt", &bed.stops), ("terminateRequestedAt", &bed.stops)] {
        if let Some(at) = time(case, key) {
            assert_eq!(stops.first().map(|(when, ..)| *when), Some(at), "{case}");
            assert_eq!(stops.len(), 1, "{case}");
        }
    }
    bed.expect_ledger_once_unless_updated(case);
}

fn advance(bed: &mut Bed, to: Timestamp, open_ended: bool) {
    if open_ended {
        // Let each run end just before the next is due, so that none is in the way.
        while let Some(next) = bed.describe().timer.filter(|timer| *timer <= to) {
            bed.advance_to(next - SignedDuration::from_nanos(1));
            let running: Vec<StartId> =
                bed.runs.iter().filter(|run| run.ended.is_none()).map(|run| run.start).collect();
            for start in running {
                bed.complete_start(start, Outcome::Succeeded, None);
            }
            bed.advance_to(next);
        }
    }
    bed.advance_to(to);
}

fn apply_patch(bed: &mut Bed, patch: &Value) {
    if let Some(note) = patch["pause"].as_str() {
        bed.command(ScheduleTree::pause, Pause { note: note.into(), until: None }).unwrap();
    }
    if patch["unpause"].is_string() {
        bed.command(ScheduleTree::resume, Resume::default()).unwrap();
    }
    let trigger = &patch["triggerImmediately"];
    if trigger.is_object() {
        let overlap = trigger["overlapPolicy"].as_str().and_then(policy);
        bed.command(ScheduleTree::trigger, Trigger { overlap, ..Trigger::default() }).unwrap();
    }
    let backfill = &patch["backfill"];
    if backfill.is_object() {
        let time = |key: &str| instant(backfill[key].as_str().unwrap());
        let overlap = backfill["overlapPolicy"].as_str().and_then(policy);
        let (from, through) = (time("start"), time("end"));
        let request = Backfill { from, through, overlap, pace: None, note: "".into() };
        bed.command(ScheduleTree::backfill, request).unwrap();
    }
}

fn apply_update(bed: &mut Bed, update: &Value) {
    bed.update(|plan| {
        let (zone_free, jitter) = (wire::spec(&update["spec"]).unwrap(), plan.spec.jitter);
        plan.spec = zone_free;
        if update["spec"]["jitter"].is_null() {
            plan.spec.jitter = jitter;
        }
        plan.run_id_base = update["baseWorkflowId"].as_str().unwrap().into();
        if let Some(overlap) = update["overlapPolicy"].as_str().and_then(policy) {
            plan.policies.overlap = overlap;
        }
    })
    .unwrap();
}

fn check_counters(bed: &Bed, check: &Value, case: &Value) {
    let description = bed.describe();
    for (key, found) in [
        ("overlapSkipped", description.counters.skipped),
        ("missedCatchupWindow", description.counters.missed),
        ("bufferDropped", description.counters.dropped),
        ("bufferSize", description.starts.buffered.len() as u64),
        ("remainingActions", description.remaining_actions.unwrap_or(0).into()),
        ("futureActionTimes", description.upcoming.len() as u64),
    ] {
        if let Some(expected) = check[key].as_u64() {
            assert_eq!(found, expected, "{key} at {}: {case}", check["at"]);
        }
    }
}

trait LedgerCheck {
    fn expect_ledger_once_unless_updated(&self, case: &Value);
}

impl LedgerCheck for Bed {
    fn expect_ledger_once_unless_updated(&self, case: &Value) {
        if list(case, "updates").next().is_none() {
            self.expect_every_occurrence_decided_once();
        }
    }
}
