//! `cargo sim -- <seed>` runs one world and prints its knobs; `cargo sim -- --minutes 10` runs worlds for that long.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use punctual_sim::checker::Violation;
use punctual_sim::swarm::Knobs;
use punctual_sim::world::Met;
use punctual_sim::{Summary, simulate};

const HELP: &str = "\
cargo sim -- <seed>             one world, its knobs printed first
cargo sim -- --minutes <n>      worlds for n minutes of this machine's time
cargo sim -- --worlds <n> [<first seed>]
                                that many worlds, by default from seed 1
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().ok();
    let began = Instant::now();
    match &words[..] {
        ["--minutes", minutes] if number(minutes).is_some() => {
            let length = Duration::from_secs(60 * number(minutes).unwrap_or(1));
            many(1, |_| began.elapsed() < length)
        }
        ["--worlds", worlds, rest @ ..] if number(worlds).is_some() => {
            let worlds = number(worlds).unwrap_or(1);
            let first = rest.first().and_then(|seed| number(seed)).unwrap_or(1);
            many(first, |seed| seed < first + worlds)
        }
        [seed] if number(seed).is_some() => one(number(seed).unwrap_or(1)),
        _ => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}

fn one(seed: u64) -> ExitCode {
    eprintln!("{}", Knobs::draw(seed));
    match simulate(seed) {
        Ok(summary) => {
            eprintln!("holds: {}", told(summary));
            ExitCode::SUCCESS
        }
        Err(violation) => tell_broken(seed, &violation),
    }
}

fn tell_broken(seed: u64, violation: &Violation) -> ExitCode {
    eprintln!("broken: {violation}\nrepeat with: cargo sim -- {seed}");
    ExitCode::FAILURE
}

/// Worlds are independent: each processor takes the next seed. Of several broken ones the first is told.
fn many(first: u64, goes_on: impl Fn(u64) -> bool + Sync) -> ExitCode {
    let began = Instant::now();
    let (next, found) = (AtomicU64::new(first), AtomicBool::new(false));
    let total = Mutex::new((Summary::default(), Vec::new()));
    let work = || {
        while !found.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !goes_on(seed) {
                return;
            }
            let outcome = simulate(seed);
            found.fetch_or(outcome.is_err(), Ordering::Relaxed);
            let mut total = total.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            match outcome {
                Ok(summary) => total.0.add(summary),
                Err(violation) => total.1.push((seed, violation)),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let (total, broken) = total.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((seed, violation)) = broken.iter().min_by_key(|(seed, _)| *seed) {
        return tell_broken(*seed, violation);
    }
    let seconds = began.elapsed().as_secs_f64();
    let years = total.schedule_seconds as f64 / (365.25 * 86_400.0);
    eprintln!(
        "holds: {} in {seconds:.1} s, {:.0} schedule-years a minute",
        told(total),
        years / seconds * 60.0
    );
    ExitCode::SUCCESS
}

fn told(summary: Summary) -> String {
    let Summary { worlds, commits, occurrences, runs, met, .. } = summary;
    let Met { taken, fenced, told, answered, refused, judged } = met;
    format!(
        "{worlds} worlds, {occurrences} occurrences, {runs} runs, {commits} commits, {taken} shards taken, \
         {fenced} drivers fenced, {answered} of {told} ends written by their owners and {refused} refused, owners judged {judged} times"
    )
}
