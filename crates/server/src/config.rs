//! What an operator can set: by flag, environment, file or default, in this order, and where each value came from.

mod settings;

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use jiff::SignedDuration;
use punctual_actions::Network;
use punctual_engine::EngineConfig;
use punctual_store_sqlite::Synchronous;
use thiserror::Error;

use crate::convert::action::WORKFLOWS_QUEUE;

pub use settings::shown;
pub use settings::{Known, SETTINGS};

/// What is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where to listen. Default 127.0.0.1:7233: nobody else can reach it, since there is no authentication yet.
    pub listen: SocketAddr,
    /// `sqlite:<path>`, `postgres://…` or `memory:`. Default `sqlite:punctual.db`, beside where the server is started.
    pub database: String,
    /// Where to listen for other nodes, if `database` leads through a proxy. Default: at `database`.
    pub database_listen: String,
    /// How many parts the schedules of a new PostgreSQL database are spread over, 1 to 4,096. Default 32.
    pub shards: u32,
    /// When a commit is durable. Default `full`: when it is answered, whatever happens to the machine.
    pub durability: Synchronous,
    /// Whether an address that others can reach is allowed without authentication. Default no.
    pub insecure: bool,
    /// The name of this process among those that share a database; 1 to 200 bytes. Default `node-1`.
    pub node: String,
    /// Whether a demo queue, demo schedules and a worker for them are made. Default no.
    pub demo: bool,
    /// How logs are written. Default `text`.
    pub log: LogFormat,
    /// Which logs are written, as in `info` or `punctual_engine=debug,info`. Default `info`.
    pub log_filter: String,
    /// How long a stop may take, 0 s to 10 min. Default 10 s: below what service managers wait before they kill.
    pub shutdown: Duration,
    /// How long a worker may be silent, unless it or its run says otherwise; 1 s to 1 day. Default 30 s.
    pub worker_lease: SignedDuration,
    /// How long the right to drive a shard lasts without being renewed; 1 s to 5 min. Default 5 s.
    pub shard_lease: SignedDuration,
    /// How long ended runs are kept; at least 1 min. Default 7 days: tables stay small.
    pub run_retention: SignedDuration,
    /// How long verdicts of occurrences that did not start are kept; at least 1 min. Default 30 days.
    pub ledger_retention: SignedDuration,
    /// Ended runs that are kept at most, whatever their age. Default: no bound.
    pub runs_kept_max: Option<u64>,
    /// Verdicts that are kept at most, whatever their age. Default: no bound.
    pub ledger_kept_max: Option<u64>,
    /// How large a table of live work in PostgreSQL may become while somebody's snapshot keeps what changed. Default: no bound.
    pub live_table_bytes_max: Option<u64>,
    /// Whether schedules may start commands on this machine. Default no: whoever may create schedules could do anything.
    pub allow_commands: bool,
    /// Whether calls may go to private and loopback addresses; link-local ones need `allow_networks`. Default no.
    pub allow_private: bool,
    /// Networks that calls may go to although they are not public. Default none.
    pub allow_networks: Networks,
    /// Where callbacks are sent, as others reach this server. Default: the address that it listens on.
    pub callback_url: String,
    /// Where traces go, as OTLP over plain HTTP, such as `http://127.0.0.1:4318`. Default: nowhere.
    pub otlp_endpoint: String,
    /// A Temporal cluster behind this server, such as `http://127.0.0.1:7234`. Default: none.
    pub temporal_upstream: String,
    /// A file with the certificates to trust at an `https://` cluster. Default: those that the machine trusts.
    pub temporal_upstream_ca: String,
    /// A file with the API key for requests of our own to the cluster. Default: none.
    pub temporal_upstream_key_file: String,
    /// Outside calls in flight at a time, 1 to 100,000. Default 1,000.
    pub calls_max: usize,
    /// Outside calls to one target at a time, 1 to 100,000. Default 100: one dead target delays no other.
    pub calls_per_target_max: usize,
    /// Requests that may wait for an answer at a time, 1 to 1,000,000. Default 20,000; beyond it callers hear `busy`.
    pub requests_max: usize,
    /// Connections at a time, 1 to 1,000,000. Default 10,000; beyond it new ones wait to be accepted.
    pub connections_max: usize,
    /// Watchers at a time, 1 to 100,000. Default 1,000; each is told every event, so they cost.
    pub watchers_max: usize,
    /// The last bytes of a run's log that are kept, 0 to 1 MiB. Default 16 KiB.
    pub log_tail_bytes_max: usize,
}

