//! A file that nobody has, read row by row so that it can move elsewhere. It is never changed.

use std::path::Path;

use punctual_store::StoreError;
use punctual_store::transfer::{Cell, Facts, Kind, Piece, Row, Source, TABLES, Table, Tally, encode_cells};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension, ToSql, params_from_iter};

use crate::fault::Fault;
use crate::open::{self, OpenError, Owned};
use crate::value::{Time, count};

/// A file to read from. While it is there nobody else opens the file.
pub struct Export {
    connection: Connection,
    // The last to go.
    _owned: Owned,
}

impl Export {
    /// Takes a file, and sees that it is a whole database of this release.
    ///
    /// ```
    /// use punctual_store::transfer::{Source, TABLES};
    /// use punctual_store_sqlite::{Export, OpenError, Options, Sqlite};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("punctual.db");
    /// let store = Sqlite::open(&path, Options::default())?;
    /// assert!(matches!(Export::open(&path), Err(OpenError::InUse { .. })));
    /// drop(store);
    /// let export = Export::open(&path)?;
    /// assert_eq!(export.count(&TABLES[0])?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Export, OpenError> {
        let path = path.as_ref();
        // Before the lock, which would leave a file beside nothing.
        std::fs::metadata(path).map_err(|source| OpenError::System { path: path.into(), source })?;
        let owned = Owned::take(path)?;
        let path = &owned.path;
        let database = |source| OpenError::Database { path: path.clone(), source };
        open::refuse_foreign(path)?;
        let connection = connect(path).map_err(database)?;
        open::refuse_other_versions(&connection, path)?;
        let said: String =
            connection.query_row("PRAGMA quick_check(1)", (), |row| row.get(0)).map_err(database)?;
        if said != "ok" {
            return Err(OpenError::Damaged { path: path.clone(), reason: said });
        }
        // One moment for all that is read.
        connection.execute_batch("BEGIN").map_err(database)?;
        Ok(Export { connection, _owned: owned })
    }
}

/// A connection that cannot write. Without a log there is nothing but the file, which nobody changes: so nothing is made
/// beside it either.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let has = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        std::fs::metadata(name).is_ok_and(|file| file.len() > 0)
    };
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    match path.to_str() {
        Some(name) if cfg!(unix) && !has("-wal") && !has("-journal") => {
            let name = name.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            let name = format!("file:{name}?immutable=1");
            Connection::open_with_flags(name, flags | OpenFlags::SQLITE_OPEN_URI)
        }
        _ => Connection::open_with_flags(path, flags),
    }
}

impl Source for Export {
    fn facts(&self) -> Result<Facts, StoreError> {
        let facts = || -> Result<Facts, Fault> {
            let next_key = "SELECT value FROM meta WHERE name = 'next_key'";
            let secret = "SELECT value FROM meta WHERE name = 'secret'";
            let secret: Option<Vec<u8>> =
                self.connection.query_row(secret, (), |row| row.get(0)).optional()?;
            let odd = |_| StoreError::corrupted("the secret", "it is not 32 bytes long");
            Ok(Facts {
                fingerprint: self.fingerprint()?,
                next_key: self.connection.query_row(next_key, (), |row| row.get(0))?,
                secret: secret.map(|secret| secret.try_into().map_err(odd)).transpose()?,
            })
        };
        facts().map_err(|fault| fault.answer())
    }

    fn count(&self, table: &Table) -> Result<u64, StoreError> {
        self.rows_of(table).map_err(|error| Fault::from(error).answer())
    }

    fn read(&self, table: &Table, after: Option<&[Cell]>, piece: Piece) -> Result<Vec<Row>, StoreError> {
        self.rows(table, after, piece).map_err(|fault| fault.answer())
    }
}

impl Export {
    /// A server that had the file since has moved epochs, and most likely counts and the next key.
    fn fingerprint(&self) -> Result<[u8; 16], Fault> {
        let mut tally = Tally::default();
        for table in &TABLES {
            let rows = i64::try_from(self.rows_of(table)?).unwrap_or(i64::MAX);
            tally.add(&encode_cells(&[Cell::Text(table.name.into()), Cell::Number(rows)]));
        }
        for sql in ["SELECT name, value FROM meta", "SELECT shard, epoch FROM lease"] {
            let mut rows = self.connection.prepare(sql)?;
            let mut rows = rows.query(())?;
            while let Some(row) = rows.next()? {
                let cells = [plain(row.get(0)?), plain(row.get(1)?)];
                tally.add(&encode_cells(&cells));
            }
        }
        Ok(tally.sum.to_be_bytes())
    }

    fn rows_of(&self, table: &Table) -> rusqlite::Result<u64> {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        self.connection.query_row(&sql, (), |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    }

    fn rows(&self, table: &Table, after: Option<&[Cell]>, piece: Piece) -> Result<Vec<Row>, Fault> {
        let key: Vec<&str> = table.columns[..table.key].iter().map(|column| column.name).collect();
        let key = key.join(", ");
        let places: Vec<String> = (1..=table.key).map(|place| format!("?{place}")).collect();
        let condition = match after {
            Some(_) => format!("WHERE ({key}) > ({})", places.join(", ")),
            None => String::new(),
        };
        let (names, name, limit) = (table.names(), table.name, count(piece.rows_max));
        let sql = format!("SELECT {names} FROM {name} {condition} ORDER BY {key} LIMIT {limit}");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = statement.query(params_from_iter(after.unwrap_or_default().iter().map(Bound)))?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while let Some(row) = found.next()? {
            let cells = table.columns.iter().enumerate().map(|(place, column)| {
                cell(row.get_ref(place)?, column.kind).ok_or_else(|| {
                    let what = format!("a value of the column {} is no {:?}", column.name, column.kind);
                    Fault::from(StoreError::corrupted(format!("the table {name}"), what))
                })
            });
            let cells: Row = cells.collect::<Result<_, Fault>>()?;
            bytes += cells.iter().map(Cell::bytes).sum::<usize>();
            rows.push(cells);
            if bytes >= piece.bytes_max {
                break;
            }
        }
        Ok(rows)
    }
}

/// A value as a cell, if it is what the column should have.
fn cell(value: ValueRef<'_>, kind: Kind) -> Option<Cell> {
    match (value, kind) {
        (ValueRef::Null, _) => Some(Cell::Nothing),
        (ValueRef::Integer(number), Kind::Number) => Some(Cell::Number(number)),
        (ValueRef::Text(text), Kind::Text) => Some(Cell::Text(std::str::from_utf8(text).ok()?.into())),
        (ValueRef::Blob(bytes), Kind::Bytes) => Some(Cell::Bytes(bytes.into())),
        (value, Kind::Time) => {
            rusqlite::types::FromSql::column_result(value).ok().map(|Time(time)| Cell::Time(time))
        }
        (_, Kind::Number | Kind::Text | Kind::Bytes) => None,
    }
}

/// A value of whatever kind.
fn plain(value: Value) -> Cell {
    match value {
        Value::Null => Cell::Nothing,
        Value::Integer(number) => Cell::Number(number),
        Value::Real(number) => Cell::Bytes(number.to_le_bytes().into()),
        Value::Text(text) => Cell::Text(text.into()),
        Value::Blob(bytes) => Cell::Bytes(bytes.into()),
    }
}

/// A cell that columns are compared with.
struct Bound<'c>(&'c Cell);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Cell::Nothing => ToSqlOutput::Borrowed(ValueRef::Null),
            Cell::Number(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Cell::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Cell::Time(time) => ToSqlOutput::Owned(Time(*time).value()),
        })
    }
}
