//! Schedules by key and name, their timers, and lists of them.

use std::collections::HashMap;

use jiff::Timestamp;
use punctual_core::ScheduleKey;
use punctual_store::{Lifespan, Page, ScheduleQuery, Sequence, ShardId, StoredTree, TreeKey, TreeRef};
use tokio_postgres::Row;

use crate::fault::Fault;
use crate::session::Session;
use crate::value::{self, at, count};

/// Names that one page looks at, so that a filter that finds little does not take long.
const NAMES_MAX: usize = 20_000;

/// Schedules in the order asked for.
pub(crate) async fn load(session: &Session, trees: &[TreeRef]) -> Result<Vec<Option<StoredTree>>, Fault> {
    let named: Vec<&ScheduleKey> = trees.iter().filter_map(name).collect();
    let mut by_name: HashMap<ScheduleKey, i64> = HashMap::new();
    if !named.is_empty() {
        // As a join it would be a walk through all names for as long as the database believes that there are few.
        let sql = "SELECT space, name, (SELECT tree FROM punctual.schedule_name WHERE namespace = space AND id = name)
            FROM unnest($1::text[], $2::text[]) AS wanted (space, name)";
        let namespaces: Vec<&str> = named.iter().map(|key| &key.namespace[..]).collect();
        let ids: Vec<&str> = named.iter().map(|key| &key.schedule[..]).collect();
        for row in session.query(sql, &[&namespaces, &ids]).await? {
            if let Some(tree) = row.get(2) {
                by_name.insert(ScheduleKey::new(row.get(0), row.get(1)), tree);
            }
        }
    }
    let key = |tree: &TreeRef| match tree {
        TreeRef::Key(key) => Some(key.0),
        TreeRef::Name(name) => by_name.get(name).copied(),
    };
    let keys: Vec<i64> = trees.iter().filter_map(key).collect();
    let found = load_keys(session, &keys).await?;
    Ok(trees.iter().map(|tree| found.get(&key(tree)?).cloned()).collect())
}

fn name(tree: &TreeRef) -> Option<&ScheduleKey> {
    match tree {
        TreeRef::Key(_) => None,
        TreeRef::Name(name) => Some(name),
    }
}

async fn load_keys(session: &Session, keys: &[i64]) -> Result<HashMap<i64, StoredTree>, Fault> {
    let sql =
        "SELECT key, shard, namespace, id, sequence, due_time, definition, state.bytes, completion.bytes
        FROM unnest($1::bigint[]) AS wanted (key) JOIN punctual.schedule ON schedule.tree = ANY(ARRAY[key])
        JOIN punctual.state ON state.tree = ANY(ARRAY[key])
        LEFT JOIN punctual.completion ON completion.tree = ANY(ARRAY[key])";
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = session.query(sql, &[&keys]).await?;
    Ok(rows.iter().map(|row| (row.get(0), stored_tree(row))).collect())
}

fn stored_tree(row: &Row) -> StoredTree {
    StoredTree {
        tree: TreeKey(row.get(0)),
        shard: ShardId(row.get::<_, i32>(1) as u32),
        key: ScheduleKey::new(row.get(2), row.get(3)),
        sequence: Sequence(row.get::<_, i64>(4) as u64),
        due_time: row.get::<_, Option<i64>>(5).map(at),
        definition: value::bytes(row, 6),
        state: value::bytes(row, 7),
        completion: value::optional_bytes(row, 8),
    }
}

/// When the schedules of a shard want to be woken.
pub(crate) async fn timers(
    session: &Session,
    shard: ShardId,
    after: Option<TreeKey>,
    most: usize,
) -> Result<Vec<(TreeKey, Option<Timestamp>)>, Fault> {
    let Some(first) = after.map_or(Some(i64::MIN), |after| after.0.checked_add(1)) else {
        return Ok(Vec::new());
    };
    let sql = "SELECT tree, due_time FROM punctual.schedule JOIN punctual.state USING (tree)
        WHERE shard = $1 AND schedule.tree >= $2 ORDER BY schedule.tree LIMIT $3";
    let rows = session.query(sql, &[&(shard.0 as i32), &first, &count(most)]).await?;
    Ok(rows.iter().map(|row| (TreeKey(row.get(0)), row.get::<_, Option<i64>>(1).map(at))).collect())
}

/// One page of schedules. The page goes as far as names were looked at, even if it found nothing.
pub(crate) async fn schedules(session: &Session, query: &ScheduleQuery) -> Result<Page<StoredTree>, Fault> {
    let sql = "WITH looked AS (SELECT id, tree, lifespan, paused, queue FROM punctual.schedule_name
            WHERE namespace = $1 AND starts_with(id, $2) AND id >= $2 AND ($3::text IS NULL OR id > $3)
            ORDER BY id LIMIT $4)
        SELECT id, tree, (SELECT max(id) FROM looked), (SELECT count(*) FROM looked) FROM looked
        WHERE (CASE WHEN $5::smallint IS NULL THEN lifespan <> 2 ELSE lifespan = $5 END)
            AND ($6::boolean IS NULL OR paused = $6) AND ($7::bigint IS NULL OR queue = $7)
        UNION ALL SELECT max(id), NULL, max(id), count(*) FROM looked
        ORDER BY 1, 2 LIMIT $8";
    let (prefix, after) = (&query.prefix[..], query.after.as_deref());
    let lifespan = query.lifespan.map(number);
    let most = query.count.min(NAMES_MAX);
    let params = &[
        &&query.namespace[..] as _,
        &prefix as _,
        &after as _,
        &count(NAMES_MAX) as _,
        &lifespan as _,
        &query.paused as _,
        &query.queue.map(|queue| queue.0) as _,
        &count(most + 2) as _,
    ];
    let rows = session.query(sql, params).await?;
    let looked: i64 = rows.first().map_or(0, |row| row.get(3));
    let last: Option<&str> = rows.first().and_then(|row| row.get(2));
    let keys: Vec<(i64, &str)> =
        rows.iter().filter_map(|row| Some((row.get::<_, Option<i64>>(1)?, row.get(0)))).collect();
    let more = keys.len() > most;
    let keys = &keys[..keys.len().min(most)];
    let found = load_keys(session, &keys.iter().map(|(tree, _)| *tree).collect::<Vec<_>>()).await?;
    // One that was removed in between is left out.
    let items = keys.iter().filter_map(|(tree, _)| found.get(tree).cloned()).collect();
    let next = if more {
        keys.last().map(|(_, id)| (*id).into())
    } else {
        last.filter(|_| looked >= count(NAMES_MAX)).map(Into::into)
    };
    Ok(Page { items, next })
}

/// How many schedules a query finds in all.
pub(crate) async fn count_schedules(session: &Session, query: &ScheduleQuery) -> Result<u64, Fault> {
    let sql = "SELECT count(*) FROM punctual.schedule_name
        WHERE namespace = $1 AND starts_with(id, $2) AND id >= $2
            AND (CASE WHEN $3::smallint IS NULL THEN lifespan <> 2 ELSE lifespan = $3 END)
            AND ($4::boolean IS NULL OR paused = $4) AND ($5::bigint IS NULL OR queue = $5)";
    let (prefix, lifespan) = (&query.prefix[..], query.lifespan.map(number));
    let queue = query.queue.map(|queue| queue.0);
    let row = session.find(sql, &[&&query.namespace[..], &prefix, &lifespan, &query.paused, &queue]).await?;
    Ok(row.map_or(0, |row| row.get::<_, i64>(0) as u64))
}

fn number(lifespan: Lifespan) -> i16 {
    value::lifespan_number(lifespan) as i16
}
