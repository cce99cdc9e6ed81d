//! A run that was stopped while nobody could tell the cluster: its workflow is stopped when somebody can.

use punctual_api::v1;
use punctual_temporal_api::temporal::api::enums::v1::ScheduleOverlapPolicy as Overlap;

use super::fake::Fake;
use super::{Durable, completed, count, trigger};

#[tokio::test]
async fn what_was_stopped_while_nobody_could_say_so_is_stopped_later() {
    let fake = Fake::new().await;
    let (durable, mut front, _) = Durable::begun(&fake).await;
    for place in 1..4 {
        trigger(&mut front, &format!("t{}", place + 1), Overlap::AllowAll).await;
        fake.state.see(count(place + 1)).await;
    }
    front.bed.stop().await;

    let mut bed = durable.start_alone().await.bed;
    let listed = bed.client.runs.list(v1::ListRunsRequest::default()).await.unwrap().into_inner().runs;
    assert_eq!(listed.len(), 4);
    let run = |place: usize| listed[3 - place].run_id.clone();
    for place in [0, 1] {
        let asked = v1::TerminateRunRequest { run_id: run(place), ..Default::default() };
        bed.client.runs.terminate(asked).await.unwrap();
    }
    let asked = v1::CancelRunRequest { run_id: run(2), ..Default::default() };
    bed.client.runs.cancel(asked).await.unwrap();
    bed.stop().await;
    fake.state.end(1, completed("1"));

    let front = durable.start().await;
    let seen = fake.state.see(|list| list[0].told == ["terminate"] && list[2].told == ["cancel"]).await;
    assert_eq!((&seen[1].told, &seen[3].told), (&Vec::new(), &Vec::new()), "one had ended, one goes on");
    front.bed.stop().await;
}
