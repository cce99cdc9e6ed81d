//! Documents: written by whoever saw the last version.

use super::Writer;
use crate::fault::Fault;

impl Writer<'_> {
    /// Writes a document that was written this often before; false if it was not.
    pub(crate) fn put_document(&mut self, name: &str, version: u64, bytes: &[u8]) -> Result<bool, Fault> {
        let written = match version {
            0 => self.statements.insert_document.execute((name, bytes))?,
            version => self.statements.update_document.execute((name, version as i64, bytes))?,
        };
        Ok(written == 1)
    }
}
