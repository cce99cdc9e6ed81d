-- Small things by name, each read and written as a whole; version counts how often it was written.
CREATE TABLE punctual.document (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    bytes bytea NOT NULL
);
