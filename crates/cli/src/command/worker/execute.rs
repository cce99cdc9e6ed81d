//! One command for one run: its input, its output, its end.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use punctual_api::v1;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::Worker;
use super::ending::{self, End, Output};
use super::held::Wish;
use crate::limits::{LOG_LINE_BYTES_MAX, RESULT_BYTES_MAX, VARIABLE_BYTES_MAX};
use crate::wire::{payload, time};

/// How long what a command left behind may keep its output open.
const LEFTOVERS_WAIT: Duration = Duration::from_secs(2);

/// Runs the command, and says how the run ended; nothing if it is not this worker's any more.
pub async fn execute(
    worker: &Arc<Worker>,
    run: &v1::ClaimedRun,
    mut wishes: watch::Receiver<Wish>,
) -> Option<End> {
    let handlers = &worker.settings.handlers;
    if !handlers.is_empty() && !handlers.contains(&run.handler) {
        return Some(ending::unknown_handler(&run.handler));
    }
    let mut child = match command(worker, run).spawn() {
        Ok(child) => child,
        Err(error) => return Some(ending::not_spawned(&worker.settings.command[0], &error)),
    };
    let group = child.id();
    let streams = Streams::new(worker, run, &mut child);
    let status = wait(&mut child, group, &mut wishes, worker.settings.grace).await;
    let output = streams.finish(group).await;
    let wish = *wishes.borrow();
    match status {
        Ok(status) => ending::end(wish, status, output, &worker.held.last_lines(&run.run_id)),
        Err(error) => Some(ending::not_spawned(&worker.settings.command[0], &error)),
    }
}

fn command(worker: &Worker, run: &v1::ClaimedRun) -> Command {
    let words = &worker.settings.command;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own: a Ctrl-C at the worker is not one for the command, and all its children hear the end.
    #[cfg(unix)]
    command.process_group(0);
    let instant = |wire: Option<&prost_types::Timestamp>| {
        time::from_wire(wire).map(|instant| instant.to_string()).unwrap_or_default()
    };
    command
        .env("PUNCTUAL_RUN_ID", &run.run_id)
        .env("PUNCTUAL_ATTEMPT", run.attempt.to_string())
        .env("PUNCTUAL_SCHEDULE_ID", &run.schedule_id)
        .env("PUNCTUAL_HANDLER", &run.handler)
        .env("PUNCTUAL_NOMINAL_TIME", instant(run.nominal_time.as_ref()))
        .env("PUNCTUAL_DUE_TIME", instant(run.due_time.as_ref()))
        .env("PUNCTUAL_NAMESPACE", &worker.session.namespace)
        .env("PUNCTUAL_QUEUE", &worker.settings.queue)
        .env_remove("PUNCTUAL_LAST_RESULT");
    let last_result = String::from_utf8(payload::to_bytes(run.last_result.as_ref())).unwrap_or_default();
    if !last_result.is_empty() && last_result.len() <= VARIABLE_BYTES_MAX && !last_result.contains('\0') {
        command.env("PUNCTUAL_LAST_RESULT", last_result);
    }
    command
}

