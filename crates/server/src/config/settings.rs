//! Every setting once: its name, how it is read and shown, and what it is for.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::SignedDuration;
use punctual_store_sqlite::Synchronous;

use super::{Config, ConfigError, Flags, LogFormat, Networks};

/// One setting that exists.
pub struct Known {
    /// Its name in the file.
    pub name: &'static str,
    /// What it is for, and why it has its default.
    pub help: &'static str,
    /// What values it may have, with their unit.
    pub bound: &'static str,
    pub(super) flag: fn(&Flags) -> &Option<String>,
    pub(super) set: fn(&mut Config, &str) -> Result<(), &'static str>,
    pub(super) show: fn(&Config) -> String,
}

impl Known {
    /// Its flag, such as `--worker-lease`.
    pub fn option(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }

    /// Its variable of the environment, such as `PUNCTUAL_WORKER_LEASE`.
    pub fn variable(&self) -> String {
        format!("PUNCTUAL_{}", self.name.to_uppercase())
    }

    /// Its value when nobody says anything.
    pub fn default(&self) -> String {
        (self.show)(&Config::default())
    }
}

macro_rules! settings {
    ($($name:ident: $bound:literal, $help:literal, $set:expr, $show:expr;)*) => {
        /// Every setting, in the order of the reference page.
        pub const SETTINGS: &[Known] = &[$(Known {
            name: stringify!($name),
            help: $help,
            bound: $bound,
            flag: |flags| &flags.$name,
            set: |config, text| {
                config.$name = ($set)(text).ok_or($bound)?;
                Ok(())
            },
            show: |config| ($show)(&config.$name),
        }),*];
    };
}

const MINUTE: i64 = 60;
const DAY: i64 = 24 * 3_600;