/// Networks, such as `10.0.0.0/8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(pub(crate) Vec<Network>);

/// How logs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs, one object a line.
    Json,
}

/// The settings that were given on the command line, as text; what is not given comes from elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the setting of the same name in `Config`")]
pub struct Flags {
    pub listen: Option<String>,
    pub database: Option<String>,
    pub database_listen: Option<String>,
    pub shards: Option<String>,
    pub durability: Option<String>,
    pub insecure: Option<String>,
    pub node: Option<String>,
    pub demo: Option<String>,
    pub log: Option<String>,
    pub log_filter: Option<String>,
    pub shutdown: Option<String>,
    pub worker_lease: Option<String>,
    pub shard_lease: Option<String>,
    pub run_retention: Option<String>,
    pub ledger_retention: Option<String>,
    pub runs_kept_max: Option<String>,
    pub ledger_kept_max: Option<String>,
    pub live_table_bytes_max: Option<String>,
    pub allow_commands: Option<String>,
    pub allow_private: Option<String>,
    pub allow_networks: Option<String>,
    pub callback_url: Option<String>,
    pub otlp_endpoint: Option<String>,
    pub temporal_upstream: Option<String>,
    pub temporal_upstream_ca: Option<String>,
    pub temporal_upstream_key_file: Option<String>,
    pub calls_max: Option<String>,
    pub calls_per_target_max: Option<String>,
    pub requests_max: Option<String>,
    pub connections_max: Option<String>,
    pub watchers_max: Option<String>,
    pub log_tail_bytes_max: Option<String>,
}

/// What is in force, and where each value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// What is in force.
    pub config: Config,
    /// Every setting, in the order of the reference page.
    pub settings: Vec<Setting>,
}

/// One setting that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name in the file; the flag is `--<name>` with dashes.
    pub name: &'static str,
    /// Its value, as text.
    pub value: String,
    /// Where it came from.
    pub source: Source,
    /// What it is for.
    pub help: &'static str,
    /// What values it may have.
    pub bound: &'static str,
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// The file.
    File,
    /// A variable of the environment.
    Environment,
    /// The command line.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Default => "default",
            Source::File => "file",
            Source::Environment => "environment",
            Source::Flag => "flag",
        })
    }
}

/// Why the settings make no sense.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// The file is no TOML.
    #[error("{file}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// What is wrong, with line and column.
        message: String,
    },
    /// The file has a setting that nobody knows.
    #[error("{file}: unknown setting `{name}`{}", nearest.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default())]
    Unknown {
        /// The file.
        file: String,
        /// The setting.
        name: String,
        /// The setting that was probably meant.
        nearest: Option<&'static str>,
    },
    /// A setting has a value that it cannot have.
    #[error("{name} (from {place}) is {found:?}, expected {expected}")]
    Value {
        /// The setting.
        name: &'static str,
        /// Where it came from: a flag, a variable or a file, by name.
        place: String,
        /// The value.
        found: String,
        /// What it may be.
        expected: String,
    },
}

