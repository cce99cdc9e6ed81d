//! Bytes as hexadecimal digits: words are told apart by spaces and their parts by colons, so nothing else may stand in them.

pub(super) fn push(word: &mut String, bytes: &[u8]) {
    word.reserve(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            word.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
        }
    }
}

pub(super) fn of(text: &str) -> String {
    let mut word = String::new();
    push(&mut word, text.as_bytes());
    word
}

pub(super) fn read(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some((value(*high)? << 4 | value(*low)?) as u8)).collect();
    bytes.filter(|_| rest.is_empty())
}

pub(super) fn text(digits: &str) -> Option<String> {
    String::from_utf8(read(digits)?).ok()
}
