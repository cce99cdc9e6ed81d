//! Crate edges are the ones that ARCHITECTURE.md allows: a new edge changes its table in the same commit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run::{cargo, output};

/// The table begins after this line and ends at the first line that is no row.
const MARK: &str = "<!-- crate edges: read by cargo tidy -->";

type Edges = BTreeMap<String, BTreeSet<String>>;

pub(super) fn faults(files: &[(PathBuf, String)]) -> Result<Vec<String>> {
    let (_, text) = files
        .iter()
        .find(|(path, _)| path == Path::new("ARCHITECTURE.md"))
        .context("ARCHITECTURE.md is missing")?;
    let (allowed, found) = (table(text), metadata()?);
    let mut faults = Vec::new();
    for (package, dependencies) in &found {
        let Some(allowed) = allowed.get(package) else {
            faults.push(format!("ARCHITECTURE.md: the table of crate edges has no row for `{package}`"));
            continue;
        };
        for edge in dependencies.difference(allowed) {
            faults.push(format!("{package}: depends on `{edge}`, which ARCHITECTURE.md does not allow"));
        }
    }
    for package in allowed.keys().filter(|package| !found.contains_key(*package)) {
        faults.push(format!(
            "ARCHITECTURE.md: the table of crate edges names `{package}`, which does not exist"
        ));
    }
    Ok(faults)
}

/// Rows of the form "| `package` | `dependency`, `dependency` |".
fn table(text: &str) -> Edges {
    let rows = text.lines().skip_while(|line| *line != MARK).skip(1).skip_while(|line| line.is_empty());
    let names =
        |cell: &str| -> BTreeSet<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    rows.take_while(|line| line.starts_with('|'))
        .filter_map(|line| {
            let mut cells = line.split('|').skip(1);
            let package = names(cells.next()?).into_iter().next()?;
            Some((package, names(cells.next()?)))
        })
        .collect()
}

/// What the manifests say: edges between our own crates, without those of tests.
fn metadata() -> Result<Edges> {
    let text = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let ours: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut edges = Edges::new();
    for package in packages {
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let names = dependencies
            .filter(|dependency| dependency["kind"] != "dev")
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|name| ours.contains(name));
        let name = package["name"].as_str().context("a package without a name")?;
        edges.insert(name.to_owned(), names.map(str::to_owned).collect());
    }
    Ok(edges)
}
