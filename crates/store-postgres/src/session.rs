//! One connection: opened with TLS where that is wanted, statements prepared once, opened again when it was lost.

mod tls;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Error, Row, RowStream, Statement};

use crate::fault::Fault;
use crate::options::Options;
pub(crate) use tls::Address;

/// What statements are given.
pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Few statements over arrays, each row found by its key.
    Write,
    /// The same for leases, whose time runs out.
    Lease,
    /// Whatever is asked.
    Read,
    /// Telling others something.
    Tell,
    /// Writing tables anew, which begins with reading them.
    Rewrite,
}

/// One connection.
pub(crate) struct Session {
    client: Client,
    /// By the place of their text in memory.
    statements: Mutex<HashMap<usize, Statement>>,
    /// Carries bytes until it is dropped.
    carrier: JoinHandle<()>,
    /// The carrier has ended.
    ended: Arc<Notify>,
    /// How long an answer is waited for.
    patience: Duration,
    /// How a transaction begins.
    begin: String,
    /// A proxy lends the connection to others between two transactions.
    is_lent: bool,
}

/// A transaction that is open: whoever gives up in the middle of it gives up the connection too.
struct Open<'a>(Option<&'a Session>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.0 {
            session.carrier.abort();
        }
    }
}

impl Session {
    /// Connects, and hands over whatever the database says by itself.
    pub(crate) async fn open(
        address: &Address,
        options: &Options,
        purpose: Purpose,
        mut hear: impl FnMut(AsyncMessage) + Send + 'static,
    ) -> Result<Session, Fault> {
        let connecting = tokio::time::timeout(options.patience(purpose), address.connect());
        let (client, mut connection) = connecting.await.map_err(|_| Fault::Silent)??;
        let ended = Arc::new(Notify::new());
        let end = ended.clone();
        let carrier = tokio::spawn(async move {
            while let Some(message) = std::future::poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    Ok(message) => hear(message),
                    Err(_) => break,
                }
            }
            end.notify_one();
        });
        let session = Session {
            client,
            statements: Mutex::default(),
            carrier,
            ended,
            patience: options.patience(purpose),
            begin: begin(options, purpose),
            is_lent: options.is_lent(),
        };
        if !session.is_lent {
            session.run(&settings("SET", options, purpose)).await?;
        }
        Ok(session)
    }

    /// Waits for an answer, but not for ever: a way that swallows everything looks like a database that thinks.
    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Fault> {
        match tokio::time::timeout(self.patience, answer).await {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                // Whatever still comes on this connection answers nobody's question.
                self.carrier.abort();
                Err(Fault::Silent)
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed() || self.carrier.is_finished()
    }

    /// Waits until it is lost; for one who waits.
    pub(crate) async fn closed(&self) {
        self.ended.notified().await;
    }

    /// Prepares a statement, or finds it prepared.
    pub(crate) async fn prepare(&self, sql: &'static str) -> Result<Statement, Fault> {
        let place = sql.as_ptr() as usize;
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.in_time(self.client.prepare(sql)).await?;
        let mut statements = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(statements.entry(place).or_insert(statement).clone())
    }

    /// Prepares what is not yet prepared, which waits for locks too.
    pub(crate) async fn prepare_all(&self, all: impl Iterator<Item = &'static str>) -> Result<(), Fault> {
        let unknown: Vec<&'static str> = {
            let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
            all.filter(|sql| !known.contains_key(&(sql.as_ptr() as usize))).collect()
        };
        if unknown.is_empty() {
            return Ok(());
        }
        let preparing = async { try_join_all(unknown.iter().map(|sql| self.prepare(sql))).await.map(drop) };
        self.within(preparing).await
    }

    /// All rows of an answer.
    pub(crate) async fn query(&self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, Fault> {
        let statement = self.prepare(sql).await?;
        self.in_time(self.client.query(&statement, params)).await
    }

    /// The row of an answer, if there is one.
    pub(crate) async fn find(&self, sql: &'static str, params: Params<'_>) -> Result<Option<Row>, Fault> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// How many rows were changed.
    pub(crate) async fn execute(&self, sql: &'static str, params: Params<'_>) -> Result<u64, Fault> {
        let statement = self.prepare(sql).await?;
        self.in_time(self.client.execute(&statement, params)).await
    }

    /// The number that a statement without values gives.
    pub(crate) async fn count(&self, sql: &str) -> Result<u64, Fault> {
        let row = self.row(sql).await?;
        Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or(0))
    }

    /// The one row that a statement without values gives.
    pub(crate) async fn row(&self, sql: &str) -> Result<Row, Fault> {
        self.in_time(self.client.query_one(sql, &[])).await
    }

    /// The types of the columns that a question gives.
    pub(crate) async fn types(&self, sql: &str) -> Result<Vec<Type>, Fault> {
        let statement = self.client.prepare(sql).await?;
        Ok(statement.columns().iter().map(|column| column.type_().clone()).collect())
    }

    /// The rows of an answer that may be large, as they come.
    pub(crate) async fn stream(&self, sql: &str) -> Result<RowStream, Fault> {
        let statement = self.client.prepare(sql).await?;
        Ok(self.client.query_raw(&statement, std::iter::empty::<&(dyn ToSql + Sync)>()).await?)
    }

    /// Writes many rows into a table; says how many.
    pub(crate) async fn copy<V: ToSql + Sync>(
        &self,
        sql: &str,
        types: &[Type],
        rows: &[Vec<V>],
    ) -> Result<u64, Fault> {
        let sink = self.client.copy_in(sql).await?;
        let writer = BinaryCopyInWriter::new(sink, types);
        tokio::pin!(writer);
        for row in rows {
            writer.as_mut().write_raw(row).await?;
        }
        Ok(writer.finish().await?)
    }

    /// A statement without values.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), Fault> {
        self.in_time(self.client.batch_execute(sql)).await
    }

    /// Begins a transaction.
    pub(crate) async fn begin(&self) -> Result<(), Fault> {
        self.run(&self.begin).await
    }

    /// Does something in a transaction: written if it answers, taken back if it fails.
    pub(crate) async fn transact<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let mut open = Open(Some(self));
        let done = match self.begin().await {
            Ok(()) => work.await,
            Err(fault) => Err(fault),
        };
        // If the end fails, the connection is lost, and the transaction with it.
        let ended = self.run(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).await;
        if ended.is_ok() {
            open.0 = None;
        }
        let answer = done?;
        ended.map(|()| answer)
    }

    /// Does something that needs no transaction, such as one statement, with the settings that it relies on.
    pub(crate) async fn within<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        if self.is_lent { self.transact(work).await } else { work.await }
    }

    /// Whether several may use it at the same time.
    pub(crate) fn is_shareable(&self) -> bool {
        !self.is_lent
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.carrier.abort();
    }
}

