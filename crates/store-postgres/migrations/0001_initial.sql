-- Times are nanoseconds since the epoch. What changes with each start is one small row, updated in place: nothing that
-- changes with it is indexed, and its pages keep room for the new version.

CREATE TABLE punctual.meta (
    name text PRIMARY KEY,
    number bigint,
    bytes bytea
);

-- expires_at is no part of a key, so making a lease longer waits for nobody; a new epoch waits for the commits of the old one.
CREATE TABLE punctual.lease (
    shard integer PRIMARY KEY,
    epoch bigint NOT NULL,
    node text,
    expires_at bigint,
    UNIQUE (shard, epoch)
);

CREATE TABLE punctual.node (
    node text PRIMARY KEY,
    keeper bigint NOT NULL,
    started_at bigint NOT NULL,
    version text NOT NULL,
    expires_at bigint NOT NULL,
    draining boolean NOT NULL
);

-- Hot: rewritten by every transition.
CREATE TABLE punctual.state (
    tree bigint PRIMARY KEY,
    sequence bigint NOT NULL,
    due_time bigint,
    bytes bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE punctual.state ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Cold: what the user asked for.
CREATE TABLE punctual.schedule (
    tree bigint PRIMARY KEY,
    shard integer NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    definition bytea NOT NULL
);
CREATE INDEX schedule_shard ON punctual.schedule (shard, tree);

-- Who holds a name now, and what lists filter by.
CREATE TABLE punctual.schedule_name (
    namespace text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    tree bigint NOT NULL,
    lifespan smallint NOT NULL,
    paused boolean NOT NULL,
    queue bigint,
    PRIMARY KEY (namespace, id)
);

CREATE TABLE punctual.completion (
    tree bigint PRIMARY KEY,
    bytes bytea NOT NULL
) WITH (fillfactor = 70);

-- History goes by whole partitions, a day each; what fits in none is in the last one.
CREATE TABLE punctual.ledger (
    tree bigint NOT NULL,
    wide boolean NOT NULL,
    from_time bigint NOT NULL,
    through_time bigint NOT NULL,
    origin bigint NOT NULL,
    sequence bigint NOT NULL,
    place bigint NOT NULL,
    count bigint NOT NULL,
    at_least boolean NOT NULL,
    verdict smallint NOT NULL,
    decided_at bigint NOT NULL
) PARTITION BY RANGE (decided_at);
CREATE TABLE punctual.ledger_rest PARTITION OF punctual.ledger DEFAULT;
CREATE INDEX ledger_tree ON punctual.ledger (tree, wide, from_time);
CREATE INDEX ledger_decided ON punctual.ledger (decided_at);

-- version counts changes of the settings: whoever relies on them compares it.
CREATE TABLE punctual.queue (
    queue bigint PRIMARY KEY,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    settings bytea NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (namespace, name)
);

-- state: 0 ready, 1 backing off, 2 running. since: not before, or started at. stop: 0 none, 1 cancel, 2 terminate.
-- rank: the place in line. keyed: its queue serves each key in turn. limited: its queue counts what runs.
CREATE TABLE punctual.run_live (
    run bigint PRIMARY KEY,
    queue bigint NOT NULL,
    tree bigint,
    nominal_ms bigint,
    request bigint,
    rank bigint NOT NULL,
    due_time bigint NOT NULL,
    created_at bigint NOT NULL,
    since bigint,
    not_before bigint,
    keeper bigint NOT NULL,
    attempt integer NOT NULL,
    state smallint NOT NULL,
    stop smallint NOT NULL,
    priority smallint NOT NULL,
    keyed boolean NOT NULL,
    limited boolean NOT NULL,
    worker text,
    key bytea NOT NULL,
    dedup bytea,
    failure bytea,
    body bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE punctual.run_live ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX run_ready ON punctual.run_live (queue, rank, run) WHERE state = 0;
CREATE INDEX run_ready_of_key ON punctual.run_live (queue, key, rank, run) WHERE state = 0 AND keyed;
CREATE INDEX run_limited ON punctual.run_live (queue, worker) WHERE state = 2 AND limited;
CREATE UNIQUE INDEX run_dedup ON punctual.run_live (queue, dedup) WHERE dedup IS NOT NULL;

CREATE TABLE punctual.run_closed (
    run bigint NOT NULL,
    queue bigint NOT NULL,
    tree bigint,
    nominal_ms bigint,
    request bigint,
    due_time bigint NOT NULL,
    created_at bigint NOT NULL,
    since bigint,
    not_before bigint,
    keeper bigint NOT NULL,
    closed_at bigint NOT NULL,
    attempt integer NOT NULL,
    state smallint NOT NULL,
    stop smallint NOT NULL,
    priority smallint NOT NULL,
    outcome smallint NOT NULL,
    dead boolean NOT NULL,
    worker text,
    key bytea NOT NULL,
    dedup bytea,
    failure bytea,
    body bytea NOT NULL,
    payload bytea
) PARTITION BY RANGE (closed_at);
ALTER TABLE punctual.run_closed ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE punctual.run_closed_rest PARTITION OF punctual.run_closed DEFAULT;
CREATE INDEX run_closed_run ON punctual.run_closed (run);
CREATE INDEX run_closed_start ON punctual.run_closed (tree, nominal_ms, request) WHERE tree IS NOT NULL;
CREATE INDEX run_closed_at ON punctual.run_closed USING brin (closed_at);
CREATE INDEX run_dead ON punctual.run_closed (queue, run) WHERE dead;

CREATE TABLE punctual.run_detail (
    run bigint PRIMARY KEY,
    progress bytea,
    log_tail bytea
) WITH (fillfactor = 70);

-- The latest starts of a queue with a rate, as many as the rate allows in one window. sequence has no gaps.
CREATE TABLE punctual.queue_start (
    queue bigint NOT NULL,
    sequence bigint NOT NULL,
    started_at bigint NOT NULL,
    PRIMARY KEY (queue, sequence)
);

-- How much a queue that serves keys in turn has handed out, and the end of the last window of a key that is forgotten.
CREATE TABLE punctual.queue_round (
    queue bigint PRIMARY KEY,
    handed_out bigint NOT NULL,
    forgotten_time bigint
) WITH (fillfactor = 50);

-- A key that waits, runs, or has a window. place: 0 busy, 1 open, 2 held back by its rate, 3 idle.
-- rank, run: its first in line, if any. next_time: when its rate lets the next one go. end_time: when its window ends.
CREATE TABLE punctual.queue_key (
    queue bigint NOT NULL,
    key bytea NOT NULL,
    place bigint NOT NULL,
    running bigint NOT NULL,
    turn bigint NOT NULL,
    rank bigint,
    run bigint,
    starts bigint NOT NULL,
    next_time bigint,
    end_time bigint,
    PRIMARY KEY (queue, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX queue_key_open ON punctual.queue_key (queue, turn, rank, run) WHERE place = 1;
CREATE INDEX queue_key_held ON punctual.queue_key (queue, next_time) WHERE place = 2;
CREATE INDEX queue_key_idle ON punctual.queue_key (queue, end_time) WHERE place = 3;

-- The same as queue_start for each key.
CREATE TABLE punctual.key_start (
    queue bigint NOT NULL,
    key bytea NOT NULL,
    sequence bigint NOT NULL,
    started_at bigint NOT NULL,
    PRIMARY KEY (queue, key, sequence)
);

-- runs: their keys, eight bytes each, the lowest byte first.
CREATE TABLE punctual.request (
    namespace text COLLATE "C" NOT NULL,
    id bytea NOT NULL,
    made_at bigint NOT NULL,
    runs bytea NOT NULL,
    PRIMARY KEY (namespace, id)
);
CREATE INDEX request_made ON punctual.request (made_at);
