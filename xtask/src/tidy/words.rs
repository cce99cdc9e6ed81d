//! One word, one meaning: words that the vocabulary marks with a star stand in no identifier.

use std::path::{Path, PathBuf};

const VOCABULARY: &str = "docs/concepts/vocabulary.md";

/// Where Temporal's contract is spoken, in its own words.
const TEMPORAL: [&str; 5] = [
    "clients/temporal",
    "crates/server/src/temporal",
    "crates/server/tests/server/temporal",
    "crates/server/tests/server/temporal.rs",
    "crates/temporal-api",
];

pub(super) fn faults(files: &[(PathBuf, String)]) -> Vec<String> {
    let Some((_, vocabulary)) = files.iter().find(|(path, _)| path == Path::new(VOCABULARY)) else {
        return vec![format!("{VOCABULARY}: is missing")];
    };
    let banned = banned(vocabulary);
    if banned.is_empty() {
        return vec![format!("{VOCABULARY}: marks no word with a star, so nothing is checked")];
    }
    let mut faults = Vec::new();
    let ours = |path: &Path| !TEMPORAL.iter().any(|place| path.starts_with(place));
    for (path, text) in
        files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "rs") && ours(path))
    {
        for (number, line) in text.lines().enumerate() {
            // Prose may name what others call a thing; identifiers may not.
            let code = line.split("//").next().unwrap_or_default();
            for word in banned.iter().filter(|word| identifiers(code).any(|found| is(found, word))) {
                faults.push(format!(
                    "{}:{}: `{word}` is not our word, see {VOCABULARY}",
                    path.display(),
                    number + 1
                ));
            }
        }
    }
    faults
}

/// Words followed by an escaped star, in the form that an identifier would have.
fn banned(vocabulary: &str) -> Vec<String> {
    vocabulary
        .lines()
        .filter_map(|line| line.trim_end().trim_end_matches('|').rsplit('|').next())
        .flat_map(|cell| cell.split(','))
        .filter_map(|word| word.trim().strip_suffix("\\*"))
        .map(|word| word.to_lowercase().replace(' ', "_"))
        .collect()
}

/// Identifiers of a line, without what stands in string literals.
fn identifiers(code: &str) -> impl Iterator<Item = &str> {
    let outside = code.split('"').step_by(2);
    outside.flat_map(|part| part.split(|letter: char| !letter.is_alphanumeric() && letter != '_'))
}

/// Whether an identifier, in snake or camel case, is this word.
fn is(identifier: &str, word: &str) -> bool {
    identifier.to_lowercase().replace('_', "") == word.replace('_', "")
}