/// How a transaction begins. What is lent comes back to us with whatever settings, and what we set would go to others with it: so
/// each transaction brings its own.
fn begin(options: &Options, purpose: Purpose) -> String {
    if !options.is_lent() {
        return "BEGIN".into();
    }
    format!("BEGIN ISOLATION LEVEL READ COMMITTED; {}", settings("SET LOCAL", options, purpose))
}

/// The settings that our statements rely on.
fn settings(set: &str, options: &Options, purpose: Purpose) -> String {
    let timeout = options.timeout(purpose).as_millis();
    let idle = options.idle(purpose).as_millis();
    let plans: &[&str] = match purpose {
        // A plan for few rows is right for many too: each is found by its key, whatever the tables have grown to. That is
        // why statements say `key = ANY(ARRAY[new.key])`: of `key = new.key` a table that was empty when somebody counted
        // its rows makes a walk through all of it, by the order of its keys. What is left then is to look each one up.
        Purpose::Write | Purpose::Lease => &[
            "plan_cache_mode = force_generic_plan",
            "enable_seqscan = off",
            "enable_hashjoin = off",
            "enable_mergejoin = off",
            "jit = off",
        ],
        // Nothing that is read is found without a key either.
        Purpose::Read => &["enable_seqscan = off", "jit = off"],
        Purpose::Tell | Purpose::Rewrite => &[],
    };
    // Whoever waits for a lock must see what its holder has written: with any other level a statement that began before would
    // not, whatever the role or the database has as its default.
    let mut sql = format!(
        "{set} default_transaction_isolation = 'read committed'; {set} statement_timeout = {timeout}; \
         {set} lock_timeout = {timeout}; {set} idle_in_transaction_session_timeout = {idle};"
    );
    for plan in plans {
        sql += &format!(" {set} {plan};");
    }
    sql
}
