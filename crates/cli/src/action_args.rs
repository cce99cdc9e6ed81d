//! The options that say what one start does: a run on a queue, a web request, a Nexus operation or a command.

use anyhow::Result;
use clap::Args;

use crate::attempt_args::AttemptArgs;
use crate::fault;

mod build;
mod words;

const ACTION: &str = "What it does";
const QUEUE: &str = "What it does, on a queue";
const WEB: &str = "What it does, over the network";
const COMMAND: &str = "What it does, on the server's machine";

/// What one start does; exactly one kind.
#[derive(Debug, Args)]
pub struct ActionArgs {
    /// The queue that its runs wait on; it must be declared [default: default]
    #[arg(short, long, value_name = "NAME", help_heading = QUEUE)]
    queue: Option<String>,

    /// The function of the worker [default: the schedule's id]
    #[arg(long, value_name = "NAME", help_heading = QUEUE)]
    handler: Option<String>,

    /// Lower ones are claimed sooner: -100 to 100 [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = QUEUE)]
    priority: Option<i32>,

    /// What the queue's limits of one key apply to, such as a customer
    #[arg(long, value_name = "TEXT", help_heading = QUEUE)]
    key: Option<String>,

    /// Send a request to this URL; may hold {{schedule_id}}, {{nominal_time}} and other names of a template
    #[arg(long, value_name = "URL", help_heading = WEB)]
    http: Option<String>,

    /// The method of the request [default: POST]
    #[arg(long, value_name = "NAME", help_heading = WEB)]
    method: Option<String>,

    /// A header of the request, as in 'Authorization: Bearer x'; can be given more than once
    #[arg(long, value_name = "NAME: VALUE", help_heading = WEB)]
    header: Vec<String>,

    /// The body of the request, a template: text, @file, or - for stdin [default: everything, as JSON]
    #[arg(long, value_name = "TEXT", help_heading = WEB)]
    body: Option<String>,

    /// How long one request may take [default: a minute]
    #[arg(long, value_name = "DURATION", help_heading = WEB)]
    http_timeout: Option<String>,

    /// Statuses after which it is tried again [default: 408, 425, 429 and 500 to 599]
    #[arg(long, value_name = "N,…", value_delimiter = ',', help_heading = WEB)]
    retry_status: Vec<String>,

    /// Start an operation of the Nexus endpoint at this URL
    #[arg(long, value_name = "URL", help_heading = WEB)]
    nexus: Option<String>,

    /// The service of the Nexus endpoint
    #[arg(long, value_name = "NAME", help_heading = WEB)]
    service: Option<String>,

    /// The operation of the service
    #[arg(long, value_name = "NAME", help_heading = WEB)]
    operation: Option<String>,

    /// Start this command on the server's machine, without a shell; the server must be run with --allow-commands
    #[arg(long, value_name = "COMMAND", conflicts_with = "program", help_heading = COMMAND)]
    exec: Option<String>,

    /// The same, word by word: the program and its arguments, after --
    #[arg(last = true, value_name = "PROGRAM", help_heading = COMMAND)]
    program: Vec<String>,

    /// A variable of the command's environment; can be given more than once
    #[arg(long, value_name = "NAME=VALUE", help_heading = COMMAND)]
    env: Vec<String>,

    /// The folder that the command begins in
    #[arg(long, value_name = "FOLDER", help_heading = COMMAND)]
    cwd: Option<String>,

    /// What to give it: JSON, @file, or - for stdin
    #[arg(long, value_name = "JSON", help_heading = ACTION)]
    input: Option<String>,

    /// The first part of every run's name [default: the schedule's id]
    #[arg(long, value_name = "TEXT", help_heading = ACTION)]
    pub run_id_base: Option<String>,

    #[command(flatten)]
    attempts: AttemptArgs,
}

/// The kinds of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    Queue,
    Http,
    Nexus,
    Command,
}

