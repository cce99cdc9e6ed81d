//! Nanoseconds per call for several contenders, taken in turns.

use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;
const ROUND_TIME: Duration = Duration::from_millis(40);

/// The times of one contender, in nanoseconds per call.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub median: f64,
    pub fastest: f64,
    pub slowest: f64,
}

/// One contender: each call moves it on to its next answer.
pub type Contender<'a> = Box<dyn FnMut() -> i64 + 'a>;

/// Runs all contenders round by round.
pub fn in_turns(contenders: &mut [Contender<'_>]) -> Vec<Times> {
    let calls: Vec<u32> = contenders.iter_mut().map(calls_per_round).collect();
    let mut rounds = vec![Vec::with_capacity(ROUNDS); contenders.len()];
    for _ in 0..ROUNDS {
        for ((contender, calls), times) in contenders.iter_mut().zip(&calls).zip(&mut rounds) {
            times.push(time(contender, *calls));
        }
    }
    rounds.into_iter().map(summary).collect()
}

fn calls_per_round(contender: &mut Contender<'_>) -> u32 {
    let nanos = time(contender, 20).max(1.0);
    (ROUND_TIME.as_nanos() as f64 / nanos).clamp(20.0, 2_000_000.0) as u32
}

fn time(contender: &mut Contender<'_>, calls: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(contender());
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn summary(mut times: Vec<f64>) -> Times {
    times.sort_by(f64::total_cmp);
    Times { median: times[times.len() / 2], fastest: times[0], slowest: times[times.len() - 1] }
}
