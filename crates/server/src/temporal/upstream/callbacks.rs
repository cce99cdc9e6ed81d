//! Callbacks of the cluster: which starts ask for one, and for how long none is relied on after they failed.
//!
//! A callback is the word that a workflow is over, never how it ended: that is asked of the cluster (`ended`). So a token that
//! leaks ends nothing, and results stay exact. What callbacks cannot be relied on for is polled for, as it is without them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_actions::Claim;
use punctual_engine::Claimed;
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::wire::common::{Callback, callback};
use crate::app::App;

/// Where they are sent.
pub(crate) const PATH: &str = "/temporal/v1/ended";

/// What their tokens are for.
pub(super) const PURPOSE: &str = "workflow";

/// The header that has the token.
pub(super) const TOKEN_HEADER: &str = "punctual-token";

/// How long a token is good. Workflows may last for years, and all that it can do is to have the cluster asked.
const TOKEN_TIME: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

/// How long no callback is asked for or relied on after the cluster refused one or one did not come.
const DOUBT: Duration = Duration::from_secs(600);

/// The same where they did not come time after time: each trial costs some workflow a minute.
const DOUBT_MAX: Duration = Duration::from_secs(24 * 3_600);

/// How the end of a workflow was heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The cluster said so by itself.
    Callback,
    /// By the look now and then that stands behind a callback.
    Look,
    /// By a long poll.
    Poll,
}

/// All of them, by the words of the metric.
pub(crate) const WAYS: [(Way, &str); 3] =
    [(Way::Callback, "callback"), (Way::Look, "look"), (Way::Poll, "poll")];

/// What this node knows of the cluster's callbacks.
pub(crate) struct Callbacks {
    /// Where they are sent; nothing if the cluster has no way to this server that is known here.
    url: Option<String>,
    /// Clusters allow addresses for each namespace.
    doubts: watch::Sender<Doubts>,
    ends: [AtomicU64; WAYS.len()],
}

/// Until when those of a namespace are doubted, and how long that was.
type Doubts = BTreeMap<Arc<str>, (Instant, Duration)>;

impl Callbacks {
    /// Callbacks to this URL, or none.
    pub(super) fn new(url: Option<String>) -> Callbacks {
        Callbacks { url, doubts: watch::Sender::default(), ends: Default::default() }
    }

    /// What a start asks the cluster to call when its workflow has ended, unless that is in vain.
    pub(super) fn of(&self, app: &App, claimed: &Claimed) -> Option<Callback> {
        let namespace = &claimed.body.namespace;
        let url = self.url.clone().filter(|_| self.are_relied_on(namespace))?;
        let expires = app.engine.now().checked_add(TOKEN_TIME).unwrap_or(Timestamp::MAX);
        let token = app.calls.sign(&Claim {
            purpose: PURPOSE.into(),
            namespace: namespace.to_string(),
            run: claimed.live.made.run.0,
            expires: expires.as_second(),
        });
        let header = [(TOKEN_HEADER.to_owned(), token)].into();
        let nexus = callback::Variant::Nexus(callback::Nexus { url, header });
        Some(Callback { variant: Some(nexus), ..Callback::default() })
    }

    /// Whether those of a namespace come, as far as is known.
    pub(super) fn are_relied_on(&self, namespace: &str) -> bool {
        !is_doubted(&self.doubts.borrow(), namespace)
    }

    /// Ends when those of a namespace are doubted.
    pub(super) async fn doubted(&self, namespace: &str) {
        // The sender is in `self`, so waiting cannot fail.
        let _ = self.doubts.subscribe().wait_for(|doubts| is_doubted(doubts, namespace)).await;
    }

    /// The cluster refuses callbacks: for a while it is not asked for any.
    pub(super) fn refused(&self, namespace: &Arc<str>, said: &str) {
        if self.doubt(namespace, |_| DOUBT) {
            let url = self.url.as_deref().unwrap_or_default();
            tracing::info!(%namespace, url, said, "the cluster allows no callbacks; ends of workflows are polled for");
        }
    }

