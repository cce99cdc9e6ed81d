//! What cannot work or is not permitted is refused when it is asked for, with the field at fault.

use punctual_actions::{Call, CallError, CommandCall, HttpCall, NexusCall, Rules, limits};

#[track_caller]
fn refused(json: &str, expected: &str) {
    let rules = Rules { allow_commands: true, ..Rules::default() };
    let call = Call::from_json(json.as_bytes());
    let error = call.and_then(|call| call.check(&rules)).expect_err("the call is refused").to_string();
    assert!(error.starts_with(expected), "{json}: expected {expected}, found {error}");
}

#[test]
fn calls_are_stored_as_json() {
    let calls = [
        r#"{"kind":"http","url":"https://example.com/a","method":"PUT","headers":{"X-Key":"{{run_id}}"},"body":"{{input}}","timeout_ms":5,"retry_statuses":[418]}"#,
        r#"{"kind":"nexus","endpoint":"https://example.com/nexus","service":"s","operation":"o","operation_timeout_ms":9}"#,
        r#"{"kind":"command","argv":["/bin/echo","{{attempt}}"],"env":{"A":"b"},"cwd":"/tmp"}"#,
    ];
    for json in calls {
        let call = Call::from_json(json.as_bytes()).unwrap();
        call.check(&Rules { allow_commands: true, ..Rules::default() }).unwrap();
        assert_eq!(String::from_utf8(call.to_json()).unwrap(), json);
    }
}

