//! Pages: how many, and tokens that say where to go on. Tokens are opaque, and only fit the list that gave them.

use crate::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use crate::status::{Fault, INVALID_PAGE_TOKEN, found};

/// The list that a token belongs to.
#[derive(Clone, Copy)]
pub(crate) enum List {
    Schedules = b's' as isize,
    Runs = b'r' as isize,
    Queues = b'q' as isize,
    Ledger = b'l' as isize,
}

/// Items of a page.
pub(crate) fn size(asked: u32) -> Result<usize, Fault> {
    match asked as usize {
        0 => Ok(PAGE_SIZE_DEFAULT),
        size if size <= PAGE_SIZE_MAX => Ok(size),
        size => Err(Fault::field("page_size", format!("is {size}, at most {PAGE_SIZE_MAX} is allowed"))),
    }
}

/// A token for where to go on.
pub(crate) fn token(list: List, place: &str) -> String {
    let bytes = std::iter::once(list as isize as u8).chain(place.bytes());
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Where to go on, if a token was given.
pub(crate) fn place(list: List, token: &str) -> Result<Option<String>, Fault> {
    if token.is_empty() {
        return Ok(None);
    }
    let bytes = (0..token.len()).step_by(2).map(|at| {
        let digits =
            token.get(at..at + 2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())
    });
    let text = bytes.collect::<Option<Vec<u8>>>().and_then(|bytes| String::from_utf8(bytes).ok());
    let place = text.and_then(|text| text.strip_prefix(list as isize as u8 as char).map(str::to_owned));
    place.ok_or_else(|| invalid(token)).map(Some)
}

/// A token that this list never gave.
pub(crate) fn invalid(token: &str) -> Fault {
    let message = format!("expected the next_page_token of the page before, found {}", found(token));
    Fault::new(&INVALID_PAGE_TOKEN, message).at("page_token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_fits_its_own_list_only() {
        let given = token(List::Schedules, "naïve/ä");
        assert_eq!(place(List::Schedules, &given).unwrap().as_deref(), Some("naïve/ä"));
        assert_eq!(place(List::Schedules, "").unwrap(), None);
        for bad in ["x", "7", "zz", "ä", "72", "+1", &given[..3]] {
            assert_eq!(place(List::Schedules, bad).unwrap_err().reason.word, "invalid_page_token", "{bad}");
        }
        assert!(place(List::Runs, &given).is_err());
    }
}
