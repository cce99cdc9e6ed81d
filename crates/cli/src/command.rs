//! The commands, listed.

use std::sync::LazyLock;

use anyhow::Result;
use clap::{Parser, Subcommand};
use jiff::Timestamp;
use punctual_spec::Zones;

use crate::answer::Answer;
use crate::exit_code;
use crate::runtime;

/// The end of a command's help: its examples, then what all commands share.
macro_rules! after_help {
    ($text:literal) => {
        concat!(
            $text,
            "\n\nAn INSTANT is 2026-03-29T01:00:00Z, now, or local to the zone: 2026-03-29T02:30 or 2026-03-29."
        )
    };
}

mod serve;
mod schedule;
mod run;
mod queue;
mod worker;

mod nodes;
mod shards;
mod node;

mod top;
mod doctor;
mod backup;
mod restore;
mod migrate;

mod preview;
mod explain;
mod lint;
mod diff;

mod config;
mod completions;

/// Starts things at the right time, exactly once, and can always say why it did or did not
#[derive(Debug, Parser)]
#[command(name = "punctual", version = version(), after_help = examples())]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  punctual serve --demo
  punctual schedule list
  punctual schedule create report '0 9 * * MON-FRI' --zone Europe/Berlin
  punctual worker --queue mail --exec './send-report.sh'
  punctual top
  punctual preview '0 9 * * MON-FRI' --zone Europe/Berlin --count 10";

#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(Box<serve::ServeCommand>),
    Schedule(schedule::ScheduleCommand),
    Run(run::RunCommand),
    Queue(queue::QueueCommand),
    Worker(worker::WorkerCommand),
    Nodes(nodes::NodesCommand),
    Shards(shards::ShardsCommand),
    Node(node::NodeCommand),
    Top(top::TopCommand),
    Doctor(doctor::DoctorCommand),
    Backup(backup::BackupCommand),
    Restore(restore::RestoreCommand),
    Migrate(migrate::MigrateCommand),
    Preview(preview::PreviewArgs),
    Explain(explain::ExplainArgs),
    Lint(lint::LintArgs),
    Diff(diff::DiffArgs),
    Config(Box<config::ConfigCommand>),
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Answers the command, as of `now`.
    pub fn run(self, now: Timestamp) -> Result<Answer> {
        match self {
            Command::Serve(args) => runtime::for_a_server()?.block_on(args.run()),
            Command::Schedule(args) => runtime::for_a_client()?.block_on(args.run(now)),
            Command::Run(args) => runtime::for_a_client()?.block_on(args.run(now)),
            Command::Queue(args) => runtime::for_a_client()?.block_on(args.run(now)),
            Command::Worker(args) => runtime::for_a_client()?.block_on(args.run(now)),
            Command::Nodes(args) => runtime::for_a_client()?.block_on(args.run(now)),
            Command::Shards(args) => runtime::for_a_client()?.block_on(args.run(now)),
            Command::Node(args) => runtime::for_a_client()?.block_on(args.run(now)),
            Command::Top(args) => runtime::for_a_client()?.block_on(args.run(now)),
            Command::Doctor(args) => runtime::for_a_client()?.block_on(args.run(now)),
            Command::Backup(args) => runtime::for_a_client()?.block_on(args.run(now)),
            Command::Restore(args) => args.run(),
            Command::Migrate(args) => runtime::for_a_server()?.block_on(args.run()),
            Command::Preview(args) => preview::preview(&args, now),
            Command::Explain(args) => explain::explain(&args, now),
            Command::Lint(args) => lint::lint(&args, now),
            Command::Diff(args) => diff::diff(&args, now),
            Command::Config(args) => args.run(),
            Command::Completions(args) => completions::completions(&args),
        }
    }
}

/// Examples, then every exit code.
fn examples() -> String {
    let codes = exit_code::TABLE.iter().map(|(code, meaning)| format!("\n  {}  {meaning}", code.number()));
    format!("{EXAMPLES}\n\nExit codes:{}", codes.collect::<String>())
}

/// The version, and that of the zone data: a wrong offset is as likely to be the latter's.
fn version() -> &'static str {
    static VERSION: LazyLock<String> =
        LazyLock::new(|| format!("{} (tz data {})", env!("CARGO_PKG_VERSION"), Zones::bundled().version()));
    &VERSION
}
