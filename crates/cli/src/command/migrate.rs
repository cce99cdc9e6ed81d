//! `punctual migrate`: moves a database from a file to PostgreSQL, while no server has either of them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use punctual_store_postgres::{Begun, ImportError, Imported, Options, Phase, Progress, import};
use punctual_store_sqlite::{Export, OpenError};
use serde_json::json;

use crate::answer::{self, Answer};
use crate::exit_code::ExitCode;
use crate::fault;
use crate::output::{TableOrJson, json, progress, table};
use crate::signals;

/// Move a database from SQLite to PostgreSQL; no server may be running on either of them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MigrateCommand {
    /// The database that moves: `sqlite:<path>`; it is only read
    #[arg(value_name = "SOURCE")]
    source: String,

    /// Where to: `postgres://<user>@<host>/<database>`, a database with nothing of ours in it
    #[arg(value_name = "TARGET", env = "PUNCTUAL_DATABASE", hide_env_values = true)]
    target: String,

    /// Remove what an earlier try has moved, and begin from nothing
    #[arg(long)]
    restart: bool,

    /// How many parts the schedules are spread over, if the target is new; at least as many as there will ever be nodes
    #[arg(long, value_name = "COUNT", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    shards: u32,

    /// The format of the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "table")]
    output: TableOrJson,
}

const EXAMPLES: &str = "\
Examples:
  punctual migrate sqlite:/var/lib/punctual/punctual.db postgres://punctual@db.internal/punctual
  PUNCTUAL_DATABASE=postgres://punctual:secret@db.internal/punctual punctual migrate sqlite:punctual.db
  punctual migrate sqlite:punctual.db postgres://punctual@db.internal/punctual --restart

Schedules, their state and history, queues and runs move with the keys that they have. When it is interrupted, the same command \
goes on where it was; until it is finished no server starts on the target. At the end every row of both sides is compared. \
What comes due meanwhile is caught up by the server that starts next.";

impl MigrateCommand {
    pub async fn run(self) -> Result<Answer> {
        let path = self.path()?;
        if !is_postgres(&self.target) {
            return Err(fault::new(
                format!("TARGET is no PostgreSQL database, found `{}`", punctual_server::shown(&self.target)),
                "write it as postgres://user@host/database",
            ));
        }
        let opened = tokio::task::spawn_blocking(move || Export::open(path)).await?;
        let source = Arc::new(Mutex::new(opened.map_err(|error| not_opened(&error))?));
        let options = Options { shards: self.shards, ..Options::new(&self.target) };
        let bar = progress::with_message(self.output, 0);
        let tell = |Progress { phase, table, rows, total }| {
            let phase = match phase {
                Phase::Moving => "moving",
                Phase::Checking => "comparing",
            };
            bar.set_length(total);
            bar.set_position(rows);
            bar.set_message(format!("{phase} {table}"));
        };
        let stop = signals::first();
        tokio::pin!(stop);
        let moved = tokio::select! {
            moved = import(options, source, self.restart, tell) => moved,
            () = &mut stop => {
                bar.finish_and_clear();
                let said = "stopped; the same command goes on from here, and until it is finished no server starts on the target";
                answer::complain(&[said.to_owned()]);
                return Ok(Answer::silent(ExitCode::Failed));
            }
        };
        bar.finish_and_clear();
        let moved = moved.map_err(|error| not_moved(&error))?;
        Ok(Answer::new(self.tell(&moved), Vec::new()))
    }

    fn path(&self) -> Result<PathBuf> {
        let path = self.source.strip_prefix("sqlite:").filter(|path| !path.is_empty());
        path.map(|path| Path::new(path).to_owned()).ok_or_else(|| {
            let found = punctual_server::shown(&self.source);
            fault::new(format!("SOURCE is not a file, found `{found}`"), "write it as sqlite:punctual.db")
        })
    }

