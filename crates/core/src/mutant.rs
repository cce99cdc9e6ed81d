//! Deliberate faults, for the proof that the simulator would find them. Without the feature they are not compiled in.

/// One deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Mutant {
    LastDueIsLeftOut,
    WatermarkMovesToNow,
    UpdateForgetsWhatWasDue,
    ReadyHoldsNoPlace,
    StartIsNotCounted,
    RequestsAreForgotten,
    ActionsAreNotConsumed,
    ActionsAreConsumedTwice,
    MissedLeavesNoEntry,
    DroppedLeavesNoEntry,
    DeferredAreNotWoken,
    PauseLetsTheBufferThrough,
    ResumeForgetsThePause,
    BufferOneKeepsTwo,
    SkipMarksAreIgnored,
    BackfillLeavesOutItsFirst,
    StartIsGivenUpUnasked,
    FailedStartIsNotRetried,
    CatchupTakesTheOldest,
    WindowIsDoubled,
    ClockRunsBackwards,
    SilentRunsAreNotAskedFor,
    SupersededVanish,
    ConcurrencyIsOneMore,
    UnknownCompletionCounts,
}

#[cfg(feature = "mutants")]
impl Mutant {
    /// All of them.
    pub const ALL: [Mutant; 25] = [
        Mutant::LastDueIsLeftOut,
        Mutant::WatermarkMovesToNow,
        Mutant::UpdateForgetsWhatWasDue,
        Mutant::ReadyHoldsNoPlace,
        Mutant::StartIsNotCounted,
        Mutant::RequestsAreForgotten,
        Mutant::ActionsAreNotConsumed,
        Mutant::ActionsAreConsumedTwice,
        Mutant::MissedLeavesNoEntry,
        Mutant::DroppedLeavesNoEntry,
        Mutant::DeferredAreNotWoken,
        Mutant::PauseLetsTheBufferThrough,
        Mutant::ResumeForgetsThePause,
        Mutant::BufferOneKeepsTwo,
        Mutant::SkipMarksAreIgnored,
        Mutant::BackfillLeavesOutItsFirst,
        Mutant::StartIsGivenUpUnasked,
        Mutant::FailedStartIsNotRetried,
        Mutant::CatchupTakesTheOldest,
        Mutant::WindowIsDoubled,
        Mutant::ClockRunsBackwards,
        Mutant::SilentRunsAreNotAskedFor,
        Mutant::SupersededVanish,
        Mutant::ConcurrencyIsOneMore,
        Mutant::UnknownCompletionCounts,
    ];
}

#[cfg(feature = "mutants")]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Makes one fault on this thread, or none.
#[cfg(feature = "mutants")]
pub fn activate(mutant: Option<Mutant>) {
    ACTIVE.set(mutant);
}

/// Whether this fault is made now.
#[inline]
pub(crate) fn is(mutant: Mutant) -> bool {
    #[cfg(feature = "mutants")]
    return ACTIVE.get() == Some(mutant);
    #[cfg(not(feature = "mutants"))]
    {
        let _ = mutant;
        false
    }
}
