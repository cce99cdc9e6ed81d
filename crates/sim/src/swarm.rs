//! Every knob of a world, drawn from its seed: each world is harsh in its own way.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{CatchupCount, Limits, OnResume, OverlapPolicy, Policies, Target};
use punctual_engine::shard::Settings;
use punctual_spec::{Interval, Spec};

use crate::random::Random;

/// The knobs. Chances are per thousand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// What all of this was drawn from.
    pub seed: u64,
    /// Machines that share the database.
    pub nodes: usize,
    /// Shards that they share out.
    pub shards: u32,
    /// How long the right to drive a shard lasts. Only its ratio to the rest matters: where months pass it is an hour or two.
    pub lease_seconds: i64,
    /// Schedules.
    pub schedules: usize,
    /// How long the faults last.
    pub length: SignedDuration,
    /// Seconds between two moments at which the world may turn unkind: a minute in dense worlds, hours in long ones.
    pub beat_seconds: i64,
    /// Seconds by which a node's clock may be off.
    pub skew_seconds_max: i64,
    /// A commit that did not happen.
    pub commit_fails: u32,
    /// A commit that happened, and nobody was told.
    pub reply_lost: u32,
    /// Seconds that a commit may take.
    pub commit_seconds_max: i64,
    /// A start call that fails.
    pub start_fails: u32,
    /// A start call that is refused for good.
    pub start_refused: u32,
    /// A start call without an answer, though it may have worked.
    pub start_silent: u32,
    /// A report of a run's end that never arrives.
    pub completion_lost: u32,
    /// A report that arrives twice.
    pub completion_twice: u32,
    /// A node that dies or comes back, per beat.
    pub crash: u32,
    /// A node that dies at a point where it waits for something outside of it: a commit, a call, an answer.
    pub crash_at_await: u32,
    /// A node that stands still, often beyond its lease, and goes on as if nothing had happened, per beat.
    pub stop: u32,
    /// A node that is cut from the database for a while, per beat.
    pub cut: u32,
    /// A database that is away for a while, for all, per beat.
    pub restart: u32,
    /// A node that is asked to give its shards away, or to take some again, per beat.
    pub drain: u32,
    /// A node that leaves in good order and comes back as another process, per beat.
    pub leave: u32,
    /// A command of a client, per beat and schedule.
    pub command: u32,
    /// Seconds that a run takes at most.
    pub run_seconds_max: i64,
    /// A read or a reservation of keys that fails, or takes long.
    pub load_fails: u32,
    /// A worker of which nothing is heard after it has taken a run.
    pub worker_dies: u32,
    /// The bounds of each node's shard.
    pub settings: Settings,
    /// A client or a worker that turns to any node, which serves it as a guest.
    pub guests: u32,
    /// Seconds that news take from node to node.
    pub news_seconds_max: i64,
    /// Such news that never arrive; the owner learns that it has missed some.
    pub news_lost: u32,
    /// Such news that arrive twice.
    pub news_twice: u32,
}

impl Knobs {
    /// Draws all knobs.
    pub fn draw(seed: u64) -> Knobs {
        let random = &mut Random::new(seed);
        let long = random.chance(330);
        let (hours, beat_seconds) =
            if long { (24 * random.between(30, 400), 6 * 3_600) } else { (random.between(2, 12), 60) };
        // Half of the knobs are off in each world, so that every fault is also met without the others.
        let maybe = |random: &mut Random, max: i64| {
            if random.chance(500) { random.between(1, max) as u32 } else { 0 }
        };
        let mut knobs = Knobs {
            seed,
            nodes: random.between(1, 4) as usize,
            shards: random.between(1, 5) as u32,
            lease_seconds: *random.pick(if long { &[7_200, 14_400] } else { &[10, 30, 90] }),
            schedules: random.between(1, 4) as usize,
            length: SignedDuration::from_hours(hours),
            beat_seconds,
            skew_seconds_max: {
                let most = *random.pick(&[20, 120]);
                i64::from(maybe(random, most))
            },
            commit_fails: maybe(random, 100),
            reply_lost: maybe(random, 100),
            commit_seconds_max: random.between(0, 3),
            start_fails: maybe(random, 300),
            start_refused: maybe(random, 30),
            start_silent: maybe(random, 100),
            completion_lost: maybe(random, 100),
            completion_twice: maybe(random, 200),
            crash: maybe(random, 60),
            stop: maybe(random, 60),
            cut: maybe(random, 60),
            restart: maybe(random, 30),
            drain: maybe(random, 60),
            leave: maybe(random, 60),
            command: maybe(random, 60),
            run_seconds_max: *random.pick(&[5, 120, 3_000]),
            crash_at_await: maybe(random, 20),
            load_fails: maybe(random, 100),
            worker_dies: maybe(random, 200),
            settings: settings(random),
            guests: maybe(random, 1_000),
            news_seconds_max: random.between(0, 20),
            news_lost: maybe(random, 200),
            news_twice: maybe(random, 200),
        };
        // Who gives up at the first try lets others see to it.
        knobs.settings.tries_max = *random.pick(&[1, 5, 2]);
        knobs
    }

    /// How long the right to drive a shard lasts.
    pub fn lease(&self) -> SignedDuration {
        SignedDuration::from_secs(self.lease_seconds)
    }

