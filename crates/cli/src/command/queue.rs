//! `punctual queue`: where runs wait for workers.

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use punctual_api::v1;

use crate::answer::Answer;
use crate::fault;
use crate::limits::{LIST_ROWS_DEFAULT, PAGE_ROWS_MAX};
use crate::output::page::Page;
use crate::output::table;
use crate::output::times::{Times, dash, length};
use crate::session::{ClientArgs, RequestIdArgs, Session, ask};
use crate::wire::time;

/// Declare queues and look at them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct QueueCommand {
    #[command(flatten)]
    client: ClientArgs,

    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  punctual queue create mail
  punctual queue list
  punctual queue describe mail";

#[derive(Debug, Subcommand)]
enum Verb {
    Create(CreateArgs),
    List(ListArgs),
    Describe(DescribeArgs),
}

/// Declare a queue; schedules may only name declared ones
#[derive(Debug, Args)]
#[command(after_help = CREATE_EXAMPLES)]
struct CreateArgs {
    /// Its name, unique in the namespace
    #[arg(value_name = "NAME")]
    name: String,

    // Limits are in the contract, and refused by servers of this release: shown once they are obeyed.
    /// Runs in progress at a time, on all workers together [default: no limit]
    #[arg(long, value_name = "N", hide = true)]
    concurrency: Option<u32>,

    /// Runs in progress at a time on one worker [default: no limit]
    #[arg(long, value_name = "N", hide = true)]
    worker_concurrency: Option<u32>,

    /// Starts over time, as in 100/1m [default: no limit]
    #[arg(long, value_name = "N/DURATION", hide = true)]
    rate: Option<String>,

    /// Hand nothing out for now
    #[arg(long, hide = true)]
    paused: bool,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const CREATE_EXAMPLES: &str = "\
Examples:
  punctual queue create mail";

/// List queues by name
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
struct ListArgs {
    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = LIST_ROWS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

const LIST_EXAMPLES: &str = "\
Examples:
  punctual queue list --output json";

/// Say everything about a queue
#[derive(Debug, Args)]
#[command(after_help = DESCRIBE_EXAMPLES)]
struct DescribeArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
}

const DESCRIBE_EXAMPLES: &str = "\
Examples:
  punctual queue describe mail";

impl QueueCommand {
    pub async fn run(self, now: Timestamp) -> Result<Answer> {
        let session = &Session::open(&self.client, now).await?;
        match self.verb {
            Verb::Create(args) => create(session, &args).await,
            Verb::List(args) => list(session, &args).await,
            Verb::Describe(args) => describe(session, &args).await,
        }
    }
}

async fn create(session: &Session, args: &CreateArgs) -> Result<Answer> {
    let request = v1::CreateQueueRequest {
        namespace: session.namespace.clone(),
        queue: Some(v1::Queue {
            queue: args.name.clone(),
            concurrency_max: args.concurrency,
            worker_concurrency_max: args.worker_concurrency,
            rate: args.rate.as_deref().map(rate).transpose()?,
            paused: args.paused,
        }),
        request_id: args.request_id.get(),
    };
    let response = ask!(session, queues.create(request))?;
    session.show(&response, || format!("declared queue {}\n", fault::printable(&args.name)))
}

fn rate(text: &str) -> Result<v1::Rate> {
    let refused = || {
        fault::new(format!("--rate is not so many in so much time, found `{text}`"), "write it as `100/1m`")
    };
    let (count, per) = text.split_once('/').ok_or_else(refused)?;
    let starts_max = count.trim().parse().map_err(|_| refused())?;
    let per = time::duration("--rate", per)?;
    ensure!(!per.is_zero(), refused());
    Ok(v1::Rate { starts_max, per: Some(time::duration_to_wire(per)) })
}

async fn list(session: &Session, args: &ListArgs) -> Result<Answer> {
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
            if queue.paused { "paused".to_owned() } else { "open".to_owned() },
            about.queued_count.to_string(),
            about.backing_off_count.to_string(),
            about.running_count.to_string(),
            oldest.map_or_else(dash, |_| times.relative(oldest)),
            about.workers.len().to_string(),
            limits(&queue),
        ]
    });
    table::list(["queue", "state", "queued", "backing off", "running", "oldest", "workers", "limits"], rows)
}

fn limits(queue: &v1::Queue) -> String {
    let mut words = Vec::new();
    words.extend(queue.concurrency_max.map(|count| format!("{count} at a time")));
    words.extend(queue.worker_concurrency_max.map(|count| format!("{count} a worker")));
    words.extend(queue.rate.as_ref().map(|rate| {
        let per = time::duration_from_wire(rate.per.as_ref()).unwrap_or_default();
        format!("{} in {}", rate.starts_max, length(per))
    }));
    if words.is_empty() { dash() } else { words.join(", ") }
}

async fn describe(session: &Session, args: &DescribeArgs) -> Result<Answer> {
    let request = v1::DescribeQueueRequest { namespace: session.namespace.clone(), queue: args.name.clone() };
    let about = ask!(session, queues.describe(request))?.description.unwrap_or_default();
    session.show(&about, || {
        let times = Times { zone: &session.zone, now: session.now };
        let queue = about.queue.clone().unwrap_or_default();
        let oldest = about.oldest_queued_at.as_ref();
        let mut page = Page::default();
        page.fact("queue", &queue.queue)
            .fact("state", if queue.paused { "paused" } else { "open" })
            .fact("limits", limits(&queue))
            .fact("created", times.both(about.created_at.as_ref()))
            .fact("queued", about.queued_count.to_string())
            .fact("backing off", about.backing_off_count.to_string())
            .fact("running", about.running_count.to_string())
            .fact("oldest", oldest.map_or_else(String::new, |_| times.both(oldest)));
        let rows = about.workers.iter().map(|worker| {
            let seen = times.relative(worker.seen_at.as_ref());
            vec![worker.worker_id.clone(), seen, worker.running_count.to_string()]
        });
        page.section("workers", ["worker", "seen", "running"], rows.collect());
        page.text()
    })
}
