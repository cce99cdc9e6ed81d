//! What a worker says while it works: lines on stderr for people, objects on stdout for programs.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual_api::v1;
use serde_json::{Value, json};
use tonic::Status;
use v1::report::Word;

use super::Worker;
use super::ending::{self, End};
use crate::answer;
use crate::output::{self, TableOrJson};

/// The voice of a worker.
#[derive(Debug)]
pub struct Teller {
    output: TableOrJson,
    /// The server did not answer the last time.
    is_away: AtomicBool,
}

impl Teller {
    pub fn new(output: TableOrJson) -> Teller {
        Teller { output, is_away: AtomicBool::new(false) }
    }

    fn say(&self, line: String, object: &Value) {
        match self.output {
            TableOrJson::Table => answer::complain(&[line]),
            // A reader that left does not stop the work.
            TableOrJson::Json => drop(answer::say(&object.to_string())),
        }
    }

    pub fn ready(&self, worker: &Worker) {
        let (id, queue) = (&worker.settings.worker_id, &worker.settings.queue);
        let line = format!("worker {id} takes runs from queue {queue} at {}", worker.session.address);
        self.say(line, &json!({ "event": "ready", "worker_id": id, "queue": queue }));
    }

    pub fn began(&self, run: &v1::ClaimedRun) {
        let line = format!("run {} of {}: attempt {} begins", run.run_id, run.schedule_id, run.attempt);
        self.say(line, &of_run("began", run));
    }

    pub fn ended(&self, run: &v1::ClaimedRun, end: &End, report: &v1::RunReport) {
        let shown = ending::shown(end);
        let what = match report.state() {
            Word::Recorded | Word::Unspecified => "",
            Word::Retried => ", it will be tried again",
            Word::Stale => ", but nobody waits for it any more",
        };
        let mut object = of_run("ended", run);
        object["end"] = json!(shown);
        object["report"] = json!(report.state().as_str_name());
        self.say(format!("run {} of {}: {shown}{what}", run.run_id, run.schedule_id), &object);
    }

    pub fn gone(&self, run: &v1::ClaimedRun) {
        let line = format!("run {} of {}: is not ours any more, ended", run.run_id, run.schedule_id);
        self.say(line, &of_run("gone", run));
    }

    pub fn not_recorded(&self, run: &v1::ClaimedRun, status: &Status) {
        let line = format!("run {}: its end could not be recorded: {}", run.run_id, status.message());
        let mut object = of_run("not_recorded", run);
        object["message"] = json!(status.message());
        self.say(line, &object);
    }

    pub fn stopping(&self, asked: u32, running_count: usize) {
        let line = match (asked, running_count) {
            (1, 0) => "stopping".to_owned(),
            (1, count) => format!("stopping: waiting for {count} in progress, Ctrl-C again ends them"),
            (2, count) => format!("ending {count} in progress, Ctrl-C again leaves at once"),
            _ => "leaving at once".to_owned(),
        };
        self.say(line, &json!({ "event": "stopping", "asked": asked, "running": running_count }));
    }

    /// Says once that the server does not answer.
    pub fn server_is_away(&self, status: &Status) {
        if !self.is_away.swap(true, Ordering::Relaxed) {
            let why = if status.message().is_empty() {
                output::causes(status)
            } else {
                status.message().to_owned()
            };
            let line = format!("the server does not answer ({why}), trying again");
            self.say(line, &json!({ "event": "server_away", "message": why }));
        }
    }

    /// Says once that it answers again.
    pub fn server_is_back(&self) {
        if self.is_away.swap(false, Ordering::Relaxed) {
            self.say("the server answers again".to_owned(), &json!({ "event": "server_back" }));
        }
    }
}

fn of_run(event: &str, run: &v1::ClaimedRun) -> Value {
    json!({ "event": event, "run_id": run.run_id, "schedule_id": run.schedule_id, "attempt": run.attempt })
}
