//! What a command has to say, and how it reaches the terminal.

use std::io::{self, ErrorKind, Write};

use crate::exit_code::ExitCode;
use crate::fault;

/// The outcome of a command: commands compute it, `main` delivers it.
#[derive(Debug)]
pub struct Answer {
    /// For stdout, with its last newline.
    pub text: String,
    /// Lines for stderr, after the text.
    pub notes: Vec<String>,
    /// For the shell.
    pub exit_code: ExitCode,
}

impl Answer {
    /// An answer that went well.
    pub fn new(text: String, notes: Vec<String>) -> Answer {
        Answer { text, notes, exit_code: ExitCode::Answered }
    }

    /// An answer that says nothing more: all was said on the way.
    pub fn silent(exit_code: ExitCode) -> Answer {
        Answer { text: String::new(), notes: Vec::new(), exit_code }
    }

    /// Writes the text, then the notes.
    pub fn deliver(self) -> ExitCode {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(self.text.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => {}
            // The reader has seen enough, as `head` does.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return self.exit_code,
            Err(error) => {
                return fault::deliver(&anyhow::Error::new(error).context("cannot write to stdout"));
            }
        }
        complain(&self.notes);
        self.exit_code
    }
}

/// Writes lines to stderr. When that is closed there is nobody left to tell.
pub fn complain(lines: &[String]) {
    let mut stderr = io::stderr().lock();
    for line in lines {
        let _ = writeln!(stderr, "{}", fault::printable(line));
    }
}

/// Writes one line to stdout now, for commands that go on. False when nobody reads any more.
pub fn say(line: &str) -> anyhow::Result<bool> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{}", fault::printable(line)).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(anyhow::Error::new(error).context("cannot write to stdout")),
    }
}
