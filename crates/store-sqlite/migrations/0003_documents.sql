-- Small things by name, each read and written as a whole; version counts how often it was written.
CREATE TABLE document (
    name TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    bytes BLOB NOT NULL
) WITHOUT ROWID;
