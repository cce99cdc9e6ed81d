//! Notes in the table `meta`: that something is being moved here, from where, and how far each table is.

use std::collections::BTreeSet;

use punctual_store::StoreError;
use punctual_store::transfer::{Cell, Facts, TABLES, Table, decode_cells, encode_cells};

use super::ImportError;
use crate::fault::Fault;
use crate::open::LOCK;
use crate::roster;
use crate::session::Session;
use crate::value::time;

/// Where a table is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// Rows that were moved.
    pub(super) rows: u64,
    /// The key of the last one.
    pub(super) after: Option<Vec<Cell>>,
}

/// Where to begin.
pub(super) enum Start {
    /// Nowhere: it is done.
    Finished,
    /// Each table at its place.
    At(Vec<Position>),
}

/// A server must not begin with a part of what belongs together.
pub(crate) async fn refuse_unfinished(session: &Session) -> Result<(), Fault> {
    match bytes(session, "migration").await? {
        None => Ok(()),
        Some(_) => Err(StoreError::unavailable(
            "a migration to this database is not finished: run the same `punctual migrate` again to finish it, or with \
             --restart to begin it anew",
        )
        .into()),
    }
}

/// Sees that nothing is in the way, and leaves a note that keeps servers out.
pub(super) async fn begin(
    session: &Session,
    facts: &Facts,
    queues: &BTreeSet<Vec<u8>>,
    restart: bool,
) -> Result<Start, ImportError> {
    let begun = session.transact(async {
        session.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        if let Some(node) = living_node(session).await? {
            return Ok(Err(ImportError::InUse { node }));
        }
        match bytes(session, "migration").await? {
            Some(_) if restart => empty(session).await?,
            Some(known) if known == facts.fingerprint => return Ok(Ok(Start::At(positions(session).await?))),
            Some(_) => return Ok(Err(ImportError::OtherSource)),
            None => {
                if bytes(session, "migrated").await?.is_some_and(|known| known == facts.fingerprint) {
                    return Ok(Ok(Start::Finished));
                }
                if let Some(found) = found(session, queues).await? {
                    return Ok(Err(ImportError::NotEmpty { found }));
                }
                // Queues that every server declares when it starts for the first time; the source has them too.
                empty(session).await?;
            }
        }
        let sql = "INSERT INTO punctual.meta (name, number, bytes) VALUES ('migration', 1, $1)";
        session.execute(sql, &[&&facts.fingerprint[..]]).await?;
        let names: Vec<String> = TABLES.iter().map(note).collect();
        let sql = "INSERT INTO punctual.meta (name, number) SELECT name, 0 FROM unnest($1::text[]) AS name";
        session.execute(sql, &[&names]).await?;
        Ok(Ok(Start::At(vec![Position::default(); TABLES.len()])))
    });
    begun.await?
}

/// Notes how far a table is; false if it is not where it was left, or something else is being moved by now.
pub(super) async fn advance(
    session: &Session,
    table: &Table,
    fingerprint: &[u8; 16],
    (from, to): (&Position, &Position),
) -> Result<bool, Fault> {
    let after = to.after.as_deref().map(encode_cells);
    let sql = "UPDATE punctual.meta SET number = $2, bytes = $3 WHERE name = $1 AND number = $4
        AND EXISTS (SELECT FROM punctual.meta WHERE name = 'migration' AND bytes = $5)";
    let (before, now) = (from.rows as i64, to.rows as i64);
    Ok(session.execute(sql, &[&note(table), &now, &after, &before, &&fingerprint[..]]).await? == 1)
}

