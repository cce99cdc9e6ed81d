//! `punctual queue describe`: a page about one queue.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use super::list::{limits, state};
use crate::answer::Answer;
use crate::output::page::Page;
use crate::output::times::{Times, dash, length};
use crate::session::{Session, ask};
use crate::wire::time;

/// Say everything about a queue
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DescribeArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  punctual queue describe mail";

pub async fn describe(session: &Session, args: &DescribeArgs) -> Result<Answer> {
    let request = v1::DescribeQueueRequest { namespace: session.namespace.clone(), queue: args.name.clone() };
    let about = ask!(session, queues.describe(request))?.description.unwrap_or_default();
    session.show(&about, || page(session, &about))
}

fn page(session: &Session, about: &v1::QueueDescription) -> String {
    let times = Times { zone: &session.zone, now: session.now };
    let queue = about.queue.clone().unwrap_or_default();
    let oldest = about.oldest_queued_at.as_ref();
    let step = time::duration_from_wire(queue.priority_step.as_ref()).map(length);
    let mut page = Page::default();
    page.fact("queue", &queue.queue)
        .fact("description", &queue.description)
        .fact("state", state(&queue))
        .fact("limits", limits(&queue).unwrap_or_else(dash))
        .fact("priority step", step.unwrap_or_default())
        .fact("created", times.both(about.created_at.as_ref()))
        .fact("queued", about.queued_count.to_string())
        .fact("backing off", about.backing_off_count.to_string())
        .fact("running", about.running_count.to_string())
        .fact("first in line", oldest.map_or_else(String::new, |_| times.both(oldest)));
    let rows = about.workers.iter().map(|worker| {
        let seen = times.relative(worker.seen_at.as_ref());
        vec![worker.worker_id.clone(), seen, worker.running_count.to_string()]
    });
    page.section("workers", ["worker", "seen", "running"], rows.collect());
    page.text()
}
