//! Runs: new ones, and what becomes of those that are there.

use punctual_core::Outcome;
use punctual_store::{Closing, Keeper, NewRun};
use tokio_postgres::types::ToSql;

use super::{Columns, Statement, Wants, rows, statement, values};
use crate::careful::HOLD_RUNS;
use crate::spots::Spots;
use crate::value::{self, time};

/// Runs without limits: every value that is handed over costs something, and most have none of the others.
macro_rules! insert_plain {
    () => {
        "INSERT INTO punctual.run_live
        (run, queue, tree, nominal_ms, request, rank, due_time, created_at, keeper, body,
        attempt, state, stop, priority, keyed, limited, key)
    SELECT *, 0, 0, 0, 0, false, false, ''::bytea
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
        $8::bigint[], $9::bigint[], $10::bytea[])"
    };
}

/// Runs with a priority, a key, a deduplication id, or for later.
macro_rules! insert_other {
    () => {
        "INSERT INTO punctual.run_live
        (run, queue, tree, nominal_ms, request, rank, due_time, created_at, keeper, body, not_before, priority, key, dedup,
        since, state, attempt, stop, keyed, limited)
    SELECT *, not_before, CASE WHEN not_before IS NULL THEN 0 ELSE 1 END, 0, 0, false, false
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
        $8::bigint[], $9::bigint[], $10::bytea[], $11::bigint[], $12::smallint[], $13::bytea[], $14::bytea[])
        AS new (run, queue, tree, nominal_ms, request, rank, due_time, created_at, keeper, body, not_before, priority,
            key, dedup)"
    };
}

