//! A server in this process, a client of it, and the few things that every story begins with.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use punctual_api::{Client, json, v1};
use punctual_server::{Config, Server, StartError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub struct Bed {
    pub address: SocketAddr,
    pub client: Client,
    stop: oneshot::Sender<()>,
    done: JoinHandle<Result<(), StartError>>,
}

/// A configuration for tests: any free port, nothing durable.
pub fn config() -> Config {
    Config { listen: "127.0.0.1:0".parse().unwrap(), database: "memory:".into(), ..Config::default() }
}

pub fn on_file(path: &Path) -> Config {
    let mut config = config();
    config.database = format!("sqlite:{}", path.display());
    config
}

impl Bed {
    pub async fn new() -> Bed {
        Bed::with(config()).await
    }

    pub async fn with(config: Config) -> Bed {
        Bed::of(Server::start(config).await.unwrap()).await
    }

    pub async fn of(server: Server) -> Bed {
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let done = tokio::spawn(server.run(async { drop(stopped.await) }));
        let client = Client::connect(&address.to_string()).await.unwrap();
        Bed { address, client, stop, done }
    }

    /// Stops the server, and says how long that took.
    pub async fn stop(self) -> Duration {
        let begun = Instant::now();
        let _ = self.stop.send(());
        self.done.await.unwrap().unwrap();
        begun.elapsed()
    }

    /// Declares the queue `work`.
    pub async fn queue(&mut self) {
        let queue = Some(v1::Queue { queue: "work".into(), ..v1::Queue::default() });
        let asked = v1::CreateQueueRequest { namespace: "default".into(), queue, request_id: String::new() };
        self.client.queues.create(asked).await.unwrap();
    }

    /// Creates a schedule for manual starts, or with more than that.
    pub async fn schedule(&mut self, id: &str, more: &str) -> v1::ChangeResponse {
        self.client.schedules.create(creation(id, more)).await.unwrap().into_inner()
    }

    pub async fn trigger(&mut self, id: &str) -> v1::ChangeResponse {
        let asked = v1::TriggerScheduleRequest { schedule_id: id.into(), ..Default::default() };
        self.client.schedules.trigger(asked).await.unwrap().into_inner()
    }

    /// Takes one run, and waits for it if there is none yet.
    pub async fn claim(&mut self) -> v1::ClaimedRun {
        let runs = self.client.workers.claim(claim(20)).await.unwrap().into_inner().runs;
        runs.into_iter().next().expect("a run")
    }

    pub async fn complete(&mut self, run: &v1::ClaimedRun, end: v1::run_completion::End) -> v1::RunReport {
        let done = v1::RunCompletion {
            run_id: run.run_id.clone(),
            token: run.token,
            end: Some(end),
            log_lines: Vec::new(),
        };
        let asked = v1::CompleteRequest { worker_id: "w1".into(), runs: vec![done], ..Default::default() };
        self.client.workers.complete(asked).await.unwrap().into_inner().runs.remove(0)
    }

    pub async fn describe(&mut self, id: &str) -> v1::ScheduleDescription {
        let asked = v1::DescribeScheduleRequest { namespace: String::new(), schedule_id: id.into() };
        self.client.schedules.describe(asked).await.unwrap().into_inner().description.unwrap()
    }

    pub async fn run(&mut self, run_id: &str) -> v1::Run {
        let asked = v1::DescribeRunRequest { namespace: String::new(), run_id: run_id.into() };
        self.client.runs.describe(asked).await.unwrap().into_inner().run.unwrap()
    }
}

/// A request to create; `more` are further fields of the schedule, as JSON.
pub fn creation(id: &str, more: &str) -> v1::CreateScheduleRequest {
    let action =
        r#""action": { "queue": { "queue": "work", "handler": "h", "input": { "json": { "n": 1 } } } }"#;
    let more = if more.is_empty() { String::new() } else { format!(", {more}") };
    v1::CreateScheduleRequest {
        namespace: "default".into(),
        schedule_id: id.into(),
        request_id: format!("create-{id}"),
        schedule: Some(json::from_json(format!("{{ {action}{more} }}").as_bytes()).unwrap()),
        initial_patch: None,
    }
}

pub fn claim(wait_seconds: i64) -> v1::ClaimRequest {
    v1::ClaimRequest {
        namespace: "default".into(),
        queue: "work".into(),
        worker_id: "w1".into(),
        wait: Some(prost_types::Duration { seconds: wait_seconds, nanos: 0 }),
        ..Default::default()
    }
}

pub fn result(text: &str) -> v1::run_completion::End {
    v1::run_completion::End::Result(json::from_json(text.as_bytes()).unwrap())
}

pub fn failure(kind: &str) -> v1::run_completion::End {
    v1::run_completion::End::Failure(v1::Failure {
        kind: kind.into(),
        message: "it broke".into(),
        ..Default::default()
    })
}

pub fn at(text: &str) -> Option<prost_types::Timestamp> {
    let instant: jiff::Timestamp = text.parse().unwrap();
    Some(prost_types::Timestamp { seconds: instant.as_second(), nanos: 0 })
}
