//! A real server and real commands against it, each in a directory of its own.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::text;

/// Longer than anything here takes, even on a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server that ends with its test.
pub struct TestServer {
    pub process: Process,
    pub address: String,
    pub directory: TempDir,
}

impl TestServer {
    pub fn start() -> TestServer {
        TestServer::start_in(tempfile::tempdir().unwrap(), "127.0.0.1:0", &[])
    }

    pub fn start_in(directory: TempDir, listen: &str, more: &[&str]) -> TestServer {
        let database = format!("sqlite:{}", directory.path().join("punctual.db").display());
        TestServer::start_on(&database, directory, listen, more)
    }

    /// On another database than the one in the directory.
    pub fn start_on(database: &str, directory: TempDir, listen: &str, more: &[&str]) -> TestServer {
        let log =
            File::options().append(true).create(true).open(directory.path().join("server.log")).unwrap();
        let mut command = bare(&["serve", "--listen", listen, "--database", database]);
        command.args(more).stderr(log);
        let process = Process::spawn(command);
        let ready = process.stdout.recv_timeout(PATIENCE);
        let ready = ready.unwrap_or_else(|_| {
            let log = std::fs::read_to_string(directory.path().join("server.log")).unwrap_or_default();
            panic!("the server did not start: {log}")
        });
        let address = ready.strip_prefix("ready at ").and_then(|rest| rest.split(',').next());
        let address = address.unwrap_or_else(|| panic!("found {ready}")).to_owned();
        TestServer { process, address, directory }
    }

    /// Kills it without a word, and starts it again on the same files and port.
    pub fn restart(self) -> TestServer {
        self.restart_with(&[])
    }

    /// The same with other settings.
    pub fn restart_with(self, more: &[&str]) -> TestServer {
        self.process.signal(Signal::KILL);
        self.process.wait();
        let listen = self.address.strip_prefix("http://").unwrap().to_owned();
        TestServer::start_in(self.directory, &listen, more)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = bare(args);
        command.env("PUNCTUAL_ADDRESS", &self.address);
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// What a command says that works.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout).to_owned()
    }

    /// The same for programs.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        let said = self.ok(&[args, &["--output", "json"]].concat());
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{args:?}: {error}: {said}"))
    }

    /// What a command complains about that does not work.
    #[track_caller]
    pub fn fails(&self, args: &[&str], exit_code: i32) -> String {
        let output = self.run(args);
        let said = text(&output.stderr).to_owned();
        assert_eq!(output.status.code(), Some(exit_code), "{args:?}: {said}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
        said
    }

    pub fn spawn(&self, args: &[&str]) -> Process {
        let mut command = self.command(args);
        command.stderr(Stdio::piped());
        Process::spawn(command)
    }

    /// A schedule that is started by hand, on a queue of its own name.
    pub fn manual(&self, id: &str, more: &[&str]) {
        self.ok(&["queue", "create", id]);
        let args = ["schedule", "create", id, "--manual", "--queue", id, "--retry-backoff", "100ms"];
        self.ok(&[&args[..], more].concat());
    }

    /// Triggers it, and gives the number of its run.
    pub fn trigger(&self, id: &str) -> String {
        self.ok(&["schedule", "trigger", id]);
        self.runs_until(id, |runs| runs.first().map(|run| run["run_id"].as_str().unwrap().to_owned()))
    }

    /// Asks for the runs of a schedule until they are as expected.
    #[track_caller]
    pub fn runs_until<T>(&self, id: &str, expected: impl Fn(&[Value]) -> Option<T>) -> T {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let found = self.json(&["run", "list", "--schedule", id]);
            if let Some(answer) = expected(found["runs"].as_array().unwrap()) {
                return answer;
            }
            assert!(Instant::now() < give_up, "{found:#}");
        }
    }

    /// The same for the runs of a queue.
    #[track_caller]
    pub fn runs_of_queue<T>(&self, queue: &str, expected: impl Fn(&[Value]) -> Option<T>) -> T {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let found = self.json(&["run", "list", "--queue", queue]);
            if let Some(answer) = expected(found["runs"].as_array().unwrap()) {
                return answer;
            }
            assert!(Instant::now() < give_up, "{found:#}");
        }
    }

    /// What it answers to a plain request, head and all.
    pub fn fetch(&self, path: &str) -> String {
        let address = self.address.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A pipe with a name: who opens it waits for the other side.
    pub fn pipe(&self, name: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }
}

/// A command that knows no server.
pub fn bare(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(args).env("TZ", "UTC").env_remove("PUNCTUAL_ADDRESS").env_remove("PUNCTUAL_NAMESPACE");
    command
}

/// A process whose lines can be waited for.
pub struct Process {
    pid: Pid,
    pub stdout: Receiver<String>,
    pub stderr: Receiver<String>,
    ended: Receiver<ExitStatus>,
}

impl Process {
    pub fn spawn(mut command: Command) -> Process {
        let mut child: Child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        let stdout = lines(child.stdout.take());
        let stderr = lines(child.stderr.take());
        let (tell, ended) = mpsc::channel();
        thread::spawn(move || tell.send(child.wait().unwrap()));
        Process { pid, stdout, stderr, ended }
    }

    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }

    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid, signal);
    }

    /// Waits for its end, and gives the exit code.
    #[track_caller]
    pub fn wait(&self) -> Option<i32> {
        self.ended.recv_timeout(PATIENCE).expect("it ends in time").code()
    }

    /// Waits for a line on stderr.
    #[track_caller]
    pub fn hears(&self, part: &str) -> String {
        let mut heard = Vec::new();
        while let Ok(line) = self.stderr.recv_timeout(PATIENCE) {
            if line.contains(part) {
                return line;
            }
            heard.push(line);
        }
        panic!("waited for {part:?}, heard {heard:#?}")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.try_recv().is_err() {
            self.signal(Signal::KILL);
        }
    }
}

fn lines(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (tell, heard) = mpsc::channel();
    if let Some(stream) = stream {
        thread::spawn(move || {
            BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
    }
    heard
}

/// Asks until the answer is as expected.
#[track_caller]
pub fn until(expected: impl Fn() -> Result<(), String>) {
    let give_up = Instant::now() + PATIENCE;
    while let Err(found) = expected() {
        assert!(Instant::now() < give_up, "{found}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Runs something that may block, but not for ever.
pub fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, done) = mpsc::channel();
    thread::spawn(move || tell.send(work()));
    done.recv_timeout(PATIENCE).expect("it is done in time")
}
