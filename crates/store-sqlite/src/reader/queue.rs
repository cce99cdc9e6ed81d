//! The queues, by name, and who is first in line.

use jiff::Timestamp;
use punctual_store::{Queue, QueueKey};
use rusqlite::{Connection, OptionalExtension};

use crate::fault::Fault;
use crate::value;
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

/// When the run that is first in line was made.
pub(crate) fn first_made_at(connection: &Connection, queue: QueueKey) -> Result<Option<Timestamp>, Fault> {
    let mut statement = connection.prepare_cached(include_str!("../../queries/queue_depth.sql"))?;
    Ok(statement.query_row([queue.0], |row| value::time(row, 0)).optional()?)
}
