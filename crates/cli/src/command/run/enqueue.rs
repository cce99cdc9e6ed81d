//! `punctual run enqueue`: puts runs on a queue without a schedule, now or for later.

use anyhow::{Result, ensure};
use clap::Args;
use punctual_api::v1;

use super::wait;
use crate::answer::Answer;
use crate::attempt_args::AttemptArgs;
use crate::fault;
use crate::instant::InstantReader;
use crate::limits::{COUNT_MAX, ENQUEUED_MAX};
use crate::output::progress;
use crate::session::{RequestIdArgs, Session, ask};
use crate::wire::words::OnDuplicateName;
use crate::wire::{payload, time};

/// Put runs on a queue without a schedule, now or for later
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EnqueueArgs {
    /// The queue; it must be declared
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    queue: String,

    /// The function of the worker
    #[arg(long, value_name = "NAME")]
    handler: String,

    /// What to give it: JSON, @file, or - for stdin
    #[arg(long, value_name = "JSON")]
    input: Option<String>,

    /// Not to be claimed for this long
    #[arg(long, value_name = "DURATION", conflicts_with = "at")]
    delay: Option<String>,

    /// Not to be claimed before this instant
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,

    /// Lower ones are claimed sooner: -100 to 100
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 0)]
    priority: i32,

    /// What the queue's limits of one key apply to, such as a customer
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    key: String,

    /// While a run of the queue with this id is live, no second one is made
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    dedup: String,

    /// What to do when there is one [default: reject]
    #[arg(long, value_name = "POLICY", requires = "dedup")]
    on_duplicate: Option<OnDuplicateName>,

    /// A name for people [default: the handler]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    name: String,

    /// So many of them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=COUNT_MAX))]
    count: u64,

    /// Wait until they have ended; exits with 1 unless all of them succeeded
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    attempts: AttemptArgs,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual run enqueue --queue mail --handler send --input '{\"customer\": 7}'
  punctual run enqueue --queue mail --handler send --delay 5m --key customer-7 --priority -10
  punctual run enqueue --queue mail --handler digest --dedup digest-7 --on-duplicate return_existing
  punctual run enqueue --queue mail --handler send --input @order.json --attempts 5 --wait"
);

pub async fn enqueue(session: &Session, args: &EnqueueArgs) -> Result<Answer> {
    ensure!(
        args.dedup.is_empty() || args.count == 1,
        fault::new(format!("--dedup makes one run, found --count {}", args.count), "leave out one of them")
    );
    let (order, notes) = order(session, args)?;
    let made = send(session, args, &order).await?;
    if args.wait {
        return wait::wait(session, &made.runs, notes).await;
    }
    let mut answer = session.show(&made, || said(args, &made.runs))?;
    answer.notes = notes;
    Ok(answer)
}

fn order(session: &Session, args: &EnqueueArgs) -> Result<(v1::RunOrder, Vec<String>)> {
    let attempts = args.attempts.given()?;
    let mut instants = InstantReader::new(session.now, &session.zone);
    let not_before = instants.read_optional("--at", args.at.as_ref())?.map(time::to_wire);
    let delay = args.delay.as_ref().map(|text| time::duration("--delay", text)).transpose()?;
    let order = v1::RunOrder {
        handler: args.handler.clone(),
        input: args.input.as_ref().map(|text| payload::from_option("--input", text)).transpose()?,
        retry: attempts.retry(),
        timeouts: attempts.timeouts(),
        priority: args.priority,
        key: args.key.clone(),
        deduplication_id: args.dedup.clone(),
        on_duplicate: args.on_duplicate.map_or(0, i32::from),
        not_before,
        delay: delay.map(time::duration_to_wire),
        name: args.name.clone(),
    };
    Ok((order, instants.notes))
}

/// Sends as many as were asked for, at most so many in one request.
async fn send(session: &Session, args: &EnqueueArgs, order: &v1::RunOrder) -> Result<v1::EnqueueResponse> {
    let (name, mut made) = (args.request_id.get(), v1::EnqueueResponse::default());
    let bar = progress::bar(session.output, Some(args.count));
    while (made.runs.len() as u64) < args.count {
        let done = made.runs.len() as u64;
        let count = (args.count - done).min(ENQUEUED_MAX);
        let request = v1::EnqueueRequest {
            namespace: session.namespace.clone(),
            queue: args.queue.clone(),
            runs: vec![order.clone(); count as usize],
            request_id: if args.count <= ENQUEUED_MAX { name.clone() } else { format!("{name}-{done}") },
        };
        let answer = ask!(session, runs.enqueue(request))?;
        ensure!(
            answer.runs.len() as u64 == count,
            "the server enqueued {} runs, expected {count}",
            answer.runs.len()
        );
        made.runs.extend(answer.runs);
        bar.set_position(made.runs.len() as u64);
    }
    bar.finish_and_clear();
    Ok(made)
}

fn said(args: &EnqueueArgs, runs: &[v1::EnqueuedRun]) -> String {
    let queue = fault::printable(&args.queue);
    match runs {
        [run] if run.existing => format!("run {} is on queue {queue} already\n", run.run_id),
        [run] => format!("enqueued run {} on queue {queue}\n", run.run_id),
        runs => {
            let first = runs.first().map_or("", |run| run.run_id.as_str());
            let last = runs.last().map_or("", |run| run.run_id.as_str());
            format!("enqueued {} runs on queue {queue}, from {first} to {last}\n", runs.len())
        }
    }
}
