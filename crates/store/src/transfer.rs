//! Everything that a database knows, as rows that can move to another one: which tables there are, how their cells look, and
//! a sum by which two sides are compared.
//!
//! Tables have the same names and columns in every database, and keys stay what they are. What only one database has (who
//! drives a shard, who looks after a run) does not move.

mod tables;
mod tally;

use jiff::Timestamp;

use crate::StoreError;
pub use tables::{Column, Kind, TABLES, Table};
pub use tally::Tally;

/// One value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// There is none.
    Nothing,
    /// A number, or a flag as 0 or 1.
    Number(i64),
    /// A text.
    Text(Box<str>),
    /// Bytes.
    Bytes(Box<[u8]>),
    /// A time, exact to the nanosecond.
    Time(Timestamp),
}

/// The cells of a row, in the order of its table's columns.
pub type Row = Vec<Cell>;

/// How much is read at a time.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// At most so many rows.
    pub rows_max: usize,
    /// When this much has been read no other row follows.
    pub bytes_max: usize,
}

/// What a database has beside its tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Tells it from others, and from itself after a change.
    pub fingerprint: [u8; 16],
    /// Every key in it is lower.
    pub next_key: i64,
    /// Its secret, if it has one already.
    pub secret: Option<[u8; 32]>,
}

/// A database that nobody changes, to be read from the first row to the last.
pub trait Source: Send {
    /// What it has beside its tables.
    fn facts(&self) -> Result<Facts, StoreError>;

    /// How many rows a table has.
    fn count(&self, table: &Table) -> Result<u64, StoreError>;

    /// Rows of a table by ascending key, after the key of one of them; at least one, if there is one.
    fn read(&self, table: &Table, after: Option<&[Cell]>, piece: Piece) -> Result<Vec<Row>, StoreError>;
}

impl Cell {
    /// Roughly what it takes.
    pub fn bytes(&self) -> usize {
        match self {
            Cell::Nothing => 1,
            Cell::Number(_) | Cell::Time(_) => 8,
            Cell::Text(text) => text.len(),
            Cell::Bytes(bytes) => bytes.len(),
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let long = |bytes: &mut Vec<u8>, tag: u8, content: &[u8]| {
            bytes.push(tag);
            bytes.extend((content.len() as u64).to_le_bytes());
            bytes.extend(content);
        };
        match self {
            Cell::Nothing => bytes.push(0),
            Cell::Number(number) => {
                bytes.push(1);
                bytes.extend(number.to_le_bytes());
            }
            Cell::Text(text) => long(bytes, 2, text.as_bytes()),
            Cell::Bytes(content) => long(bytes, 3, content),
            Cell::Time(time) => {
                bytes.push(4);
                bytes.extend(time.as_nanosecond().to_le_bytes());
            }
        }
    }

    fn read(bytes: &mut &[u8]) -> Option<Cell> {
        let (tag, rest) = bytes.split_first()?;
        *bytes = rest;
        let long = |bytes: &mut &[u8]| -> Option<Box<[u8]>> {
            let length = usize::try_from(u64::from_le_bytes(*take(bytes)?)).ok()?;
            let (content, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            Some(content.into())
        };
        Some(match tag {
            0 => Cell::Nothing,
            1 => Cell::Number(i64::from_le_bytes(*take(bytes)?)),
            2 => Cell::Text(String::from_utf8(long(bytes)?.into()).ok()?.into()),
            3 => Cell::Bytes(long(bytes)?),
            4 => Cell::Time(Timestamp::from_nanosecond(i128::from_le_bytes(*take(bytes)?)).ok()?),
            _ => return None,
        })
    }
}

fn take<'b, const N: usize>(bytes: &mut &'b [u8]) -> Option<&'b [u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(first)
}

/// Cells as bytes, to be remembered.
pub fn encode_cells(cells: &[Cell]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for cell in cells {
        cell.write(&mut bytes);
    }
    bytes
}

/// The cells again; nothing if these bytes were made by nobody.
pub fn decode_cells(mut bytes: &[u8]) -> Option<Vec<Cell>> {
    let mut cells = Vec::new();
    while !bytes.is_empty() {
        cells.push(Cell::read(&mut bytes)?);
    }
    Some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_back_and_odd_bytes_do_not() {
        let cells = vec![
            Cell::Number(-7),
            Cell::Text("b-\u{e9}\0".into()),
            Cell::Nothing,
            Cell::Bytes([0, 255].into()),
            Cell::Time(Timestamp::MAX),
            Cell::Time(Timestamp::MIN),
        ];
        let bytes = encode_cells(&cells);
        assert_eq!(decode_cells(&bytes), Some(cells));
        for end in 1..bytes.len() {
            // A cut is noticed, or lies between two cells.
            if let Some(cells) = decode_cells(&bytes[..end]) {
                assert_eq!(encode_cells(&cells), bytes[..end]);
            }
        }
        assert_eq!(decode_cells(&[9]), None);
        assert_eq!(decode_cells(&[2, 255, 255, 255, 255, 255, 255, 255, 255]), None);
    }

    #[test]
    fn keys_come_first_and_names_are_used_once() {
        for table in &TABLES {
            assert!(table.key > 0 && table.key <= table.columns.len(), "{}", table.name);
            let mut names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.columns.len(), "{}", table.name);
        }
    }
}
