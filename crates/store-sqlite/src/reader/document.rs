//! Documents, by their names.

use punctual_store::Document;
use rusqlite::{Connection, OptionalExtension};

use crate::fault::Fault;

/// A document, if it was ever written.
pub(crate) fn document(connection: &Connection, name: &str) -> Result<Option<Document>, Fault> {
    let mut find = connection.prepare_cached("SELECT version, bytes FROM document WHERE name = ?1")?;
    let found = find.query_row([name], |row| {
        let (version, bytes): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        Ok(Document { version: version as u64, bytes: bytes.into() })
    });
    Ok(found.optional()?)
}
