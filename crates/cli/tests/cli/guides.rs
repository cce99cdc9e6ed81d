//! The guides tell the truth: their programs are saved, their commands are run as they stand there, and what is printed is what the guide shows.
//!
//! A block of `python` is a file, named by its first line. A block of `sh` is run, and a block of `text` right behind it is what it prints, but for numbers,
//! weekdays and lengths of time. What differs from what a reader does: the server and the programs get ports of their own, so that nobody is disturbed;
//! a run has the number that a list showed here, not the one in the page; and a block that only looks is run again until it shows what is
//! expected, since things take their time.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

use super::readme::{is_alike, masked};
use super::server::{PATIENCE, Process, TestServer};
use super::text;

/// Where the server of a reader listens.
const SERVER: &str = "127.0.0.1:7233";

/// Commands that change nothing.
const LOOKS: [&str; 3] = ["punctual run list ", "punctual run logs ", "punctual run describe "];

#[test]
fn the_http_guide_is_true() {
    let page = Page::read(include_str!("../../../../docs/guides/http-action.md"), "8099");
    let heard = page.follow();
    let new: Vec<&String> = heard.iter().filter(|line| line.starts_with("new ")).collect();
    assert!(new.len() == 2 && new[0].contains(r#""input":{"customer":7}"#), "{heard:#?}");
    assert!(!heard.iter().any(|line| line.starts_with("again ")), "each start was heard of once: {heard:#?}");
}

#[test]
fn the_nexus_guide_is_true() {
    let page = Page::read(include_str!("../../../../docs/guides/nexus-action.md"), "8098");
    let heard = page.follow();
    for begins in ["start close-month-", "start audit-", "cancel audit-"] {
        assert_eq!(heard.iter().filter(|line| line.starts_with(begins)).count(), 1, "{begins}: {heard:#?}");
    }
}

#[test]
fn the_command_guide_is_true() {
    let page = Page::read(include_str!("../../../../docs/guides/command-action.md"), "");
    page.follow();
}

/// A guide on a desk of its own.
struct Page {
    blocks: Vec<Block>,
    /// The port of its program, if it has one.
    port: String,
    /// Where its files are, and where commands are given.
    folder: tempfile::TempDir,
}

#[derive(Clone, Debug)]
struct Block {
    kind: String,
    text: String,
}

impl Page {
    /// Takes the blocks out, and gives the program that listens on `port` another one.
    fn read(page: &str, port: &str) -> Page {
        for (program, package) in [("python3", "Python 3"), ("curl", "curl")] {
            let found = Command::new(program).arg("--version").output();
            let is_here = found.is_ok_and(|output| output.status.success());
            assert!(is_here, "the guides use `{program}`, which cannot be started here: install {package}");
        }
        let free = free_port().to_string();
        let page = if port.is_empty() { page.to_owned() } else { page.replace(port, &free) };
        let folder = tempfile::tempdir().unwrap();
        let blocks = blocks(&page);
        for Block { text, .. } in blocks.iter().filter(|block| block.kind == "python") {
            let name = text.lines().next().and_then(|line| line.strip_prefix("# "));
            fs::write(folder.path().join(name.expect("its first line is its name")), text).unwrap();
        }
        Page { blocks, port: free, folder }
    }

    /// Does what the page says from top to bottom, and gives what its program said meanwhile.
    fn follow(self) -> Vec<String> {
        let (mut server, mut program, mut runs) = (None, None, BTreeMap::new());
        for (place, block) in self.blocks.iter().enumerate().filter(|(_, block)| block.kind == "sh") {
            let expected = self.blocks.get(place + 1).filter(|next| next.kind == "text");
            let lines = block.text.trim_end();
            if let Some(words) = lines.strip_prefix("punctual serve") {
                server = Some(serve(words));
            } else if let Some(command) = lines.strip_suffix(" &") {
                program = Some(self.spawn(command));
            } else {
                let server = server.as_ref().expect("a server is started before it is asked");
                let lines = with_numbers(lines, &runs);
                self.check(server, &lines, expected.map(|block| block.text.as_str()), &mut runs);
            }
        }
        drop(server);
        let Some(program) = program else { return Vec::new() };
        program.signal(rustix::process::Signal::TERM);
        program.wait();
        program.stdout.try_iter().collect()
    }

    /// Starts the program that is called, and waits until it can be.
    fn spawn(&self, command: &str) -> Process {
        let mut shell = self.shell(&format!("exec {command}"));
        // As on a terminal, where every line is seen at once.
        shell.env("PYTHONUNBUFFERED", "1").stderr(std::process::Stdio::null());
        let program = Process::spawn(shell);
        let give_up = Instant::now() + PATIENCE;
        while TcpStream::connect(format!("127.0.0.1:{}", self.port)).is_err() {
            assert!(Instant::now() < give_up, "{command} does not listen");
            std::thread::yield_now();
        }
        program
    }

    fn check(&self, server: &TestServer, lines: &str, expected: Option<&str>, runs: &mut Runs) {
        let only_looks = lines.lines().all(|line| LOOKS.iter().any(|look| line.starts_with(look)));
        let give_up = Instant::now() + PATIENCE;
        let address = server.address.strip_prefix("http://").unwrap();
        loop {
            let mut shell = self.shell(&lines.replace(SERVER, address));
            let output = shell.env("PUNCTUAL_ADDRESS", &server.address).output().unwrap();
            let shown = [output.stdout, output.stderr].concat();
            let shown = text(&shown);
            assert!(output.status.success(), "{lines}\n{shown}");
            let Some(expected) = expected else { return };
            if is_alike(&without_lengths(expected), &without_lengths(shown)) {
                runs.extend(numbers(expected).zip(numbers(shown)));
                return;
            }
            let is_over = !only_looks || Instant::now() > give_up;
            assert!(!is_over, "{lines}\nexpected\n{expected}\nfound\n{shown}\n{:#?}", without_lengths(shown));
        }
    }

    /// A shell in the folder of the page that knows `punctual`, and stops at the first fault.
    fn shell(&self, lines: &str) -> Command {
        let mut path = Path::new(env!("CARGO_BIN_EXE_punctual")).parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-euc", lines]).current_dir(self.folder.path());
        shell.env("PATH", path).env("TZ", "UTC").env_remove("PUNCTUAL_NAMESPACE");
        shell
    }
}

/// A port that nobody has, and that the system gives to nobody who asks for any: those begin higher.
fn free_port() -> u16 {
    static ASKED: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 1_000) as u16 * 10;
    let mut ports = (0..1_000).map(|_| first + ASKED.fetch_add(1, Ordering::Relaxed));
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

/// Starts the server as the page says, but where it disturbs nobody.
fn serve(words: &str) -> TestServer {
    let words: Vec<&str> = words.split_whitespace().collect();
    TestServer::start_in(tempfile::tempdir().unwrap(), "127.0.0.1:0", &words)
}

/// The numbers of runs in the page, and what they are here.
type Runs = BTreeMap<String, String>;

/// The numbers that lines of a table begin with.
fn numbers(table: &str) -> impl Iterator<Item = String> {
    let first = table.lines().filter_map(|line| line.split_whitespace().next());
    first.filter(|word| word.bytes().all(|byte| byte.is_ascii_digit())).map(str::to_owned)
}

/// A command about a run of the page, about the run of here instead.
fn with_numbers(lines: &str, runs: &Runs) -> String {
    let Some(rest) = lines.strip_prefix("punctual run ") else { return lines.to_owned() };
    let words = rest.split(' ').map(|word| runs.get(word).map_or(word, String::as_str));
    format!("punctual run {}", words.collect::<Vec<_>>().join(" "))
}

/// Masked lines where `3 ms` is any length of time, and `now` or `3 s ago` any moment. A callback may be faster than the answer to its call, so who had a run
/// that is over may be the one or the other.
fn without_lengths(text: &str) -> Vec<String> {
    let lines = masked(text).into_iter().map(|line| {
        let mut words: Vec<&str> = Vec::new();
        for word in line.split_whitespace() {
            match (words.last(), word) {
                (Some(&("0" | "0.0")), "ms" | "s") => *words.last_mut().unwrap() = "length",
                (Some(&"length"), "ago") => *words.last_mut().unwrap() = "moment",
                (_, "now") => words.push("moment"),
                (_, "punctual.callback") if !line.contains(" running ") => words.push("punctual.node.node-0"),
                _ => words.push(word),
            }
        }
        words.join(" ")
    });
    lines.collect()
}

/// The fenced blocks of a page, in their order.
fn blocks(page: &str) -> Vec<Block> {
    let parts: Vec<&str> = page.split("```").collect();
    assert!(parts.len() % 2 == 1, "every block has an end");
    let fenced =
        parts.iter().skip(1).step_by(2).map(|block| block.split_once('\n').expect("a block has lines"));
    fenced.map(|(kind, text)| Block { kind: kind.to_owned(), text: text.to_owned() }).collect()
}
