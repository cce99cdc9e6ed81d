//! Handing runs to a worker: by rank or key by key, and never more than every limit of the queue allows.

use punctual_store::{Claim, LiveRun, QueueSettings, Taken};
use tokio_postgres::Row;

use super::Careful;
use crate::fault::Fault;
use crate::floor::FRONT;
use crate::session::Session;
use crate::value::{self, time};

/// Keys that are forgotten at each claim besides two for each run that it hands out, so that they become fewer.
const KEYS_FORGOTTEN: usize = 4;

/// The columns of a run, of the table that is updated, in the order of [`value::live_run`]; then its rank and its spot.
macro_rules! claimed_columns {
    () => {
        "RETURNING live.run, live.queue, live.tree, live.nominal_ms, live.request, live.due_time, live.created_at, \
         live.since, live.not_before, live.keeper, live.attempt, live.state, live.stop, live.priority, live.worker, \
         live.key, live.dedup, live.failure, live.body, live.rank, live.ctid"
    };
}

/// The column with the spot of a run that was claimed.
pub(crate) const SPOT: usize = value::OUTCOME + 1;

/// The first in line, from a rank on, begin a new attempt. Those that somebody else is just writing are passed over.
pub(crate) async fn claim_ready(
    session: &Session,
    claim: &Claim,
    runs_max: usize,
    limited: bool,
    from: i64,
) -> Result<Vec<Row>, Fault> {
    let sql = concat!(
        "UPDATE punctual.run_live AS live
        SET state = 2, attempt = live.attempt + 1, worker = $3, since = $4, keeper = $5, limited = $6
        WHERE live.run = ANY(ARRAY(SELECT run FROM punctual.run_live WHERE queue = $1 AND state = 0 AND rank >= $7
            ORDER BY rank, run LIMIT $2 FOR UPDATE SKIP LOCKED)) ",
        claimed_columns!()
    );
    let (count, now) = (value::count(runs_max), time(claim.now));
    session
        .query(sql, &[&claim.queue.0, &count, &&claim.worker[..], &now, &claim.keeper.0, &limited, &from])
        .await
}

/// What a worker got, in the order of its claim.
pub(crate) fn taken_of(rows: &[Row]) -> Result<Taken, Fault> {
    let runs = rows.iter().map(|row| Ok((row.get::<_, i64>(value::OUTCOME), value::live_run(row)?)));
    let mut runs: Vec<(i64, LiveRun)> = runs.collect::<Result<_, Fault>>()?;
    runs.sort_by_key(|(rank, live)| (*rank, live.made.run));
    Ok(Taken { runs: runs.into_iter().map(|(_, live)| live).collect(), next_time: None })
}

impl Careful<'_> {
    /// Begins a new attempt of each run that is handed out. Nobody else claims from the queue meanwhile.
    pub(crate) async fn claim(self, claim: &Claim) -> Result<Taken, Fault> {
        let Some(known) = self.queues.lock(self.session, claim.queue.0).await? else {
            return Ok(Taken::default());
        };
        let settings = &*known.settings;
        if settings.paused {
            return Ok(Taken::default());
        }
        let room = self.room(claim, settings).await?;
        if room == 0 {
            return Ok(Taken::default());
        }
        if settings.is_keyed() {
            self.claim_by_key(claim, settings, room).await
        } else {
            self.claim_by_rank(claim, settings, room).await
        }
    }

    /// How many runs the worker may get by what runs already.
    async fn room(&self, claim: &Claim, settings: &QueueSettings) -> Result<usize, Fault> {
        if settings.concurrency_max.is_none() && settings.worker_concurrency_max.is_none() {
            return Ok(claim.runs_max);
        }
        let sql = "SELECT count(*), count(*) FILTER (WHERE worker = $2) FROM punctual.run_live
            WHERE queue = $1 AND state = 2 AND limited";
        let row = self.session.find(sql, &[&claim.queue.0, &&claim.worker[..]]).await?;
        let running = |column: usize| row.as_ref().map_or(0, |row| row.get::<_, i64>(column));
        let left = |bound: Option<u32>, running: i64| {
            bound.map_or(i64::MAX, |bound| i64::from(bound).saturating_sub(running).max(0))
        };
        let room =
            left(settings.concurrency_max, running(0)).min(left(settings.worker_concurrency_max, running(1)));
        Ok(claim.runs_max.min(usize::try_from(room).unwrap_or(usize::MAX)))
    }

    async fn claim_by_rank(
        &self,
        claim: &Claim,
        settings: &QueueSettings,
        room: usize,
    ) -> Result<Taken, Fault> {
        let mut window = match settings.rate {
            Some(rate) => Some(self.window(claim.queue.0, rate).await?),
            None => None,
        };
        let (allowed, opens) = match &window {
            Some(window) => self.allowance(window, claim.now, room).await?,
            None => (room, None),
        };
        let rows = claim_ready(self.session, claim, allowed, true, FRONT).await?;
        let mut taken = taken_of(&rows)?;
        if let Some(window) = &mut window {
            self.add_starts(window, claim.now, taken.runs.len()).await?;
        }
        if opens.is_some() && self.is_waiting(claim).await? {
            taken.next_time = opens;
        }
        Ok(taken)
    }

    async fn claim_by_key(
        &self,
        claim: &Claim,
        settings: &QueueSettings,
        room: usize,
    ) -> Result<Taken, Fault> {
        let queue = claim.queue.0;
        let before = self.round(queue).await?;
        let (mut round, mut taken) = (before, Taken::default());
        let mut window = match settings.rate {
            Some(rate) => Some(self.window(queue, rate).await?),
            None => None,
        };
        if settings.key_rate.is_some() {
            self.open_keys(queue, claim.now).await?;
        }
        while taken.runs.len() < room {
            if let Some(window) = &window {
                let (allowed, opens) = self.allowance(window, claim.now, 1).await?;
                if allowed == 0 {
                    taken.next_time = if self.is_waiting(claim).await? { opens } else { None };
                    break;
                }
            }
            let Some(key) = self.next_key(queue, settings, claim.now).await? else {
                taken.next_time = self.held_until(queue).await?;
                break;
            };
            if let Some(first) = key.first {
                taken.runs.extend(self.begin_attempt(claim, first.run).await?);
            }
            if let Some(window) = &mut window {
                self.add_starts(window, claim.now, 1).await?;
            }
            round.handed_out += 1;
            self.key_starts(queue, key, settings, (round, claim.now)).await?;
        }
        if settings.key_rate.is_some() {
            self.forget_keys(queue, &mut round, claim.now, KEYS_FORGOTTEN + 2 * taken.runs.len()).await?;
        }
        if round != before {
            self.set_round(queue, round).await?;
        }
        Ok(taken)
    }

    async fn begin_attempt(&self, claim: &Claim, run: i64) -> Result<Option<LiveRun>, Fault> {
        let sql = concat!(
            "UPDATE punctual.run_live AS live
            SET state = 2, attempt = live.attempt + 1, worker = $2, since = $3, keeper = $4, limited = true
            WHERE run = $1 AND state = 0 ",
            claimed_columns!()
        );
        let row =
            self.session.find(sql, &[&run, &&claim.worker[..], &time(claim.now), &claim.keeper.0]).await?;
        row.map(|row| value::live_run(&row)).transpose()
    }

    async fn is_waiting(&self, claim: &Claim) -> Result<bool, Fault> {
        let sql =
            "SELECT run FROM punctual.run_live WHERE queue = $1 AND state = 0 ORDER BY rank, run LIMIT 1";
        Ok(self.session.find(sql, &[&claim.queue.0]).await?.is_some())
    }
}
