//! Every schedule verb of Temporal's Rust client against a server: `cargo run -- <address>`.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use futures_util::TryStreamExt;
use temporalio_client::schedules::{
    CreateScheduleOptions, ListSchedulesOptions, ScheduleAction, ScheduleBackfill, ScheduleDescriptionAction,
    ScheduleError, ScheduleOverlapPolicy, ScheduleSpec,
};
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, Url};

fn action() -> ScheduleAction {
    ScheduleAction::StartWorkflow {
        workflow_type: "Report".into(),
        task_queue: "rust-reports".into(),
        workflow_id: "rust-report".into(),
        input: None,
    }
}

/// The gRPC code of a refusal.
fn code<T>(answer: Result<T, ScheduleError>) -> String {
    match answer {
        Ok(_) => "ok".into(),
        Err(ScheduleError::Rpc(status)) => format!("{:?}", status.code()),
        Err(other) => other.to_string(),
    }
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[tokio::main]
async fn main() -> Result<()> {
    let address = std::env::args().nth(1).context("an address is needed")?;
    let url = Url::parse(&format!("http://{address}"))?;
    let connection = Connection::connect(ConnectionOptions::new(url).build()).await?;
    let client = Client::new(connection, ClientOptions::new("default").build())?;

    let spec = ScheduleSpec::from_interval(Duration::from_secs(3_600));
    let options = || CreateScheduleOptions::builder().action(action()).spec(spec.clone());
    let handle = client.create_schedule("rust-all", options().paused(true).note("at first").build()).await?;
    ensure!(code(client.create_schedule("rust-all", options().build()).await) == "AlreadyExists");
    let found = handle.describe(Default::default()).await?;
    ensure!(found.paused() && found.note() == Some("at first"), "{found:?}");
    ensure!(found.future_action_times().len() == 10 && found.create_time().is_some());
    ensure!(!found.conflict_token().is_empty());
    let ScheduleDescriptionAction::StartWorkflow(started) = found.action() else {
        anyhow::bail!("another action: {found:?}")
    };
    ensure!((started.workflow_type(), started.task_queue()) == ("Report", "rust-reports"));
    ensure!(started.workflow_id() == "rust-report");

    let change = |update: &mut temporalio_client::schedules::ScheduleUpdate| {
        let spec = ScheduleSpec::builder().cron_strings(vec!["0 0 1 1 *".into()]).build();
        update
            .set_spec(spec)
            .set_overlap_policy(ScheduleOverlapPolicy::AllowAll)
            .set_remaining_actions(Some(9));
    };
    handle.update(change, Default::default()).await?;
    let found = handle.describe(Default::default()).await?;
    ensure!(found.future_action_times().len() == 9 && found.update_time().is_some(), "{found:?}");

    handle.unpause(Some("go on"), Default::default()).await?;
    let found = handle.describe(Default::default()).await?;
    ensure!(!found.paused() && found.note() == Some("go on"), "{found:?}");
    handle.pause(Some("wait"), Default::default()).await?;
    let found = handle.describe(Default::default()).await?;
    ensure!(found.paused() && found.note() == Some("wait"), "{found:?}");
    handle.trigger(ScheduleOverlapPolicy::AllowAll, Default::default()).await?;
    let found = handle.describe(Default::default()).await?;
    ensure!((found.action_count(), found.running_actions().len()) == (1, 1), "{found:?}");
    // From the first of January of 2018 to that of 2020.
    let range = ScheduleBackfill::new(at(1_514_764_800), at(1_577_836_800));
    let range = range.overlap_policy(ScheduleOverlapPolicy::AllowAll).build();
    handle.backfill([range], Default::default()).await?;
    let found = handle.describe(Default::default()).await?;
    ensure!((found.action_count(), found.recent_actions().len()) == (4, 4), "{found:?}");

    client.create_schedule("rust-other", options().build()).await?;
    let query = "ScheduleId STARTS_WITH 'rust-'".to_owned();
    let listed = ListSchedulesOptions::builder().maximum_page_size(1).query(query).build();
    let listed: Vec<_> = client.list_schedules(listed).try_collect().await?;
    let ids: Vec<_> = listed.iter().map(|one| (one.schedule_id(), one.workflow_type())).collect();
    ensure!(ids == [("rust-all", Some("Report")), ("rust-other", Some("Report"))], "{ids:?}");

    for name in ["rust-all", "rust-other"] {
        let handle = client.get_schedule_handle(name);
        handle.delete(Default::default()).await?;
        ensure!(code(handle.delete(Default::default()).await) == "NotFound");
        ensure!(code(handle.describe(Default::default()).await) == "NotFound");
    }
    let often = ScheduleSpec::builder().cron_strings(vec!["often".into()]).build();
    let bad = CreateScheduleOptions::builder().action(action()).spec(often).build();
    ensure!(code(client.create_schedule("rust-bad", bad).await) == "InvalidArgument");
    println!("the Rust client: every schedule verb");
    Ok(())
}
