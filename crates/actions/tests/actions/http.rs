//! One request: what is sent, and what its answer means.

use std::time::Duration;

use punctual_actions::{Call, Caller, Context, End, Form, HttpCall, Rules, StopSignal, Stopper};

use super::support::{Reply, Server, answer, caller, context, done, fault, json, post, request, rules};

#[tokio::test]
async fn results_are_json_text_or_bytes() {
    let server = Server::start(|seen| match seen.path.as_str() {
        "/json" => json(200, r#"{"n": 1.10}"#),
        "/text" => answer(201, &[("Content-Type", "text/plain")], "say \"hi\""),
        "/empty" => answer(204, &[], ""),
        _ => answer(200, &[("Content-Type", "image/png")], [0xff, 0x00, 0x80]),
    })
    .await;

    assert_eq!(done(post(server.url("/json")).await), (r#"{"n": 1.10}"#.to_owned(), Form::Json));
    assert_eq!(done(post(server.url("/text")).await), (r#""say \"hi\"""#.to_owned(), Form::Text));
    assert_eq!(done(post(server.url("/empty")).await), ("null".to_owned(), Form::Json));
    let binary = post(server.url("/binary")).await;
    assert!(
        matches!(&binary, End::Done { result, form: Form::Bytes, .. } if result == &[0xff, 0x00, 0x80]),
        "{binary:?}"
    );
}

#[tokio::test]
async fn a_call_says_which_run_it_is_for() {
    let server = Server::saying(answer(200, &[], "")).await;
    let mut context = context();
    context.callback_url = Some("https://us.example/callback".to_owned());
    context.callback_token = Some("p1_secret".to_owned());

    let call = Call::Http(HttpCall::new(server.url("/hook")));
    done(caller().call(&call, &context, StopSignal::never()).await);

    let seen = &server.seen()[0];
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/hook"));
    let expected = [
        ("idempotency-key", "start-abc"),
        ("punctual-run-id", "run-7"),
        ("punctual-attempt", "1"),
        ("punctual-schedule-id", "nightly"),
        ("punctual-nominal-time", "2026-11-15T12:00:00Z"),
        ("punctual-callback-url", "https://us.example/callback"),
        ("punctual-callback-token", "p1_secret"),
        ("content-type", "application/json"),
        ("user-agent", concat!("punctual/", env!("CARGO_PKG_VERSION"))),
    ];
    for (name, value) in expected {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    let body = seen.json();
    assert_eq!(body["schedule_id"], "nightly");
    assert_eq!(body["idempotency_key"], "start-abc");
    assert_eq!(body["input"]["customer"], 5);
    assert_eq!(body["callback_url"], "https://us.example/callback");
    assert!(!seen.body.contains("p1_secret"), "the token stands in a header only");
}

#[tokio::test]
async fn templates_are_filled_in_where_they_stand() {
    let server = Server::saying(answer(200, &[], "")).await;
    let mut call = HttpCall::new(server.url("/{{schedule_id}}?at={{nominal_time}}"));
    call.method = "PUT".to_owned();
    call.headers.insert("X-Run".to_owned(), "{{run_id}}/{{attempt}}".to_owned());
    call.headers.insert("Content-Type".to_owned(), "application/cloudevents+json".to_owned());
    call.body = Some(r#"{"id":"{{schedule_id}}","data":{{input}},"before":{{last_result}}}"#.to_owned());
    let context = Context { schedule_id: "a \"b\"/ü".to_owned(), ..context() };

    done(caller().call(&Call::Http(call), &context, StopSignal::never()).await);

    let seen = &server.seen()[0];
    assert_eq!(seen.path, "/a%20%22b%22%2F%C3%BC?at=2026-11-15T12%3A00%3A00Z");
    assert_eq!(seen.header("x-run"), Some("run-7/1"));
    assert_eq!(seen.header("content-type"), Some("application/cloudevents+json"));
    assert_eq!(seen.header("punctual-schedule-id"), Some("a \"b\"/%C3%BC"));
    assert_eq!(seen.json()["id"], "a \"b\"/ü");
    assert_eq!(seen.json()["before"], serde_json::Value::Null);
}

#[tokio::test]
async fn no_header_can_be_smuggled_in() {
    let server = Server::saying(answer(200, &[], "")).await;
    let mut call = HttpCall::new(server.url("/"));
    call.headers.insert("X-Schedule".to_owned(), "{{schedule_id}}".to_owned());
    let context = Context { schedule_id: "a\r\nX-Evil: 1".to_owned(), ..context() };

    let fault = fault(caller().call(&Call::Http(call), &context, StopSignal::never()).await);

    assert_eq!((fault.kind.as_str(), fault.retryable), ("call_invalid", false));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn methods_without_body_send_none() {
    let server = Server::saying(answer(200, &[], "")).await;
    let mut call = HttpCall::new(server.url("/"));
    call.method = "GET".to_owned();
    done(request(&caller(), call).await);
    let seen = &server.seen()[0];
    assert_eq!((seen.method.as_str(), seen.body.as_str(), seen.header("content-type")), ("GET", "", None));
}

#[tokio::test]
async fn attempts_share_their_key_and_connection() {
    let server = Server::saying(answer(503, &[], "")).await;
    let caller = caller();
    for attempt in 1..=3 {
        let context = Context { attempt, ..context() };
        let call = Call::Http(HttpCall::new(server.url("/")));
        fault(caller.call(&call, &context, StopSignal::never()).await);
    }
    let seen = server.seen();
    let keys: Vec<_> = seen.iter().map(|seen| seen.header("idempotency-key").unwrap()).collect();
    let attempts: Vec<_> = seen.iter().map(|seen| seen.header("punctual-attempt").unwrap()).collect();
    assert_eq!((keys, attempts), (vec!["start-abc"; 3], vec!["1", "2", "3"]));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn accepted_calls_end_by_their_callback() {
    let server = Server::saying(answer(202, &[], "later")).await;
    let caller = caller();
    for _ in 0..3 {
        let end = request(&caller, HttpCall::new(server.url("/"))).await;
        assert!(matches!(end, End::Accepted { token: None, .. }), "{end:?}");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn statuses_say_whether_another_attempt_may_help() {
    let server = Server::start(|seen| answer(seen.path[1..].parse().unwrap(), &[], "because")).await;
    for status in [408, 425, 429, 500, 502, 503, 504, 599] {
        let fault = fault(post(server.url(&format!("/{status}"))).await);
        assert_eq!((fault.kind, fault.retryable), (format!("http_{status}"), true));
        assert_eq!(fault.details.as_deref(), Some(&b"\"because\""[..]));
    }
    for status in [300, 304, 400, 401, 403, 404, 409, 410, 422] {
        let fault = fault(post(server.url(&format!("/{status}"))).await);
        assert_eq!((fault.kind, fault.retryable), (format!("http_{status}"), false));
    }
    for (status, retryable) in [(404, true), (500, false)] {
        let mut call = HttpCall::new(server.url(&format!("/{status}")));
        call.retry_statuses = vec![404];
        assert_eq!(fault(request(&caller(), call).await).retryable, retryable);
    }
}

#[tokio::test]
async fn servers_say_how_long_to_wait() {
    let server = Server::start(|seen| match seen.path.as_str() {
        "/seconds" => answer(429, &[("Retry-After", "7")], ""),
        "/date" => {
            let headers =
                [("Date", "Sun, 15 Nov 2026 12:00:00 GMT"), ("Retry-After", "Sun, 15 Nov 2026 12:02:00 GMT")];
            answer(503, &headers, "")
        }
        "/long" => answer(503, &[("Retry-After", "86400")], ""),
        "/never" => answer(404, &[("Retry-After", "7")], ""),
        _ => answer(503, &[("Retry-After", "soon")], ""),
    })
    .await;
    let cases = [
        ("/seconds", Some(7)),
        ("/date", Some(120)),
        ("/long", Some(3_600)),
        ("/never", None),
        ("/odd", None),
    ];
    for (path, expected) in cases {
        let fault = fault(post(server.url(path)).await);
        assert_eq!(fault.retry_after, expected.map(Duration::from_secs), "{path}");
    }
}

#[tokio::test]
async fn servers_that_do_not_answer_are_given_up() {
    let replies = [
        Reply::Hang(Vec::new()),
        Reply::Hang(b"HTTP/1.1 200 OK\r\n".to_vec()),
        Reply::Hang(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nslow".to_vec()),
    ];
    for reply in replies {
        let server = Server::saying(reply.clone()).await;
        let mut call = HttpCall::new(server.url("/"));
        call.timeout_ms = Some(100);
        let caller = caller();
        let fault = fault(request(&caller, call).await);
        assert_eq!((fault.kind.as_str(), fault.retryable), ("timed_out", true), "{reply:?}");
        assert_eq!((caller.in_flight(), caller.targets()), (0, 0));
    }
}

#[tokio::test]
async fn connections_that_take_too_long_are_given_up() {
    let pending = super::support::Names::new(&[&["127.0.0.1"]]);
    // A listener whose queue is full neither takes nor refuses a connection.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let _first = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut call = HttpCall::new(format!("http://full.test:{}/", address.port()));
    call.connect_timeout_ms = Some(200);
    let caller = Caller::with_resolver(rules(), pending).unwrap();

    let fault = fault(request(&caller, call).await);

    assert_eq!((fault.kind.as_str(), fault.retryable), ("connect_timed_out", true));
}

#[tokio::test]
async fn nobody_there_is_worth_another_attempt() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let fault = fault(post(format!("http://{address}/")).await);
    assert_eq!((fault.kind.as_str(), fault.retryable), ("connect_failed", true));
}

#[tokio::test]
async fn connections_that_break_are_worth_another_attempt() {
    let replies = [
        Reply::Reset(Vec::new()),
        Reply::Reset(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec()),
        Reply::Reset(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n".to_vec()),
        Reply::Reset(b"nonsense\r\n\r\n".to_vec()),
    ];
    for reply in replies {
        let server = Server::saying(reply.clone()).await;
        let fault = fault(post(server.url("/")).await);
        assert_eq!((fault.kind.as_str(), fault.retryable), ("connection_lost", true), "{reply:?}");
    }
}

#[tokio::test]
async fn answers_without_end_are_cut_off() {
    let server = Server::saying(Reply::Endless).await;
    let fault = fault(post(server.url("/")).await);
    assert_eq!((fault.kind.as_str(), fault.retryable), ("too_large", false));

    let exact = Server::saying(answer(200, &[], "0123456789")).await;
    let rules = Rules { response_bytes_max: 10, ..rules() };
    assert_eq!(
        done(request(&Caller::new(rules).unwrap(), HttpCall::new(exact.url("/"))).await).1,
        Form::Text
    );
}

#[tokio::test]
async fn a_refusal_counts_even_if_its_body_never_comes() {
    let head = b"HTTP/1.1 404 No\r\nContent-Length: 100\r\n\r\n";
    let server = Server::saying(Reply::Reset(head.to_vec())).await;
    assert_eq!(fault(post(server.url("/")).await).kind, "http_404");

    let server = Server::saying(Reply::Hang(head.to_vec())).await;
    let mut call = HttpCall::new(server.url("/"));
    call.timeout_ms = Some(500);
    assert_eq!(fault(request(&caller(), call).await).kind, "http_404");
}

#[tokio::test]
async fn a_stopped_request_is_given_up() {
    let server = Server::saying(Reply::Hang(Vec::new())).await;
    let (caller, stopper) = (caller(), Stopper::new());
    let (call, context) = (Call::Http(HttpCall::new(server.url("/"))), context());
    let (end, ()) = tokio::join!(caller.call(&call, &context, stopper.signal()), async {
        server.asked(1).await;
        stopper.stop();
    });
    assert_eq!(end, End::Cancelled);
    assert_eq!(caller.in_flight(), 0);
    assert_eq!(caller.call(&call, &context, stopper.signal()).await, End::Cancelled);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn logs_show_no_queries() {
    let server = Server::saying(answer(200, &[], "")).await;
    match post(server.url("/a?key=secret")).await {
        End::Done { log, .. } => assert_eq!(log, format!("POST http://{}/a: 200\n", server.address)),
        end => panic!("{end:?}"),
    }
}
