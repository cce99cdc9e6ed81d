//! `punctual worker`: runs a command for each run of a queue, so that any language can be a worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use jiff::Timestamp;
use punctual_api::v1;
use tokio::task::JoinSet;

use crate::answer::Answer;
use crate::exit_code::ExitCode;
use crate::fault;
use crate::session::{ClientArgs, Session};
use crate::signals::Signals;
use crate::wire::time;

mod claim;
mod held;
mod heartbeat;
mod execute;
mod ending;
mod report;
mod tell;

use claim::Claims;
use held::{Held, Wish};
use tell::Teller;

/// Run a command for each run of a queue
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WorkerCommand {
    #[command(flatten)]
    client: ClientArgs,

    /// The queue to take runs from
    #[arg(short, long, value_name = "NAME")]
    queue: String,

    /// The command, given to sh -c; its input is on stdin, its stdout is the result
    #[arg(
        short,
        long,
        value_name = "COMMAND",
        required_unless_present = "program",
        conflicts_with = "program"
    )]
    exec: Option<String>,

    /// Start the words after -- as they are, without a shell
    #[arg(long, requires = "program", conflicts_with = "exec")]
    no_shell: bool,

    /// The program and its arguments, after --
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<String>,

    /// Commands at a time
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    concurrency: u32,

    /// Only these handlers; a run for another one fails, to be tried again elsewhere [default: all]
    #[arg(long, value_name = "NAME")]
    handler: Vec<String>,

    /// The worker's own name [default: host, process and a few random digits]
    #[arg(long, value_name = "NAME")]
    worker_id: Option<String>,

    /// How long a run stays this worker's without a sign of life
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    lease: String,

    /// How long a command has between SIGTERM and SIGKILL
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    grace: String,

    /// Take this many runs, then end [default: go on]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    runs_max: Option<u64>,
}

const EXAMPLES: &str = "\
Examples:
  punctual worker --queue mail --exec './send-report.sh'
  punctual worker --queue mail --concurrency 4 --no-shell -- python3 send.py --verbose
  punctual worker --queue mail --exec 'jq .customer' --runs-max 1

The command gets the run's input on stdin and these variables: PUNCTUAL_RUN_ID, PUNCTUAL_ATTEMPT,
PUNCTUAL_SCHEDULE_ID, PUNCTUAL_HANDLER, PUNCTUAL_NOMINAL_TIME, PUNCTUAL_DUE_TIME, PUNCTUAL_NAMESPACE,
PUNCTUAL_QUEUE, and PUNCTUAL_LAST_RESULT if the schedule has one of at most 64 KiB.

What the command says becomes the run's end:
  exit 0          succeeded; stdout, up to 1 MiB, is the result: JSON if it is JSON, else text
  exit 65         failed with kind exit_65, not to be tried again (EX_DATAERR)
  exit 75, other  failed with kind exit_<code>, to be tried again as the schedule says
  killed          failed with kind signal_<number>, to be tried again
What it writes to stderr is the run's log; the last lines also stand in the failure.

A run that is cancelled gets SIGTERM, and SIGKILL after --grace. One Ctrl-C takes no more runs and waits for those in
progress; the second ends them, to be tried again elsewhere; the third leaves at once.";

/// What a worker is told once.
#[derive(Debug)]
struct Settings {
    queue: String,
    worker_id: String,
    command: Vec<String>,
    handlers: Vec<String>,
    concurrency: usize,
    lease: Duration,
    grace: Duration,
}

/// What all parts of a worker share.
#[derive(Debug)]
struct Worker {
    session: Session,
    settings: Settings,
    held: Held,
    teller: Teller,
    /// It was asked to stop.
    stopping: AtomicBool,
}

impl WorkerCommand {
    pub async fn run(self, now: Timestamp) -> Result<Answer> {
        let session = Session::open_lazily(&self.client, now)?;
        let settings = self.settings()?;
        let teller = Teller::new(session.output);
        let worker = Arc::new(Worker {
            session,
            settings,
            held: Held::default(),
            teller,
            stopping: AtomicBool::new(false),
        });
        worker.teller.ready(&worker);
        let heart = tokio::spawn(heartbeat::beat(worker.clone()));
        let ended = worker.clone().work(self.runs_max).await;
        heart.abort();
        ended.map(Answer::silent)
    }

    fn settings(&self) -> Result<Settings> {
        let command = match &self.exec {
            Some(text) => vec!["sh".to_owned(), "-c".to_owned(), text.clone()],
            None => self.program.clone(),
        };
        let lease = time::waiting_time("--lease", &self.lease)?;
        ensure!(
            lease >= Duration::from_secs(1),
            fault::new(format!("--lease is too short, found `{}`", self.lease), "at least 1s is needed")
        );
        Ok(Settings {
            queue: self.queue.clone(),
            worker_id: self.worker_id.clone().unwrap_or_else(worker_id),
            command,
            handlers: self.handler.clone(),
            concurrency: self.concurrency as usize,
            lease,
            grace: time::duration("--grace", &self.grace)?.unsigned_abs(),
        })
    }
}

/// A name that no other worker has.
fn worker_id() -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{}-{}-{}", host(), std::process::id(), &random[..6])
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "worker".to_owned())
}

impl Worker {
    /// Takes runs and sees them through, until it is asked to stop.
    async fn work(self: Arc<Worker>, runs_max: Option<u64>) -> Result<ExitCode> {
        let mut signals = Signals::listen();
        let (mut asked, mut left) = (0, runs_max.unwrap_or(u64::MAX));
        let mut tasks = JoinSet::new();
        let mut claims = Claims::default();
        let mut refused = None;
        loop {
            let free = self.settings.concurrency - tasks.len();
            let wanted = if asked == 0 && refused.is_none() { left.min(free as u64) as u32 } else { 0 };
            // What was asked for before a stop may still be answered, and is done then.
            let claiming = wanted > 0 || claims.is_pending();
            if !claiming && tasks.is_empty() {
                break;
            }
            tokio::select! {
                claimed = claims.next(&self, wanted), if claiming => match claimed {
                    Ok(runs) => {
                        left -= (runs.len() as u64).min(left);
                        for run in runs {
                            tasks.spawn(self.clone().perform(run));
                        }
                    }
                    Err(error) => refused = Some(error),
                },
                Some(_) = tasks.join_next() => {}
                () = signals.next() => {
                    asked += 1;
                    self.stopping.store(true, Ordering::Relaxed);
                    self.teller.stopping(asked, tasks.len());
                    match asked {
                        1 => {}
                        2 => {
                            claims.forget();
                            self.held.wish_all(Wish::Stop);
                        }
                        _ => return Ok(ExitCode::Failed),
                    }
                }
            }
        }
        match refused {
            Some(error) => Err(error),
            None => Ok(if asked > 1 { ExitCode::Failed } else { ExitCode::Answered }),
        }
    }

    /// One run, from its claim to the record of its end.
    async fn perform(self: Arc<Worker>, run: v1::ClaimedRun) {
        let wishes = self.held.take(&run);
        self.teller.began(&run);
        let end = execute::execute(&self, &run, wishes).await;
        self.held.complete(&run.run_id);
        match end {
            Some(end) => report::report(&self, &run, end).await,
            None => self.teller.gone(&run),
        }
        self.held.release(&run.run_id);
    }
}
