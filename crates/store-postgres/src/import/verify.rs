//! Both sides summed up: the rows that should stand here, and those that do.

use std::sync::Arc;

use futures_util::TryStreamExt;
use punctual_store::transfer::{Table, Tally};

use super::shape::{Shape, Value};
use super::{ImportError, Shared, read};
use crate::fault::Fault;
use crate::session::Session;

/// What should be here: every row of the source, as it should look.
pub(super) async fn source_tally(
    source: Shared,
    table: &'static Table,
    shape: Arc<Shape>,
) -> Result<Tally, ImportError> {
    let (mut tally, mut after, mut bytes) = (Tally::default(), None, Vec::new());
    loop {
        let rows = read(source.clone(), table, after).await?;
        let Some(last) = rows.last() else { return Ok(tally) };
        after = Some(last[..table.key].to_vec());
        for row in &rows {
            bytes.clear();
            shape.fit(row).map_err(ImportError::Source)?.iter().for_each(|value| value.write(&mut bytes));
            tally.add(&bytes);
        }
    }
}

/// What is here.
pub(super) async fn target_tally(session: &Session, shape: &Shape) -> Result<Tally, Fault> {
    session
        .transact(async {
            // All rows of a large table take a while.
            session.run("SET LOCAL statement_timeout = 0").await?;
            let rows = session.stream(&shape.select()).await?;
            tokio::pin!(rows);
            let (mut tally, mut bytes) = (Tally::default(), Vec::new());
            while let Some(row) = rows.try_next().await? {
                bytes.clear();
                for place in 0..row.len() {
                    row.try_get::<_, Value>(place)?.write(&mut bytes);
                }
                tally.add(&bytes);
            }
            Ok(tally)
        })
        .await
}
