//! The `punctual` command: shows when a schedule fires, says it in words, finds traps, compares two.

mod command;
mod spec_args;
mod request;

mod instant;
mod local_zone;
mod clock_change;

mod answer;
mod output;
mod fault;
mod exit_code;

mod clock;
mod limits;

use std::process::ExitCode;

use clap::Parser;

use command::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let exit_code = match clock::now().and_then(|now| cli.command.run(now)) {
        Ok(answer) => answer.deliver(),
        Err(error) => fault::deliver(&error),
    };
    exit_code.into()
}
