//! `punctual run cancel` and `terminate`.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use crate::answer::Answer;
use crate::session::{RequestIdArgs, Session, ask};
use crate::wire::words::shown;

/// Ask a run to stop; its handler decides how
#[derive(Debug, Args)]
#[command(after_help = CANCEL_EXAMPLES)]
pub struct CancelArgs {
    #[command(flatten)]
    stop: StopArgs,
}

const CANCEL_EXAMPLES: &str = "\
Examples:
  punctual run cancel 42 --note 'wrong customer'";

/// End a run at once, whatever its handler does
#[derive(Debug, Args)]
#[command(after_help = TERMINATE_EXAMPLES)]
pub struct TerminateArgs {
    #[command(flatten)]
    stop: StopArgs,
}

const TERMINATE_EXAMPLES: &str = "\
Examples:
  punctual run terminate 42";

#[derive(Debug, Args)]
struct StopArgs {
    /// Its number
    #[arg(value_name = "RUN_ID")]
    id: String,

    /// Why, for people
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

pub async fn cancel(session: &Session, args: &CancelArgs) -> Result<Answer> {
    let StopArgs { id, note, request_id } = &args.stop;
    let request = v1::CancelRunRequest {
        namespace: session.namespace.clone(),
        run_id: id.clone(),
        request_id: request_id.get(),
        note: note.clone().unwrap_or_default(),
    };
    let response = ask!(session, runs.cancel(request))?;
    stopped(session, id, &response)
}

pub async fn terminate(session: &Session, args: &TerminateArgs) -> Result<Answer> {
    let StopArgs { id, note, request_id } = &args.stop;
    let request = v1::TerminateRunRequest {
        namespace: session.namespace.clone(),
        run_id: id.clone(),
        request_id: request_id.get(),
        note: note.clone().unwrap_or_default(),
    };
    let response = ask!(session, runs.terminate(request))?;
    stopped(session, id, &response)
}

fn stopped(session: &Session, id: &str, response: &v1::StopRunResponse) -> Result<Answer> {
    session.show(response, || match response.state() {
        v1::run_state::Word::Closed => format!("run {id} is {}\n", shown(response.outcome().as_str_name())),
        state => format!("run {id} is asked to stop; it is {}\n", shown(state.as_str_name())),
    })
}
