//! What workers ask and report.

use std::time::Duration;

use futures_util::future::try_join_all;
use jiff::SignedDuration;
use punctual_api::v1;
use punctual_engine::{Pulse, QUIET_WORKER, Recorded, Report};

use super::queues::addressed;
use crate::app::{App, namespace};
use crate::convert::action::is_served_here;
use crate::convert::payload;
use crate::convert::run::{claimed, directive, end, log_text, report, run_key};
use crate::convert::time::length;
use crate::limits::{CLAIM_LEASE_MAX, CLAIM_LEASE_MIN, CLAIM_WAIT_MAX, REPORTS_MAX};
use crate::status::{Fault, STOPPING};
use crate::traces::PlainNews;

/// How long a claim that is being written may take when the server stops: its runs would wait for their lease.
const CLAIM_GRACE: Duration = Duration::from_millis(100);

pub(crate) async fn claim(app: &App, asked: v1::ClaimRequest) -> Result<v1::ClaimResponse, Fault> {
    let wait = length("wait", asked.wait.as_ref())?.unwrap_or_default();
    within("wait", wait, Duration::ZERO, CLAIM_WAIT_MAX)?;
    let lease = length("lease", asked.lease.as_ref())?;
    lease.map(|lease| within("lease", lease, CLAIM_LEASE_MIN, CLAIM_LEASE_MAX)).transpose()?;
    named(&asked.worker_id)?;
    if asked.worker_id.starts_with(QUIET_WORKER) {
        let message =
            format!("begins with {QUIET_WORKER:?}, which only names of other contracts' workers do");
        return Err(Fault::field("worker_id", message));
    }
    if is_served_here(&asked.queue) {
        return Err(Fault::field("queue", format!("{} is worked by the server itself", asked.queue)));
    }
    if app.is_stopping() {
        return Err(Fault::new(&STOPPING, "the server is stopping and hands out no more runs"));
    }
    let (place, most) = (namespace(&asked.namespace), asked.runs_max.max(1) as usize);
    let taken = app.engine.claim(place, &asked.queue, &asked.worker_id, most, wait.unsigned_abs(), lease);
    let mut taken = std::pin::pin!(taken);
    let taken = tokio::select! {
        taken = &mut taken => taken,
        () = app.stop() => tokio::time::timeout(CLAIM_GRACE, taken).await.unwrap_or_else(|_| Ok(Vec::new())),
    };
    let taken = taken.map_err(addressed)?;
    let plain = taken.iter().filter(|taken| taken.live.made.origin.is_none());
    app.tell_traces(plain.map(|taken| PlainNews::Open(taken.live.made.run)));
    Ok(v1::ClaimResponse { runs: taken.iter().map(claimed).collect() })
}

pub(crate) async fn heartbeat(
    app: &App,
    asked: v1::HeartbeatRequest,
) -> Result<v1::HeartbeatResponse, Fault> {
    named(&asked.worker_id)?;
    few(asked.runs.len())?;
    let wait = length("wait", asked.wait.as_ref())?.unwrap_or_default();
    within("wait", wait, Duration::ZERO, CLAIM_WAIT_MAX)?;
    let pulse = |beat: &v1::RunHeartbeat| {
        Ok(Pulse {
            run: run_key("run_id", &beat.run_id)?,
            attempt: beat.token,
            progress: payload::bytes("progress", beat.progress.as_ref())?,
            log: log_text(&beat.log_lines, beat.token, app.engine.now())?,
        })
    };
    let pulses = each(&asked.runs, pulse)?;
    let place = namespace(&asked.namespace);
    let quiet: Vec<Pulse> = pulses.iter().map(without_news).collect();
    let answers = tokio::select! {
        answers = app.engine.heartbeat(place, &asked.worker_id, pulses, wait.unsigned_abs()) => answers?,
        // Nobody waits for a server that stops; what was told is told once.
        () = app.stop() => app.engine.heartbeat(place, &asked.worker_id, quiet, Duration::ZERO).await?,
    };
    Ok(v1::HeartbeatResponse { runs: answers.iter().map(directive).collect() })
}

pub(crate) async fn complete(app: &App, asked: v1::CompleteRequest) -> Result<v1::CompleteResponse, Fault> {
    named(&asked.worker_id)?;
    few(asked.runs.len())?;
    let place = namespace(&asked.namespace);
    let to_report = |done: &v1::RunCompletion| {
        Ok(Report {
            namespace: place.into(),
            worker: asked.worker_id.as_str().into(),
            run: run_key("run_id", &done.run_id)?,
            attempt: done.token,
            end: end(done.end.clone())?,
        })
    };
    let reports = each(&asked.runs, to_report)?;
    let last_words = |done: &v1::RunCompletion| {
        let log = log_text(&done.log_lines, done.token, app.engine.now())?;
        Ok(Pulse { run: run_key("run_id", &done.run_id)?, attempt: done.token, progress: None, log })
    };
    let mut pulses = each(&asked.runs, last_words)?;
    pulses.retain(|pulse| !pulse.log.is_empty());
    if !pulses.is_empty() {
        app.engine.heartbeat(place, &asked.worker_id, pulses, Duration::ZERO).await?;
    }
    let recorded = reports.into_iter().map(|done| async move {
        let run = done.run;
        let recorded = app.engine.report(done).await?;
        app.tell_traces((recorded == Recorded::Closed).then_some(PlainNews::Over(run)));
        Ok::<_, Fault>(report(run, recorded))
    });
    Ok(v1::CompleteResponse { runs: try_join_all(recorded).await? })
}

/// The same beat without progress and log lines.
fn without_news(pulse: &Pulse) -> Pulse {
    Pulse { progress: None, log: String::new(), ..pulse.clone() }
}

fn each<W, C>(runs: &[W], convert: impl Fn(&W) -> Result<C, Fault>) -> Result<Vec<C>, Fault> {
    let numbered = runs.iter().enumerate();
    numbered
        .map(|(place, run)| convert(run).map_err(|fault| fault.within(&format!("runs[{place}]"))))
        .collect()
}

fn named(worker: &str) -> Result<(), Fault> {
    match worker.is_empty() {
        true => Err(Fault::field("worker_id", "is empty, expected the worker's own name")),
        false => Ok(()),
    }
}

fn few(runs: usize) -> Result<(), Fault> {
    match runs <= REPORTS_MAX {
        true => Ok(()),
        false => Err(Fault::field("runs", format!("has {runs} runs, at most {REPORTS_MAX} are allowed"))),
    }
}

fn within(field: &str, length: SignedDuration, least: Duration, most: Duration) -> Result<(), Fault> {
    let found = length.unsigned_abs();
    match (least..=most).contains(&found) {
        true => Ok(()),
        false => Err(Fault::field(field, format!("is {found:?}, expected {least:?} to {most:?}"))),
    }
}
