//! Prints what was seen: a row as soon as it is measured, with our ratio to the fastest peer last.

use super::plan::{self, Cell, Latency, Throughput};

/// Wide enough for "graphile-worker 0.18.0" and for three numbers.
const WIDTH: usize = 26;
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
    let ratio = ours_and_peers(names, &p99s)
        .and_then(|(ours, peers)| peers.into_iter().reduce(f64::min).map(|quickest| quickest / ours));
    print_row(label, cells, ratio);
}

pub fn print_legend() {
    println!("\nratio: ours over the fastest peer; of latencies, p99 of the quickest peer over ours");
    println!(
        "-: failed or could not be held, see the notes; peers: PostgreSQL with fsync and synchronous commit"
    );
}

fn print_rates(label: &str, names: &[String], rates: &[Option<f64>]) {
    let cells = rates.iter().map(|rate| rate.map_or("-".to_owned(), |rate| format!("{rate:.0}")));
    let ratio = ours_and_peers(names, rates)
        .and_then(|(ours, peers)| peers.into_iter().reduce(f64::max).map(|fastest| ours / fastest));
    print_row(label, cells, ratio);
}

/// Our number and those of the peers, if we are among the contenders.
fn ours_and_peers(names: &[String], numbers: &[Option<f64>]) -> Option<(f64, Vec<f64>)> {
    let ours = names.iter().position(|name| name == plan::OURS)?;
    let peers = numbers.iter().enumerate().filter(|(index, _)| *index != ours);
    Some((numbers[ours]?, peers.filter_map(|(_, number)| *number).collect()))
}

fn print_head(label: &str, names: &[String]) {
    let names: String = names.iter().map(|name| format!("{name:>WIDTH$}")).collect();
    println!("{label:<LABEL$}{names}{:>8}", "ratio");
}

fn print_row(label: &str, cells: impl Iterator<Item = String>, ratio: Option<f64>) {
    let cells: String = cells.map(|cell| format!("{cell:>WIDTH$}")).collect();
    let ratio = ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.1}"));
    println!("{label:<LABEL$}{cells}{ratio:>8}");
}
