//! House rules that can be checked are tests; each one here has a reason in its message.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::run::{command, output, root};

mod edges;
mod links;
mod words;

/// Files without tests that grow past this are split along the flow.
const LINES_MAX: usize = 600;

pub fn run() -> Result<()> {
    let files = files()?;
    let mut faults = Vec::new();
    for (path, text) in &files {
        if path.extension().is_some_and(|extension| extension == "rs") && !is_generated(path) {
            faults.extend(source_faults(path, text));
        }
        if path.extension().is_some_and(|extension| extension == "md") {
            faults.extend(links::faults(&root(), path, text));
        }
    }
    faults.extend(edges::faults(&files)?);
    faults.extend(words::faults(&files));
    if faults.is_empty() {
        eprintln!("{} files are tidy", files.len());
        return Ok(());
    }
    bail!("{} faults:\n{}", faults.len(), faults.join("\n"))
}

/// Every text file that git knows or would add, with its path from the root.
fn files() -> Result<Vec<(PathBuf, String)>> {
    let listed = output(command("git").args(["ls-files", "--cached", "--others", "--exclude-standard"]))?;
    let mut files = Vec::new();
    for path in listed.lines().map(PathBuf::from) {
        // What was deleted but not yet committed is listed too; what is no text is not ours to judge.
        if let Ok(text) = std::fs::read_to_string(root().join(&path)) {
            files.push((path, text));
        }
    }
    files.sort();
    Ok(files)
}

/// What `cargo xtask codegen` writes is as long as it is.
fn is_generated(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("src/generated"))
}

fn source_faults(path: &Path, text: &str) -> Vec<String> {
    let shown = path.display();
    let mut faults = Vec::new();
    if !text.starts_with("//! ") {
        faults.push(format!("{shown}: opens without one sentence on what the file is for"));
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        faults.push(format!("{shown}: has {lines} lines, split it along the flow at {LINES_MAX}"));
    }
    // Assembled, so that this file does not find itself.
    for stub in [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[ig", "nore")] {
        for (number, _) in text.lines().enumerate().filter(|(_, line)| line.contains(stub)) {
            faults.push(format!("{shown}:{}: `{stub}` is work that is not done", number + 1));
        }
    }
    faults
}
