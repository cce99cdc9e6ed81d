//! `punctual restore`: puts a copy in the place of a database that no server has.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use indicatif::HumanBytes;

use crate::answer::Answer;
use crate::database_file::{self, Lock, Part};
use crate::exit_code::ExitCode;
use crate::fault;
use crate::output::{TableOrJson, progress};

/// Put a copy in the place of a database; no server may be running on it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RestoreCommand {
    /// The copy, as `punctual backup` made it
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The database: `sqlite:<path>`, as serve is given it
    #[arg(
        short,
        long,
        value_name = "URL",
        env = "PUNCTUAL_DATABASE",
        default_value = "sqlite:punctual.db",
        hide_env_values = true
    )]
    database: String,

    /// Replace the database if there is one: what it knows is lost
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  punctual restore punctual-2026-03-27.db --database sqlite:/var/lib/punctual/punctual.db
  punctual restore latest.db --force

What happened since the copy was made is decided again when the server starts, by the catchup windows: \
what started since then starts again, with the same idempotency keys.";

/// Bytes that are copied at a time.
const PIECE_BYTES: usize = 1024 * 1024;

impl RestoreCommand {
    pub fn run(&self) -> Result<Answer> {
        let path = self.database.strip_prefix("sqlite:").filter(|path| !path.is_empty());
        let wrong = || {
            fault::new(
                format!("--database is not a file, found `{}`", self.database),
                "write it as sqlite:punctual.db",
            )
        };
        let path = Path::new(path.ok_or_else(wrong)?);
        database_file::ensure_ours(&self.file)?;
        ensure!(
            !is_same(&self.file, path),
            fault::new(
                format!("{} is the database itself", self.file.display()),
                "name a copy, and the database that it should become"
            )
        );
        let lock = Lock::take(path)?;
        ensure!(
            self.force || !lock.is_taken(),
            fault::ending(
                ExitCode::Conflict,
                format!("{} exists already", lock.path.display()),
                "--force replaces it: what it knows is lost, unless you copy it first"
            )
        );
        let copied = self.copy(&lock)?;
        let text = format!(
            "restored {} into {}; start the server with: punctual serve --database {}\n",
            HumanBytes(copied),
            lock.path.display(),
            self.database
        );
        Ok(Answer::new(fault::printable(&text), Vec::new()))
    }

    fn copy(&self, lock: &Lock) -> Result<u64> {
        let place = || self.file.display().to_string();
        let mut source = File::open(&self.file).with_context(place)?;
        let bar = progress::bytes(TableOrJson::Table, source.metadata().with_context(place)?.len());
        let mut part = Part::begin(&lock.path)?;
        let (mut piece, mut copied) = (vec![0; PIECE_BYTES], 0);
        loop {
            let count = source.read(&mut piece).with_context(place)?;
            if count == 0 {
                break;
            }
            part.file.write_all(&piece[..count]).with_context(|| part.path.display().to_string())?;
            copied += count as u64;
            bar.set_position(copied);
        }
        bar.finish_and_clear();
        part.finish(|path| {
            // The source may have changed while it was read.
            database_file::ensure_ours(path)?;
            lock.replace(path)
        })?;
        Ok(copied)
    }
}

fn is_same(left: &Path, right: &Path) -> bool {
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}
