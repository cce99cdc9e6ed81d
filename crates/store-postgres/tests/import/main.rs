//! What a file knows is known by PostgreSQL after it was moved: every question has the same answer, whatever happened on the way.

mod compare;
mod fill;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use punctual_store::transfer::{Cell, Facts, Piece, Row, Source, Table};
use punctual_store::{Store, StoreError};
use punctual_store_postgres::{Begun, ImportError, Imported, Options, Phase, Postgres, Progress, import};
use punctual_store_sqlite::{Export, Sqlite};
use punctual_testkit::Postgres as Server;

use compare::Answers;

/// One server for all tests of this binary.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_careless().expect("PostgreSQL starts"))
}

fn target() -> Options {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let name = format!("import_{}", MADE.fetch_add(1, Ordering::Relaxed));
    Options { shards: 7, ..Options::new(server().create_database(&name).expect("a database is made")) }
}

fn source(path: &Path) -> Arc<Mutex<Export>> {
    Arc::new(Mutex::new(Export::open(path).expect("the file opens")))
}

async fn move_file(path: &Path, target: &Options) -> Result<Imported, ImportError> {
    import(target.clone(), source(path), false, |_| {}).await
}

async fn connect(target: &Options) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(&target.url, tokio_postgres::NoTls).await.expect("the server answers");
    tokio::spawn(connection);
    client
}

