//! The `punctual` command: a server, its client, a worker for any language, and previews of schedules.

mod command;
mod spec_args;
mod schedule_args;
mod action_args;
mod attempt_args;
mod or_none;
mod server_args;
mod request;

mod session;
mod database_file;
mod wire;
mod runtime;
mod signals;
mod open_files;

mod instant;
mod local_zone;
mod clock_change;

mod answer;
mod output;
mod fault;
mod exit_code;

mod clock;
mod limits;

#[cfg(test)]
mod reference;

use std::process::ExitCode;

use clap::Parser;

use command::Cli;

/// Records are made on one thread and dropped on another, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let exit_code = match clock::now().and_then(|now| cli.command.run(now)) {
        Ok(answer) => answer.deliver(),
        Err(error) => fault::deliver(&error),
    };
    exit_code.into()
}
