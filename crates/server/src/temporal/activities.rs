//! Activity workers of Temporal's SDKs take runs of our queues: a run is an activity task, its handler the activity's type.

mod poll;
mod polls;
mod task;
mod token;
mod heartbeat;
mod report;
pub(super) mod failure;

pub(super) use heartbeat::{heartbeat, heartbeat_by_id, worker_heartbeat};
pub(super) use poll::{poll, shutdown};
pub(crate) use polls::Polls;
pub(super) use report::{cancelled, cancelled_by_id, completed, completed_by_id, failed, failed_by_id};
