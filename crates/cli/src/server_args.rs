//! The settings of a server, as options: one for each, the same for `serve` and `config`.

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use punctual_server::{Config, Flags, Resolved};

use crate::exit_code::ExitCode;
use crate::fault;

const STORE: &str = "Where state is kept";
const CALLS: &str = "Calls and commands";
const LIMITS: &str = "Limits";
const LOGS: &str = "Logs and traces";

/// What an operator can set. Each can also be a variable `PUNCTUAL_<NAME>` or a line of the file.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// Read settings from this TOML file
    #[arg(long, value_name = "FILE", env = "PUNCTUAL_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,

    /// Where to listen; port 0 takes a free one
    #[arg(short, long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,

    /// Allow an address that others can reach, although there is no authentication yet
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    insecure: Option<String>,

    /// Add a few schedules and a worker for them, to have something to look at
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    demo: Option<String>,

    /// The name of this process among those that share a database
    #[arg(long, value_name = "NAME")]
    node: Option<String>,

    /// How long a stop may take
    #[arg(long, value_name = "DURATION")]
    shutdown: Option<String>,

    /// The database: `sqlite:<path>`, `postgres://...` for many servers, or `memory:` to forget everything at the end
    #[arg(short, long, value_name = "URL", help_heading = STORE)]
    database: Option<String>,

    /// Where to listen for other nodes, if the database is behind a proxy that hands out connections by transaction
    #[arg(long, value_name = "URL", help_heading = STORE)]
    database_listen: Option<String>,

    /// How many parts the schedules of a new PostgreSQL database are spread over
    #[arg(long, value_name = "COUNT", help_heading = STORE)]
    shards: Option<String>,

    /// When a commit is durable: full, when it is answered; normal, shortly after
    #[arg(long, value_name = "WORD", help_heading = STORE)]
    durability: Option<String>,

    /// How long ended runs are kept
    #[arg(long, value_name = "DURATION", help_heading = STORE)]
    run_retention: Option<String>,

    /// How long verdicts of occurrences that did not start are kept
    #[arg(long, value_name = "DURATION", help_heading = STORE)]
    ledger_retention: Option<String>,

    /// Ended runs that are kept at most, whatever their age, or none for no bound; the oldest go
    #[arg(long, value_name = "N", help_heading = STORE)]
    runs_kept_max: Option<String>,

    /// Verdicts that are kept at most, whatever their age, or none for no bound; the oldest go
    #[arg(long, value_name = "N", help_heading = STORE)]
    ledger_kept_max: Option<String>,

    /// How many bytes a table of live work in PostgreSQL may have while somebody holds a snapshot open, or none for no
    /// bound; a larger one is written anew, and that snapshot then finds it empty
    #[arg(long, value_name = "N", help_heading = STORE)]
    live_table_bytes_max: Option<String>,

    /// The last bytes of a run's log that are kept
    #[arg(long, value_name = "N", help_heading = STORE)]
    log_tail_bytes_max: Option<String>,

    /// Let schedules start commands on this machine; whoever may create schedules may then do anything
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help_heading = CALLS
    )]
    allow_commands: Option<String>,

    /// Let calls go to private and loopback addresses; link-local ones need --allow-networks
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help_heading = CALLS
    )]
    allow_private: Option<String>,

    /// Private networks that calls may go to, as in 10.0.0.0/8,192.168.1.7/32
    #[arg(long, value_name = "NETWORKS", help_heading = CALLS)]
    allow_networks: Option<String>,

    /// Where callbacks are sent, as others reach this server
    #[arg(long, value_name = "URL", help_heading = CALLS)]
    callback_url: Option<String>,

    /// Outside calls in flight at a time
    #[arg(long, value_name = "N", help_heading = CALLS)]
    calls_max: Option<String>,

    /// Outside calls to one target at a time, so that a dead one delays no other
    #[arg(long, value_name = "N", help_heading = CALLS)]
    calls_per_target_max: Option<String>,

    /// How long a worker may be silent, unless it or its run says otherwise
    #[arg(long, value_name = "DURATION", help_heading = LIMITS)]
    worker_lease: Option<String>,

    /// How long the right to drive a shard lasts without being renewed
    #[arg(long, value_name = "DURATION", help_heading = LIMITS)]
    shard_lease: Option<String>,

    /// Requests that may wait for an answer at a time
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    requests_max: Option<String>,

    /// Connections at a time
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    connections_max: Option<String>,

    /// Watchers at a time
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    watchers_max: Option<String>,

    /// Start workflows at this Temporal cluster, and forward the rest to it
    #[arg(long, value_name = "URL", help_heading = CALLS)]
    temporal_upstream: Option<String>,

    /// Trust the certificates of this file at an https:// cluster, instead of the machine's
    #[arg(long, value_name = "FILE", help_heading = CALLS)]
    temporal_upstream_ca: Option<String>,

    /// Make requests of our own to the cluster with the API key in this file
    #[arg(long, value_name = "FILE", help_heading = CALLS)]
    temporal_upstream_key_file: Option<String>,

    /// How logs are written: text or json
    #[arg(long, value_name = "FORMAT", help_heading = LOGS)]
    log: Option<String>,

    /// Which logs are written, as in info or punctual_engine=debug,info
    #[arg(long, value_name = "FILTER", help_heading = LOGS)]
    log_filter: Option<String>,

    /// Send a trace of each scheduled run to the OpenTelemetry collector at this URL
    #[arg(long, value_name = "URL", help_heading = LOGS)]
    otlp_endpoint: Option<String>,
}

