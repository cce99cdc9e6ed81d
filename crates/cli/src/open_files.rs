//! How many files and connections a server may have open: shells commonly give 1,024, which is less than its settings allow.

use punctual_server::Config;

/// Files beside connections and calls: the database, the log, what the runtime needs.
const OTHER_FILES: u64 = 256;

/// Raises the limit to what the settings can need, as far as the system lets everybody. Says what to do if that is not enough
/// for calls: they would fail, while connections only wait.
#[cfg(unix)]
pub fn raise(config: &Config) -> Option<String> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let for_calls = calls(config) + OTHER_FILES;
    let needed = for_calls + config.connections_max as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let found = current.filter(|current| *current < needed)?;
    let wanted = maximum.map_or(needed, |maximum| maximum.min(needed));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok();
    let allowed = if raised { wanted } else { found };
    (allowed < for_calls).then(|| {
        format!(
            "note: {allowed} files may be open, and calls_max {} can need {for_calls}: raise the limit \
             (ulimit -n, LimitNOFILE=) or lower --calls-max",
            config.calls_max
        )
    })
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub fn raise(_config: &Config) -> Option<String> {
    None
}

/// A request has a connection, a command has three pipes.
#[cfg(unix)]
fn calls(config: &Config) -> u64 {
    let each = if config.allow_commands { 3 } else { 1 };
    config.calls_max as u64 * each
}
