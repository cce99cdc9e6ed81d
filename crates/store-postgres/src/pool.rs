//! A few connections that many share. Each carries several questions at a time; one that was lost is opened again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, MutexGuard};

use crate::fault::Fault;
use crate::options::Options;
use crate::session::{Address, Purpose, Session};

/// Keeps others away from a connection.
pub(crate) type Guard<'a> = MutexGuard<'a, Option<Arc<Session>>>;

/// A few connections.
pub(crate) struct Pool {
    address: Address,
    options: Arc<Options>,
    purpose: Purpose,
    places: Vec<Mutex<Option<Arc<Session>>>>,
    next: AtomicUsize,
}

impl Pool {
    pub(crate) fn new(address: Address, options: Arc<Options>, purpose: Purpose, count: usize) -> Pool {
        let places = (0..count.max(1)).map(|_| Mutex::default()).collect();
        Pool { address, options, purpose, places, next: AtomicUsize::new(0) }
    }

    /// A connection, opened if need be. Others may use it at the same time where that is possible, so no transaction may be begun
    /// on it but by [`Session::within`].
    pub(crate) async fn session(&self) -> Result<(Arc<Session>, Option<Guard<'_>>), Fault> {
        let (session, guard) = self.alone().await?;
        let guard = Some(guard).filter(|_| !session.is_shareable());
        Ok((session, guard))
    }

    /// A connection that nobody else uses until the guard is gone.
    pub(crate) async fn alone(&self) -> Result<(Arc<Session>, Guard<'_>), Fault> {
        let place = self.next.fetch_add(1, Ordering::Relaxed) % self.places.len();
        let mut held = self.places[place].lock().await;
        let session = self.opened(&mut held).await?;
        Ok((session, held))
    }

    async fn opened(&self, held: &mut Option<Arc<Session>>) -> Result<Arc<Session>, Fault> {
        if let Some(session) = held.as_ref().filter(|session| !session.is_closed()) {
            return Ok(session.clone());
        }
        let session = Arc::new(Session::open(&self.address, &self.options, self.purpose, |_| {}).await?);
        *held = Some(session.clone());
        Ok(session)
    }
}
