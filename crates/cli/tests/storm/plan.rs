//! What is on while servers die: schedules of every overlap policy, alone and with room for two.

use std::time::Duration;

use punctual_api::v1;
use punctual_api::v1::overlap::Policy;

pub const QUEUE: &str = "storm";
pub const NAMESPACE: &str = "default";

/// The function of schedules that stop others: its runs go on until they are told to stop, so that somebody has to.
pub const UNTIL_STOPPED: &str = "until-stopped";

/// The function of schedules whose runs are short, and whose workers seldom die.
pub const BRIEF: &str = "brief";

/// A schedule of the storm.
pub struct Plan {
    pub name: String,
    pub overlap: Policy,
    pub concurrency: u32,
    pub every_seconds: i64,
    /// Occurrences are due anywhere between their second and the next one.
    pub is_spread: bool,
    pub queue: &'static str,
    pub handler: &'static str,
    /// What the queue's limits of a key apply to.
    pub key: String,
}

impl Plan {
    pub fn every_second(name: &str, overlap: Policy) -> Plan {
        let stops_others = matches!(overlap, Policy::CancelOther | Policy::TerminateOther);
        Plan {
            name: name.into(),
            overlap,
            concurrency: 1,
            every_seconds: 1,
            is_spread: false,
            queue: QUEUE,
            handler: if stops_others { UNTIL_STOPPED } else { "work" },
            key: String::new(),
        }
    }

    /// Whether a later start wants those before it to end.
    pub fn stops_others(&self) -> bool {
        self.handler == UNTIL_STOPPED
    }

    pub fn create(&self) -> v1::CreateScheduleRequest {
        let seconds = |seconds: i64| Some(prost_types::Duration { seconds, nanos: 0 });
        let start_to_close = if self.stops_others() { 30 } else { 4 };
        let action = v1::QueueAction {
            queue: self.queue.into(),
            handler: self.handler.into(),
            key: self.key.clone(),
            retry: Some(v1::RetryPolicy {
                attempts_max: Some(50),
                backoff_first: seconds(0),
                ..Default::default()
            }),
            timeouts: Some(v1::Timeouts {
                start_to_close: seconds(start_to_close),
                heartbeat: seconds(2),
                ..Default::default()
            }),
            ..Default::default()
        };
        let interval = v1::Interval { every: seconds(self.every_seconds), ..Default::default() };
        let jitter = seconds(1).filter(|_| self.is_spread);
        let schedule = v1::Schedule {
            spec: Some(v1::Spec { intervals: vec![interval], jitter, ..Default::default() }),
            action: Some(v1::Action { kind: Some(v1::action::Kind::Queue(action)), ..Default::default() }),
            policies: Some(v1::Policies {
                overlap: self.overlap.into(),
                concurrency: Some(self.concurrency),
                ..Default::default()
            }),
            ..Default::default()
        };
        v1::CreateScheduleRequest {
            namespace: NAMESPACE.into(),
            schedule_id: self.name.clone(),
            request_id: format!("create {}", self.name),
            schedule: Some(schedule),
            ..Default::default()
        }
    }
}

/// The queue of all schedules that name no other; it has no limits.
pub fn queue() -> v1::Queue {
    v1::Queue { queue: QUEUE.into(), ..Default::default() }
}

/// What both storms have.
pub fn plans() -> Vec<Plan> {
    let policies = [
        ("skip", Policy::Skip),
        ("buffer-one", Policy::BufferOne),
        ("buffer-all", Policy::BufferAll),
        ("cancel-other", Policy::CancelOther),
        ("terminate-other", Policy::TerminateOther),
        ("allow-all", Policy::AllowAll),
    ];
    let mut plans = Vec::new();
    for (word, overlap) in policies {
        for concurrency in [1, 2] {
            for every_seconds in [1, 3] {
                let name = format!("{word}-{concurrency}-every-{every_seconds}");
                plans.push(Plan { concurrency, every_seconds, ..Plan::every_second(&name, overlap) });
            }
        }
    }
    plans
}

/// A length of time, as requests have it.
pub fn length(length: Duration) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds: length.as_secs() as i64, nanos: length.subsec_nanos() as i32 })
}
