//! Plain tables: columns by blanks alone, so that they survive `grep`, `awk` and a mail.

use comfy_table::{CellAlignment, ContentArrangement, Row, Table, presets};

use crate::fault;

const COLUMN_GAP: u16 = 2;

/// Lays out a table, without blanks at the ends of lines. The first column is a number or a sign, set to the right.
pub fn table<'h>(
    header: impl IntoIterator<Item = &'h str>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let mut table = plain(header, rows);
    if let Some(first) = table.column_mut(0) {
        first.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt() + "\n"
}

/// The same for a list of named things: every column is set to the left.
pub fn list<'h>(
    header: impl IntoIterator<Item = &'h str>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    plain(header, rows).trim_fmt() + "\n"
}

fn plain<'h>(
    header: impl IntoIterator<Item = &'h str>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(Row::from(header.into_iter().collect::<Vec<_>>()));
    table.add_rows(rows.into_iter().map(|row| row.iter().map(|cell| one_line(cell)).collect::<Vec<_>>()));
    for column in table.column_iter_mut() {
        column.set_padding((0, COLUMN_GAP));
    }
    table
}

/// A row is a line, whatever a cell has in it.
fn one_line(cell: &str) -> String {
    fault::printable(cell).replace('\n', &char::REPLACEMENT_CHARACTER.to_string())
}
