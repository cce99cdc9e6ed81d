//! A Node of our own with packages from npm, kept below the target folder.

use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::run::{command, provide, root, run};

/// From npm too: peers need a newer one than Debian has, and numbers are of one version everywhere.
const NODE: &str = "22.23.1";

/// Node and where its packages are.
pub struct Node {
    /// The program.
    pub program: PathBuf,
    /// The folder that has `node_modules`.
    pub folder: PathBuf,
}

/// Installs these packages and a Node to run them.
pub fn node(name: &str, packages: &[&str]) -> Result<Node> {
    let runtime = format!("node-{}", platform());
    let pinned = format!("{runtime}@{NODE}");
    let folder = install(name, &[&[pinned.as_str()], packages].concat())?;
    let program = folder.join("node_modules").join(&runtime).join("bin/node");
    Ok(Node { program, folder })
}

/// Installs these packages, each with its version, unless exactly these are there; says which folder has `node_modules`.
pub fn install(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = root().join("target").join(name);
    let wanted = format!("{}\n", packages.join(" "));
    let stamp = folder.join("installed.txt");
    let has_them = folder.join("node_modules").exists();
    if has_them && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    provide(&["node"], "nodejs")?;
    provide(&["npm"], "npm")?;
    fs::create_dir_all(&folder)?;
    // Without it npm looks for a package in the folders above.
    fs::write(folder.join("package.json"), "{ \"private\": true }\n")?;
    // None of them needs a script of its own to run at install.
    run(command("npm")
        .current_dir(&folder)
        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--save-exact", "--loglevel=error"])
        // By default it tries for minutes before it says that the registry is out of reach.
        .args(["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=2000"])
        .args(packages))
    .with_context(|| format!("cannot install {wanted}"))?;
    fs::write(&stamp, wanted)?;
    Ok(folder)
}

/// This machine, as packages with binaries call it.
pub fn platform() -> String {
    let system = if OS == "macos" { "darwin" } else { OS };
    let machine = match ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{system}-{machine}")
}
