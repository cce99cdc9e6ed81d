//! Names become addresses, and only those that are permitted go on to be connected to.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tokio::sync::{Semaphore, watch};
use tower_service::Service;

use crate::limits::LOOKUPS_MAX;
use crate::rules::{Rules, how_to_permit};

/// What [`Resolve::resolve`] returns.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up names. Tests bring their own.
pub trait Resolve: Send + Sync {
    /// The addresses of a name, as of now.
    fn resolve(&self, host: &str) -> Resolving;
}

/// Why there is no address to connect to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error("name {host} is not known: {reason}")]
    NotResolved { host: String, reason: String },
    #[error("name {host} has address {address}, which is not public; {}", how_to_permit(*address))]
    Refused { host: String, address: IpAddr },
}

/// Hands on what was checked and nothing else: the connection goes to these addresses without a second look-up, so an answer
/// that changes in between changes nothing.
#[derive(Clone)]
pub(crate) struct CheckedResolver {
    pub inner: Arc<dyn Resolve>,
    pub rules: Arc<Rules>,
}

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = ResolveError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ResolveError>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), ResolveError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (host, rules) = (name.as_str().to_owned(), self.rules.clone());
        let resolving = self.inner.resolve(&host);
        Box::pin(async move {
            let found = match resolving.await {
                Ok(found) => found,
                Err(error) => return Err(ResolveError::NotResolved { host, reason: error.to_string() }),
            };
            let Some(first) = found.first().copied() else {
                return Err(ResolveError::NotResolved { host, reason: "it has no addresses".to_owned() });
            };
            let permitted: Vec<IpAddr> =
                found.into_iter().filter(|address| rules.permits(*address)).collect();
            if permitted.is_empty() {
                return Err(ResolveError::Refused { host, address: first });
            }
            // The port is the URL's; the connector sets it.
            let addresses: Vec<_> =
                permitted.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
            Ok(addresses.into_iter())
        })
    }
}

type Answer = Result<Vec<IpAddr>, String>;

/// Asks the system. Those who ask for the same name at the same time share one answer: the system keeps a thread for each
/// question, for as long as a dead name server takes.
#[derive(Clone, Default)]
pub(crate) struct SystemResolver {
    state: Arc<State>,
}

struct State {
    lookups: Semaphore,
    asked: Mutex<HashMap<String, watch::Receiver<Option<Answer>>>>,
}

impl Default for State {
    fn default() -> State {
        State { lookups: Semaphore::new(LOOKUPS_MAX), asked: Mutex::default() }
    }
}

impl State {
    fn asked(&self) -> MutexGuard<'_, HashMap<String, watch::Receiver<Option<Answer>>>> {
        self.asked.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Goes on when nobody waits any more: the thread is taken in any case, and so its place is.
    async fn ask(&self, host: &str) -> Answer {
        let _place = self.lookups.acquire().await;
        match tokio::net::lookup_host((host, 0)).await {
            Ok(found) => Ok(found.map(|address| address.ip()).collect()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> Resolving {
        let mut asked = self.state.asked();
        let answer = asked.entry(host.to_owned()).or_insert_with(|| {
            let (sender, receiver) = watch::channel(None);
            let (state, host) = (self.state.clone(), host.to_owned());
            tokio::spawn(async move {
                let answer = state.ask(&host).await;
                state.asked().remove(&host);
                sender.send_replace(Some(answer));
            });
            receiver
        });
        let mut answer = answer.clone();
        drop(asked);
        Box::pin(async move {
            match answer.wait_for(Option::is_some).await {
                Ok(found) => found.clone().unwrap_or_else(|| Ok(Vec::new())).map_err(io::Error::other),
                Err(_) => Err(io::Error::other("the look-up was given up")),
            }
        })
    }
}
