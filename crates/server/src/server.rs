//! The server: opens the database, starts the engine, binds the port, serves, and stops within its deadline.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use jiff::Timestamp;
use punctual_engine::{Clock, Engine, EngineError, SystemClock};
use punctual_store::memory::Memory;
use punctual_store::{QueueSettings, Store, StoreError};
use punctual_store_postgres::Postgres;
use punctual_store_sqlite::{OpenError, Options, Sqlite};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::app::{App, File, NAMESPACE_DEFAULT, QUEUE_DEFAULT};
use crate::calls::{self, Calls};
use crate::config::{Config, shown};
use crate::limits::{
    HEAD_BUFFER_BYTES_MAX, HEAD_TIME_MAX, HEADER_BYTES_MAX, KEEP_ALIVE_PAUSE, SEND_BUFFER_BYTES_MAX,
    STREAMS_MAX,
};
use crate::metrics::Requests;
use crate::temporal::upstream::{Upstream, workflows};
use crate::{demo, http, traces};

/// A server that is ready to serve.
pub struct Server {
    config: Config,
    app: Arc<App>,
    store: Arc<dyn Store>,
    listener: TcpListener,
    address: SocketAddr,
    demo: Option<JoinHandle<()>>,
    calls: JoinHandle<()>,
    workflows: Option<JoinHandle<()>>,
    traces: Option<JoinHandle<()>>,
}

/// Why a server did not start, or did not stop well.
#[derive(Debug, Error)]
pub enum StartError {
    /// Others could reach it, and could do anything.
    #[error(
        "{listen} can be reached from other machines, and there is no authentication yet: listen on 127.0.0.1, or \
         give --insecure if the network is trusted"
    )]
    Exposed {
        /// The address.
        listen: SocketAddr,
    },
    /// The database could not be opened.
    #[error("the database cannot be opened: {0}")]
    Open(#[from] OpenError),
    /// The database could not be reached, or is not one that can be used.
    #[error("the database cannot be opened: {}", reason(.0))]
    Database(StoreError),
    /// The engine could not be started.
    #[error("the engine cannot be started: {0}")]
    Engine(#[from] EngineError),
    /// The port could not be bound.
    #[error("cannot listen on {listen}: {source}")]
    Bind {
        /// The address.
        listen: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// It did not stop in time; what was not done was given up.
    #[error("the server did not stop within {}: what was left was given up", SignedSeconds(.0))]
    Late(Duration),
}

/// What the database said, without saying twice that it is unavailable.
fn reason(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable { reason } => reason.clone(),
        other => other.to_string(),
    }
}

struct SignedSeconds<'a>(&'a Duration);

impl std::fmt::Display for SignedSeconds<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl Server {
    /// Takes the port, opens the database, starts the engine. Who connects before that is done waits for an answer; a port
    /// that is taken leaves no file behind.
    pub async fn start(config: Config) -> Result<Server, StartError> {
        Server::start_at(config, Arc::new(SystemClock)).await
    }

