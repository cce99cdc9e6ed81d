//! A worker asks for a task and is held until there is one.

use std::time::Duration;

use punctual_engine::{Claimed, Engine, EngineError, QUIET_WORKER};
use tonic::Request;

use super::super::refusal::Refusal;
use super::super::wire::service::{
    PollActivityTaskQueueRequest, PollActivityTaskQueueResponse, ShutdownWorkerRequest,
    ShutdownWorkerResponse,
};
use super::super::{namespaces, payloads};
use super::task::task;
use super::token::{Attempt, of_run};
use crate::app::App;
use crate::convert::action::CALLS_QUEUE;
use crate::status::{Fault, STOPPING};
use crate::traces::PlainNews;

/// How long a poll is held at most: SDKs give up after 70 s.
const HOLD_MAX: Duration = Duration::from_secs(60);

/// What is left of the client's patience for the way back, at most.
const MARGIN_MAX: Duration = Duration::from_secs(10);

/// Bytes of what a worker calls itself that go into its name here.
const IDENTITY_BYTES_MAX: usize = 120;

/// Bytes of the key of a worker that go into its name here: a UUID.
const KEY_BYTES_MAX: usize = 36;

/// The next task of a queue, or, after a while, an empty answer.
pub(in crate::temporal) async fn poll(
    app: &App,
    request: Request<PollActivityTaskQueueRequest>,
) -> Result<PollActivityTaskQueueResponse, Refusal> {
    let hold = hold(request.metadata().get("grpc-timeout").and_then(|given| given.to_str().ok()));
    let asked = request.into_inner();
    let queue = asked.task_queue.map(|queue| queue.name).unwrap_or_default();
    if queue.is_empty() {
        return Err(Refusal::invalid("TaskQueue is not set on request."));
    }
    if queue == CALLS_QUEUE {
        return Err(Refusal::invalid(format!("{CALLS_QUEUE} is worked by the server itself")));
    }
    if app.is_stopping() {
        return Err(Fault::new(&STOPPING, "the server is stopping and hands out no more tasks").into());
    }
    namespaces::check(app, &asked.namespace).await?;
    let worker = worker_name(&asked.identity, &asked.worker_instance_key);
    let (_place, ended) = app.polls.enter(&asked.worker_instance_key);
    // Whatever ends the wait, a run that was taken for it meanwhile goes back.
    let taken = tokio::select! {
        biased;
        () = ended => None,
        () = app.stop() => None,
        taken = take(&app.engine, &asked.namespace, &queue, &worker, hold) => taken?,
    };
    match taken {
        None => Ok(PollActivityTaskQueueResponse::default()),
        Some(taken) => hand_over(app, taken, &worker).await,
    }
}

/// A worker shuts down: what it waits for is answered. What it still has, it finishes or leaves to its timeouts.
pub(in crate::temporal) async fn shutdown(
    app: &App,
    asked: ShutdownWorkerRequest,
) -> Result<ShutdownWorkerResponse, Refusal> {
    app.polls.end(&asked.worker_instance_key);
    Ok(ShutdownWorkerResponse {})
}

async fn take(
    engine: &Engine,
    place: &str,
    queue: &str,
    worker: &str,
    hold: Duration,
) -> Result<Option<Taken>, EngineError> {
    let give_up = tokio::time::Instant::now() + hold;
    loop {
        let left = give_up.saturating_duration_since(tokio::time::Instant::now());
        match engine.claim(place, queue, worker, 1, left, None).await {
            Ok(runs) if runs.is_empty() => return Ok(None),
            Ok(runs) => return Ok(Some(Taken { engine: engine.clone(), runs })),
            // Workers may be there before the first schedule is: to them the queue is empty.
            Err(EngineError::UnknownQueue(_)) => {
                match tokio::time::timeout_at(give_up, engine.queue_declared(place, queue)).await {
                    Ok(declared) => declared?,
                    Err(_) => return Ok(None),
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// A run on its way to its worker. If the worker goes away before its task is made, the run goes back.
struct Taken {
    engine: Engine,
    runs: Vec<Claimed>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !self.runs.is_empty() {
            self.engine.give_back(std::mem::take(&mut self.runs));
        }
    }
}

async fn hand_over(
    app: &App,
    mut taken: Taken,
    worker: &str,
) -> Result<PollActivityTaskQueueResponse, Refusal> {
    let Some(claimed) = taken.runs.first() else { return Ok(PollActivityTaskQueueResponse::default()) };
    let (live, body) = (&claimed.live, &claimed.body);
    let details = if live.attempt > 1 {
        let details = app.engine.run_details(&body.namespace, live.made.run).await.map_err(of_run)?;
        details.progress.as_deref().map(payloads::read)
    } else {
        None
    };
    let attempt = Attempt {
        namespace: body.namespace.clone(),
        worker: worker.into(),
        run: live.made.run,
        attempt: live.attempt,
    };
    let task = task(claimed, &attempt, details);
    let plain = live.made.origin.is_none().then_some(PlainNews::Open(live.made.run));
    app.tell_traces(plain);
    taken.runs.clear();
    Ok(task)
}

/// What a worker is called here: its own name for people, and its key, which no other worker has.
fn worker_name(identity: &str, key: &str) -> String {
    let clean = |text: &str, bytes_max: usize| -> String {
        let end = (0..=text.len().min(bytes_max)).rev().find(|end| text.is_char_boundary(*end));
        let fine = |letter: char| if letter.is_control() || letter == '/' { '_' } else { letter };
        text[..end.unwrap_or(0)].trim().chars().map(fine).collect()
    };
    let (identity, key) = (clean(identity, IDENTITY_BYTES_MAX), clean(key, KEY_BYTES_MAX));
    let identity = if identity.is_empty() { "unnamed".to_owned() } else { identity };
    let between = if key.is_empty() { "" } else { "#" };
    format!("{QUIET_WORKER}{identity}{between}{key}")
}

/// How long a poll with this `grpc-timeout` is held: the answer must be there before the client gives up.
fn hold(given: Option<&str>) -> Duration {
    let Some(patience) = given.and_then(patience) else { return HOLD_MAX };
    let margin = (patience / 5).min(MARGIN_MAX);
    (patience - margin).min(HOLD_MAX)
}

/// The length of a `grpc-timeout`: up to eight digits and a unit.
fn patience(given: &str) -> Option<Duration> {
    let (number, unit) = given.split_at_checked(given.len().checked_sub(1)?)?;
    let digits = (1..=8).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| digits)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_is_answered_before_its_client_gives_up() {
        let seconds = |given| hold(given).as_secs_f64();
        assert_eq!(seconds(None), 60.0);
        assert_eq!(seconds(Some("70S")), 60.0);
        assert_eq!(seconds(Some("70000000u")), 60.0);
        assert_eq!(seconds(Some("60000m")), 50.0);
        assert_eq!(seconds(Some("10S")), 8.0);
        assert_eq!(seconds(Some("99999999H")), 60.0);
        for nonsense in ["", "S", "-1S", "1", "123456789S", "1x", "ä"] {
            assert_eq!(seconds(Some(nonsense)), 60.0, "{nonsense}");
        }
    }

    #[test]
    fn workers_have_names_that_can_be_kept() {
        assert_eq!(worker_name("7@host", "key"), "quiet:7@host#key");
        assert_eq!(worker_name("7@host", ""), "quiet:7@host");
        assert_eq!(worker_name(" a/b\n", ""), "quiet:a_b");
        assert_eq!(worker_name("", ""), "quiet:unnamed");
        assert!(worker_name(&"ä".repeat(500), &"x".repeat(500)).len() < 200);
    }
}
