//! How the store talks to its database.

use std::time::Duration;

use crate::session::Purpose;

/// How the store talks to its database.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it is, as a URL or as `key=value` pairs; several hosts are tried in turn, the one that takes writes is used.
    pub url: String,
    /// Where to listen for news, if `url` goes through a proxy that hands out connections by transaction.
    pub listen_url: Option<String>,
    /// How many shards a database gets that is used for the first time; others keep theirs.
    pub shards: u32,
    /// Connections that write.
    pub writers: usize,
    /// Connections that read.
    pub readers: usize,
    /// The longest that one statement may take, waiting for locks included.
    pub statement_timeout: Duration,
    /// How long to try when the database does not answer at the start.
    pub connect_timeout: Duration,
    /// Whether history is only removed by whole days, which costs nothing, unless more than this is kept too long.
    /// Nothing removes row by row, exactly when it is time.
    pub removes_days: bool,
    /// How long a node that is not heard of keeps its shards: whatever it holds at the database is free before.
    pub shard_lease: Duration,
    /// How large a table of live work may become, if most of it is versions that somebody's snapshot keeps; then it is written
    /// anew, and that snapshot finds it empty. Nothing leaves it to grow.
    pub live_table_bytes_max: Option<u64>,
}

/// How long a statement about leases may take: their time runs out meanwhile.
const LEASE_TIMEOUT_MAX: Duration = Duration::from_secs(3);
const LEASE_TIMEOUT_MIN: Duration = Duration::from_millis(700);

/// How long a transaction that writes may wait for its next statement. They follow each other at once, unless the process has
/// stopped or the way is cut: then what it holds is free again before the lease of its shards is over.
const IDLE_MAX: Duration = Duration::from_secs(2);
const IDLE_MIN: Duration = Duration::from_millis(500);

/// How long it may take to read a table that is to be written anew; nobody waits for that.
pub(crate) const LOOK_MAX: Duration = Duration::from_secs(120);

/// How much longer than the server's own bound an answer is waited for.
const GRACE: Duration = Duration::from_secs(2);

impl Options {
    /// The longest that a statement may take at the server.
    pub(crate) fn timeout(&self, purpose: Purpose) -> Duration {
        match purpose {
            Purpose::Lease => {
                let timeout = (self.shard_lease * 3 / 5).clamp(LEASE_TIMEOUT_MIN, LEASE_TIMEOUT_MAX);
                self.statement_timeout.min(timeout)
            }
            Purpose::Write | Purpose::Read | Purpose::Tell | Purpose::Rewrite => self.statement_timeout,
        }
    }

    /// The longest that an open transaction may do nothing.
    pub(crate) fn idle(&self, purpose: Purpose) -> Duration {
        match purpose {
            Purpose::Write | Purpose::Lease | Purpose::Rewrite => {
                (self.shard_lease * 2 / 5).clamp(IDLE_MIN, IDLE_MAX)
            }
            Purpose::Read | Purpose::Tell => IDLE_MAX.max(self.statement_timeout),
        }
    }

    /// The longest that an answer is waited for.
    pub(crate) fn patience(&self, purpose: Purpose) -> Duration {
        match purpose {
            Purpose::Rewrite => LOOK_MAX + GRACE,
            _ => self.timeout(purpose) + GRACE,
        }
    }

    /// Whether a proxy may lend our connections to others between two transactions. Then nothing may be left on them, nor be
    /// expected there.
    pub(crate) fn is_lent(&self) -> bool {
        self.listen_url.is_some()
    }

    /// The usual ones.
    pub fn new(url: impl Into<String>) -> Options {
        Options {
            url: url.into(),
            listen_url: None,
            shards: 32,
            writers: 2,
            readers: 2,
            statement_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            removes_days: false,
            shard_lease: Duration::from_secs(5),
            live_table_bytes_max: None,
        }
    }
}