settings! {
    listen: "an address and a port, such as 127.0.0.1:7233",
        "Where to listen. On loopback by default: there is no authentication yet.",
        |text: &str| text.parse().ok(), ToString::to_string;
    database: "`sqlite:<path>`, `postgres://<user>@<host>/<database>` or `memory:`",
        "Where state is kept. Any number of servers may share a PostgreSQL database. `memory:` forgets everything when the server stops.",
        read_database, |database: &String| shown(database);
    database_listen: "a `postgres://` URL, or nothing",
        "Where to listen for other nodes, if `database` leads through a proxy that hands out connections by transaction.",
        read_listen, |database: &String| shown(database);
    shards: "a number from 1 to 4096",
        "How many parts the schedules of a new PostgreSQL database are spread over; an old one keeps its number. At least as many as there will ever be nodes.",
        |text: &str| text.parse().ok().filter(|shards| (1..=4_096).contains(shards)), ToString::to_string;
    durability: "`full` or `normal`",
        "When a commit is durable: when it is answered, or shortly after. With `normal` a power cut may lose the last moments.",
        read_durability, show_durability;
    insecure: "`true` or `false`",
        "Allows an address that others can reach although there is no authentication.",
        read_flag, ToString::to_string;
    node: "1 to 200 bytes without control characters or slashes",
        "The name of this process among those that share a database.",
        read_name, Clone::clone;
    demo: "`true` or `false`",
        "Declares the queue `demo`, creates four schedules and works for them, to have something to look at.",
        read_flag, ToString::to_string;
    log: "`text` or `json`",
        "How logs are written.",
        read_log, show_log;
    log_filter: "`error`, `warn`, `info`, `debug`, `trace`, or a list such as `punctual_engine=debug,info`",
        "Which logs are written; requests are at `debug`.",
        |text: &str| read_filter(text), Clone::clone;
    shutdown: "a length of time from 0s to 10m",
        "How long a stop may take; what is not done by then is given up. Service managers kill after a while.",
        |text: &str| read_time(text, 0, 10 * MINUTE).map(SignedDuration::unsigned_abs), |time: &Duration| show_time(&SignedDuration::try_from(*time).unwrap_or(SignedDuration::MAX));
    worker_lease: "a length of time from 1s to 1d",
        "How long a worker may be silent, unless it or its run says otherwise. Then its runs go to another.",
        |text: &str| read_time(text, 1, DAY), show_time;
    shard_lease: "a length of time from 1s to 5m",
        "How long the right to drive a shard lasts without being renewed; the time to take over from a dead node.",
        |text: &str| read_time(text, 1, 5 * MINUTE), show_time;
    run_retention: "a length of time from 1m to 36500d",
        "How long ended runs are kept, so that tables stay small.",
        |text: &str| read_time(text, MINUTE, 36_500 * DAY), show_time;
    ledger_retention: "a length of time from 1m to 36500d",
        "How long verdicts of occurrences that did not start are kept.",
        |text: &str| read_time(text, MINUTE, 36_500 * DAY), show_time;
    runs_kept_max: "a number from 1, or `none`",
        "Ended runs that are kept at most, whatever their age; the oldest go.",
        read_bound, show_bound;
    ledger_kept_max: "a number from 1, or `none`",
        "Verdicts that are kept at most, whatever their age; the oldest go.",
        read_bound, show_bound;
    live_table_bytes_max: "a number of bytes from 1048576, or `none`",
        "How large a table of live work in PostgreSQL may become while somebody holds a snapshot open, which keeps all that changed since. A larger one is written anew: schedules and runs wait for a moment, and that snapshot then finds the table empty, as after a `TRUNCATE`. So leave it at `none` where backups read tables, as pg_dump does; physical ones are as good as ever.",
        |text: &str| read_bound(text).filter(|bound| bound.is_none_or(|bytes| bytes >= 1 << 20)), show_bound;
    allow_commands: "`true` or `false`",
        "Allows schedules to start commands on this machine, as the user of the server. Whoever may create schedules may then do anything.",
        read_flag, ToString::to_string;
    allow_private: "`true` or `false`",
        "Allows calls to private and loopback addresses; link-local ones, where clouds keep credentials, only by `allow_networks`. Without it nobody can make the server reach into its own network.",
        read_flag, ToString::to_string;
    allow_networks: "networks such as `10.0.0.0/8,192.168.1.7/32`, or nothing",
        "Networks that calls may go to although they are not public.",
        read_networks, show_networks;
    callback_url: "a URL such as https://punctual.example.com, or nothing",
        "Where callbacks are sent, as others reach this server. Nothing means the address that it listens on.",
        read_url, Clone::clone;
    otlp_endpoint: "a URL such as http://127.0.0.1:4318, or nothing",
        "Where traces go, one for each run: an OpenTelemetry collector that takes OTLP over plain HTTP.",
        read_plain_url, Clone::clone;
    temporal_upstream: "a URL such as http://127.0.0.1:7234 or https://temporal.example.com:7233, or nothing",
        "A Temporal cluster behind this server, over HTTP/2, plain or with TLS. Schedules are kept here and start workflows there; every other request of Temporal's clients and workers is forwarded.",
        read_upstream, Clone::clone;
    temporal_upstream_ca: "the path of a PEM file, or nothing",
        "The certificates to trust at an `https://` cluster. Nothing means those that the machine trusts.",
        read_path, Clone::clone;
    temporal_upstream_key_file: "the path of a file, or nothing",
        "A file with the API key for requests of our own to the cluster, read when the server starts. Those of clients are forwarded with their own.",
        read_path, Clone::clone;
    calls_max: "a number from 1 to 100000",
        "Outside calls in flight at a time, so that memory is bounded.",
        |text: &str| read_number(text, 1, 100_000), ToString::to_string;
    calls_per_target_max: "a number from 1 to 100000",
        "Outside calls to one target at a time, so that a dead target delays no other.",
        |text: &str| read_number(text, 1, 100_000), ToString::to_string;
    requests_max: "a number from 1 to 1000000",
        "Requests that may wait for an answer at a time; beyond it callers hear `busy`, so that memory is bounded.",
        |text: &str| read_number(text, 1, 1_000_000), ToString::to_string;
    connections_max: "a number from 1 to 1000000",
        "Connections at a time; beyond it new ones wait to be accepted.",
        |text: &str| read_number(text, 1, 1_000_000), ToString::to_string;
    watchers_max: "a number from 1 to 100000",
        "Watchers at a time; each is told every event of its schedules, so they cost.",
        |text: &str| read_number(text, 1, 100_000), ToString::to_string;
    log_tail_bytes_max: "a number of bytes from 0 to 1048576",
        "The last bytes of a run's log that are kept.",
        |text: &str| read_number(text, 0, 1_048_576), ToString::to_string;
}

fn read_database(text: &str) -> Option<String> {
    let path = text.strip_prefix("sqlite:").filter(|path| !path.is_empty());
    (text == "memory:" || path.is_some() || is_postgres(text)).then(|| text.to_owned())
}

fn read_listen(text: &str) -> Option<String> {
    (text.is_empty() || is_postgres(text)).then(|| text.to_owned())
}

