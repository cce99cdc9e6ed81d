//! The file: one owner, ours and no other, of a version that is known.

use std::path::Path;

use punctual_store::Store;
use punctual_store_sqlite::{OpenError, Options, Sqlite};
use rusqlite::Connection;

fn open(path: &Path) -> Result<Sqlite, OpenError> {
    Sqlite::open(path, Options::default())
}

fn refusal(path: &Path) -> OpenError {
    match open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(refusal) => refusal,
    }
}

#[test]
fn a_file_has_one_owner() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("punctual.db");
    let first = open(&path).expect("a new file opens");

    let refused = refusal(&path);
    let said = refused.to_string();
    assert!(said.contains("punctual.db") && said.contains(&std::process::id().to_string()), "{said}");
    #[cfg(unix)]
    {
        let link = folder.path().join("link.db");
        std::os::unix::fs::symlink(&path, &link).expect("a link is made");
        assert!(matches!(refusal(&link), OpenError::InUse { .. }), "a link meets the same lock");
    }

    drop(first);
    open(&path).expect("it is free again");
}

#[test]
fn what_is_not_ours_is_not_touched() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "dear diary").expect("a file is written");
    let long = folder.path().join("long.bin");
    std::fs::write(&long, [7; 10_000]).expect("a file is written");
    let other = folder.path().join("other.db");
    let connection = Connection::open(&other).expect("a database opens");
    connection.execute_batch("CREATE TABLE theirs (x); PRAGMA application_id = 7").expect("it is theirs");
    drop(connection);
    let nameless = folder.path().join("nameless.db");
    Connection::open(&nameless)
        .expect("opens")
        .execute_batch("CREATE TABLE theirs (x)")
        .expect("it is theirs");

    for path in [text, long, other, nameless] {
        let before = std::fs::read(&path).expect("it is there");
        let refused = refusal(&path);
        assert!(matches!(refused, OpenError::Foreign { .. }), "{refused}");
        assert!(refused.to_string().contains(path.to_str().expect("plain")), "{refused}");
        assert_eq!(std::fs::read(&path).expect("it is there"), before);
    }
    assert!(matches!(refusal(&folder.path().join("no/such/folder.db")), OpenError::System { .. }));
}

#[test]
fn a_later_version_is_refused_with_both_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("punctual.db");
    drop(open(&path).expect("a new file opens"));
    let connection = Connection::open(&path).expect("it is a database");
    connection.pragma_update(None, "user_version", 99).expect("the version is written");
    drop(connection);

    let refused = refusal(&path);

    assert!(matches!(refused, OpenError::TooNew { found: 99, known: 3, .. }), "{refused}");
    assert!(refused.to_string().contains("99") && refused.to_string().contains("knows 3"), "{refused}");
}

#[test]
fn the_number_of_shards_is_decided_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("punctual.db");
    let with = |shards| Sqlite::open(&path, Options { shards, ..Options::default() }).expect("it opens");
    assert_eq!(with(8).shards(), 8);
    assert_eq!(with(2).shards(), 8, "the file knows better");
}

#[test]
fn an_empty_file_is_a_new_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("punctual.db");
    std::fs::write(&path, "").expect("a file is written");
    drop(open(&path).expect("it opens"));
    assert!(!folder.path().join("punctual.db-wal").exists(), "closing copies the log into the file");
}