impl Config {
    /// Finds out what is in force: flag, environment, file, default, in this order.
    ///
    /// ```
    /// use punctual_server::{Config, Flags, Source};
    ///
    /// let flags = Flags { node: Some("left".into()), ..Flags::default() };
    /// let environment = |name: &str| (name == "PUNCTUAL_SHUTDOWN").then(|| "3s".to_owned());
    /// let file = (std::path::Path::new("punctual.toml"), "shutdown = '4s'\nwatchers_max = 5");
    /// let resolved = Config::resolve(&flags, &environment, Some(file))?;
    /// assert_eq!((resolved.config.node.as_str(), resolved.config.shutdown.as_secs()), ("left", 3));
    /// let watchers = resolved.settings.iter().find(|setting| setting.name == "watchers_max").unwrap();
    /// assert_eq!((watchers.value.as_str(), watchers.source), ("5", Source::File));
    /// # Ok::<(), punctual_server::ConfigError>(())
    /// ```
    pub fn resolve(
        flags: &Flags,
        environment: &dyn Fn(&str) -> Option<String>,
        file: Option<(&Path, &str)>,
    ) -> Result<Resolved, ConfigError> {
        let filed = file.map(|(path, text)| settings::read_file(path, text)).transpose()?.unwrap_or_default();
        let (mut config, mut settings) = (Config::default(), Vec::new());
        for known in SETTINGS {
            let variable = known.variable();
            let given = (known.flag)(flags).clone().map(|value| (value, Source::Flag, known.option()));
            let given = given.or_else(|| {
                environment(&variable).map(|value| (value, Source::Environment, variable.clone()))
            });
            let given = given.or_else(|| {
                let value = filed.get(known.name)?.clone();
                Some((value, Source::File, file.map(|(path, _)| path.display().to_string())?))
            });
            let mut source = Source::Default;
            if let Some((value, from, place)) = given {
                source = from;
                (known.set)(&mut config, value.trim()).map_err(|expected| ConfigError::Value {
                    name: known.name,
                    place,
                    found: value.clone(),
                    expected: expected.to_owned(),
                })?;
            }
            let value = (known.show)(&config);
            settings.push(Setting { name: known.name, value, source, help: known.help, bound: known.bound });
        }
        Ok(Resolved { config, settings })
    }

    /// What the engine is told.
    pub(crate) fn engine(&self) -> EngineConfig {
        EngineConfig {
            node: self.node.clone(),
            shard_lease: self.shard_lease,
            follow_database_clock: !self.database.starts_with("sqlite:") && self.database != "memory:",
            worker_lease: self.worker_lease,
            run_retention: self.run_retention,
            ledger_retention: self.ledger_retention,
            runs_kept_max: self.runs_kept_max,
            ledger_kept_max: self.ledger_kept_max,
            requests_max: self.requests_max,
            log_tail_bytes_max: self.log_tail_bytes_max,
            // Without a cluster nobody takes them over.
            followed_queue: (!self.temporal_upstream.is_empty()).then(|| WORKFLOWS_QUEUE.into()),
            ..EngineConfig::default()
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        let engine = EngineConfig::default();
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 7233)),
            database: "sqlite:punctual.db".into(),
            database_listen: String::new(),
            shards: 32,
            durability: Synchronous::Full,
            insecure: false,
            node: "node-1".into(),
            demo: false,
            log: LogFormat::Text,
            log_filter: "info".into(),
            shutdown: Duration::from_secs(10),
            worker_lease: engine.worker_lease,
            shard_lease: engine.shard_lease,
            run_retention: engine.run_retention,
            ledger_retention: engine.ledger_retention,
            runs_kept_max: None,
            ledger_kept_max: None,
            live_table_bytes_max: None,
            allow_commands: false,
            allow_private: false,
            allow_networks: Networks::default(),
            callback_url: String::new(),
            otlp_endpoint: String::new(),
            temporal_upstream: String::new(),
            temporal_upstream_ca: String::new(),
            temporal_upstream_key_file: String::new(),
            calls_max: 1_000,
            calls_per_target_max: 100,
            requests_max: engine.requests_max,
            connections_max: 10_000,
            watchers_max: 1_000,
            log_tail_bytes_max: engine.log_tail_bytes_max,
        }
    }
}
