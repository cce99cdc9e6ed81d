//! Opening a database: connect, make or migrate the schema, and see that the way there carries what we need.

use std::sync::Arc;
use std::time::Duration;

use punctual_store::StoreError;
use tokio::sync::mpsc;

use crate::fault::Fault;
use crate::floor::keep_scouting;
use crate::fresh::Fresh;
use crate::import::marker;
use crate::keys::Keys;
use crate::lane::Lanes;
use crate::news::{self, Listeners};
use crate::pool::Pool;
use crate::queues::Queues;
use crate::session::{Address, Purpose, Session};
use crate::spots::Spots;
use crate::{Options, Postgres, anew, days, proxy};

/// Each step makes the schema one version newer.
const MIGRATIONS: [&str; 4] = [
    include_str!("../migrations/0001_initial.sql"),
    include_str!("../migrations/0002_channel.sql"),
    include_str!("../migrations/0003_documents.sql"),
    include_str!("../migrations/0004_reports.sql"),
];

/// Held while the schema is looked at or changed, so that of several nodes that start at once one makes it.
pub(crate) const LOCK: i64 = 0x0070_756e_6374;

/// The first pause between two tries to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The oldest server that has what we use.
const SERVER_MIN: i32 = 130_000;

impl Postgres {
    /// Connects to a database, and makes or migrates what it has to have. Must be called inside a tokio runtime.
    pub async fn open(options: Options) -> Result<Postgres, StoreError> {
        let address = Address::parse(&options.url)?;
        let listen = options.listen_url.as_deref().map_or(Ok(address.clone()), Address::parse)?;
        let options = Arc::new(options);
        let pool = |purpose, count| Pool::new(address.clone(), options.clone(), purpose, count);
        let session = first_session(&address, &options).await?;
        let shards = make_schema(&session, &options).await.map_err(|fault| fault.answer())?;
        marker::refuse_unfinished(&session).await.map_err(|fault| fault.answer())?;
        let queues = Arc::new(Queues::default());
        queues.refresh(&session).await.map_err(|fault| fault.answer())?;
        days::provide(&session).await.map_err(|fault| fault.answer())?;

        let listeners = Arc::new(Listeners::default());
        let unheard = |fault: Fault| {
            StoreError::unavailable(format!("cannot listen at {}: {}", listen.shown(), fault.answer()))
        };
        let listening = news::open(&listen, &options, &listeners).await.map_err(unheard)?;
        proxy::hear_oneself(&session, &listeners).await?;
        if options.listen_url.is_some() {
            // Else there is no such proxy: we would have heard nothing.
            let kept = proxy::keeps_statements(&session, &address, &options).await;
            kept.map_err(|fault| fault.answer())?;
        }

        let chores = Arc::new(pool(Purpose::Write, 1));
        let (lanes, fresh) = (Arc::new(Lanes::new()), Arc::new(Fresh::default()));
        let spots = Arc::new(Spots::default());
        let (teller, told) = mpsc::unbounded_channel();
        let mut tasks = vec![
            tokio::spawn(news::keep_listening(listen, options.clone(), listeners.clone(), listening)),
            tokio::spawn(news::keep_telling(pool(Purpose::Tell, 1), told, lanes.clone())),
            tokio::spawn(news::keep_queues(listeners.add(), queues.clone(), chores.clone())),
            tokio::spawn(keep_scouting(pool(Purpose::Read, 1), queues.clone(), listeners.clone())),
        ];
        if let Some(bytes_max) = options.live_table_bytes_max {
            tasks.push(tokio::spawn(anew::keep_small(pool(Purpose::Rewrite, 1), bytes_max)));
        }
        for _ in 0..options.writers.max(1) {
            tasks.push(tokio::spawn(lanes.clone().run(
                address.clone(),
                options.clone(),
                queues.clone(),
                fresh.clone(),
                spots.clone(),
            )));
        }
        Ok(Postgres {
            shards,
            readers: pool(Purpose::Read, options.readers),
            beats: pool(Purpose::Lease, 1),
            chores,
            lanes,
            queues,
            spots,
            keys: Keys::new(fresh),
            listeners,
            teller,
            tasks,
            options,
        })
    }

    /// Where the database is, for people.
    pub fn shown(url: &str) -> String {
        Address::parse(url).map_or_else(|_| "PostgreSQL".to_owned(), |address| address.shown())
    }
}

/// The database may be starting just now.
pub(crate) async fn first_session(address: &Address, options: &Options) -> Result<Session, StoreError> {
    let begun = tokio::time::Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match Session::open(address, options, Purpose::Read, |_| {}).await {
            Ok(session) => return Ok(session),
            Err(fault)
                if begun.elapsed() + pause > options.connect_timeout
                    || !fault.is_connection_lost()
                    || fault.is_distrust() =>
            {
                let reason = fault.answer();
                return Err(StoreError::unavailable(format!(
                    "cannot connect to {}: {reason}",
                    address.shown()
                )));
            }
            Err(fault) => {
                if pause == FIRST_PAUSE {
                    tracing::warn!(address = address.shown(), reason = %fault.answer(), "waiting for the database");
                }
                tokio::time::sleep(pause).await;
            }
        }
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

pub(crate) async fn make_schema(session: &Session, options: &Options) -> Result<u32, Fault> {
    let row = session.find("SELECT current_setting('server_version_num')::integer", &[]).await?;
    let server: i32 = row.map_or(0, |row| row.get(0));
    if server < SERVER_MIN {
        let found = server / 10_000;
        return Err(
            StoreError::unavailable(format!("PostgreSQL {found} is too old, 13 or later is needed")).into()
        );
    }
    session
        .transact(async {
            session.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
            // Only if it is missing: a role without the right to make schemas may use one that is there.
            let found = "SELECT to_regclass('punctual.meta') IS NOT NULL";
            let exists = session.find(found, &[]).await?.is_some_and(|row| row.get(0));
            if !exists {
                session.run("CREATE SCHEMA IF NOT EXISTS punctual").await?;
            }
            let before = if exists { number(session, "version").await?.unwrap_or(0) } else { 0 };
            let latest = MIGRATIONS.len() as i64;
            if before > latest {
                let message = format!(
                    "the database has version {before} of the schema, this release knows {latest}: \
                     it was used by a later release"
                );
                return Err(StoreError::unavailable(message).into());
            }
            for migration in MIGRATIONS.iter().skip(usize::try_from(before).unwrap_or(0)) {
                session.run(migration).await?;
            }
            if before < latest {
                set_number(session, "version", latest).await?;
            }
            if let Some(shards) = number(session, "shards").await? {
                return Ok(shards as u32);
            }
            let shards = options.shards.clamp(1, 4_096);
            set_number(session, "shards", shards.into()).await?;
            set_number(session, "next_key", 1).await?;
            let sql = "INSERT INTO punctual.lease (shard, epoch) SELECT shard, 0 FROM generate_series(0, $1) AS shard";
            session.execute(sql, &[&(shards as i32 - 1)]).await?;
            Ok(shards)
        })
        .await
}

async fn number(session: &Session, name: &str) -> Result<Option<i64>, Fault> {
    let row = session.find("SELECT number FROM punctual.meta WHERE name = $1", &[&name]).await?;
    Ok(row.and_then(|row| row.get(0)))
}

async fn set_number(session: &Session, name: &str, number: i64) -> Result<(), Fault> {
    let sql = "INSERT INTO punctual.meta (name, number) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET number = excluded.number";
    session.execute(sql, &[&name, &number]).await?;
    Ok(())
}
