//! One command of this machine: its input, its output, its end.

mod group;
mod output;

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::{failed, timed_out, timeout_of};
use crate::call::CommandCall;
use crate::context::{Context, as_json};
use crate::end::{End, Fault, result_of};
use crate::limits::{ARGUMENT_BYTES_MAX, LEFTOVERS_WAIT};
use crate::rules::Rules;
use crate::stop::StopSignal;
use crate::template::{Place, Template};
use group::Group;
use output::Output;

/// The exit code that says: the input is wrong, another attempt cannot help (`EX_DATAERR`).
const EXIT_DATA_ERROR: i32 = 65;

/// What a command sees of the server's own environment; everything else may hold secrets.
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Why a command is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Stopped,
    TimedOut,
}

pub(super) async fn run(call: &CommandCall, context: &Context, rules: &Rules, stop: &StopSignal) -> End {
    let mut command = match command(call, context) {
        Ok(command) => command,
        Err(fault) => return failed(fault, String::new()),
    };
    let program = &call.argv[0];
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return failed(not_started(program, &error), String::new()),
    };
    let stdout_bytes_max = call.output_bytes_max.unwrap_or(usize::MAX).min(rules.response_bytes_max);
    let timeout = timeout_of(call.timeout_ms, rules.command_timeout);
    let mut output = Output::new(stdout_bytes_max);
    let input = as_json(context.input.as_deref());
    let mut ending = Ending {
        group: Group::of(&child),
        grace: rules.stop_grace,
        cause: None,
        next: Instant::now() + timeout,
        is_killed: false,
    };
    let status = attend(child, input.as_bytes(), &mut ending, &mut output, stop).await;
    let (stdout, log) = output.finish();
    match (status, ending.cause) {
        (Err(error), _) => failed(Fault::passing("wait_failed", format!("{program}: {error}")), log),
        (Ok(_), Some(Cause::TimedOut)) => failed(timed_out(timeout), log),
        // A command that was asked to stop may finish all the same: then it has succeeded.
        (Ok(status), Some(Cause::Stopped)) if !status.success() => End::Cancelled,
        (Ok(status), _) if status.success() => {
            let (result, form) = result_of(stdout, None);
            End::Done { result, form, log }
        }
        (Ok(status), _) => failed(fault_of(status, &log), log),
    }
}

