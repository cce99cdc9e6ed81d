//! Queues: declared once, and changed while runs are in them.

use std::sync::Arc;

use punctual_store::record::{decode_queue, encode_queue};
use punctual_store::{NewQueue, Queue, QueueKey, QueueSettings};
use rusqlite::types::Type;
use rusqlite::{Error, OptionalExtension, Row};

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
        let settings = encode_queue(&made.settings);
        let row = (key, &made.namespace[..], &made.name[..], &settings[..], Time(made.created_at));
        self.statements.insert_queue.execute(row)?;
        self.know_settings(key, &made.settings);
        Ok(Queue { queue: QueueKey(key), made: made.clone() })
    }

    /// Changes the settings of a queue, if there is such a queue.
    pub(crate) fn update_queue(
        &mut self,
        queue: QueueKey,
        settings: &QueueSettings,
    ) -> Result<Option<Queue>, Fault> {
        let Some(known) = self.statements.queue_of_key.query_row([queue.0], stored_queue).optional()? else {
            return Ok(None);
        };
        self.statements.update_queue.execute((queue.0, &encode_queue(settings)[..]))?;
        self.know_settings(queue.0, settings);
        self.rebuild(queue.0, &known.made.settings, settings)?;
        let made = NewQueue { settings: settings.clone(), ..known.made };
        Ok(Some(Queue { queue, made }))
    }

    fn know_settings(&mut self, queue: i64, settings: &QueueSettings) {
        Arc::make_mut(&mut self.known.queues).insert(queue, Arc::new(settings.clone()));
    }
}

/// A queue from its row.
pub(crate) fn stored_queue(row: &Row<'_>) -> rusqlite::Result<Queue> {
    let made = NewQueue {
        namespace: row.get(1)?,
        name: row.get(2)?,
        settings: read_settings(row, 3)?,
        created_at: value::time(row, 4)?,
    };
    Ok(Queue { queue: QueueKey(row.get(0)?), made })
}

/// What is set about a queue, from its row.
pub(super) fn read_settings(row: &Row<'_>, column: usize) -> rusqlite::Result<QueueSettings> {
    let bytes: Vec<u8> = row.get(column)?;
    decode_queue(&bytes).map_err(|odd| Error::FromSqlConversionFailure(column, Type::Blob, Box::new(odd)))
}
