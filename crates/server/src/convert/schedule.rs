//! Schedules: what the user asked for, and the verbs' bodies.

use std::sync::Arc;

use jiff::SignedDuration;
use punctual_api::v1;
use punctual_core::{
    Action, Backfill, CatchupCount, OnResume, OverlapPolicy, Payload, Policies, RequestKey, RunAction,
    Schedule, Target, Trigger,
};
use punctual_spec::Spec;
use punctual_store::record::{decode_action, encode_action};

use super::time::{instant, length, length_to_wire, needed};
use super::{action, payload, spec, word};
use crate::status::{Fault, found};

/// The parts of a schedule that a definition is made of.
pub(crate) struct Parts {
    pub(crate) spec: Spec,
    pub(crate) action: RunAction,
    pub(crate) run_id_base: Arc<str>,
    pub(crate) policies: Policies,
}

impl Parts {
    /// Reads them from the wire; what is not given has its default.
    pub(crate) fn from_wire(wire: v1::Schedule) -> Result<Parts, Fault> {
        let action = wire.action.unwrap_or_default();
        Ok(Parts {
            spec: spec::from_wire(wire.spec.unwrap_or_default()).map_err(|fault| fault.within("spec"))?,
            run_id_base: action.run_id_base.as_str().into(),
            action: action::from_wire(action).map_err(|fault| fault.within("action"))?,
            policies: policies(wire.policies.unwrap_or_default())
                .map_err(|fault| fault.within("policies"))?,
        })
    }

    /// The schedule that they make.
    pub(crate) fn into_schedule(self, id: &str, attachment: Payload) -> Schedule {
        let base = if self.run_id_base.is_empty() { id.into() } else { self.run_id_base };
        let action =
            Action { target: Target::Queue, run_id_base: base, payload: encode_action(&self.action) };
        Schedule { spec: self.spec, action, policies: self.policies, attachment }
    }
}

/// The least catch-up window that the contract allows.
const CATCHUP_WINDOW_MIN: SignedDuration = SignedDuration::from_secs(10);

fn policies(wire: v1::Policies) -> Result<Policies, Fault> {
    let catchup_window = length("catchup_window", wire.catchup_window.as_ref())?;
    if let Some(window) = catchup_window.filter(|window| *window < CATCHUP_WINDOW_MIN) {
        return Err(Fault::field("catchup_window", format!("is {window:#}, at least 10s is needed")));
    }
    let positive = |field: &str, number: Option<u32>| match number {
        Some(0) => Err(Fault::field(field, "is 0, at least 1 is needed")),
        number => Ok(number),
    };
    Ok(Policies {
        overlap: overlap("overlap", wire.overlap)?.unwrap_or_default(),
        concurrency: positive("concurrency", wire.concurrency)?.unwrap_or(1),
        catchup_window,
        catchup_count: positive("catchup_count", wire.catchup_count)?
            .map_or(CatchupCount::All, CatchupCount::Latest),
        catchup_pace: length("catchup_pace", wire.catchup_pace.as_ref())?,
        pause_after_failures: positive("pause_after_failures", wire.pause_after_failures)?,
        on_resume: on_resume("on_resume", wire.on_resume)?.unwrap_or_default(),
    })
}

/// An overlap policy, if one was given.
pub(crate) fn overlap(field: &str, number: i32) -> Result<Option<OverlapPolicy>, Fault> {
    use v1::overlap::Policy;
    Ok(match word(field, number)? {
        Policy::Unspecified => None,
        Policy::Skip => Some(OverlapPolicy::Skip),
        Policy::BufferOne => Some(OverlapPolicy::BufferOne),
        Policy::BufferAll => Some(OverlapPolicy::BufferAll),
        Policy::CancelOther => Some(OverlapPolicy::CancelOther),
        Policy::TerminateOther => Some(OverlapPolicy::TerminateOther),
        Policy::AllowAll => Some(OverlapPolicy::AllowAll),
    })
}

/// An overlap policy for the wire.
pub(crate) fn overlap_to_wire(overlap: OverlapPolicy) -> v1::overlap::Policy {
    use v1::overlap::Policy;
    match overlap {
        OverlapPolicy::Skip => Policy::Skip,
        OverlapPolicy::BufferOne => Policy::BufferOne,
        OverlapPolicy::BufferAll => Policy::BufferAll,
        OverlapPolicy::CancelOther => Policy::CancelOther,
        OverlapPolicy::TerminateOther => Policy::TerminateOther,
        OverlapPolicy::AllowAll => Policy::AllowAll,
    }
}

/// What becomes of the time spent paused, if it was said.
pub(crate) fn on_resume(field: &str, number: i32) -> Result<Option<OnResume>, Fault> {
    use v1::on_resume::Policy;
    Ok(match word(field, number)? {
        Policy::Unspecified => None,
        Policy::Skip => Some(OnResume::Skip),
        Policy::CatchUp => Some(OnResume::CatchUp),
    })
}

/// One start now.
pub(crate) fn trigger(wire: v1::Trigger) -> Result<Trigger, Fault> {
    Ok(Trigger {
        overlap: overlap("overlap", wire.overlap)?,
        input: payload::bytes("input", wire.input.as_ref())?,
        nominal_time: instant("nominal_time", wire.nominal_time.as_ref())?,
    })
}

