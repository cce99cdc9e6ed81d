//! Policies and state: overlap, catch-up, pause on failure, notes and limits.

use jiff::SignedDuration;
use punctual_core::{Limits, OverlapPolicy, Pause, Policies};

use super::kept::Kept;
use super::refusal::Refusal;
use super::wire::{enums, schedule as wire};
use crate::convert::time::{length, length_to_wire};

/// Bytes of a note.
const NOTE_BYTES_MAX: usize = 1_000;

/// Policies as they were asked for. What Temporal has no words for stays as it was.
pub(super) fn from_wire(given: &wire::SchedulePolicies, before: Policies) -> Result<Policies, Refusal> {
    let window = match given.catchup_window {
        // Negative means the default, as zero does.
        Some(window) if window.seconds < 0 || window.nanos < 0 => None,
        window => length("catchup window", window.as_ref())?.filter(|window| !window.is_zero()),
    };
    let shown = Limits::default().catchup_window(before.catchup_window);
    Ok(Policies {
        overlap: overlap(given.overlap_policy)?.unwrap_or_default(),
        // Whoever sends back what describe filled in has not asked for anything.
        catchup_window: if window == Some(shown) { before.catchup_window } else { window.map(raised) },
        pause_after_failures: match (given.pause_on_failure, before.pause_after_failures) {
            (true, count) => count.or(Some(1)),
            (false, _) => None,
        },
        ..before
    })
}

fn raised(window: SignedDuration) -> SignedDuration {
    Limits::default().catchup_window(Some(window))
}

/// An overlap policy, if one was given.
pub(super) fn overlap(number: i32) -> Result<Option<OverlapPolicy>, Refusal> {
    use enums::ScheduleOverlapPolicy as Wire;
    let unknown = |_| Refusal::invalid(format!("{number} is no overlap policy"));
    Ok(match Wire::try_from(number).map_err(unknown)? {
        Wire::Unspecified => None,
        Wire::Skip => Some(OverlapPolicy::Skip),
        Wire::BufferOne => Some(OverlapPolicy::BufferOne),
        Wire::BufferAll => Some(OverlapPolicy::BufferAll),
        Wire::CancelOther => Some(OverlapPolicy::CancelOther),
        Wire::TerminateOther => Some(OverlapPolicy::TerminateOther),
        Wire::AllowAll => Some(OverlapPolicy::AllowAll),
    })
}

/// Policies as they are in force.
pub(super) fn shown(policies: &Policies, kept: &Kept) -> wire::SchedulePolicies {
    use enums::ScheduleOverlapPolicy as Wire;
    let overlap = match policies.overlap {
        OverlapPolicy::Skip => Wire::Skip,
        OverlapPolicy::BufferOne => Wire::BufferOne,
        OverlapPolicy::BufferAll => Wire::BufferAll,
        OverlapPolicy::CancelOther => Wire::CancelOther,
        OverlapPolicy::TerminateOther => Wire::TerminateOther,
        OverlapPolicy::AllowAll => Wire::AllowAll,
    };
    wire::SchedulePolicies {
        overlap_policy: overlap.into(),
        catchup_window: Some(length_to_wire(Limits::default().catchup_window(policies.catchup_window))),
        pause_on_failure: policies.pause_after_failures.is_some(),
        keep_original_workflow_id: kept.keep_original_workflow_id,
    }
}

/// A note that is not too long.
pub(super) fn note(note: &str) -> Result<&str, Refusal> {
    if note.len() > NOTE_BYTES_MAX {
        let message = format!("notes have {} bytes, at most {NOTE_BYTES_MAX} are allowed", note.len());
        return Err(Refusal::invalid(message));
    }
    Ok(note)
}

/// The pause that a state asks for.
pub(super) fn pause(state: &wire::ScheduleState) -> Result<Option<Pause>, Refusal> {
    let note = note(&state.notes)?;
    Ok(state.paused.then(|| Pause { note: note.into(), until: None }))
}

/// The limit of starts that a state asks for.
pub(super) fn remaining(state: &wire::ScheduleState) -> Option<u32> {
    let left = u32::try_from(state.remaining_actions.max(0)).unwrap_or(u32::MAX);
    state.limited_actions.then_some(left)
}
