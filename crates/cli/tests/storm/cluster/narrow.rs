//! A queue with limits that all nodes hand out from: at no time more runs than allowed, of one key too, and never more starts.
//!
//! How many runs were in progress is judged by what workers saw, all of them by one clock: an attempt was certainly in progress
//! from the moment its worker had it until that worker began to report its end, or might have been given up. Stored times tell
//! less: a node reads the time of a claim and of an end before it writes them, and may wait in between, so that stored intervals
//! may overlap although the runs did not.
//!
//! The rate is judged by stored times: a node that hands out compares its reading of the time with the stored readings of the
//! starts before, in one transaction with the queue locked, and stores it. So there is no window with too many whatever the
//! clocks say, and nothing has to be allowed for. Only the start of a run's last attempt is kept with it; how many there were in
//! all is known by their numbers, and must be what the queue has counted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use punctual_api::v1;
use punctual_testkit::Postgres;

use super::DATABASE;
use crate::plan::{Plan, length};
use crate::workers::{Attempt, Held};

pub const QUEUE: &str = "narrow";

const CONCURRENCY_MAX: usize = 3;
const KEY_CONCURRENCY_MAX: usize = 1;
const STARTS_MAX: usize = 20;
const WINDOW: Duration = Duration::from_secs(1);

/// Schedules, some of which share a key. What they ask for is well below what the limits let through, so that what is left over
/// from an outage comes to an end, and in bursts that the limits have to hold back.
const SCHEDULES: usize = 8;
const KEYS: usize = 5;

pub fn queue() -> v1::Queue {
    v1::Queue {
        queue: QUEUE.into(),
        concurrency_max: Some(CONCURRENCY_MAX as u32),
        key_concurrency_max: Some(KEY_CONCURRENCY_MAX as u32),
        rate: Some(v1::Rate { starts_max: STARTS_MAX as u32, per: length(WINDOW) }),
        ..Default::default()
    }
}

pub fn plans() -> Vec<Plan> {
    let plan = |index: usize| Plan {
        queue: QUEUE,
        handler: crate::plan::BRIEF,
        key: format!("key-{}", index % KEYS),
        ..Plan::every_second(&format!("narrow-{index}"), v1::overlap::Policy::AllowAll)
    };
    (0..SCHEDULES).map(plan).collect()
}

/// What is stored about the queue when nothing is on its way any more.
pub struct Stored {
    /// When the last attempt of each run began, in nanoseconds.
    starts: Vec<i64>,
    /// The number of the last start, by which the rate is kept.
    counted: u64,
    /// Keys of which something runs.
    busy: u64,
}

impl Stored {
    pub fn read(postgres: &Postgres) -> Stored {
        let ask = |what: &str, table: &str, and: &str| {
            let sql = format!(
                "SELECT {what} FROM punctual.{table} AS found JOIN punctual.queue USING (queue) WHERE name = '{QUEUE}' {and}"
            );
            postgres.query(DATABASE, &sql).unwrap()
        };
        // A run that ended while it waited has no start of its own any more.
        let starts = ask("since", "run_closed", "AND state = 2");
        let number = |answer: String| answer.trim().parse().unwrap();
        Stored {
            starts: starts.lines().map(|line| line.parse().unwrap()).collect(),
            counted: number(ask("coalesce(max(sequence), 0)", "queue_start", "")),
            busy: number(ask("count(*)", "queue_key", "AND running <> 0")),
        }
    }
}

/// Gives the figures, or says what is wrong.
pub fn check(runs: &[v1::Run], held: &Held, stored: Stored) -> Result<String, String> {
    let key_of: BTreeMap<&str, &str> = runs.iter().map(|run| (&run.run_id[..], &run.key[..])).collect();
    let (mut all, mut of_key) = (Vec::new(), BTreeMap::<&str, Vec<(Instant, Instant)>>::new());
    for ((run_id, _), Attempt { from, until }) in held {
        let Some(key) = key_of.get(&run_id[..]) else { continue };
        all.push((*from, *until));
        of_key.entry(key).or_default().push((*from, *until));
    }
    let at_once = most_at_once(&all);
    let of_one_key = of_key.values().map(|held| most_at_once(held)).max().unwrap_or_default();
    let in_a_window = most_in_a_window(stored.starts, WINDOW.as_nanos() as i64);
    for (found, allowed, what) in [
        (at_once, CONCURRENCY_MAX, "runs in progress at once"),
        (of_one_key, KEY_CONCURRENCY_MAX, "runs of one key in progress at once"),
        (in_a_window, STARTS_MAX, "starts in a window"),
    ] {
        if found > allowed {
            return Err(format!("{found} {what}, {allowed} allowed"));
        }
    }
    let attempts: u64 = runs.iter().map(|run| u64::from(run.attempt)).sum();
    if stored.counted != attempts {
        return Err(format!("{attempts} attempts were made, {} were counted", stored.counted));
    }
    if stored.busy > 0 {
        return Err(format!("nothing runs, and {} keys are said to be busy", stored.busy));
    }
    Ok(format!(
        "{attempts} attempts of {} runs, at most {at_once} at once, {of_one_key} of one key, {in_a_window} in a second",
        runs.len()
    ))
}

