//! SQLite keeps the contract, also across restarts.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use jiff::SignedDuration;
use punctual_store::Store;
use punctual_store::conformance::{Subject, chaos, exercise, model};
use punctual_store_sqlite::{Inspection, Options, Sqlite, Synchronous};

struct InFile {
    folder: tempfile::TempDir,
    count: Cell<usize>,
    last: RefCell<PathBuf>,
    store: RefCell<Weak<Sqlite>>,
}

impl InFile {
    fn new() -> InFile {
        let folder = tempfile::tempdir().expect("a folder for a test");
        InFile { folder, count: Cell::new(0), last: RefCell::default(), store: RefCell::default() }
    }

    fn open(&self) -> Arc<dyn Store> {
        // Nobody pulls the plug here, and the suite opens hundreds of files.
        let options = Options { shards: 4, synchronous: Synchronous::Normal, ..Options::default() };
        let store = Arc::new(Sqlite::open(&*self.last.borrow(), options).expect("the file opens"));
        *self.store.borrow_mut() = Arc::downgrade(&store);
        store
    }

    /// What the writer counts is what the rows say.
    async fn inspect(&self) {
        let Some(store) = self.store.borrow().upgrade() else { return };
        let Inspection { faults, mismatches, .. } = store.inspect().await.expect("the store answers");
        assert_eq!((faults, mismatches), (Vec::new(), Vec::new()));
    }
}

impl Subject for InFile {
    async fn create(&self) -> Arc<dyn Store> {
        self.inspect().await;
        self.count.set(self.count.get() + 1);
        *self.last.borrow_mut() = self.folder.path().join(format!("{}.db", self.count.get()));
        self.open()
    }

    async fn advance(&self, by: SignedDuration) {
        // Its clock is that of the machine.
        tokio::time::sleep(by.unsigned_abs()).await;
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        assert_eq!(Arc::strong_count(&store), 1, "somebody else still uses it");
        self.inspect().await;
        drop(store);
        let store = self.open();
        self.inspect().await;
        store
    }
}

#[tokio::test]
async fn sqlite_keeps_the_contract() {
    exercise(&InFile::new()).await;
}

#[tokio::test]
async fn sqlite_agrees_with_memory() {
    let subject = InFile::new();
    let seeds: u64 = std::env::var("PUNCTUAL_SEEDS").map_or(12, |seeds| seeds.parse().expect("a number"));
    for seed in 100..100 + seeds {
        model::exercise(&subject, seed).await;
        chaos::exercise(&subject, seed).await;
    }
}
