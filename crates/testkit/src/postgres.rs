//! A PostgreSQL of our own: in a temporary folder, durable, on loopback only, gone when dropped.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Where Debian keeps the server's programs, one folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// A folder whose `initdb` and `postgres` are taken instead, so that tests can be run on any version.
const CHOSEN: &str = "PUNCTUAL_TEST_POSTGRES";

/// Debian starts a server as soon as the package is there, unless this file says otherwise before.
const NO_CLUSTER: &str = "/etc/postgresql-common/createcluster.d/punctual.conf";

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

/// Runs a server until its own standard input is closed, and cleans up: so nothing stays even when we are killed.
const GUARD: &str = r#"folder=$1; shift; "$@" & read -r _; kill -INT $!; wait $!; rm -rf "$folder""#;

/// A running server.
pub struct Postgres {
    guard: Child,
    programs: Programs,
    user: Option<&'static str>,
    folder: PathBuf,
    port: u16,
    settings: &'static [&'static str],
}

/// Where programs are. Whoever chose a version may have no more than the server, and clients of another one will do.
struct Programs {
    server: PathBuf,
    clients: PathBuf,
}

/// Tells several servers of one process apart.
static STARTED: AtomicU32 = AtomicU32::new(0);

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
        let programs = programs()?;
        let user = user()?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = format!("punctual-postgres-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        if let Some(user) = user {
            run(command("chown").arg(user).arg(&folder))?;
        }
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
        // Free now, and nobody else here asks for ports by number.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let guard = guard(&programs.server, user, &folder, port, settings)?;
        let postgres = Postgres { guard, programs, user, folder, port, settings };
        postgres.wait()?;
        Ok(postgres)
    }

    /// Ends it without a word to anybody, as a failing machine does, and starts it again on the same data.
    pub fn crash_and_restart(&mut self) -> Result<()> {
        let pid = fs::read_to_string(self.folder.join("data/postmaster.pid"))?;
        let pid = pid.lines().next().context("postmaster.pid is empty")?.to_owned();
        // The guard would clean up behind a server that ends with it, so it goes first.
        self.guard.kill()?;
        self.guard.wait()?;
        run(command("kill").args(["-QUIT", &pid]))?;
        while command("kill").args(["-0", &pid]).stderr(Stdio::null()).status()?.success() {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.guard = guard(&self.programs.server, self.user, &self.folder, self.port, self.settings)?;
        self.wait()
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
    let log = File::options().create(true).append(true).open(folder.join("log"))?;
    let mut guard = as_user(user, Path::new("sh"), folder);
    guard.args(["-c", GUARD, "sh"]).arg(folder).arg(programs.join("postgres"));
    guard.arg("-D").arg(folder.join("data")).arg("-k").arg(folder).arg("-p").arg(port.to_string());
    guard.args(SETTINGS.iter().chain(settings).flat_map(|setting| ["-c", setting]));
    guard.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
    guard.spawn().context("cannot start PostgreSQL")
}

/// The programs that were chosen, or those of the newest version that is installed.
fn programs() -> Result<Programs> {
    let Some(chosen) = std::env::var_os(CHOSEN) else {
        let installed = installed()?;
        return Ok(Programs { server: installed.clone(), clients: installed });
    };
    // They are run from another folder than this one.
    let server = fs::canonicalize(&chosen).with_context(|| format!("{CHOSEN} is {}", chosen.display()))?;
    if !server.join("initdb").exists() || !server.join("postgres").exists() {
        bail!("{CHOSEN} is {}, which lacks initdb or postgres", server.display());
    }
    let has_clients = ["createdb", "psql", "pg_isready"].iter().all(|client| server.join(client).exists());
    let clients = if has_clients { server.clone() } else { installed()? };
    Ok(Programs { server, clients })
}

/// The folder with the programs of the newest version, which is installed where there is none and we may.
fn installed() -> Result<PathBuf> {
    if let Some(found) = newest() {
        return Ok(found);
    }
    eprintln!("PostgreSQL is missing, installing postgresql");
    if !exists("apt-get") || !is_root()? {
        bail!("PostgreSQL is needed below {VERSIONS} and we may not install it; install it and try again");
    }
    let file = Path::new(NO_CLUSTER);
    fs::create_dir_all(file.parent().unwrap_or(file))?;
    fs::write(file, "create_main_cluster = false\n")?;
    run(command("apt-get").args(["update", "-qq"]))?;
    run(command("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args([
        "install",
        "-y",
        "-qq",
        "postgresql",
    ]))?;
    newest().with_context(|| format!("PostgreSQL was installed, but not below {VERSIONS}"))
}

fn newest() -> Option<PathBuf> {
    let folders = fs::read_dir(VERSIONS).ok()?.flatten();
    let versions = folders.filter_map(|folder| folder.file_name().to_str()?.parse::<u32>().ok());
    let bin = |version: u32| Path::new(VERSIONS).join(version.to_string()).join("bin");
    let mut found: Vec<u32> = versions.filter(|version| bin(*version).join("postgres").exists()).collect();
    found.sort_unstable();
    found.pop().map(bin)
}

/// Whom the server runs as: nobody else, unless we are root, which it refuses.
fn user() -> Result<Option<&'static str>> {
    if !is_root()? {
        return Ok(None);
    }
    let known = |user: &&str| command("id").arg(user).output().is_ok_and(|output| output.status.success());
    ["postgres", "nobody"].into_iter().find(known).map(Some).context("no user to run PostgreSQL as")
}

fn is_root() -> Result<bool> {
    Ok(output(command("id").arg("-u"))?.trim() == "0")
}

/// A program in a folder that the user may enter.
fn as_user(user: Option<&str>, program: &Path, folder: &Path) -> Command {
    let mut command = match user {
        None => Command::new(program),
        Some(user) => {
            // It becomes the program instead of staying its parent.
            let mut command = Command::new("setpriv");
            command.args(["--reuid", user, "--regid", user, "--clear-groups"]).arg(program);
            command
        }
    };
    command.current_dir(folder);
    command
}

fn command(program: &str) -> Command {
    Command::new(program)
}

fn exists(program: &str) -> bool {
    command(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
