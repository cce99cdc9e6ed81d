//! What the server counts, and `/metrics` as a whole. Labels come from tables, so they are bounded.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use punctual_api::routes::ROUTES;
use tonic::Code;

use crate::app::App;
use crate::limits::METRIC_QUEUES_MAX;
use crate::logs;
use crate::status::code_word;
use crate::temporal::upstream::{FORWARDED, WAYS};

/// How a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Grpc,
    Http,
}

/// What the server counts beside the engine: name, kind, help.
pub(crate) const SERVER: &[(&str, &str, &str)] = &[
    ("punctual_server_requests_total", "counter", "Requests by protocol, rpc and gRPC code."),
    ("punctual_server_connections", "gauge", "Connections at this moment."),
    ("punctual_server_watchers", "gauge", "Watchers at this moment."),
    ("punctual_server_start_time_seconds", "gauge", "When the node was started, in seconds since 1970."),
    ("punctual_server_build_info", "gauge", "Always 1; the label has the version."),
    ("punctual_calls_in_flight", "gauge", "Outside calls that this node is making."),
    (
        "punctual_workflow_ends_total",
        "counter",
        "Ends of workflows at the Temporal cluster behind this server, by how they were heard of: callback, look, poll.",
    ),
    ("punctual_log_lines_left_out_total", "counter", "Log lines of a storm that were not written."),
    ("punctual_queue_runs", "gauge", "Runs by queue and state; at most 100 queues are shown."),
];

/// gRPC codes.
const CODES: usize = 17;

/// Finished requests by protocol, rpc and code. The rpcs are those of the routes, and those of Temporal that are served.
pub(crate) struct Requests {
    rpcs: Vec<&'static str>,
    counts: Vec<AtomicU64>,
}

impl Default for Requests {
    fn default() -> Requests {
        let own = ROUTES.iter().map(|route| route.rpc);
        let mut rpcs: Vec<&str> = own.chain(crate::temporal::RPCS.iter().copied()).collect();
        rpcs.push(FORWARDED);
        rpcs.sort_unstable();
        rpcs.dedup();
        let counts = (0..2 * rpcs.len() * CODES).map(|_| AtomicU64::new(0)).collect();
        Requests { rpcs, counts }
    }
}

impl Requests {
    /// Counts a request that was answered, and tells the log.
    pub(crate) fn finished(&self, protocol: Protocol, rpc: &str, code: Code, took: Duration) {
        tracing::debug!(?protocol, rpc, code = code_word(code), ?took, "request");
        let Ok(place) = self.rpcs.binary_search(&rpc) else { return };
        self.counts[self.place(protocol, place, code)].fetch_add(1, Relaxed);
    }

    fn place(&self, protocol: Protocol, rpc: usize, code: Code) -> usize {
        (protocol as usize * self.rpcs.len() + rpc) * CODES + code as usize
    }

    fn render(&self, text: &mut String) {
        let name = "punctual_server_requests_total";
        head(text, name);
        for (protocol, word) in [(Protocol::Grpc, "grpc"), (Protocol::Http, "http")] {
            for (place, rpc) in self.rpcs.iter().enumerate() {
                for code in (0..CODES as i32).map(Code::from_i32) {
                    let count = self.counts[self.place(protocol, place, code)].load(Relaxed);
                    if count > 0 {
                        let code = code_word(code);
                        let _ = writeln!(
                            text,
                            "{name}{{protocol=\"{word}\",rpc=\"{rpc}\",code=\"{code}\"}} {count}"
                        );
                    }
                }
            }
        }
    }
}

/// Everything, in the text form that Prometheus reads.
pub(crate) async fn render(app: &App) -> String {
    let mut text = app.engine.metrics().render();
    app.requests.render(&mut text);
    let connections = app.connections_max - app.connections.available_permits();
    let watchers = app.watchers_max - app.watchers.available_permits();
    let version = concat!("{version=\"", env!("CARGO_PKG_VERSION"), "\"}");
    let gauges = [
        ("punctual_server_connections", "", connections as i64),
        ("punctual_server_watchers", "", watchers as i64),
        ("punctual_calls_in_flight", "", app.calls.count.load(Relaxed) as i64),
        ("punctual_log_lines_left_out_total", "", logs::left_out() as i64),
        ("punctual_server_start_time_seconds", "", app.started_at.as_second()),
        ("punctual_server_build_info", version, 1),
    ];
    for (name, labels, value) in gauges {
        head(&mut text, name);
        let _ = writeln!(text, "{name}{labels} {value}");
    }
    workflow_ends(app, &mut text);
    queues(app, &mut text).await;
    text
}

fn workflow_ends(app: &App, text: &mut String) {
    let Some(upstream) = &app.upstream else { return };
    let name = "punctual_workflow_ends_total";
    head(text, name);
    for (way, word) in WAYS {
        let _ = writeln!(text, "{name}{{by=\"{word}\"}} {}", upstream.callbacks.counted(way));
    }
}

async fn queues(app: &App, text: &mut String) {
    let name = "punctual_queue_runs";
    head(text, name);
    let depths = match app.engine.queue_depths().await {
        Ok(depths) => depths,
        Err(error) => {
            tracing::warn!(%error, "the metrics lack the queues");
            return;
        }
    };
    for (queue, depth) in depths.into_iter().take(METRIC_QUEUES_MAX) {
        let (namespace, queue) = (escaped(&queue.made.namespace), escaped(&queue.made.name));
        let states =
            [("queued", depth.ready), ("backing_off", depth.backing_off), ("running", depth.running)];
        for (state, count) in states {
            let labels = format!("namespace=\"{namespace}\",queue=\"{queue}\",state=\"{state}\"");
            let _ = writeln!(text, "{name}{{{labels}}} {count}");
        }
    }
}

fn head(text: &mut String, name: &str) {
    let Some((_, kind, help)) = SERVER.iter().find(|(known, _, _)| *known == name) else { return };
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