/// From those that live to those that have ended. The columns of the ends, and how a run is found.
macro_rules! close {
    ($spots:literal, $spot:literal, $found:literal) => {
        concat!(
            "WITH gone AS (
        DELETE FROM punctual.run_live
        USING unnest($1::bigint[], $2::integer[], $3::smallint[], $4::bigint[], $5::boolean[], $6::bytea[]",
            $spots,
            ")
            AS ends (run, attempt, outcome, closed_at, dead, payload",
            $spot,
            ")
        WHERE ",
            $found,
            " AND NOT run_live.keyed
            AND (ends.attempt IS NULL OR (run_live.state = 2 AND run_live.attempt = ends.attempt))
        RETURNING run_live.*, ends.outcome, ends.closed_at, ends.dead, ends.payload
    )
    INSERT INTO punctual.run_closed
        (run, queue, tree, nominal_ms, request, due_time, created_at, since, not_before, keeper, attempt, state, stop,
        priority, worker, key, dedup, failure, body, outcome, closed_at, dead, payload)
    SELECT
        run, queue, tree, nominal_ms, request, due_time, created_at, since, not_before, keeper, attempt, state, stop,
        priority, worker, key, dedup, failure, body, outcome, closed_at, dead, payload
    FROM gone"
        )
    };
}
const CLOSE: &str = close!("", "", "run_live.run = ANY(ARRAY[ends.run])");
const CLOSE_TELLING: &str = concat!(close!("", "", "run_live.run = ANY(ARRAY[ends.run])"), " RETURNING run");
const CLOSE_AT: &str =
    close!(", $7::tid[]", ", spot", "run_live.ctid = ends.spot AND run_live.run + 0 = ends.run");

impl<'a> Columns<'a> {
    pub(super) fn runs(&self, telling: bool, list: &mut Vec<Statement<'a>>) {
        if !self.requests.is_empty() {
            let sql = "INSERT INTO punctual.request (namespace, id, made_at, runs)
                SELECT * FROM unnest($1::text[], $2::bytea[], $3::bigint[], $4::bytea[])
                ON CONFLICT DO NOTHING RETURNING made_at";
            let units = self.requests.iter().map(|(place, _)| *place).collect();
            let of = || self.requests.iter().map(|(_, request)| *request);
            list.push(statement(
                sql,
                Wants::Count(self.requests.len(), units),
                values![
                    of().map(|request| &request.namespace[..]).collect::<Vec<_>>(),
                    of().map(|request| request.id.as_bytes()).collect::<Vec<_>>(),
                    of().map(|request| time(request.made_at)).collect::<Vec<_>>(),
                    of().map(|request| value::run_keys(&request.runs)).collect::<Vec<_>>()
                ],
            ));
        }
        for (runs, plain) in [(&self.plain_runs, true), (&self.other_runs, false)] {
            if runs.is_empty() {
                continue;
            }
            let wanted = runs.iter().map(|(place, made, ..)| (made.run.0, *place)).collect();
            let mut values = run_values(runs);
            if !plain {
                values.extend(limit_values(runs));
            }
            // Looking for a conflict makes each row dearer, and there hardly ever is one.
            let sql = match (plain, telling) {
                (true, true) => concat!(insert_plain!(), " ON CONFLICT DO NOTHING RETURNING run"),
                (true, false) => insert_plain!(),
                (false, true) => concat!(insert_other!(), " ON CONFLICT DO NOTHING RETURNING run"),
                (false, false) => insert_other!(),
            };
            list.push(Statement { sql, wanted: rows(wanted, telling), values });
        }
    }

    /// One statement holds its rows in the order that it is given them; several would hold them in turns.
    pub(super) fn hold_runs(&self, list: &mut Vec<Statement<'a>>) {
        let kinds = [
            self.closes.iter().map(|(_, run, ..)| *run).collect::<Vec<_>>(),
            self.retries.iter().map(|(_, run, ..)| *run).collect(),
            self.releases.iter().map(|(_, run)| *run).collect(),
            self.stops.iter().map(|(run, _)| *run).collect(),
            self.hand_overs.iter().map(|(_, run, ..)| *run).collect(),
        ];
        if kinds.iter().filter(|runs| !runs.is_empty()).count() > 1 || self.releases.len() > 1 {
            list.push(statement(HOLD_RUNS, Wants::Nothing, values![kinds.concat()]));
        }
    }

    pub(super) fn changes(&self, telling: bool, spots: Option<&Spots>, list: &mut Vec<Statement<'a>>) {
        if !self.closes.is_empty() {
            let of = || self.closes.iter().map(|(.., closing)| *closing);
            let is_dead = |closing: &Closing| matches!(closing.outcome, Outcome::Failed | Outcome::TimedOut);
            let runs = || self.closes.iter().map(|(_, run, ..)| *run);
            let mut values = values![
                runs().collect::<Vec<_>>(),
                self.closes
                    .iter()
                    .map(|(_, _, attempt, _)| attempt.map(|attempt| attempt as i32))
                    .collect::<Vec<_>>(),
                of().map(|closing| value::outcome_number(closing.outcome) as i16).collect::<Vec<_>>(),
                of().map(|closing| time(closing.closed_at)).collect::<Vec<_>>(),
                of().map(is_dead).collect::<Vec<_>>(),
                of().map(|closing| closing.payload.as_deref()).collect::<Vec<_>>()
            ];
            let sql = match spots.and_then(|spots| spots.runs.take(runs())) {
                Some(known) => {
                    values.push(Box::new(known));
                    CLOSE_AT
                }
                None if telling => CLOSE_TELLING,
                None => CLOSE,
            };
            let wanted = self.closes.iter().map(|(place, run, ..)| (*run, *place)).collect();
            list.push(Statement { sql, wanted: rows(wanted, telling), values });
        }
        if !self.retries.is_empty() {
            list.push(statement(
                RETRY,
                Wants::Rows(self.retries.iter().map(|(place, run, ..)| (*run, *place)).collect()),
                values![
                    self.retries.iter().map(|(_, run, ..)| *run).collect::<Vec<_>>(),
                    self.retries.iter().map(|(_, _, attempt, ..)| *attempt as i32).collect::<Vec<_>>(),
                    self.retries.iter().map(|(_, _, _, not_before, ..)| *not_before).collect::<Vec<_>>(),
                    self.retries.iter().map(|(_, _, _, _, failure, _)| *failure).collect::<Vec<_>>(),
                    self.retries.iter().map(|(.., keeper)| keeper.0).collect::<Vec<_>>()
                ],
            ));
        }
        if !self.releases.is_empty() {
            let runs = || self.releases.iter().map(|(_, run)| *run).collect::<Vec<_>>();
            let keyed = self.releases.iter().map(|(place, run)| (*run, *place)).collect();
            let sql = "SELECT run FROM punctual.run_live WHERE run = ANY($1) AND state = 1 AND keyed";
            list.push(statement(sql, Wants::NoRows(keyed), values![runs()]));
            let sql =
                "UPDATE punctual.run_live SET state = 0, since = NULL WHERE run = ANY($1) AND state = 1";
            list.push(statement(sql, Wants::Nothing, values![runs()]));
        }
        if !self.stops.is_empty() {
            let sql = "UPDATE punctual.run_live SET stop = greatest(run_live.stop, new.stop)
                FROM unnest($1::bigint[], $2::smallint[]) AS new (run, stop) WHERE run_live.run = ANY(ARRAY[new.run])";
            list.push(statement(
                sql,
                Wants::Nothing,
                values![
                    self.stops.iter().map(|(run, _)| *run).collect::<Vec<_>>(),
                    self.stops.iter().map(|(_, kind)| value::stop_number(*kind) as i16).collect::<Vec<_>>()
                ],
            ));
        }
        self.rest(list);
    }

    fn rest(&self, list: &mut Vec<Statement<'a>>) {
        if !self.hand_overs.is_empty() {
            let sql = "UPDATE punctual.run_live SET worker = new.worker
                FROM unnest($1::bigint[], $2::integer[], $3::text[]) AS new (run, attempt, worker)
                WHERE run_live.run = ANY(ARRAY[new.run]) AND run_live.state = 2 AND run_live.attempt = new.attempt
                RETURNING run_live.run";
            list.push(statement(
                sql,
                Wants::Rows(self.hand_overs.iter().map(|(place, run, ..)| (*run, *place)).collect()),
                values![
                    self.hand_overs.iter().map(|(_, run, ..)| *run).collect::<Vec<_>>(),
                    self.hand_overs.iter().map(|(_, _, attempt, _)| *attempt as i32).collect::<Vec<_>>(),
                    self.hand_overs.iter().map(|(.., worker)| *worker).collect::<Vec<_>>()
                ],
            ));
        }
        if !self.buries.is_empty() {
            let sql =
                "UPDATE punctual.run_closed SET dead = false WHERE run = ANY($1) AND dead RETURNING run";
            let wanted = self.buries.iter().map(|(place, run)| (*run, *place)).collect();
            let runs = self.buries.iter().map(|(_, run)| *run).collect::<Vec<_>>();
            list.push(statement(sql, Wants::Rows(wanted), values![runs]));
        }
        if !self.details.is_empty() {
            let sql = "INSERT INTO punctual.run_detail (run, progress, log_tail)
                SELECT new.run, new.progress, new.log_tail
                FROM unnest($1::bigint[], $2::integer[], $3::bytea[], $4::bytea[]) AS new (run, attempt, progress, log_tail)
                JOIN punctual.run_live ON run_live.run = ANY(ARRAY[new.run]) AND run_live.attempt = new.attempt
                ON CONFLICT (run) DO UPDATE SET
                    progress = coalesce(excluded.progress, run_detail.progress),
                    log_tail = coalesce(excluded.log_tail, run_detail.log_tail)";
            list.push(statement(
                sql,
                Wants::Nothing,
                values![
                    self.details.iter().map(|(run, ..)| *run).collect::<Vec<_>>(),
                    self.details.iter().map(|(_, attempt, ..)| *attempt as i32).collect::<Vec<_>>(),
                    self.details.iter().map(|(_, _, progress, _)| *progress).collect::<Vec<_>>(),
                    self.details.iter().map(|(.., log_tail)| *log_tail).collect::<Vec<_>>()
                ],
            ));
        }
    }
}

type Made<'a> = (usize, &'a NewRun, i64, Keeper);

