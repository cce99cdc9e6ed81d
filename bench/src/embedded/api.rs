//! Schedules created over gRPC, from clients that share nothing but the server.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use punctual_api::{Client, v1};
use punctual_server::{Config, Server};
use tokio::sync::oneshot;

const SCHEDULES: usize = 20_000;

/// Creates per second, one after another and many at a time.
pub async fn measure() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let config = Config {
        listen: "127.0.0.1:0".parse()?,
        database: format!("sqlite:{}", folder.path().join("api.db").display()),
        shutdown: Duration::from_secs(20),
        ..Config::default()
    };
    let server = Server::start(config).await?;
    let address = format!("http://{}", server.address());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.run(async { drop(stopped.await) }));
    for clients in [1, 16, 64] {
        let count = if clients == 1 { SCHEDULES / 20 } else { SCHEDULES };
        let begun = Instant::now();
        let tasks = (0..clients).map(|client| create(address.clone(), clients, client, count / clients));
        try_join_all(tasks).await?;
        let rate = (count / clients * clients) as f64 / begun.elapsed().as_secs_f64();
        println!(
            "schedules created over gRPC, {clients} at a time: {rate:.0}/s, each durable before its answer"
        );
    }
    let _ = stop.send(());
    serving.await.context("the server")??;
    Ok(())
}

async fn create(address: String, clients: usize, client: usize, count: usize) -> Result<()> {
    let mut schedules = Client::connect(&address).await?.schedules;
    for index in 0..count {
        let action =
            v1::QueueAction { queue: "default".into(), handler: "noop".into(), ..Default::default() };
        let cron = v1::Cron { text: "0 9 * * MON-FRI".into(), ..Default::default() };
        let schedule = v1::Schedule {
            spec: Some(v1::Spec { crons: vec![cron], zone: "Europe/Berlin".into(), ..Default::default() }),
            action: Some(v1::Action { kind: Some(v1::action::Kind::Queue(action)), ..Default::default() }),
            ..Default::default()
        };
        let name = format!("{clients}-{client}-{index}");
        let request = v1::CreateScheduleRequest {
            namespace: "default".into(),
            schedule_id: name.clone(),
            request_id: name,
            schedule: Some(schedule),
            ..Default::default()
        };
        schedules.create(request).await?;
    }
    Ok(())
}