fn is_postgres(text: &str) -> bool {
    ["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| text.len() > scheme.len() && text.starts_with(scheme))
}

/// An address without its password, for people and logs.
pub fn shown(database: &str) -> String {
    let Some((scheme, rest)) = database.split_once("://") else { return database.to_owned() };
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    let place = match place.rsplit_once('@') {
        Some((user, host)) => {
            let user =
                user.split_once(':').map_or_else(|| user.to_owned(), |(name, _)| format!("{name}:***"));
            format!("{user}@{host}")
        }
        None => place.to_owned(),
    };
    let hidden =
        |part: &str| if part.starts_with("password=") { "password=***".to_owned() } else { part.to_owned() };
    match query {
        Some(query) => {
            let query = query.split('&').map(hidden).collect::<Vec<_>>().join("&");
            format!("{scheme}://{place}?{query}")
        }
        None => format!("{scheme}://{place}"),
    }
}

fn read_durability(text: &str) -> Option<Synchronous> {
    match text {
        "full" => Some(Synchronous::Full),
        "normal" => Some(Synchronous::Normal),
        _ => None,
    }
}

fn show_durability(durability: &Synchronous) -> String {
    match durability {
        Synchronous::Full => "full".into(),
        Synchronous::Normal => "normal".into(),
    }
}

fn read_flag(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn read_name(text: &str) -> Option<String> {
    let fine = !text.is_empty() && text.len() <= 200;
    (fine && !text.chars().any(|letter| letter.is_control() || letter == '/')).then(|| text.to_owned())
}

fn read_log(text: &str) -> Option<LogFormat> {
    match text {
        "text" => Some(LogFormat::Text),
        "json" => Some(LogFormat::Json),
        _ => None,
    }
}

fn show_log(log: &LogFormat) -> String {
    match log {
        LogFormat::Text => "text".into(),
        LogFormat::Json => "json".into(),
    }
}

fn read_filter(text: &str) -> Option<String> {
    tracing_subscriber::EnvFilter::try_new(text).ok().map(|_| text.to_owned())
}

fn read_time(text: &str, least: i64, most: i64) -> Option<SignedDuration> {
    let time = punctual_spec::parse_duration(text).ok()?;
    (time >= SignedDuration::from_secs(least) && time <= SignedDuration::from_secs(most)).then_some(time)
}

fn show_time(time: &SignedDuration) -> String {
    let seconds = time.as_secs();
    match seconds {
        _ if time.subsec_millis() != 0 => format!("{}ms", time.as_millis()),
        0 => "0s".into(),
        _ if seconds % DAY == 0 => format!("{}d", seconds / DAY),
        _ if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        _ if seconds % 60 == 0 => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

fn read_bound(text: &str) -> Option<Option<u64>> {
    if text == "none" { Some(None) } else { text.parse().ok().filter(|bound| *bound > 0).map(Some) }
}

fn show_bound(bound: &Option<u64>) -> String {
    bound.map_or("none".into(), |bound| bound.to_string())
}

fn read_networks(text: &str) -> Option<Networks> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().ok()).collect::<Option<_>>().map(Networks)
}

fn show_networks(networks: &Networks) -> String {
    networks.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn read_url(text: &str) -> Option<String> {
    let fine = text.is_empty() || text.starts_with("http://") || text.starts_with("https://");
    (fine && !text.contains(|letter: char| letter.is_whitespace() || letter.is_control()))
        .then(|| text.to_owned())
}

fn read_plain_url(text: &str) -> Option<String> {
    read_url(text).filter(|url| !url.starts_with("https://"))
}

fn read_path(text: &str) -> Option<String> {
    (!text.contains(char::is_control)).then(|| text.to_owned())
}

/// A URL with a host and nothing behind it: paths are those of the requests that are forwarded.
fn read_upstream(text: &str) -> Option<String> {
    let url = read_url(text)?;
    let bare = |url: &str| {
        let uri: Option<axum::http::Uri> = url.parse().ok();
        uri.is_some_and(|uri| uri.authority().is_some() && uri.path() == "/" && uri.query().is_none())
    };
    (url.is_empty() || bare(&url)).then_some(url)
}

fn read_number(text: &str, least: usize, most: usize) -> Option<usize> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

/// The settings of a file, as text.
pub(super) fn read_file(path: &Path, text: &str) -> Result<BTreeMap<String, String>, ConfigError> {
    let file = path.display().to_string();
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| ConfigError::Syntax {
        file: file.clone(),
        message: said(text, &error),
    })?;
    let mut settings = BTreeMap::new();
    for (name, value) in table {
        let known = SETTINGS.iter().find(|known| known.name == name);
        let Some(known) = known else {
            let nearest = nearest(&name);
            return Err(ConfigError::Unknown { file, name, nearest });
        };
        let value = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Boolean(flag) => flag.to_string(),
            other @ (toml::Value::Float(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_)
            | toml::Value::Table(_)) => {
                let (found, expected) = (format!("{} value", other.type_str()), known.bound.to_owned());
                return Err(ConfigError::Value { name: known.name, place: file, found, expected });
            }
        };
        settings.insert(name, value);
    }
    Ok(settings)
}

fn said(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
    let place = line.map(|line| format!(" at line {line}")).unwrap_or_default();
    format!("{}{place}", error.message())
}

/// The setting that was probably meant: at most a third of its letters differ.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.replace('-', "_");
    let near = SETTINGS.iter().map(|known| (distance(known.name, &name), known.name)).min()?;
    (near.0 * 3 <= near.1.len().max(3)).then_some(near.1)
}

/// How many letters must be changed, added or removed.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (place, letter) in left.chars().enumerate() {
        let mut corner = row[0];
        row[0] = place + 1;
        for (column, other) in right.iter().enumerate() {
            let changed = corner + usize::from(letter != *other);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}
