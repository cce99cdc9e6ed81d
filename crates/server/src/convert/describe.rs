//! Schedules as people see them: descriptions, summaries, starts.

use punctual_api::v1;
use punctual_core::{
    BufferedStart, Counters, Entry, LastCompletion, Lifecycle, Miss, NotStarted, Origin, PauseState, Phase,
    RecentRun, ScheduleKey, Skip, Snapshot, StartId, StopKind, Supersede, Verdict,
};
use punctual_engine::Described;
use punctual_spec::Environment;
use punctual_store::RunKey;
use punctual_store::record::decode_action;

use super::payload::payload;
use super::run::{last_failure, outcome_word};
use super::schedule::{overlap_to_wire, to_wire_schedule};
use super::spec::occurrence;
use super::time::{length_to_wire, to_wire};

/// Everything about a schedule. The snapshot has what a description leaves out: marks and whole backfills.
pub(crate) fn description(described: &Described, snapshot: Option<&Snapshot<'_>>) -> v1::ScheduleDescription {
    let about = &described.description;
    let asked = about.definition.schedule();
    let base = &asked.action.run_id_base;
    let starts =
        |starts: &[BufferedStart]| starts.iter().map(|held| start(held, base, &described.runs)).collect();
    let LastCompletion { result, failure } = &about.last_completion;
    let (lifecycle, closed_at) = lifecycle(about.lifecycle);
    v1::ScheduleDescription {
        namespace: about.key.namespace.to_string(),
        schedule_id: about.key.schedule.to_string(),
        schedule: Some(v1::Schedule {
            state: about.pause.as_ref().map(pause_state),
            remaining_actions: about.remaining_actions,
            ..to_wire_schedule(asked)
        }),
        revision: about.revision.0,
        lifecycle: lifecycle.into(),
        closed_at: closed_at.map(to_wire),
        created_at: Some(to_wire(about.created_at)),
        counters: Some(counters(&about.counters)),
        in_progress: starts(&about.starts.in_progress),
        buffered: starts(&about.starts.buffered),
        recent: about.recent.iter().map(|run| recent(run, base)).collect(),
        upcoming: about.upcoming.iter().map(occurrence).collect(),
        backfills: snapshot.map(backfills).unwrap_or_default(),
        last_result: result.as_deref().and_then(payload),
        last_failure: failure.as_deref().map(last_failure),
        quarantined_reason: described.quarantined.clone().unwrap_or_default(),
        explanation: asked.spec.explain_in(&environment(&about.key)).unwrap_or_default(),
        skips: snapshot
            .map(|snapshot| snapshot.skips.iter().map(|skip| to_wire(*skip)).collect())
            .unwrap_or_default(),
    }
}

/// What a spec of this schedule needs from outside.
pub(crate) fn environment(key: &ScheduleKey) -> Environment {
    Environment::default().with_seed(key.seed())
}

