//! Leases of shards and the roster of nodes, by the database's clock; and keys that nobody else will get.

use futures_util::future::try_join3;
use jiff::{SignedDuration, Timestamp};
use punctual_store::{Beat, Bytes, Epoch, Keeper, Lease, NodeId, NodeSeen, Roster, ShardId, StoreError};
use tokio_postgres::Row;

use crate::fault::Fault;
use crate::session::Session;
use crate::spots::Known;
use crate::value::{at, time};

/// The database's clock.
macro_rules! now {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000"
    };
}

/// Whoever makes a lease longer or gives it up, and whoever says that it is alive, does not wait for the disk. What is lost if the
/// database crashes in that moment is time: a lease that was given up has to run out. Epochs are waited for; none is given twice.
macro_rules! at_once {
    () => {
        "set_config('synchronous_commit', 'off', true) IS NOT NULL"
    };
}

fn nanos(length: SignedDuration) -> i64 {
    i64::try_from(length.as_nanos()).unwrap_or(i64::MAX / 4)
}

pub(crate) async fn now(session: &Session) -> Result<Timestamp, Fault> {
    let row = session.find(concat!("SELECT ", now!()), &[]).await?;
    Ok(row.map_or(Timestamp::MIN, |row| at(row.get(0))))
}

pub(crate) async fn acquire(
    session: &Session,
    shard: ShardId,
    node: &NodeId,
    ttl: SignedDuration,
) -> Result<Option<Lease>, Fault> {
    // One whose owner is in the middle of a commit is not free yet. It is not waited for: who has stopped there would hold up
    // everybody who looks after its shards, and with it their beats.
    let sql = concat!(
        "UPDATE punctual.lease SET epoch = epoch + 1, node = $2, expires_at = ",
        now!(),
        " + $3 WHERE shard = (SELECT shard FROM punctual.lease
            WHERE shard = $1 AND (node IS NULL OR node = $2 OR expires_at <= ",
        now!(),
        ") FOR UPDATE SKIP LOCKED) RETURNING epoch, expires_at"
    );
    let row = session.find(sql, &[&(shard.0 as i32), &&node.0[..], &nanos(ttl)]).await?;
    Ok(row.map(|row| Lease {
        shard,
        node: node.clone(),
        epoch: Epoch(row.get::<_, i64>(0) as u64),
        expires_at: at(row.get(1)),
    }))
}

/// Makes leases last longer, those that were not lost.
pub(crate) async fn renew(
    session: &Session,
    leases: &[Lease],
    ttl: SignedDuration,
    spots: &Known<i32>,
) -> Result<Vec<Result<Lease, StoreError>>, Fault> {
    let sql = concat!(
        "UPDATE punctual.lease SET expires_at = ",
        now!(),
        " + $3 FROM unnest($1::integer[], $2::bigint[]) AS held (shard, epoch)
        WHERE lease.shard = held.shard AND lease.epoch = held.epoch AND lease.node IS NOT NULL AND ",
        at_once!(),
        " RETURNING lease.shard, lease.expires_at, lease.ctid"
    );
    let shards: Vec<i32> = leases.iter().map(|lease| lease.shard.0 as i32).collect();
    let epochs: Vec<i64> = leases.iter().map(|lease| lease.epoch.0 as i64).collect();
    let rows = session.query(sql, &[&shards, &epochs, &nanos(ttl)]).await?;
    spots.learn(rows.iter().map(|row| (row.get(0), row.get(2))));
    let answer = |lease: &Lease| {
        let row = rows.iter().find(|row| row.get::<_, i32>(0) as u32 == lease.shard.0);
        let renewed = row.map(|row| Lease { expires_at: at(row.get(1)), ..lease.clone() });
        renewed.ok_or(StoreError::Fenced { epoch: lease.epoch })
    };
    Ok(leases.iter().map(answer).collect())
}

pub(crate) async fn release(session: &Session, lease: &Lease) -> Result<(), Fault> {
    let sql = concat!(
        "UPDATE punctual.lease SET node = NULL, expires_at = NULL WHERE shard = $1 AND epoch = $2 AND ",
        at_once!()
    );
    session.execute(sql, &[&(lease.shard.0 as i32), &(lease.epoch.0 as i64)]).await?;
    Ok(())
}

pub(crate) async fn reserve(session: &Session, count: i64) -> Result<i64, Fault> {
    let sql = "UPDATE punctual.meta SET number = number + $1 WHERE name = 'next_key' RETURNING number - $1";
    let row = session.find(sql, &[&count]).await?;
    let row = row.ok_or_else(|| StoreError::corrupted("the table meta", "next_key is missing"))?;
    Ok(row.get(0))
}

/// A node is alive. One transaction, so that it hears of a state that was.
pub(crate) async fn beat(session: &Session, beat: &Beat) -> Result<Roster, Fault> {
    let sql = concat!(
        "WITH before AS (SELECT expires_at > ",
        now!(),
        " AS alive FROM punctual.node WHERE node = $1),
        written AS (
            INSERT INTO punctual.node AS node (node, keeper, started_at, version, expires_at, draining, report)
            VALUES ($1, $2, $3, $4, ",
        now!(),
        " + $5, false, $6)
            ON CONFLICT (node) DO UPDATE SET keeper = excluded.keeper, started_at = excluded.started_at,
                version = excluded.version, expires_at = excluded.expires_at,
                report = coalesce(excluded.report, node.report)
        )
        SELECT NOT coalesce((SELECT alive FROM before), false) WHERE ",
        at_once!()
    );
    let (started_at, report) = (time(beat.started_at), beat.report.as_deref());
    let row = session
        .find(
            sql,
            &[&&beat.node.0[..], &beat.keeper.0, &started_at, &beat.version, &nanos(beat.ttl), &report],
        )
        .await?;
    let was_over: bool = row.is_some_and(|row| row.get(0));
    if was_over {
        session.execute("SELECT punctual.tell('N')", &[]).await?;
    }
    Ok(Roster { was_over, ..roster(session).await? })
}

pub(crate) async fn roster(session: &Session) -> Result<Roster, Fault> {
    let nodes = session.query(
        "SELECT node, keeper, started_at, version, expires_at, draining FROM punctual.node ORDER BY keeper",
        &[],
    );
    let leases = session.query(
        "SELECT shard, node, epoch, expires_at FROM punctual.lease WHERE node IS NOT NULL ORDER BY shard",
        &[],
    );
    let (now, nodes, leases) = try_join3(now(session), nodes, leases).await?;
    let (nodes, leases) = (nodes.iter().map(node).collect(), leases.iter().map(lease).collect());
    Ok(Roster { now, was_over: false, nodes, leases })
}

pub(crate) async fn reports(session: &Session) -> Result<Vec<(Keeper, Bytes)>, Fault> {
    let sql = concat!(
        "SELECT keeper, report FROM punctual.node WHERE report IS NOT NULL AND expires_at > ",
        now!(),
        " ORDER BY keeper"
    );
    let rows = session.query(sql, &[]).await?;
    Ok(rows.iter().map(|row| (Keeper(row.get(0)), row.get::<_, &[u8]>(1).into())).collect())
}

fn node(row: &Row) -> NodeSeen {
    NodeSeen {
        node: NodeId(row.get::<_, &str>(0).into()),
        keeper: Keeper(row.get(1)),
        started_at: at(row.get(2)),
        version: row.get(3),
        expires_at: at(row.get(4)),
        draining: row.get(5),
    }
}

fn lease(row: &Row) -> Lease {
    Lease {
        shard: ShardId(row.get::<_, i32>(0) as u32),
        node: NodeId(row.get::<_, &str>(1).into()),
        epoch: Epoch(row.get::<_, i64>(2) as u64),
        expires_at: row.get::<_, Option<i64>>(3).map_or(Timestamp::MIN, at),
    }
}

/// Strikes a node off, with all that it held.
pub(crate) async fn strike(session: &Session, node: &NodeId, leaves: bool) -> Result<(), Fault> {
    let sql = concat!(
        "DELETE FROM punctual.node WHERE node = $1 AND ($2 OR expires_at <= ",
        now!(),
        ") RETURNING punctual.tell('N')"
    );
    if session.execute(sql, &[&&node.0[..], &leaves]).await? > 0 {
        let sql = "UPDATE punctual.lease SET node = NULL, expires_at = NULL WHERE node = $1";
        session.execute(sql, &[&&node.0[..]]).await?;
    }
    Ok(())
}

pub(crate) async fn drain(session: &Session, node: &NodeId, draining: bool) -> Result<bool, Fault> {
    let sql = "UPDATE punctual.node SET draining = $2 WHERE node = $1 RETURNING punctual.tell('N')";
    Ok(session.execute(sql, &[&&node.0[..], &draining]).await? > 0)
}
