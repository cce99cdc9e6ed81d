//! Queues and runs as rows, the same for the live view and for one sample.

use jiff::Timestamp;
use punctual_api::v1;

use crate::command::queue::{limits, state};
use crate::fault;
use crate::output::relative;
use crate::output::times::{dash, or_dash};
use crate::wire::time;

pub const QUEUE_HEADER: [&str; 8] =
    ["queue", "state", "queued", "running", "backing off", "first in line", "workers", "limits"];

pub const RUN_HEADER: [&str; 6] = ["run", "schedule", "handler", "attempt", "for", "worker"];

/// Queues, as the server orders them: those with something in them first.
pub fn queues(stats: &v1::StatsResponse) -> Vec<Vec<String>> {
    let now = time::from_wire(stats.now.as_ref()).unwrap_or_default();
    let rows = stats.queues.iter().map(|about| {
        let queue = about.queue.clone().unwrap_or_default();
        vec![
            fault::printable(&queue.queue),
            state(&queue).to_owned(),
            about.queued_count.to_string(),
            about.running_count.to_string(),
            about.backing_off_count.to_string(),
            age(now, about.oldest_queued_at.as_ref()),
            about.workers.len().to_string(),
            limits(&queue).unwrap_or_else(dash),
        ]
    });
    rows.collect()
}

/// The runs that have been in progress for longest.
pub fn runs(stats: &v1::StatsResponse) -> Vec<Vec<String>> {
    let now = time::from_wire(stats.now.as_ref()).unwrap_or_default();
    let named = |text: &str| if text.is_empty() { dash() } else { fault::printable(text) };
    let rows = stats.longest.iter().map(|run| {
        vec![
            run.run_id.clone(),
            named(&run.schedule_id),
            format!("{} on queue {}", fault::printable(&run.handler), fault::printable(&run.queue)),
            or_dash(run.attempt),
            age(now, run.started_at.as_ref()),
            named(&run.worker_id),
        ]
    });
    rows.collect()
}

fn age(now: Timestamp, since: Option<&prost_types::Timestamp>) -> String {
    time::from_wire(since)
        .map_or_else(dash, |since| relative::distance(now.duration_since(since).as_secs().max(0)))
}

/// How long a server has been up.
pub fn up(stats: &v1::StatsResponse) -> String {
    age(time::from_wire(stats.now.as_ref()).unwrap_or_default(), stats.started_at.as_ref())
}
