//! What the engine counts: all names and help texts in one place, labels from enums only.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jiff::SignedDuration;
use punctual_core::{NotStarted, Outcome, Verdict};

/// How often something happened.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts.
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Changes a level that several parts make up: one part of it was that high, and now is this.
    pub fn shift(&self, from: usize, to: usize) {
        self.0.fetch_add((to as u64).wrapping_sub(from as u64), Relaxed);
    }

    /// Sets a level.
    pub fn set(&self, number: u64) {
        self.0.store(number, Relaxed);
    }
}

/// How values are spread, in buckets with fixed bounds.
pub struct Histogram {
    bounds: &'static [f64],
    buckets: Vec<Counter>,
    /// In millionths.
    sum: Counter,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Histogram {
        Histogram {
            bounds,
            buckets: (0..=bounds.len()).map(|_| Counter::default()).collect(),
            sum: Counter::default(),
        }
    }

    /// Counts a value.
    pub fn observe(&self, value: f64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.buckets[place].add(1);
        self.sum.add((value.max(0.0) * 1e6) as u64);
    }

    /// Counts a length of time, in seconds.
    pub fn observe_duration(&self, length: SignedDuration) {
        self.observe(length.as_secs_f64().max(0.0));
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(Counter::get).sum()
    }

    /// The counts so far.
    pub fn snapshot(&self) -> Spread {
        Spread { bounds: self.bounds, counts: self.buckets.iter().map(Counter::get).collect() }
    }

    /// What was counted since a snapshot.
    pub fn since(&self, before: &Spread) -> Spread {
        let now = self.snapshot();
        let counts = now.counts.iter().zip(&before.counts).map(|(now, before)| now - before);
        Spread { bounds: self.bounds, counts: counts.collect() }
    }

    fn render(&self, text: &mut String, name: &str) {
        let mut total = 0;
        for (bound, bucket) in self.bounds.iter().zip(&self.buckets) {
            total += bucket.get();
            let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {total}");
        }
        let count = self.count();
        let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum {}", self.sum.get() as f64 / 1e6);
        let _ = writeln!(text, "{name}_count {count}");
    }
}

impl Spread {
    /// The buckets: a bound, none for the last one, and how many values were within it.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<f64>, u64)> {
        self.counts.iter().enumerate().map(|(index, count)| (self.bounds.get(index).copied(), *count))
    }
}

/// How values were spread at one time.
#[derive(Clone, Debug)]
pub struct Spread {
    bounds: &'static [f64],
    counts: Vec<u64>,
}

impl Spread {
    /// The value below which this share of all values lies, as exact as the buckets are; infinite beyond the last one.
    pub fn quantile(&self, share: f64) -> f64 {
        let total: u64 = self.counts.iter().sum();
        let wanted = total as f64 * share;
        let mut seen = 0.0;
        for (index, count) in self.counts.iter().enumerate() {
            let (before, within) = (seen, *count as f64);
            seen += within;
            if seen >= wanted && within > 0.0 {
                let low = if index == 0 { 0.0 } else { self.bounds[index - 1] };
                let Some(high) = self.bounds.get(index) else { return f64::INFINITY };
                return low + (high - low) * ((wanted - before) / within);
            }
        }
        0.0
    }
}

const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.0125, 0.015, 0.0175, 0.02, 0.025, 0.03, 0.04, 0.05,
    0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0, 3_600.0,
];
const SIZES: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0];

const VERDICTS: [&str; 7] = ["started", "skipped", "missed", "dropped", "paused", "exhausted", "superseded"];
const OUTCOMES: [&str; 5] = ["succeeded", "failed", "timed_out", "cancelled", "terminated"];

/// Everything that the engine counts.
pub struct Metrics {
    verdicts: [Counter; 7],
    outcomes: [Counter; 5],
    /// From when a start was due until it was durable.
    pub lateness: Histogram,
    /// From when a run was due until a worker had it.
    pub claim_delay: Histogram,
    /// Units in one durable write.
    pub batch_size: Histogram,
    /// Units that another writer was faster with.
    pub conflicts: Counter,
    /// Writes or reads that the database did not answer.
    pub stumbles: Counter,
    /// Schedules that are broken and do nothing.
    pub quarantined: Counter,
    /// Schedules with a timer.
    pub timers: Counter,
    /// Schedules in memory.
    pub trees: Counter,
    /// Requests that wait for an answer.
    pub requests: Counter,
    /// Runs that workers have.
    pub running: Counter,
    /// Attempts that were taken from a silent worker.
    pub takeovers: Counter,
    /// Attempts that will be made again.
    pub retries: Counter,
    /// Timers that were missing, found by the self-check.
    pub timers_mended: Counter,
    /// Rows removed because their time was over.
    pub retired: Counter,
    /// Shards that this node drives.
    pub shards: Counter,
    /// Shards that were given to another node.
    pub handovers: Counter,
    /// Shards that were taken after their owner was gone.
    pub shard_takeovers: Counter,
    /// Runs that this node looks after in place of another one.
    pub runs_adopted: Counter,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            verdicts: Default::default(),
            outcomes: Default::default(),
            lateness: Histogram::new(SECONDS),
            claim_delay: Histogram::new(SECONDS),
            batch_size: Histogram::new(SIZES),
            conflicts: Counter::default(),
            stumbles: Counter::default(),
            quarantined: Counter::default(),
            timers: Counter::default(),
            trees: Counter::default(),
            requests: Counter::default(),
            running: Counter::default(),
            takeovers: Counter::default(),
            retries: Counter::default(),
            timers_mended: Counter::default(),
            retired: Counter::default(),
            shards: Counter::default(),
            handovers: Counter::default(),
            shard_takeovers: Counter::default(),
            runs_adopted: Counter::default(),
        }
    }
}

