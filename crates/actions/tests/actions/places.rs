//! A target that is dead delays no other, and nobody waits for ever.

use std::sync::Arc;
use std::time::Duration;

use punctual_actions::{Call, Caller, End, HttpCall, Rules, StopSignal, Stopper};

use super::support::{Reply, Server, answer, context, done, fault, request, rules};

fn narrow() -> Rules {
    Rules { in_flight_max: 12, in_flight_per_target_max: 10, ..rules() }
}

#[tokio::test]
async fn a_dead_target_delays_no_other() {
    let dead = Server::saying(Reply::Hang(Vec::new())).await;
    let live = Server::saying(answer(200, &[], "")).await;
    let caller = Arc::new(Caller::new(narrow()).unwrap());
    let stopper = Stopper::new();
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let (caller, call, stop) =
                (caller.clone(), Call::Http(HttpCall::new(dead.url("/"))), stopper.signal());
            tokio::spawn(async move { caller.call(&call, &context(), stop).await })
        })
        .collect();
    dead.asked(10).await;

    // More than the room that the dead one leaves, one after the other and at once.
    for _ in 0..20 {
        done(request(&caller, HttpCall::new(live.url("/"))).await);
    }
    let (first, second) = tokio::join!(
        request(&caller, HttpCall::new(live.url("/"))),
        request(&caller, HttpCall::new(live.url("/"))),
    );
    done(first);
    done(second);
    assert_eq!(dead.seen().len(), 10, "the others wait for a place");
    assert_eq!((caller.in_flight(), caller.targets()), (10, 1));

    stopper.stop();
    for call in calls {
        assert_eq!(call.await.unwrap(), End::Cancelled);
    }
    assert_eq!((caller.in_flight(), caller.targets()), (0, 0), "targets without calls are forgotten");
}

#[tokio::test]
async fn a_place_is_not_waited_for_without_end() {
    let dead = Server::saying(Reply::Hang(Vec::new())).await;
    let rules = Rules { in_flight_per_target_max: 1, wait_max: Duration::from_millis(50), ..rules() };
    let caller = Arc::new(Caller::new(rules).unwrap());
    let (holder, call) = (caller.clone(), Call::Http(HttpCall::new(dead.url("/"))));
    let held = tokio::spawn(async move { holder.call(&call, &context(), StopSignal::never()).await });
    dead.asked(1).await;

    let fault = fault(request(&caller, HttpCall::new(dead.url("/"))).await);
    assert_eq!((fault.kind.as_str(), fault.retryable), ("no_place", true));

    held.abort();
    assert!(held.await.unwrap_err().is_cancelled());
    assert_eq!((caller.in_flight(), caller.targets()), (0, 0));
}

#[test]
fn rules_without_places_are_refused() {
    assert!(Caller::new(Rules { in_flight_max: 0, ..rules() }).is_err());
    assert!(Caller::new(Rules { in_flight_per_target_max: 0, ..rules() }).is_err());
    assert!(Caller::new(Rules { roots_pem: Some(b"nothing".to_vec()), ..rules() }).is_err());
}
