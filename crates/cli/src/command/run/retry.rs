//! `punctual run retry`: tries a run that failed again.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use super::wait;
use crate::answer::Answer;
use crate::session::{RequestIdArgs, Session, ask};

/// Try a run that failed again, as a run of its own
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RetryArgs {
    /// Its number
    #[arg(value_name = "RUN_ID")]
    id: String,

    /// Wait until it has ended; exits with 1 unless it succeeded
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const EXAMPLES: &str = "\
Examples:
  punctual run retry 42
  punctual run retry 42 --wait

`run list --dead-letters` shows what failed for good; `queue retry` tries all of a queue again.";

pub async fn retry(session: &Session, args: &RetryArgs) -> Result<Answer> {
    let request = v1::RetryRunRequest {
        namespace: session.namespace.clone(),
        run_id: args.id.clone(),
        request_id: args.request_id.get(),
    };
    let response = ask!(session, runs.retry(request))?;
    if args.wait {
        let made = v1::EnqueuedRun { run_id: response.run_id, existing: false };
        return wait::wait(session, &[made], Vec::new()).await;
    }
    session.show(&response, || format!("run {} is tried again as run {}\n", args.id, response.run_id))
}
