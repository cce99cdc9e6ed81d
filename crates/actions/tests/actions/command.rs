//! Commands of this machine: what they are given, what their end means, and that nothing of them stays behind.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use punctual_actions::{Call, Caller, CommandCall, Context, End, Form, Rules, StopSignal, Stopper};
use tokio::sync::oneshot;

use super::support::{context, done, fault};

fn permissive() -> Caller {
    let rules = Rules { allow_commands: true, stop_grace: Duration::from_millis(300), ..Rules::default() };
    Caller::new(rules).unwrap()
}

fn shell(script: &str) -> CommandCall {
    CommandCall::new(["/bin/sh", "-c", script])
}

async fn run(call: CommandCall) -> End {
    permissive().call(&Call::Command(call), &context(), StopSignal::never()).await
}

fn log_of(end: &End) -> &str {
    match end {
        End::Done { log, .. } | End::Failed { log, .. } | End::Accepted { log, .. } => log,
        End::Cancelled => "",
    }
}

/// A child of a command that lives until it is killed, and the far end of a pipe that only it holds open.
struct Grandchild {
    pid: oneshot::Receiver<i32>,
    gone: oneshot::Receiver<()>,
    _folder: tempfile::TempDir,
}

impl Grandchild {
    /// Also the part of a script that starts it: it goes on whatever it is asked.
    fn expected() -> (Grandchild, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let script = format!("(trap '' TERM; sh -c 'echo $$; exec sleep 1000' > {}) &", path.display());
        let (pid, pid_known) = oneshot::channel();
        let (gone, gone_known) = oneshot::channel();
        // A thread of its own: opening waits for the other end, and no runtime should wait for that.
        std::thread::spawn(move || {
            let mut pipe = BufReader::new(std::fs::File::open(path).unwrap());
            let mut line = String::new();
            pipe.read_line(&mut line).unwrap();
            let _ = pid.send(line.trim().parse().unwrap());
            // Ends when the last process that could write has ended.
            pipe.read_to_string(&mut line).unwrap();
            let _ = gone.send(());
        });
        (Grandchild { pid: pid_known, gone: gone_known, _folder: folder }, script)
    }

    /// Waits for its end, which the pipe tells and the system confirms.
    async fn ended(self, pid: i32) {
        let confirmed = async {
            self.gone.await.unwrap();
            // Its files are closed first; a moment later it is dead. What nobody has buried yet is dead all the same.
            while !matches!(state(pid), None | Some('Z' | 'X')) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), confirmed).await.expect("the grandchild ends");
    }
}

fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

#[tokio::test]
async fn results_are_json_text_or_bytes() {
    assert_eq!(done(run(shell("echo '{\"n\": 1}'")).await), ("{\"n\": 1}".to_owned(), Form::Json));
    assert_eq!(
        done(run(shell("echo hello; echo there")).await),
        ("\"hello\\nthere\"".to_owned(), Form::Text)
    );
    assert_eq!(done(run(shell("true")).await), ("null".to_owned(), Form::Json));
    let bytes = run(shell("printf '\\377\\001'")).await;
    assert!(
        matches!(&bytes, End::Done { result, form: Form::Bytes, .. } if result == &[0xff, 1]),
        "{bytes:?}"
    );
}

#[tokio::test]
async fn a_command_is_told_which_run_it_is_for() {
    let mut call = shell("cat; env | sort; pwd; echo \"$1\"");
    call.argv.extend(["name".to_owned(), "{{schedule_id}} $(id) {{attempt}}".to_owned()]);
    call.env.insert("GIVEN".to_owned(), "{{run_id}}".to_owned());
    call.cwd = Some("/".to_owned());
    let context = Context { last_result: Some(b"[1]".to_vec()), ..context() };

    let end = permissive().call(&Call::Command(call), &context, StopSignal::never()).await;

    let (result, _) = done(end);
    let text: String = serde_json::from_str(&result).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.pop(), Some("nightly $(id) 1"), "no shell looks at arguments");
    assert_eq!(lines.pop(), Some("/"));
    assert!(lines[0].starts_with("{\"customer\": 5}"), "{text}");
    let expected = [
        "PUNCTUAL_ATTEMPT=1",
        "PUNCTUAL_DUE_TIME=2026-11-15T12:00:03Z",
        "PUNCTUAL_IDEMPOTENCY_KEY=start-abc",
        "PUNCTUAL_LAST_RESULT=[1]",
        "PUNCTUAL_NAMESPACE=mail",
        "PUNCTUAL_NOMINAL_TIME=2026-11-15T12:00:00Z",
        "PUNCTUAL_RUN_ID=run-7",
        "PUNCTUAL_SCHEDULE_ID=nightly",
        "GIVEN=run-7",
    ];
    for variable in expected {
        assert!(text.contains(variable), "{variable} in {text}");
    }
    assert!(!text.contains("CARGO"), "the server's own environment stays with it: {text}");
}

