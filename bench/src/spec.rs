//! Nanoseconds per `next`: ours, the crates `cron` and `croner`, and Python's croniter.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use punctual_spec::{Calendar, CompiledSpec, Cron, Dialect, Interval, Range, Spec};
use serde_json::{Value, json};

use crate::measure::{Contender, Times, in_turns};

mod peers;

/// Where every chain of questions begins: 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600;
/// Answers compared before anything is timed.
const COMPARED: usize = 60;
/// At least this much faster than the fastest right peer, on every spec that it can say.
const RATIO_GOAL: f64 = 3.0;
/// The sparsest spec takes at most this many times as long as the densest.
const SPREAD_GOAL: f64 = 20.0;

/// One row of the table. A peer's text is empty where it cannot say it.
struct Case {
    name: &'static str,
    spec: Spec,
    zone: &'static str,
    /// Quartz-like with seconds first, for the crate `cron`.
    cron: &'static str,
    /// For the crate `croner`.
    croner: &'static str,
    /// For Python's croniter, seconds first when there are six fields.
    croniter: &'static str,
}

fn cases() -> Vec<Case> {
    let temporal = |text: &str| Spec::new().cron(text);
    let quartz = |text: &str| Spec::new().cron_in(Dialect::Quartz, text);
    let case = |name, spec: Spec, zone, [cron, croner, croniter]: [&'static str; 3]| Case {
        name,
        spec: spec.zone(zone),
        zone,
        cron,
        croner,
        croniter,
    };
    vec![
        case("every second", quartz("* * * * * ?"), "UTC", ["* * * * * *", "* * * * * *", "* * * * * *"]),
        case("every minute", temporal("* * * * *"), "UTC", ["0 * * * * *", "* * * * *", "* * * * *"]),
        case(
            "every 5 minutes, New York",
            temporal("*/5 * * * *"),
            "America/New_York",
            ["0 */5 * * * *", "*/5 * * * *", "*/5 * * * *"],
        ),
        case(
            "weekdays 9:00, Berlin",
            temporal("0 9 * * MON-FRI"),
            "Europe/Berlin",
            ["0 0 9 * * MON-FRI", "0 9 * * MON-FRI", "0 9 * * MON-FRI"],
        ),
        case(
            "office hours by 15 min, New York",
            temporal("*/15 9-17 * * MON-FRI"),
            "America/New_York",
            ["0 */15 9-17 * * MON-FRI", "*/15 9-17 * * MON-FRI", "*/15 9-17 * * MON-FRI"],
        ),
        case(
            "1st and 15th, UTC",
            temporal("30 4 1,15 * *"),
            "UTC",
            ["0 30 4 1,15 * *", "30 4 1,15 * *", "30 4 1,15 * *"],
        ),
        case(
            "last Friday 17:00, Berlin",
            quartz("0 0 17 ? * FRIL"),
            "Europe/Berlin",
            ["", "0 17 * * FRI#L", "0 17 * * L5"],
        ),
        case(
            "last day 23:59, Tokyo",
            quartz("0 59 23 L * ?"),
            "Asia/Tokyo",
            ["", "59 23 L * *", "59 23 L * *"],
        ),
        case("29 February, UTC", temporal("0 0 29 2 *"), "UTC", ["0 0 0 29 2 *", "0 0 29 2 *", "0 0 29 2 *"]),
        case(
            "29 February, New York",
            temporal("0 12 29 2 *"),
            "America/New_York",
            ["0 0 12 29 2 *", "0 12 29 2 *", "0 12 29 2 *"],
        ),
        case(
            "every hour (interval)",
            Spec::new().interval(Interval::every(SignedDuration::from_hours(1))),
            "UTC",
            ["", "", ""],
        ),
        case("hourly but not at night, Berlin", office_interval(), "Europe/Berlin", ["", "", ""]),
        case("50 calendars, 50 exclusions", fifty(), "Europe/Berlin", ["", "", ""]),
    ]
}

fn office_interval() -> Spec {
    let night = Cron::new(Dialect::Temporal, "* * 0-5,22-23 * * * *");
    Spec::new().interval(Interval::every(SignedDuration::from_hours(1))).exclude_cron(night)
}

fn fifty() -> Spec {
    (0..50).fold(Spec::new(), |spec, index| {
        let mut calendar = Calendar::midnight();
        calendar.hour = vec![Range::at(index % 24)];
        calendar.minute = vec![Range::at(index)];
        let mut holiday = Calendar::every_second();
        holiday.month = vec![Range::at(index % 12 + 1)];
        holiday.day_of_month = vec![Range::at(index % 28 + 1)];
        spec.calendar(calendar).exclude(holiday)
    })
}

