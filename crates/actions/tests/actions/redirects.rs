//! Redirects are followed as far as they are safe, and every step is checked like the first.

use punctual_actions::{Caller, End, HttpCall, Rules};

use super::support::{Server, answer, caller, done, fault, post, request, rules};

fn to(status: u16, location: &str) -> super::support::Reply {
    answer(status, &[("Location", location)], "")
}

fn with_secrets(url: String) -> HttpCall {
    let mut call = HttpCall::new(url);
    for name in ["Authorization", "Cookie", "X-Api-Key"] {
        call.headers.insert(name.to_owned(), "secret".to_owned());
    }
    call.headers.insert("Accept".to_owned(), "text/html".to_owned());
    call
}

#[tokio::test]
async fn method_and_body_are_repeated() {
    for status in [307, 308] {
        let server = Server::start(move |seen| match seen.path.as_str() {
            "/a/b" => to(status, "../c?d=e"),
            _ => answer(200, &[], "\"there\""),
        })
        .await;
        assert_eq!(done(request(&caller(), with_secrets(server.url("/a/b"))).await).0, "\"there\"");
        let seen = server.seen();
        assert_eq!((seen[1].method.as_str(), seen[1].path.as_str()), ("POST", "/c?d=e"));
        assert_eq!(seen[0].body, seen[1].body);
        assert_eq!(seen[1].header("authorization"), Some("secret"), "it is the same origin");
    }
}

#[tokio::test]
async fn see_other_fetches_the_answer() {
    let server = Server::start(|seen| match seen.path.as_str() {
        "/do" => to(303, "/done"),
        _ => answer(200, &[], "\"done\""),
    })
    .await;
    assert_eq!(done(post(server.url("/do")).await).0, "\"done\"");
    let seen = &server.seen()[1];
    assert_eq!((seen.method.as_str(), seen.body.as_str(), seen.header("content-type")), ("GET", "", None));
}

#[tokio::test]
async fn a_post_never_becomes_a_get_unnoticed() {
    for status in [301, 302] {
        let server = Server::start(move |seen| match seen.path.as_str() {
            "/old" => to(status, "/new"),
            _ => answer(200, &[], ""),
        })
        .await;
        let refused = fault(post(server.url("/old")).await);
        assert_eq!((refused.kind.as_str(), refused.retryable), ("redirect_refused", false));
        assert_eq!(server.seen().len(), 1);

        let mut call = HttpCall::new(server.url("/old"));
        call.method = "GET".to_owned();
        done(request(&caller(), call).await);
    }
}

#[tokio::test]
async fn secrets_stay_with_their_origin() {
    let other = Server::start(|_| answer(200, &[], "")).await;
    let location = other.url("/there");
    let server = Server::start(move |_| to(307, &location)).await;

    done(request(&caller(), with_secrets(server.url("/"))).await);

    assert_eq!(server.seen()[0].header("authorization"), Some("secret"));
    let seen = &other.seen()[0];
    for name in ["authorization", "cookie", "x-api-key"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    assert_eq!(seen.header("accept"), Some("text/html"));
    assert_eq!(seen.header("idempotency-key"), Some("start-abc"));
    assert_eq!(seen.header("host"), Some(other.address.to_string().as_str()));
}

#[tokio::test]
async fn private_addresses_are_not_reached_by_a_detour() {
    let hidden = Server::on("127.0.0.2:0", |_| answer(200, &[], "hidden")).await;
    let port = hidden.address.port();
    let locations = [
        hidden.url("/"),
        format!("//127.0.0.2:{port}/"),
        format!("http://[::ffff:127.0.0.2]:{port}/"),
        format!("http://[::1]:{port}/"),
        "http://10.0.0.1/".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ];
    for location in locations {
        let redirect = location.clone();
        let server = Server::start(move |_| to(307, &redirect)).await;
        let fault = fault(post(server.url("/")).await);
        assert_eq!((fault.kind.as_str(), fault.retryable), ("address_refused", false), "{location}");
    }
    for location in
        ["http://2130706434/", "http://0x7f.2/", "http://a@127.0.0.2/", "file:///etc/passwd", "gopher://x/"]
    {
        let server = Server::start(move |_| to(307, location)).await;
        assert_eq!(fault(post(server.url("/")).await).kind, "redirect_refused", "{location}");
    }
    assert_eq!(hidden.connections(), 0);
}

#[tokio::test]
async fn redirects_without_end_are_given_up() {
    let server = Server::start(|_| to(307, "/again")).await;
    assert_eq!(fault(post(server.url("/")).await).kind, "redirects_exceeded");
    assert_eq!(server.seen().len(), 6);

    let mut call = HttpCall::new(server.url("/"));
    call.redirects_max = Some(0);
    assert_eq!(fault(request(&caller(), call).await).kind, "http_307");

    let strict = Caller::new(Rules { redirects_max: 1, ..rules() }).unwrap();
    let mut call = HttpCall::new(server.url("/"));
    call.redirects_max = Some(100);
    assert_eq!(fault(request(&strict, call).await).kind, "redirects_exceeded");
    assert_eq!(server.seen().len(), 6 + 1 + 2);
}

#[tokio::test]
async fn every_step_is_logged() {
    let server =
        Server::start(|seen| if seen.path == "/a" { to(307, "/b") } else { answer(200, &[], "") }).await;
    let End::Done { log, .. } = post(server.url("/a")).await else { panic!("expected a result") };
    let address = server.address;
    assert_eq!(log, format!("POST http://{address}/a: 307\nPOST http://{address}/b: 200\n"));
}
