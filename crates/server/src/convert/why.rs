//! Why: one sentence with what is known, and nothing else.

use jiff::Timestamp;
use punctual_api::v1;
use punctual_core::{Miss, NotStarted, Phase, Skip, Supersede, Verdict, Why};
use punctual_engine::{Described, WhyAnswer};

use super::describe::{phase, verdict};
use super::schedule::overlap_to_wire;
use super::spec::occurrence;
use super::time::to_wire;

/// The answer for one instant.
pub(crate) fn why(instant: Timestamp, answer: &WhyAnswer, described: &Described) -> v1::WhyScheduleResponse {
    use v1::verdict::Word;
    let mut wire = v1::WhyScheduleResponse {
        explanation: sentence(instant, answer, described),
        run_id: answer.run.map(|run| run.to_string()).unwrap_or_default(),
        ..v1::WhyScheduleResponse::default()
    };
    let word = match &answer.why {
        Why::Decided { verdict: decided, decided_at } => {
            let (word, reason) = verdict(*decided);
            wire.reason = reason.into();
            wire.decided_at = Some(to_wire(*decided_at));
            word
        }
        Why::OnItsWay { phase: at } => {
            wire.phase = phase(at).into();
            Word::OnItsWay
        }
        Why::Coming { due_time } => {
            wire.due_time = Some(to_wire(*due_time));
            Word::Coming
        }
        Why::WillBeSkipped => Word::WillBeSkipped,
        Why::WhilePaused => Word::WhilePaused,
        Why::WhileExhausted => Word::WhileExhausted,
        Why::AfterEnd => Word::AfterEnd,
        Why::BeforeCreation => Word::BeforeCreation,
        Why::NoOccurrence { previous, next } => {
            wire.previous = previous.as_ref().map(occurrence);
            wire.next = next.as_ref().map(occurrence);
            Word::NoOccurrence
        }
        Why::Forgotten => Word::Forgotten,
    };
    wire.verdict = word.into();
    wire
}

fn sentence(instant: Timestamp, answer: &WhyAnswer, described: &Described) -> String {
    let about = &described.description;
    match &answer.why {
        Why::Decided { verdict: Verdict::Started, decided_at } => {
            let run = answer.run.map(|run| format!(" as run {run}")).unwrap_or_default();
            format!("{instant} was started at {decided_at}{run}")
        }
        Why::Decided { verdict: Verdict::NotStarted(why), decided_at } => {
            format!("{instant} {}; decided at {decided_at}", not_started(*why, described))
        }
        Why::OnItsWay { phase } => format!("{instant} is on its way: {}", on_its_way(phase, answer)),
        Why::Coming { due_time } if *due_time == instant => {
            format!("{instant} is coming: it will start then, as things are now")
        }
        Why::Coming { due_time } => {
            format!(
                "{instant} is coming: jitter makes it due at {due_time}, and it will start then, as things are now"
            )
        }
        Why::WillBeSkipped => format!("{instant} will be skipped: somebody marked this one occurrence"),
        Why::WhilePaused => {
            let pause = about.pause.as_ref();
            let since = pause.map(|pause| format!(" since {}", pause.paused_at)).unwrap_or_default();
            let until = pause
                .and_then(|pause| pause.until)
                .map(|until| format!(" until {until}"))
                .unwrap_or_default();
            let note = pause.map(|pause| &*pause.note).filter(|note| !note.is_empty());
            let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
            format!("{instant} will not start: the schedule is paused{since}{until}{note}")
        }
        Why::WhileExhausted => format!("{instant} will not start: the schedule has no actions left"),
        Why::AfterEnd => format!("{instant} will not start: the schedule has ended"),
        Why::BeforeCreation => {
            format!(
                "{instant} was before the schedule, which was created at {}: only a backfill can have started it",
                about.created_at
            )
        }
        Why::NoOccurrence { previous, next } => {
            let show = |occurrence: &Option<punctual_spec::Occurrence>| {
                occurrence.map_or_else(|| "none".to_owned(), |occurrence| occurrence.nominal_time.to_string())
            };
            let (previous, next) = (show(previous), show(next));
            format!(
                "{instant} is no occurrence of the spec as it is now: the one before is {previous}, the one after is {next}"
            )
        }
        Why::Forgotten => format!("{instant} was decided, but what became of it is no longer kept"),
    }
}

fn not_started(why: NotStarted, described: &Described) -> String {
    let policies = &described.description.definition.schedule().policies;
    match why {
        NotStarted::Skipped(Skip::Overlap) => {
            let policy = overlap_to_wire(policies.overlap).as_str_name();
            format!("was skipped: a run was still in progress (the overlap policy is {policy} now)")
        }
        NotStarted::Skipped(Skip::User) => "was skipped: somebody marked this one occurrence".into(),
        NotStarted::Missed(Miss::Window) => {
            let window =
                policies.catchup_window.map(|window| format!(" (it is {window:#} now)")).unwrap_or_default();
            format!("was missed: its catch-up window had passed{window}")
        }
        NotStarted::Missed(Miss::Count) => {
            "was missed: later ones of the same backlog were preferred (catch-up count)".into()
        }
        NotStarted::Missed(Miss::StartFailed) => {
            "was missed: starting it failed until its catch-up deadline".into()
        }
        NotStarted::Missed(Miss::Refused) => {
            "was missed: where it should have run refused it for good".into()
        }
        NotStarted::Dropped => "was dropped: the buffer of waiting starts was full".into(),
        NotStarted::Paused => "was not started: the schedule was paused".into(),
        NotStarted::Exhausted => "was not started: the schedule had no actions left".into(),
        NotStarted::Superseded(Supersede::Update) => {
            "was superseded: the spec was updated before it was due".into()
        }
        NotStarted::Superseded(Supersede::LaterStart) => {
            "was superseded: a later start took its place".into()
        }
        NotStarted::Superseded(Supersede::BackfillCancelled) => {
            "was superseded: the backfill that asked for it was cancelled".into()
        }
        NotStarted::Superseded(Supersede::Delete) => "was superseded: the schedule was deleted".into(),
    }
}

fn on_its_way(phase: &Phase, answer: &WhyAnswer) -> String {
    match phase {
        Phase::Waiting => "it waits for the overlap policy".into(),
        Phase::Deferred => "it waits until a run in progress ends".into(),
        Phase::Ready { attempt, not_before, .. } => {
            format!("attempt {attempt} to start it is made, not before {not_before}")
        }
        Phase::Doubtful { ask_at, .. } => {
            format!("it should not start any more, but a call may be in flight; that is asked at {ask_at}")
        }
        Phase::Running { started_at, .. } => {
            let run = answer.run.map(|run| format!(" as run {run}")).unwrap_or_default();
            format!("it was started at {started_at}{run} and has not ended")
        }
    }
}