pub fn run() -> Result<()> {
    let cases = cases();
    let python = python_times(&cases)?;
    println!(
        "{:<34}{:>16}{:>20}{:>20}{:>14}{:>8}",
        "ns per next, median (min-max)", "punctual", "cron", "croner", "croniter", "ratio"
    );
    let mut ours_by_case = Vec::new();
    let mut missed = Vec::new();
    for case in &cases {
        let compiled = case.spec.compile()?;
        let expected = first_answers(|after| ours(&compiled, after));
        let cron = peers::Cron::new(case.cron, case.zone)?;
        let croner = peers::Croner::new(case.croner, case.zone)?;
        let rights = [
            cron.as_ref().map(|peer| first_answers(|after| peer.next(after)) == expected),
            croner.as_ref().map(|peer| first_answers(|after| peer.next(after)) == expected),
        ];
        let mut contenders: Vec<Contender<'_>> = vec![chained(|after| ours(&compiled, after))];
        if let Some(peer) = &cron {
            contenders.push(chained(|after| peer.next(after)));
        }
        if let Some(peer) = &croner {
            contenders.push(chained(|after| peer.next(after)));
        }
        let times = in_turns(&mut contenders);
        let mut rest = times[1..].iter().copied();
        let mut cells = Vec::new();
        let mut fastest_right = f64::INFINITY;
        for right in rights {
            let cell = right.map(|right| (rest.next().expect("one time a contender"), right));
            if let Some((times, true)) = cell {
                fastest_right = fastest_right.min(times.median);
            }
            cells.push(cell);
        }
        let ratio = fastest_right / times[0].median;
        print_row(case.name, times[0], &cells, python.get(case.name).copied(), ratio);
        ours_by_case.push(times[0].median);
        if ratio.is_finite() && ratio < RATIO_GOAL {
            missed.push(format!("{}: {ratio:.1} times", case.name));
        }
    }
    // The last row is many specs in one; density is about single rules.
    let single = &ours_by_case[..ours_by_case.len() - 1];
    let spread =
        single.iter().copied().fold(0.0, f64::max) / single.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "\nratio: the fastest peer whose first {COMPARED} answers are right, over ours; goal {RATIO_GOAL} on every row"
    );
    println!("slowest over fastest of our rows but the last: {spread:.1}; goal {SPREAD_GOAL}");
    println!("(x): answers differ from ours, which the brute-force oracle has checked; -: cannot be said");
    if !missed.is_empty() {
        println!("missed: {}", missed.join("; "));
    }
    Ok(())
}

fn ours(compiled: &CompiledSpec, after: i64) -> Option<i64> {
    let after = Timestamp::from_second(after).ok()?;
    compiled.next(after).map(|occurrence| occurrence.nominal_time.as_second())
}

/// A contender that goes from answer to answer, and back to the start after 50 years or the last one.
fn chained<'a>(next: impl Fn(i64) -> Option<i64> + 'a) -> Contender<'a> {
    const END: i64 = START + 50 * 365 * 86_400;
    let mut at = START;
    Box::new(move || {
        at = next(at).filter(|at| *at < END).unwrap_or(START);
        at
    })
}

fn first_answers(next: impl Fn(i64) -> Option<i64>) -> Vec<i64> {
    // Peers stop at different years, so only this century's first part is compared.
    const END: i64 = START + 20 * 365 * 86_400;
    let mut at = START;
    std::iter::from_fn(|| {
        at = next(at).filter(|at| *at < END)?;
        Some(at)
    })
    .take(COMPARED)
    .collect()
}

fn print_row(name: &str, ours: Times, peers: &[Option<(Times, bool)>], python: Option<f64>, ratio: f64) {
    let timed = |times: Times| format!("{:.0} ({:.0}-{:.0})", times.median, times.fastest, times.slowest);
    let cells = peers.iter().map(|cell| match cell {
        None => format!("{:>20}", "-"),
        Some((times, right)) => {
            format!("{:>20}", format!("{}{}", timed(*times), if *right { "" } else { " x" }))
        }
    });
    let python = python.map_or("-".into(), |nanos| format!("{nanos:.0}"));
    let ratio = if ratio.is_finite() { format!("{ratio:.1}") } else { "-".into() };
    println!("{name:<34}{:>16}{}{python:>14}{ratio:>8}", timed(ours), cells.collect::<String>());
}

/// Times croniter in a Python of its own, if `PUNCTUAL_BENCH_PYTHON` names one that has it.
fn python_times(cases: &[Case]) -> Result<BTreeMap<String, f64>> {
    let Ok(python) = std::env::var("PUNCTUAL_BENCH_PYTHON") else {
        eprintln!("note: no Python with croniter, its column stays empty");
        return Ok(BTreeMap::new());
    };
    let asked: Vec<Value> = cases
        .iter()
        .filter(|case| !case.croniter.is_empty())
        .map(|case| json!({ "name": case.name, "expr": case.croniter, "zone": case.zone, "start": START }))
        .collect();
    let mut child = Command::new(&python)
        .args(["-c", include_str!("spec/croniter_times.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {python}"))?;
    child.stdin.take().context("no pipe to Python")?.write_all(Value::from(asked).to_string().as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "croniter's script failed");
    Ok(serde_json::from_slice(&output.stdout)?)
}