impl Metrics {
    /// Counts verdicts.
    pub fn decided(&self, verdict: Verdict, count: u64) {
        let place = match verdict {
            Verdict::Started => 0,
            Verdict::NotStarted(NotStarted::Skipped(_)) => 1,
            Verdict::NotStarted(NotStarted::Missed(_)) => 2,
            Verdict::NotStarted(NotStarted::Dropped) => 3,
            Verdict::NotStarted(NotStarted::Paused) => 4,
            Verdict::NotStarted(NotStarted::Exhausted) => 5,
            Verdict::NotStarted(NotStarted::Superseded(_)) => 6,
        };
        self.verdicts[place].add(count);
    }

    /// Counts a run that ended.
    pub fn ended(&self, outcome: Outcome) {
        let place = match outcome {
            Outcome::Succeeded => 0,
            Outcome::Failed => 1,
            Outcome::TimedOut => 2,
            Outcome::Cancelled => 3,
            Outcome::Terminated => 4,
        };
        self.outcomes[place].add(1);
    }

    /// How many occurrences were started.
    pub fn started(&self) -> u64 {
        self.verdicts[0].get()
    }

    /// Occurrences so far, by what became of them.
    pub fn verdicts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        VERDICTS.into_iter().zip(self.verdicts.iter().map(Counter::get))
    }

    /// Runs so far, by how they ended.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        OUTCOMES.into_iter().zip(self.outcomes.iter().map(Counter::get))
    }

    /// Everything in the text form that Prometheus reads.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let head = |text: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        let name = "punctual_occurrences_total";
        head(&mut text, name, "counter", "Occurrences by what became of them.");
        for (word, counter) in VERDICTS.iter().zip(&self.verdicts) {
            let _ = writeln!(text, "{name}{{verdict=\"{word}\"}} {}", counter.get());
        }
        let name = "punctual_runs_closed_total";
        head(&mut text, name, "counter", "Runs by how they ended.");
        for (word, counter) in OUTCOMES.iter().zip(&self.outcomes) {
            let _ = writeln!(text, "{name}{{outcome=\"{word}\"}} {}", counter.get());
        }
        let histograms = [
            (
                "punctual_start_lateness_seconds",
                "From when a start was due until it was durable.",
                &self.lateness,
            ),
            (
                "punctual_claim_delay_seconds",
                "From when a run was due until a worker had it.",
                &self.claim_delay,
            ),
            ("punctual_commit_batch_size", "Units in one durable write.", &self.batch_size),
        ];
        for (name, help, histogram) in histograms {
            head(&mut text, name, "histogram", help);
            histogram.render(&mut text, name);
        }
        let numbers = [
            (
                "punctual_commit_conflicts_total",
                "counter",
                "Units that another writer was faster with.",
                &self.conflicts,
            ),
            (
                "punctual_store_failures_total",
                "counter",
                "Reads or writes that the database did not answer.",
                &self.stumbles,
            ),
            (
                "punctual_takeovers_total",
                "counter",
                "Attempts that were taken from a silent worker.",
                &self.takeovers,
            ),
            ("punctual_retries_total", "counter", "Attempts that will be made again.", &self.retries),
            (
                "punctual_timers_mended_total",
                "counter",
                "Schedules that nobody would have woken, found by the self-check.",
                &self.timers_mended,
            ),
            (
                "punctual_rows_retired_total",
                "counter",
                "Rows removed because their time was over.",
                &self.retired,
            ),
            (
                "punctual_shard_handovers_total",
                "counter",
                "Shards that this node gave to another one.",
                &self.handovers,
            ),
            (
                "punctual_shard_takeovers_total",
                "counter",
                "Shards that this node took because their owner was gone.",
                &self.shard_takeovers,
            ),
            (
                "punctual_runs_adopted_total",
                "counter",
                "Runs that this node looks after in place of another one.",
                &self.runs_adopted,
            ),
            (
                "punctual_schedules_quarantined",
                "gauge",
                "Schedules that are broken and do nothing.",
                &self.quarantined,
            ),
            ("punctual_shards", "gauge", "Shards that this node drives.", &self.shards),
            ("punctual_timers", "gauge", "Schedules with a timer on this node.", &self.timers),
            ("punctual_trees", "gauge", "Schedules in the memory of this node.", &self.trees),
            ("punctual_requests", "gauge", "Requests that wait for an answer.", &self.requests),
            ("punctual_runs_running", "gauge", "Runs that workers have.", &self.running),
        ];
        for (name, kind, help, counter) in numbers {
            head(&mut text, name, kind, help);
            let _ = writeln!(text, "{name} {}", counter.get());
        }
        text
    }
}
