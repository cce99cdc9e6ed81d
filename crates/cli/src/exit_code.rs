//! What the process tells the shell: scripts rely on these numbers.

/// The ways a command can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// It answered.
    Answered,
    /// `lint` answered, and found something.
    Findings,
    /// It did not work, for a reason that has no number of its own.
    Failed,
    /// The input was refused, or a file could not be read. The same number as a wrong flag.
    Fault,
    /// There is no such schedule, run or queue.
    NotFound,
    /// It exists already, or somebody else changed it first.
    Conflict,
    /// No server answers, or not in time.
    Unavailable,
    /// The server refused what was asked.
    Rejected,
    /// `serve` cannot listen where it should.
    Listen,
    /// `serve`, `restore` or `migrate` cannot use its database.
    Database,
    /// `doctor` found something that somebody should look at.
    Warnings,
    /// `doctor` found something broken.
    Broken,
}

/// Every number with its meaning, for help and reference.
pub const TABLE: &[(ExitCode, &str)] = &[
    (ExitCode::Answered, "it worked"),
    (
        ExitCode::Failed,
        "it did not work; a run that was waited for did not succeed; `lint` found something; `worker` had to end commands",
    ),
    (ExitCode::Fault, "wrong usage, refused input, a file that cannot be read, a bad configuration"),
    (ExitCode::NotFound, "there is no such schedule, run or queue"),
    (ExitCode::Conflict, "it exists already, or somebody else changed it first"),
    (ExitCode::Unavailable, "no server answers, or not in time"),
    (ExitCode::Rejected, "the server refused what was asked"),
    (ExitCode::Listen, "`serve` cannot listen at its address"),
    (ExitCode::Database, "`serve`, `restore` or `migrate` cannot use its database"),
    (ExitCode::Warnings, "`doctor` found something that somebody should look at"),
    (ExitCode::Broken, "`doctor` found something broken"),
];

impl ExitCode {
    /// The number.
    pub fn number(self) -> u8 {
        match self {
            ExitCode::Answered => 0,
            ExitCode::Findings | ExitCode::Failed => 1,
            ExitCode::Fault => 2,
            ExitCode::NotFound => 3,
            ExitCode::Conflict => 4,
            ExitCode::Unavailable => 5,
            ExitCode::Rejected => 6,
            ExitCode::Listen => 7,
            ExitCode::Database => 8,
            ExitCode::Warnings => 9,
            ExitCode::Broken => 10,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> std::process::ExitCode {
        std::process::ExitCode::from(code.number())
    }
}