fn run_values<'a>(runs: &[Made<'a>]) -> Vec<Box<dyn ToSql + Sync + Send + 'a>> {
    let made = || runs.iter().map(|(_, made, ..)| *made);
    let origins = || made().map(|made| made.origin);
    values![
        made().map(|made| made.run.0).collect::<Vec<_>>(),
        made().map(|made| made.queue.0).collect::<Vec<_>>(),
        origins().map(|origin| origin.map(|(tree, _)| tree.0)).collect::<Vec<_>>(),
        origins().map(|origin| origin.map(|(_, start)| start.nominal_ms)).collect::<Vec<_>>(),
        origins()
            .map(|origin| origin.map(|(_, start)| value::request(start.origin) as i64))
            .collect::<Vec<_>>(),
        runs.iter().map(|(_, _, rank, _)| *rank).collect::<Vec<_>>(),
        made().map(|made| time(made.due_time)).collect::<Vec<_>>(),
        made().map(|made| time(made.created_at)).collect::<Vec<_>>(),
        runs.iter().map(|(.., keeper)| keeper.0).collect::<Vec<_>>(),
        made().map(|made| &made.body[..]).collect::<Vec<_>>()
    ]
}

fn limit_values<'a>(runs: &[Made<'a>]) -> Vec<Box<dyn ToSql + Sync + Send + 'a>> {
    let made = || runs.iter().map(|(_, made, ..)| *made);
    values![
        made().map(|made| made.not_before.map(time)).collect::<Vec<_>>(),
        made().map(|made| made.priority).collect::<Vec<_>>(),
        made().map(|made| made.key.as_bytes()).collect::<Vec<_>>(),
        made().map(|made| made.dedup.as_deref().map(str::as_bytes)).collect::<Vec<_>>()
    ]
}

const RETRY: &str = "UPDATE punctual.run_live
    SET state = 1, since = new.not_before, worker = NULL, failure = new.failure, keeper = new.keeper, limited = false
    FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bytea[], $5::bigint[])
        AS new (run, attempt, not_before, failure, keeper)
    WHERE run_live.run = ANY(ARRAY[new.run]) AND run_live.state = 2 AND run_live.attempt = new.attempt AND NOT run_live.keyed
    RETURNING run_live.run";
