//! Lists of runs, the latest first: live and closed ones are kept apart, and merged here.

use punctual_store::{Page, RunFilter, RunQuery, StoredRun};
use tokio_postgres::Row;

use crate::fault::Fault;
use crate::session::Session;
use crate::value::{self, count, run_columns};

/// Rows that one page looks at in each table, so that a filter that finds little does not take long.
const ROWS_MAX: usize = 10_000;

/// What was found in one table, by descending key, and how far it was looked at; to the end if that is nothing.
#[derive(Default)]
struct Found {
    runs: Vec<StoredRun>,
    looked_down_to: Option<i64>,
}

/// One page of runs.
pub(crate) async fn runs(session: &Session, query: &RunQuery) -> Result<Page<StoredRun>, Fault> {
    let sql = "SELECT queue FROM punctual.queue WHERE namespace = $1 AND ($2::bigint IS NULL OR queue = $2)";
    let queues = session.query(sql, &[&&query.namespace[..], &query.queue.map(|queue| queue.0)]).await?;
    let queues: Vec<i64> = queues.iter().map(|row| row.get(0)).collect();
    let live = match query.filter {
        None => live(session, query, &queues, None).await?,
        Some(RunFilter::Ready) => live(session, query, &queues, Some(value::READY)).await?,
        Some(RunFilter::BackingOff) => live(session, query, &queues, Some(value::BACKING_OFF)).await?,
        Some(RunFilter::Running) => live(session, query, &queues, Some(value::RUNNING)).await?,
        Some(RunFilter::Closed(_) | RunFilter::DeadLetter) => Found::default(),
    };
    let closed = match query.filter {
        None => closed(session, query, &queues, None, false).await?,
        Some(RunFilter::Closed(outcome)) => {
            closed(session, query, &queues, outcome.map(value::outcome_number), false).await?
        }
        Some(RunFilter::DeadLetter) => closed(session, query, &queues, None, true).await?,
        Some(RunFilter::Ready | RunFilter::BackingOff | RunFilter::Running) => Found::default(),
    };
    Ok(merge(live, closed, query.count))
}

/// The page goes down to where both tables were looked at.
fn merge(live: Found, closed: Found, most: usize) -> Page<StoredRun> {
    let floor = live.looked_down_to.max(closed.looked_down_to);
    let key = |run: &StoredRun| run.run.made.run.0;
    let mut items = live.runs;
    items.extend(closed.runs);
    items.retain(|run| floor.is_none_or(|floor| key(run) >= floor));
    items.sort_by_key(|run| std::cmp::Reverse(key(run)));
    // A run that ended between the two looks is in both; the end is what counts.
    items.dedup_by(|later, earlier| {
        let same = key(later) == key(earlier);
        if same && earlier.closing.is_none() {
            std::mem::swap(later, earlier);
        }
        same
    });
    let more = items.len() > most;
    items.truncate(most);
    let next = if more { items.last().map(key) } else { floor };
    Page { items, next: next.map(|run| run.to_string().into()) }
}

fn before(query: &RunQuery) -> i64 {
    query.before.map_or(i64::MAX, |before| before.0)
}

fn read_live(row: &Row) -> Result<StoredRun, Fault> {
    Ok(StoredRun { run: value::live_run(row)?, closing: None, is_dead_letter: false })
}

async fn live(
    session: &Session,
    query: &RunQuery,
    queues: &[i64],
    state: Option<i64>,
) -> Result<Found, Fault> {
    let sql = concat!(
        "WITH looked AS (SELECT run, queue, tree, state FROM punctual.run_live WHERE run < $1 ORDER BY run DESC LIMIT $2),
        wanted AS (SELECT run FROM looked WHERE queue = ANY($3) AND ($4::bigint IS NULL OR tree = $4)
            AND ($5::smallint IS NULL OR state = $5) ORDER BY run DESC LIMIT $6)
        SELECT ",
        run_columns!(),
        ", (SELECT CASE WHEN count(*) = $2 THEN min(run) END FROM looked)
        FROM punctual.run_live WHERE run IN (SELECT run FROM wanted) ORDER BY run DESC"
    );
    let (tree, state) = (query.tree.map(|tree| tree.0), state.map(|state| state as i16));
    let most = query.count.saturating_add(1);
    let params = &[
        &before(query) as _,
        &count(ROWS_MAX) as _,
        &queues as _,
        &tree as _,
        &state as _,
        &count(most) as _,
    ];
    let rows = session.query(sql, params).await?;
    if rows.is_empty() {
        return looked(session, "live", query).await;
    }
    let runs = rows.iter().map(read_live).collect::<Result<Vec<_>, _>>()?;
    let floor: Option<i64> = rows[0].get(value::OUTCOME);
    Ok(Found { looked_down_to: floor.filter(|_| runs.len() <= query.count), runs })
}

