//! `punctual queue purge`: takes runs out of a queue for good, until none is left.

use std::io::{self, IsTerminal, Write};

use anyhow::{Result, ensure};
use clap::Args;
use punctual_api::v1;

use crate::answer::Answer;
use crate::exit_code::ExitCode;
use crate::fault;
use crate::limits::PURGED_MAX;
use crate::output::progress;
use crate::session::{RequestIdArgs, Session, ask};

/// Take runs out of a queue for good: those that wait, or its dead letters
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PurgeArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,

    /// Its dead letters instead of the runs that wait
    #[arg(long)]
    dead_letters: bool,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const EXAMPLES: &str = "\
Examples:
  punctual queue purge mail
  punctual queue purge mail --dead-letters --yes

It asks first where there is somebody to ask, and goes on until nothing is left. Runs in progress go on.";

pub async fn purge(session: &Session, args: &PurgeArgs) -> Result<Answer> {
    let request = v1::DescribeQueueRequest { namespace: session.namespace.clone(), queue: args.name.clone() };
    let about = ask!(session, queues.describe(request))?.description.unwrap_or_default();
    // Nobody counts dead letters beforehand.
    let expected = (!args.dead_letters).then_some(about.queued_count + about.backing_off_count);
    if !args.yes && !is_sure(args, expected)? {
        return Ok(Answer {
            exit_code: ExitCode::Failed,
            ..Answer::new("nothing was purged\n".into(), vec![])
        });
    }
    let bar = progress::bar(session.output, expected);
    let (name, mut total) = (args.request_id.get(), v1::PurgeQueueResponse::default());
    for step in 0_u64.. {
        let request = v1::PurgeQueueRequest {
            namespace: session.namespace.clone(),
            queue: args.name.clone(),
            dead_letters: args.dead_letters,
            runs_max: PURGED_MAX as u32,
            request_id: format!("{name}-{step}"),
        };
        let purged = ask!(session, queues.purge(request))?;
        total.count += purged.count;
        bar.set_position(total.count);
        if !purged.more || purged.count == 0 {
            break;
        }
    }
    bar.finish_and_clear();
    session.show(&total, || {
        let what = if args.dead_letters { "dead letters" } else { "runs" };
        format!("purged {} {what} of queue {}\n", total.count, fault::printable(&args.name))
    })
}

/// Asks at the terminal.
fn is_sure(args: &PurgeArgs, expected: Option<u64>) -> Result<bool> {
    ensure!(
        io::stdin().is_terminal() && io::stderr().is_terminal(),
        fault::new("purge asks first, and here is nobody to ask", "--yes purges without asking")
    );
    let what = match expected {
        Some(count) => format!("the {count} runs that wait"),
        None => "all dead letters".to_owned(),
    };
    let name = fault::printable(&args.name);
    let mut stderr = io::stderr().lock();
    write!(stderr, "take {what} out of queue {name} for good? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
