//! Every bound of a call that is not the operator's to set, with its reason.

use std::time::Duration;

/// Bytes of a call as JSON: it is stored with every run.
pub const CALL_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a URL: more than most servers accept.
pub const URL_BYTES_MAX: usize = 8 * 1024;

/// Bytes of the template of a body or of a Nexus input.
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;

/// Headers that a call may name.
pub const HEADERS_MAX: usize = 64;

/// Bytes of one header's value, as a template and once filled in.
pub const HEADER_BYTES_MAX: usize = 8 * 1024;

/// Statuses that a call may name as worth another attempt.
pub const RETRY_STATUSES_MAX: usize = 64;

/// Bytes of a Nexus service's or operation's name.
pub const NAME_BYTES_MAX: usize = 1_000;

/// Words of a command.
pub const ARGUMENTS_MAX: usize = 256;

/// Variables that a command may be given.
pub const VARIABLES_MAX: usize = 128;

/// Bytes of one word or variable of a command once filled in; the system takes no more than 128 KiB.
pub const ARGUMENT_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a request's body once filled in: an input may stand in it more than once.
pub const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The longest timeout of a call: a week.
pub const TIMEOUT_MS_MAX: u64 = 7 * 24 * 3_600 * 1_000;

/// How much of a refusal's body is read, and for how long: it only explains.
pub const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// How long the body of a refusal is waited for.
pub const REFUSAL_WAIT: Duration = Duration::from_secs(5);

/// Bytes of what is kept of a refusal's body.
pub const DETAILS_BYTES_MAX: usize = 16 * 1024;

/// Bytes of a fault's message.
pub const MESSAGE_BYTES_MAX: usize = 2 * 1024;

/// Bytes of the tail of what a command wrote.
pub const LOG_BYTES_MAX: usize = 64 * 1024;

/// The longest wait that a server can ask for with `Retry-After`.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

/// How long what a command left behind may keep its output open.
pub const LEFTOVERS_WAIT: Duration = Duration::from_secs(2);

/// Names that are looked up at a time: each takes a thread, and the runtime has 512 for everybody.
pub const LOOKUPS_MAX: usize = 64;

/// Idle connections that are kept for each target.
pub const IDLE_CONNECTIONS_MAX: usize = 32;

/// How long an idle connection is kept; servers commonly close theirs after a minute.
pub const IDLE_WAIT: Duration = Duration::from_secs(20);

/// Bytes of a token of ours: longer ones are not even looked at.
pub const TOKEN_BYTES_MAX: usize = 2 * 1024;
