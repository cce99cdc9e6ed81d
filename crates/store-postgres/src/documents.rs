//! Documents: written by whoever saw the last version.

use punctual_store::Document;

use crate::fault::Fault;
use crate::session::Session;

/// A document, if it was ever written.
pub(crate) async fn read(session: &Session, name: &str) -> Result<Option<Document>, Fault> {
    let row = session.find("SELECT version, bytes FROM punctual.document WHERE name = $1", &[&name]).await?;
    Ok(row.map(|row| Document { version: row.get::<_, i64>(0) as u64, bytes: row.get::<_, &[u8]>(1).into() }))
}

/// Writes a document that was written this often before; false if it was not.
pub(crate) async fn put(session: &Session, name: &str, version: u64, bytes: &[u8]) -> Result<bool, Fault> {
    let written = match version {
        0 => {
            let sql = "INSERT INTO punctual.document (name, version, bytes) VALUES ($1, 1, $2) ON CONFLICT DO NOTHING";
            session.execute(sql, &[&name, &bytes]).await?
        }
        version => {
            let sql = "UPDATE punctual.document SET version = version + 1, bytes = $3
                WHERE name = $1 AND version = $2";
            session.execute(sql, &[&name, &(version as i64), &bytes]).await?
        }
    };
    Ok(written == 1)
}
