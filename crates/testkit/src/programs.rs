//! Programs that tests run: where they are, how they are installed where they are missing, as whom they run, and how they end.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};

/// Where Debian keeps the server's programs, one folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// A folder whose `initdb` and `postgres` are taken instead, so that tests can be run on any version.
const CHOSEN: &str = "PUNCTUAL_TEST_POSTGRES";

/// Debian starts a server as soon as the package is there, unless this file says otherwise before.
const NO_CLUSTER: &str = "/etc/postgresql-common/createcluster.d/punctual.conf";

/// Runs a server until its own standard input is closed, and cleans up: so nothing stays even when we are killed.
const GUARD: &str =
    r#"signal=$1; folder=$2; shift 2; "$@" & read -r _; kill -"$signal" $!; wait $!; rm -rf "$folder""#;

/// Tells several servers of one process apart.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// Where programs are. Whoever chose a version may have no more than the server, and clients of another one will do.
#[derive(Clone)]
pub(crate) struct Programs {
    pub(crate) server: PathBuf,
    pub(crate) clients: PathBuf,
}

/// The programs that were chosen, or those of the newest version that is installed.
pub(crate) fn postgres_programs() -> Result<Programs> {
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
    install("postgresql")?;
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

/// Installs one of Debian's packages.
pub(crate) fn install(package: &str) -> Result<()> {
    run(command("apt-get").args(["update", "-qq"]))?;
    let mut install = command("apt-get");
    run(install.env("DEBIAN_FRONTEND", "noninteractive").args(["install", "-y", "-qq", package]))
}

/// A port that is free now, and nobody else here asks for ports by number.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// A new folder for a server that runs as this user.
pub(crate) fn folder(kind: &str, user: Option<&str>) -> Result<PathBuf> {
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("punctual-{kind}-{}-{number}", std::process::id()));
    fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    give(&folder, user)?;
    Ok(folder)
}

/// Makes a file or folder the user's own.
pub(crate) fn give(path: &Path, user: Option<&str>) -> Result<()> {
    user.map_or(Ok(()), |user| run(command("chown").arg(user).arg(path)))
}

/// Starts a server, which ends by this signal, and its folder with it, when the standard input of its guard is closed.
pub(crate) fn guarded(
    signal: &str,
    user: Option<&str>,
    folder: &Path,
    program: &Path,
    configure: impl FnOnce(&mut Command),
) -> Result<Child> {
    let log = File::options().create(true).append(true).open(folder.join("log"))?;
    let mut guard = as_user(user, Path::new("sh"), folder);
    guard.args(["-c", GUARD, "sh", signal]).arg(folder).arg(program);
    configure(&mut guard);
    guard.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
    guard.spawn().with_context(|| format!("cannot start {}", program.display()))
}

/// Whom the server runs as: nobody else, unless we are root, which it refuses.
pub(crate) fn user() -> Result<Option<&'static str>> {
    if !is_root()? {
        return Ok(None);
    }
    let known = |user: &&str| command("id").arg(user).output().is_ok_and(|output| output.status.success());
    ["postgres", "nobody"].into_iter().find(known).map(Some).context("no user to run PostgreSQL as")
}

pub(crate) fn is_root() -> Result<bool> {
    Ok(output(command("id").arg("-u"))?.trim() == "0")
}

/// A program in a folder that the user may enter.
pub(crate) fn as_user(user: Option<&str>, program: &Path, folder: &Path) -> Command {
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

pub(crate) fn command(program: &str) -> Command {
    Command::new(program)
}

pub(crate) fn exists(program: &str) -> bool {
    command(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
