//! Whether the cluster has the workflow of a start, whatever run it is in by now.
//!
//! The cluster remembers the request id of a start with the run that began by it, and not with those that this one was
//! continued as. So who asks for a start a second time might get a second workflow; who looks first does not.

use punctual_store::LiveRun;
use punctual_store::record::RunBody;
use tonic::{Code, Status};

use super::super::wire::common::WorkflowExecution;
use super::super::wire::{enums, service};
use super::{Upstream, request};

/// A workflow that the cluster has.
pub(super) struct Known {
    /// The run that it began with.
    pub(super) first_run: String,
    pub(super) is_running: bool,
    /// Whether somebody had it go on from an earlier moment.
    pub(super) was_reset: bool,
}

/// The workflow of a start, if the cluster has it. One with the same id that is not of the schedule is not it.
pub(super) async fn find(
    upstream: &Upstream,
    live: &LiveRun,
    body: &RunBody,
) -> Result<Option<Known>, Status> {
    let asked = service::DescribeWorkflowExecutionRequest {
        namespace: body.namespace.to_string(),
        execution: Some(WorkflowExecution { workflow_id: body.name.to_string(), run_id: String::new() }),
    };
    let mut client = upstream.service(&body.namespace);
    let described = match upstream.shortly(client.describe_workflow_execution(asked)).await {
        Err(status) if status.code() == Code::NotFound => return Ok(None),
        described => described?,
    };
    let (info, more) = (described.workflow_execution_info, described.workflow_extended_info);
    let (info, more) = (info.unwrap_or_default(), more.unwrap_or_default());
    let named = info.search_attributes.unwrap_or_default().indexed_fields.remove(request::SCHEDULE_ATTRIBUTE);
    let of_schedule = named.is_some_and(|named| named.data == request::keyword(&body.schedule).data);
    let is_ours = of_schedule || more.request_id_infos.contains_key(&request::id(live, body));
    let run = info.execution.unwrap_or_default().run_id;
    Ok(is_ours.then(|| Known {
        first_run: Some(info.first_run_id).filter(|first| !first.is_empty()).unwrap_or(run),
        is_running: info.status == enums::WorkflowExecutionStatus::Running as i32,
        was_reset: more.last_reset_time.is_some(),
    }))
}