/// What a list shows of a schedule.
pub(crate) fn summary(described: &Described) -> v1::ScheduleSummary {
    let about = &described.description;
    let action = decode_action(&about.definition.schedule().action.payload).ok();
    let next = about.upcoming.first().filter(|_| about.pause.is_none());
    v1::ScheduleSummary {
        schedule_id: about.key.schedule.to_string(),
        lifecycle: lifecycle(about.lifecycle).0.into(),
        paused: about.pause.is_some(),
        next_time: next.map(|next| to_wire(next.due_time)),
        running_count: count(about.starts.in_progress.len()),
        buffered_count: count(about.starts.buffered.len()),
        backfill_count: count(about.backfills.len()),
        last_completed_at: about.recent.last().map(|run| to_wire(run.completed_at())),
        queue: action.map(|action| action.queue.to_string()).unwrap_or_default(),
        revision: about.revision.0,
        quarantined: described.quarantined.is_some(),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn lifecycle(lifecycle: Lifecycle) -> (v1::lifecycle::Word, Option<jiff::Timestamp>) {
    match lifecycle {
        Lifecycle::Open => (v1::lifecycle::Word::Open, None),
        Lifecycle::Completed { completed_at } => (v1::lifecycle::Word::Completed, Some(completed_at)),
        Lifecycle::Deleted { deleted_at } => (v1::lifecycle::Word::Deleted, Some(deleted_at)),
    }
}

fn pause_state(pause: &PauseState) -> v1::ScheduleState {
    v1::ScheduleState {
        paused: true,
        note: pause.note.to_string(),
        until: pause.until.map(to_wire),
        paused_at: Some(to_wire(pause.paused_at)),
    }
}

fn counters(counters: &Counters) -> v1::Counters {
    let Counters { started, skipped, missed, dropped, paused, exhausted, superseded } = *counters;
    v1::Counters { started, skipped, missed, dropped, paused, exhausted, superseded }
}

fn backfills(snapshot: &Snapshot<'_>) -> Vec<v1::BackfillProgress> {
    let backfill = |kept: &punctual_core::BackfillSnapshot| v1::BackfillProgress {
        backfill_id: kept.key.to_string(),
        taken_count: kept.taken,
        watermark: Some(to_wire(kept.watermark)),
        backfill: Some(v1::Backfill {
            from: Some(to_wire(kept.request.from)),
            through: Some(to_wire(kept.request.through)),
            overlap: kept.request.overlap.map(overlap_to_wire).unwrap_or_default().into(),
            pace: kept.request.pace.map(length_to_wire),
            note: kept.request.note.to_string(),
        }),
    };
    snapshot.backfills.iter().map(backfill).collect()
}

fn start(held: &BufferedStart, base: &str, runs: &[(StartId, RunKey)]) -> v1::Start {
    let run = runs.iter().find(|(id, _)| *id == held.id).map(|(_, run)| run.to_string());
    let mut wire = bare_start(held.id);
    wire.due_time = Some(to_wire(held.due_time));
    wire.overlap = overlap_to_wire(held.overlap).into();
    wire.phase = phase(&held.phase).into();
    wire.name = held.id.run_id(base);
    wire.run_id = run.unwrap_or_default();
    match held.phase {
        Phase::Waiting | Phase::Deferred => {}
        Phase::Ready { attempt, not_before, .. } => {
            wire.attempt = attempt;
            wire.next_attempt_time = Some(to_wire(not_before));
        }
        Phase::Doubtful { ask_at, .. } => wire.next_attempt_time = Some(to_wire(ask_at)),
        Phase::Running { started_at, stop, .. } => {
            wire.started_at = Some(to_wire(started_at));
            wire.stop = stop.map(|stop| stop_word(stop.kind)).unwrap_or_default().into();
        }
    }
    wire
}

/// A start of which only the identity is known.
pub(crate) fn bare_start(id: StartId) -> v1::Start {
    let (origin, request_key) = origin(id.origin);
    v1::Start {
        nominal_time: Some(to_wire(id.nominal_time())),
        origin: origin.into(),
        request_key,
        ..v1::Start::default()
    }
}

/// Where a start is.
pub(crate) fn phase(phase: &Phase) -> v1::phase::Word {
    match phase {
        Phase::Waiting => v1::phase::Word::Waiting,
        Phase::Deferred => v1::phase::Word::Deferred,
        Phase::Ready { .. } => v1::phase::Word::Ready,
        Phase::Doubtful { .. } => v1::phase::Word::Doubtful,
        Phase::Running { .. } => v1::phase::Word::Running,
    }
}

fn stop_word(kind: StopKind) -> v1::stop::Kind {
    match kind {
        StopKind::Cancel => v1::stop::Kind::Cancel,
        StopKind::Terminate => v1::stop::Kind::Terminate,
    }
}

/// Who asked, and the id of what they asked.
pub(crate) fn origin(origin: Origin) -> (v1::origin::Kind, String) {
    match origin {
        Origin::Spec => (v1::origin::Kind::Spec, String::new()),
        Origin::Request(key) => (v1::origin::Kind::Request, key.to_string()),
    }
}

fn recent(run: &RecentRun, base: &str) -> v1::RecentRun {
    let id = run.id();
    let (origin, request_key) = origin(id.origin);
    v1::RecentRun {
        nominal_time: Some(to_wire(id.nominal_time())),
        origin: origin.into(),
        request_key,
        started_at: Some(to_wire(run.started_at())),
        completed_at: Some(to_wire(run.completed_at())),
        outcome: outcome_word(run.outcome()).into(),
        // Only the run's name is remembered here.
        run_id: String::new(),
        name: id.run_id(base),
    }
}

/// What became of occurrences.
pub(crate) fn entry(entry: &Entry) -> v1::LedgerEntry {
    let (origin, request_key) = origin(entry.origin);
    let (verdict, reason) = verdict(entry.verdict);
    v1::LedgerEntry {
        from: Some(to_wire(entry.from)),
        through: Some(to_wire(entry.through)),
        count: entry.count,
        at_least: entry.at_least,
        origin: origin.into(),
        request_key,
        verdict: verdict.into(),
        reason: reason.into(),
        decided_at: Some(to_wire(entry.decided_at)),
        run_id: String::new(),
    }
}

/// A verdict as two words.
pub(crate) fn verdict(verdict: Verdict) -> (v1::verdict::Word, v1::reason::Word) {
    use v1::reason::Word as Reason;
    use v1::verdict::Word;
    let Verdict::NotStarted(why) = verdict else { return (Word::Started, Reason::Unspecified) };
    match why {
        NotStarted::Skipped(Skip::Overlap) => (Word::Skipped, Reason::Overlap),
        NotStarted::Skipped(Skip::User) => (Word::Skipped, Reason::User),
        NotStarted::Missed(Miss::Window) => (Word::Missed, Reason::Window),
        NotStarted::Missed(Miss::Count) => (Word::Missed, Reason::Count),
        NotStarted::Missed(Miss::StartFailed) => (Word::Missed, Reason::StartFailed),
        NotStarted::Missed(Miss::Refused) => (Word::Missed, Reason::Refused),
        NotStarted::Dropped => (Word::Dropped, Reason::Unspecified),
        NotStarted::Paused => (Word::Paused, Reason::Unspecified),
        NotStarted::Exhausted => (Word::Exhausted, Reason::Unspecified),
        NotStarted::Superseded(Supersede::Update) => (Word::Superseded, Reason::Update),
        NotStarted::Superseded(Supersede::LaterStart) => (Word::Superseded, Reason::LaterStart),
        NotStarted::Superseded(Supersede::BackfillCancelled) => (Word::Superseded, Reason::BackfillCancelled),
        NotStarted::Superseded(Supersede::Delete) => (Word::Superseded, Reason::Delete),
    }
}
