//! Every statement of the writer, prepared once: looking one up by its text would cost as much as some of them.

use rusqlite::{Connection, Statement, StatementStatus};

macro_rules! statements {
    ($($name:ident: $sql:expr,)*) => {
        /// Every statement of the writer.
        pub(super) struct Statements<'c> {
            $(pub(super) $name: Statement<'c>,)*
        }

        impl<'c> Statements<'c> {
            /// Prepares them all.
            pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Statements<'c>> {
                Ok(Statements { $($name: connection.prepare($sql)?,)* })
            }

            /// Steps that the database's machine took for them since this was asked last.
            pub(super) fn steps(&self) -> i64 {
                let mut steps = 0;
                $(steps += i64::from(self.$name.reset_status(StatementStatus::VmStep));)*
                steps
            }
        }
    };
}

macro_rules! query {
    ($name:literal) => {
        include_str!(concat!("../../queries/", $name, ".sql"))
    };
}

statements! {
    begin: "BEGIN IMMEDIATE",
    commit: "COMMIT",
    rollback: "ROLLBACK",

    update_state: query!("commit_update_state"),
    insert_state: query!("commit_insert_state"),
    insert_schedule: query!("commit_insert_schedule"),
    update_definition: "UPDATE schedule SET definition = ?2 WHERE tree = ?1",
    update_view: query!("commit_update_view"),
    take_name: query!("commit_take_name"),
    release_name: query!("commit_release_name"),
    set_completion: "INSERT OR REPLACE INTO completion (tree, bytes) VALUES (?1, ?2)",
    clear_completion: "DELETE FROM completion WHERE tree = ?1",
    insert_ledger: query!("commit_insert_ledger"),
    sequence: "SELECT sequence FROM state WHERE tree = ?1",
    name: query!("load_by_name"),
    delete_state: "DELETE FROM state WHERE tree = ?1",
    delete_schedule: "DELETE FROM schedule WHERE tree = ?1",
    delete_ledger: "DELETE FROM ledger WHERE tree = ?1",

    is_known_run: "SELECT 1 FROM run_live WHERE run = ?1 UNION ALL SELECT 1 FROM run_closed WHERE run = ?1",
    run: "SELECT queue, state, attempt, tree, nominal_ms, request FROM run_live WHERE run = ?1",
    closed_run: query!("closed_run"),
    insert_plain_run: query!("commit_insert_plain_run"),
    insert_run: query!("commit_insert_run"),
    retry_run: query!("commit_retry_run"),
    release_run: query!("commit_release_run"),
    stop_run: "UPDATE run_live SET stop = max(stop, ?2) WHERE run = ?1",
    close_run: query!("commit_close_run"),
    delete_run: "DELETE FROM run_live WHERE run = ?1",
    details: query!("commit_details"),
    hand_over_run: "UPDATE run_live SET worker = ?2 WHERE run = ?1",
    bury_run: "UPDATE run_closed SET dead = 0 WHERE run = ?1",
    is_dead_run: "SELECT dead FROM run_closed WHERE run = ?1",
    dedup: "SELECT run FROM run_live WHERE queue = ?1 AND dedup = ?2",
    run_place: "SELECT key, rank, worker FROM run_live WHERE run = ?1",
    request: "SELECT runs FROM request WHERE namespace = ?1 AND id = ?2",
    insert_request: "INSERT INTO request (namespace, id, made_at, runs) VALUES (?1, ?2, ?3, ?4)",

    claim_ready: query!("claim_ready"),
    claim_run: query!("load_live_run"),
    claim: query!("claim"),
    claim_key: query!("claim_key"),
    open_keys: query!("claim_open_keys"),
    held_until: query!("claim_held_until"),
    idle_keys: query!("claim_idle_keys"),

    load_key: query!("key_load"),
    save_key: query!("key_save"),
    delete_key: "DELETE FROM queue_key WHERE queue = ?1 AND key = ?2",
    first_of_key: query!("key_first"),
    round: "SELECT handed_out, forgotten_time FROM queue_round WHERE queue = ?1",
    set_round: "INSERT OR REPLACE INTO queue_round (queue, handed_out, forgotten_time) VALUES (?1, ?2, ?3)",

    last_start: "SELECT sequence FROM queue_start WHERE queue = ?1 ORDER BY sequence DESC LIMIT 1",
    start: "SELECT started_at FROM queue_start WHERE queue = ?1 AND sequence = ?2",
    insert_start: "INSERT INTO queue_start (queue, sequence, started_at) VALUES (?1, ?2, ?3)",
    forget_starts: "DELETE FROM queue_start WHERE queue = ?1 AND sequence <= ?2",
    start_of_key: "SELECT started_at FROM key_start WHERE queue = ?1 AND key = ?2 AND sequence = ?3",
    insert_start_of_key: "INSERT INTO key_start (queue, key, sequence, started_at) VALUES (?1, ?2, ?3, ?4)",
    forget_starts_of_key: "DELETE FROM key_start WHERE queue = ?1 AND key = ?2 AND sequence <= ?3",

    queue_of_key: "SELECT queue, namespace, name, settings, created_at FROM queue WHERE queue = ?1",
    update_queue: "UPDATE queue SET settings = ?2 WHERE queue = ?1",
    set_keyed: "UPDATE run_live SET keyed = ?2 WHERE queue = ?1",
    live_of_queue: query!("update_queue_live"),
    workers_of_queue: query!("update_queue_workers"),
    keys_of_queue: "SELECT key FROM queue_key WHERE queue = ?1",
    latest_of_key: "SELECT max(started_at) FROM key_start WHERE queue = ?1 AND key = ?2",
    delete_keys: "DELETE FROM queue_key WHERE queue = ?1",
    delete_starts_of_keys: "DELETE FROM key_start WHERE queue = ?1",
    delete_starts: "DELETE FROM queue_start WHERE queue = ?1",

    secret: "SELECT value FROM meta WHERE name = 'secret'",
    set_secret: "INSERT INTO meta (name, value) VALUES ('secret', ?1)",

    insert_document: "INSERT OR IGNORE INTO document (name, version, bytes) VALUES (?1, 1, ?2)",
    update_document: "UPDATE document SET version = version + 1, bytes = ?3 WHERE name = ?1 AND version = ?2",

    set_lease: "INSERT OR REPLACE INTO lease (shard, epoch, node, expires_at) VALUES (?1, ?2, ?3, ?4)",
    set_next_key: "UPDATE meta SET value = ?1 WHERE name = 'next_key'",
    queue: "SELECT queue, namespace, name, settings, created_at FROM queue WHERE namespace = ?1 AND name = ?2",
    insert_queue: "INSERT INTO queue (queue, namespace, name, settings, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",

    find_first_runs: query!("retire_runs_first"),
    find_old_runs: query!("retire_runs_find"),
    delete_closed_run: "DELETE FROM run_closed WHERE run = ?1",
    delete_detail: "DELETE FROM run_detail WHERE run = ?1",
    find_old_requests: query!("retire_requests_find"),
    delete_request: "DELETE FROM request WHERE namespace = ?1 AND id = ?2",
    find_first_ledger: query!("retire_ledger_first"),
    find_old_ledger: query!("retire_ledger_find"),
    delete_ledger_entry: query!("retire_ledger"),
}
