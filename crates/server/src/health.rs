//! Whether the node lives, and whether it can do its work.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::json;
use tonic::{Request, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::app::App;
use crate::grpc::Services;
use crate::http::json_response;

/// Why the node cannot do its work, if so; without what the database said.
pub(crate) fn trouble(app: &App) -> Option<String> {
    if app.is_stopping() {
        return Some("stopping".into());
    }
    let reason = app.engine.health().reason?;
    // What follows may name files and statements.
    Some(reason.split(':').next().unwrap_or_default().to_owned())
}

/// `/healthz`: it answers, so it lives.
pub(crate) fn alive() -> Response {
    json_response(200, json!({ "alive": true }).to_string()).into_response()
}

/// `/readyz`: whether requests should come here.
pub(crate) fn ready(app: &App) -> Response {
    let trouble = trouble(app);
    let status = if trouble.is_none() { 200 } else { 503 };
    let body = match trouble {
        None => json!({ "ready": true }),
        Some(reason) => json!({ "ready": false, "reason": reason }),
    };
    json_response(status, body.to_string()).into_response()
}

/// How often a watcher of health looks.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

fn serving(app: &App) -> HealthCheckResponse {
    let status = if trouble(app).is_none() { ServingStatus::Serving } else { ServingStatus::NotServing };
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for Services {
    async fn check(
        &self,
        _request: Request<HealthCheckRequest>,
    ) -> Result<tonic::Response<HealthCheckResponse>, Status> {
        Ok(tonic::Response::new(serving(&self.0)))
    }

    type WatchStream = BoxStream<'static, Result<HealthCheckResponse, Status>>;

    async fn watch(
        &self,
        _request: Request<HealthCheckRequest>,
    ) -> Result<tonic::Response<Self::WatchStream>, Status> {
        let seat = self.0.seat()?;
        let changes = stream::unfold((self.0.clone(), seat, None), |(app, seat, told)| async move {
            loop {
                let now = serving(&app);
                if Some(&now) != told.as_ref() {
                    return Some((Ok(now), (app, seat, Some(now))));
                }
                tokio::select! {
                    () = tokio::time::sleep(LOOK_PAUSE) => {}
                    () = app.stop() => return None,
                }
            }
        });
        Ok(tonic::Response::new(changes.boxed()))
    }
}
