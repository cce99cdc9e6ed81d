//! A clock that is wrong for one process, by libfaketime.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::Setting;

/// Makes the clock of a process run ahead; what counts time without a date goes on as it is.
pub fn put_ahead(setting: &mut Setting, seconds: u64) {
    let library = library();
    let told = [
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME", format!("+{seconds}s")),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
    ];
    setting.environment.extend(told.map(|(name, value)| (name.to_owned(), value)));
}

/// Installed where it is missing and we may.
fn library() -> PathBuf {
    if let Some(found) = find() {
        return found;
    }
    eprintln!("libfaketime is missing, installing it");
    let install = Command::new("apt-get")
        .args(["install", "-y", "-qq", "libfaketime"])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status();
    let found = find().filter(|_| install.is_ok_and(|status| status.success()));
    found.expect(
        "libfaketime is needed and cannot be installed here: install the package libfaketime and try again",
    )
}

fn find() -> Option<PathBuf> {
    let places = ["x86_64-linux-gnu/faketime", "aarch64-linux-gnu/faketime", "faketime"];
    let mut libraries = places.iter().map(|place| Path::new("/usr/lib").join(place).join("libfaketime.so.1"));
    libraries.find(|library| library.exists())
}

/// How far the times in the log of a process are ahead of the clock here, in seconds.
pub fn ahead(log: &Path) -> i64 {
    let text = std::fs::read_to_string(log).unwrap();
    let time = text.lines().rev().find_map(|line| line.split_whitespace().next()?.parse().ok());
    let time: jiff::Timestamp = time.expect("a line of the log begins with a time");
    time.as_second() - jiff::Timestamp::now().as_second()
}
