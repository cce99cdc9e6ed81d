//! Copies the write-ahead log into the file beside the writer, so that no start waits for it.
//!
//! Left to itself SQLite does this inside a commit, and everybody who waits for that commit waits some tens of milliseconds
//! more. Here a thread with a connection of its own copies most of the log while the writer goes on. What was written
//! meanwhile is little; the writer copies that itself, between two transactions, and the log begins anew.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use rusqlite::Connection;

use crate::open::OpenError;
use crate::options::Options;
use crate::{open, spawn};

/// Pages, roughly, that are written before the log is copied: 80 MiB. Not often, since the end of each copy makes starts
/// wait for some milliseconds; not seldom, since the disk is busy with the copy for longer then.
const PAGES_BEFORE_COPY: usize = 20_000;

/// Pages that one transaction writes besides one for each row.
const PAGES_PER_GROUP: usize = 4;

/// Pages that a pass found new; the writer copies as many by itself in a few milliseconds.
const PAGES_LEFT_MAX: i64 = 100;

/// The log grows while it is copied; each pass leaves less.
const PASSES_MAX: usize = 6;

/// What the writer and the copying thread know of each other.
#[derive(Default)]
pub(crate) struct Shared {
    /// Pages written since the log was copied, roughly.
    pages: AtomicUsize,
    /// The log is copied but for a little: the writer should finish.
    nearly_done: AtomicBool,
    ends: AtomicBool,
}

/// The thread, as the writer sees it.
#[derive(Clone)]
pub(crate) struct Copier {
    shared: Arc<Shared>,
    thread: Option<Thread>,
}

impl Copier {
    /// Starts the thread.
    pub(crate) fn start(path: &Path, options: &Options) -> Result<(Copier, JoinHandle<()>), OpenError> {
        let connection = open::open_writer(path, options)?;
        let shared = Arc::new(Shared::default());
        let handle = {
            let shared = shared.clone();
            spawn("punctual-copy", move || run(&connection, &shared))
        };
        let system = |source| OpenError::System { path: path.into(), source };
        let handle = handle.map_err(system)?;
        Ok((Copier { shared, thread: Some(handle.thread().clone()) }, handle))
    }

    /// The writer has written; between two transactions it may have a little to copy.
    pub(crate) fn wrote(&self, connection: &Connection, rows: usize) {
        // Some requests say no more than that they may write anything.
        let pages = rows.min(PAGES_BEFORE_COPY) + PAGES_PER_GROUP;
        let before = self.shared.pages.fetch_add(pages, Ordering::Relaxed);
        if self.shared.nearly_done.load(Ordering::Acquire) {
            // If this fails the log is copied later.
            let _ = copy(connection);
            self.shared.pages.store(0, Ordering::Relaxed);
            self.shared.nearly_done.store(false, Ordering::Release);
        } else if before + pages >= PAGES_BEFORE_COPY
            && let Some(thread) = &self.thread
        {
            thread.unpark();
        }
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.shared.ends.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}

fn run(connection: &Connection, shared: &Shared) {
    while !shared.ends.load(Ordering::Acquire) {
        let due = shared.pages.load(Ordering::Relaxed) >= PAGES_BEFORE_COPY;
        if !due || shared.nearly_done.load(Ordering::Acquire) {
            std::thread::park_timeout(if due {
                Duration::from_millis(50)
            } else {
                Duration::from_secs(3_600)
            });
            continue;
        }
        let mut before = 0;
        for _ in 0..PASSES_MAX {
            match copy(connection) {
                Ok(copied) if copied - before > PAGES_LEFT_MAX => before = copied,
                // A disk that is full or a log that is in use: the writer tries it in its own time.
                Ok(_) | Err(_) => break,
            }
        }
        shared.nearly_done.store(true, Ordering::Release);
    }
}

/// Copies what can be copied without making anybody wait, and says how many pages of the log are copied by now.
fn copy(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |row| row.get(2))
}
