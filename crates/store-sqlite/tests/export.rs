//! A file is read as it is, and nothing is left beside it; what is no whole database of this release is refused.

use std::path::Path;

use punctual_store::transfer::{Cell, Piece, Row, Source, TABLES, Table};
use punctual_store::{NewQueue, QueueSettings, Store};
use punctual_store_sqlite::{Export, OpenError, Options, Sqlite};
use rusqlite::Connection;

async fn fill(path: &Path, names: &[&str]) -> Sqlite {
    let store = Sqlite::open(path, Options::default()).expect("the file opens");
    for name in names {
        let queue = NewQueue {
            namespace: "default".into(),
            name: (*name).into(),
            settings: QueueSettings::default(),
            created_at: jiff::Timestamp::UNIX_EPOCH,
        };
        store.create_queue(queue).await.expect("a queue is declared");
    }
    store
}

fn names(rows: &[Row]) -> Vec<Cell> {
    rows.iter().map(|row| row[2].clone()).collect()
}

#[tokio::test]
async fn rows_come_in_the_order_of_their_keys_from_any_one_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a %20?#.db");
    drop(fill(&path, &["c", "a", "b"]).await);
    let before = std::fs::read(&path).expect("it is read");
    let export = Export::open(&path).expect("it opens");
    let queues: &Table = &TABLES[0];
    let expected: Vec<Cell> = ["c", "a", "b"].map(|name| Cell::Text(name.into())).into();

    let all = Piece { rows_max: 100, bytes_max: 1 << 20 };
    let read = |after: Option<&[Cell]>, piece| export.read(queues, after, piece).expect("it is read");
    assert_eq!(names(&read(None, all)), expected);
    let first = read(None, Piece { rows_max: 1, ..all });
    assert_eq!(names(&first), expected[..1]);
    assert_eq!(names(&read(Some(&first[0][..1]), all)), expected[1..]);
    assert_eq!(read(None, Piece { bytes_max: 1, ..all }).len(), 1, "a row that is large comes alone");
    assert_eq!(export.count(queues).expect("it is counted"), 3);

    drop(export);
    assert!(std::fs::read(&path).expect("it is read") == before);
    let files = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(files, 2, "the file and its lock");
}

#[tokio::test]
async fn what_is_only_in_the_log_is_read_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, copy) = (folder.path().join("punctual.db"), folder.path().join("copy.db"));
    let store = fill(&path, &["a", "b"]).await;
    // As a server leaves them that was killed.
    std::fs::copy(&path, &copy).expect("the file is copied");
    std::fs::copy(folder.path().join("punctual.db-wal"), folder.path().join("copy.db-wal"))
        .expect("its log too");
    drop(store);
    let export = Export::open(&copy).expect("it opens");
    assert_eq!(export.count(&TABLES[0]).expect("it is counted"), 2);
    let whole = Export::open(&path).expect("it opens").facts().expect("facts");
    assert_eq!(export.facts().expect("facts"), whole, "the same rows are the same source");
}

#[tokio::test]
async fn a_server_that_had_the_file_makes_it_another_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("punctual.db");
    drop(fill(&path, &["a"]).await);
    let before = Export::open(&path).expect("it opens").facts().expect("facts");
    let store = fill(&path, &[]).await;
    let (node, ttl) = (punctual_store::NodeId("one".into()), jiff::SignedDuration::from_secs(1));
    store.acquire(punctual_store::ShardId(0), node, ttl).await.expect("the store answers");
    assert!(matches!(Export::open(&path), Err(OpenError::InUse { .. })));
    drop(store);
    assert_ne!(Export::open(&path).expect("it opens").facts().expect("facts"), before);
}

#[tokio::test]
async fn what_is_no_whole_database_of_this_release_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("punctual.db");
    let missing = Export::open(&path);
    assert!(matches!(missing, Err(OpenError::System { .. })));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "not even a lock is made");
    for (content, said) in [(&b""[..], "there is nothing in it"), (b"a note", "it is no SQLite file")] {
        std::fs::write(&path, content).expect("it is written");
        let refused = Export::open(&path).err().expect("it is refused").to_string();
        assert!(refused.contains(said), "{refused}");
    }
    std::fs::remove_file(&path).expect("it is removed");
    let many: Vec<String> =
        (0..500).map(|name| format!("a queue with a rather long name, number {name}")).collect();
    drop(fill(&path, &many.iter().map(String::as_str).collect::<Vec<_>>()).await);
    let version = |version: u32| {
        let connection = Connection::open(&path).expect("it opens");
        connection.pragma_update(None, "user_version", version).expect("it is written");
    };
    version(1);
    assert!(matches!(Export::open(&path), Err(OpenError::TooOld { found: 1, known: 3, .. })));
    version(99);
    assert!(matches!(Export::open(&path), Err(OpenError::TooNew { found: 99, known: 3, .. })));
    version(3);
    drop(Export::open(&path).expect("it opens"));

    let mut bytes = std::fs::read(&path).expect("it is read");
    let middle = bytes.len() / 4096 / 2 * 4096;
    bytes[middle..middle + 4096].fill(0xa5);
    std::fs::write(&path, bytes).expect("it is written");
    let refused = Export::open(&path);
    assert!(matches!(refused, Err(OpenError::Damaged { .. } | OpenError::Database { .. })));
}
