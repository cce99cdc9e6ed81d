//! Paths: those of the table of routes, and the few pages for people and machines around them.

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request};
use axum::http::{Method, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodFilter, get, on, post};
use punctual_api::openapi;
use punctual_api::routes::{Method as Verb, ROUTES, Route};

use super::{Asked, Shared, answered, callbacks, guard, sse};
use crate::status::{Fault, MALFORMED, METHOD_NOT_ALLOWED, UNKNOWN_PATH, found};
use crate::temporal::upstream;
use crate::{grpc, health, metrics};

/// Everything on the one port.
pub(crate) fn router(app: &Shared) -> Router {
    let mut router = grpc::router(app);
    for route in ROUTES {
        let app = app.clone();
        let handler = move |path: Result<RawPathParams, RawPathParamsRejection>, uri: Uri, body: Body| {
            let app = app.clone();
            async move { handle(&app, route, path, &uri, body).await }
        };
        router = router.route(route.path, on(filter(route.method), handler));
    }
    let fallback = app.clone();
    pages(router, app)
        .method_not_allowed_fallback(not_allowed)
        .fallback(move |request: Request| async move { unknown(&fallback, request).await })
        .layer(axum::middleware::from_fn(guard::check))
}

async fn handle(
    app: &Shared,
    route: &'static Route,
    path: Result<RawPathParams, RawPathParamsRejection>,
    uri: &Uri,
    body: Body,
) -> Response {
    let asked = async {
        let path =
            path.map_err(|error| Fault::new(&MALFORMED, format!("the path makes no sense: {error}")))?;
        Asked::take(&path, uri, body).await
    };
    match asked.await {
        Err(fault) => fault.into_response(),
        Ok(asked) if route.stream => sse::watch(app, &asked).await,
        Ok(asked) => answered(grpc::call(app, route.rpc, &asked).await),
    }
}

fn filter(method: Verb) -> MethodFilter {
    match method {
        Verb::Get => MethodFilter::GET,
        Verb::Post => MethodFilter::POST,
        Verb::Patch => MethodFilter::PATCH,
        Verb::Delete => MethodFilter::DELETE,
    }
}

fn pages(router: Router, app: &Shared) -> Router {
    let (counted, asked, called, ended) = (app.clone(), app.clone(), app.clone(), app.clone());
    let document = axum::body::Bytes::from(openapi::document().to_string());
    let metrics = move || {
        let app = counted.clone();
        async move {
            let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
            (kind, metrics::render(&app).await)
        }
    };
    router
        .route("/", get(async || Html(PAGE)))
        .route("/healthz", get(async || health::alive()))
        .route("/readyz", get(move || std::future::ready(health::ready(&asked))))
        .route("/metrics", get(metrics))
        .route(
            "/v1/callbacks/{token}",
            post(move |token, headers, body| callbacks::take(called.clone(), token, headers, body)),
        )
        .route(
            upstream::ENDED_PATH,
            post(move |headers, body| upstream::take_ended(ended.clone(), headers, body)),
        )
        .route(
            "/openapi.json",
            get(async move || ([(header::CONTENT_TYPE, "application/json")], document.clone())),
        )
}

async fn not_allowed(method: Method, uri: Uri) -> Response {
    let allowed: Vec<&str> = ROUTES
        .iter()
        .filter(|route| fits(route.path, uri.path()))
        .map(|route| route.method.as_str())
        .collect();
    let allowed = if allowed.is_empty() { "GET".to_owned() } else { allowed.join(", ") };
    let message = format!("{} has {allowed}, found {method}", found(uri.path()));
    Fault::new(&METHOD_NOT_ALLOWED, message).into_response()
}

fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    pattern.len() == path.len()
        && pattern.iter().zip(&path).all(|(part, found)| part.starts_with('{') || part == found)
}

async fn unknown(app: &Shared, request: Request) -> Response {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let message =
        format!("there is nothing at {}; /openapi.json lists all paths", found(request.uri().path()));
    if kind.is_some_and(|kind| kind.starts_with("application/grpc")) {
        if app.upstream.is_some() {
            return upstream::forward(app, request).await;
        }
        return tonic::Status::unimplemented(message).into_http::<Body>();
    }
    Fault::new(&UNKNOWN_PATH, message).into_response()
}

/// Whoever opens the port in a browser sees where things are.
const PAGE: &str = include_str!("page.html");
