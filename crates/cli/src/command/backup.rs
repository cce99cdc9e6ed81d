//! `punctual backup`: a copy of a running server's database, as of one moment.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use indicatif::HumanBytes;
use jiff::Timestamp;
use punctual_api::v1;
use serde_json::json;
use tonic::Streaming;

use crate::answer::{self, Answer};
use crate::database_file::{self, Part};
use crate::exit_code::ExitCode;
use crate::fault;
use crate::output::{TableOrJson, json, progress};
use crate::session::{ClientArgs, Session};
use crate::signals;

/// Copy the database of a running server into a file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BackupCommand {
    #[command(flatten)]
    client: ClientArgs,

    /// Where to; it appears when it is complete
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  punctual backup punctual-2026-03-27.db
  punctual backup latest.db --force

The copy is of one moment, and the server works on meanwhile. It is written to FILE.part, checked, and renamed. \
What is in it may be secret: only you can read it. `punctual restore` brings it back.";

impl BackupCommand {
    pub async fn run(self, now: Timestamp) -> Result<Answer> {
        let session = &Session::open(&self.client, now).await?;
        let exists = |path: &Path| {
            let message = format!("{} exists already", path.display());
            fault::ending(ExitCode::Conflict, message, "--force replaces it")
        };
        ensure!(self.force || !self.file.exists(), exists(&self.file));
        let stop = signals::first();
        tokio::pin!(stop);
        let copied = tokio::select! {
            copied = copy(session, &self.file) => copied?,
            () = &mut stop => {
                answer::complain(&["stopped; there is no copy".to_owned()]);
                return Ok(Answer::silent(ExitCode::Failed));
            }
        };
        let text = match session.output {
            TableOrJson::Json => {
                json::pretty(&json!({ "file": self.file.display().to_string(), "bytes": copied }))
            }
            TableOrJson::Table => {
                let name = fault::printable(&self.file.display().to_string());
                format!("copied {} into {name}\n", HumanBytes(copied))
            }
        };
        Ok(Answer::new(text, Vec::new()))
    }
}

/// Writes the copy, and gives its size.
async fn copy(session: &Session, target: &Path) -> Result<u64> {
    // The server makes the copy before it answers, which takes as long as it takes.
    let mut service = session.client.server.clone();
    let pieces = service.backup(v1::BackupRequest {}).await;
    let mut pieces = pieces.map_err(|status| session.refusal(&status))?.into_inner();
    let mut part = Part::begin(target)?;
    let (mut written, mut total) = (0, None);
    let bar = progress::bytes(session.output, 0);
    while let Some(piece) = next(session, &mut pieces).await? {
        total = Some(piece.total_bytes);
        part.file.write_all(&piece.data).with_context(|| part.path.display().to_string())?;
        written += piece.data.len() as u64;
        bar.set_length(piece.total_bytes);
        bar.set_position(written);
    }
    bar.finish_and_clear();
    ensure!(
        total == Some(written),
        session.ended(&format!("the copy has {written} bytes, expected {}", total.unwrap_or(0)))
    );
    part.finish(|path| {
        database_file::ensure_ours(path)?;
        database_file::rename(path, target)
    })?;
    Ok(written)
}

async fn next(session: &Session, pieces: &mut Streaming<v1::BackupPiece>) -> Result<Option<v1::BackupPiece>> {
    match tokio::time::timeout(session.timeout, pieces.message()).await {
        Ok(piece) => piece.map_err(|status| session.refusal(&status)),
        Err(_) => Err(session.ended(&format!("nothing came for {:?}", session.timeout))),
    }
}
