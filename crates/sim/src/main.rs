//! `cargo sim -- <seed>` runs one world and prints its knobs; `cargo sim -- --minutes 10` runs worlds for that long.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use punctual_sim::swarm::Knobs;
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
    match &words[..] {
        ["--minutes", minutes] if number(minutes).is_some() => {
            let length = Duration::from_secs(60 * number(minutes).unwrap_or(1));
            many(1, |began, _| began.elapsed() < length)
        }
        ["--worlds", worlds, rest @ ..] if number(worlds).is_some() => {
            let worlds = number(worlds).unwrap_or(1);
            let first = rest.first().and_then(|seed| number(seed)).unwrap_or(1);
            many(first, |_, done| done < worlds)
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
        Err(violation) => {
            eprintln!("broken: {violation}\nrepeat with: cargo sim -- {seed}");
            ExitCode::FAILURE
        }
    }
}

fn many(first: u64, goes_on: impl Fn(Instant, u64) -> bool) -> ExitCode {
    let began = Instant::now();
    let mut total = Summary::default();
    let mut seed = first;
    while goes_on(began, total.worlds) {
        match simulate(seed) {
            Ok(summary) => total.add(summary),
            Err(violation) => {
                eprintln!("broken: {violation}\nrepeat with: cargo sim -- {seed}");
                return ExitCode::FAILURE;
            }
        }
        seed += 1;
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
    let Summary { worlds, commits, occurrences, runs, .. } = summary;
    format!("{worlds} worlds, {occurrences} occurrences, {runs} runs, {commits} commits")
}
