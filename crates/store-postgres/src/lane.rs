//! What waits to be written becomes one transaction: each lane has a connection, and takes all that waits when it is free.
//!
//! Units that meet nobody go first, as a few statements over arrays (`fast`). What that finds to have moved, and what is more
//! involved, is written unit by unit afterwards (`careful`). Claims of queues without limits share the first transaction.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use punctual_store::{Batch, Claim, Keeper, RunWrite, StoreError, Taken, Unit};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::careful::{self, Careful};
use crate::fast::{self, Written};
use crate::fault::Fault;
use crate::fresh::Fresh;
use crate::options::Options;
use crate::pace::Pace;
use crate::queues::{HELD, Queues};
use crate::session::{Address, Purpose, Session};
use crate::spots::Spots;

/// Rows of one transaction, roughly.
const ROWS_MAX: usize = 20_000;

/// How often the same is tried when it meets others.
const TRIES_MAX: u32 = 5;

/// The answer to whoever waits.
type Waiter<T> = oneshot::Sender<Result<T, StoreError>>;

/// Something to write.
enum Errand {
    Commit { batch: Batch, waiter: Waiter<Vec<Result<(), StoreError>>> },
    Claim { claim: Claim, waiter: Waiter<Taken> },
}

impl Errand {
    fn rows(&self) -> usize {
        match self {
            Errand::Commit { batch, .. } => batch.units.iter().map(|unit| 1 + unit.runs.len()).sum(),
            Errand::Claim { claim, .. } => claim.runs_max.min(1_000),
        }
    }
}

impl Errand {
    /// Nobody waits for it.
    fn is_patient(&self) -> bool {
        matches!(self, Errand::Commit { batch, .. } if batch.patient)
    }
}

/// What waits for a lane.
pub(crate) struct Lanes {
    waiting: Mutex<VecDeque<Errand>>,
    arrived: Notify,
    pub(crate) pace: Pace,
}

impl Lanes {
    pub(crate) fn new() -> Lanes {
        Lanes { waiting: Mutex::default(), arrived: Notify::new(), pace: Pace::new() }
    }

    /// Writes a batch as soon as a lane is free.
    pub(crate) fn commit(
        &self,
        batch: Batch,
    ) -> oneshot::Receiver<Result<Vec<Result<(), StoreError>>, StoreError>> {
        let (waiter, answer) = oneshot::channel();
        self.push(Errand::Commit { batch, waiter });
        answer
    }

    /// Claims as soon as a lane is free.
    pub(crate) fn claim(&self, claim: Claim) -> oneshot::Receiver<Result<Taken, StoreError>> {
        let (waiter, answer) = oneshot::channel();
        self.push(Errand::Claim { claim, waiter });
        answer
    }

    fn push(&self, errand: Errand) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(errand);
        self.arrived.notify_one();
    }

    /// Lets more come along, while there is nothing that somebody waits for.
    async fn wait(&self) {
        while let Some(until) = self.may_wait() {
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                () = self.arrived.notified() => {}
            }
        }
    }

    /// Until when there is no hurry.
    fn may_wait(&self) -> Option<Instant> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = waiting.iter().map(Errand::rows).sum();
        match waiting.iter().all(Errand::is_patient) {
            _ if waiting.is_empty() => None,
            true => self.pace.wait(rows),
            false => self.pace.wait_for_company(rows),
        }
    }

    /// Takes what waits, up to a bound.
    fn take(&self) -> Vec<Errand> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut errands, mut rows) = (Vec::new(), 0);
        while let Some(errand) = waiting.pop_front() {
            rows += errand.rows();
            errands.push(errand);
            if rows >= ROWS_MAX {
                break;
            }
        }
        if !waiting.is_empty() {
            self.arrived.notify_one();
        }
        errands
    }

    /// One lane, for as long as the store lives.
    pub(crate) async fn run(
        self: Arc<Lanes>,
        address: Address,
        options: Arc<Options>,
        queues: Arc<Queues>,
        fresh: Arc<Fresh>,
        spots: Arc<Spots>,
    ) {
        let mut session: Option<Session> = None;
        loop {
            let arrived = self.arrived.notified();
            self.wait().await;
            let errands = self.take();
            if errands.is_empty() {
                arrived.await;
                continue;
            }
            self.pace.begin(errands.iter().filter(|errand| !errand.is_patient()).count());
            if session.as_ref().is_none_or(Session::is_closed) {
                session = None;
                match Session::open(&address, &options, Purpose::Write, |_| {}).await {
                    Ok(opened) => session = Some(opened),
                    Err(fault) => {
                        refuse(errands, &fault.answer());
                        continue;
                    }
                }
            }
            let Some(open) = &session else { continue };
            if write(open, &queues, (&fresh, &spots), errands).await {
                session = None;
            }
        }
    }
}

fn refuse(errands: Vec<Errand>, error: &StoreError) {
    for errand in errands {
        match errand {
            Errand::Commit { waiter, .. } => drop(waiter.send(Err(error.clone()))),
            Errand::Claim { waiter, .. } => drop(waiter.send(Err(error.clone()))),
        }
    }
}

