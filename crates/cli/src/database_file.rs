//! A database as a file: whose it is, whether it is whole, who has it, and how another takes its place.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::exit_code::ExitCode;
use crate::fault;

/// What every SQLite file begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// "Pnct", as `crates/store-sqlite/src/open.rs` sets it; the round trip of the tests fails when they differ.
const APPLICATION_ID: u32 = 0x506e_6374;

/// Bytes of the header.
const HEADER_BYTES: usize = 100;

/// Files that belong to a database and must not meet another one: they would be read as a part of it.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Refuses a file that is no whole database of Punctual.
pub fn ensure_ours(path: &Path) -> Result<()> {
    let place = || path.display().to_string();
    let file = File::open(path).with_context(place)?;
    let bytes = file.metadata().with_context(place)?.len();
    let mut header = Vec::new();
    file.take(HEADER_BYTES as u64).read_to_end(&mut header).with_context(place)?;
    let foreign = |reason: &str| {
        fault::new(
            format!("{} is no copy of a Punctual database: {reason}", path.display()),
            "`punctual backup` makes one",
        )
    };
    ensure!(
        header.len() == HEADER_BYTES && header.starts_with(MAGIC),
        foreign("it does not begin like an SQLite file")
    );
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let found = number(68);
    ensure!(
        found == APPLICATION_ID,
        foreign(&format!("its application id is {found:#x}, expected {APPLICATION_ID:#x}"))
    );
    // A page of 64 KiB does not fit into two bytes and is written as 1.
    let page_bytes = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    // The count holds only if it was written together with the change counter; SQLite itself reads it the same way.
    let pages = if number(24) == number(92) { u64::from(number(28)) } else { 0 };
    ensure!(
        page_bytes > 0 && bytes % page_bytes == 0 && bytes >= pages * page_bytes,
        foreign(&format!("it has {bytes} bytes, expected {pages} pages of {page_bytes}"))
    );
    Ok(())
}

/// The right to replace a database: while this is there, no server opens it.
#[derive(Debug)]
pub struct Lock {
    /// The file's one name, as the server takes it.
    pub path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the lock that a server would take.
    pub fn take(path: &Path) -> Result<Lock> {
        let path = true_name(path).with_context(|| path.display().to_string())?;
        let lock_path = beside(&path, ".lock");
        let place = || lock_path.display().to_string();
        let options = File::options().read(true).write(true).create(true).truncate(false).open(&lock_path);
        let mut file = options.with_context(place)?;
        match file.try_lock() {
            Ok(()) => {
                // Only a help for people: the lock is what counts.
                let _ = file.set_len(0).and_then(|()| file.rewind());
                let _ = writeln!(file, "{}", std::process::id());
                Ok(Lock { path, _file: file })
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse::<u32>().ok());
                let holder = pid.map_or("another process".to_owned(), |pid| format!("process {pid}"));
                Err(fault::ending(
                    ExitCode::Database,
                    format!("{} is in use by {holder}", path.display()),
                    "stop the server first",
                ))
            }
            Err(TryLockError::Error(error)) => Err(error).with_context(place),
        }
    }

    /// Whether there is a database, or what is left of one.
    pub fn is_taken(&self) -> bool {
        self.path.exists()
    }

    /// Puts a finished file in the place of the database.
    pub fn replace(&self, part: &Path) -> Result<()> {
        adopt(part, &self.path)?;
        // First what belongs to the old one: a new file beside an old log would be broken, an old file without it is only
        // older, and about to go.
        for companion in COMPANIONS {
            let path = beside(&self.path, companion);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| path.display().to_string());
                }
                Ok(()) | Err(_) => {}
            }
        }
        rename(part, &self.path)
    }
}

fn true_name(path: &Path) -> io::Result<PathBuf> {
    if path.exists() {
        return path.canonicalize();
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    Ok(folder(path).canonicalize()?.join(name))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path with something after its name.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Gives a file its name for good: after this a power cut does not take it back.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).with_context(|| to.display().to_string())?;
    #[cfg(unix)]
    File::open(folder(to)).and_then(|folder| folder.sync_all()).with_context(|| to.display().to_string())?;
    Ok(())
}

/// Makes a file belong to who had the one before, or has the folder: an operator restores what a service will open.
#[cfg(unix)]
fn adopt(part: &Path, target: &Path) -> Result<()> {
    use std::os::unix::fs::{MetadataExt, chown};
    let place = || part.display().to_string();
    let own = fs::metadata(part).with_context(place)?;
    let before = fs::metadata(target).ok();
    if let Some(before) = &before {
        fs::set_permissions(part, before.permissions()).with_context(place)?;
    }
    let model = before.map_or_else(|| fs::metadata(folder(target)), Ok).with_context(place)?;
    if (model.uid(), model.gid()) != (own.uid(), own.gid()) {
        // Only root can give files away; anybody else keeps them.
        let _ = chown(part, Some(model.uid()), Some(model.gid()));
    }
    Ok(())
}

#[cfg(not(unix))]
fn adopt(_part: &Path, _target: &Path) -> Result<()> {
    Ok(())
}

/// A file that is being written; what is not finished is removed.
#[derive(Debug)]
pub struct Part {
    pub path: PathBuf,
    pub file: File,
    finished: bool,
}

impl Part {
    /// Begins beside the target. What a database knows may be secret, so nobody else may read it.
    pub fn begin(target: &Path) -> Result<Part> {
        let path = beside(target, ".part");
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).with_context(|| path.display().to_string())?;
        Ok(Part { path, file, finished: false })
    }

    /// Makes what was written durable, then lets it be named.
    pub fn finish(mut self, name: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        self.file.sync_all().with_context(|| self.path.display().to_string())?;
        name(&self.path)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_file(&self.path);
        }
    }
}