/// How many of these overlap. Who ends at the moment at which another begins does not.
fn most_at_once(intervals: &[(Instant, Instant)]) -> usize {
    let certain = intervals.iter().filter(|(from, until)| from < until);
    let mut edges: Vec<(Instant, i32)> =
        certain.flat_map(|(from, until)| [(*from, 1), (*until, -1)]).collect();
    edges.sort_unstable();
    let open = edges.into_iter().scan(0, |open, (_, change)| {
        *open += change;
        Some(*open)
    });
    open.max().unwrap_or_default() as usize
}

/// How many there are in any window of a length, its end left out.
fn most_in_a_window(mut starts: Vec<i64>, window: i64) -> usize {
    starts.sort_unstable();
    let within = |first: usize| starts[first..].partition_point(|start| *start < starts[first] + window);
    (0..starts.len()).map(within).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs with a key and when a worker had them, in milliseconds; all of them began in one second.
    fn story(held: &[(&str, u64, u64)]) -> (Vec<v1::Run>, Held, Stored) {
        let begun = Instant::now();
        let at = |millis: u64| begun + Duration::from_millis(millis);
        let name = |index: usize| format!("run-{index}");
        let run = |(index, (key, ..)): (usize, &(&str, u64, u64))| v1::Run {
            run_id: name(index),
            key: (*key).into(),
            attempt: 1,
            ..Default::default()
        };
        let runs: Vec<v1::Run> = held.iter().enumerate().map(run).collect();
        let attempt = |(index, (_, from, until)): (usize, &(&str, u64, u64))| {
            ((name(index), 1), Attempt { from: at(*from), until: at(*until) })
        };
        let stored = Stored { starts: vec![0; held.len()], counted: held.len() as u64, busy: 0 };
        (runs, held.iter().enumerate().map(attempt).collect(), stored)
    }

    #[track_caller]
    fn is_wrong((runs, held, stored): (Vec<v1::Run>, Held, Stored), said: &str) {
        let wrong = check(&runs, &held, stored).unwrap_err();
        assert!(wrong.contains(said), "{wrong}");
    }

    #[test]
    fn a_fourth_run_and_a_second_one_of_a_key_are_found() {
        let three = [("a", 0, 9), ("b", 1, 9), ("c", 2, 9)];
        let (runs, held, stored) = story(&[&three[..], &[("d", 9, 12)]].concat());
        check(&runs, &held, stored).unwrap();
        is_wrong(story(&[&three[..], &[("d", 8, 12)]].concat()), "4 runs in progress at once, 3 allowed");
        is_wrong(story(&[("a", 0, 9), ("a", 8, 12)]), "2 runs of one key in progress at once, 1 allowed");
    }

    #[test]
    fn a_start_too_many_in_any_window_is_found() {
        let one_by_one: Vec<(&str, u64, u64)> = (0..21).map(|place| ("a", place, place + 1)).collect();
        is_wrong(story(&one_by_one), "21 starts in a window, 20 allowed");
        let (runs, held, stored) = story(&one_by_one);
        let mut starts: Vec<i64> = (0..21).map(|place| place * 1_000_000).collect();
        starts[20] = WINDOW.as_nanos() as i64;
        check(&runs, &held, Stored { starts, ..stored }).unwrap();
    }

    #[test]
    fn attempts_that_were_not_counted_and_keys_that_stay_busy_are_found() {
        let (runs, held, stored) = story(&[("a", 0, 9)]);
        is_wrong(
            (runs.clone(), held.clone(), Stored { counted: 0, ..stored }),
            "1 attempts were made, 0 were counted",
        );
        is_wrong((runs, held, Stored { starts: vec![0], counted: 1, busy: 1 }), "1 keys are said to be busy");
    }
}