/// Lets servers in, in the same transaction as what they need beside the tables.
pub(super) async fn finish(session: &Session, facts: &Facts) -> Result<(), ImportError> {
    let finished = session.transact(async {
        session.run("SET LOCAL synchronous_commit = on").await?;
        session.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        if let Some(node) = living_node(session).await? {
            return Ok(Err(ImportError::InUse { node }));
        }
        let sql = "DELETE FROM punctual.meta WHERE name = 'migration' AND bytes = $1";
        if session.execute(sql, &[&&facts.fingerprint[..]]).await? == 0 {
            return Ok(Err(ImportError::Raced));
        }
        session.execute("DELETE FROM punctual.meta WHERE name LIKE 'migration:%'", &[]).await?;
        let sql = "UPDATE punctual.meta SET number = greatest(number, $1,
                (SELECT max(queue) + 1 FROM punctual.queue), (SELECT max(tree) + 1 FROM punctual.schedule),
                (SELECT max(tree) + 1 FROM punctual.state), (SELECT max(run) + 1 FROM punctual.run_live),
                (SELECT max(run) + 1 FROM punctual.run_closed))
            WHERE name = 'next_key'";
        session.execute(sql, &[&facts.next_key]).await?;
        let sql = "INSERT INTO punctual.meta (name, bytes) VALUES ($1, $2)
            ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes";
        if let Some(secret) = &facts.secret {
            session.execute(sql, &[&"secret", &&secret[..]]).await?;
        }
        session.execute(sql, &[&"migrated", &&facts.fingerprint[..]]).await?;
        Ok(Ok(()))
    });
    finished.await?
}

fn note(table: &Table) -> String {
    format!("migration:{}", table.name)
}

async fn bytes(session: &Session, name: &str) -> Result<Option<Vec<u8>>, Fault> {
    let row = session.find("SELECT bytes FROM punctual.meta WHERE name = $1", &[&name]).await?;
    Ok(row.and_then(|row| row.get(0)))
}

async fn positions(session: &Session) -> Result<Vec<Position>, Fault> {
    let mut positions = Vec::new();
    for table in &TABLES {
        let name = note(table);
        let odd =
            || StoreError::corrupted(format!("the note {name}"), "it makes no sense; --restart begins anew");
        // Waits for a piece of an earlier try that is just being written.
        let sql = "SELECT number, bytes FROM punctual.meta WHERE name = $1 FOR UPDATE";
        let row = session.find(sql, &[&name]).await?.ok_or_else(odd)?;
        let after: Option<&[u8]> = row.get(1);
        let after = after.map(|after| decode_cells(after).ok_or_else(odd)).transpose()?;
        positions.push(Position { rows: row.get::<_, i64>(0) as u64, after });
    }
    Ok(positions)
}

/// A node whose time is not over.
async fn living_node(session: &Session) -> Result<Option<String>, Fault> {
    let now = time(roster::now(session).await?);
    let sql = "SELECT node FROM punctual.node WHERE expires_at > $1 ORDER BY node LIMIT 1";
    Ok(session.find(sql, &[&now]).await?.map(|row| row.get(0)))
}

/// What is there that nobody moved; queues only if the source has none of that name.
async fn found(session: &Session, queues: &BTreeSet<Vec<u8>>) -> Result<Option<String>, Fault> {
    let things = [("schedule", "schedules"), ("run_live", "runs"), ("run_closed", "runs that have ended")];
    for (table, words) in things.into_iter().chain([("ledger", "verdicts"), ("request", "requests")]) {
        if session
            .count(&format!("SELECT count(*) FROM (SELECT 1 FROM punctual.{table} LIMIT 1) AS one"))
            .await?
            > 0
        {
            return Ok(Some(words.to_owned()));
        }
    }
    for row in session.query("SELECT namespace, name FROM punctual.queue ORDER BY 1, 2", &[]).await? {
        let (namespace, name): (&str, &str) = (row.get(0), row.get(1));
        if !queues.contains(&encode_cells(&[Cell::Text(namespace.into()), Cell::Text(name.into())])) {
            return Ok(Some(format!("the queue {name} in the namespace {namespace}")));
        }
    }
    Ok(None)
}

/// Removes what was moved, and the notes about it.
async fn empty(session: &Session) -> Result<(), Fault> {
    let tables: Vec<String> = TABLES.iter().map(|table| format!("punctual.{}", table.name)).collect();
    session.run(&format!("TRUNCATE {}", tables.join(", "))).await?;
    let sql = "DELETE FROM punctual.meta WHERE name IN ('migration', 'migrated', 'secret') OR name LIKE 'migration:%'";
    session.execute(sql, &[]).await?;
    Ok(())
}