/// A batch whose units find their answers one by one.
struct Pending {
    units: Vec<Unit>,
    keeper: Keeper,
    answers: Vec<Option<Result<(), StoreError>>>,
    waiter: Option<Waiter<Vec<Result<(), StoreError>>>>,
}

impl Pending {
    /// Answers if there is nothing left to find out.
    fn answer(&mut self) {
        if self.answers.iter().all(Option::is_some)
            && let Some(waiter) = self.waiter.take()
        {
            let _ = waiter.send(Ok(std::mem::take(&mut self.answers).into_iter().flatten().collect()));
        }
    }

    fn fail(&mut self, error: &StoreError) {
        if let Some(waiter) = self.waiter.take() {
            let _ = waiter.send(Err(error.clone()));
        }
    }
}

/// Writes some errands; true if the connection is of no use any more.
async fn write(
    session: &Session,
    queues: &Queues,
    (fresh, spots): (&Fresh, &Spots),
    errands: Vec<Errand>,
) -> bool {
    let (mut batches, mut plain, mut limited) = (Vec::new(), Vec::new(), Vec::new());
    for errand in errands {
        match errand {
            Errand::Commit { batch: Batch { units, keeper, .. }, waiter } => {
                let answers = vec![None; units.len()];
                batches.push(Pending { units, keeper, answers, waiter: Some(waiter) });
            }
            Errand::Claim { claim, waiter } if queues.of(claim.queue.0).is_limited() => {
                limited.push((claim, waiter));
            }
            Errand::Claim { claim, waiter } => plain.push((claim, waiter)),
        }
    }
    let outcome = async {
        let mut deferred = not_plain(session, &batches, queues, fresh).await?;
        write_fast(session, (queues, spots), &mut batches, &mut plain, &mut deferred).await?;
        Ok(deferred)
    };
    let deferred = match outcome.await {
        Ok(deferred) => deferred,
        Err(fault) => {
            queues.floors.forget_all();
            return give_up(&fault, &mut batches, plain.into_iter().chain(limited).collect());
        }
    };
    // Whoever turned out to ask for a queue with limits waits with those.
    limited.extend(plain);
    batches.iter_mut().for_each(Pending::answer);
    if !deferred.is_empty()
        && let Err(fault) = write_careful(session, (queues, spots), &mut batches).await
    {
        queues.floors.forget_all();
        return give_up(&fault, &mut batches, limited);
    }
    batches.iter_mut().for_each(Pending::answer);
    for (claim, waiter) in limited {
        let answer = claim_limited(session, queues, &claim).await;
        let lost = answer.as_ref().is_err_and(|fault| fault.is_connection_lost());
        let _ = waiter.send(answer.map_err(|fault| fault.answer()));
        if lost {
            return true;
        }
    }
    false
}

/// Claims by limits. If somebody holds the queue for long, the claim is over, and may be made again in a moment.
async fn claim_limited(session: &Session, queues: &Queues, claim: &Claim) -> Result<Taken, Fault> {
    let queue = claim.queue.0;
    let soon = || Taken { runs: Vec::new(), next_time: claim.now.checked_add(HELD).ok() };
    if queues.is_held(queue) {
        return Ok(soon());
    }
    let claiming = || async {
        match session.transact(Careful::new(session, queues).claim(claim)).await {
            Err(fault) if fault.is_held() => Ok(None),
            answer => answer.map(Some),
        }
    };
    let taken = retrying(claiming).await?;
    Ok(taken.unwrap_or_else(|| {
        queues.is_found_held(queue);
        soon()
    }))
}

fn give_up(fault: &Fault, batches: &mut [Pending], claims: Vec<(Claim, Waiter<Taken>)>) -> bool {
    let error = fault.answer();
    batches.iter_mut().for_each(|batch| batch.fail(&error));
    for (_, waiter) in claims {
        let _ = waiter.send(Err(error.clone()));
    }
    // A statement that ran out of time may have left the transaction open.
    true
}

/// Which unit: of which batch, at which place.
type Place = (usize, usize);

/// Units that have to be looked at before they are written, or that touch what others do.
async fn not_plain(
    session: &Session,
    batches: &[Pending],
    queues: &Queues,
    fresh: &Fresh,
) -> Result<HashSet<Place>, Fault> {
    let units = batches.iter().map(|pending| pending.units.len()).sum();
    let (mut touched, mut deferred) = (fast::Touched::by(units), HashSet::new());
    let mut doubtful = Vec::new();
    for (batch, pending) in batches.iter().enumerate() {
        let ordered = fast::is_ordered(&pending.units);
        for (place, unit) in pending.units.iter().enumerate() {
            // All are asked: what is deferred is touched too, so that nobody overtakes it.
            let (alone, new) = (touched.add(unit), fast::is_fresh(unit, fresh));
            if ordered || !alone || !fast::is_plain(unit, queues) {
                deferred.insert((batch, place));
            } else if !new {
                doubtful.push((batch, place));
            }
        }
    }
    // Keys that nobody remembers to be new are looked for together: who is behind has many, and one after another it would
    // fall behind for ever. Among the live ones they are met when they are written.
    let keys: Vec<i64> = doubtful.iter().flat_map(|place| made(batches, *place)).collect();
    if !keys.is_empty() {
        let sql = "SELECT run FROM punctual.run_closed WHERE run = ANY($1)";
        let closed = session.query(sql, &[&keys]).await?;
        let closed: HashSet<i64> = closed.iter().map(|row| row.get(0)).collect();
        deferred.extend(
            doubtful.into_iter().filter(|place| made(batches, *place).any(|run| closed.contains(&run))),
        );
    }
    Ok(deferred)
}

