//! What a command says: the beginning of its stdout, which is its result, and the end of everything, which is its log.

use crate::limits::LOG_BYTES_MAX;

/// What is kept of a command's output.
#[derive(Debug)]
pub(super) struct Output {
    stdout: Vec<u8>,
    stdout_bytes_max: usize,
    stdout_count: usize,
    tail: Vec<u8>,
    is_tail_cut: bool,
}

impl Output {
    pub(super) fn new(stdout_bytes_max: usize) -> Output {
        Output { stdout: Vec::new(), stdout_bytes_max, stdout_count: 0, tail: Vec::new(), is_tail_cut: false }
    }

    /// Something came by stdout.
    pub(super) fn said(&mut self, bytes: &[u8]) {
        let room = self.stdout_bytes_max - self.stdout.len();
        self.stdout.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.stdout_count = self.stdout_count.saturating_add(bytes.len());
        self.complained(bytes);
    }

    /// Something came by stderr.
    pub(super) fn complained(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        // Cut only now and then, so that a byte is moved about once.
        if self.tail.len() > 2 * LOG_BYTES_MAX {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let excess = self.tail.len().saturating_sub(LOG_BYTES_MAX);
        self.is_tail_cut |= excess > 0;
        self.tail.drain(..excess);
    }

    /// The result, without line ends at its end, and the log.
    ///
    /// A command that says more than fits has not failed: its result is the beginning, and the log says so.
    pub(super) fn finish(mut self) -> (Vec<u8>, String) {
        self.cut();
        let mut log = String::new();
        if self.is_tail_cut {
            log.push_str("[earlier output is not kept]\n");
        }
        log.push_str(&String::from_utf8_lossy(&self.tail));
        let mut stdout = self.stdout;
        if self.stdout_count > stdout.len() {
            let (kept, count) = (stdout.len(), self.stdout_count);
            if !log.is_empty() && !log.ends_with('\n') {
                log.push('\n');
            }
            log.push_str(&format!("[the result is the first {kept} of {count} bytes of stdout]\n"));
            // Half a letter at the cut would make bytes of a text.
            if let Err(error) = std::str::from_utf8(&stdout)
                && error.error_len().is_none()
            {
                stdout.truncate(error.valid_up_to());
            }
        }
        while stdout.last().is_some_and(|last| matches!(last, b'\n' | b'\r')) {
            stdout.pop();
        }
        (stdout, log)
    }
}

/// The last lines of a log, for a message.
pub(super) fn last_lines(log: &str) -> &str {
    const BYTES_MAX: usize = 1_024;
    let log = log.trim_end();
    let from = log.ceil_char_boundary(log.len().saturating_sub(BYTES_MAX));
    if from == 0 { log } else { log[from..].split_once('\n').map_or(&log[from..], |(_, rest)| rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_is_the_beginning_and_log_the_end() {
        let mut output = Output::new(5);
        output.said("abcdü".as_bytes());
        output.complained(b"!\n");
        output.said(b"more");
        let (stdout, log) = output.finish();
        assert_eq!(stdout, b"abcd");
        assert_eq!(log, "abcdü!\nmore\n[the result is the first 5 of 10 bytes of stdout]\n");
    }

    #[test]
    fn log_is_bounded() {
        let mut output = Output::new(0);
        for _ in 0..100 {
            output.complained(&[b'x'; 10_000]);
        }
        output.complained(b"the end");
        let (stdout, log) = output.finish();
        assert!(stdout.is_empty());
        assert!(log.len() < LOG_BYTES_MAX + 100 && log.starts_with("[earlier") && log.ends_with("the end"));
    }

    #[test]
    fn last_lines_are_whole_lines() {
        assert_eq!(last_lines("a\nb\n\n"), "a\nb");
        let long = format!("{}\nlast", "ü".repeat(2_000));
        assert_eq!(last_lines(&long), "last");
        assert_eq!(last_lines(&"ü".repeat(2_000)).len(), 1_024);
    }
}
