//! The README tells the truth: every `$ punctual …` in it is run and must print what stands below it.

use std::process::Command;

/// The moment at which the README's examples were written down.
const NOW: &str = "2026-03-27T12:00:00Z";

#[test]
fn every_example_prints_what_the_readme_shows() {
    let readme = include_str!("../../../../README.md");
    let examples = examples(readme);
    assert!(examples.len() >= 5, "found {examples:?}");
    for (line, expected) in examples {
        let words = words(line.strip_prefix("punctual ").expect("examples are of punctual"));
        let output = Command::new(env!("CARGO_BIN_EXE_punctual"))
            .args(&words)
            .env("PUNCTUAL_NOW", NOW)
            .output()
            .expect("the binary starts");
        let shown = [output.stdout, output.stderr].concat();
        assert_eq!(String::from_utf8_lossy(&shown).trim_end(), expected.trim_end(), "{line}");
    }
}

/// Commands of the `console` blocks, each with the lines that follow it.
fn examples(text: &str) -> Vec<(&str, String)> {
    let mut examples: Vec<(&str, String)> = Vec::new();
    let blocks = text.split("```console\n").skip(1).filter_map(|block| block.split("```").next());
    for line in blocks.flat_map(str::lines) {
        match (line.strip_prefix("$ "), examples.last_mut()) {
            (Some(command), _) => examples.push((command, String::new())),
            (None, Some((_, expected))) => *expected += &format!("{line}\n"),
            (None, None) => panic!("a console block begins with a command, found {line}"),
        }
    }
    examples
}

/// Words of a command line; single quotes hold one together.
fn words(line: &str) -> Vec<String> {
    let quoted = line.split('\'').enumerate();
    quoted
        .flat_map(|(index, part)| match index % 2 {
            1 => vec![part.to_owned()],
            _ => part.split_whitespace().map(str::to_owned).collect(),
        })
        .collect()
}