/// Waits for the end of a command, and sees to it when somebody wishes it.
async fn wait(
    child: &mut Child,
    group: Option<u32>,
    wishes: &mut watch::Receiver<Wish>,
    grace: Duration,
) -> std::io::Result<ExitStatus> {
    let mut kill_time: Option<Instant> = None;
    loop {
        let kill = kill_time.unwrap_or_else(Instant::now);
        tokio::select! {
            status = child.wait() => return status,
            Ok(()) = wishes.changed() => match *wishes.borrow_and_update() {
                Wish::GoOn => {}
                Wish::Stop | Wish::Cancel if kill_time.is_some() => {}
                Wish::Stop | Wish::Cancel => {
                    signal(child, group, Strength::Ask);
                    kill_time = Some(Instant::now() + grace);
                }
                Wish::Gone => {
                    signal(child, group, Strength::End);
                    kill_time = None;
                }
            },
            () = tokio::time::sleep_until(kill), if kill_time.is_some() => {
                signal(child, group, Strength::End);
                kill_time = None;
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Strength {
    Ask,
    End,
}

#[cfg(unix)]
fn signal(_child: &mut Child, group: Option<u32>, strength: Strength) {
    signal_group(group, strength);
}

#[cfg(unix)]
fn signal_group(group: Option<u32>, strength: Strength) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let signal = match strength {
        Strength::Ask => Signal::TERM,
        Strength::End => Signal::KILL,
    };
    let group = group.and_then(|group| i32::try_from(group).ok()).and_then(Pid::from_raw);
    if let Some(group) = group {
        // A group that is gone needs no signal.
        let _ = kill_process_group(group, signal);
    }
}

#[cfg(not(unix))]
fn signal(child: &mut Child, _group: Option<u32>, _strength: Strength) {
    let _ = child.start_kill();
}

#[cfg(not(unix))]
fn signal_group(_group: Option<u32>, _strength: Strength) {}

/// What goes into a command and what comes out of it.
struct Streams {
    stdin: JoinHandle<()>,
    stdout: JoinHandle<()>,
    stderr: JoinHandle<()>,
    output: Arc<Mutex<Output>>,
}

impl Streams {
    fn new(worker: &Arc<Worker>, run: &v1::ClaimedRun, child: &mut Child) -> Streams {
        let output = Arc::new(Mutex::new(Output::default()));
        let (input, stdin) = (payload::to_bytes(run.input.as_ref()), child.stdin.take());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (collected, worker, run_id) = (output.clone(), worker.clone(), run.run_id.clone());
        Streams {
            stdin: tokio::spawn(async move {
                if let Some(mut stdin) = stdin {
                    // A command that does not read its input is none the worse for it.
                    let _ = stdin.write_all(&input).await;
                }
            }),
            stdout: tokio::spawn(async move {
                if let Some(stdout) = stdout {
                    collect(stdout, &collected).await;
                }
            }),
            stderr: tokio::spawn(async move {
                if let Some(stderr) = stderr {
                    log(stderr, &worker, &run_id).await;
                }
            }),
            output,
        }
    }

    /// Everything that the command said. What it left behind is ended with it, so that its output ends too.
    async fn finish(mut self, group: Option<u32>) -> Output {
        self.stdin.abort();
        let ended = async {
            let _ = (&mut self.stdout).await;
            let _ = (&mut self.stderr).await;
        };
        tokio::pin!(ended);
        if tokio::time::timeout(LEFTOVERS_WAIT, &mut ended).await.is_err() {
            signal_group(group, Strength::End);
            let _ = tokio::time::timeout(LEFTOVERS_WAIT, &mut ended).await;
        }
        self.stdout.abort();
        self.stderr.abort();
        std::mem::take(&mut *lock(&self.output))
    }
}

fn lock(output: &Mutex<Output>) -> MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Keeps what fits, and reads on so that the command is not blocked.
async fn collect(mut stdout: impl AsyncRead + Unpin, output: &Mutex<Output>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = stdout.read(&mut buffer).await {
        let mut output = lock(output);
        let room = RESULT_BYTES_MAX - output.bytes.len();
        output.bytes.extend_from_slice(&buffer[..count.min(room)]);
        output.is_cut |= count > room;
    }
}

/// Keeps line by line; a line without an end is cut in pieces.
async fn log(stderr: impl AsyncRead + Unpin, worker: &Worker, run_id: &str) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = (&mut reader).take(LOG_LINE_BYTES_MAX as u64);
        match limited.read_until(b'\n', &mut line).await {
            Ok(1..) => {
                let text = String::from_utf8_lossy(&line);
                worker.held.log(run_id, text.trim_end_matches(['\n', '\r']).to_owned());
            }
            Ok(0) | Err(_) => return,
        }
    }
}
