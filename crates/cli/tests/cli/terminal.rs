//! `top` on a terminal: it draws, listens to keys, says that a server is gone, and gives the terminal back.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use super::server::{PATIENCE, TestServer};

/// Takes the other screen of the terminal, and gives it back.
const TAKEN: &str = "\u{1b}[?1049h";
const GIVEN_BACK: &str = "\u{1b}[?1049l";

/// A command with a terminal of its own.
struct Terminal {
    child: Child,
    keyboard: File,
    slave: File,
    shown: Receiver<Vec<u8>>,
    text: String,
}

impl Terminal {
    fn start(server: &TestServer, args: &[&str]) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = File::options().read(true).write(true).open(name).unwrap();
        tcsetwinsize(&slave, Winsize { ws_row: 40, ws_col: 140, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        let mut command = server.command(args);
        let child =
            command.env("TERM", "xterm").stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
        let keyboard = File::from(master);
        let mut screen = keyboard.try_clone().unwrap();
        let (tell, shown) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count) = screen.read(&mut bytes) {
                if count == 0 || tell.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keyboard, slave, shown, text: String::new() }
    }

    /// Waits until something is drawn. Only what changes is drawn again, so look for what is drawn in one piece.
    #[track_caller]
    fn sees(&mut self, part: &str) {
        let give_up = Instant::now() + PATIENCE;
        while !self.text.contains(part) {
            let left = give_up.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => self.text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("waited for {part:?}, saw {:?}", self.text),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end, and for the terminal as it was.
    #[track_caller]
    fn ends(mut self, exit_code: i32) {
        self.sees(GIVEN_BACK);
        assert_eq!(self.child.wait().unwrap().code(), Some(exit_code));
        let modes = tcgetattr(&self.slave).unwrap().local_modes;
        assert!(modes.contains(rustix::termios::LocalModes::ECHO), "what is typed is shown again");
    }
}

#[test]
fn it_draws_what_happens_and_ends_with_a_key() {
    let server = TestServer::start();
    server.ok(&["queue", "create", "letters", "--concurrency=3", "--paused"]);
    server.ok(&["run", "enqueue", "--queue=letters", "--handler=send", "--count=2"]);
    let mut top = Terminal::start(&server, &["top"]);
    top.sees(TAKEN);
    for part in ["node-1", "ready", "letters", "paused", "no longest runs", "starts/s"] {
        top.sees(part);
    }
    top.press("p");
    top.sees("held");
    top.press("\t\u{1b}[B\u{1b}[A");
    top.press("q");
    top.ends(0);
}

#[test]
fn it_ends_with_a_signal_or_with_ctrl_c() {
    let server = TestServer::start();
    let mut top = Terminal::start(&server, &["top"]);
    top.sees("ready");
    kill_process(Pid::from_child(&top.child), Signal::TERM).unwrap();
    top.ends(0);
    let mut top = Terminal::start(&server, &["top"]);
    top.sees("ready");
    top.press("\u{3}");
    top.ends(0);
}

#[test]
fn it_waits_for_a_server_that_is_gone() {
    let server = TestServer::start();
    let mut top = Terminal::start(&server, &["top"]);
    top.sees("ready");
    server.process.signal(Signal::KILL);
    server.process.wait();
    top.sees("asking again");
    top.text.clear();
    let listen = server.address.strip_prefix("http://").unwrap().to_owned();
    let _server = TestServer::start_in(server.directory, &listen, &[]);
    top.sees("ready");
    top.press("q");
    top.ends(0);
}
