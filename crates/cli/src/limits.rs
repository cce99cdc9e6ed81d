//! Every bound of the command line, with its reason.

/// Occurrences or changes that one command lists; more are for a program, which can ask range by range.
pub const ROWS_MAX: usize = 10_000;

/// Occurrences that `diff` compares before it stops: about a second of work.
pub const COMPARED_MAX: usize = 1_000_000;

/// Bytes of a file of dates; ten thousand dates with a remark each fit well.
pub const DATES_FILE_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of an input or a result: what the server takes for one payload.
pub const INPUT_BYTES_MAX: usize = 1024 * 1024;

/// Rows of a list unless the user asks for more; a screen or two.
pub const LIST_ROWS_DEFAULT: u32 = 100;

/// Rows that a list asks the server for at a time; the server's own bound is the same.
pub const PAGE_ROWS_MAX: u32 = 1_000;

/// Questions in flight at a time, where one list needs a question for each row.
pub const QUESTIONS_MAX: usize = 8;

/// Runs that one request enqueues; the server's own bound is the same.
pub const ENQUEUED_MAX: u64 = 1_000;

/// Runs that one command enqueues; more are for a program.
pub const COUNT_MAX: u64 = 1_000_000;

/// Runs that one request purges or tries again: small enough that the bar of a long purge moves.
pub const PURGED_MAX: u64 = 1_000;

/// Dead letters that one command tries again unless the user says otherwise: those that fail at once come back, so that
/// going on until none is left might never end.
pub const RETRIED_DEFAULT: u64 = 10_000;

/// Seconds that `top` looks back.
pub const SAMPLES_MAX: usize = 61;

/// Bytes of stdout that become the result of a run.
pub const RESULT_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of stderr that wait for the next heartbeat; older lines are dropped, as the server keeps a tail anyway.
pub const LOG_BYTES_MAX: usize = 64 * 1024;

/// Bytes of one line of stderr; longer ones are cut in pieces.
pub const LOG_LINE_BYTES_MAX: usize = 4 * 1024;

/// Lines of stderr that a failure quotes.
pub const FAILURE_LINES_MAX: usize = 10;

/// Bytes of an environment variable: Linux refuses 128 KiB.
pub const VARIABLE_BYTES_MAX: usize = 64 * 1024;
