//! A PostgreSQL of our own: in a temporary folder, durable, on loopback only, gone when dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::certificate::{CERTIFICATE, KEY};
use crate::programs::{
    Programs, as_user, command, folder, free_port, give, guarded, postgres_programs, run, user,
};

const START_MAX: Duration = Duration::from_secs(60);

/// Durable as anyone would run it. The rest keeps checkpoints out of measurements that last for minutes.
const SETTINGS: [&str; 7] = [
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "shared_buffers=256MB",
    "max_wal_size=4GB",
    "checkpoint_timeout=30min",
    "listen_addresses=127.0.0.1",
];

/// A running server.
pub struct Postgres {
    guard: Child,
    programs: Programs,
    user: Option<&'static str>,
    folder: PathBuf,
    port: u16,
    settings: &'static [&'static str],
}

impl Postgres {
    /// Installs the programs where they are missing and we may, makes an empty cluster and starts it.
    pub fn start() -> Result<Postgres> {
        Postgres::start_with(&[])
    }

    /// The same, with memory as a server of some size has, and log files that are used again instead of made anew: making one
    /// holds every commit up for ten milliseconds and more, which a server that has run for a while does no longer.
    pub fn start_to_measure() -> Result<Postgres> {
        Postgres::start_with(&["shared_buffers=2GB", "min_wal_size=4GB"])
    }

    /// The same as [`Postgres::start`], without waiting for the disk: for tests that make many databases and pull no plug.
    pub fn start_careless() -> Result<Postgres> {
        Postgres::start_with(&["fsync=off", "full_page_writes=off", "max_wal_size=512MB"])
    }

