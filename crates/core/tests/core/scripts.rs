//! Flows as text: each block is a command and the trace that it leaves. `UPDATE_EXPECT=1` records the traces anew; review
//! reads the difference.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use punctual_core::{
    Backfill, Note, OnResume, Outcome, OverlapPolicy, Pause, Resume, ScheduleTree, SkipOccurrence, Trigger,
    Verdict,
};
use punctual_sim::bed::{Bed, Dispatcher, at, cron, every, short};
use punctual_spec::parse_duration;

#[test]
fn every_script_leaves_the_recorded_trace() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut scripts: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(scripts.len() >= 5);
    for path in scripts {
        let recorded = std::fs::read_to_string(&path).unwrap();
        let found = play(&recorded);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, &found).unwrap();
        } else {
            assert_eq!(found, recorded, "{}", path.display());
        }
    }
}

/// Plays the commands of a script and writes it down again, with the traces that they leave.
fn play(script: &str) -> String {
    let mut told = String::new();
    let mut bed: Option<Bed> = None;
    for block in script.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        let comments: Vec<&str> = block.lines().take_while(|line| line.starts_with('#')).collect();
        let Some(command) = block.lines().find(|line| !line.starts_with('#')) else {
            let _ = writeln!(told, "{block}\n");
            continue;
        };
        let seen = bed.as_ref().map_or((0, 0, 0), marks);
        perform(&mut bed, command);
        let bed = bed.as_ref().expect("a script begins with create");
        for comment in comments {
            let _ = writeln!(told, "{comment}");
        }
        let _ = writeln!(told, "{command}\n----\n{}", trace(bed, seen));
    }
    told.trim_end().to_owned() + "\n"
}

fn marks(bed: &Bed) -> (usize, usize, usize) {
    (bed.notes.len(), bed.ledger.len(), bed.stops.len())
}

fn perform(bed: &mut Option<Bed>, command: &str) {
    let words: Vec<&str> = command.split_whitespace().collect();
    if words[0] == "create" {
        *bed = Some(create(&words[1..]));
        return;
    }
    let bed = bed.as_mut().expect("a script begins with create");
    match &words[..] {
        ["advance", time] => _ = bed.advance_to(*time),
        ["away", time] => _ = bed.away_until(*time),
        ["complete", time, outcome] => _ = bed.complete(*time, outcome_named(outcome)),
        ["dispatcher", word] => {
            bed.dispatcher = match *word {
                "works" => Dispatcher::Works,
                "fails" => Dispatcher::Fails,
                "refuses" => Dispatcher::Refuses,
                "hangs" => Dispatcher::Hangs,
                other => panic!("{other}"),
            }
        }
        ["pause"] => _ = bed.command(ScheduleTree::pause, Pause { note: "".into(), until: None }).unwrap(),
        ["pause", until] => {
            bed.command(ScheduleTree::pause, Pause { note: "".into(), until: Some(at(until)) }).unwrap();
        }
        ["resume"] => _ = bed.command(ScheduleTree::resume, Resume::default()).unwrap(),
        ["resume", "catch_up"] => {
            bed.command(ScheduleTree::resume, Resume { on_resume: Some(OnResume::CatchUp) }).unwrap();
        }
        ["trigger"] => _ = bed.command(ScheduleTree::trigger, Trigger::default()).unwrap(),
        ["skip", time] => {
            bed.command(ScheduleTree::skip, SkipOccurrence { nominal_time: at(time) }).unwrap();
        }
        ["backfill", from, through] => {
            let (from, through) = (at(from), at(through));
            let overlap = Some(OverlapPolicy::BufferAll);
            bed.command(
                ScheduleTree::backfill,
                Backfill { from, through, overlap, pace: None, note: "".into() },
            )
            .unwrap();
        }
        ["update", change] => {
            bed.update(|plan| set(plan, change)).unwrap();
        }
        ["delete"] => _ = bed.command(ScheduleTree::delete, ()).unwrap(),
        other => panic!("no such command: {other:?}"),
    }
}

