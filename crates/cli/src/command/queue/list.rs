//! `punctual queue list`, and how a queue is shown in a row.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use crate::answer::Answer;
use crate::limits::{LIST_ROWS_DEFAULT, PAGE_ROWS_MAX};
use crate::output::table;
use crate::output::times::{Times, dash, length};
use crate::session::{Session, ask};
use crate::wire::time;

/// List queues by name
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ListArgs {
    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = LIST_ROWS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

const EXAMPLES: &str = "\
Examples:
  punctual queue list --output json";

pub async fn list(session: &Session, args: &ListArgs) -> Result<Answer> {
    let mut found = v1::ListQueuesResponse::default();
    loop {
        let missing = args.limit.saturating_sub(found.queues.len() as u32);
        let request = v1::ListQueuesRequest {
            namespace: session.namespace.clone(),
            page_size: missing.min(PAGE_ROWS_MAX),
            page_token: found.next_page_token.clone(),
        };
        let page = ask!(session, queues.list(request))?;
        found.queues.extend(page.queues);
        found.next_page_token = page.next_page_token;
        if found.next_page_token.is_empty() || found.queues.len() as u32 >= args.limit {
            break;
        }
    }
    let mut answer = session.show(&found, || as_table(session, &found.queues))?;
    if !found.next_page_token.is_empty() {
        answer.notes.push(format!("note: there are more than {}, --limit lists more", args.limit));
    }
    Ok(answer)
}

fn as_table(session: &Session, queues: &[v1::QueueDescription]) -> String {
    if queues.is_empty() {
        return format!("no queues in namespace {}\n", session.namespace);
    }
    let times = Times { zone: &session.zone, now: session.now };
    let rows = queues.iter().map(|about| {
        let queue = about.queue.clone().unwrap_or_default();
        let oldest = about.oldest_queued_at.as_ref();
        vec![
            queue.queue.clone(),
            state(&queue).to_owned(),
            about.queued_count.to_string(),
            about.backing_off_count.to_string(),
            about.running_count.to_string(),
            oldest.map_or_else(dash, |_| times.relative(oldest)),
            about.workers.len().to_string(),
            limits(&queue).unwrap_or_else(dash),
        ]
    });
    table::list(["queue", "state", "queued", "backing off", "running", "oldest", "workers", "limits"], rows)
}

/// Whether it hands out runs, in one word.
pub fn state(queue: &v1::Queue) -> &'static str {
    if queue.paused { "paused" } else { "open" }
}

/// What it allows, in one line; nothing if it allows everything.
pub fn limits(queue: &v1::Queue) -> Option<String> {
    let rate = |rate: &v1::Rate| {
        let per = time::duration_from_wire(rate.per.as_ref()).unwrap_or_default();
        format!("{} in {}", rate.starts_max, length(per))
    };
    let mut words = Vec::new();
    words.extend(queue.concurrency_max.map(|count| format!("{count} at a time")));
    words.extend(queue.worker_concurrency_max.map(|count| format!("{count} a worker")));
    words.extend(queue.rate.as_ref().map(rate));
    words.extend(queue.key_concurrency_max.map(|count| format!("{count} a key")));
    words.extend(queue.key_rate.as_ref().map(|limit| format!("{} a key", rate(limit))));
    (!words.is_empty()).then(|| words.join(", "))
}
