//! The words of a filter: names, texts, numbers and signs, each with its place.

use super::QueryError;

/// One word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Name(String),
    /// A name in backquotes, which is never a word of the grammar.
    Quoted(String),
    Text(String),
    Number(String),
    Sign(&'static str),
}

/// All words, and which is next.
pub(super) struct Words {
    words: Vec<(Word, usize)>,
    next: usize,
    end: usize,
}

/// Longer ones first, so that `<=` is not read as `<`.
const SIGNS: [&str; 10] = ["<=", ">=", "!=", "<>", "=", "<", ">", "(", ")", ","];

impl Words {
    pub(super) fn read(text: &str) -> Result<Words, QueryError> {
        let letters: Vec<char> = text.chars().collect();
        let (mut words, mut place) = (Vec::new(), 0);
        while let Some(letter) = letters.get(place).copied() {
            let position = place + 1;
            let rest = &letters[place..];
            let (word, length) = match letter {
                _ if letter.is_whitespace() => {
                    place += 1;
                    continue;
                }
                '\'' | '"' => {
                    let (text, length) = quoted(rest, position)?;
                    (Word::Text(text), length)
                }
                '`' => {
                    let (name, length) = quoted(rest, position)?;
                    (Word::Quoted(name), length)
                }
                '0'..='9' | '-' | '+' | '.' => {
                    let number = |letter: &&char| letter.is_ascii_alphanumeric() || "+-.".contains(**letter);
                    let number: String = rest.iter().take_while(number).collect();
                    let length = number.len();
                    (Word::Number(number), length)
                }
                _ if letter.is_alphabetic() || letter == '_' => {
                    let part = |letter: &&char| letter.is_alphanumeric() || "_.-".contains(**letter);
                    let name: String = rest.iter().take_while(part).collect();
                    let length = name.chars().count();
                    (Word::Name(name), length)
                }
                _ => {
                    let start: String = rest.iter().take(2).collect();
                    let sign = SIGNS.iter().find(|sign| start.starts_with(**sign));
                    let unknown =
                        || QueryError { message: format!("`{letter}` means nothing here"), position };
                    let sign = sign.ok_or_else(unknown)?;
                    (Word::Sign(sign), sign.len())
                }
            };
            words.push((word, position));
            place += length;
        }
        Ok(Words { words, next: 0, end: letters.len() + 1 })
    }

    pub(super) fn is_over(&self) -> bool {
        self.next >= self.words.len()
    }

    pub(super) fn position(&self) -> usize {
        self.words.get(self.next).map_or(self.end, |(_, position)| *position)
    }

    pub(super) fn peek(&self) -> Option<&Word> {
        self.words.get(self.next).map(|(word, _)| word)
    }

    pub(super) fn next(&mut self) {
        self.next += 1;
    }

    /// Goes on if the next word is this sign or word of the grammar, in any case.
    pub(super) fn take(&mut self, wanted: &str) -> bool {
        let found = match self.peek() {
            Some(Word::Name(name)) => name.eq_ignore_ascii_case(wanted),
            Some(Word::Sign(sign)) => *sign == wanted,
            Some(Word::Quoted(_) | Word::Text(_) | Word::Number(_)) | None => false,
        };
        self.next += usize::from(found);
        found
    }

    /// Goes on if the next two words are these; each alone may be a name.
    pub(super) fn take_both(&mut self, first: &str, second: &str) -> bool {
        let place = self.next;
        let found = self.take(first) && self.take(second);
        if !found {
            self.next = place;
        }
        found
    }

    /// The name of an attribute.
    pub(super) fn name(&mut self) -> Result<String, QueryError> {
        match self.peek() {
            Some(Word::Name(name) | Word::Quoted(name)) => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.expected("the name of an attribute")),
        }
    }

    pub(super) fn expected(&self, expected: &str) -> QueryError {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(Word::Name(name) | Word::Quoted(name) | Word::Number(name)) => format!("`{name}`"),
            Some(Word::Text(_)) => "a text".to_owned(),
            Some(Word::Sign(sign)) => format!("`{sign}`"),
        };
        self.fault(format!("expected {expected}, found {found}"))
    }

    pub(super) fn fault(&self, message: String) -> QueryError {
        QueryError { message, position: self.position() }
    }
}

/// A text in quotes, and how many letters it takes; the quote itself is written twice or behind a backslash.
fn quoted(letters: &[char], position: usize) -> Result<(String, usize), QueryError> {
    let (quote, mut text, mut place) = (letters[0], String::new(), 1);
    while let Some(letter) = letters.get(place) {
        match (*letter, letters.get(place + 1)) {
            ('\\', Some(next)) if *next == quote || *next == '\\' => {
                text.push(*next);
                place += 2;
            }
            (letter, Some(next)) if letter == quote && *next == quote => {
                text.push(quote);
                place += 2;
            }
            (letter, _) if letter == quote => return Ok((text, place + 1)),
            (letter, _) => {
                text.push(letter);
                place += 1;
            }
        }
    }
    Err(QueryError { message: "a text has no end".into(), position })
}