impl ActionKind {
    /// Its name on the wire.
    pub fn path(self) -> &'static str {
        match self {
            ActionKind::Queue => "queue",
            ActionKind::Http => "http",
            ActionKind::Nexus => "nexus",
            ActionKind::Command => "command",
        }
    }

    /// The option that chooses it.
    fn option(self) -> &'static str {
        match self {
            ActionKind::Queue => "--queue",
            ActionKind::Http => "--http",
            ActionKind::Nexus => "--nexus",
            ActionKind::Command => "--exec",
        }
    }
}

/// An option that speaks of an action: whether it was given, and the kinds that it makes sense for.
type Said = (&'static str, bool, &'static [ActionKind]);

const EVERY_KIND: &[ActionKind] =
    &[ActionKind::Queue, ActionKind::Http, ActionKind::Nexus, ActionKind::Command];

impl ActionArgs {
    /// The kind that the options choose, if they do; more than one is refused.
    pub fn kind(&self) -> Result<Option<ActionKind>> {
        use ActionKind::{Command, Http, Nexus, Queue};
        let chosen = [
            ("--queue", self.queue.is_some(), Queue),
            ("--handler", self.handler.is_some(), Queue),
            ("--http", self.http.is_some(), Http),
            ("--nexus", self.nexus.is_some(), Nexus),
            ("--exec", self.exec.is_some(), Command),
            ("a program after --", !self.program.is_empty(), Command),
        ];
        let mut chosen = chosen.into_iter().filter(|(_, given, _)| *given);
        let Some((first, _, kind)) = chosen.next() else { return Ok(None) };
        match chosen.find(|(_, _, other)| *other != kind) {
            None => Ok(Some(kind)),
            Some((other, _, _)) => Err(fault::new(
                format!("an action has one kind, found {first} and {other}"),
                "give one of --queue, --http, --nexus and --exec",
            )),
        }
    }

    /// Whether any option speaks of the action, its kind left aside.
    pub fn is_given(&self) -> bool {
        self.said().iter().any(|(_, given, _)| *given)
    }

    fn said(&self) -> Vec<Said> {
        use ActionKind::{Command, Http, Nexus, Queue};
        let attempts = self.attempts.given().map_or(true, |attempts| !attempts.paths.is_empty());
        vec![
            ("--queue", self.queue.is_some(), &[Queue]),
            ("--handler", self.handler.is_some(), &[Queue]),
            ("--priority", self.priority.is_some(), &[Queue]),
            ("--key", self.key.is_some(), &[Queue]),
            ("--http", self.http.is_some(), &[Http]),
            ("--method", self.method.is_some(), &[Http]),
            ("--header", !self.header.is_empty(), &[Http, Nexus]),
            ("--body", self.body.is_some(), &[Http]),
            ("--http-timeout", self.http_timeout.is_some(), &[Http, Nexus]),
            ("--retry-status", !self.retry_status.is_empty(), &[Http]),
            ("--nexus", self.nexus.is_some(), &[Nexus]),
            ("--service", self.service.is_some(), &[Nexus]),
            ("--operation", self.operation.is_some(), &[Nexus]),
            ("--exec", self.exec.is_some(), &[Command]),
            ("--", !self.program.is_empty(), &[Command]),
            ("--env", !self.env.is_empty(), &[Command]),
            ("--cwd", self.cwd.is_some(), &[Command]),
            ("--input", self.input.is_some(), EVERY_KIND),
            ("--retry-attempts", attempts, EVERY_KIND),
        ]
    }

    /// Refuses what makes no sense for a kind.
    fn refuse_strangers(&self, kind: ActionKind) -> Result<()> {
        let said = self.said();
        let stranger = said.iter().find(|(_, given, kinds)| *given && !kinds.contains(&kind));
        let Some((option, _, kinds)) = stranger else { return Ok(()) };
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.option()).collect();
        Err(fault::new(
            format!("{option} makes no sense for an action of the kind {}", kind.path()),
            format!("it goes with {}", kinds.join(" or ")),
        ))
    }
}