impl ServerArgs {
    /// What is in force: flag, environment, file, default, in this order.
    pub fn resolve(&self) -> Result<Resolved> {
        let text = match &self.config {
            Some(path) => {
                let text = fs::read_to_string(path);
                Some(text.with_context(|| format!("--config {}", path.display()))?)
            }
            None => None,
        };
        let file = self.config.as_deref().zip(text.as_deref());
        let environment = |name: &str| env::var(name).ok();
        Config::resolve(&self.flags(), &environment, file)
            .map_err(|error| fault::ending(ExitCode::Fault, error.to_string(), ""))
    }

    fn flags(&self) -> Flags {
        Flags {
            listen: self.listen.clone(),
            database: self.database.clone(),
            database_listen: self.database_listen.clone(),
            shards: self.shards.clone(),
            durability: self.durability.clone(),
            insecure: self.insecure.clone(),
            node: self.node.clone(),
            demo: self.demo.clone(),
            log: self.log.clone(),
            log_filter: self.log_filter.clone(),
            shutdown: self.shutdown.clone(),
            worker_lease: self.worker_lease.clone(),
            shard_lease: self.shard_lease.clone(),
            run_retention: self.run_retention.clone(),
            ledger_retention: self.ledger_retention.clone(),
            runs_kept_max: self.runs_kept_max.clone(),
            ledger_kept_max: self.ledger_kept_max.clone(),
            live_table_bytes_max: self.live_table_bytes_max.clone(),
            allow_commands: self.allow_commands.clone(),
            allow_private: self.allow_private.clone(),
            allow_networks: self.allow_networks.clone(),
            callback_url: self.callback_url.clone(),
            otlp_endpoint: self.otlp_endpoint.clone(),
            temporal_upstream: self.temporal_upstream.clone(),
            temporal_upstream_ca: self.temporal_upstream_ca.clone(),
            temporal_upstream_key_file: self.temporal_upstream_key_file.clone(),
            calls_max: self.calls_max.clone(),
            calls_per_target_max: self.calls_per_target_max.clone(),
            requests_max: self.requests_max.clone(),
            connections_max: self.connections_max.clone(),
            watchers_max: self.watchers_max.clone(),
            log_tail_bytes_max: self.log_tail_bytes_max.clone(),
        }
    }
}