fn create(words: &[&str]) -> Bed {
    let first = words[0];
    let mut plan = match first.split_once('=') {
        Some(("every", duration)) => every(duration),
        Some(("cron", text)) => cron(&text.replace('_', " ")),
        _ => panic!("{first}"),
    };
    words[1..].iter().for_each(|word| set(&mut plan, word));
    Bed::with(plan)
}

fn set(plan: &mut punctual_sim::bed::Plan, word: &str) {
    match word.split_once('=') {
        Some(("overlap", name)) => plan.policies.overlap = policy_named(name),
        Some(("every", duration)) => plan.spec = every(duration).spec,
        Some(("window", duration)) => plan.policies.catchup_window = Some(parse_duration(duration).unwrap()),
        Some(("remaining", count)) => plan.remaining_actions = Some(count.parse().unwrap()),
        Some(("concurrency", count)) => plan.policies.concurrency = count.parse().unwrap(),
        Some(("pause_after_failures", count)) => {
            plan.policies.pause_after_failures = Some(count.parse().unwrap());
        }
        _ if word == "queue" => plan.target = punctual_core::Target::Queue,
        _ => panic!("{word}"),
    }
}

fn policy_named(name: &str) -> OverlapPolicy {
    match name {
        "skip" => OverlapPolicy::Skip,
        "buffer_one" => OverlapPolicy::BufferOne,
        "buffer_all" => OverlapPolicy::BufferAll,
        "cancel_other" => OverlapPolicy::CancelOther,
        "terminate_other" => OverlapPolicy::TerminateOther,
        "allow_all" => OverlapPolicy::AllowAll,
        other => panic!("{other}"),
    }
}

fn outcome_named(name: &str) -> Outcome {
    match name {
        "succeeded" => Outcome::Succeeded,
        "failed" => Outcome::Failed,
        "cancelled" => Outcome::Cancelled,
        other => panic!("{other}"),
    }
}

/// What has happened since: notes, verdicts, requests to stop; then where everything stands.
fn trace(bed: &Bed, (notes, entries, stops): (usize, usize, usize)) -> String {
    let mut lines = Vec::new();
    // Requests to stop are told below, with how hard they ask.
    for note in bed.notes[notes..].iter().filter(|note| !matches!(note, Note::StopRequested(_))) {
        lines.push(match note {
            Note::StartReadied(start) => format!("{} ready", short(start.nominal_time())),
            Note::StartRetried { start, attempts, not_before } => {
                let wait = not_before.duration_since(bed.now).max(SignedDuration::ZERO);
                format!(
                    "{} failed {attempts} times, next in {:.1} s",
                    short(start.nominal_time()),
                    wait.as_secs_f64()
                )
            }
            Note::RunStarted(start) => format!("{} running", short(start.nominal_time())),
            Note::RunCompleted { start, outcome } => format!("{} {outcome:?}", short(start.nominal_time())),
            other => format!("{other:?}"),
        });
    }
    for entry in bed.ledger[entries..].iter().filter(|entry| entry.verdict != Verdict::Started) {
        let Verdict::NotStarted(why) = entry.verdict else { continue };
        lines.push(match entry.count {
            1 => format!("{} not started: {why:?}", short(entry.from)),
            count => format!(
                "{} through {} ({count}) not started: {why:?}",
                short(entry.from),
                short(entry.through)
            ),
        });
    }
    lines.extend(
        bed.stops[stops..]
            .iter()
            .map(|(_, start, kind)| format!("{} asked to stop: {kind:?}", short(start.nominal_time()))),
    );
    let description = bed.describe();
    if !bed.waiting().is_empty() {
        lines.push(format!("waiting: {}", bed.waiting().join(" ")));
    }
    lines.push(format!(
        "revision {}; timer {}",
        description.revision.0,
        description.timer.map_or("none".into(), short)
    ));
    lines.join("\n") + "\n"
}