    fn tell(&self, moved: &Imported) -> String {
        let target = punctual_server::shown(&self.target);
        let rows: u64 = moved.tables.iter().map(|table| table.rows).sum();
        let (resumed_rows, is_finished) = match moved.begun {
            Begun::New => (0, false),
            Begun::Resumed(rows) => (rows, false),
            Begun::Finished => (0, true),
        };
        if let TableOrJson::Json = self.output {
            let tables = moved.tables.iter().map(|moved| {
                json!({ "table": moved.table, "rows": moved.rows, "seconds": moved.elapsed.as_secs_f64() })
            });
            return json::pretty(&json!({
                "source": self.source,
                "target": target,
                "rows": rows,
                "resumed_rows": resumed_rows,
                "was_finished": is_finished,
                "checked_seconds": moved.checked_in.as_secs_f64(),
                "tables": tables.collect::<Vec<_>>(),
            }));
        }
        let source = &self.source;
        let mut text = if is_finished {
            format!("{source} was moved to {target} before; nothing was done\n")
        } else {
            let rows_of_tables = moved
                .tables
                .iter()
                .map(|moved| vec![moved.table.to_owned(), moved.rows.to_string(), seconds(moved.elapsed)]);
            let resumed = match resumed_rows {
                0 => String::new(),
                rows => format!(" ({rows} of them earlier)"),
            };
            let checked = seconds(moved.checked_in);
            table::list(["table", "rows", "seconds"], rows_of_tables)
                + &format!(
                    "\nmoved {rows} rows{resumed} from {source} to {target}; compared every one in {checked} s\n"
                )
        };
        text.push_str(&format!("start the server with: punctual serve --database {target}\n"));
        text.push_str("the file was not changed: keep it as a backup, and start no server on it, which would do everything twice\n");
        fault::printable(&text)
    }
}

fn is_postgres(target: &str) -> bool {
    ["postgres://", "postgresql://"].iter().any(|scheme| target.starts_with(scheme))
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.1}", elapsed.as_secs_f64())
}

fn not_opened(error: &OpenError) -> anyhow::Error {
    let (exit_code, help) = match error {
        OpenError::InUse { .. } => (ExitCode::Database, "stop the server first"),
        OpenError::Damaged { .. } => (ExitCode::Database, "restore a copy, and move that"),
        OpenError::Database { .. } => (
            ExitCode::Database,
            "if a server was killed while it had the file, start one on it and stop it in order, then try again",
        ),
        OpenError::Foreign { .. } | OpenError::System { .. } => {
            (ExitCode::Fault, "name the file that serve was given")
        }
        // They say it themselves.
        OpenError::TooNew { .. } | OpenError::TooOld { .. } => (ExitCode::Fault, ""),
    };
    let text = error.to_string();
    // The system's number says nothing to people.
    fault::ending(exit_code, text.split(" (os error").next().unwrap_or(&text), help)
}

fn not_moved(error: &ImportError) -> anyhow::Error {
    let (exit_code, help) = match error {
        ImportError::Target(_) => (
            ExitCode::Database,
            "see that the target answers and that its user may make the schema punctual; then the same command goes on",
        ),
        ImportError::Source(_) => (ExitCode::Database, "restore a copy, and move that with --restart"),
        ImportError::InUse { .. } => (
            ExitCode::Database,
            "stop all servers on the target; one that was killed is forgotten after a while",
        ),
        ImportError::NotEmpty { .. } => (
            ExitCode::Conflict,
            "name a new database; if nothing of what is in this one is needed, `DROP SCHEMA punctual CASCADE` removes it",
        ),
        ImportError::OtherSource => {
            (ExitCode::Conflict, "--restart removes what was moved, and begins from nothing")
        }
        ImportError::Raced => (ExitCode::Conflict, "end the other one, or wait for it"),
        ImportError::Mismatch { .. } => (
            ExitCode::Failed,
            "no server starts on the target; --restart moves everything again. If it happens again, please report it",
        ),
    };
    fault::ending(exit_code, error.to_string(), help)
}
