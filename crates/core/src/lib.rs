//! What follows: the behaviour of one schedule as one deterministic piece of code.
//!
//! State and `now` go in, an [`Effects`] comes out. There is no clock, no I/O, no async, no randomness and no order that
//! depends on a hash, so the same inputs give the same schedule on every machine, in every replay.
//!
//! ```text
//!  command or timer ──> ScheduleTree::apply / wake
//!                         settle: what was due is decided as things were
//!                         the change itself
//!                         settle: tasks until none is left
//!                           generate        occurrences ──> buffered starts, or a verdict
//!                           backfill        asked ranges ──> buffered starts
//!                           process_buffer  waiting ──> ready, deferred, or a verdict; ready ──> dispatch
//!                           close           nothing left ──> completed
//!                       ──> Effects: changed parts, dispatches, stops, checks, ledger, notes, one timer
//!  dispatcher's answer ──> record_execute     ready ──> running, retry, or a verdict
//!  run's end           ──> complete           running ──> recent; the next one goes
//! ```
//!
//! A start's life is one enum, [`Phase`]. Its identity is derived ([`StartId`]), so a retry meets itself. Every
//! occurrence ends with exactly one verdict in the ledger.

mod schedule;
mod id;
mod tree;
mod command;

mod scheduler;
mod generator;
mod backfiller;
mod start;
mod overlap;
mod invoker;
mod completion;
mod visibility;
mod run;
mod snapshot;

mod task;
mod transition;
mod ledger;
mod note;
mod limits;
mod rejection;
mod mutant;

pub use backfiller::{BackfillRequest, Backfiller};
pub use command::{
    Answer, Backfill, BackfillProgress, CancelBackfill, Change, Command, Create, Description, InitialPatch,
    Pause, Resume, Seen, Sighting, SkipOccurrence, Trigger, UnskipOccurrence, Update, Waiting, Why,
};
pub use completion::{Completion, LastCompletion};
pub use generator::Generator;
pub use id::{Origin, RequestId, RequestKey, Revision, ScheduleKey, StartId};
pub use invoker::{Dispatched, Invoker};
pub use ledger::{Entry, Miss, NotStarted, Skip, Supersede, Verdict};
pub use limits::Limits;
#[cfg(feature = "mutants")]
pub use mutant::{Mutant, activate};
pub use note::Note;
pub use overlap::{Decision, decide};
pub use rejection::Rejection;
pub use run::{Failure, NextStep, RetryPolicy, RunAction, Timeouts, Wish};
pub use schedule::{
    Action, CatchupCount, Definition, OnResume, OverlapPolicy, Payload, Policies, Schedule, Target,
};
pub use scheduler::{Counters, Lifecycle, PauseState, Scheduler};
pub use snapshot::{BackfillSnapshot, RecentSnapshot, Snapshot};
pub use start::{BufferedStart, Outcome, Phase, RecentRun, Stop, StopKind};
pub use transition::{Changed, Dispatch, Effects, StopRequest, Transition};
pub use tree::ScheduleTree;
pub use visibility::Visibility;
