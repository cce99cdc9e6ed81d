//! What an examination says of the file that the database is.

use std::sync::Arc;

use punctual_api::v1;
use punctual_api::v1::health::Word;
use punctual_store_sqlite::{Inspection, Sqlite};

/// A share of free pages above which a copy would be much smaller.
const FREE_SHARE_MAX: f64 = 0.5;

/// Bytes of a file below which nobody cares about free pages.
const FILE_BYTES_SMALL: u64 = 256 * 1024 * 1024;

pub(crate) async fn file(file: &Arc<Sqlite>) -> Vec<v1::Finding> {
    match file.inspect().await {
        Ok(found) => vec![whole(&found), counts(&found), size(&found), dead_letters(&found)],
        Err(error) => {
            tracing::warn!(%error, "the file could not be examined");
            let message = "the file could not be read; the log says why".to_owned();
            vec![finding("file", Word::Broken, message, "look at the log and at the disk")]
        }
    }
}

fn whole(found: &Inspection) -> v1::Finding {
    match found.faults.first() {
        None => finding("file", Word::Fine, "the file is whole".into(), ""),
        Some(first) => {
            let message =
                format!("the file is damaged in {} places; one of them: {first}", found.faults.len());
            finding("file", Word::Broken, message, "stop the server, keep the file, restore the last copy")
        }
    }
}

fn counts(found: &Inspection) -> v1::Finding {
    let problems = found.mismatches.len() + found.orphans.len();
    if problems == 0 {
        let live = found.ready + found.backing_off + found.running;
        let message = format!(
            "{} schedules, {live} live and {} ended runs, {} verdicts; counts and rows agree",
            found.schedules, found.closed, found.ledger
        );
        return finding("rows", Word::Fine, message, "");
    }
    let first = found.mismatches.first().cloned();
    let first =
        first.or_else(|| found.orphans.first().map(|run| format!("run {run} has no schedule any more")));
    let message =
        format!("{problems} things do not fit together; one of them: {}", first.unwrap_or_default());
    finding("rows", Word::Warning, message, "restart the server: it counts anew; tell the makers of Punctual")
}

fn size(found: &Inspection) -> v1::Finding {
    let share = found.free_pages as f64 / found.pages.max(1) as f64;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let message = format!(
        "{:.1} MB, {:.0} % of it free, and a log of {:.1} MB",
        megabytes(found.file_bytes),
        share * 100.0,
        megabytes(found.log_bytes)
    );
    if share > FREE_SHARE_MAX && found.file_bytes > FILE_BYTES_SMALL {
        return finding(
            "size",
            Word::Warning,
            message,
            "free pages are used again; a backup and restore shrinks the file",
        );
    }
    finding("size", Word::Fine, message, "")
}

fn dead_letters(found: &Inspection) -> v1::Finding {
    match found.dead_letters {
        0 => finding("dead_letters", Word::Fine, "no run has failed for good".into(), ""),
        count => finding(
            "dead_letters",
            Word::Warning,
            format!("{count} runs have failed for good, and nobody has dealt with them"),
            "punctual run list --dead-letters, then run retry or queue purge --dead-letters",
        ),
    }
}

/// One finding.
pub(crate) fn finding(check: &str, health: Word, message: String, advice: &str) -> v1::Finding {
    let advice = advice.to_owned();
    v1::Finding { check: check.into(), health: health.into(), message, advice, mended_count: 0 }
}
