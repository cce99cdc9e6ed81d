//! What the process tells the shell: scripts rely on these numbers.

/// The three ways a command can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// It answered.
    Answered,
    /// `lint` answered, and found something.
    Findings,
    /// The input was refused, or a file could not be read. The same number as a wrong flag.
    Fault,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> std::process::ExitCode {
        std::process::ExitCode::from(match code {
            ExitCode::Answered => 0,
            ExitCode::Findings => 1,
            ExitCode::Fault => 2,
        })
    }
}
