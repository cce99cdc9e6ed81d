//! A command as one text: split into words as a shell does, but no shell runs it.

use anyhow::{Result, ensure};

use crate::fault;

const HELP: &str = "write --exec 'sh -c \"a | b\"' to have a shell, or give the words after --";

/// What only a shell understands. In quotes they are words like any other.
const OPERATORS: [&str; 10] = ["|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"];

/// Splits at blanks; quotes hold words together, a backslash takes the next letter as it is.
pub fn split(text: &str) -> Result<Vec<String>> {
    let (mut words, mut letters) = (Vec::new(), text.chars());
    let (mut word, mut is_word, mut is_quoted) = (String::new(), false, false);
    while let Some(letter) = letters.next() {
        match letter {
            quote @ ('\'' | '"') => {
                (is_word, is_quoted) = (true, true);
                inside(&mut letters, quote, &mut word).ok_or_else(|| {
                    fault::new(format!("--exec has a quote without an end, found `{text}`"), HELP)
                })?;
            }
            '\\' => {
                (is_word, is_quoted) = (true, true);
                word.extend(letters.next());
            }
            blank if blank.is_whitespace() => {
                take(&mut words, &mut word, is_word, is_quoted)?;
                (is_word, is_quoted) = (false, false);
            }
            other => {
                is_word = true;
                word.push(other);
            }
        }
    }
    take(&mut words, &mut word, is_word, is_quoted)?;
    ensure!(!words.is_empty(), fault::new("--exec is empty", "write the command, as in --exec 'df -h'"));
    Ok(words)
}

fn take(words: &mut Vec<String>, word: &mut String, is_word: bool, is_quoted: bool) -> Result<()> {
    ensure!(
        is_quoted || !OPERATORS.contains(&word.as_str()),
        fault::new(format!("--exec has `{word}`, and no shell runs the command"), HELP)
    );
    if is_word {
        words.push(std::mem::take(word));
    }
    Ok(())
}

/// Reads up to the end of a quote; nothing if there is none. Double quotes know a backslash, single ones do not.
fn inside(letters: &mut std::str::Chars<'_>, quote: char, word: &mut String) -> Option<()> {
    loop {
        match letters.next()? {
            letter if letter == quote => return Some(()),
            '\\' if quote == '"' => match letters.next()? {
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            letter => word.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_are_those_of_a_shell() {
        for (text, expected) in [
            ("df -h", &["df", "-h"][..]),
            ("  a\tb\n", &["a", "b"]),
            ("sh -c \"a | b\"", &["sh", "-c", "a | b"]),
            ("echo 'it'\\''s' \"\" a\\ b", &["echo", "it's", "", "a b"]),
            (r#"echo "\"x\" \n" '|' {{input}}"#, &["echo", "\"x\" \\n", "|", "{{input}}"]),
        ] {
            assert_eq!(split(text).unwrap(), expected, "{text}");
        }
        for text in ["", "  ", "echo 'x", "a | b", "a > b", "x && y", "echo \"x\\"] {
            assert!(split(text).is_err(), "{text}");
        }
    }
}
