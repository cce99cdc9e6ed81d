//! Every statement of the writer, prepared once: looking one up by its text would cost as much as some of them.

use rusqlite::{Connection, Statement};

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
    insert_run: query!("commit_insert_run"),
    retry_run: query!("commit_retry_run"),
    release_run: query!("commit_release_run"),
    stop_run: "UPDATE run_live SET stop = max(stop, ?2) WHERE run = ?1",
    close_run: query!("commit_close_run"),
    delete_run: "DELETE FROM run_live WHERE run = ?1",
    details: query!("commit_details"),

    claim_ready: query!("claim_ready"),
    claim: query!("claim"),

    set_lease: "INSERT OR REPLACE INTO lease (shard, epoch, node, expires_at) VALUES (?1, ?2, ?3, ?4)",
    set_next_key: "UPDATE meta SET value = ?1 WHERE name = 'next_key'",
    queue: "SELECT queue, namespace, name, settings, created_at FROM queue WHERE namespace = ?1 AND name = ?2",
    insert_queue: "INSERT INTO queue (queue, namespace, name, settings, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",

    find_old_runs: query!("retire_runs_find"),
    delete_closed_run: "DELETE FROM run_closed WHERE run = ?1",
    delete_detail: "DELETE FROM run_detail WHERE run = ?1",
    find_old_ledger: query!("retire_ledger_find"),
    delete_ledger_entry: query!("retire_ledger"),
}
