//! The words that options choose from, and the words of the wire, spelt alike.

use clap::ValueEnum;
use punctual_api::v1;

/// Makes an enum of options, each the same word as its counterpart on the wire.
macro_rules! words {
    ($(#[$docs:meta])* $name:ident = $wire:path { $($(#[$help:meta])* $word:ident,)* }) => {
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        #[value(rename_all = "snake_case")]
        pub enum $name { $($(#[$help])* $word,)* }

        impl From<$name> for i32 {
            fn from(word: $name) -> i32 {
                use $wire as Wire;
                match word { $($name::$word => Wire::$word.into(),)* }
            }
        }
    };
}

words! {
    /// What to do while runs are in progress.
    OverlapName = v1::overlap::Policy {
        /// The new start does not happen
        Skip,
        /// One start waits, further ones do not happen
        BufferOne,
        /// All wait, in order
        BufferAll,
        /// The run is asked to stop, and the start waits for it
        CancelOther,
        /// The run is ended, and the start waits for it
        TerminateOther,
        /// It starts beside the others
        AllowAll,
    }
}

words! {
    /// What becomes of the time spent paused.
    OnResumeName = v1::on_resume::Policy {
        /// It stays undone
        Skip,
        /// It is caught up, by the catch-up policy
        CatchUp,
    }
}

words! {
    /// Whether a schedule is in use.
    LifecycleName = v1::lifecycle::Word {
        /// In use
        Open,
        /// Nothing was left to do
        Completed,
        /// The user deleted it
        Deleted,
    }
}

words! {
    /// How far a run is.
    RunStateName = v1::run_state::Word {
        /// It waits for a worker
        Queued,
        /// An attempt failed, and the next one is not due yet
        BackingOff,
        /// A worker has it
        Running,
        /// It ended
        Closed,
    }
}

words! {
    /// How a run ended.
    OutcomeName = v1::outcome::Word {
        /// Well
        Succeeded,
        /// With a failure
        Failed,
        /// Its time ran out
        TimedOut,
        /// It was asked to stop, and did
        Cancelled,
        /// It was ended
        Terminated,
    }
}

words! {
    /// What to do when a live run has the same deduplication id.
    OnDuplicateName = v1::on_duplicate::Policy {
        /// Refuse the request
        Reject,
        /// Give back the run that is there
        #[value(alias = "return-existing")]
        ReturnExisting,
    }
}

words! {
    /// What became of an occurrence.
    VerdictName = v1::verdict::Word {
        /// It became a run
        Started,
        /// Not started, by the overlap policy or because it was marked
        Skipped,
        /// Not started: too late
        Missed,
        /// Not started: the buffer was full
        Dropped,
        /// Not started: the schedule was paused
        Paused,
        /// Not started: the schedule had no actions left
        Exhausted,
        /// Not started: something else took its place
        Superseded,
    }
}

/// A word of the wire for people: empty where nothing was given.
pub fn shown(word: &str) -> String {
    if word == "unspecified" { String::new() } else { word.replace('_', " ") }
}
