//! A proxy on the way to the database that lends its connections by transaction: what it must do for us is tried at the start, since
//! later it would fail when two are busy at once for the first time.

use std::time::Duration;

use punctual_store::{News, StoreError};

use crate::Options;
use crate::fault::Fault;
use crate::news::Listeners;
use crate::session::{Address, Purpose, Session};

/// How long news may take to come back to who told them.
const NEWS_MAX: Duration = Duration::from_secs(5);

/// How long a second connection is waited for: a proxy may have one only, which knows our statements then.
const SECOND_MAX: Duration = Duration::from_secs(2);

/// Such a proxy swallows news.
pub(crate) async fn hear_oneself(session: &Session, listeners: &Listeners) -> Result<(), StoreError> {
    let mut news = listeners.add();
    session.execute("SELECT punctual.tell('N')", &[]).await.map_err(|fault| fault.answer())?;
    let heard = async { while news.recv().await.is_some_and(|heard| heard != News::Roster) {} };
    tokio::time::timeout(NEWS_MAX, heard).await.map_err(|_| {
        StoreError::unavailable(
            "what is told with NOTIFY is not heard with LISTEN: the address leads through a proxy that hands out \
             connections by transaction. Give an address for listening that leads to the server itself",
        )
    })
}

/// Such a proxy must know our prepared statements on whatever connection a transaction gets.
pub(crate) async fn keeps_statements(
    session: &Session,
    address: &Address,
    options: &Options,
) -> Result<(), Fault> {
    const ANY: &str = "SELECT 1";
    session.execute(ANY, &[]).await?;
    let other = Session::open(address, options, Purpose::Read, |_| {}).await?;
    // It gets the connection that was used last, and keeps it: for us there must be another one.
    other.run("BEGIN").await?;
    match tokio::time::timeout(SECOND_MAX, session.execute(ANY, &[])).await {
        Ok(answer) => answer.map(drop),
        Err(_) => Ok(()),
    }
}
