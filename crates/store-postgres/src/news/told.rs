//! What happened to a schedule, and who wants to hear of it, as words.

use punctual_core::{Note, RequestKey, ScheduleKey, StartId};
use punctual_store::{Keeper, RunKey, Told, Watch, number};

use super::hex;
use crate::value::{at, time};

pub(super) fn encode_watch(watch: &Watch) -> String {
    let namespace = hex::of(&watch.namespace);
    match &watch.schedule {
        Some(schedule) => format!("{namespace}:{}", hex::of(schedule)),
        None => namespace,
    }
}

pub(super) fn decode_watch(word: &str) -> Option<Watch> {
    let (namespace, schedule) = match word.split_once(':') {
        Some((namespace, schedule)) => (namespace, Some(hex::text(schedule)?.into())),
        None => (word, None),
    };
    Some(Watch { namespace: hex::text(namespace)?.into(), schedule })
}

pub(super) fn encode(told: &Told) -> String {
    let Told { from, key, at, note, run } = told;
    let (namespace, schedule, at) = (hex::of(&key.namespace), hex::of(&key.schedule), time(*at));
    let run = run.map(|run| run.to_string()).unwrap_or_default();
    format!("{from}:{namespace}:{schedule}:{at}:{run}:{}", encode_note(note))
}

pub(super) fn decode(word: &str) -> Option<Told> {
    let mut parts = word.splitn(6, ':');
    let mut next = || parts.next();
    Some(Told {
        from: Keeper(next()?.parse().ok()?),
        key: ScheduleKey::new(&hex::text(next()?)?, &hex::text(next()?)?),
        at: at(next()?.parse().ok()?),
        run: match next()? {
            "" => None,
            run => Some(RunKey(run.parse().ok()?)),
        },
        note: decode_note(next()?)?,
    })
}

fn encode_note(note: &Note) -> String {
    let start = |start: &StartId| format!("{}:{}", start.nominal_ms, number::request(start.origin));
    match note {
        Note::Created => "created".to_owned(),
        Note::Updated => "updated".to_owned(),
        Note::Paused { after_failures: None } => "paused".to_owned(),
        Note::Paused { after_failures: Some(failures) } => format!("paused:{failures}"),
        Note::Resumed => "resumed".to_owned(),
        Note::StartReadied(id) => format!("readied:{}", start(id)),
        Note::RunStarted(id) => format!("started:{}", start(id)),
        Note::StartRetried { start: id, attempts, not_before } => {
            format!("retried:{}:{attempts}:{}", start(id), time(*not_before))
        }
        Note::RunCompleted { start: id, outcome } => {
            format!("ended:{}:{}", start(id), number::outcome_number(*outcome))
        }
        Note::StopRequested(id) => format!("stopping:{}", start(id)),
        Note::BackfillStarted(key) => format!("backfilling:{}", key.0),
        Note::BackfillEnded(key) => format!("backfilled:{}", key.0),
        Note::Completed => "completed".to_owned(),
        Note::Deleted => "deleted".to_owned(),
    }
}

fn decode_note(word: &str) -> Option<Note> {
    let mut parts = word.split(':');
    let kind = parts.next()?;
    let next = &mut || parts.next();
    Some(match kind {
        "created" => Note::Created,
        "updated" => Note::Updated,
        "paused" => Note::Paused {
            after_failures: match next() {
                Some(failures) => Some(failures.parse().ok()?),
                None => None,
            },
        },
        "resumed" => Note::Resumed,
        "readied" => Note::StartReadied(decode_start(next)?),
        "started" => Note::RunStarted(decode_start(next)?),
        "retried" => Note::StartRetried {
            start: decode_start(next)?,
            attempts: next()?.parse().ok()?,
            not_before: at(next()?.parse().ok()?),
        },
        "ended" => Note::RunCompleted {
            start: decode_start(next)?,
            outcome: number::outcome(next()?.parse().ok()?)?,
        },
        "stopping" => Note::StopRequested(decode_start(next)?),
        "backfilling" => Note::BackfillStarted(RequestKey(next()?.parse().ok()?)),
        "backfilled" => Note::BackfillEnded(RequestKey(next()?.parse().ok()?)),
        "completed" => Note::Completed,
        "deleted" => Note::Deleted,
        // A later release may know of more.
        _ => return None,
    })
}

fn decode_start<'a>(next: &mut impl FnMut() -> Option<&'a str>) -> Option<StartId> {
    Some(StartId { nominal_ms: next()?.parse().ok()?, origin: number::origin(next()?.parse().ok()?) })
}

#[cfg(test)]
mod tests {
    use punctual_core::{Origin, Outcome};

    use super::*;

    #[test]
    fn everything_that_happens_comes_back_as_it_was() {
        let start = StartId { nominal_ms: -5, origin: Origin::Request(RequestKey(u64::MAX)) };
        let notes = [
            Note::Created,
            Note::Updated,
            Note::Paused { after_failures: None },
            Note::Paused { after_failures: Some(3) },
            Note::Resumed,
            Note::StartReadied(start),
            Note::RunStarted(StartId { nominal_ms: 7, origin: Origin::Spec }),
            Note::StartRetried { start, attempts: 9, not_before: at(1_700_000_000_123_456_789) },
            Note::RunCompleted { start, outcome: Outcome::TimedOut },
            Note::StopRequested(start),
            Note::BackfillStarted(RequestKey(1)),
            Note::BackfillEnded(RequestKey(2)),
            Note::Completed,
            Note::Deleted,
        ];
        for (note, run) in notes.into_iter().zip([None, Some(RunKey(4))].into_iter().cycle()) {
            let key = ScheduleKey::new("a team", "näme: with everything");
            let told = Told { from: Keeper(7), key, at: at(5), note, run };
            let word = encode(&told);
            assert!(!word.contains(' '), "words are told apart by spaces: {word}");
            assert_eq!(decode(&word), Some(told));
        }
    }

    #[test]
    fn what_is_watched_comes_back_as_it_was() {
        for schedule in [None, Some("".into()), Some("a: b".into())] {
            let watch = Watch { namespace: "default".into(), schedule };
            assert_eq!(decode_watch(&encode_watch(&watch)), Some(watch));
        }
        assert_eq!((decode_watch("6"), decode_watch("ff"), decode("1:2")), (None, None, None));
    }
}
