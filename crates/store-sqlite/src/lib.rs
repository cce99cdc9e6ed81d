//! Punctual's embedded store: one SQLite file, one writer, many transitions in each durable write.
//!
//! A disk makes some thousands of writes durable in a second, however small they are. So requests that wait are written
//! together: one thread (`writer`) takes them all, writes them in one transaction, commits once, and answers each. Questions
//! go to other threads (`reader`), which see what was committed before they were asked.
//!
//! One process owns the file. What its writer remembers is therefore what is stored: epochs, the next key, the settings and
//! the depth of each queue are in memory, and a fence costs no read.

mod options;
mod open;
mod store;
mod writer;
mod checkpoint;
mod reader;
mod aside;
mod backup;
mod inspect;
mod export;
mod value;
mod fault;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::mpsc;

pub use export::Export;
pub use inspect::Inspection;
pub use open::OpenError;
pub use options::{Options, Synchronous};

use aside::Aside;
use checkpoint::Copier;
use open::Owned;
use reader::Question;
use writer::{Errand, Known, SharedCounts};

/// Requests that may wait for a thread; whoever asks more waits before asking.
const WAITING_MAX: usize = 4_096;

/// A store in one SQLite file. Dropping it finishes what was accepted, and waits for that.
pub struct Sqlite {
    shards: u32,
    counts: SharedCounts,
    errands: Option<mpsc::Sender<Box<dyn Errand>>>,
    questions: Option<mpsc::Sender<Question>>,
    readers: Vec<JoinHandle<()>>,
    writer: Option<JoinHandle<()>>,
    copier: Copier,
    copying: Option<JoinHandle<()>>,
    aside: Aside,
    // The last to go: until then nobody else may have the file.
    _owned: Owned,
}

impl Sqlite {
    /// Opens a file, or makes it.
    ///
    /// ```
    /// use punctual_store_sqlite::{OpenError, Options, Sqlite};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("punctual.db");
    /// let store = Sqlite::open(&path, Options::default())?;
    /// let second = Sqlite::open(&path, Options::default());
    /// assert!(matches!(second, Err(OpenError::InUse { pid: Some(_), .. })));
    /// # drop(store);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Sqlite, OpenError> {
        let owned = Owned::take(path.as_ref())?;
        let path = owned.path.clone();
        let database = |source| OpenError::Database { path: path.clone(), source };
        open::refuse_foreign(&path)?;
        let connection = open::open_writer(&path, &options)?;
        let counts = SharedCounts::default();
        writer::forget_holders(&connection).map_err(database)?;
        let known = Known::read(&connection, counts.clone()).map_err(database)?;
        let shards = read_shards(&connection).map_err(database)?;
        let readers: Vec<Connection> = (0..options.readers.max(1))
            .map(|_| open::open_reader(&path, &options).map_err(database))
            .collect::<Result<_, _>>()?;

        let (questions, asked) = mpsc::channel(WAITING_MAX);
        let asked = Arc::new(Mutex::new(asked));
        let readers = readers.into_iter().map(|connection| {
            let (path, options, asked) = (path.clone(), options.clone(), asked.clone());
            spawn("punctual-read", move || reader::run(connection, path, &options, &asked))
        });
        let readers = readers.collect::<Result<_, _>>();
        let (errands, accepted) = mpsc::channel(WAITING_MAX);
        let (copier, copying) = Copier::start(&path, &options)?;
        let writer = {
            let (path, options, copier) = (path.clone(), options.clone(), copier.clone());
            spawn("punctual-write", move || writer::run(connection, known, path, &options, &copier, accepted))
        };
        let system = |source| OpenError::System { path: path.clone(), source };
        Ok(Sqlite {
            shards,
            counts,
            errands: Some(errands),
            questions: Some(questions),
            readers: readers.map_err(system)?,
            writer: Some(writer.map_err(system)?),
            copier,
            copying: Some(copying),
            aside: Aside::new(&path, &options),
            _owned: owned,
        })
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        // Threads end when nobody can ask any more. The writer is last: the last connection copies the log into the file.
        self.aside.end();
        self.questions = None;
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        self.copier.end();
        if let Some(copying) = self.copying.take() {
            let _ = copying.join();
        }
        self.errands = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(work)
}

fn read_shards(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("SELECT value FROM meta WHERE name = 'shards'", (), |row| row.get(0))
}