    /// A callback did not come: for a while none is relied on.
    pub(super) fn missed(&self, namespace: &Arc<str>) {
        if self.doubt(namespace, |before| (before * 2).min(DOUBT_MAX)) {
            let url = self.url.as_deref().unwrap_or_default();
            tracing::warn!(%namespace, url, "callbacks of the cluster do not arrive; ends of workflows are polled for");
        }
    }

    /// A callback came: the next doubt is a short one.
    pub(super) fn came(&self, namespace: &str) {
        self.doubts.send_if_modified(|doubts| {
            if !is_doubted(doubts, namespace) {
                doubts.remove(namespace);
            }
            false
        });
    }

    /// False if they are doubted already: many that fail together are one reason.
    fn doubt(&self, namespace: &Arc<str>, again: fn(Duration) -> Duration) -> bool {
        self.doubts.send_if_modified(|doubts| {
            if is_doubted(doubts, namespace) {
                return false;
            }
            let length = doubts.get(namespace).map_or(DOUBT, |(_, length)| again(*length));
            doubts.insert(namespace.clone(), (Instant::now() + length, length));
            true
        })
    }

    /// Counts the end of a workflow.
    pub(super) fn count(&self, way: Way) {
        self.ends[way as usize].fetch_add(1, Relaxed);
    }

    /// How many ends were heard of in this way.
    pub(crate) fn counted(&self, way: Way) -> u64 {
        self.ends[way as usize].load(Relaxed)
    }
}

fn is_doubted(doubts: &Doubts, namespace: &str) -> bool {
    doubts.get(namespace).is_some_and(|(until, _)| Instant::now() < *until)
}

/// Where the cluster finds this server: where the operator says, or, on the same machine, where it listens.
pub(super) fn url(given: &str, listens: SocketAddr, cluster: &str) -> Option<String> {
    if !given.is_empty() {
        return Some(format!("{}{PATH}", given.trim_end_matches('/')));
    }
    let cluster = cluster.trim_matches(['[', ']']);
    let is_here =
        cluster == "localhost" || cluster.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    let mut listens = listens;
    match listens.ip() {
        // All addresses are no address.
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => listens.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => listens.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    is_here.then(|| format!("http://{listens}{PATH}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_elsewhere_is_told_only_what_the_operator_says() {
        let at = |given: &str, listens: &str, cluster: &str| url(given, listens.parse().unwrap(), cluster);
        let here = Some("http://127.0.0.1:7233/temporal/v1/ended".to_owned());
        for cluster in ["127.0.0.1", "localhost", "[::1]"] {
            assert_eq!(at("", "127.0.0.1:7233", cluster), here, "{cluster}");
            assert_eq!(at("", "0.0.0.0:7233", cluster), here, "{cluster}");
        }
        assert_eq!(at("", "127.0.0.1:7233", "temporal.example.com"), None);
        assert_eq!(at("", "0.0.0.0:7233", "10.0.0.7"), None);
        let said = at("https://punctual.example.com/", "0.0.0.0:7233", "10.0.0.7");
        assert_eq!(said.as_deref(), Some("https://punctual.example.com/temporal/v1/ended"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_doubt_is_of_one_namespace_and_passes_later_each_time() {
        let callbacks = Callbacks::new(Some("http://127.0.0.1:1/".into()));
        let one: Arc<str> = "one".into();
        for minutes in [10, 20, 40] {
            callbacks.missed(&one);
            callbacks.missed(&one);
            callbacks.doubted(&one).await;
            assert!(!callbacks.are_relied_on(&one) && callbacks.are_relied_on("other"));
            tokio::time::advance(Duration::from_secs(minutes * 60 - 1)).await;
            assert!(!callbacks.are_relied_on(&one), "after {minutes} minutes");
            tokio::time::advance(Duration::from_secs(2)).await;
            assert!(callbacks.are_relied_on(&one), "after {minutes} minutes");
        }
        callbacks.came(&one);
        callbacks.missed(&one);
        tokio::time::advance(DOUBT).await;
        assert!(callbacks.are_relied_on(&one));
        callbacks.refused(&one, "no");
        tokio::time::advance(DOUBT).await;
        assert!(callbacks.are_relied_on(&one), "a refusal costs nothing but a request");
    }
}