#[tokio::test]
async fn exit_codes_and_signals_are_faults() {
    let failed = run(shell("echo out; echo oops >&2; exit 3")).await;
    assert!(log_of(&failed).contains("oops") && log_of(&failed).contains("out"));
    let failed = fault(failed);
    assert_eq!((failed.kind.as_str(), failed.retryable), ("exit_3", true));
    assert!(failed.message.contains("exit code 3") && failed.message.contains("oops"), "{failed}");

    assert!(!fault(run(shell("exit 65")).await).retryable);
    let killed = fault(run(shell("kill -9 $$")).await);
    assert_eq!((killed.kind.as_str(), killed.retryable), ("signal_9", true));

    let missing = fault(run(CommandCall::new(["/no/such/program"])).await);
    assert_eq!((missing.kind.as_str(), missing.retryable), ("spawn_failed", false));
}

#[tokio::test]
async fn commands_need_a_permission_when_they_run_too() {
    let caller = Caller::new(Rules::default()).unwrap();
    let end = caller.call(&Call::Command(shell("true")), &context(), StopSignal::never()).await;
    let fault = fault(end);
    assert_eq!((fault.kind.as_str(), fault.retryable), ("call_forbidden", false));
}

#[tokio::test]
async fn a_timeout_ends_the_whole_group() {
    let (mut grandchild, script) = Grandchild::expected();
    // The command itself is asked, and says no.
    let mut call = shell(&format!("trap '' TERM; {script} echo started; while true; do sleep 1000; done"));
    call.timeout_ms = Some(2_000);

    let end = run(call).await;

    assert!(log_of(&end).contains("started"), "{end:?}");
    let fault = fault(end);
    assert_eq!((fault.kind.as_str(), fault.retryable), ("timed_out", true));
    let pid = (&mut grandchild.pid).await.unwrap();
    grandchild.ended(pid).await;
}

#[tokio::test]
async fn a_stop_ends_the_whole_group() {
    let (mut grandchild, script) = Grandchild::expected();
    let (caller, stopper, context) = (permissive(), Stopper::new(), context());
    let call = Call::Command(shell(&format!("{script} wait")));
    let (end, pid) = tokio::join!(caller.call(&call, &context, stopper.signal()), async {
        let pid = (&mut grandchild.pid).await.unwrap();
        stopper.stop();
        pid
    });
    assert_eq!(end, End::Cancelled);
    grandchild.ended(pid).await;
    assert_eq!(caller.in_flight(), 0);
}

#[tokio::test]
async fn a_command_may_finish_its_work_when_asked_to_stop() {
    let (mut grandchild, script) = Grandchild::expected();
    let (caller, stopper, context) = (permissive(), Stopper::new(), context());
    let call = Call::Command(shell(&format!("trap 'echo saved; exit 0' TERM; {script} wait")));
    let (end, pid) = tokio::join!(caller.call(&call, &context, stopper.signal()), async {
        let pid = (&mut grandchild.pid).await.unwrap();
        stopper.stop();
        pid
    });
    assert_eq!(done(end).0, "\"saved\"");
    grandchild.ended(pid).await;
}

#[tokio::test]
async fn a_dropped_call_ends_the_whole_group() {
    let (mut grandchild, script) = Grandchild::expected();
    let call = Call::Command(shell(&format!("{script} wait")));
    let task = tokio::spawn(async move { permissive().call(&call, &context(), StopSignal::never()).await });
    let pid = (&mut grandchild.pid).await.unwrap();
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    grandchild.ended(pid).await;
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    let (mut grandchild, script) = Grandchild::expected();
    // Both the child that keeps stdout open and the one that does not.
    let begun = Instant::now();
    let end = run(shell(&format!("{script} sleep 1000 & echo done"))).await;
    assert_eq!(done(end).0, "\"done\"");
    assert!(begun.elapsed() < Duration::from_secs(60), "it does not wait for what was left behind");
    // It may have been ended before it said who it is.
    if let Ok(Ok(pid)) = tokio::time::timeout(Duration::from_secs(1), &mut grandchild.pid).await {
        grandchild.ended(pid).await;
    }
}

#[tokio::test]
async fn output_without_end_is_bounded() {
    let mut call = shell("head -c 30000000 /dev/zero | tr '\\0' 'x'; echo; echo the end >&2");
    call.output_bytes_max = Some(1_000);
    let end = run(call).await;
    let log = log_of(&end);
    assert!(log.len() < 100_000 && log.contains("the end"), "{}", log.len());
    assert!(log.contains("[the result is the first 1000 of 30000001 bytes of stdout]"));
    let (result, form) = done(end);
    assert_eq!((result.len(), form), (1_002, Form::Text));
}

#[tokio::test]
async fn input_that_is_not_read_does_no_harm() {
    let input = format!("\"{}\"", "x".repeat(1_000_000));
    let context = Context { input: Some(input.into_bytes()), ..context() };
    let caller = permissive();
    done(caller.call(&Call::Command(shell("exit 0")), &context, StopSignal::never()).await);
    let counted = caller.call(&Call::Command(shell("wc -c")), &context, StopSignal::never()).await;
    assert_eq!(done(counted).0.trim(), "1000002");
}
