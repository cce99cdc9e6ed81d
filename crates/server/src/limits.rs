//! Every bound of the server, with unit and reason. Hitting one is an answer that names it, never a crash.

use std::time::Duration;

/// Bytes of one HTTP body: a schedule with its largest payload and ten thousand rules, with room to spare.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of one gRPC message, as the client has it too: a page of a thousand runs.
pub const MESSAGE_BYTES_MAX: usize = punctual_api::client::MESSAGE_BYTES_MAX;

/// Bytes of one payload as it is kept: inputs and results are handed on with every run, large things belong elsewhere.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a path with its query: longer ones are a mistake, since lists are bodies here.
pub const URI_BYTES_MAX: usize = 16 * 1024;

/// Bytes of all headers of a request.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Bytes that a connection buffers while a request head arrives; above it the connection is refused by the protocol.
pub const HEAD_BUFFER_BYTES_MAX: usize = 128 * 1024;

/// Items of one page, if the client names no number.
pub const PAGE_SIZE_DEFAULT: usize = 100;

/// Items of one page.
pub const PAGE_SIZE_MAX: usize = 1_000;

/// Entries of a ledger with one nominal time that pages can step over.
pub const LEDGER_STEP_MAX: usize = 10_000;

/// Times that one preview shows.
pub const PREVIEW_COUNT_MAX: usize = 1_000;

/// Times that one preview shows, if the client names no number.
pub const PREVIEW_COUNT_DEFAULT: usize = 10;

/// Runs that one heartbeat or completion names.
pub const REPORTS_MAX: usize = 1_000;

/// How long one claim waits: below the patience of proxies.
pub const CLAIM_WAIT_MAX: Duration = Duration::from_secs(60);

/// The longest lease that a claim may ask for: a dead worker's run waits for as long.
pub const CLAIM_LEASE_MAX: Duration = Duration::from_secs(24 * 3_600);

/// The shortest lease.
pub const CLAIM_LEASE_MIN: Duration = Duration::from_secs(1);

/// Bytes of one line that a handler wrote; the rest of a longer one is cut.
pub const LOG_LINE_BYTES_MAX: usize = 4_096;

/// Queues that the metrics show, so that labels stay few.
pub const METRIC_QUEUES_MAX: usize = 100;

/// Letters of something that was found, in a message about it.
pub const FOUND_LETTERS_MAX: usize = 60;

/// Requests of one HTTP/2 connection at a time.
pub const STREAMS_MAX: u32 = 1_000;

/// Bytes of answers that one HTTP/2 stream buffers for a slow client.
pub const SEND_BUFFER_BYTES_MAX: usize = 512 * 1024;

/// How long a request head may take to arrive.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(30);

/// How long a request body may take to arrive.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(60);

/// How often a silent HTTP/2 connection or event stream is asked whether it lives.
pub const KEEP_ALIVE_PAUSE: Duration = Duration::from_secs(20);

/// How long a connection to a Temporal cluster behind this server may take.
pub const UPSTREAM_CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// How long a short request of our own to it may take.
pub const UPSTREAM_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a client waits for what the cluster can do before it is told what is known here: below the patience of clients
/// that connect, which is five seconds.
pub const UPSTREAM_CAPABILITIES_TIME_MAX: Duration = Duration::from_secs(2);
