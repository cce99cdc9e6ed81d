//! The hot record: everything of a schedule that moves with each start, and the runs that its starts became.

use std::borrow::Cow;

use jiff::Timestamp;
use punctual_core::{
    Answer, BackfillRequest, BackfillSnapshot, BufferedStart, Lifecycle, Miss, NotStarted, Origin,
    OverlapPolicy, PauseState, Phase, RecentRun, RecentSnapshot, RequestId, RequestKey, Revision, Skip,
    Snapshot, StartId, Stop, StopKind, Supersede, Verdict,
};

use super::Malformed;
use super::bytes::{Reader, Writer};
use crate::Bytes;
use crate::key::RunKey;

const VERSION: u8 = 1;

/// What the hot record holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeState<'a> {
    /// The schedule.
    pub snapshot: Snapshot<'a>,
    /// The runs of starts in progress on a queue.
    pub runs: Cow<'a, [(StartId, RunKey)]>,
}

/// The hot record of a schedule.
pub fn encode_state(state: &TreeState<'_>) -> Bytes {
    let mut to = Writer::with_version(VERSION);
    let snapshot = &state.snapshot;
    to.number(snapshot.revision.0);
    let (life, since) = match snapshot.lifecycle {
        Lifecycle::Open => (0, None),
        Lifecycle::Completed { completed_at } => (1, Some(completed_at)),
        Lifecycle::Deleted { deleted_at } => (2, Some(deleted_at)),
    };
    to.number(life);
    to.optional(since, Writer::time);
    to.optional(snapshot.pause.as_ref(), |to, pause| {
        to.time(pause.paused_at);
        to.bytes(pause.note.as_bytes());
        to.optional(pause.until, Writer::time);
    });
    to.optional(snapshot.remaining_actions, |to, left| to.number(left.into()));
    to.number(snapshot.failures_in_a_row.into());
    for count in snapshot.counters {
        to.number(count.into());
    }
    for time in [
        snapshot.created_at,
        snapshot.last_event_at,
        snapshot.clock,
        snapshot.watermark,
        snapshot.paced_until,
    ] {
        to.time(time);
    }
    to.list(snapshot.skips.iter(), |to, time| to.time(*time));
    to.list(snapshot.requests.iter(), |to, (request, answer)| {
        to.bytes(request.0.as_bytes());
        to.number(answer.revision.0);
        to.list(answer.keys.iter(), |to, key| to.number(key.0));
    });
    to.list(snapshot.starts.iter(), write_start);
    to.list(snapshot.recent.iter(), |to, recent| {
        let RecentSnapshot { nominal_ms, request, packed } = recent.snapshot();
        to.signed(nominal_ms);
        to.number(request);
        to.number(packed);
    });
    to.list(snapshot.backfills.iter(), write_backfill);
    to.list(state.runs.iter(), |to, (start, run)| {
        write_id(to, *start);
        to.signed(run.0);
    });
    to.0.into()
}

/// Reads a hot record.
pub fn decode_state(bytes: &[u8]) -> Result<TreeState<'static>, Malformed> {
    let mut from = Reader::with_version(bytes, VERSION)?;
    let state = read_state(&mut from)?;
    from.end()?;
    Ok(state)
}

