//! The pages of `docs/reference` that are made from code. A test says when they are stale.

use std::fmt::Write;

use punctual_api::descriptors;
use punctual_api::routes::ROUTES;
use punctual_engine::Metrics;

use crate::config::SETTINGS;
use crate::metrics::SERVER;
use crate::status::{REASONS, code_word};

const MADE: &str = "<!-- Made by `UPDATE_EXPECT=1 cargo test -p punctual-server`; edit the code that it names instead. -->\n\n";

/// Every page: its name under `docs/reference`, and its text.
pub fn pages() -> [(&'static str, String); 4] {
    [
        ("errors.md", errors()),
        ("http.md", http()),
        ("metrics.md", metrics()),
        ("configuration.md", configuration()),
    ]
}

fn errors() -> String {
    let mut text = format!("# Errors\n\n{MADE}");
    text.push_str(
        "Every refusal has a gRPC code, an HTTP status, a stable reason for programs, a message for people that says what was \
         expected\nand what was found, and the field at fault where there is one. Nothing of a refused request is kept.\n\n\
         Over HTTP the body of every answer that is no success is a `punctual.v1.Error`:\n\n\
         ```json\n{ \"code\": \"aborted\", \"reason\": \"revision_mismatch\", \"message\": \"revision is 7, request expected 5\" }\n```\n\n\
         Over gRPC the same message is in the details of the status (`grpc-status-details-bin`, a `google.rpc.Status` with one\n\
         `punctual.v1.Error`), and the reason alone in the header `punctual-reason`. The table is in `crates/server/src/status.rs`.\n\n\
         | reason | gRPC code | HTTP |\n|---|---|--:|\n",
    );
    for reason in REASONS {
        let _ = writeln!(
            text,
            "| [`{0}`](#{0}) | `{1}` | {2} |",
            reason.word,
            code_word(reason.code),
            reason.http
        );
    }
    for reason in REASONS {
        let _ = write!(text, "\n## {}\n\n{}\n", reason.word, reason.help);
    }
    text
}

fn http() -> String {
    let mut text = format!("# HTTP\n\n{MADE}");
    text.push_str(
        "The same verbs as gRPC, as JSON, on the same port. `/openapi.json` describes every field. Names in braces are fields of the\n\
         request; the rest of a request is the body where the table says so, else the query. An answer that is no success is an\n\
         [error](errors.md). An empty namespace over gRPC means `default`; an empty `request_id` means a fresh one.\n\n\
         | method | path | rpc | rest in | what it does |\n|---|---|---|---|---|\n",
    );
    for route in ROUTES {
        let rpc = route.rpc.trim_start_matches("punctual.v1.");
        let comment = route.descriptor().map(|rpc| {
            let file = rpc.parent_service().parent_file();
            descriptors::comment(&file, rpc.path())
        });
        let comment = comment.unwrap_or_default().replace('\n', " ");
        let rest = if route.body { "body" } else { "query" };
        let _ =
            writeln!(text, "| {} | `{}` | `{rpc}` | {rest} | {comment} |", route.method.as_str(), route.path);
    }
    text.push_str(
        "\nThe two `watch` paths answer with server-sent events: the name of an event is its kind, its data a `punctual.v1.WatchEvent`.\n\n\
         Beside them: `/` (links), `/openapi.json`, `/healthz` (200 while the process lives), `/readyz` (200, or 503 with the reason),\n\
         `/metrics` ([metrics](metrics.md)), and `grpc.health.v1.Health` over gRPC.\n",
    );
    text
}

fn metrics() -> String {
    let mut text = format!("# Metrics\n\n{MADE}");
    text.push_str(
        "`/metrics` has these in the text form that Prometheus reads. Labels come from fixed lists; queues are at most 100.\n\n\
         | name | kind | what it says |\n|---|---|---|\n",
    );
    let engine = Metrics::default().render();
    let mut lines = engine.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|line| line.split_once(' ')) else {
            continue;
        };
        let kind = lines.peek().and_then(|line| line.rsplit(' ').next()).unwrap_or_default();
        let _ = writeln!(text, "| `{name}` | {kind} | {help} |");
    }
    for (name, kind, help) in SERVER {
        let _ = writeln!(text, "| `{name}` | {kind} | {help} |");
    }
    text
}

fn configuration() -> String {
    let mut text = format!("# Configuration\n\n{MADE}");
    text.push_str(
        "A setting comes from the command line, else from the environment, else from the file given with `--config`, else it has its\n\
         default. `punctual config` prints what is in force and from where. Unknown settings in the file are refused.\n\n\
         | setting | flag | variable | default | values | what it is for |\n|---|---|---|---|---|---|\n",
    );
    for known in SETTINGS {
        let (flag, variable, default) = (known.option(), known.variable(), known.default());
        let _ = writeln!(
            text,
            "| `{}` | `{flag}` | `{variable}` | `{default}` | {} | {} |",
            known.name, known.bound, known.help
        );
    }
    text.push_str(
        "\nIn the file, texts are quoted, numbers and booleans are not:\n\n\
         ```toml\nlisten = \"127.0.0.1:7233\"\ndatabase = \"sqlite:/var/lib/punctual/punctual.db\"\nrun_retention = \"30d\"\nwatchers_max = 200\n```\n",
    );
    text
}
