//! PgBouncer between clients and a PostgreSQL of ours: a proxy that lends its connections to many, gone when dropped.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::Postgres;
use crate::programs::{command, exists, folder, free_port, guarded, install, is_root, output, user};

/// Where Debian has it.
const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// While this says 101, packages start no servers when they are installed.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Since this version prepared statements of clients are known on whatever connection they get.
const KEEPS_STATEMENTS: (u32, u32) = (1, 21);

const START_MAX: Duration = Duration::from_secs(20);

/// For how long a client has a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// Until it leaves.
    Session,
    /// Until its transaction ends.
    Transaction,
}

/// A running proxy.
pub struct Bouncer {
    guard: Child,
    folder: PathBuf,
    port: u16,
    keeps_statements: bool,
}

impl Bouncer {
    /// Starts it. Nothing if it is missing and we may not install it.
    pub fn start(postgres: &Postgres, pooling: Pooling) -> Result<Option<Bouncer>> {
        if !Path::new(PROGRAM).exists() {
            if !exists("apt-get") || !is_root()? {
                return Ok(None);
            }
            eprintln!("PgBouncer is missing, installing pgbouncer");
            install_quietly()?;
        }
        let version = output(command(PROGRAM).arg("--version"))?;
        let keeps_statements = version_of(&version)? >= KEEPS_STATEMENTS;
        let (user, port) = (user()?, free_port()?);
        let folder = folder("pgbouncer", user)?;
        let mode = match pooling {
            Pooling::Session => "session",
            Pooling::Transaction => "transaction",
        };
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = {mode}\nignore_startup_parameters = extra_float_digits\n{}",
            postgres.port(),
            if keeps_statements { "max_prepared_statements = 200\n" } else { "" },
        );
        let file = folder.join("settings.ini");
        fs::write(&file, settings)?;
        let guard = guarded("KILL", user, &folder, Path::new(PROGRAM), |proxy| {
            proxy.arg(&file);
        })?;
        let bouncer = Bouncer { guard, folder, port, keeps_statements };
        bouncer.wait()?;
        Ok(Some(bouncer))
    }

    /// What a client of a database connects to.
    pub fn url(&self, database: &str) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Whether statements that were prepared are known also when the next transaction gets another connection.
    pub fn keeps_statements(&self) -> bool {
        self.keeps_statements
    }

    fn wait(&self) -> Result<()> {
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            if begun.elapsed() > START_MAX {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                bail!("PgBouncer has not started within {} s:\n{log}", START_MAX.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Installs the package without the server that it would start for the whole machine.
fn install_quietly() -> Result<()> {
    let policy = Path::new(POLICY);
    if policy.exists() {
        return install("pgbouncer");
    }
    fs::write(policy, "#!/bin/sh\nexit 101\n")?;
    let installed = command("chmod").arg("755").arg(policy).status().map_err(Into::into);
    let installed = installed.and_then(|_| install("pgbouncer"));
    fs::remove_file(policy)?;
    installed
}

/// The first two numbers of `PgBouncer 1.18.0`, in its first line.
fn version_of(said: &str) -> Result<(u32, u32)> {
    let odd = || format!("PgBouncer says of its version: {said}");
    let mut numbers = said.split_whitespace().nth(1).with_context(odd)?.split('.');
    let mut number = || numbers.next().and_then(|number| number.parse().ok());
    Ok((number().with_context(odd)?, number().with_context(odd)?))
}
