//! Names of things, and how a start's identity is derived, so that a retry meets itself.

use std::fmt::{self, Write};
use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

/// What comes after the base in a run's id: a time, and perhaps a request.
const RUN_ID_REST: usize = 64;

/// Which schedule: a namespace and an id within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleKey {
    /// One team's set of schedules.
    pub namespace: Arc<str>,
    /// The schedule's id, chosen by the user.
    pub schedule: Arc<str>,
}

impl ScheduleKey {
    /// A key from its two names.
    pub fn new(namespace: &str, schedule: &str) -> ScheduleKey {
        ScheduleKey { namespace: namespace.into(), schedule: schedule.into() }
    }

    /// What jitter and `H` are drawn from.
    pub fn seed(&self) -> String {
        format!("{}-{}", self.namespace, self.schedule)
    }
}

/// The client's name for one command; repeating it is harmless.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub Arc<str>);

impl RequestId {
    /// A request id from text.
    pub fn new(text: &str) -> RequestId {
        RequestId(text.into())
    }

    /// What manual starts and backfills of this request are known by.
    pub(crate) fn key(&self, index: usize) -> RequestKey {
        let name = format!("{}#{index}", self.0);
        let bytes = *Uuid::new_v5(&Uuid::nil(), name.as_bytes()).as_bytes();
        let [first, ..] = bytes.as_chunks::<8>().0 else { unreachable!("a uuid has sixteen bytes") };
        // Zero stands for "no request" where runs are kept.
        RequestKey(u64::from_be_bytes(*first).max(1))
    }
}

/// A short form of a request id and a place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKey(pub u64);

impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Where a start comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The spec said so.
    Spec,
    /// A person did: a trigger or a backfill.
    Request(RequestKey),
}

/// One start of one schedule, for ever: the occurrence it is for, and who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartId {
    /// The nominal time in milliseconds since the epoch.
    pub nominal_ms: i64,
    /// Who asked.
    pub origin: Origin,
}

impl StartId {
    /// A start for an occurrence.
    pub fn new(nominal_time: Timestamp, origin: Origin) -> StartId {
        StartId { nominal_ms: nominal_time.as_millisecond(), origin }
    }

    /// Whether a person asked for it: pause, limits and catch-up do not apply.
    pub fn is_manual(self) -> bool {
        self.origin != Origin::Spec
    }

    /// The nominal time.
    pub fn nominal_time(self) -> Timestamp {
        Timestamp::from_millisecond(self.nominal_ms).unwrap_or(Timestamp::MAX)
    }

    /// The id of the run: the base and the nominal time in whole seconds, as Temporal has it; for manual starts
    /// also the request, so that two in one second never collide.
    pub fn run_id(self, base: &str) -> String {
        let time = Timestamp::from_second(self.nominal_ms.div_euclid(1_000)).unwrap_or(Timestamp::MAX);
        let mut id = String::with_capacity(base.len() + RUN_ID_REST);
        let written = match self.origin {
            Origin::Spec => write!(id, "{base}-{time}"),
            Origin::Request(key) => write!(id, "{base}-{time}-{key}"),
        };
        debug_assert!(written.is_ok(), "a string takes everything");
        id
    }

    /// The idempotency key of the start call, as Temporal derives it.
    pub fn idempotency_key(self, key: &ScheduleKey, revision: u64, due_time: Timestamp) -> String {
        let name = format!(
            "{}-{}-{revision}-{}-{}",
            quoted(&key.namespace),
            quoted(&key.schedule),
            self.nominal_ms,
            due_time.as_millisecond()
        );
        let uuid = Uuid::new_v5(&Uuid::nil(), name.as_bytes());
        match self.origin {
            Origin::Spec => format!("sched-auto-{uuid}"),
            Origin::Request(request) => format!("sched-{request}-{uuid}"),
        }
    }
}

impl fmt::Display for StartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.nominal_time())?;
        match self.origin {
            Origin::Spec => Ok(()),
            Origin::Request(key) => write!(f, "/{key}"),
        }
    }
}

/// Counts the user's accepted changes; an update may name the one it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub u64);

/// Text in double quotes with Go's escapes, which the idempotency key is defined by.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            other if (other as u32) < 0x20 || other as u32 == 0x7f => {
                quoted.push_str(&format!("\\x{:02x}", other as u32));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