    /// The world without faults, for the end.
    pub fn healed(&self) -> Knobs {
        Knobs {
            skew_seconds_max: 0,
            commit_fails: 0,
            reply_lost: 0,
            start_fails: 0,
            start_refused: 0,
            start_silent: 0,
            completion_lost: 0,
            completion_twice: 0,
            crash: 0,
            crash_at_await: 0,
            load_fails: 0,
            worker_dies: 0,
            stop: 0,
            cut: 0,
            restart: 0,
            drain: 0,
            leave: 0,
            command: 0,
            news_lost: 0,
            news_twice: 0,
            run_seconds_max: 5,
            ..self.clone()
        }
    }
}

impl fmt::Display for Knobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#?}")
    }
}

/// The bounds of a shard: some so small that trees are forgotten, batches are full and keys run out.
fn settings(random: &mut Random) -> Settings {
    Settings {
        trees_max: *random.pick(&[1, 2, 50_000]),
        units_max: *random.pick(&[1, 2_000]),
        loads_max: *random.pick(&[1, 1_000]),
        batches_max: *random.pick(&[1, 2, 4]),
        changes_max: *random.pick(&[1, 3, 64]),
        keys_min: *random.pick(&[2_000, 10_000]),
        ..Settings::default()
    }
}

/// The bounds of simulated schedules: small, so that they are met.
pub fn limits(random: &mut Random, knobs: &Knobs) -> Limits {
    let (buffered_starts_max, buffer_reserve) = *random.pick(&[(3, 0), (20, 2), (1_000, 50)]);
    // Where every outage ends in a crowd of starts and reports that meet on one schedule, the crowd is bounded.
    let crowded = knobs.crash_at_await > 0;
    Limits {
        buffered_starts_max,
        buffer_reserve,
        starts_max: *random.pick(if crowded { &[10, 50] } else { &[50, 10_000] }),
        backfill_pass_max: *random.pick(&[2, 450]),
        backfill_starts_max: *random.pick(if crowded { &[5, 5] } else { &[5, 1_000] }),
        // The oracle knows no bound on what is dispatched at once.
        dispatches_max: usize::MAX,
        idle_time: SignedDuration::from_mins(*random.pick(&[20, 7 * 24 * 60])),
        retention: SignedDuration::from_mins(*random.pick(&[20, 7 * 24 * 60])),
        ..Limits::default()
    }
}

/// A schedule's spec: dense around a change of the clock in zones where that matters, or sparse over months.
pub fn spec(random: &mut Random, long: bool) -> Spec {
    let seconds = SignedDuration::from_secs;
    if long {
        let texts = [
            "0 3 * * *",
            "30 2 * * *",
            "0 9 * * MON-FRI",
            "0 */6 * * *",
            "0 0 1,15 * *",
            "15 1 * * SUN",
            "0 * * * *",
        ];
        let zones = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"];
        let spec = Spec::new().cron(*random.pick(&texts)).zone(*random.pick(&zones));
        return if random.chance(400) { spec.jitter(seconds(1_800)) } else { spec };
    }
    let spec = match random.between(0, 5) {
        0 => Spec::new().interval(Interval::every(seconds(*random.pick(&[10, 60, 600])))),
        1 => Spec::new().cron("* * * * *"),
        2 => Spec::new().cron("*/10 * * * *").cron("5 * * * *"),
        3 => Spec::new().cron("*/7 2 * * *").cron("30 * * * *").zone("Europe/Berlin"),
        4 => Spec::new().cron("*/15 * * * *").zone("Australia/Lord_Howe"),
        _ => Spec::new().interval(Interval::every(seconds(90)).phase(seconds(17))),
    };
    if random.chance(400) { spec.jitter(seconds(*random.pick(&[5, 50, 600]))) } else { spec }
}

/// A schedule's policies.
pub fn policies(random: &mut Random) -> Policies {
    let seconds = SignedDuration::from_secs;
    let overlaps = [
        OverlapPolicy::Skip,
        OverlapPolicy::BufferOne,
        OverlapPolicy::BufferAll,
        OverlapPolicy::CancelOther,
        OverlapPolicy::TerminateOther,
        OverlapPolicy::AllowAll,
    ];
    Policies {
        overlap: *random.pick(&overlaps),
        concurrency: *random.pick(&[1, 1, 1, 2, 3]),
        catchup_window: *random.pick(&[None, Some(seconds(10)), Some(seconds(300)), Some(seconds(3_600))]),
        catchup_count: *random.pick(&[
            CatchupCount::All,
            CatchupCount::All,
            CatchupCount::Latest(1),
            CatchupCount::Latest(3),
        ]),
        catchup_pace: *random.pick(&[None, Some(seconds(8))]),
        pause_after_failures: *random.pick(&[None, None, Some(2)]),
        on_resume: *random.pick(&[OnResume::Skip, OnResume::CatchUp]),
    }
}

/// Where a schedule's runs are started.
pub fn target(random: &mut Random) -> Target {
    *random.pick(&[Target::Outside, Target::Outside, Target::Queue])
}

/// When the world begins: three hours before the clocks of Berlin go forward, or back, or Lord Howe's do.
pub fn beginning(random: &mut Random) -> Timestamp {
    let starts =
        ["2022-03-26T22:00:00Z", "2022-10-29T22:00:00Z", "2022-04-02T12:00:00Z", "2022-06-01T00:00:00Z"];
    random.pick(&starts).parse().unwrap_or(Timestamp::UNIX_EPOCH)
}
