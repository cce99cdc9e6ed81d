//! `punctual queue retry`: tries the dead letters of a queue again.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use crate::answer::Answer;
use crate::fault;
use crate::limits::{PURGED_MAX, RETRIED_DEFAULT};
use crate::output::progress;
use crate::session::{RequestIdArgs, Session, ask};

/// Try the dead letters of a queue again, each as a run of its own
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RetryArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,

    /// At most this many, the latest first
    #[arg(long, value_name = "N", default_value_t = RETRIED_DEFAULT, value_parser = clap::value_parser!(u64).range(1..))]
    max: u64,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const EXAMPLES: &str = "\
Examples:
  punctual queue retry mail
  punctual queue retry mail --max 1";

pub async fn retry(session: &Session, args: &RetryArgs) -> Result<Answer> {
    let bar = progress::bar(session.output, None);
    let (name, mut total) = (args.request_id.get(), v1::RetryDeadLettersResponse::default());
    for step in 0_u64.. {
        let request = v1::RetryDeadLettersRequest {
            namespace: session.namespace.clone(),
            queue: args.name.clone(),
            runs_max: (args.max - total.count).min(PURGED_MAX) as u32,
            request_id: format!("{name}-{step}"),
        };
        let retried = ask!(session, queues.retry_dead_letters(request))?;
        total.count += retried.count;
        total.more = retried.more;
        bar.set_position(total.count);
        if !retried.more || retried.count == 0 || total.count >= args.max {
            break;
        }
    }
    bar.finish_and_clear();
    let mut answer = session.show(&total, || {
        let word = if total.count == 1 { "dead letter" } else { "dead letters" };
        format!("{} {word} of queue {} tried again\n", total.count, fault::printable(&args.name))
    })?;
    if total.more {
        answer.notes.push("note: there may be more, --max takes more".to_owned());
    }
    Ok(answer)
}
