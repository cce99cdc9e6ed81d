//! Declaring a queue: whoever comes second gets what the first declared.

use punctual_store::{NewQueue, Queue, QueueKey};
use rusqlite::{OptionalExtension, Row};

use super::Writer;
use crate::fault::Fault;
use crate::value::{self, Time};

impl Writer<'_> {
    /// Declares a queue, or gives back the one of this name.
    pub(crate) fn create_queue(&mut self, made: &NewQueue) -> Result<Queue, Fault> {
        let name = (&made.namespace[..], &made.name[..]);
        if let Some(known) = self.statements.queue.query_row(name, stored_queue).optional()? {
            return Ok(known);
        }
        let key = self.reserve(1)?;
        let row = (key, &made.namespace[..], &made.name[..], &made.settings[..], Time(made.created_at));
        self.statements.insert_queue.execute(row)?;
        Ok(Queue { queue: QueueKey(key), made: made.clone() })
    }
}

/// A queue from its row.
pub(crate) fn stored_queue(row: &Row<'_>) -> rusqlite::Result<Queue> {
    let made = NewQueue {
        namespace: row.get(1)?,
        name: row.get(2)?,
        settings: row.get(3)?,
        created_at: value::time(row, 4)?,
    };
    Ok(Queue { queue: QueueKey(row.get(0)?), made })
}
