//! The store's tests on every version of PostgreSQL that is supported, not only on the one that the machine has.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::node::{install, platform};
use crate::run::{cargo, command, output, run};

/// The supported versions, each with the package that has its binaries. Pinned: plans may differ between releases.
const VERSIONS: [(&str, &str); 6] = [
    ("13", "13.23.0-beta.16"),
    ("14", "14.23.0-beta.17"),
    ("15", "15.18.0-beta.17"),
    ("16", "16.14.0-beta.17"),
    ("17", "17.10.0-beta.17"),
    ("18", "18.4.0-beta.17"),
];

/// Where the tests look for the server's programs.
const CHOSEN: &str = "PUNCTUAL_TEST_POSTGRES";

/// Runs all tests of the store on these versions, or on all.
pub fn run_on(versions: &[&str]) -> Result<()> {
    let all = VERSIONS.map(|(version, _)| version);
    let versions = if versions.is_empty() { &all } else { versions };
    let mut times = Vec::new();
    for version in versions {
        let programs = programs(version)?;
        eprintln!("\nPostgreSQL {version}: {}", programs.display());
        let begun = Instant::now();
        // The tests of the kit say whether those of the store will run on this version.
        for tests in ["punctual-testkit", "punctual-store-postgres"] {
            run(cargo().args(["test", "--quiet", "-p", tests]).env(CHOSEN, &programs))
                .with_context(|| format!("PostgreSQL {version}"))?;
        }
        times.push((version, begun.elapsed()));
    }
    eprintln!();
    for (version, time) in times {
        eprintln!("PostgreSQL {version}: passed in {:.1} s", time.as_secs_f64());
    }
    Ok(())
}

/// The folder with `initdb` and `postgres` of a version, installed below the target folder.
fn programs(version: &str) -> Result<PathBuf> {
    let Some((_, pinned)) = VERSIONS.iter().find(|(known, _)| *known == version) else {
        bail!(
            "PostgreSQL {version} is not among those that are tested: {:?}",
            VERSIONS.map(|(known, _)| known)
        );
    };
    let name = format!("@embedded-postgres/{}", platform());
    let folder = install(&format!("postgres-{version}"), &[&format!("{name}@{pinned}")])?;
    let package = folder.join("node_modules").join(&name);
    // A package cannot have links, so it has a list of them, and a script that makes those that are missing.
    run(command("node").current_dir(&package).arg("scripts/hydrate-symlinks.js"))?;
    let programs = package.join("native/bin");
    let said = output(command(&programs.join("postgres").to_string_lossy()).arg("--version"))?;
    if !said.contains(&format!(" {version}.")) {
        bail!("{name}@{pinned} is {}", said.trim());
    }
    Ok(programs)
}
