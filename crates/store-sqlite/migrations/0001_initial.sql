-- Times are nanoseconds since the epoch; what does not fit (before 1677, after 2262) is a blob, see src/value.rs.
-- What changes with each start is one small row with an integer key; nothing that changes with it is indexed.

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE lease (
    shard INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    node TEXT,
    expires_at
);

-- Hot: rewritten in place by every transition.
CREATE TABLE state (
    tree INTEGER PRIMARY KEY,
    sequence INTEGER NOT NULL,
    due_time,
    bytes BLOB NOT NULL
);

-- Cold: what the user asked for.
CREATE TABLE schedule (
    tree INTEGER PRIMARY KEY,
    shard INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    definition BLOB NOT NULL
);
CREATE INDEX schedule_shard ON schedule (shard);

-- Who holds a name now, and what lists filter by, so that lists and counts read nothing else.
CREATE TABLE schedule_name (
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    tree INTEGER NOT NULL,
    lifespan INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    queue INTEGER,
    PRIMARY KEY (namespace, id)
) WITHOUT ROWID;

CREATE TABLE completion (
    tree INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
);

-- wide: more than one nominal time. Single ones are found by their time alone; wide ones are few.
CREATE TABLE ledger (
    tree INTEGER NOT NULL,
    wide INTEGER NOT NULL,
    from_time NOT NULL,
    through_time NOT NULL,
    origin INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    place INTEGER NOT NULL,
    count INTEGER NOT NULL,
    at_least INTEGER NOT NULL,
    verdict INTEGER NOT NULL,
    decided_at NOT NULL,
    PRIMARY KEY (tree, wide, from_time, through_time, origin, sequence, place)
) WITHOUT ROWID;
CREATE INDEX ledger_decided ON ledger (decided_at);

CREATE TABLE queue (
    queue INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    settings BLOB NOT NULL,
    created_at NOT NULL,
    UNIQUE (namespace, name)
);

-- state: 0 ready, 1 backing off, 2 running. since: not before, or started at. stop: 0 none, 1 cancel, 2 terminate.
-- What lists filter by comes first, so that a long body is not read to skip a row.
CREATE TABLE run_live (
    run INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    tree INTEGER,
    nominal_ms INTEGER,
    request INTEGER,
    state INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    due_time NOT NULL,
    created_at NOT NULL,
    since,
    worker TEXT,
    failure BLOB,
    body BLOB NOT NULL
);
CREATE INDEX run_ready ON run_live (queue) WHERE state = 0;

CREATE TABLE run_closed (
    run INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    tree INTEGER,
    nominal_ms INTEGER,
    request INTEGER,
    state INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    due_time NOT NULL,
    created_at NOT NULL,
    since,
    worker TEXT,
    outcome INTEGER NOT NULL,
    closed_at NOT NULL,
    failure BLOB,
    body BLOB NOT NULL,
    payload BLOB
);
-- One start, one run: the guard that outlives the schedule's own memory.
CREATE UNIQUE INDEX run_closed_start ON run_closed (tree, nominal_ms, request) WHERE tree IS NOT NULL;
CREATE INDEX run_closed_at ON run_closed (closed_at);

CREATE TABLE run_detail (
    run INTEGER PRIMARY KEY,
    progress BLOB,
    log_tail BLOB
);
