//! Schedules: those that are there, and new ones.

use punctual_store::record::verdict_number;
use punctual_store::{Expected, Lifespan, TreeView, TreeWrite};
use tokio_postgres::types::ToSql;

use super::{Columns, Statement, Wants, statement, values};
use crate::fast::Wanted;
use crate::spots::Spots;
use crate::value::{self, time};

/// The compare and the write in one.
const UPDATE_STATE: &str =
    "UPDATE punctual.state SET sequence = state.sequence + 1, due_time = new.due_time, bytes = new.bytes
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[]) AS new (tree, sequence, due_time, bytes)
    WHERE state.tree = ANY(ARRAY[new.tree]) AND state.sequence = new.sequence
    RETURNING state.tree, state.ctid";

/// The same where the row was last. The sum keeps the index out of it: the tree is only compared.
const UPDATE_STATE_AT: &str =
    "UPDATE punctual.state SET sequence = state.sequence + 1, due_time = new.due_time, bytes = new.bytes
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::tid[])
        AS new (tree, sequence, due_time, bytes, spot)
    WHERE state.ctid = new.spot AND state.tree + 0 = new.tree AND state.sequence = new.sequence
    RETURNING state.tree, state.ctid";

impl<'a> Columns<'a> {
    pub(super) fn trees(&self, spots: Option<&Spots>, list: &mut Vec<Statement<'a>>) {
        if self.trees.is_empty() {
            return;
        }
        let trees = &self.trees;
        let known = spots.filter(|spots| !spots.clearing.is_due());
        let known = known.and_then(|spots| spots.trees.of(trees.iter().map(|(_, write, _)| write.tree.0)));
        let wanted = match spots {
            Some(_) => Wants::Spots(trees.len() as u64, known.is_none()),
            None => Wants::Rows(trees.iter().map(|(place, write, _)| (write.tree.0, *place)).collect()),
        };
        let of = |column: fn(&TreeWrite) -> i64| {
            trees.iter().map(|(_, write, _)| column(write)).collect::<Vec<_>>()
        };
        let mut values = values![
            of(|write| write.tree.0),
            trees.iter().map(|(.., sequence)| *sequence).collect::<Vec<_>>(),
            trees.iter().map(|(_, write, _)| write.due_time.map(time)).collect::<Vec<_>>(),
            trees.iter().map(|(_, write, _)| &write.state[..]).collect::<Vec<_>>()
        ];
        let sql = match known {
            Some(known) => {
                values.push(Box::new(known));
                UPDATE_STATE_AT
            }
            None => UPDATE_STATE,
        };
        list.push(statement(sql, wanted, values));
    }

    /// What changes rarely about schedules that are there, and what is appended for all.
    pub(super) fn parts(&self, list: &mut Vec<Statement<'a>>) {
        let writes = || self.trees.iter().map(|(_, write, _)| *write);
        let defined: Vec<(i64, &[u8])> =
            writes().filter_map(|write| Some((write.tree.0, write.definition.as_deref()?))).collect();
        if !defined.is_empty() {
            let (trees, definitions): (Vec<i64>, Vec<&[u8]>) = defined.into_iter().unzip();
            let sql = "UPDATE punctual.schedule SET definition = new.definition
                FROM unnest($1::bigint[], $2::bytea[]) AS new (tree, definition) WHERE schedule.tree = ANY(ARRAY[new.tree])";
            list.push(statement(sql, Wants::Nothing, values![trees, definitions]));
        }
        let viewed: Vec<(i64, TreeView)> =
            writes().filter_map(|write| Some((write.tree.0, write.view?))).collect();
        if !viewed.is_empty() {
            let sql = "UPDATE punctual.schedule_name AS name
                SET lifespan = new.lifespan, paused = new.paused, queue = new.queue
                FROM unnest($1::bigint[], $2::smallint[], $3::boolean[], $4::bigint[])
                    AS new (tree, lifespan, paused, queue)
                JOIN punctual.schedule ON schedule.tree = ANY(ARRAY[new.tree])
                WHERE name.namespace = ANY(ARRAY[schedule.namespace]) AND name.id = ANY(ARRAY[schedule.id]) AND name.tree = new.tree";
            list.push(statement(
                sql,
                Wants::Nothing,
                values![
                    viewed.iter().map(|(tree, _)| *tree).collect::<Vec<_>>(),
                    viewed.iter().map(|(_, view)| lifespan(*view)).collect::<Vec<_>>(),
                    viewed.iter().map(|(_, view)| view.paused).collect::<Vec<_>>(),
                    viewed.iter().map(|(_, view)| view.queue.map(|queue| queue.0)).collect::<Vec<_>>()
                ],
            ));
        }
        self.appended(list);
    }

