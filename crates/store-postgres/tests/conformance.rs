//! PostgreSQL keeps the contract, also across restarts of its processes.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, OnceLock};

use jiff::SignedDuration;
use punctual_store::Store;
use punctual_store::conformance::{Subject, chaos, exercise, model};
use punctual_store_postgres::{Options, Postgres};
use punctual_testkit::Postgres as Server;

/// One server for all tests of this binary.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_careless().expect("PostgreSQL starts"))
}

struct InDatabase {
    name: &'static str,
    count: Cell<usize>,
    last: RefCell<String>,
}

impl InDatabase {
    fn new(name: &'static str) -> InDatabase {
        InDatabase { name, count: Cell::new(0), last: RefCell::default() }
    }

    async fn open(&self) -> Arc<dyn Store> {
        let options = Options { shards: 4, ..Options::new(self.last.borrow().clone()) };
        Arc::new(Postgres::open(options).await.expect("the database opens"))
    }
}

impl Subject for InDatabase {
    async fn create(&self) -> Arc<dyn Store> {
        self.count.set(self.count.get() + 1);
        // Nobody uses those of a while ago any more, and a hundred of them fill a small disk.
        if let Some(old) = self.count.get().checked_sub(5) {
            let drop = format!("DROP DATABASE IF EXISTS {}_{old} WITH (FORCE)", self.name);
            server().query("postgres", &drop).expect("a database is dropped");
        }
        let name = format!("{}_{}", self.name, self.count.get());
        *self.last.borrow_mut() = server().create_database(&name).expect("a database is made");
        self.open().await
    }

    async fn advance(&self, by: SignedDuration) {
        // Its clock is that of the machine.
        tokio::time::sleep(by.unsigned_abs()).await;
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        drop(store);
        self.open().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_the_contract() {
    exercise(&InDatabase::new("contract")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_agrees_with_memory() {
    let subject = InDatabase::new("model");
    let seeds: u64 = std::env::var("PUNCTUAL_SEEDS").map_or(8, |seeds| seeds.parse().expect("a number"));
    for seed in 100..100 + seeds {
        model::exercise(&subject, seed).await;
        chaos::exercise(&subject, seed).await;
    }
}
