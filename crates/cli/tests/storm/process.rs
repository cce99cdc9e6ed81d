//! A server process that is started, killed, stopped for a while, and started again on the same port and database.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use punctual_api::Client;

pub struct Node {
    child: Child,
    setting: Setting,
    port: u16,
    pub kills: usize,
}

/// What a process is started with, each time.
#[derive(Clone, Default)]
pub struct Setting {
    pub database: String,
    pub flags: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// Where its log goes, if anywhere.
    pub log: Option<PathBuf>,
}

impl Setting {
    fn command(&self, port: u16) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--database", &self.database]);
        command.args(&self.flags).envs(self.environment.iter().cloned());
        let log = self.log.as_ref().map_or(Stdio::null(), |path| {
            File::options().create(true).append(true).open(path).unwrap().into()
        });
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        command
    }
}

impl Drop for Node {
    /// Nothing stays behind when a test fails.
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(status.success(), "kill {name} {pid}");
}

impl Node {
    pub async fn start(path: &Path) -> Node {
        Node::start_with(path, &[]).await
    }

    pub async fn start_with(path: &Path, flags: &[&str]) -> Node {
        let database = format!("sqlite:{}", path.display());
        let flags = flags.iter().map(ToString::to_string).collect();
        Node::launch(Setting { database, flags, ..Setting::default() }).await
    }

    pub async fn launch(setting: Setting) -> Node {
        // A port of our own, so that clients find the server again after a restart.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = setting.command(port).spawn().unwrap();
        let mut node = Node { child, setting, port, kills: 0 };
        node.wait_until_ready().await;
        node
    }

    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn client(&self) -> Client {
        Client::connect_lazy(&self.address()).unwrap()
    }

    /// The line that says that it is ready comes after the port is open.
    async fn wait_until_ready(&mut self) {
        let output = self.child.stdout.take().unwrap();
        let ready = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(output).read_line(&mut line).map(|_| line)
        });
        let line = tokio::time::timeout(Duration::from_secs(60), ready)
            .await
            .expect("ready in time")
            .unwrap()
            .unwrap();
        assert!(!line.trim().is_empty(), "the server ended before it was ready: {:?}", self.child.try_wait());
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.kills += 1;
    }

    pub async fn restart(&mut self) {
        self.child = self.setting.command(self.port).spawn().unwrap();
        self.wait_until_ready().await;
    }

    /// Stops the process for a while, as a machine that was suspended.
    pub async fn freeze(&mut self, length: Duration) {
        self.suspend();
        tokio::time::sleep(length).await;
        self.wake();
    }

    pub fn suspend(&self) {
        signal(self.child.id(), "-STOP");
    }

    pub fn wake(&self) {
        signal(self.child.id(), "-CONT");
    }

    /// Another process on the same file is told so, and ends.
    pub fn second_process_is_refused(&self) {
        let mut second = self.setting.command(0);
        second.stderr(Stdio::piped());
        let begun = Instant::now();
        let output = second.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "a second process was let in");
        assert!(text.contains("in use"), "{text}");
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    /// Asks it to stop, and sees that it does.
    pub async fn stop(mut self) {
        signal(self.child.id(), "-TERM");
        let status = tokio::task::block_in_place(|| self.child.wait()).unwrap();
        assert!(status.success(), "{status}");
    }
}
