//! The cluster says by itself that a workflow has ended; where it does not, it is asked.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use history::history_event::Attributes;
use punctual_temporal_api::temporal::api::enums::v1::{
    ScheduleOverlapPolicy as Overlap, WorkflowExecutionStatus as Status,
};
use punctual_temporal_api::temporal::api::history::v1 as history;

use super::super::{Front, creation, json};
use super::fake::{Fake, Workflow};
use super::{Durable, completed, count, failed, front, running, shown, trigger};
use crate::http::{Answer, raw, request, send};

/// A cluster that allows callbacks.
async fn allowing() -> Fake {
    let fake = Fake::new().await;
    fake.state.allows_callbacks.store(true, SeqCst);
    fake
}

/// Tells a server what the cluster would, as the cluster does: the body in pieces, and of no importance.
async fn tell(front: &Front, token: &str) -> Answer {
    let head = format!(
        "POST /temporal/v1/ended HTTP/1.1\r\nhost: test\r\nconnection: close\r\npunctual-token: {token}\r\n\
         nexus-operation-state: failed\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    raw(front.bed.address, [head.as_bytes(), b"7\r\n\"wrong\"\r\n0\r\n\r\n"].concat().as_slice()).await
}

fn token(workflow: &Workflow) -> String {
    workflow.callback().expect("a callback").1
}

/// How many ends were heard of in this way.
async fn heard(front: &Front, way: &str) -> String {
    let metrics = send(front.bed.address, "GET", "/metrics", b"").await.text();
    let line = format!("punctual_workflow_ends_total{{by=\"{way}\"}} ");
    metrics.lines().find_map(|found| found.strip_prefix(&line)).expect("a count").to_owned()
}

/// Lets the time pass that lies between two looks.
async fn a_minute_passes() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_callback_ends_the_run_and_what_it_carries_counts_for_nothing() {
    let fake = allowing().await;
    let mut front = front(&fake).await;
    front.create(creation("s")).await.unwrap();
    trigger(&mut front, "t1", Overlap::AllowAll).await;
    let workflow = fake.state.see(count(1)).await.remove(0);
    let (url, token) = workflow.callback().expect("a callback");
    assert_eq!(url, format!("http://{}/temporal/v1/ended", front.bed.address));
    assert_eq!(tell(&front, &token).await.status, 503, "the cluster says that it goes on");

    fake.state.end(0, completed("\"res1\""));
    let forged = token.replace('A', "B");
    for bad in ["", "p1_", &token[..token.len() - 2], &forged] {
        let refused = tell(&front, bad).await;
        assert_eq!(refused.status, 401, "{bad}");
        assert!(refused.text().contains("the callback's token does not count"));
    }
    assert_eq!(tell(&front, &token).await.status, 200);
    shown(&mut front, 1, Status::Completed).await;
    assert_eq!(tell(&front, &token).await.status, 200, "it may come twice");
    assert_eq!(heard(&front, "callback").await, "1");

    trigger(&mut front, "t2", Overlap::AllowAll).await;
    let second = fake.state.see(count(2)).await.remove(1).request;
    assert_eq!(second.last_completion_result.unwrap().payloads, [json("\"res1\"")], "as the cluster has it");
    front.bed.stop().await;
}

#[tokio::test]
async fn every_kind_of_end_comes_by_callback() {
    let fake = allowing().await;
    let mut front = front(&fake).await;
    front.create(creation("s")).await.unwrap();
    let cancelled = history::WorkflowExecutionCanceledEventAttributes::default();
    let terminated = history::WorkflowExecutionTerminatedEventAttributes::default();
    let ends = [
        (failed("oops"), Status::Failed),
        (Attributes::WorkflowExecutionCanceledEventAttributes(cancelled), Status::Canceled),
        (Attributes::WorkflowExecutionTerminatedEventAttributes(terminated), Status::Terminated),
        (completed("1"), Status::Completed),
    ];
    for (place, (end, status)) in ends.into_iter().enumerate() {
        trigger(&mut front, &format!("t{place}"), Overlap::AllowAll).await;
        let workflow = fake.state.see(count(place + 1)).await.remove(place);
        fake.state.end(place, end);
        assert_eq!(tell(&front, &token(&workflow)).await.status, 200);
        shown(&mut front, place + 1, status).await;
    }
    assert_eq!((heard(&front, "callback").await, heard(&front, "poll").await), ("4".into(), "0".into()));
    front.bed.stop().await;
}

#[tokio::test]
async fn a_cluster_that_refuses_callbacks_is_asked_again_at_once_and_polled() {
    let fake = Fake::new().await;
    let mut front = front(&fake).await;
    front.create(creation("s")).await.unwrap();
    for place in 0..2 {
        trigger(&mut front, &format!("t{place}"), Overlap::AllowAll).await;
        let workflow = fake.state.see(count(place + 1)).await.remove(place);
        assert_eq!((workflow.callback(), workflow.asked), (None, 1));
        fake.state.end(place, completed("1"));
        shown(&mut front, place + 1, Status::Completed).await;
    }
    assert_eq!(fake.state.refused.load(SeqCst), 1, "the second start did not try");
    assert_eq!((heard(&front, "callback").await, heard(&front, "poll").await), ("0".into(), "2".into()));
    front.bed.stop().await;
}

#[tokio::test]
async fn callbacks_that_do_not_come_are_noticed_and_nothing_waits_for_them_any_more() {
    let fake = allowing().await;
    let mut front = front(&fake).await;
    front.create(creation("s")).await.unwrap();
    trigger(&mut front, "t1", Overlap::AllowAll).await;
    trigger(&mut front, "t2", Overlap::AllowAll).await;
    fake.state.see(|list| list.len() == 2 && list.iter().all(|it| it.callback().is_some())).await;
    fake.state.workflows.send_modify(|list| list[0].ended_ago = 30);
    fake.state.end(0, completed("1"));
    // The look may not have been waited for yet when the first minute passes.
    while heard(&front, "look").await == "0" {
        a_minute_passes().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    running(&mut front, 1).await;

    fake.state.end(1, completed("2"));
    running(&mut front, 0).await;
    assert_eq!(heard(&front, "poll").await, "1", "the other one was polled for from then on");
    trigger(&mut front, "t3", Overlap::AllowAll).await;
    let third = fake.state.see(count(3)).await.remove(2);
    assert_eq!(third.callback(), None);
    front.bed.stop().await;
}

#[tokio::test]
async fn an_end_while_nobody_was_there_is_heard_of_at_once() {
    let fake = allowing().await;
    let (durable, front, workflow) = Durable::begun(&fake).await;
    front.bed.stop().await;

    fake.state.end(0, completed("1"));
    let mut front = durable.start().await;
    shown(&mut front, 1, Status::Completed).await;
    assert_eq!(tell(&front, &token(&workflow)).await.status, 200, "a restart keeps the secret of tokens");
    front.bed.stop().await;
}

#[tokio::test]
async fn without_a_cluster_or_while_it_is_away_the_callback_comes_again() {
    let fake = allowing().await;
    let (durable, front, workflow) = Durable::begun(&fake).await;
    fake.stop().await;
    assert_eq!(tell(&front, &token(&workflow)).await.status, 503);
    front.bed.stop().await;

    let front = durable.start_alone().await;
    assert_eq!(tell(&front, &token(&workflow)).await.status, 503);
    let read = request("GET", "/temporal/v1/ended", "", b"");
    assert_eq!(raw(front.bed.address, &read).await.status, 405);
    front.bed.stop().await;
}
