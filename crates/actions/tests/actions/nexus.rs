//! Nexus operations: started, answered at once, accepted, failed, cancelled.

use std::time::Duration;

use punctual_actions::{Call, Context, End, Form, NexusCall, StopSignal, Stopper};

use super::support::{Reply, Server, answer, caller, context, done, fault, json};

fn operation(server: &Server) -> NexusCall {
    NexusCall::new(server.url("/nexus/"), "mail service", "send/all")
}

async fn start(call: NexusCall, context: &Context) -> End {
    caller().call(&Call::Nexus(call), context, StopSignal::never()).await
}

#[tokio::test]
async fn a_start_says_everything_that_the_protocol_asks_for() {
    let server = Server::saying(json(200, r#"{"sent": 3}"#)).await;
    let mut call = operation(&server);
    call.operation_timeout_ms = Some(90_000);
    call.timeout_ms = Some(5_000);
    call.headers.insert("Authorization".to_owned(), "Bearer x".to_owned());
    let mut context = context();
    context.callback_url = Some("https://us.example/v1/callback?a=b&c".to_owned());
    context.callback_token = Some("p1_secret".to_owned());

    assert_eq!(done(start(call, &context).await), (r#"{"sent": 3}"#.to_owned(), Form::Json));

    let seen = &server.seen()[0];
    let path =
        "/nexus/mail%20service/send%2Fall?callback=https%3A%2F%2Fus.example%2Fv1%2Fcallback%3Fa%3Db%26c";
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", path));
    let expected = [
        ("nexus-request-id", "start-abc"),
        ("operation-timeout", "90000ms"),
        ("request-timeout", "5000ms"),
        ("nexus-callback-punctual-callback-token", "p1_secret"),
        ("authorization", "Bearer x"),
        ("content-type", "application/json"),
        ("punctual-run-id", "run-7"),
    ];
    for (name, value) in expected {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert_eq!(seen.body, r#"{"customer": 5}"#);
}

#[tokio::test]
async fn input_can_be_a_template_or_nothing() {
    let server = Server::saying(answer(200, &[], "")).await;
    let mut call = operation(&server);
    call.input = Some(r#"{"id":"{{schedule_id}}","in":{{input}}}"#.to_owned());
    assert_eq!(done(start(call, &context()).await), ("null".to_owned(), Form::Json));
    start(operation(&server), &Context { input: None, ..context() }).await;

    let seen = server.seen();
    assert_eq!(seen[0].body, r#"{"id":"nightly","in":{"customer": 5}}"#);
    assert_eq!((seen[1].body.as_str(), seen[1].header("content-type")), ("", None));
    assert_eq!(seen[1].path, "/nexus/mail%20service/send%2Fall");
}

#[tokio::test]
async fn accepted_operations_have_a_token() {
    let cases = [
        (r#"{"token":"t-1","state":"running"}"#, Some("t-1")),
        (r#"{"id":"t-2","state":"running"}"#, Some("t-2")),
        (r#"{"state":"running"}"#, None),
        ("oops", None),
    ];
    for (body, expected) in cases {
        let server = Server::saying(json(201, body)).await;
        let end = start(operation(&server), &context()).await;
        assert!(
            matches!(&end, End::Accepted { token, .. } if token.as_deref() == expected),
            "{body}: {end:?}"
        );
    }
}

#[tokio::test]
async fn operations_that_failed_are_not_tried_again() {
    let body =
        r#"{"message":"no paper","metadata":{"type":"nexus.OperationError"},"details":{"state":"failed"}}"#;
    let server = Server::saying(json(424, body)).await;
    let failed = fault(start(operation(&server), &context()).await);
    assert_eq!((failed.kind.as_str(), failed.retryable), ("nexus_failed", false));
    assert_eq!((failed.message.as_str(), failed.details.as_deref()), ("no paper", Some(body.as_bytes())));

    let older = Server::saying(answer(424, &[("Nexus-Operation-State", "failed")], "")).await;
    assert_eq!(fault(start(operation(&older), &context()).await).kind, "nexus_failed");
}

#[tokio::test]
async fn cancelled_operations_are_cancelled_runs() {
    let newer =
        r#"{"message":"stopped","metadata":{"type":"nexus.OperationError"},"details":{"state":"canceled"}}"#;
    let replies = [
        json(424, newer),
        answer(
            424,
            &[("Nexus-Operation-State", "canceled"), ("Content-Type", "application/json")],
            "{\"message\":\"\"}",
        ),
    ];
    for reply in replies {
        let server = Server::saying(reply).await;
        assert_eq!(start(operation(&server), &context()).await, End::Cancelled);
    }
}

#[tokio::test]
async fn errors_of_the_handler_say_whether_another_attempt_may_help() {
    let by_status = [
        (400, "nexus_bad_request", false),
        (401, "nexus_unauthenticated", false),
        (403, "nexus_unauthorized", false),
        (404, "nexus_not_found", false),
        (409, "nexus_conflict", false),
        (501, "nexus_not_implemented", false),
        (408, "nexus_request_timeout", true),
        (429, "nexus_resource_exhausted", true),
        (500, "nexus_internal", true),
        (503, "nexus_unavailable", true),
        (520, "nexus_upstream_timeout", true),
        (418, "nexus_http_418", true),
        (302, "nexus_http_302", false),
        (204, "nexus_http_204", false),
    ];
    for (status, kind, retryable) in by_status {
        let server = Server::saying(answer(status, &[("Location", "/elsewhere")], "")).await;
        let fault = fault(start(operation(&server), &context()).await);
        assert_eq!((fault.kind.as_str(), fault.retryable), (kind, retryable));
        assert_eq!(server.seen().len(), 1, "redirects are not followed");
    }

    let named = |details: &str| {
        json(
            400,
            &format!(r#"{{"message":"m","metadata":{{"type":"nexus.HandlerError"}},"details":{details}}}"#),
        )
    };
    let by_body = [
        (named(r#"{"type":"UNAVAILABLE"}"#), "nexus_unavailable", true),
        (named(r#"{"type":"BAD_REQUEST","retryableOverride":true}"#), "nexus_bad_request", true),
        (named(r#"{"type":"INTERNAL","retryableOverride":false}"#), "nexus_internal", false),
        (named(r#"{"type":"SOMETHING_NEW"}"#), "nexus_http_400", true),
        (answer(503, &[("Nexus-Request-Retryable", "false")], ""), "nexus_unavailable", false),
    ];
    for (reply, kind, retryable) in by_body {
        let server = Server::saying(reply).await;
        let fault = fault(start(operation(&server), &context()).await);
        assert_eq!((fault.kind.as_str(), fault.retryable), (kind, retryable));
    }

    let busy = Server::saying(answer(429, &[("Retry-After", "3")], "")).await;
    let busy = fault(start(operation(&busy), &context()).await);
    assert_eq!(busy.retry_after, Some(Duration::from_secs(3)));
}

#[tokio::test]
async fn cancel_names_the_operation_by_its_token() {
    let server = Server::saying(answer(202, &[], "")).await;
    let mut call = operation(&server);
    call.headers.insert("Authorization".to_owned(), "Bearer {{run_id}}".to_owned());

    caller().cancel_nexus(&call, &context(), "t-1").await.unwrap();

    let seen = &server.seen()[0];
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("POST", "/nexus/mail%20service/send%2Fall/cancel")
    );
    assert_eq!(seen.header("nexus-operation-token"), Some("t-1"));
    assert_eq!(seen.header("authorization"), Some("Bearer run-7"));

    let gone = Server::saying(answer(404, &[], "")).await;
    let fault = caller().cancel_nexus(&operation(&gone), &context(), "t-1").await.unwrap_err();
    assert_eq!((fault.kind.as_str(), fault.retryable), ("nexus_not_found", false));
}

#[tokio::test]
async fn an_operation_accepted_after_the_stop_is_cancelled() {
    // The server says stop itself, before it answers: so the stop comes while the request is in flight.
    let stopper = Stopper::new();
    let signal = stopper.signal();
    let server = Server::start(move |seen| {
        if seen.path.ends_with("/cancel") {
            return answer(202, &[], "");
        }
        stopper.stop();
        json(201, r#"{"token":"t-9","state":"running"}"#)
    })
    .await;

    let end = caller().call(&Call::Nexus(operation(&server)), &context(), signal).await;

    assert_eq!(end, End::Cancelled);
    assert_eq!(server.seen()[1].header("nexus-operation-token"), Some("t-9"));
}

#[tokio::test]
async fn services_that_do_not_answer_are_given_up() {
    let server = Server::saying(Reply::Hang(Vec::new())).await;
    let mut call = operation(&server);
    call.timeout_ms = Some(100);
    assert_eq!(fault(start(call, &context()).await).kind, "timed_out");
}
