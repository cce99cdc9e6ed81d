//! How rows look here: the columns that every database has, then those that only this one has.

use std::error::Error;
use std::sync::Arc;

use bytes::BytesMut;
use punctual_core::ScheduleKey;
use punctual_store::transfer::{Cell, Row, Table};
use punctual_store::{StoreError, shard_of};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::fault::Fault;
use crate::queues::Queues;
use crate::session::Session;
use crate::value::{RUNNING, time};

/// A value as it stands in a column here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Nothing,
    Number(i64),
    Flag(bool),
    Text(Box<str>),
    Bytes(Box<[u8]>),
}

/// How the rows of one table look here.
pub(super) struct Shape {
    table: &'static Table,
    more: More,
    /// The types of all columns, in the order of `names`.
    pub(super) types: Vec<Type>,
    shards: u32,
    queues: Arc<Queues>,
}

/// Columns that only this database has.
#[derive(Clone, Copy)]
enum More {
    Nothing,
    /// How often the settings of a queue were changed.
    Version,
    /// Where a schedule belongs, by its name: there may be another number of shards.
    Shard,
    /// Who looks after a live run, which nobody does yet; whether it is counted by a limit of its queue.
    Live,
    /// Who looked after a run that has ended.
    Closed,
}

impl More {
    fn of(table: &Table) -> More {
        match table.name {
            "queue" => More::Version,
            "schedule" => More::Shard,
            "run_live" => More::Live,
            "run_closed" => More::Closed,
            _ => More::Nothing,
        }
    }

    fn names(self) -> &'static str {
        match self {
            More::Nothing => "",
            More::Version => ", version",
            More::Shard => ", shard",
            More::Live => ", keeper, limited",
            More::Closed => ", keeper",
        }
    }
}

impl Shape {
    pub(super) async fn of(
        session: &Session,
        table: &'static Table,
        shards: u32,
        queues: Arc<Queues>,
    ) -> Result<Shape, Fault> {
        let mut shape = Shape { table, more: More::of(table), types: Vec::new(), shards, queues };
        shape.types = session.types(&shape.select()).await?;
        Ok(shape)
    }

    fn names(&self) -> String {
        self.table.names() + self.more.names()
    }

    /// Asks for all rows.
    pub(super) fn select(&self) -> String {
        format!("SELECT {} FROM punctual.{}", self.names(), self.table.name)
    }

    /// Writes rows.
    pub(super) fn copy_in(&self) -> String {
        format!("COPY punctual.{} ({}) FROM STDIN BINARY", self.table.name, self.names())
    }

    /// A row as it should stand here.
    pub(super) fn fit(&self, row: &Row) -> Result<Vec<Value>, StoreError> {
        let mut values = Vec::with_capacity(self.types.len());
        for (place, (cell, ty)) in row.iter().zip(&self.types).enumerate() {
            values.push(value(cell, ty).ok_or_else(|| {
                let column = self.table.columns[place].name;
                self.odd(&format!("a value of the column {column} does not fit: {cell:?}"))
            })?);
        }
        match self.more {
            More::Nothing => {}
            More::Version => values.push(Value::Number(1)),
            More::Shard => {
                let key = ScheduleKey::new(self.text(row, "namespace")?, self.text(row, "id")?);
                values.push(Value::Number(shard_of(&key, self.shards).0.into()));
            }
            More::Live => {
                let is_running = self.number(row, "state")? == RUNNING;
                let is_limited = is_running && self.queues.of(self.number(row, "queue")?).is_limited();
                values.extend([Value::Number(0), Value::Flag(is_limited)]);
            }
            More::Closed => values.push(Value::Number(0)),
        }
        Ok(values)
    }

