//! Databases to measure in, and what the server counts about them.

use std::sync::Arc;

use anyhow::Result;
use punctual_engine::{Engine, EngineConfig, SystemClock};
use punctual_store::QueueSettings;
use punctual_store_postgres::{Options, Postgres};
use tokio_postgres::{Client, NoTls};

/// A connection for questions that are not measured.
pub async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// An empty database, and its address. What was there before is gone.
pub async fn create(url: &str, name: &str) -> Result<String> {
    let client = connect(url).await?;
    client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await?;
    client.batch_execute(&format!("CREATE DATABASE {name}")).await?;
    let (server, _) = url.rsplit_once('/').unwrap_or((url, ""));
    Ok(format!("{server}/{name}"))
}

/// Log that is written before anything is measured.
const LOG_MEGABYTES: i32 = 3_500;

/// Makes the server as one that has run for a while: it has log files that it can use again.
pub async fn season(url: &str) -> Result<()> {
    let client = connect(url).await?;
    let fill =
        "SELECT pg_logical_emit_message(false, 'fill', repeat('x', 1000000)) FROM generate_series(1, $1)";
    client.execute(fill, &[&LOG_MEGABYTES]).await?;
    checkpoint(&client).await
}

/// What comes now is measured without a checkpoint, as long as it writes less than two gigabytes.
pub async fn checkpoint(client: &Client) -> Result<()> {
    Ok(client.batch_execute("CHECKPOINT").await?)
}

/// Starts nodes on a database, and declares the queue "q".
pub async fn nodes(url: &str, count: usize) -> Result<Vec<Engine>> {
    nodes_with(Options::new(url), count).await
}

/// The same with other options.
pub async fn nodes_with(options: Options, count: usize) -> Result<Vec<Engine>> {
    let mut engines = Vec::new();
    for index in 0..count {
        engines.push(join(options.clone(), &format!("node-{index}")).await?);
    }
    Ok(engines)
}

/// Starts one more node.
pub async fn join(options: Options, name: &str) -> Result<Engine> {
    let store = Postgres::open(Options { removes_days: true, ..options }).await?;
    let config = EngineConfig { node: name.to_owned(), ..EngineConfig::default() };
    let engine = Engine::start(Arc::new(store), Arc::new(SystemClock), config).await?;
    engine.create_queue("default", "q", QueueSettings::default()).await?;
    Ok(engine)
}

/// Transactions that a database has committed so far.
pub async fn transactions(client: &Client, name: &str) -> Result<i64> {
    client.batch_execute("SELECT pg_stat_clear_snapshot()").await?;
    let row =
        client.query_one("SELECT xact_commit FROM pg_stat_database WHERE datname = $1", &[&name]).await?;
    Ok(row.get(0))
}
