//! Runs other programs and says which one failed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// A program to run in the root of the workspace.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    command(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
}

/// Runs to the end; an exit code other than zero is an error that shows the command.
pub fn run(command: &mut Command) -> Result<()> {
    let line = shown(command);
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed with {status}");
    }
    Ok(())
}

/// Runs to the end and gives what it printed.
pub fn output(command: &mut Command) -> Result<String> {
    let line = shown(command);
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed with {}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a program can be started at all.
pub fn exists(program: &str) -> bool {
    command(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Makes sure that one of some programs is there, installing a Debian package where we may.
pub fn provide(programs: &[&str], package: &str) -> Result<()> {
    if programs.iter().any(|program| exists(program)) {
        return Ok(());
    }
    eprintln!("{} is missing, installing {package}", programs.join(" or "));
    let installed = exists("apt-get")
        && run(command("apt-get").args(["update", "-qq"])).is_ok()
        && run(command("apt-get").args(["install", "-y", "-qq", package])).is_ok();
    if !installed || !programs.iter().any(|program| exists(program)) {
        bail!("{} is needed and could not be installed; install it and try again", programs.join(" or "));
    }
    Ok(())
}

/// A Python of our own with these packages, kept below the target folder.
pub fn python(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = root().join("target").join(name);
    let python = folder.join("bin").join("python");
    if !python.exists() {
        provide(&["python3"], "python3-venv")?;
        run(command("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    run(command(&python.to_string_lossy()).args(["-m", "pip", "install", "--quiet"]).args(packages))?;
    Ok(python)
}

fn shown(command: &Command) -> String {
    let program =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}