/// How far a look goes that found nothing.
async fn looked(session: &Session, table: &str, query: &RunQuery) -> Result<Found, Fault> {
    let sql = if table == "live" {
        "SELECT CASE WHEN count(*) = $2 THEN min(run) END FROM
            (SELECT run FROM punctual.run_live WHERE run < $1 ORDER BY run DESC LIMIT $2) AS looked"
    } else {
        "SELECT CASE WHEN count(*) = $2 THEN min(run) END FROM
            (SELECT run FROM punctual.run_closed WHERE run < $1 AND ($3::bigint IS NULL OR tree = $3)
            ORDER BY run DESC LIMIT $2) AS looked"
    };
    let (first, most, tree) = (before(query), count(ROWS_MAX), query.tree.map(|tree| tree.0));
    let row = if table == "live" {
        session.find(sql, &[&first, &most]).await?
    } else {
        session.find(sql, &[&first, &most, &tree]).await?
    };
    Ok(Found { runs: Vec::new(), looked_down_to: row.and_then(|row| row.get(0)) })
}

async fn closed(
    session: &Session,
    query: &RunQuery,
    queues: &[i64],
    outcome: Option<i64>,
    dead: bool,
) -> Result<Found, Fault> {
    let (tree, outcome) = (query.tree.map(|tree| tree.0), outcome.map(|outcome| outcome as i16));
    let most = query.count.saturating_add(1);
    if dead {
        // An index has them alone.
        let sql = concat!(
            "SELECT ",
            run_columns!(),
            ", outcome, closed_at, dead, payload FROM punctual.run_closed
            WHERE dead AND run < $1 AND queue = ANY($2) AND ($3::bigint IS NULL OR tree = $3)
            ORDER BY run DESC LIMIT $4"
        );
        let rows = session.query(sql, &[&before(query), &queues, &tree, &count(most)]).await?;
        let runs = rows.iter().map(value::closed_run).collect::<Result<_, _>>()?;
        return Ok(Found { runs, looked_down_to: None });
    }
    let sql = concat!(
        "WITH looked AS (SELECT run, queue, outcome FROM punctual.run_closed
            WHERE run < $1 AND ($4::bigint IS NULL OR tree = $4) ORDER BY run DESC LIMIT $2),
        wanted AS (SELECT run FROM looked WHERE queue = ANY($3) AND ($5::smallint IS NULL OR outcome = $5)
            ORDER BY run DESC LIMIT $6)
        SELECT ",
        run_columns!(),
        ", outcome, closed_at, dead, payload, (SELECT CASE WHEN count(*) = $2 THEN min(run) END FROM looked)
        FROM punctual.run_closed WHERE run IN (SELECT run FROM wanted) ORDER BY run DESC"
    );
    let params = &[
        &before(query) as _,
        &count(ROWS_MAX) as _,
        &queues as _,
        &tree as _,
        &outcome as _,
        &count(most) as _,
    ];
    let rows = session.query(sql, params).await?;
    if rows.is_empty() {
        return looked(session, "closed", query).await;
    }
    let runs = rows.iter().map(value::closed_run).collect::<Result<Vec<_>, _>>()?;
    let floor: Option<i64> = rows[0].get(value::OUTCOME + 4);
    Ok(Found { looked_down_to: floor.filter(|_| runs.len() <= query.count), runs })
}