/// Compares all answers; claims come last, since they change both.
async fn check_same(path: &Path, target: &Options) {
    let file: Arc<dyn Store> = Arc::new(Sqlite::open(path, Default::default()).expect("the file opens"));
    let moved: Arc<dyn Store> = Arc::new(Postgres::open(target.clone()).await.expect("the target opens"));
    let (expected, found) = (Answers::of(&*file).await, Answers::of(&*moved).await);
    expected.compare(&found, moved.shards());
    compare::claims(&*file, &*moved).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_question_has_the_same_answer() {
    let seeds: u64 = std::env::var("PUNCTUAL_SEEDS").map_or(6, |seeds| seeds.parse().expect("a number"));
    for seed in 0..seeds {
        let folder = tempfile::tempdir().expect("a folder");
        let path = fill::from_seed(folder.path(), seed).await;
        let before = std::fs::read(&path).expect("the file is read");
        let target = target();

        let moved = move_file(&path, &target).await.expect("it moves");

        assert_eq!(moved.begun, Begun::New);
        assert!(moved.tables.iter().map(|table| table.rows).sum::<u64>() > 20, "{moved:?}");
        assert!(std::fs::read(&path).expect("the file is read") == before, "the file is as it was");
        check_same(&path, &target).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn far_times_odd_texts_and_all_kinds_of_runs_move() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = fill::with_oddities(folder.path()).await;
    let target = target();
    let moved = move_file(&path, &target).await.expect("it moves");
    for table in &moved.tables {
        assert!(table.rows > 0, "{} is tried too", table.table);
    }
    check_same(&path, &target).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_on_where_it_was_ended() {
    for seed in 0..4_u64 {
        let folder = tempfile::tempdir().expect("a folder");
        let path = fill::from_seed(folder.path(), 50 + seed).await;
        let target = target();
        let small = Arc::new(Mutex::new(Small(Export::open(&path).expect("the file opens"), 5)));
        let (mut tries, mut furthest) = (0_u64, 0);
        let moved = loop {
            // It is dropped in the middle of whatever it does after some pieces: in a statement, in a commit, between them.
            tries += 1;
            let (steps, wait) = (tries % 4, Duration::from_micros((seed * 311 + tries * 173) % 1_500));
            let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
            let work = import(target.clone(), small.clone(), false, move |progress| {
                tell.send(progress).expect("somebody listens");
            });
            let ended = tokio::select! {
                moved = work => Some(moved.expect("it moves")),
                () = async {
                    for _ in 0..=steps {
                        let Progress { phase, rows, .. } = told.recv().await.expect("it tells");
                        assert!(phase == Phase::Checking || rows > furthest, "{rows} again after {furthest}");
                        furthest = furthest.max(rows);
                        if phase == Phase::Checking && tries % 3 > 0 {
                            std::future::pending::<()>().await;
                        }
                    }
                    tokio::time::sleep(wait).await;
                } => None,
            };
            if let Some(moved) = ended {
                break moved;
            }
            let refused = Postgres::open(target.clone()).await.err().expect("no server opens it");
            assert!(
                refused.to_string().contains("a migration to this database is not finished"),
                "{refused}"
            );
            assert!(tries < 200, "it gets on");
        };
        assert!(matches!(moved.begun, Begun::Resumed(_)) && tries > 3, "after {tries} tries: {moved:?}");
        // What was read ahead may still be read.
        while Arc::strong_count(&small) > 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(small);
        check_same(&path, &target).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn moving_it_again_does_nothing_and_another_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = fill::from_seed(folder.path(), 3).await;
    let target = target();
    let first = move_file(&path, &target).await.expect("it moves");
    let second = move_file(&path, &target).await.expect("it was moved");
    assert_eq!(second.begun, Begun::Finished);
    let rows = |moved: &Imported| moved.tables.iter().map(|table| table.rows).collect::<Vec<_>>();
    assert_eq!(rows(&first), rows(&second));

    let other = fill::from_seed(&folder.path().join("other"), 4).await;
    for restart in [false, true] {
        let refused = import(target.clone(), source(&other), restart, |_| {}).await;
        assert!(matches!(refused, Err(ImportError::NotEmpty { .. })), "{refused:?}");
    }
    check_same(&path, &target).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_needs_a_new_beginning() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = fill::from_seed(folder.path(), 5).await;
    let target = target();
    let broken = Arc::new(Mutex::new(Broken(Export::open(&path).expect("the file opens"))));
    let failed = import(target.clone(), broken, false, |_| {}).await;
    assert!(matches!(failed, Err(ImportError::Source(_))), "{failed:?}");
    fill::touch(&path).await;

    let refused = move_file(&path, &target).await;
    assert!(matches!(refused, Err(ImportError::OtherSource)), "{refused:?}");

    let moved = import(target.clone(), source(&path), true, |_| {}).await.expect("it moves");
    assert_eq!(moved.begun, Begun::New);
    check_same(&path, &target).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_differs_is_found_and_keeps_servers_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = fill::from_seed(folder.path(), 6).await;
    let target = target();
    let liar = Arc::new(Mutex::new(Liar(Export::open(&path).expect("the file opens"), AtomicUsize::new(0))));
    let failed = import(target.clone(), liar, false, |_| {}).await;
    assert!(matches!(failed, Err(ImportError::Mismatch { table: "state", .. })), "{failed:?}");
    assert!(Postgres::open(target.clone()).await.is_err(), "no server opens it");

    // Going on does not heal it, nor does anything that happened to the target meanwhile.
    let failed = move_file(&path, &target).await;
    assert!(matches!(failed, Err(ImportError::Mismatch { table: "state", .. })), "{failed:?}");
    import(target.clone(), source(&path), true, |_| {}).await.expect("it moves");
    check_same(&path, &target).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_is_not_empty_or_in_use_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = fill::from_seed(folder.path(), 7).await;
    let file = Sqlite::open(&path, Default::default()).expect("the file opens");
    let known = file.queues(None).await.expect("the file answers");
    drop(file);

    // What every server declares is no hindrance, if the source has it too.
    let used = target();
    let store = Postgres::open(used.clone()).await.expect("the target opens");
    store.create_queue(known[0].made.clone()).await.expect("a queue is declared");
    fill::beat(&store).await;
    let refused = move_file(&path, &used).await;
    assert!(matches!(refused, Err(ImportError::InUse { .. })), "{refused:?}");
    fill::leave(&store).await;
    drop(store);
    move_file(&path, &used).await.expect("it moves");
    check_same(&path, &used).await;

    let used = target();
    let store = Postgres::open(used.clone()).await.expect("the target opens");
    fill::queue(&store, "of its own").await;
    let refused = move_file(&path, &used).await;
    assert!(
        matches!(&refused, Err(ImportError::NotEmpty { found }) if found.contains("of its own")),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn other_versions_and_absent_servers_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = fill::from_seed(folder.path(), 8).await;
    let target = target();
    Postgres::open(target.clone()).await.expect("the target opens");
    connect(&target)
        .await
        .batch_execute("UPDATE punctual.meta SET number = 99 WHERE name = 'version'")
        .await
        .expect("it is written");
    let refused = move_file(&path, &target).await;
    assert!(
        matches!(&refused, Err(ImportError::Target(error)) if error.to_string().contains("version 99")),
        "{refused:?}"
    );

    let nowhere = Options {
        connect_timeout: Duration::from_millis(300),
        ..Options::new("postgres://postgres@127.0.0.1:1/postgres")
    };
    let refused = move_file(&path, &nowhere).await;
    assert!(
        matches!(&refused, Err(ImportError::Target(error)) if error.to_string().contains("127.0.0.1:1")),
        "{refused:?}"
    );
}

/// A source that gives a few rows at a time.
struct Small(Export, usize);

impl Source for Small {
    fn facts(&self) -> Result<Facts, StoreError> {
        self.0.facts()
    }

    fn count(&self, table: &Table) -> Result<u64, StoreError> {
        self.0.count(table)
    }

    fn read(&self, table: &Table, after: Option<&[Cell]>, piece: Piece) -> Result<Vec<Row>, StoreError> {
        self.0.read(table, after, Piece { rows_max: piece.rows_max.min(self.1), ..piece })
    }
}

/// A source whose disk fails in the middle.
struct Broken(Export);

impl Source for Broken {
    fn facts(&self) -> Result<Facts, StoreError> {
        self.0.facts()
    }

    fn count(&self, table: &Table) -> Result<u64, StoreError> {
        self.0.count(table)
    }

    fn read(&self, table: &Table, after: Option<&[Cell]>, piece: Piece) -> Result<Vec<Row>, StoreError> {
        if table.name == "run_live" {
            return Err(StoreError::unavailable("the disk fails"));
        }
        self.0.read(table, after, piece)
    }
}

/// A source that says something else when it is asked for the first time.
struct Liar(Export, AtomicUsize);

impl Source for Liar {
    fn facts(&self) -> Result<Facts, StoreError> {
        self.0.facts()
    }

    fn count(&self, table: &Table) -> Result<u64, StoreError> {
        self.0.count(table)
    }

    fn read(&self, table: &Table, after: Option<&[Cell]>, piece: Piece) -> Result<Vec<Row>, StoreError> {
        let mut rows = self.0.read(table, after, piece)?;
        if table.name == "state" && after.is_none() && self.1.fetch_add(1, Ordering::Relaxed) == 0 {
            rows[0][1] = Cell::Number(12_345);
        }
        Ok(rows)
    }
}
