//! The goals of a cluster, each beside what was measured in this run.

use punctual_engine::EngineConfig;

/// What the parts that ran have measured; nothing of those that did not.
#[derive(Default)]
pub struct Figures {
    pub steady: Vec<Steady>,
    /// Transactions for each start at the same load, by nodes.
    pub transactions: Vec<(usize, f64)>,
    pub idle: Vec<Idle>,
    /// The most starts a second that DBOS has recorded or completed.
    pub dbos: Option<f64>,
    /// The best of each contender, in runs per second.
    pub queues: Vec<(String, f64)>,
    /// The longest lateness of starts each time when a node left or came in order, in milliseconds.
    pub hand_over: Vec<f64>,
    /// The same for each time when one died.
    pub failover: Vec<f64>,
    /// Completions with a snapshot held open, as a share of those without.
    pub snapshot: Option<f64>,
}

/// What was seen of so many nodes.
pub struct Steady {
    pub nodes: usize,
    pub with_worker: bool,
    /// Starts a second; what bare statements do at most is beside it.
    pub best: f64,
    pub ceiling: f64,
    /// The highest load that was kept up with, and transactions for each start under it.
    pub kept_up: usize,
    pub transactions: Option<f64>,
    /// At half of that load, p99 in milliseconds.
    pub lateness: Option<f64>,
}

/// Transactions a second for each node where nothing is due.
pub struct Idle {
    pub schedules: usize,
    pub nodes: usize,
    pub rate: f64,
}

impl Figures {
    /// Starts a second that one node without a worker keeps up with, as a multiple of what DBOS does.
    pub fn over_dbos(&self) -> Option<f64> {
        let ours = self.steady.iter().find(|seen| seen.nodes == 1 && !seen.with_worker)?;
        Some(ours.kept_up as f64 / self.dbos?)
    }

    /// The best of the contender whose name begins so.
    fn queue(&self, name: &str) -> Option<f64> {
        self.queues.iter().find(|(contender, _)| contender.starts_with(name)).map(|(_, best)| *best)
    }
}

/// Transactions for each start, under a full load.
const TRANSACTIONS_MAX: f64 = 0.1;

/// With more nodes a start may need so many times as many transactions as with one: what two runs differ by is no growth.
const GROWTH_MAX: f64 = 1.3;

/// Prints all goals.
pub fn print(figures: &Figures) {
    println!("\n{:<70}{:<6}measured", "goal", "met");
    for nodes in [1, 3] {
        let seen = figures.steady.iter().find(|seen| seen.nodes == nodes && !seen.with_worker);
        let share = seen.map(|seen| seen.best / seen.ceiling);
        let goal = format!("starts/s, {nodes} nodes: at least 0.5 of the raw ceiling");
        row(&goal, share.map(|share| (share >= 0.5, format!("{share:.3}"))));
    }
    let times = figures.over_dbos();
    row(
        "starts/s kept up with by one node: at least 500 times what DBOS does",
        times.map(|times| (times >= 500.0, format!("{times:.0} times"))),
    );
    for peer in crate::queue::PEERS {
        let both = figures.queue(crate::queue::OURS_ON_POSTGRES).zip(figures.queue(peer));
        let measured = both.map(|(ours, peer)| (ours > peer, format!("{ours:.0}/s and {peer:.0}/s")));
        row(&format!("queue, best of all batch sizes and workers: above {peer}"), measured);
    }
    let loads = figures.steady.iter().filter_map(|seen| {
        Some((seen.transactions? < TRANSACTIONS_MAX, format!("{:.3} ({})", seen.transactions?, seen.name())))
    });
    row(&format!("transactions a start at full load: below {TRANSACTIONS_MAX}"), all(loads));
    let one = figures.transactions.iter().find(|(nodes, _)| *nodes == 1).map(|(_, seen)| *seen);
    let by_nodes = figures
        .transactions
        .iter()
        .filter_map(|(nodes, seen)| Some((*seen <= one? * GROWTH_MAX, format!("{seen:.4} ({nodes} nodes)"))));
    row(&format!("the same at 10,000/s by nodes: at most {GROWTH_MAX} times that of one"), all(by_nodes));
    let idle = figures.idle.iter().map(|Idle { schedules, nodes, rate }| {
        (*rate < 2.0, format!("{rate:.2} ({schedules} schedules, {nodes} nodes)"))
    });
    row("nothing due: below 2 transactions/s for each node", all(idle));
    let late = figures.steady.iter().filter_map(|seen| {
        Some((seen.lateness? < 20.0, format!("{:.1} ms ({})", seen.lateness?, seen.name())))
    });
    row("lateness p99 at half load: below 20 ms", all(late));
    let lease = EngineConfig::default().shard_lease.as_secs();
    row(
        &format!("a node dies: starts less than {lease} + 1 s late"),
        longest(&figures.failover, (lease + 1) as f64 * 1_000.0),
    );
    row("a node leaves or comes in order: starts less than 100 ms late", longest(&figures.hand_over, 100.0));
    row(
        "a snapshot held open: throughput falls by less than 20 %",
        figures.snapshot.map(|share| (share > 0.8, format!("to {:.1} % at worst", 100.0 * share))),
    );
}

impl Steady {
    fn name(&self) -> String {
        format!("{} nodes, {}", self.nodes, if self.with_worker { "workers" } else { "no worker" })
    }
}

/// Several figures of one goal: all have to meet it.
fn all(figures: impl Iterator<Item = (bool, String)>) -> Option<(bool, String)> {
    figures.reduce(|(met, texts), (also, text)| (met && also, format!("{texts}, {text}")))
}

/// Several times in milliseconds, none of which may be as long as this.
fn longest(times: &[f64], bound: f64) -> Option<(bool, String)> {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let (median, most) = (times.get(times.len() / 2)?, times.last()?);
    Some((*most < bound, format!("at most {most:.1} ms, median {median:.1} ms, of {} times", times.len())))
}

fn row(goal: &str, measured: Option<(bool, String)>) {
    let (met, measured) = match &measured {
        Some((true, text)) => ("yes", text.as_str()),
        Some((false, text)) => ("NO", text.as_str()),
        None => ("-", "not run"),
    };
    println!("{goal:<70}{met:<6}{measured}");
}
