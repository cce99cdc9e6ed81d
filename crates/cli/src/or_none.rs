//! The value of an option that can be taken back.

use std::str::FromStr;

use anyhow::Result;

use crate::wire::time;

/// A value, or the word `none` that takes it back.
#[derive(Clone, Debug)]
pub enum OrNone<T> {
    Given(T),
    None,
}

impl<T: FromStr> FromStr for OrNone<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<OrNone<T>, T::Err> {
        if is_none(text) { Ok(OrNone::None) } else { text.parse().map(OrNone::Given) }
    }
}

impl<T: Clone> OrNone<T> {
    pub fn value(&self) -> Option<T> {
        match self {
            OrNone::Given(value) => Some(value.clone()),
            OrNone::None => None,
        }
    }
}

impl OrNone<String> {
    /// The value as a length of time.
    pub fn duration(&self, option: &'static str) -> Result<Option<prost_types::Duration>> {
        self.value().map(|text| time::duration(option, &text).map(time::duration_to_wire)).transpose()
    }
}

/// The values of an option that can be given more than once; `none` alone means that there are none.
pub fn listed(texts: &[String]) -> &[String] {
    match texts {
        [only] if is_none(only) => &[],
        texts => texts,
    }
}

fn is_none(text: &str) -> bool {
    text.eq_ignore_ascii_case("none")
}