    /// The times by which rows are kept in tables of a day; nothing for other tables.
    pub(super) fn times<'r>(&self, rows: &'r [Vec<Value>]) -> impl Iterator<Item = i64> + use<'r> {
        let place = self.table.place("closed_at").or(self.table.place("decided_at"));
        rows.iter().filter_map(move |row| match row[place?] {
            Value::Number(time) => Some(time),
            _ => None,
        })
    }

    fn text<'r>(&self, row: &'r Row, name: &str) -> Result<&'r str, StoreError> {
        match self.table.place(name).map(|place| &row[place]) {
            Some(Cell::Text(text)) => Ok(text),
            _ => Err(self.odd(&format!("the column {name} has no text"))),
        }
    }

    fn number(&self, row: &Row, name: &str) -> Result<i64, StoreError> {
        match self.table.place(name).map(|place| &row[place]) {
            Some(Cell::Number(number)) => Ok(*number),
            _ => Err(self.odd(&format!("the column {name} has no number"))),
        }
    }

    fn odd(&self, what: &str) -> StoreError {
        StoreError::corrupted(format!("the table {}", self.table.name), what)
    }
}

/// A cell as it stands in a column of a type; nothing if it cannot.
fn value(cell: &Cell, ty: &Type) -> Option<Value> {
    match cell {
        Cell::Nothing => Some(Value::Nothing),
        Cell::Number(flag @ (0 | 1)) if *ty == Type::BOOL => Some(Value::Flag(*flag == 1)),
        Cell::Number(number) => {
            let fits = match *ty {
                Type::INT8 => true,
                Type::INT4 => i32::try_from(*number).is_ok(),
                Type::INT2 => i16::try_from(*number).is_ok(),
                _ => false,
            };
            fits.then_some(Value::Number(*number))
        }
        Cell::Time(at) if *ty == Type::INT8 => Some(Value::Number(time(*at))),
        // The database's texts cannot hold this one character.
        Cell::Text(text) if *ty == Type::TEXT && !text.contains('\0') => Some(Value::Text(text.clone())),
        Cell::Text(text) if *ty == Type::BYTEA => Some(Value::Bytes(text.as_bytes().into())),
        Cell::Bytes(bytes) if *ty == Type::BYTEA => Some(Value::Bytes(bytes.clone())),
        Cell::Time(_) | Cell::Text(_) | Cell::Bytes(_) => None,
    }
}

impl Value {
    /// Its bytes, behind those of the values before it, so that no two rows have the same.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let mut long = |tag: u8, content: &[u8]| {
            bytes.push(tag);
            bytes.extend((content.len() as u64).to_le_bytes());
            bytes.extend(content);
        };
        match self {
            Value::Nothing => bytes.push(0),
            Value::Number(number) => long(1, &number.to_le_bytes()),
            Value::Flag(flag) => long(2, &[(*flag).into()]),
            Value::Text(text) => long(3, text.as_bytes()),
            Value::Bytes(content) => long(4, content),
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Value::Nothing => Ok(IsNull::Yes),
            Value::Number(number) => match *ty {
                Type::INT2 => i16::try_from(*number)?.to_sql(ty, out),
                Type::INT4 => i32::try_from(*number)?.to_sql(ty, out),
                _ => number.to_sql(ty, out),
            },
            Value::Flag(flag) => flag.to_sql(ty, out),
            Value::Text(text) => (&**text).to_sql(ty, out),
            Value::Bytes(bytes) => (&**bytes).to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Value, Box<dyn Error + Sync + Send>> {
        Ok(match *ty {
            Type::BOOL => Value::Flag(bool::from_sql(ty, raw)?),
            Type::INT2 => Value::Number(i16::from_sql(ty, raw)?.into()),
            Type::INT4 => Value::Number(i32::from_sql(ty, raw)?.into()),
            Type::INT8 => Value::Number(i64::from_sql(ty, raw)?),
            Type::TEXT => Value::Text(<&str>::from_sql(ty, raw)?.into()),
            _ => Value::Bytes(raw.into()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Value, Box<dyn Error + Sync + Send>> {
        Ok(Value::Nothing)
    }

    fn accepts(ty: &Type) -> bool {
        [Type::BOOL, Type::INT2, Type::INT4, Type::INT8, Type::TEXT, Type::BYTEA].contains(ty)
    }
}
