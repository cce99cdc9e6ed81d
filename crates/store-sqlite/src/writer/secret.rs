//! The secret of this file: the first one that somebody brought.

use punctual_store::StoreError;
use rusqlite::OptionalExtension;

use super::Writer;
use crate::fault::Fault;

impl Writer<'_> {
    /// The secret; the given one becomes it if there is none yet.
    pub(crate) fn secret(&mut self, fresh: &[u8; 32]) -> Result<[u8; 32], Fault> {
        let known: Option<Vec<u8>> = self.statements.secret.query_row((), |row| row.get(0)).optional()?;
        let Some(known) = known else {
            self.statements.set_secret.execute([&fresh[..]])?;
            return Ok(*fresh);
        };
        let odd = |_| StoreError::corrupted("the secret", "it is not 32 bytes long");
        Ok(known.try_into().map_err(odd)?)
    }
}