/// A range to start.
pub(crate) fn backfill(wire: v1::Backfill) -> Result<Backfill, Fault> {
    Ok(Backfill {
        from: needed("from", wire.from.as_ref())?,
        through: needed("through", wire.through.as_ref())?,
        overlap: overlap("overlap", wire.overlap)?,
        pace: length("pace", wire.pace.as_ref())?,
        note: wire.note.into(),
    })
}

/// The id of a trigger or a backfill: 16 hex digits.
pub(crate) fn request_key(field: &str, text: &str) -> Result<RequestKey, Fault> {
    let fine = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u64::from_str_radix(text, 16).ok().filter(|_| fine);
    let fault = || Fault::field(field, format!("expected 16 hex digits, found {}", found(text)));
    number.map(RequestKey).ok_or_else(fault)
}

/// A schedule for the wire, without state and limits.
pub(crate) fn to_wire_schedule(schedule: &Schedule) -> v1::Schedule {
    let action = decode_action(&schedule.action.payload).ok();
    v1::Schedule {
        spec: Some(spec::to_wire_spec(&schedule.spec)),
        action: Some(v1::Action {
            kind: action.and_then(|action| action::to_wire(&action)),
            run_id_base: schedule.action.run_id_base.to_string(),
        }),
        policies: Some(policies_to_wire(&schedule.policies)),
        state: None,
        remaining_actions: None,
    }
}

fn policies_to_wire(policies: &Policies) -> v1::Policies {
    v1::Policies {
        overlap: overlap_to_wire(policies.overlap).into(),
        concurrency: Some(policies.concurrency),
        catchup_window: policies.catchup_window.map(length_to_wire),
        catchup_count: match policies.catchup_count {
            CatchupCount::All => None,
            CatchupCount::Latest(count) => Some(count),
        },
        catchup_pace: policies.catchup_pace.map(length_to_wire),
        pause_after_failures: policies.pause_after_failures,
        on_resume: match policies.on_resume {
            OnResume::Skip => v1::on_resume::Policy::Skip,
            OnResume::CatchUp => v1::on_resume::Policy::CatchUp,
        }
        .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_api::json;

    /// Everything that a schedule can say.
    const RICH: &str = r#"{
        "spec": {
            "calendars": [{ "second": [{ "start": 0 }], "minute": [{ "start": 0, "end": 30, "step": 15 }], "hour": [{ "start": 0, "end": 23 }],
                "day_of_month": [{ "start": 1 }], "day_of_month_terms": [{ "last_day": 0 }, { "nearest_weekday": 15 }, { "last_weekday": {} }, { "business_day": -1 }, { "nearest_business_day": 3 }],
                "month": [{ "start": 1, "end": 12 }], "day_of_week": [{ "start": 0, "end": 6 }],
                "day_of_week_terms": [{ "nth": { "weekday": 5, "nth": 3 } }, { "last": 1 }], "year": [{ "start": 2026, "end": 2030 }], "comment": "c" }],
            "calendar_texts": [{ "hour": "9-17", "comment": "t" }],
            "crons": [{ "text": "0 9 * * *", "dialect": "temporal" }, { "text": "0 0 9 LW * ?", "dialect": "quartz" }, { "text": "@daily", "dialect": "unix" }],
            "intervals": [{ "every": "90s", "phase": "5s" }, { "every": "60s", "anchor": "2026-01-01T00:00:00Z" }],
            "times": ["2026-05-01T00:00:00Z"],
            "exclusions": [{ "second": [{ "start": 1 }] }], "exclusion_texts": [{ "minute": "*" }], "exclusion_crons": [{ "text": "* * 12 * * * *", "dialect": "temporal" }],
            "exclusion_dates": ["2026-12-25"],
            "calendar_rules": [{ "calendar": "holidays", "mode": "exclude", "roll": "forward" }, { "calendar": "days", "mode": "include", "roll": "back" }],
            "business_calendar": "bank", "start_time": "2026-01-01T00:00:00Z", "end_time": "2030-01-01T00:00:00Z", "jitter": "2.5s",
            "zone": "Europe/Berlin", "zone_data": "AAEC", "gap": "after", "fold": "first"
        },
        "action": { "run_id_base": "base", "queue": { "queue": "q", "handler": "h", "input": { "json": { "a": [1, "x", null] } },
            "retry": { "attempts_max": 7, "backoff_first": "0.250s", "backoff_factor": 1.5, "backoff_max": "30s", "non_retryable": ["fatal"] },
            "timeouts": { "start_to_close": "10s", "schedule_to_close": "60s", "heartbeat": "5s" } } },
        "policies": { "overlap": "terminate_other", "concurrency": 2, "catchup_window": "60s", "catchup_count": 3, "catchup_pace": "1s",
            "pause_after_failures": 4, "on_resume": "catch_up" }
    }"#;

    #[test]
    fn a_schedule_goes_there_and_back_without_loss() {
        let wire: v1::Schedule = json::from_json(RICH.as_bytes()).unwrap();
        let kept = Parts::from_wire(wire.clone()).unwrap().into_schedule("id", [].into());
        assert_eq!(to_wire_schedule(&kept), wire);
        let again = Parts::from_wire(to_wire_schedule(&kept)).unwrap().into_schedule("id", [].into());
        assert_eq!(again, kept);
    }
}
