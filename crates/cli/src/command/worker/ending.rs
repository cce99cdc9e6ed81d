//! What the end of a command means for its run.

use std::io;
use std::process::ExitStatus;

use punctual_api::v1;
use serde_json::Value;

use super::held::Wish;
use crate::limits::RESULT_BYTES_MAX;
use crate::wire::payload;

/// How a run ended.
pub type End = v1::run_completion::End;

/// The exit code that says: the input is wrong, another attempt cannot help (`EX_DATAERR`).
const EXIT_DATA_ERROR: i32 = 65;

/// What a command wrote to stdout.
#[derive(Debug, Default)]
pub struct Output {
    pub bytes: Vec<u8>,
    /// There was more than a result may have.
    pub is_cut: bool,
}

/// The end of a run, from what was wished and how its command ended; nothing if it is not this worker's any more.
pub fn end(wish: Wish, status: ExitStatus, output: Output, last_lines: &[String]) -> Option<End> {
    match wish {
        Wish::Gone => return None,
        // A command that was asked to stop may finish all the same: then it has succeeded.
        Wish::Cancel if !status.success() => return Some(End::Cancelled(())),
        Wish::Stop if !status.success() => {
            return Some(failure("worker_stopped", "the worker was stopped while the command ran", None));
        }
        Wish::Cancel | Wish::Stop | Wish::GoOn => {}
    }
    let (kind, what, retryable) = match (status.code(), signal_of(status)) {
        (Some(0), _) => return Some(result(output)),
        (Some(code), _) => {
            let retryable = if code == EXIT_DATA_ERROR { Some(false) } else { None };
            (format!("exit_{code}"), format!("the command ended with exit code {code}"), retryable)
        }
        (None, Some(signal)) => {
            (format!("signal_{signal}"), format!("the command was killed by signal {signal}"), None)
        }
        (None, None) => ("unknown".to_owned(), "the command ended, nobody knows how".to_owned(), None),
    };
    let lines = if last_lines.is_empty() { String::new() } else { format!(":\n{}", last_lines.join("\n")) };
    Some(failure(&kind, &format!("{what}{lines}"), retryable))
}

#[cfg(unix)]
fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal_of(_status: ExitStatus) -> Option<i32> {
    None
}

/// The result of a command that went well.
fn result(output: Output) -> End {
    if output.is_cut {
        return result_too_large(&format!("stdout has more than {RESULT_BYTES_MAX} bytes"));
    }
    let text = match String::from_utf8(output.bytes) {
        Ok(text) => text,
        Err(error) => {
            let data = v1::payload::Kind::Data(error.into_bytes());
            return End::Result(v1::Payload { kind: Some(data) });
        }
    };
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        return End::Result(v1::Payload::default());
    }
    // JSON that would change on its way stays text.
    let json = serde_json::from_str::<Value>(text).ok().and_then(|value| payload::from_value(&value).ok());
    let as_text = || payload::from_value(&Value::String(text.to_owned())).unwrap_or_default();
    End::Result(json.unwrap_or_else(as_text))
}

/// A result that nobody takes: the same command would say it again, so there is no further attempt.
pub fn result_too_large(message: &str) -> End {
    failure("result_refused", message, Some(false))
}

/// The command never began.
pub fn not_spawned(program: &str, error: &io::Error) -> End {
    failure("spawn_failed", &format!("cannot start {program}: {error}"), None)
}

/// A run for somebody else.
pub fn unknown_handler(handler: &str) -> End {
    failure("unknown_handler", &format!("this worker has no handler {handler:?}"), None)
}

fn failure(kind: &str, message: &str, retryable: Option<bool>) -> End {
    End::Failure(v1::Failure { kind: kind.to_owned(), message: message.to_owned(), details: None, retryable })
}

/// An end in one word, and what went wrong.
pub fn shown(end: &End) -> String {
    match end {
        End::Result(_) => "succeeded".to_owned(),
        End::Cancelled(()) => "cancelled".to_owned(),
        End::Failure(failure) => format!("failed ({})", failure.kind),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn ended(wish: Wish, raw: i32, stdout: &[u8]) -> Option<End> {
        let output = Output { bytes: stdout.to_vec(), is_cut: false };
        end(wish, ExitStatus::from_raw(raw), output, &["last words".to_owned()])
    }

    #[test]
    fn stdout_is_json_or_text_or_bytes() {
        let shown = |stdout: &[u8]| match ended(Wish::GoOn, 0, stdout) {
            Some(End::Result(result)) => String::from_utf8(payload::to_bytes(Some(&result))),
            other => panic!("{other:?}"),
        };
        assert_eq!(shown(b"{\"a\":1}\n").unwrap(), "{\"a\":1}");
        assert_eq!(shown(b"hello\nworld\n").unwrap(), "\"hello\\nworld\"");
        assert_eq!(shown(b"9007199254740993").unwrap(), "\"9007199254740993\"");
        assert_eq!(shown(b"").unwrap(), "");
        assert!(shown(b"\xff").is_err());
    }

    #[test]
    fn exit_codes_and_signals_become_kinds() {
        for (raw, kind, retryable) in [
            (1 << 8, "exit_1", None),
            (75 << 8, "exit_75", None),
            (78 << 8, "exit_78", None),
            (65 << 8, "exit_65", Some(false)),
            (9, "signal_9", None),
        ] {
            let Some(End::Failure(failure)) = ended(Wish::GoOn, raw, b"ignored") else { panic!("{raw}") };
            assert_eq!((failure.kind.as_str(), failure.retryable), (kind, retryable));
            assert!(failure.message.ends_with(":\nlast words"), "{}", failure.message);
        }
    }

    #[test]
    fn wishes_decide_first() {
        assert_eq!(ended(Wish::Gone, 0, b""), None);
        assert_eq!(ended(Wish::Cancel, 15, b""), Some(End::Cancelled(())));
        assert!(matches!(ended(Wish::Cancel, 0, b""), Some(End::Result(_))));
        assert!(
            matches!(ended(Wish::Stop, 15, b""), Some(End::Failure(failure)) if failure.kind == "worker_stopped")
        );
        assert!(matches!(ended(Wish::Stop, 0, b""), Some(End::Result(_))));
    }
}
