//! The queues, by name.

use punctual_store::Queue;
use rusqlite::Connection;

use crate::fault::Fault;
use crate::writer::stored_queue;

/// The queues of a namespace, or of all.
pub(crate) fn queues(connection: &Connection, namespace: Option<&str>) -> Result<Vec<Queue>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT queue, namespace, name, settings, created_at FROM queue
        WHERE ?1 IS NULL OR namespace = ?1 ORDER BY namespace, name",
    )?;
    let queues = statement.query_map([namespace], stored_queue)?;
    Ok(queues.collect::<Result<_, _>>()?)
}
