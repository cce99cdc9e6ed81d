//! Plain tables: columns by blanks alone, so that they survive `grep`, `awk` and a mail.

use comfy_table::{CellAlignment, Row, Table, presets};

const COLUMN_GAP: u16 = 2;

/// Lays out a table, without blanks at the ends of lines. The first column is a number or a sign, set to the right.
pub fn table<'h>(
    header: impl IntoIterator<Item = &'h str>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(Row::from(header.into_iter().collect::<Vec<_>>()));
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, COLUMN_GAP));
    }
    if let Some(first) = table.column_mut(0) {
        first.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt() + "\n"
}
