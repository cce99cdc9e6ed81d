//! Reports how a run ended, again and again until it is recorded or does not count any more.

use punctual_api::v1;
use tonic::Status;

use super::Worker;
use super::claim::{PAUSE_MAX, PAUSE_MIN, is_final};
use super::ending::{self, End};

/// Reports an end. The token says which attempt is meant, so repeating it is harmless.
pub async fn report(worker: &Worker, run: &v1::ClaimedRun, end: End) {
    let mut end = end;
    let mut lines = worker.held.take_lines(&run.run_id);
    let mut pause = PAUSE_MIN;
    loop {
        let status = match send(worker, run, &end, &lines).await {
            Ok(report) => return worker.teller.ended(run, &end, &report),
            Err(status) => status,
        };
        if is_final(&status) {
            // The server does not want this result or these lines; that it ended must be told all the same.
            let refused =
                ending::result_too_large(&format!("the server refused the result: {}", status.message()));
            if lines.is_empty() && !matches!(end, End::Result(_)) {
                return worker.teller.not_recorded(run, &status);
            }
            lines = Vec::new();
            if let End::Result(_) = end {
                end = refused;
            }
            continue;
        }
        worker.teller.server_is_away(&status);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

async fn send(
    worker: &Worker,
    run: &v1::ClaimedRun,
    end: &End,
    lines: &[v1::LogLine],
) -> Result<v1::RunReport, Status> {
    let completion = v1::RunCompletion {
        run_id: run.run_id.clone(),
        token: run.token,
        log_lines: lines.to_vec(),
        end: Some(end.clone()),
    };
    let request = v1::CompleteRequest {
        namespace: worker.session.namespace.clone(),
        worker_id: worker.settings.worker_id.clone(),
        runs: vec![completion],
    };
    let mut workers = worker.session.client.workers.clone();
    let answer = tokio::time::timeout(worker.session.timeout, workers.complete(request)).await;
    let response = answer.map_err(|_| Status::deadline_exceeded("no answer in time"))??;
    worker.teller.server_is_back();
    Ok(response.into_inner().runs.into_iter().next().unwrap_or_default())
}
