//! The tables that move, in the order in which they do: what others refer to comes first.

/// A table.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name, the same in every database.
    pub name: &'static str,
    /// The first so many columns are its key.
    pub key: usize,
    /// Its columns, those that every database has.
    pub columns: &'static [Column],
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, the same in every database.
    pub name: &'static str,
    /// What is in it, if there is anything.
    pub kind: Kind,
}

/// What is in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers, and flags as 0 or 1.
    Number,
    /// Texts.
    Text,
    /// Bytes.
    Bytes,
    /// Times.
    Time,
}

impl Table {
    /// The names of its columns, as SQL lists them.
    pub fn names(&self) -> String {
        self.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
    }

    /// Where a column is.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

const fn number(name: &'static str) -> Column {
    Column { name, kind: Kind::Number }
}

const fn text(name: &'static str) -> Column {
    Column { name, kind: Kind::Text }
}

const fn bytes(name: &'static str) -> Column {
    Column { name, kind: Kind::Bytes }
}

const fn time(name: &'static str) -> Column {
    Column { name, kind: Kind::Time }
}

const fn table(name: &'static str, key: usize, columns: &'static [Column]) -> Table {
    Table { name, key, columns }
}

/// The tables that move.
pub static TABLES: [Table; 15] = [
    table(
        "queue",
        1,
        &[number("queue"), text("namespace"), text("name"), bytes("settings"), time("created_at")],
    ),
    table("schedule", 1, &[number("tree"), text("namespace"), text("id"), bytes("definition")]),
    table(
        "schedule_name",
        2,
        &[
            text("namespace"),
            text("id"),
            number("tree"),
            number("lifespan"),
            number("paused"),
            number("queue"),
        ],
    ),
    table("state", 1, &[number("tree"), number("sequence"), time("due_time"), bytes("bytes")]),
    table("completion", 1, &[number("tree"), bytes("bytes")]),
    table(
        "ledger",
        7,
        &[
            number("tree"),
            number("wide"),
            time("from_time"),
            time("through_time"),
            number("origin"),
            number("sequence"),
            number("place"),
            number("count"),
            number("at_least"),
            number("verdict"),
            time("decided_at"),
        ],
    ),
    table(
        "run_live",
        1,
        &[
            number("run"),
            number("queue"),
            number("tree"),
            number("nominal_ms"),
            number("request"),
            number("state"),
            number("attempt"),
            number("stop"),
            number("rank"),
            number("keyed"),
            time("due_time"),
            time("created_at"),
            time("since"),
            text("worker"),
            number("priority"),
            text("key"),
            text("dedup"),
            time("not_before"),
            bytes("failure"),
            bytes("body"),
        ],
    ),
    table(
        "run_closed",
        1,
        &[
            number("run"),
            number("queue"),
            number("tree"),
            number("nominal_ms"),
            number("request"),
            number("state"),
            number("attempt"),
            number("stop"),
            time("due_time"),
            time("created_at"),
            time("since"),
            text("worker"),
            number("outcome"),
            time("closed_at"),
            bytes("failure"),
            bytes("body"),
            bytes("payload"),
            number("priority"),
            text("key"),
            text("dedup"),
            time("not_before"),
            number("dead"),
        ],
    ),
    table("run_detail", 1, &[number("run"), bytes("progress"), bytes("log_tail")]),
    table("queue_start", 2, &[number("queue"), number("sequence"), time("started_at")]),
    table("queue_round", 1, &[number("queue"), number("handed_out"), time("forgotten_time")]),
    table(
        "queue_key",
        2,
        &[
            number("queue"),
            text("key"),
            number("place"),
            number("running"),
            number("turn"),
            number("rank"),
            number("run"),
            number("starts"),
            time("next_time"),
            time("end_time"),
        ],
    ),
    table("key_start", 3, &[number("queue"), text("key"), number("sequence"), time("started_at")]),
    table("request", 2, &[text("namespace"), text("id"), time("made_at"), bytes("runs")]),
    table("document", 1, &[text("name"), number("version"), bytes("bytes")]),
];
