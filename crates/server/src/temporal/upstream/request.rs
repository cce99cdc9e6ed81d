//! What the cluster is asked to start: the action as it came, with what only a scheduler can say.

use std::collections::BTreeMap;

use prost::Message;
use punctual_engine::Claimed;
use punctual_store::LiveRun;
use punctual_store::record::{RunBody, decode_failure};
use punctual_temporal_api::ScheduleAction;

use super::super::payloads;
use super::super::wire::common::{Callback, Payload, Payloads, SearchAttributes};
use super::super::wire::{enums, service};
use super::ending;
use crate::traces::{RunParts, start_uuid};

/// The search attribute that names the schedule.
pub(super) const SCHEDULE_ATTRIBUTE: &str = "TemporalScheduledById";

/// The same for every attempt of a start, and for no other start.
pub(super) fn id(live: &LiveRun, body: &RunBody) -> String {
    let parts = RunParts { made: &live.made, namespace: &body.namespace, schedule: &body.schedule };
    format!("sched-{}", start_uuid(&parts))
}

/// Who asks, in the form that the cluster's own scheduler has.
pub(super) fn identity(body: &RunBody) -> String {
    format!("temporal-scheduler-{}-{}", body.namespace, body.schedule)
}

/// The request of a start, or why there is none.
pub(super) fn start(
    claimed: &Claimed,
    callback: Option<Callback>,
) -> Result<service::StartWorkflowExecutionRequest, String> {
    let (made, body) = (&claimed.live.made, &claimed.body);
    let kept = body.action.call.as_deref().ok_or("the run has no workflow in it")?;
    let action = ScheduleAction::decode(kept).map_err(|error| error.to_string())?;
    let info = action.started_workflow().map_err(|error| error.to_string())?.ok_or("no workflow to start")?;
    let manual = made.origin.is_none_or(|(_, start)| start.is_manual());
    let nominal = made.origin.map_or(made.due_time, |(_, start)| start.nominal_time());
    let some = |payloads: Payloads| Some(payloads).filter(|payloads| !payloads.payloads.is_empty());
    let mut attributes = info.search_attributes.unwrap_or_default().indexed_fields;
    attributes.insert("TemporalScheduledStartTime".into(), typed("Datetime", &nominal.to_string()));
    attributes.insert(SCHEDULE_ATTRIBUTE.into(), keyword(&body.schedule));
    let failure = body.last.failure.as_deref().and_then(|record| decode_failure(record).ok());
    use enums::WorkflowIdReusePolicy::{AllowDuplicate, RejectDuplicate};
    Ok(service::StartWorkflowExecutionRequest {
        namespace: body.namespace.to_string(),
        workflow_id: body.name.to_string(),
        workflow_type: info.workflow_type,
        task_queue: info.task_queue,
        input: some(payloads::read(&body.action.input)),
        workflow_execution_timeout: info.workflow_execution_timeout,
        workflow_run_timeout: info.workflow_run_timeout,
        workflow_task_timeout: info.workflow_task_timeout,
        identity: identity(body),
        request_id: id(&claimed.live, body),
        // A scheduled time is started once; a person may ask for it again.
        workflow_id_reuse_policy: if manual { AllowDuplicate } else { RejectDuplicate }.into(),
        retry_policy: info.retry_policy,
        memo: info.memo,
        search_attributes: Some(SearchAttributes { indexed_fields: attributes }),
        header: info.header,
        continued_failure: failure.as_ref().map(ending::told),
        last_completion_result: body.last.result.as_deref().map(payloads::read).and_then(some),
        user_metadata: info.user_metadata,
        completion_callbacks: callback.into_iter().collect(),
        versioning_override: info.versioning_override,
        priority: info.priority,
        ..Default::default()
    })
}

/// A search attribute that is one word.
pub(super) fn keyword(text: &str) -> Payload {
    typed("Keyword", text)
}

fn typed(kind: &str, text: &str) -> Payload {
    let metadata: BTreeMap<_, _> =
        [("encoding".to_owned(), b"json/plain".to_vec()), ("type".to_owned(), kind.as_bytes().to_vec())]
            .into();
    let data = serde_json::Value::from(text).to_string();
    Payload { metadata, data: data.into(), ..Payload::default() }
}
