//! Takes runs from the queue; waits for them, and for a server that is away.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use punctual_api::v1;
use tonic::{Code, Status};

use super::Worker;

/// How long one request waits for a run. It is never given up while it waits, since it may be answered at that very moment
/// with runs that nobody would do; so this is also how long an idle worker takes to stop.
const CLAIM_WAIT: Duration = Duration::from_secs(2);

/// The first pause after a request that failed.
pub const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause.
pub const PAUSE_MAX: Duration = Duration::from_secs(3);

type Claim = Pin<Box<dyn Future<Output = Result<Vec<v1::ClaimedRun>>>>>;

/// The request for runs that is on its way, if there is one. It stays while other things happen.
#[derive(Default)]
pub struct Claims {
    current: Option<Claim>,
}

impl Claims {
    /// The next runs. Dropping the answer's future keeps the request.
    pub async fn next(&mut self, worker: &Arc<Worker>, runs_max: u32) -> Result<Vec<v1::ClaimedRun>> {
        let current = self.current.get_or_insert_with(|| Box::pin(claim(worker.clone(), runs_max)));
        let claimed = current.await;
        self.current = None;
        claimed
    }

    /// Whether a request is on its way.
    pub fn is_pending(&self) -> bool {
        self.current.is_some()
    }

    /// Gives the request up. A run that is handed out at this very moment is tried again when its lease is over.
    pub fn forget(&mut self) {
        self.current = None;
    }
}

async fn claim(worker: Arc<Worker>, runs_max: u32) -> Result<Vec<v1::ClaimedRun>> {
    let lease = worker.settings.lease;
    let request = v1::ClaimRequest {
        namespace: worker.session.namespace.clone(),
        queue: worker.settings.queue.clone(),
        worker_id: worker.settings.worker_id.clone(),
        runs_max,
        wait: Some(prost_types::Duration { seconds: CLAIM_WAIT.as_secs() as i64, nanos: 0 }),
        lease: Some(prost_types::Duration {
            seconds: lease.as_secs() as i64,
            nanos: lease.subsec_nanos() as i32,
        }),
    };
    let mut pause = PAUSE_MIN;
    loop {
        let mut workers = worker.session.client.workers.clone();
        let limit = CLAIM_WAIT + worker.session.timeout;
        let answer = tokio::time::timeout(limit, workers.claim(request.clone())).await;
        let status = match answer {
            Ok(Ok(response)) => {
                worker.teller.server_is_back();
                return Ok(response.into_inner().runs);
            }
            Ok(Err(status)) => status,
            Err(_) => Status::deadline_exceeded("no answer in time"),
        };
        if is_final(&status) {
            return Err(worker.session.refusal(&status));
        }
        if worker.stopping.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        worker.teller.server_is_away(&status);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Whether asking again can never help.
pub fn is_final(status: &Status) -> bool {
    match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented => true,
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => false,
    }
}