    fn start_with(settings: &'static [&'static str]) -> Result<Postgres> {
        let programs = postgres_programs()?;
        let user = user()?;
        let folder = folder("postgres", user)?;
        let data = folder.join("data");
        let made = as_user(user, &programs.server.join("initdb"), &folder)
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .arg("--pgdata")
            .arg(&data)
            .stdout(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            let _ = fs::remove_dir_all(&folder);
            bail!("initdb failed in {}", folder.display());
        }
        let port = free_port()?;
        let guard = guard(&programs.server, user, &folder, port, settings)?;
        let postgres = Postgres { guard, programs, user, folder, port, settings };
        postgres.wait()?;
        Ok(postgres)
    }

    /// A second server that repeats what this one commits, before anybody hears of it. Nothing if the programs for that are missing.
    pub fn standby(&self) -> Result<Option<Postgres>> {
        let copy = self.programs.server.join("pg_basebackup");
        if !copy.exists() {
            return Ok(None);
        }
        let (user, folder, port) = (self.user, folder("postgres", self.user)?, free_port()?);
        let mut copying = as_user(user, &copy, &folder);
        copying.args(["--host=127.0.0.1", "--username=postgres", "--port"]).arg(self.port.to_string());
        copying.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--pgdata"]);
        run(copying.arg(folder.join("data")))?;
        let (programs, settings) = (self.programs.clone(), self.settings);
        let guard = guard(&programs.server, user, &folder, port, settings)?;
        let standby = Postgres { guard, programs, user, folder, port, settings };
        standby.wait()?;
        self.query("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'")?;
        self.query("postgres", "SELECT pg_reload_conf()")?;
        let begun = Instant::now();
        let repeats = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        while self.query("postgres", repeats)?.trim() != "1" {
            if begun.elapsed() > START_MAX {
                bail!("the standby does not repeat what is committed:\n{}", standby.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Some(standby))
    }

    /// Ends it without a word to anybody, as a failing machine does, and starts it again on the same data.
    pub fn crash_and_restart(&mut self) -> Result<()> {
        self.crash()?;
        self.guard = guard(&self.programs.server, self.user, &self.folder, self.port, self.settings)?;
        self.wait()
    }

    /// Ends it without a word to anybody, as a failing machine does.
    pub fn crash(&mut self) -> Result<()> {
        let pid = fs::read_to_string(self.folder.join("data/postmaster.pid"))?;
        let pid = pid.lines().next().context("postmaster.pid is empty")?.to_owned();
        // The guard would clean up behind a server that ends with it, so it goes first.
        self.guard.kill()?;
        self.guard.wait()?;
        run(command("kill").args(["-QUIT", &pid]))?;
        while command("kill").args(["-0", &pid]).stderr(Stdio::null()).status()?.success() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// What a client connects to.
    pub fn url(&self) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Where it listens, on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// An empty database, and what a client connects to.
    pub fn create_database(&self, name: &str) -> Result<String> {
        let port = self.port.to_string();
        let mut create = Command::new(self.programs.clients.join("createdb"));
        run(create.args(["--host=127.0.0.1", "--username=postgres", "--port", &port, name]))?;
        Ok(format!("postgresql://postgres@127.0.0.1:{}/{name}", self.port))
    }

    /// What a statement answers in a database: a line for each row, `|` between columns.
    pub fn query(&self, database: &str, sql: &str) -> Result<String> {
        let port = self.port.to_string();
        let mut ask = Command::new(self.programs.clients.join("psql"));
        ask.args(["--host=127.0.0.1", "--username=postgres", "--no-psqlrc", "--quiet", "--tuples-only"]);
        ask.args(["--no-align", "--port", &port, "--dbname", database, "--command", sql]);
        let answer = ask.output().context("cannot run psql")?;
        if !answer.status.success() {
            bail!("{sql}: {}", String::from_utf8_lossy(&answer.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
    }

    /// Ends all connections to a database, as an operator or a failing proxy does; says how many.
    pub fn end_connections(&self, database: &str) -> Result<usize> {
        let sql = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = '{database}' AND pid <> pg_backend_pid()"
        );
        Ok(self.query(database, &sql)?.lines().count())
    }

    /// Takes encrypted connections alone from now on, and says that it is `localhost`. False if it was built without that.
    pub fn encrypt(&self) -> Result<bool> {
        for (name, bytes) in [("server.pem", CERTIFICATE), ("server.key", KEY)] {
            let file = self.folder.join("data").join(name);
            fs::write(&file, bytes)?;
            run(command("chmod").arg("600").arg(&file))?;
            give(&file, self.user)?;
        }
        let set =
            |name: &str, value: &str| self.query("postgres", &format!("ALTER SYSTEM SET {name} = '{value}'"));
        set("ssl_cert_file", "server.pem")?;
        set("ssl_key_file", "server.key")?;
        match set("ssl", "on") {
            Err(error) if error.to_string().contains("not supported by this build") => return Ok(false),
            done => done?,
        };
        let rules = self.folder.join("data/pg_hba.conf");
        let encrypted = fs::read_to_string(&rules)?.replace("\nhost ", "\nhostssl ");
        fs::write(&rules, encrypted)?;
        self.query("postgres", "SELECT pg_reload_conf()")?;
        let begun = Instant::now();
        let seen = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        while self.query("postgres", seen)?.trim() != "t" {
            if begun.elapsed() > START_MAX {
                bail!("PostgreSQL does not encrypt:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(true)
    }

    /// What it has written to its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn wait(&self) -> Result<()> {
        let begun = Instant::now();
        let ready = self.programs.clients.join("pg_isready");
        let port = self.port.to_string();
        while begun.elapsed() < START_MAX {
            let asked = Command::new(&ready).args(["--quiet", "--host=127.0.0.1", "--port", &port]).status();
            if asked.is_ok_and(|status| status.success()) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("PostgreSQL has not started within {} s:\n{}", START_MAX.as_secs(), self.log())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Starts the server below a guard.
fn guard(programs: &Path, user: Option<&str>, folder: &Path, port: u16, settings: &[&str]) -> Result<Child> {
    guarded("INT", user, folder, &programs.join("postgres"), |server| {
        server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder).arg("-p").arg(port.to_string());
        server.args(SETTINGS.iter().chain(settings).flat_map(|setting| ["-c", setting]));
    })
}