fn read_state(from: &mut Reader<'_>) -> Result<TreeState<'static>, Malformed> {
    let revision = Revision(from.number()?);
    let (life, since) = (from.number()?, from.optional(Reader::time)?);
    let lifecycle = match (life, since) {
        (0, _) => Lifecycle::Open,
        (1, Some(completed_at)) => Lifecycle::Completed { completed_at },
        (2, Some(deleted_at)) => Lifecycle::Deleted { deleted_at },
        _ => return Err(unknown("lifecycle", life)),
    };
    let pause = from.optional(|from| {
        let (paused_at, note) = (from.time()?, from.text()?.into());
        Ok(PauseState { paused_at, note, until: from.optional(Reader::time)? })
    })?;
    let remaining_actions = from.optional(Reader::small)?;
    let failures_in_a_row = from.small()?;
    let mut counters = [0; 7];
    for count in &mut counters {
        *count = from.small()?;
    }
    let mut times = [Timestamp::UNIX_EPOCH; 5];
    for time in &mut times {
        *time = from.time()?;
    }
    let [created_at, last_event_at, clock, watermark, paced_until] = times;
    let skips = from.list(Reader::time)?;
    let requests = from.list(|from| {
        let (request, revision) = (RequestId::new(from.text()?), Revision(from.number()?));
        let keys = from.list(|from| from.number().map(RequestKey))?.into();
        Ok((request, Answer { revision, keys }))
    })?;
    let starts = from.list(read_start)?;
    let recent = from.list(|from| {
        let (nominal_ms, request, packed) = (from.signed()?, from.number()?, from.number()?);
        Ok(RecentRun::restore(RecentSnapshot { nominal_ms, request, packed }))
    })?;
    let backfills = from.list(read_backfill)?;
    let runs = from.list(|from| Ok((read_id(from)?, RunKey(from.signed()?))))?;
    let snapshot = Snapshot {
        revision,
        lifecycle,
        pause,
        remaining_actions,
        failures_in_a_row,
        counters,
        created_at,
        last_event_at,
        clock,
        skips,
        requests: requests.into(),
        watermark,
        paced_until,
        starts: starts.into(),
        recent: recent.into(),
        backfills,
    };
    Ok(TreeState { snapshot, runs: runs.into() })
}

fn unknown(what: &str, found: u64) -> Malformed {
    Malformed(format!("{found} is no {what}"))
}

fn write_id(to: &mut Writer, id: StartId) {
    to.signed(id.nominal_ms);
    // No request has the key 0.
    to.number(match id.origin {
        Origin::Spec => 0,
        Origin::Request(key) => key.0,
    });
}

fn read_id(from: &mut Reader<'_>) -> Result<StartId, Malformed> {
    let nominal_ms = from.signed()?;
    let origin = match from.number()? {
        0 => Origin::Spec,
        key => Origin::Request(RequestKey(key)),
    };
    Ok(StartId { nominal_ms, origin })
}

/// Overlap policies by the number that they have in records; the order is part of the format.
pub(super) const OVERLAPS: [OverlapPolicy; 6] = [
    OverlapPolicy::Skip,
    OverlapPolicy::BufferOne,
    OverlapPolicy::BufferAll,
    OverlapPolicy::CancelOther,
    OverlapPolicy::TerminateOther,
    OverlapPolicy::AllowAll,
];

const REASONS: [NotStarted; 13] = [
    NotStarted::Skipped(Skip::Overlap),
    NotStarted::Skipped(Skip::User),
    NotStarted::Missed(Miss::Window),
    NotStarted::Missed(Miss::Count),
    NotStarted::Missed(Miss::StartFailed),
    NotStarted::Missed(Miss::Refused),
    NotStarted::Dropped,
    NotStarted::Paused,
    NotStarted::Exhausted,
    NotStarted::Superseded(Supersede::Update),
    NotStarted::Superseded(Supersede::LaterStart),
    NotStarted::Superseded(Supersede::BackfillCancelled),
    NotStarted::Superseded(Supersede::Delete),
];

fn write_one_of<T: PartialEq>(to: &mut Writer, known: &[T], value: &T) {
    let place = known.iter().position(|one| one == value);
    to.number(place.expect("the list names every value") as u64);
}

fn read_one_of<T: Copy>(from: &mut Reader<'_>, known: &[T], what: &str) -> Result<T, Malformed> {
    let place = from.number()?;
    usize::try_from(place)
        .ok()
        .and_then(|place| known.get(place).copied())
        .ok_or_else(|| unknown(what, place))
}

fn write_start(to: &mut Writer, start: &BufferedStart) {
    write_id(to, start.id);
    to.time(start.due_time);
    write_one_of(to, &OVERLAPS, &start.overlap);
    match start.phase {
        Phase::Waiting => to.number(0),
        Phase::Deferred => to.number(1),
        Phase::Ready { attempt, not_before, sent_at } => {
            to.number(2);
            to.number(attempt.into());
            to.time(not_before);
            to.optional(sent_at, Writer::time);
        }
        Phase::Doubtful { verdict, ask_at } => {
            to.number(3);
            write_one_of(to, &REASONS, &verdict);
            to.time(ask_at);
        }
        Phase::Running { started_at, seen_at, stop } => {
            to.number(4);
            to.time(started_at);
            to.time(seen_at);
            to.optional(stop, |to, stop| {
                write_one_of(to, &[StopKind::Cancel, StopKind::Terminate], &stop.kind);
                to.number(stop.attempts.into());
                to.optional(stop.not_before, Writer::time);
            });
        }
    }
    to.optional(start.input.as_deref(), Writer::bytes);
}

fn read_start(from: &mut Reader<'_>) -> Result<BufferedStart, Malformed> {
    let (id, due_time) = (read_id(from)?, from.time()?);
    let overlap = read_one_of(from, &OVERLAPS, "overlap policy")?;
    let phase = match from.number()? {
        0 => Phase::Waiting,
        1 => Phase::Deferred,
        2 => {
            let (attempt, not_before) = (from.small()?, from.time()?);
            Phase::Ready { attempt, not_before, sent_at: from.optional(Reader::time)? }
        }
        3 => Phase::Doubtful { verdict: read_one_of(from, &REASONS, "reason")?, ask_at: from.time()? },
        4 => {
            let (started_at, seen_at) = (from.time()?, from.time()?);
            let stop = from.optional(|from| {
                let kind = read_one_of(from, &[StopKind::Cancel, StopKind::Terminate], "stop")?;
                Ok(Stop { kind, attempts: from.small()?, not_before: from.optional(Reader::time)? })
            })?;
            Phase::Running { started_at, seen_at, stop }
        }
        other => return Err(unknown("phase", other)),
    };
    let input = from.optional(|from| Ok(from.bytes()?.into()))?;
    Ok(BufferedStart { id, due_time, overlap, phase, input })
}

fn write_backfill(to: &mut Writer, backfill: &BackfillSnapshot) {
    let BackfillRequest { from, through, overlap, pace, note } = &backfill.request;
    to.number(backfill.key.0);
    to.time(*from);
    to.time(*through);
    to.optional(overlap.as_ref(), |to, overlap| write_one_of(to, &OVERLAPS, overlap));
    to.optional(*pace, Writer::duration);
    to.bytes(note.as_bytes());
    to.time(backfill.watermark);
    to.number(backfill.taken);
    to.time(backfill.not_before);
    to.number(backfill.blocked_passes.into());
}

fn read_backfill(from: &mut Reader<'_>) -> Result<BackfillSnapshot, Malformed> {
    let key = RequestKey(from.number()?);
    let request = BackfillRequest {
        from: from.time()?,
        through: from.time()?,
        overlap: from.optional(|from| read_one_of(from, &OVERLAPS, "overlap policy"))?,
        pace: from.optional(Reader::duration)?,
        note: from.text()?.into(),
    };
    let (watermark, taken) = (from.time()?, from.number()?);
    let (not_before, blocked_passes) = (from.time()?, from.small()?);
    Ok(BackfillSnapshot { key, request, watermark, taken, not_before, blocked_passes })
}

/// A verdict as the small number that it has in tables: 0 is started.
pub fn verdict_number(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Started => 0,
        Verdict::NotStarted(reason) => {
            1 + REASONS.iter().position(|known| *known == reason).expect("the list names every reason") as u8
        }
    }
}

/// The verdict of a small number.
pub fn verdict_of(number: u8) -> Option<Verdict> {
    match number {
        0 => Some(Verdict::Started),
        _ => REASONS.get(usize::from(number) - 1).copied().map(Verdict::NotStarted),
    }
}
