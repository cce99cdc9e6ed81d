//! The command line does what its help says: the same words in, the same text out, the same exit code.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

mod server;

mod faults;
mod preview;
mod readme;
mod guides;
mod words;

mod refusals;
mod schedules;
mod actions;
#[cfg(target_os = "linux")]
mod many_calls;
mod queues;
mod enqueued;
mod workers;

mod serving;
mod operating;
mod migrating;
mod upgrading;
mod two_servers;
mod nodes;
mod database_away;
mod terminal;
mod packaging;

/// The Friday before the clocks of Berlin go forward.
const NOW: &str = "2026-03-27T12:00:00Z";

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(args).env("PUNCTUAL_NOW", NOW);
    command
}

fn run(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs a command and compares all it says; `TZDATA` stands for the release of the bundled zones.
#[track_caller]
fn check(args: &[&str], exit_code: i32, stdout: &str, stderr: &str) {
    let output = run(args);
    let stdout = stdout.replace("TZDATA", punctual_spec::Zones::bundled().version());
    assert_eq!(text(&output.stdout), stdout, "stdout of {args:?}");
    assert_eq!(text(&output.stderr), stderr, "stderr of {args:?}");
    assert_eq!(output.status.code(), Some(exit_code), "exit code of {args:?}");
}

/// Runs a command that is refused.
#[track_caller]
fn check_refused(args: &[&str], stderr: &str) {
    check(args, 2, "", stderr);
}

/// Writes a file for one test.
fn file(name: &str, content: &[u8]) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}
