//! Which attempt a worker speaks of: by the token of its task, or by the names of the run.

use std::sync::Arc;

use prost::Message;
use punctual_engine::EngineError;
use punctual_store::{LiveState, RunKey};

use super::super::refusal::Refusal;
use crate::app::{App, namespace};
use crate::convert::run::run_key;
use crate::status::found;

/// One attempt of a run in the hands of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) namespace: Arc<str>,
    pub(super) worker: Arc<str>,
    pub(super) run: RunKey,
    pub(super) attempt: u32,
}

/// What the token of a task says. It is no secret: the engine lets a report count only if the run, in the namespace of the
/// request, is in this attempt and in the hands of this worker. A forged one can do what its request may do anyway.
#[derive(Clone, PartialEq, Message)]
struct Token {
    #[prost(int64, tag = "1")]
    run: i64,
    #[prost(uint32, tag = "2")]
    attempt: u32,
    #[prost(string, tag = "3")]
    worker: String,
}

impl Attempt {
    pub(super) fn token(&self) -> Vec<u8> {
        Token { run: self.run.0, attempt: self.attempt, worker: self.worker.to_string() }.encode_to_vec()
    }

    /// The attempt that a token names.
    pub(super) fn of_token(place: &str, token: &[u8]) -> Result<Attempt, Refusal> {
        let Token { run, attempt, worker } = Token::decode(token)
            .ok()
            .filter(|token| token.attempt > 0 && !token.worker.is_empty())
            .ok_or_else(|| Refusal::invalid("the task token is none that this server gave"))?;
        Ok(Attempt { namespace: namespace(place).into(), worker: worker.into(), run: RunKey(run), attempt })
    }

    /// The attempt that is under way of the run with these names; whoever has it.
    pub(super) async fn of_names(app: &App, names: Names<'_>) -> Result<Attempt, Refusal> {
        let place = namespace(names.namespace);
        let unknown = || Refusal::not_found(format!("no activity {} is under way", found(names.activity_id)));
        let run = run_key("activity_id", names.activity_id).map_err(|_| unknown())?;
        let view = app.engine.run(place, run).await.map_err(of_run)?;
        let is_named = |given: &str, found: &str| given.is_empty() || given == found;
        let LiveState::Running { worker, .. } = &view.stored.run.state else { return Err(unknown()) };
        if view.stored.closing.is_some()
            || !is_named(names.workflow_id, &view.body.name)
            || !is_named(names.run_id, &run.to_string())
        {
            return Err(unknown());
        }
        let (worker, attempt) = (worker.clone(), view.stored.run.attempt);
        Ok(Attempt { namespace: place.into(), worker, run, attempt })
    }
}

/// What the engine says of a run.
pub(super) fn of_run(error: EngineError) -> Refusal {
    match error {
        EngineError::NotFound(what) => Refusal::not_found(format!("{what} is not found")),
        error => error.into(),
    }
}

/// The names by which a request without a token means an attempt.
pub(super) struct Names<'a> {
    pub(super) namespace: &'a str,
    pub(super) workflow_id: &'a str,
    pub(super) run_id: &'a str,
    pub(super) activity_id: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_attempt_again_and_nonsense_names_none() {
        let attempt =
            Attempt { namespace: "mail".into(), worker: "quiet:1@host".into(), run: RunKey(7), attempt: 2 };
        assert_eq!(Attempt::of_token("mail", &attempt.token()).unwrap(), attempt);
        for nonsense in [&b""[..], b"\xff\xff", b"\x08\x07"] {
            let refused = Attempt::of_token("mail", nonsense).unwrap_err();
            assert_eq!(tonic::Status::from(refused).code(), tonic::Code::InvalidArgument);
        }
    }
}
