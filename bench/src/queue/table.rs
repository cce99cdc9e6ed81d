//! Prints what was seen: a row as soon as it is measured, with the ratio to the fastest peer beside each of our numbers.

use super::plan::{self, Cell, Latency, Throughput};

/// Wide enough for "graphile-worker 0.18.0", and for three numbers and a ratio.
const WIDTH: usize = 30;
const LABEL: usize = 28;

pub fn print_throughput_head(names: &[String]) {
    println!("runs per second from enqueue to durably completed; handlers do nothing");
    print_head("batch x workers", names);
}

pub fn print_throughput(cell: Cell, names: &[String], row: &[Option<Throughput>]) {
    let rates: Vec<_> = row.iter().map(|seen| seen.map(Throughput::rate)).collect();
    print_rates(&format!("{} x {}", cell.batch, cell.workers), names, &rates);
}

pub fn print_bests(names: &[String], bests: &[Option<f64>]) {
    print_rates("best", names, bests);
}

pub fn print_latency_head(names: &[String]) {
    println!(
        "\nmilliseconds from when a run is due to when its handler starts, p50 / p99 at runs per second"
    );
    print_head("load", names);
}

pub fn print_latency(label: &str, names: &[String], rates: &[Option<f64>], row: &[Option<Latency>]) {
    let cells = row.iter().zip(rates).map(|(seen, rate)| match (seen, rate) {
        (Some(seen), Some(rate)) => format!("{:.1} / {:.1} at {rate:.0}", seen.p50, seen.p99),
        _ => "-".to_owned(),
    });
    let p99s: Vec<_> = row.iter().map(|seen| seen.map(|seen| seen.p99)).collect();
    // Less is better here: how many times longer the quickest peer takes.
    print_row(label, cells, &ratios(names, &p99s, f64::min, |ours, quickest| quickest / ours));
}

pub fn print_legend() {
    println!("\nin brackets: ours over the fastest peer; of latencies, p99 of the quickest peer over ours");
    println!(
        "-: failed or could not be held, see the notes; peers: PostgreSQL with fsync and synchronous commit"
    );
}

fn print_rates(label: &str, names: &[String], rates: &[Option<f64>]) {
    let cells = rates.iter().map(|rate| rate.map_or("-".to_owned(), |rate| format!("{rate:.0}")));
    print_row(label, cells, &ratios(names, rates, f64::max, |ours, fastest| ours / fastest));
}

/// For each of our numbers how it compares with the best of the peers; nothing for the peers themselves.
fn ratios(
    names: &[String],
    numbers: &[Option<f64>],
    best: fn(f64, f64) -> f64,
    ratio: fn(f64, f64) -> f64,
) -> Vec<Option<f64>> {
    let is_ours = |name: &String| plan::ALL_OURS.contains(&name.as_str());
    let of_peers = names.iter().zip(numbers).filter(|(name, _)| !is_ours(name));
    let best = of_peers.filter_map(|(_, number)| *number).reduce(best);
    let compare = |name, number: &Option<f64>| Some(ratio((*number).filter(|_| is_ours(name))?, best?));
    names.iter().zip(numbers).map(|(name, number)| compare(name, number)).collect()
}

fn print_head(label: &str, names: &[String]) {
    let names: String = names.iter().map(|name| format!("{name:>WIDTH$}")).collect();
    println!("{label:<LABEL$}{names}");
}

fn print_row(label: &str, cells: impl Iterator<Item = String>, ratios: &[Option<f64>]) {
    let cells = cells.zip(ratios).map(|(cell, ratio)| match ratio {
        Some(ratio) => format!("{cell} ({ratio:.1})"),
        None => cell,
    });
    let cells: String = cells.map(|cell| format!("{cell:>WIDTH$}")).collect();
    println!("{label:<LABEL$}{cells}");
}
