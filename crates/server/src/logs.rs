//! Structured logs, for people or for programs; a storm of equal lines is sampled.

mod sample;

use std::io::IsTerminal;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::config::{Config, LogFormat};
use sample::Sample;
pub(crate) use sample::left_out;

/// Starts writing logs to standard error, as configured. The first call of a process counts; later ones change nothing.
pub fn init_logs(config: &Config) {
    let filter = EnvFilter::try_new(&config.log_filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(std::io::stderr);
    let subscriber = tracing_subscriber::registry().with(filter);
    // Another part of the process may have begun to write logs already.
    let _ = match config.log {
        LogFormat::Text => subscriber.with(lines.with_filter(Sample::default())).try_init(),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true);
            subscriber.with(lines.with_filter(Sample::default())).try_init()
        }
    };
}
