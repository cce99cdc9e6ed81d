//! A copy of the file at one moment, while the store goes on.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use punctual_store::{Reply, StoreError};
use rusqlite::Connection;

use crate::Sqlite;

impl Sqlite {
    /// Copies everything that is durable at one moment into a new file, and says how many bytes that are. The copy is a
    /// database like any other: it can be opened as it is. An existing file is never touched.
    ///
    /// The writer goes on meanwhile, but the log cannot be cut until the copy is made, so it grows by what is written. The
    /// target is there when it is whole and durable, not before; dropping the store gives the copy up.
    ///
    /// ```
    /// # use punctual_store_sqlite::{Options, Sqlite};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let store = Sqlite::open(folder.path().join("punctual.db"), Options::default())?;
    /// let copy = folder.path().join("copy.db");
    /// store.backup(&copy).await?;
    /// assert!(store.backup(&copy).await.is_err(), "it exists");
    /// Sqlite::open(&copy, Options::default())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn backup(&self, to: &Path) -> Reply<'_, u64> {
        let to = to.to_owned();
        self.aside.work(move |connection, _| {
            let part = part_of(&to);
            let made = copy(connection, &to, &part);
            if made.is_err() {
                let _ = std::fs::remove_file(&part);
            }
            made
        })
    }
}

fn copy(connection: &Connection, to: &Path, part: &Path) -> Result<u64, StoreError> {
    let failed = |what: &dyn std::fmt::Display| StoreError::unavailable(format!("{}: {what}", to.display()));
    if to.try_exists().map_err(|error| failed(&error))? {
        return Err(failed(&"it exists, and is not touched"));
    }
    let name = part.to_str().ok_or_else(|| failed(&"its name is no text"))?;
    connection.execute("VACUUM INTO ?1", [name]).map_err(|error| failed(&error))?;
    let bytes = finish(to, part).map_err(|error| failed(&error))?;
    Ok(bytes)
}

/// Makes the copy durable, then gives it its name.
fn finish(to: &Path, part: &Path) -> std::io::Result<u64> {
    let file = File::open(part)?;
    file.sync_all()?;
    // A link is refused if somebody made the target meanwhile; where there are no links, a new name has to do.
    match std::fs::hard_link(part, to) {
        Ok(()) => std::fs::remove_file(part)?,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => std::fs::rename(part, to)?,
    }
    #[cfg(unix)]
    {
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
    }
    Ok(file.metadata()?.len())
}

/// The name of the copy while it is made; two that are made at once do not meet.
fn part_of(to: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COPIES: AtomicU64 = AtomicU64::new(0);
    let copy = COPIES.fetch_add(1, Ordering::Relaxed);
    let mut name: OsString = to.as_os_str().to_owned();
    name.push(format!(".{}-{copy}.part", std::process::id()));
    name.into()
}
