-- Limits of queues: priorities, keys, rates, deduplication; dead letters; requests that are heard once.
-- What only queues with limits need stands in tables of its own, so that a plain queue writes what it wrote before.

-- rank: the place in line, frozen when the run is made. keyed: its queue serves each key in turn.
CREATE TABLE run_live_2 (
    run INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    tree INTEGER,
    nominal_ms INTEGER,
    request INTEGER,
    state INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    keyed INTEGER NOT NULL,
    due_time NOT NULL,
    created_at NOT NULL,
    since,
    worker TEXT,
    priority INTEGER NOT NULL,
    key TEXT NOT NULL,
    dedup TEXT,
    not_before,
    failure BLOB,
    body BLOB NOT NULL
);
INSERT INTO run_live_2
    (run, queue, tree, nominal_ms, request, state, attempt, stop, rank, keyed, due_time, created_at, since, worker,
    priority, key, dedup, not_before, failure, body)
SELECT
    run, queue, tree, nominal_ms, request, state, attempt, stop,
    CASE typeof(created_at) WHEN 'integer' THEN created_at / 1000000 ELSE 0 END, 0,
    due_time, created_at, since, worker, 0, '', NULL, NULL, failure, body
FROM run_live;
DROP TABLE run_live;
ALTER TABLE run_live_2 RENAME TO run_live;
-- The run's key is the last column of every index, so equals are served in the order of their keys.
CREATE INDEX run_ready ON run_live (queue, rank) WHERE state = 0;
CREATE INDEX run_ready_of_key ON run_live (queue, key, rank) WHERE state = 0 AND keyed = 1;
CREATE UNIQUE INDEX run_dedup ON run_live (queue, dedup) WHERE dedup IS NOT NULL;

-- Closed runs may be many, so their rows are not rewritten. What failed before nobody was to deal with: no dead letters.
ALTER TABLE run_closed ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_closed ADD COLUMN key TEXT NOT NULL DEFAULT '';
ALTER TABLE run_closed ADD COLUMN dedup TEXT;
ALTER TABLE run_closed ADD COLUMN not_before;
ALTER TABLE run_closed ADD COLUMN dead INTEGER NOT NULL DEFAULT 0;
CREATE INDEX run_dead ON run_closed (queue) WHERE dead = 1;

-- The latest starts of a queue with a rate, as many as the rate allows in one window. sequence has no gaps.
CREATE TABLE queue_start (
    queue INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    started_at NOT NULL,
    PRIMARY KEY (queue, sequence)
) WITHOUT ROWID;

-- How much a queue that serves keys in turn has handed out, and the end of the last window of a key that is forgotten.
CREATE TABLE queue_round (
    queue INTEGER PRIMARY KEY,
    handed_out INTEGER NOT NULL,
    forgotten_time
);

-- A key that waits, runs, or has a window. place: 0 busy, 1 open, 2 held back by its rate, 3 idle.
-- rank, run: its first in line, if any. next_time: when its rate lets the next one go. end_time: when its window ends.
CREATE TABLE queue_key (
    queue INTEGER NOT NULL,
    key TEXT NOT NULL,
    place INTEGER NOT NULL,
    running INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    rank INTEGER,
    run INTEGER,
    starts INTEGER NOT NULL,
    next_time,
    end_time,
    PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE INDEX queue_key_open ON queue_key (queue, turn, rank, run) WHERE place = 1;
CREATE INDEX queue_key_held ON queue_key (queue, next_time) WHERE place = 2;
CREATE INDEX queue_key_idle ON queue_key (queue, end_time) WHERE place = 3;

-- The same as queue_start for each key.
CREATE TABLE key_start (
    queue INTEGER NOT NULL,
    key TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    started_at NOT NULL,
    PRIMARY KEY (queue, key, sequence)
) WITHOUT ROWID;

-- runs: their keys, eight bytes each, the lowest byte first.
CREATE TABLE request (
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    made_at NOT NULL,
    runs BLOB NOT NULL,
    PRIMARY KEY (namespace, id)
) WITHOUT ROWID;
CREATE INDEX request_made ON request (made_at);
