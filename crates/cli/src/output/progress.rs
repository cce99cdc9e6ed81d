//! Bars for people at a terminal; nothing for anybody else.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

use super::TableOrJson;

/// A bar that counts up to a number, or counts alone where nobody knows it.
pub fn bar(output: TableOrJson, length: Option<u64>) -> ProgressBar {
    match length {
        Some(length) => styled(output, Some(length), "{bar:40} {percent:>3}%  {pos} of {len}"),
        None => styled(output, None, "{spinner} {pos}"),
    }
}

/// A bar that counts bytes.
pub fn bytes(output: TableOrJson, length: u64) -> ProgressBar {
    styled(output, Some(length), "{bar:40} {percent:>3}%  {bytes} of {total_bytes}, {bytes_per_sec}")
}

/// A bar with a message beside it.
pub fn with_message(output: TableOrJson, length: u64) -> ProgressBar {
    styled(output, Some(length), "{bar:40} {percent:>3}%  {msg}")
}

fn styled(output: TableOrJson, length: Option<u64>, template: &str) -> ProgressBar {
    if !matches!(output, TableOrJson::Table) || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    match length {
        Some(length) => ProgressBar::new(length).with_style(style),
        None => ProgressBar::no_length().with_style(style),
    }
}
