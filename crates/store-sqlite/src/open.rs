//! Opening a file: one owner, ours and no other, at the version that this release knows.

use std::cmp::Ordering;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use thiserror::Error;

use crate::options::{Options, Synchronous};

/// "Pnct": tells tools, and us, whose file it is.
const APPLICATION_ID: i32 = 0x506e_6374;

/// Each brings a file from the version before to its own, the first to 1.
const MIGRATIONS: [&str; 3] = [
    include_str!("../migrations/0001_initial.sql"),
    include_str!("../migrations/0002_limits.sql"),
    include_str!("../migrations/0003_documents.sql"),
];

/// Pages of the log after which a commit copies it into the file: 256 MiB. It only comes to this when the thread whose work
/// that is cannot keep up.
const CHECKPOINT_PAGES: u32 = 65_536;

/// Why a file was not opened. It was not touched.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process has it, or another part of this one.
    #[error("{} is in use by {}", path.display(), holder(*pid))]
    InUse {
        /// The file.
        path: PathBuf,
        /// The process that has it, if it said so.
        pid: Option<u32>,
    },
    /// It is something else.
    #[error("{} is no Punctual database: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        reason: String,
    },
    /// A later release has written it.
    #[error("{} has version {found}, this release knows {known}: use the release that wrote it", path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The latest version that this release knows.
        known: u32,
    },
    /// An earlier release has written it, and whoever only reads it does not upgrade it.
    #[error("{} has version {found}, expected {known}: start a server of this release on it once, which upgrades it", path.display())]
    TooOld {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that this release writes.
        known: u32,
    },
    /// It is ours, and not whole.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The system did not let us.
    #[error("{}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// The database did not let us.
    #[error("{}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".into(), |pid| format!("process {pid}"))
}

/// The right to use a file. The system takes it back when the process ends, however it ends.
pub(crate) struct Owned {
    /// The file's one name, so that a link to it meets the same lock.
    pub(crate) path: PathBuf,
    _lock: File,
}

impl Owned {
    /// Takes the file, if nobody has it.
    pub(crate) fn take(path: &Path) -> Result<Owned, OpenError> {
        let path = true_name(path).map_err(|source| OpenError::System { path: path.into(), source })?;
        let system = |source| OpenError::System { path: path.clone(), source };
        let mut lock_name = path.clone().into_os_string();
        lock_name.push(".lock");
        let mut lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(lock_name)
            .map_err(system)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = lock.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(OpenError::InUse { path, pid });
            }
            Err(TryLockError::Error(source)) => return Err(system(source)),
        }
        // Only a help for people: the lock is what counts, so a full disk must not keep us from starting.
        let _ = lock.set_len(0).and_then(|()| lock.rewind());
        let _ = writeln!(lock, "{}", std::process::id());
        Ok(Owned { path, _lock: lock })
    }
}

fn true_name(path: &Path) -> std::io::Result<PathBuf> {
    if path.exists() {
        return path.canonicalize();
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidFilename)?;
    Ok(folder.canonicalize()?.join(name))
}

/// Looks at the file without opening it as a database, which could change it.
pub(crate) fn refuse_foreign(path: &Path) -> Result<(), OpenError> {
    let system = |source| OpenError::System { path: path.into(), source };
    let foreign = |reason: String| OpenError::Foreign { path: path.into(), reason };
    let mut header = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(100).read_to_end(&mut header).map_err(system)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(system(error)),
    };
    // A file that was being made when the process died is empty, or its journal makes it so.
    if header.is_empty() || journal(path).exists() {
        return Ok(());
    }
    if header.len() < 100 || !header.starts_with(b"SQLite format 3\0") {
        return Err(foreign("it is no SQLite file".into()));
    }
    // The id is set before the log is used, so the file itself always has it.
    match i32::from_be_bytes([header[68], header[69], header[70], header[71]]) {
        APPLICATION_ID => Ok(()),
        0 => Err(foreign("it belongs to an application without an id".into())),
        other => Err(foreign(format!("it belongs to the application {other:#x}"))),
    }
}

fn journal(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-journal");
    name.into()
}

/// Opens the connection that writes, and makes or upgrades the tables.
pub(crate) fn open_writer(path: &Path, options: &Options) -> Result<Connection, OpenError> {
    let database = |source| OpenError::Database { path: path.into(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let mut connection = Connection::open_with_flags(path, flags).map_err(database)?;
    let found: u32 = number(&connection, "user_version").map_err(database)?;
    let known = MIGRATIONS.len() as u32;
    if found > known {
        return Err(OpenError::TooNew { path: path.into(), found, known });
    }
    let pages: u32 = number(&connection, "page_count").map_err(database)?;
    if pages > 0 && number::<i32>(&connection, "application_id").map_err(database)? != APPLICATION_ID {
        return Err(OpenError::Foreign { path: path.into(), reason: "its application id is another".into() });
    }
    migrate(&mut connection, found, options).map_err(database)?;
    prepare_writer(&connection, options).map_err(database)?;
    Ok(connection)
}

/// Refuses a file that is not just as this release writes it.
pub(crate) fn refuse_other_versions(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let found = number(connection, "user_version");
    let found: u32 = found.map_err(|source| OpenError::Database { path: path.into(), source })?;
    let known = MIGRATIONS.len() as u32;
    match found.cmp(&known) {
        Ordering::Greater => Err(OpenError::TooNew { path: path.into(), found, known }),
        Ordering::Less if found == 0 => {
            Err(OpenError::Foreign { path: path.into(), reason: "there is nothing in it".into() })
        }
        Ordering::Less => Err(OpenError::TooOld { path: path.into(), found, known }),
        Ordering::Equal => Ok(()),
    }
}

/// Opens a connection that only reads.
pub(crate) fn open_reader(path: &Path, options: &Options) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    keep_plans(&connection)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "cache_size", kibibytes(options.reader_cache_bytes))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Nobody else writes; a reader may have to wait while the log is recovered or cut.
const BUSY: std::time::Duration = std::time::Duration::from_secs(10);

fn migrate(connection: &mut Connection, found: u32, options: &Options) -> rusqlite::Result<()> {
    if found as usize == MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    for migration in &MIGRATIONS[found as usize..] {
        transaction.execute_batch(migration)?;
    }
    if found == 0 {
        let mut insert = transaction.prepare("INSERT INTO meta (name, value) VALUES (?1, ?2)")?;
        insert.execute(("next_key", 1))?;
        insert.execute(("shards", options.shards.max(1)))?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as u32)?;
    transaction.commit()
}

fn prepare_writer(connection: &Connection, options: &Options) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    keep_plans(connection)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = match options.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", kibibytes(options.writer_cache_bytes))?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", i64::from(CHECKPOINT_PAGES) * 4_096 * 3 / 2)?;
    Ok(())
}

/// The database takes kibibytes as a negative number of pages.
fn kibibytes(bytes: usize) -> i64 {
    -i64::try_from(bytes / 1_024).unwrap_or(i64::MAX)
}

/// A plan is made once for each statement. Without this SQLite plans many of them anew for every set of values, which
/// takes longer than the questions themselves.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(|_| ())
}

fn number<T: rusqlite::types::FromSql>(connection: &Connection, pragma: &str) -> rusqlite::Result<T> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}