/// The runs that a unit makes.
fn made(batches: &[Pending], (batch, place): Place) -> impl Iterator<Item = i64> {
    batches[batch].units[place].runs.iter().filter_map(|write| match write {
        RunWrite::Insert(made) => Some(made.run.0),
        _ => None,
    })
}

/// Writes what meets nobody, and claims. What is left for later is in `deferred`; claims that were answered are taken out.
async fn write_fast(
    session: &Session,
    (queues, spots): (&Queues, &Spots),
    batches: &mut [Pending],
    claims: &mut Vec<(Claim, Waiter<Taken>)>,
    deferred: &mut HashSet<Place>,
) -> Result<(), Fault> {
    let (mut tries, mut telling, mut missed) = (0, false, false);
    loop {
        let places = batches
            .iter()
            .enumerate()
            .flat_map(|(batch, pending)| (0..pending.units.len()).map(move |place| (batch, place)));
        let places: Vec<Place> = places.filter(|place| !deferred.contains(place)).collect();
        let units: Vec<(&Unit, Keeper)> = places
            .iter()
            .map(|(batch, place)| (&batches[*batch].units[*place], batches[*batch].keeper))
            .collect();
        let wanted: Vec<&Claim> = claims.iter().map(|(claim, _)| claim).collect();
        if units.is_empty() && wanted.is_empty() {
            return Ok(());
        }
        match fast::write(session, (queues, spots), &units, &wanted, telling).await {
            Ok(Written::All(taken)) => {
                if missed {
                    // Nobody was met, so it was the spots: the table has been written anew, and all of them are wrong.
                    spots.trees.clear();
                }
                for (batch, place) in places {
                    batches[batch].answers[place] = Some(Ok(()));
                }
                for ((_, waiter), taken) in claims.drain(..).zip(taken) {
                    let _ = waiter.send(Ok(taken));
                }
                return Ok(());
            }
            Ok(Written::Nothing { moved }) => {
                missed = false;
                deferred.extend(moved.into_iter().map(|unit| places[unit]));
            }
            Ok(Written::Unclear { states_missed }) => (telling, missed) = (true, states_missed),
            Ok(Written::QueuesChanged) => {
                queues.refresh(session).await?;
                for place in &places {
                    if !fast::is_plain(&batches[place.0].units[place.1], queues) {
                        deferred.insert(*place);
                    }
                }
                if claims.iter().any(|(claim, _)| queues.of(claim.queue.0).is_limited()) {
                    // They go the other way; the units still go this one.
                    let mut none = Vec::new();
                    return Box::pin(write_fast(session, (queues, spots), batches, &mut none, deferred))
                        .await;
                }
            }
            Err(fault) if fault.is_passing() && tries < TRIES_MAX => {}
            Err(fault) => return Err(fault),
        }
        tries += 1;
        if tries > 2 * TRIES_MAX {
            deferred.extend(places);
        }
    }
}

/// Writes all that has no answer yet, one unit after another.
async fn write_careful(
    session: &Session,
    (queues, spots): (&Queues, &Spots),
    batches: &mut [Pending],
) -> Result<(), Fault> {
    let mut tries = 0;
    let answers = loop {
        queues.refresh(session).await?;
        let open = batches.iter().flat_map(|pending| {
            let open = pending.units.iter().zip(&pending.answers).filter(|(_, answer)| answer.is_none());
            open.map(|(unit, _)| (unit, pending.keeper))
        });
        let open: Vec<(&Unit, Keeper)> = open.collect();
        match session.transact(careful::write(session, queues, &open)).await {
            Err(fault) if fault.is_passing() && tries < TRIES_MAX => tries += 1,
            answers => {
                let answers = answers?;
                queues.floors.written(open.iter().map(|(unit, _)| *unit), queues);
                spots.forget(open.iter().map(|(unit, _)| *unit));
                break answers;
            }
        }
    };
    let open = batches.iter_mut().flat_map(|pending| pending.answers.iter_mut());
    for (place, answer) in open.filter(|answer| answer.is_none()).zip(answers) {
        *place = Some(answer);
    }
    Ok(())
}

/// Tries again what met others.
pub(crate) async fn retrying<T, F: Future<Output = Result<T, Fault>>>(
    work: impl Fn() -> F,
) -> Result<T, Fault> {
    let mut tries = 0;
    loop {
        match work().await {
            Err(fault) if fault.is_passing() && tries < TRIES_MAX => tries += 1,
            answer => return answer,
        }
    }
}
