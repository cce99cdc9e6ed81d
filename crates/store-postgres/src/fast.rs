//! Units that meet nobody: each kind of change is one statement over arrays, all of them on their way at once.
//!
//! Every statement says which rows it changed. If one is missing, somebody was faster, or the unit is more involved than it
//! looked: then nothing is written, and the caller writes that unit in the careful way.

mod columns;
mod touched;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;

use futures_util::future::{join_all, try_join_all};
use punctual_store::{Claim, Expected, Keeper, RunWrite, Taken, Unit};
use tokio_postgres::Row;

use crate::careful::claim_ready;
use crate::fault::Fault;
use crate::fresh::Fresh;
use crate::news;
use crate::queues::Queues;
use crate::session::Session;
use columns::Columns;
pub(crate) use columns::NEW_VIEW;
pub(crate) use touched::Touched;

/// What became of it.
pub(crate) enum Written {
    /// Everything is durable.
    All(Vec<Taken>),
    /// Nothing was written, since these units met somebody; the others may go without them.
    Nothing { moved: BTreeSet<usize> },
    /// Nothing was written: what is remembered of queues is old.
    QueuesChanged,
}

/// Whether a unit can be written without looking first.
pub(crate) fn is_plain(unit: &Unit, queues: &Queues) -> bool {
    let tree = unit.tree.as_ref().is_none_or(|write| {
        !write.retired && matches!(write.expected, Expected::At(_) | Expected::New { replaces: None, .. })
    });
    let plain = |write: &RunWrite| match write {
        RunWrite::Insert(made) => !queues.of(made.queue.0).settings.is_keyed(),
        // Whether its queue serves keys in turn is seen when it is written.
        _ => true,
    };
    tree && unit.runs.iter().all(plain)
}

/// Whether all keys of new runs were drawn here and never used: then nobody has to look for them among the closed ones.
/// From now on they are used.
pub(crate) fn is_fresh(unit: &Unit, fresh: &Fresh) -> bool {
    let mut all = true;
    for write in &unit.runs {
        if let RunWrite::Insert(made) = write {
            all &= fresh.take(made.run.0);
        }
    }
    all
}

/// Whether a batch ends runs and makes others with deduplication ids: these may be those that the ended ones had, so the
/// order of its units counts.
pub(crate) fn is_ordered(units: &[Unit]) -> bool {
    let writes = || units.iter().flat_map(|unit| &unit.runs);
    writes().any(|write| matches!(write, RunWrite::Insert(made) if made.dedup.is_some()))
        && writes().any(|write| matches!(write, RunWrite::Close { .. }))
}

/// The keys of the rows that a statement must have changed, and the unit of each.
type Wanted = BTreeMap<i64, usize>;

/// A statement on its way.
type Sent<'a> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Fault>> + Send + 'a>>;

/// Writes units and claims in one transaction, or nothing at all.
pub(crate) async fn write(
    session: &Session,
    queues: &Queues,
    units: &[(&Unit, Keeper)],
    claims: &[&Claim],
) -> Result<Written, Fault> {
    let columns = Columns::collect(units, claims, queues);
    let params = columns.statements();
    // What is prepared first is sent in order, and so rows are held in order.
    try_join_all(params.iter().map(|statement| session.prepare(statement.sql))).await?;
    let mut sent: Vec<Sent<'_>> = Vec::new();
    sent.push(Box::pin(async { session.run("BEGIN").await.map(|()| Vec::new()) }));
    for statement in &params {
        let values: Vec<_> = statement.values.iter().map(|value| &**value as _).collect();
        sent.push(Box::pin(async move { session.query(statement.sql, &values).await }));
    }
    for claim in claims {
        sent.push(Box::pin(claim_ready(session, claim, claim.runs_max, false)));
    }
    let judged = match all_or_cause(join_all(sent).await) {
        Ok(answers) => judge(&columns, &params, &answers),
        Err(fault) => Err(fault),
    };
    match judged {
        Ok(Written::All(taken)) => {
            session.run("COMMIT").await?;
            Ok(Written::All(taken))
        }
        other => {
            session.run("ROLLBACK").await?;
            other
        }
    }
}

/// All answers, or the fault that the others follow from.
fn all_or_cause(answers: Vec<Result<Vec<Row>, Fault>>) -> Result<Vec<Vec<Row>>, Fault> {
    let (mut rows, mut cause) = (Vec::with_capacity(answers.len()), None::<Fault>);
    for answer in answers {
        match answer {
            Ok(answer) => rows.push(answer),
            Err(fault) if cause.as_ref().is_none_or(Fault::is_consequence) => cause = Some(fault),
            Err(_) => {}
        }
    }
    cause.map_or(Ok(rows), Err)
}

/// Whether every statement found what it wanted.
fn judge(
    columns: &Columns<'_>,
    statements: &[columns::Statement<'_>],
    answers: &[Vec<Row>],
) -> Result<Written, Fault> {
    // The first answer is that of BEGIN.
    let (of_statements, of_claims) = answers[1..].split_at(statements.len());
    let mut moved = BTreeSet::new();
    for (statement, rows) in statements.iter().zip(of_statements) {
        match &statement.wanted {
            columns::Wants::Nothing => {}
            columns::Wants::Rows(wanted) => {
                let found: BTreeSet<i64> = rows.iter().map(|row| row.get(0)).collect();
                moved.extend(wanted.iter().filter(|(key, _)| !found.contains(key)).map(|(_, unit)| *unit));
            }
            columns::Wants::NoRows(unwanted) => {
                let found = rows.iter().filter_map(|row| unwanted.get(&row.get::<_, i64>(0)));
                moved.extend(found.copied());
            }
            columns::Wants::Count(count, units) => {
                if rows.len() != *count {
                    moved.extend(units.iter().copied());
                }
            }
            columns::Wants::Epochs(wanted) => {
                let epoch = |shard: i32| rows.iter().find(|row| row.get::<_, i32>(0) == shard);
                for (shard, believed, unit) in wanted {
                    let found = epoch(*shard).map_or(0, |row| row.get::<_, i64>(1));
                    if found != *believed {
                        moved.insert(*unit);
                    }
                }
            }
            columns::Wants::Versions(wanted) => {
                let version = |queue: i64| rows.iter().find(|row| row.get::<_, i64>(0) == queue);
                for (queue, remembered) in wanted {
                    if version(*queue).map(|row| row.get::<_, i64>(1)) != *remembered {
                        return Ok(Written::QueuesChanged);
                    }
                }
            }
        }
    }
    if !moved.is_empty() {
        return Ok(Written::Nothing { moved });
    }
    let taken = of_claims.iter().zip(&columns.claims).map(|(rows, claim)| claim.taken(rows));
    Ok(Written::All(taken.collect::<Result<_, _>>()?))
}

/// What the owners of schedules hear when somebody else writes them.
fn told(units: &[(&Unit, Keeper)]) -> Vec<String> {
    let words = units.iter().filter_map(|(unit, _)| unit.tree.as_ref()).filter(|write| write.epoch.is_none());
    news::payloads(words.map(|write| {
        let (shard, tree, due_time) = (write.shard, write.tree, write.due_time);
        news::encode(&punctual_store::News::Tree { shard, tree, due_time })
    }))
}
