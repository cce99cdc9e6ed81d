//! The README tells the truth: every `$ punctual …` in it is run and must print what stands below it.
//!
//! Examples without a server print exactly that. Those with one run against a real server that the test starts, and must print
//! the same but for numbers, weekdays and distances in time; a line `...` stands for any lines.

use std::process::Command;

use super::server::TestServer;

/// The moment at which the README's examples were written down.
const NOW: &str = "2026-03-27T12:00:00Z";

/// Commands that need a server.
const LIVE: [&str; 5] = ["serve", "schedule", "run", "queue", "worker"];

/// A watch may begin in the middle of things.
const TRIES_MAX: usize = 3;

#[test]
fn every_example_prints_what_the_readme_shows() {
    tell_the_truth(include_str!("../../../../README.md"), 10);
}

#[test]
fn every_example_prints_what_the_start_page_shows() {
    tell_the_truth(include_str!("../../../../docs/start.md"), 5);
}

fn tell_the_truth(page: &str, least: usize) {
    let examples = examples(page);
    assert!(examples.len() >= least, "found {examples:?}");
    let mut server = None;
    for (line, expected) in examples {
        let words = words(line.strip_prefix("punctual ").expect("examples are of punctual"));
        match words[0].as_str() {
            "serve" => server = Some(serve(&words, &expected)),
            verb if LIVE.contains(&verb) => {
                let server = server.as_ref().expect("a server is started before it is asked");
                check_live(server, &words, &expected);
            }
            _ => check_exact(&words, &expected),
        }
    }
}

fn check_exact(words: &[String], expected: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_punctual"))
        .args(words)
        .env("PUNCTUAL_NOW", NOW)
        .output()
        .expect("the binary starts");
    let shown = [output.stdout, output.stderr].concat();
    assert_eq!(String::from_utf8_lossy(&shown).trim_end(), expected.trim_end(), "{words:?}");
}

/// Starts the server as shown, but where it disturbs nobody.
fn serve(words: &[String], expected: &str) -> TestServer {
    let more: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    assert!(expected.starts_with("ready at http://127.0.0.1:"), "{expected}");
    TestServer::start_in(tempfile::tempdir().unwrap(), "127.0.0.1:0", &more)
}

fn check_live(server: &TestServer, words: &[String], expected: &str) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut shown = String::new();
    for _ in 0..TRIES_MAX {
        let output = server.run(&words);
        shown = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
        if is_alike(&masked(expected), &masked(&shown)) {
            return;
        }
        if !words.contains(&"watch") {
            break;
        }
    }
    panic!("{words:?}\nexpected\n{expected}\nfound\n{shown}\n{:#?}", masked(&shown));
}

/// Whether the lines are those expected, where `...` is any number of lines.
pub fn is_alike(expected: &[String], found: &[String]) -> bool {
    match (expected.split_first(), found.split_first()) {
        (Some((first, rest)), _) if first == "..." => {
            (0..=found.len()).any(|count| is_alike(rest, &found[count..]))
        }
        (Some((first, rest)), Some((line, lines))) => first == line && is_alike(rest, lines),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// The lines without what differs from day to day: numbers, weekdays, distances, and the width of columns.
pub fn masked(text: &str) -> Vec<String> {
    text.trim_end()
        .lines()
        .map(|line| without_distances(line).split_whitespace().map(word).collect())
        .collect()
}

fn word(word: &str) -> String {
    let mut masked = String::from(" ");
    match word {
        "Mon" | "Tue" | "Wed" | "Thu" | "Fri" | "Sat" | "Sun" => masked.push_str("Day"),
        _ if is_key(word) => masked.push_str("key"),
        _ => {
            for letter in word.chars() {
                match letter.is_ascii_digit() {
                    true if masked.ends_with('0') => {}
                    true => masked.push('0'),
                    false => masked.push(letter),
                }
            }
        }
    }
    // A line of dots alone is a sign of its own.
    if word == "..." { "...".to_owned() } else { masked }
}

/// The id of a trigger or a backfill: 16 hex digits.
fn is_key(word: &str) -> bool {
    let inside = word.trim_matches(['(', ')']);
    inside.len() == 16 && inside.chars().all(|letter| letter.is_ascii_hexdigit())
}

fn without_distances(line: &str) -> String {
    let mut rest = line;
    let mut masked = String::new();
    while let Some((before, after)) = rest.split_once('(') {
        let Some((inside, behind)) = after.split_once(')') else { break };
        let is_distance = inside == "now" || inside.starts_with("in ") || inside.ends_with(" ago");
        masked.push_str(before);
        masked.push_str(&if is_distance { "(distance)".to_owned() } else { format!("({inside})") });
        rest = behind;
    }
    masked + rest
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
