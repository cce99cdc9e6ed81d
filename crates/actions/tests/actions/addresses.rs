//! The addresses that were checked are those that are connected to, whatever a name server says next.

use std::sync::Arc;

use punctual_actions::{Call, CallError, Caller, HttpCall, Rules};

use super::support::{Names, Server, answer, done, fault, request, rules};

fn closing() -> super::support::Reply {
    answer(200, &[("Connection", "close")], "")
}

#[tokio::test]
async fn an_answer_that_changes_is_checked_again() {
    // Both on one port, so that only the address decides who is reached.
    let server = Server::start(|_| closing()).await;
    let hidden = Server::on(&format!("127.0.0.2:{}", server.address.port()), |_| closing()).await;
    let names = Names::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let caller = Caller::with_resolver(rules(), names.clone()).unwrap();
    let call = HttpCall::new(format!("http://rebind.test:{}/", server.address.port()));

    done(request(&caller, call.clone()).await);
    assert_eq!(*names.asked.lock().unwrap(), 1, "what was checked is not looked up again to connect");

    let fault = fault(request(&caller, call).await);
    assert_eq!((fault.kind.as_str(), fault.retryable), ("address_refused", false));
    assert!(fault.message.contains("start the server with --allow-networks "), "{fault}");
    assert_eq!((server.connections(), hidden.connections()), (1, 0));
}

#[tokio::test]
async fn of_a_mixed_answer_only_the_permitted_part_is_used() {
    let server = Server::start(|_| closing()).await;
    let hidden = Server::on(&format!("127.0.0.2:{}", server.address.port()), |_| closing()).await;
    let names = Names::new(&[&["127.0.0.2", "::1", "127.0.0.1", "10.0.0.1"]]);
    let caller = Caller::with_resolver(rules(), names).unwrap();
    done(request(&caller, HttpCall::new(format!("http://mixed.test:{}/", server.address.port()))).await);
    assert_eq!((server.connections(), hidden.connections()), (1, 0));
}

#[tokio::test]
async fn names_of_private_addresses_are_refused() {
    for address in ["10.0.0.1", "::ffff:10.0.0.1", "169.254.169.254", "::1", "64:ff9b::7f00:1", "0.0.0.0"] {
        let caller = Caller::with_resolver(Rules::default(), Names::new(&[&[address]])).unwrap();
        let fault = fault(request(&caller, HttpCall::new("http://inside.test/")).await);
        assert_eq!((fault.kind.as_str(), fault.retryable), ("address_refused", false), "{address}");
    }
}

#[tokio::test]
async fn unknown_names_are_worth_another_attempt() {
    for names in [Names::new(&[]), Names::new(&[&[]])] {
        let caller = Caller::with_resolver(Rules::default(), names).unwrap();
        let fault = fault(request(&caller, HttpCall::new("http://nobody.test/")).await);
        assert_eq!((fault.kind.as_str(), fault.retryable), ("name_not_resolved", true));
    }
}

#[tokio::test]
async fn the_system_resolves_names_of_this_machine() {
    let server = Server::start(|_| closing()).await;
    let call = HttpCall::new(format!("http://localhost:{}/", server.address.port()));
    done(request(&Caller::new(rules()).unwrap(), call.clone()).await);
    let strict = fault(request(&Caller::new(Rules::default()).unwrap(), call).await);
    assert_eq!(strict.kind, "address_refused");
}

#[tokio::test]
async fn odd_spellings_of_this_machine_are_refused() {
    let urls = [
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0x7f000001/",
        "http://127.1/",
        "http://0177.0.0.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::127.0.0.1]/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://[64:ff9b::7f00:1]/",
        "http://127.0.0.1/",
        "http://LOCALHOST./",
    ];
    let caller = Arc::new(Caller::new(Rules::default()).unwrap());
    for url in urls {
        let call = HttpCall::new(url);
        let checked = Call::Http(call.clone()).check(&Rules::default());
        assert!(
            matches!(checked, Err(CallError::Invalid { .. } | CallError::AddressRefused { .. })),
            "{url}"
        );
        let fault = fault(request(&caller, call).await);
        assert!(matches!(fault.kind.as_str(), "call_invalid" | "address_refused"), "{url}: {fault}");
        assert!(!fault.retryable, "{url}");
    }
}