    fn appended(&self, list: &mut Vec<Statement<'a>>) {
        let made = self.made.iter().map(|(_, write)| (*write, 0));
        let writes: Vec<(&TreeWrite, i64)> =
            self.trees.iter().map(|(_, write, sequence)| (*write, *sequence)).chain(made).collect();
        let completed =
            writes.iter().filter_map(|(write, _)| Some((write.tree.0, write.completion.as_ref()?)));
        let (mut trees, mut results, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for (tree, completion) in completed {
            match completion {
                Some(bytes) => {
                    trees.push(tree);
                    results.push(&bytes[..]);
                }
                None => gone.push(tree),
            }
        }
        if !trees.is_empty() {
            let sql = "INSERT INTO punctual.completion (tree, bytes) SELECT * FROM unnest($1::bigint[], $2::bytea[])
                ON CONFLICT (tree) DO UPDATE SET bytes = excluded.bytes";
            list.push(statement(sql, Wants::Nothing, values![trees, results]));
        }
        if !gone.is_empty() {
            let sql = "DELETE FROM punctual.completion WHERE tree = ANY($1)";
            list.push(statement(sql, Wants::Nothing, values![gone]));
        }
        let entries: Vec<_> = writes
            .iter()
            .flat_map(|(write, sequence)| {
                let entries = write.ledger.iter().enumerate();
                entries.map(move |(place, entry)| (write.tree.0, sequence.wrapping_add(1), place, entry))
            })
            .collect();
        if !entries.is_empty() {
            list.push(statement(
                INSERT_LEDGER,
                Wants::Nothing,
                values![
                    entries.iter().map(|(tree, ..)| *tree).collect::<Vec<_>>(),
                    entries.iter().map(|(.., entry)| entry.from != entry.through).collect::<Vec<_>>(),
                    entries.iter().map(|(.., entry)| time(entry.from)).collect::<Vec<_>>(),
                    entries.iter().map(|(.., entry)| time(entry.through)).collect::<Vec<_>>(),
                    entries
                        .iter()
                        .map(|(.., entry)| value::sorted(value::request(entry.origin)))
                        .collect::<Vec<_>>(),
                    entries.iter().map(|(_, sequence, ..)| *sequence).collect::<Vec<_>>(),
                    entries.iter().map(|(_, _, place, _)| value::count(*place)).collect::<Vec<_>>(),
                    entries.iter().map(|(.., entry)| entry.count as i64).collect::<Vec<_>>(),
                    entries.iter().map(|(.., entry)| entry.at_least).collect::<Vec<_>>(),
                    entries
                        .iter()
                        .map(|(.., entry)| verdict_number(entry.verdict) as i16)
                        .collect::<Vec<_>>(),
                    entries.iter().map(|(.., entry)| time(entry.decided_at)).collect::<Vec<_>>()
                ],
            ));
        }
    }

    pub(super) fn new_trees(&self, list: &mut Vec<Statement<'a>>) {
        let made: Vec<_> = self
            .made
            .iter()
            .filter_map(|(place, write)| match &write.expected {
                Expected::New { key, .. } => Some((*place, *write, key)),
                Expected::At(_) => None,
            })
            .collect();
        if made.is_empty() {
            return;
        }
        let wanted = || made.iter().map(|(place, write, _)| (write.tree.0, *place)).collect::<Wanted>();
        let trees = || made.iter().map(|(_, write, _)| write.tree.0).collect::<Vec<_>>();
        let namespaces = || made.iter().map(|(.., key)| &key.namespace[..]).collect::<Vec<_>>();
        let ids = || made.iter().map(|(.., key)| &key.schedule[..]).collect::<Vec<_>>();
        let views: Vec<TreeView> = made.iter().map(|(_, write, _)| write.view.unwrap_or(NEW_VIEW)).collect();
        let sql = "INSERT INTO punctual.schedule_name (namespace, id, tree, lifespan, paused, queue)
            SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::smallint[], $5::boolean[], $6::bigint[])
            ON CONFLICT DO NOTHING RETURNING tree";
        list.push(statement(
            sql,
            Wants::Rows(wanted()),
            values![
                namespaces(),
                ids(),
                trees(),
                views.iter().map(|view| lifespan(*view)).collect::<Vec<_>>(),
                views.iter().map(|view| view.paused).collect::<Vec<_>>(),
                views.iter().map(|view| view.queue.map(|queue| queue.0)).collect::<Vec<_>>()
            ],
        ));
        let sql = "INSERT INTO punctual.state (tree, sequence, due_time, bytes)
            SELECT tree, 1, due_time, bytes FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])
                AS new (tree, due_time, bytes) ON CONFLICT DO NOTHING RETURNING tree";
        list.push(statement(
            sql,
            Wants::Rows(wanted()),
            values![
                trees(),
                made.iter().map(|(_, write, _)| write.due_time.map(time)).collect::<Vec<_>>(),
                made.iter().map(|(_, write, _)| &write.state[..]).collect::<Vec<_>>()
            ],
        ));
        let sql = "INSERT INTO punctual.schedule (tree, shard, namespace, id, definition)
            SELECT * FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::bytea[])
            ON CONFLICT DO NOTHING RETURNING tree";
        let definitions = made.iter().map(|(_, write, _)| write.definition.as_deref().unwrap_or_default());
        list.push(statement(
            sql,
            Wants::Rows(wanted()),
            values![
                trees(),
                made.iter().map(|(_, write, _)| write.shard.0 as i32).collect::<Vec<_>>(),
                namespaces(),
                ids(),
                definitions.collect::<Vec<_>>()
            ],
        ));
    }
}

/// What a schedule without a view is like in lists.
pub(crate) const NEW_VIEW: TreeView = TreeView { lifespan: Lifespan::Open, paused: false, queue: None };

fn lifespan(view: TreeView) -> i16 {
    value::lifespan_number(view.lifespan) as i16
}

const INSERT_LEDGER: &str = "INSERT INTO punctual.ledger
        (tree, wide, from_time, through_time, origin, sequence, place, count, at_least, verdict, decided_at)
    SELECT * FROM unnest($1::bigint[], $2::boolean[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
        $7::bigint[], $8::bigint[], $9::boolean[], $10::smallint[], $11::bigint[])";
