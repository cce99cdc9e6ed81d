//! Everything a contributor runs, in Rust and without further tools: `cargo xtask help` lists it.

use std::process::ExitCode;

use anyhow::{Result, bail};

mod bench;
mod codegen;
mod fuzz;
mod node;
mod openapi;
mod postgres;
mod run;
mod server;
mod temporal;
mod test;
mod tidy;
mod vectors;
mod workers;

const HELP: &str = "\
cargo xtask <command>

  test [step ...]    everything: tidy, format, lints, all tests, storms, docs, package, simulation and
                     fuzzing for a bounded time; or some steps of it, by the names that it prints
  tidy               house rules that a test can check: crate edges, words, sizes, links
  codegen [--check]  make the wire types in crates/api from proto/ anew, or say that they are stale
  bench [name [part ...]]
                     measurements (spec: side by side with peers; core: starts in memory; embedded: on SQLite;
                     queue: side by side with queues on PostgreSQL; cluster: on PostgreSQL, beside its peers, with
                     the goals at the end; temporal: side by side with the real Temporal)
  fuzz [target] [seconds]
                     fuzz one target or all, 20 seconds each unless said otherwise
  openapi            hostile requests from the published document against a real server (needs Python with pip)
  postgres [version ...]
                     the PostgreSQL store's tests on these versions, or on all from 13 to 18 (needs npm)
  temporal           Temporal's own clients do every schedule verb against a real server (needs Python and npm)
  workers            activity workers of Temporal's SDKs do a thousand runs of a real server (needs Python and npm)
  vectors            make the recorded answers of other schedulers anew (needs Python with pip)
  help               this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[&str]) -> Result<()> {
    match words {
        ["test", steps @ ..] => test::run(steps),
        ["tidy"] => tidy::run(),
        ["codegen"] => codegen::run(codegen::Mode::Write),
        ["codegen", "--check"] => codegen::run(codegen::Mode::Check),
        ["bench"] => bench::run(&["spec"]),
        ["bench", names @ ..] => bench::run(names),
        ["fuzz"] => fuzz::run(None, fuzz::SECONDS),
        ["fuzz", target] => fuzz::run(Some(target), fuzz::SECONDS),
        ["fuzz", target, seconds] => fuzz::run(Some(target), seconds.parse()?),
        ["openapi"] => openapi::run(),
        ["postgres", versions @ ..] => postgres::run_on(versions),
        ["temporal"] => temporal::run(),
        ["workers"] => workers::run(),
        ["vectors"] => vectors::run(),
        ["help" | "--help" | "-h"] => {
            eprint!("{HELP}");
            Ok(())
        }
        [] => bail!("a command is missing\n\n{HELP}"),
        other => bail!("`{}` is no command\n\n{HELP}", other.join(" ")),
    }
}