#[test]
fn what_is_not_a_call_is_refused() {
    for json in [
        "",
        "{}",
        r#"{"kind":"carrier_pigeon"}"#,
        r#"{"kind":"http"}"#,
        r#"{"kind":"http","url":"https://a.example","colour":"red"}"#,
        r#"{"kind":"nexus","endpoint":"https://a.example","service":"s"}"#,
    ] {
        refused(json, "call: ");
    }
    let long = format!(r#"{{"kind":"http","url":"{}"}}"#, "x".repeat(limits::CALL_BYTES_MAX));
    refused(&long, "call: expected at most");
}

#[test]
fn faults_name_the_field() {
    let cases = [
        (r#"{"kind":"http","url":"ftp://example.com"}"#, "url: expected scheme http or https"),
        (r#"{"kind":"http","url":"https://me:secret@example.com"}"#, "url: expected no name or password"),
        (
            r#"{"kind":"http","url":"https://{{namespace}}.example.com"}"#,
            "url: byte 8: expected templates behind",
        ),
        (r#"{"kind":"http","url":"{{input}}"}"#, "url: byte 0: expected templates behind"),
        (
            r#"{"kind":"http","url":"https://example.com{{input}}"}"#,
            "url: byte 19: expected templates behind",
        ),
        (
            r#"{"kind":"http","url":"https://example.com/{{nope}}"}"#,
            "url: byte 20: expected one of namespace",
        ),
        (
            r#"{"kind":"http","url":"https://a.example","method":"post"}"#,
            "method: expected a method such as POST",
        ),
        (r#"{"kind":"http","url":"https://a.example","method":"TRACE"}"#, "method: "),
        (r#"{"kind":"http","url":"https://a.example","method":"GET","body":"x"}"#, "body: expected none"),
        (r#"{"kind":"http","url":"https://a.example","body":"a{{b}}"}"#, "body: byte 1: expected one of"),
        (r#"{"kind":"http","url":"https://a.example","headers":{"a b":"c"}}"#, "headers.a b: "),
        (r#"{"kind":"http","url":"https://a.example","headers":{"A":"b\nc"}}"#, "headers.A: "),
        (r#"{"kind":"http","url":"https://a.example","headers":{"Host":"b"}}"#, "headers.Host: is set by"),
        (
            r#"{"kind":"http","url":"https://a.example","headers":{"Content-Length":"1"}}"#,
            "headers.Content-Length: ",
        ),
        (
            r#"{"kind":"http","url":"https://a.example","headers":{"transfer-encoding":"x"}}"#,
            "headers.transfer",
        ),
        (
            r#"{"kind":"http","url":"https://a.example","headers":{"Idempotency-Key":"x"}}"#,
            "headers.Idempotency",
        ),
        (
            r#"{"kind":"http","url":"https://a.example","headers":{"Punctual-Run-Id":"x"}}"#,
            "headers.Punctual",
        ),
        (
            r#"{"kind":"http","url":"https://a.example","headers":{"X-A":"1","x-a":"2"}}"#,
            "headers.x-a: expected each",
        ),
        (r#"{"kind":"http","url":"https://a.example","timeout_ms":0}"#, "timeout_ms: expected 1 to"),
        (r#"{"kind":"http","url":"https://a.example","connect_timeout_ms":0}"#, "connect_timeout_ms: "),
        (r#"{"kind":"http","url":"https://a.example","retry_statuses":[200]}"#, "retry_statuses: "),
        (r#"{"kind":"nexus","endpoint":"https://a.example?q","service":"s","operation":"o"}"#, "endpoint: "),
        (
            r#"{"kind":"nexus","endpoint":"https://a.example/{{run_id}}","service":"s","operation":"o"}"#,
            "endpoint: ",
        ),
        (r#"{"kind":"nexus","endpoint":"https://a.example","service":"","operation":"o"}"#, "service: "),
        (r#"{"kind":"nexus","endpoint":"https://a.example","service":"s","operation":".."}"#, "operation: "),
        (
            r#"{"kind":"nexus","endpoint":"https://a.example","service":"s","operation":"o","input":"{{"}"#,
            "input: byte 0",
        ),
        (r#"{"kind":"command","argv":[]}"#, "argv: expected a program"),
        (r#"{"kind":"command","argv":["{{input}}"]}"#, "argv[0]: expected a program without templates"),
        (r#"{"kind":"command","argv":["a","{{x}}"]}"#, "argv[1]: byte 0"),
        (r#"{"kind":"command","argv":["a","b\u0000"]}"#, "argv[1]: byte 1: expected no null byte"),
        (r#"{"kind":"command","argv":["a"],"env":{"A=B":"c"}}"#, "env.A=B: "),
        (r#"{"kind":"command","argv":["a"],"env":{"PUNCTUAL_X":"c"}}"#, "env.PUNCTUAL_X: "),
        (r#"{"kind":"command","argv":["a"],"cwd":"here"}"#, "cwd: expected a path from the root"),
    ];
    for (json, expected) in cases {
        refused(json, expected);
    }
}

#[test]
fn bounds_are_kept() {
    let mut call = HttpCall::new("https://a.example");
    call.body = Some("x".repeat(limits::TEMPLATE_BYTES_MAX + 1));
    assert!(Call::Http(call.clone()).check(&Rules::default()).is_err());
    call.body = None;
    call.headers = (0..=limits::HEADERS_MAX).map(|index| (format!("x-{index}"), String::new())).collect();
    assert!(Call::Http(call).check(&Rules::default()).is_err());
    let command = CommandCall::new(vec!["a"; limits::ARGUMENTS_MAX + 1]);
    assert!(Call::Command(command).check(&Rules { allow_commands: true, ..Rules::default() }).is_err());
}

#[test]
fn commands_and_private_addresses_need_a_permission() {
    let command = Call::Command(CommandCall::new(["true"]));
    assert!(matches!(command.check(&Rules::default()), Err(CallError::Forbidden { .. })));

    for url in ["http://10.0.0.1/", "http://[::1]/", "http://localhost:8080/", "http://169.254.169.254/"] {
        let call = Call::Http(HttpCall::new(url));
        assert!(matches!(call.check(&Rules::default()), Err(CallError::AddressRefused { .. })), "{url}");
        let nexus = Call::Nexus(NexusCall::new(url, "s", "o"));
        assert!(matches!(nexus.check(&Rules::default()), Err(CallError::AddressRefused { .. })), "{url}");
    }
}

#[test]
fn calls_to_the_same_target_share_its_name() {
    let target = |url: &str| Call::Http(HttpCall::new(url)).target();
    assert_eq!(target("HTTPS://Example.com/a?b={{run_id}}"), "https://example.com:443");
    assert_eq!(target("https://example.com./{{input}}"), "https://example.com:443");
    assert_eq!(target("http://[::FFFF:1.2.3.4]:81"), "http://1.2.3.4:81");
    assert_eq!(Call::Nexus(NexusCall::new("http://h/nexus/", "s", "o")).target(), "http://h:80");
    assert_eq!(Call::Command(CommandCall::new(["/bin/echo", "x"])).target(), "command:/bin/echo");
}
