//! A peer in a Node process of its own, which is asked one question at a time.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::plan::{self, Cell, Contender, Latency, Load, Throughput};

/// One peer, warmed up. Ends with its process.
pub struct Peer {
    name: String,
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the script that measures it, with what `cargo xtask bench queue` has provided.
    pub fn start(name: &str) -> Result<Peer> {
        let provided = |variable: &str| {
            std::env::var(variable).with_context(|| format!("{variable} is not set, see the notes above"))
        };
        let (node, packages) = (provided("PUNCTUAL_BENCH_NODE")?, provided("PUNCTUAL_BENCH_NODE_PACKAGES")?);
        let mut child = Command::new(&node)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("queue/measure.mjs"))
            .args([name, &packages, &provided("PUNCTUAL_BENCH_POSTGRES")?])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {node}"))?;
        let questions = child.stdin.take().context("no pipe to Node")?;
        let answers = BufReader::new(child.stdout.take().context("no pipe from Node")?);
        let mut peer = Peer { name: name.to_owned(), child, questions, answers };
        let version = peer.answer()?;
        peer.name = format!("{name} {}", version["version"].as_str().unwrap_or_default());
        Ok(peer)
    }

    fn ask(&mut self, question: &Value) -> Result<Value> {
        writeln!(self.questions, "{question}")?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("its process has ended");
        }
        let answer: Value = serde_json::from_str(&line).with_context(|| format!("no JSON: {line}"))?;
        match answer["error"].as_str() {
            Some(error) => bail!("{error}"),
            None => Ok(answer),
        }
    }
}

impl Contender for Peer {
    fn name(&self) -> &str {
        &self.name
    }

    fn throughput(&mut self, cell: Cell) -> Result<Throughput> {
        let answer = self.ask(&json!({ "throughput": {
            "batch": cell.batch,
            "workers": cell.workers,
            "seconds": plan::CELL_LENGTH.as_secs_f64(),
            "runs_min": plan::CELL_RUNS_MIN,
            "under_way_max": plan::UNDER_WAY_MAX,
        }}))?;
        let runs = answer["runs"].as_u64().context("an answer without runs")?;
        Ok(Throughput { runs, seconds: number(&answer, "seconds")? })
    }

    fn latency(&mut self, load: Load) -> Result<Latency> {
        let answer = self.ask(&json!({ "latency": {
            "rate": load.rate,
            "seconds": plan::LOAD_LENGTH.as_secs_f64(),
            "batch_max": plan::LOAD_BATCH_MAX,
            "senders_max": plan::LOAD_SENDERS_MAX,
        }}))?;
        Ok(Latency { p50: number(&answer, "p50_ms")?, p99: number(&answer, "p99_ms")? })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It keeps nothing that matters: what is durable is in PostgreSQL.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn number(answer: &Value, name: &str) -> Result<f64> {
    answer[name].as_f64().with_context(|| format!("an answer without {name}: {answer}"))
}
