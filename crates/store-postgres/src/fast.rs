//! Units that meet nobody: each kind of change is one statement over arrays, all of them on their way at once.
//!
//! Every statement says how many rows it changed. If one is missing, somebody was faster, or a unit is more involved than it
//! looked: then nothing is written, and the same is tried once more with statements that tell which rows they changed. The
//! caller writes the units that are missing in the careful way.

mod columns;
mod touched;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use punctual_store::{Claim, Expected, Keeper, LiveRun, RunWrite, Taken, Unit};
use tokio_postgres::Row;

use crate::careful::{SPOT, claim_ready, taken_of};
use crate::fault::Fault;
use crate::fresh::Fresh;
use crate::news;
use crate::queues::Queues;
use crate::session::Session;
use crate::spots::{Spot, Spots};
pub(crate) use columns::NEW_VIEW;
use columns::{Columns, Wants};
pub(crate) use touched::Touched;

/// What became of it.
pub(crate) enum Written {
    /// Everything is durable.
    All(Vec<Taken>),
    /// Nothing was written, since these units met somebody; the others may go without them.
    Nothing { moved: BTreeSet<usize> },
    /// Nothing was written: what is remembered of queues is old.
    QueuesChanged,
    /// Nothing was written, since somebody was met; it is not known whom. Telling statements will tell. Or nobody was, and states
    /// are not where they were.
    Unclear { states_missed: bool },
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
type Sent<'a> = Pin<Box<dyn Future<Output = Result<Said, Fault>> + Send + 'a>>;

/// What it answered.
enum Said {
    /// These rows.
    Rows(Vec<Row>),
    /// It changed so many.
    Changed(u64),
}

/// Writes units and claims in one transaction, or nothing at all.
pub(crate) async fn write(
    session: &Session,
    (queues, spots): (&Queues, &Spots),
    units: &[(&Unit, Keeper)],
    claims: &[&Claim],
    telling: bool,
) -> Result<Written, Fault> {
    let columns = Columns::collect(units, claims, queues);
    let params = columns.statements(telling, spots);
    // What is prepared first is sent in order, and so rows are held in order.
    session.prepare_all(params.iter().map(|statement| statement.sql)).await?;
    let from: Vec<i64> = claims.iter().map(|claim| queues.floors.begin(claim.queue.0)).collect();
    let mut sent: Vec<Sent<'_>> = Vec::new();
    sent.push(Box::pin(async { session.begin().await.map(|()| Said::Changed(0)) }));
    for statement in &params {
        let values: Vec<_> = statement.values.iter().map(|value| &**value as _).collect();
        sent.push(Box::pin(async move {
            match statement.wanted {
                Wants::Changed(_) => Ok(Said::Changed(session.execute(statement.sql, &values).await?)),
                _ => Ok(Said::Rows(session.query(statement.sql, &values).await?)),
            }
        }));
    }
    for (claim, from) in claims.iter().zip(&from) {
        sent.push(Box::pin(async {
            Ok(Said::Rows(claim_ready(session, claim, claim.runs_max, false, *from).await?))
        }));
    }
    let timed = sent.into_iter().map(async |sent| (sent.await, Instant::now()));
    let (mut answers, times): (Vec<_>, Vec<Instant>) = join_all(timed).await.into_iter().unzip();
    let took = times.windows(2).skip(params.len()).map(|pair| pair[1].saturating_duration_since(pair[0]));
    let looks: Vec<(i64, Duration)> = from.into_iter().zip(took).collect();
    // What went wrong first says why; the rest only says that something did. Statements that had to be prepared come late.
    if let Some(cause) =
        answers.iter().position(|said| said.as_ref().is_err_and(|fault| !fault.is_consequence()))
    {
        answers.swap(0, cause);
    }
    let answers: Result<Vec<Said>, Fault> = answers.into_iter().collect();
    let judged = match answers {
        Ok(answers) => judge(&params, &answers).map(|written| (written, learnt(&params, &answers))),
        // A key that is there already: only statements that tell can say which.
        Err(fault) if !telling && fault.is_duplicate() => {
            Ok((Written::Unclear { states_missed: false }, Learnt::default()))
        }
        Err(fault) => Err(fault),
    };
    match judged {
        Ok((Written::All(taken), learnt)) => {
            session.run("COMMIT").await?;
            let changes = spots.trees.learn(learnt.trees.into_iter());
            if learnt.by_keys {
                spots.clearing.went(changes);
            }
            spots.runs.forget(columns.moved_runs());
            spots.runs.learn(learnt.runs.into_iter());
            for ((claim, taken), (from, took)) in claims.iter().zip(&taken).zip(looks) {
                let settings = queues.of(claim.queue.0).settings;
                let rank = |run: &LiveRun| settings.rank(run.made.created_at, run.made.priority);
                let last = taken.runs.iter().map(rank).max();
                queues.floors.looked(claim.queue.0, from, took, last);
            }
            queues.floors.written(units.iter().map(|(unit, _)| *unit), queues);
            Ok(Written::All(taken))
        }
        other => {
            columns.forget(spots);
            session.run("ROLLBACK").await?;
            // What these looks held is ready again, and others may have passed over it.
            for (claim, (from, _)) in claims.iter().zip(looks) {
                queues.floors.lower(claim.queue.0, from);
            }
            other.map(|(written, _)| written)
        }
    }
}

/// Where rows are from now on, if this is committed.
#[derive(Default)]
struct Learnt {
    trees: Vec<(i64, Spot)>,
    /// They were looked for by their keys.
    by_keys: bool,
    runs: Vec<(i64, Spot)>,
}

fn learnt(statements: &[columns::Statement<'_>], answers: &[Said]) -> Learnt {
    let mut learnt = Learnt::default();
    let (of_statements, of_claims) = answers[1..].split_at(statements.len());
    for (statement, said) in statements.iter().zip(of_statements) {
        if let (Said::Rows(rows), Wants::Spots(_, by_keys)) = (said, &statement.wanted) {
            learnt.by_keys = *by_keys;
            learnt.trees.extend(rows.iter().map(|row| (row.get(0), row.get(1))));
        }
    }
    for said in of_claims {
        if let Said::Rows(rows) = said {
            learnt.runs.extend(rows.iter().map(|row| (row.get(0), row.get(SPOT))));
        }
    }
    learnt
}

/// Whether every statement found what it wanted.
fn judge(statements: &[columns::Statement<'_>], answers: &[Said]) -> Result<Written, Fault> {
    // The first answer is that of BEGIN.
    let (of_statements, of_claims) = answers[1..].split_at(statements.len());
    let mut moved = BTreeSet::new();
    for (statement, said) in statements.iter().zip(of_statements) {
        let rows = match (said, &statement.wanted) {
            (Said::Changed(count), Wants::Changed(wanted)) if count == wanted => continue,
            (Said::Rows(rows), Wants::Spots(wanted, _)) if rows.len() as u64 == *wanted => continue,
            (_, Wants::Spots(_, by_keys)) => return Ok(Written::Unclear { states_missed: !by_keys }),
            (Said::Changed(_), _) => return Ok(Written::Unclear { states_missed: false }),
            (Said::Rows(rows), _) => rows,
        };
        match &statement.wanted {
            Wants::Changed(_) | Wants::Spots(..) | Wants::Nothing => {}
            Wants::Rows(wanted) => {
                let found: BTreeSet<i64> = rows.iter().map(|row| row.get(0)).collect();
                moved.extend(wanted.iter().filter(|(key, _)| !found.contains(key)).map(|(_, unit)| *unit));
            }
            Wants::NoRows(unwanted) => {
                let found = rows.iter().filter_map(|row| unwanted.get(&row.get::<_, i64>(0)));
                moved.extend(found.copied());
            }
            Wants::Count(count, units) => {
                if rows.len() != *count {
                    moved.extend(units.iter().copied());
                }
            }
            Wants::Epochs(wanted, by_spot) => {
                let epoch = |shard: i32| rows.iter().find(|row| row.get::<_, i32>(0) == shard);
                for (shard, believed, unit) in wanted {
                    let found = epoch(*shard).map_or(0, |row| row.get::<_, i64>(1));
                    if found != *believed && *by_spot {
                        return Ok(Written::Unclear { states_missed: false });
                    }
                    if found != *believed {
                        moved.insert(*unit);
                    }
                }
            }
            Wants::Versions(wanted) => {
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
    let taken = of_claims.iter().map(|said| match said {
        Said::Rows(rows) => taken_of(rows),
        Said::Changed(_) => Ok(Taken::default()),
    });
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