    /// The same by another clock: tests see an hour in seconds.
    #[doc(hidden)]
    pub async fn start_at(config: Config, clock: Arc<dyn Clock>) -> Result<Server, StartError> {
        if !config.listen.ip().is_loopback() && !config.insecure {
            return Err(StartError::Exposed { listen: config.listen });
        }
        let listen = config.listen;
        let bound = TcpListener::bind(listen).await.and_then(|bound| Ok((bound.local_addr()?, bound)));
        let (address, listener) = bound.map_err(|source| StartError::Bind { listen, source })?;
        let Opened { store, name, file } = open(&config, clock.now()).await?;
        let engine = Engine::start(store.clone(), clock, config.engine()).await?;
        // What needs no thought needs no declaration: the queue that every command names when it names none.
        engine.create_queue(NAMESPACE_DEFAULT, QUEUE_DEFAULT, QueueSettings::default()).await?;
        let calls = Calls::new(&config, &address.to_string(), &engine).await?;
        let upstream = (!config.temporal_upstream.is_empty()).then(|| Upstream::new(&config, address));
        let upstream = upstream.transpose().map_err(EngineError::Invalid)?;
        let (tell, news) = mpsc::channel(traces::NEWS_MAX);
        let app = Arc::new(App {
            node: config.node.clone(),
            store: name,
            file,
            calls,
            polls: Default::default(),
            upstream,
            plain_runs: Some(tell).filter(|_| !config.otlp_endpoint.is_empty()),
            started_at: engine.now(),
            run_retention: config.run_retention,
            requests: Requests::default(),
            connections: Arc::new(Semaphore::new(config.connections_max)),
            connections_max: config.connections_max,
            watchers: Arc::new(Semaphore::new(config.watchers_max)),
            watchers_max: config.watchers_max,
            stopping: watch::Sender::new(false),
            engine,
        });
        let demo = match config.demo {
            true => Some(demo::start(&app).await),
            false => None,
        };
        let calls = calls::start(&app);
        let workflows = app.upstream.is_some().then(|| workflows::start(&app));
        let traced = Some(config.otlp_endpoint.clone()).filter(|endpoint| !endpoint.is_empty());
        let traces = traced.map(|endpoint| traces::start(&app, endpoint, news));
        tracing::info!(%address, database = %shown(&config.database), node = %config.node, "serving");
        Ok(Server { config, app, store, listener, address, demo, calls, workflows, traces })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`, then stops: refuses new claims, ends long polls and watches, finishes requests, stops the engine.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), StartError> {
        let Server { config, app, store, listener, demo, calls, workflows, traces, .. } = self;
        let connections = GracefulShutdown::new();
        tokio::select! {
            () = stop => {}
            () = accept(&app, &listener, &connections) => {}
        }
        drop(listener);
        tracing::info!("stopping");
        let deadline = Instant::now() + config.shutdown;
        app.stopping.send_replace(true);
        // Requests get most of the time, the engine the rest.
        let in_time =
            tokio::time::timeout(config.shutdown.mul_f64(0.8), connections.shutdown()).await.is_ok();
        if let Some(demo) = demo {
            let _ = tokio::time::timeout(deadline - Instant::now(), demo).await;
        }
        let _ = tokio::time::timeout(deadline - Instant::now(), calls).await;
        if let Some(workflows) = workflows {
            let _ = tokio::time::timeout(deadline - Instant::now(), workflows).await;
        }
        if let Some(traces) = traces {
            let _ = tokio::time::timeout(deadline - Instant::now(), traces).await;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let in_time = app.engine.stop(left).await && in_time;
        drop(app);
        close(store, deadline).await;
        if in_time {
            tracing::info!("stopped");
            Ok(())
        } else {
            tracing::warn!("stopped late: what was left was given up");
            Err(StartError::Late(config.shutdown))
        }
    }
}

/// What keeps state, by its name, and the file if it is one.
struct Opened {
    store: Arc<dyn Store>,
    name: &'static str,
    file: Option<File>,
}

async fn open(config: &Config, now: Timestamp) -> Result<Opened, StartError> {
    if config.database == "memory:" {
        let store = Arc::new(Memory::new(1, now));
        return Ok(Opened { store, name: "memory", file: None });
    }
    let Some(path) = config.database.strip_prefix("sqlite:").map(str::to_owned) else {
        let listen_url = Some(config.database_listen.clone()).filter(|url| !url.is_empty());
        let options = punctual_store_postgres::Options {
            listen_url,
            shards: config.shards,
            removes_days: true,
            shard_lease: config.shard_lease.unsigned_abs(),
            live_table_bytes_max: config.live_table_bytes_max,
            ..punctual_store_postgres::Options::new(&config.database)
        };
        let store = Arc::new(Postgres::open(options).await.map_err(StartError::Database)?);
        return Ok(Opened { store, name: "postgres", file: None });
    };
    let options = Options { synchronous: config.durability, ..Options::default() };
    let opened = tokio::task::spawn_blocking(move || Sqlite::open(path, options)).await;
    let store = opened.map_err(|error| EngineError::Unavailable(error.to_string()))??;
    let store = Arc::new(store);
    let path = config.database.trim_start_matches("sqlite:").into();
    Ok(Opened { store: store.clone(), name: "sqlite", file: Some(File { store, path }) })
}

/// Waits until nobody uses the store any more, so that its file is free when the server has stopped.
async fn close(store: Arc<dyn Store>, deadline: Instant) {
    while Arc::strong_count(&store) > 1 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let _ = tokio::task::spawn_blocking(move || drop(store)).await;
}

/// Accepts connections for ever, as many at a time as are allowed.
async fn accept(app: &Arc<App>, listener: &TcpListener, connections: &GracefulShutdown) {
    let service = TowerToHyperService::new(http::router(app));
    let builder = protocol();
    loop {
        let Ok(place) = app.connections.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Too many open files, or a client that went away: neither ends the server.
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let connection = builder.serve_connection(TokioIo::new(stream), service.clone()).into_owned();
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended badly");
            }
            drop(place);
        });
    }
}

/// HTTP/1 and HTTP/2 on one port, told apart by their first bytes; a slow client cannot hold more than its buffers.
fn protocol() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BUFFER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        // Who stood still finds the calls that were given up meanwhile: that is no attack, and no reason to hang up.
        .max_pending_accept_reset_streams(STREAMS_MAX as usize)
        .max_header_list_size(HEADER_BYTES_MAX as u32)
        .max_send_buf_size(SEND_BUFFER_BYTES_MAX)
        .keep_alive_interval(KEEP_ALIVE_PAUSE)
        .keep_alive_timeout(KEEP_ALIVE_PAUSE);
    builder
}
