//! Every bound of the command line, with its reason.

/// Occurrences or changes that one command lists; more are for a program, which can ask range by range.
pub const ROWS_MAX: usize = 10_000;

/// Occurrences that `diff` compares before it stops: about a second of work.
pub const COMPARED_MAX: usize = 1_000_000;

/// Bytes of a file of dates; ten thousand dates with a remark each fit well.
pub const DATES_FILE_BYTES_MAX: usize = 1024 * 1024;
