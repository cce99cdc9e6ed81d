//! The cold record: what the user asked for, as JSON between a version and the action's bytes, and what a front door keeps with
//! it. What is empty is left out.

use std::sync::Arc;

use jiff::SignedDuration;
use punctual_core::{Action, CatchupCount, OnResume, Policies, Schedule, Target};
use punctual_spec::Spec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Malformed;
use super::bytes::{Reader, Writer};
use super::state::OVERLAPS;
use crate::Bytes;

/// Version 2 has an attachment; without one the first version is written.
const VERSION: u8 = 2;

#[derive(Serialize, Deserialize)]
struct Record {
    spec: Spec,
    outside: bool,
    run_id_base: String,
    #[serde(default)]
    policies: PoliciesRecord,
}

/// Policies that differ from the default; numbers are never reused.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct PoliciesRecord {
    overlap: u8,
    concurrency: Option<u32>,
    catchup_window: Option<SignedDuration>,
    catchup_latest: Option<u32>,
    catchup_pace: Option<SignedDuration>,
    pause_after_failures: Option<u32>,
    catch_up_on_resume: bool,
}

/// The cold record of a schedule.
pub fn encode_schedule(schedule: &Schedule) -> Bytes {
    let Schedule { spec, action, policies, attachment } = schedule;
    let record = Record {
        spec: spec.clone(),
        outside: action.target == Target::Outside,
        run_id_base: action.run_id_base.to_string(),
        policies: PoliciesRecord {
            overlap: OVERLAPS.iter().position(|known| *known == policies.overlap).unwrap_or(0) as u8,
            concurrency: (policies.concurrency != 1).then_some(policies.concurrency),
            catchup_window: policies.catchup_window,
            catchup_latest: match policies.catchup_count {
                CatchupCount::All => None,
                CatchupCount::Latest(count) => Some(count),
            },
            catchup_pace: policies.catchup_pace,
            pause_after_failures: policies.pause_after_failures,
            catch_up_on_resume: policies.on_resume == OnResume::CatchUp,
        },
    };
    let mut value = serde_json::to_value(&record).expect("a schedule is plain data");
    prune(&mut value);
    let json = serde_json::to_vec(&value).expect("memory takes it");
    let mut to = Writer::with_version(if attachment.is_empty() { 1 } else { VERSION });
    to.bytes(&json);
    // What the action's bytes mean is the dispatcher's business.
    to.bytes(&action.payload);
    if !attachment.is_empty() {
        to.bytes(attachment);
    }
    to.0.into()
}

/// Reads a cold record.
pub fn decode_schedule(bytes: &[u8]) -> Result<Schedule, Malformed> {
    let (mut from, version) = Reader::with_versions(bytes, 1..=VERSION)?;
    let record: Record = serde_json::from_slice(from.bytes()?).map_err(Malformed::new)?;
    let payload = from.bytes()?.into();
    let attachment = if version < 2 { Arc::from([]) } else { from.bytes()?.into() };
    from.end()?;
    let policies = record.policies;
    let overlap = OVERLAPS.get(usize::from(policies.overlap));
    Ok(Schedule {
        spec: record.spec,
        action: Action {
            target: if record.outside { Target::Outside } else { Target::Queue },
            run_id_base: record.run_id_base.into(),
            payload,
        },
        policies: Policies {
            overlap: *overlap
                .ok_or_else(|| Malformed(format!("{} is no overlap policy", policies.overlap)))?,
            concurrency: policies.concurrency.unwrap_or(1),
            catchup_window: policies.catchup_window,
            catchup_count: policies.catchup_latest.map_or(CatchupCount::All, CatchupCount::Latest),
            catchup_pace: policies.catchup_pace,
            pause_after_failures: policies.pause_after_failures,
            on_resume: if policies.catch_up_on_resume { OnResume::CatchUp } else { OnResume::Skip },
        },
        attachment,
    })
}

/// Leaves out fields that reading would fill in anyway.
fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(prune);
            fields.retain(|name, value| {
                let needed =
                    matches!(name.as_str(), "outside" | "run_id_base" | "text" | "calendar" | "spec");
                let empty = match value {
                    Value::Null => true,
                    Value::Array(items) => items.is_empty(),
                    Value::String(text) => text.is_empty(),
                    Value::Object(fields) => fields.is_empty(),
                    Value::Bool(_) | Value::Number(_) => false,
                };
                needed || !empty
            });
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