fn command(call: &CommandCall, context: &Context) -> Result<Command, Fault> {
    let fill = |field: String, template: &str| {
        let filled = Template::parse(template)
            .and_then(|template| template.fill(context, Place::Plain, ARGUMENT_BYTES_MAX))
            .and_then(
                |text| if text.contains('\0') { Err("expected no null byte".to_owned()) } else { Ok(text) },
            );
        filled.map_err(|reason| Fault::lasting("call_invalid", format!("{field}: {reason}")))
    };
    let mut command = Command::new(fill("argv[0]".to_owned(), &call.argv[0])?);
    for (index, word) in call.argv.iter().enumerate().skip(1) {
        command.arg(fill(format!("argv[{index}]"), word)?);
    }
    command.env_clear();
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    for (name, template) in &call.env {
        command.env(name, fill(format!("env.{name}"), template)?);
    }
    let last_result = context.last_result.as_deref().map(|bytes| as_json(Some(bytes)).into_owned());
    let variables = [
        ("PUNCTUAL_NAMESPACE", Some(context.namespace.as_str())),
        ("PUNCTUAL_SCHEDULE_ID", Some(&context.schedule_id)),
        ("PUNCTUAL_RUN_ID", Some(&context.run_id)),
        ("PUNCTUAL_IDEMPOTENCY_KEY", Some(&context.idempotency_key)),
        ("PUNCTUAL_NOMINAL_TIME", context.nominal_time.as_deref()),
        ("PUNCTUAL_DUE_TIME", Some(&context.due_time)),
        ("PUNCTUAL_LAST_RESULT", last_result.as_deref()),
        ("PUNCTUAL_CALLBACK_URL", context.callback_url.as_deref()),
        ("PUNCTUAL_CALLBACK_TOKEN", context.callback_token.as_deref()),
    ];
    for (name, value) in variables {
        // What the system would not take is left out, as it is for workers.
        let fits = |value: &&str| value.len() <= ARGUMENT_BYTES_MAX && !value.contains('\0');
        if let Some(value) = value.filter(fits) {
            command.env(name, value);
        }
    }
    command.env("PUNCTUAL_ATTEMPT", context.attempt.to_string());
    if let Some(cwd) = &call.cwd {
        command.current_dir(cwd);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // A group of its own: its children are ended with it, and a Ctrl-C at the server is not one for the command.
    #[cfg(unix)]
    command.process_group(0);
    Ok(command)
}

/// How a command is ended, step by step, if it does not end by itself.
struct Ending {
    group: Group,
    grace: Duration,
    cause: Option<Cause>,
    /// When the next step is due.
    next: Instant,
    is_killed: bool,
}

impl Ending {
    /// Asks the group to stop, and gives it a while.
    fn ask(&mut self, cause: Cause) {
        self.cause = Some(cause);
        self.group.ask();
        self.next = Instant::now() + self.grace;
    }

    /// The time of the next step has come; false if there is none left.
    fn step(&mut self, child: &mut Child) -> bool {
        match self.cause {
            None => self.ask(Cause::TimedOut),
            Some(Cause::Stopped | Cause::TimedOut) if !self.is_killed => {
                self.group.kill();
                // Where there are no groups, the command itself ends at least.
                let _ = child.start_kill();
                self.is_killed = true;
                self.next = Instant::now() + LEFTOVERS_WAIT;
            }
            Some(Cause::Stopped | Cause::TimedOut) => return false,
        }
        true
    }
}

/// Feeds and reads a command until it has ended and said everything. Dropping this ends the whole group.
async fn attend(
    mut child: Child,
    input: &[u8],
    ending: &mut Ending,
    output: &mut Output,
    stop: &StopSignal,
) -> io::Result<ExitStatus> {
    let (mut stdin, mut stdout, mut stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut stdout_buffer, mut stderr_buffer) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let mut feed = std::pin::pin!(async move {
        if let Some(stdin) = &mut stdin {
            // A command that does not read its input is none the worse for it.
            let _ = stdin.write_all(input).await;
        }
        drop(stdin);
    });
    let mut is_fed = false;
    let mut status = None;
    loop {
        if let Some(status) = status
            && stdout.is_none()
            && stderr.is_none()
        {
            return Ok(status);
        }
        tokio::select! {
            () = &mut feed, if !is_fed => is_fed = true,
            count = read(&mut stdout, &mut stdout_buffer), if stdout.is_some() => match count {
                0 => stdout = None,
                count => output.said(&stdout_buffer[..count]),
            },
            count = read(&mut stderr, &mut stderr_buffer), if stderr.is_some() => match count {
                0 => stderr = None,
                count => output.complained(&stderr_buffer[..count]),
            },
            ended = child.wait(), if status.is_none() => {
                status = Some(ended?);
                if ending.cause.is_some() {
                    ending.group.kill();
                }
                ending.next = Instant::now() + LEFTOVERS_WAIT;
            }
            () = stop.stopped(), if status.is_none() && ending.cause.is_none() => ending.ask(Cause::Stopped),
            () = tokio::time::sleep_until(ending.next) => {
                if status.is_some() {
                    // What the command left behind keeps its output open: there is no more to come from the command itself.
                    (stdout, stderr) = (None, None);
                } else if !ending.step(&mut child) {
                    // It hangs inside of the system; waiting on would keep its place from others.
                    return Err(io::Error::other("was killed, and does not end"));
                }
            }
        }
    }
}

async fn read(stream: &mut Option<impl AsyncReadExt + Unpin>, buffer: &mut [u8]) -> usize {
    match stream {
        Some(stream) => stream.read(buffer).await.unwrap_or(0),
        None => 0,
    }
}

fn not_started(program: &str, error: &io::Error) -> Fault {
    let message = format!("cannot start {program}: {error}");
    match error.kind() {
        // Another attempt may find a table that is not full, but hardly a program that is not there.
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Fault::lasting("spawn_failed", message),
        _ => Fault::passing("spawn_failed", message),
    }
}

fn fault_of(status: ExitStatus, log: &str) -> Fault {
    let lines = output::last_lines(log);
    let lines = if lines.is_empty() { String::new() } else { format!(":\n{lines}") };
    match (status.code(), group::signal_of(status)) {
        (Some(code), _) => {
            let message = format!("the command ended with exit code {code}{lines}");
            Fault::new(format!("exit_{code}"), code != EXIT_DATA_ERROR, message)
        }
        (None, Some(signal)) => {
            let message = format!("the command was killed by signal {signal}{lines}");
            Fault::passing(format!("signal_{signal}"), message)
        }
        (None, None) => Fault::passing("unknown", "the command ended, nobody knows how"),
    }
}
