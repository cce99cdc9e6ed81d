//! What happens to the nodes and to their database, in an order that the seed decides.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use punctual_testkit::Postgres;

use super::gaps::{self, Blow};
use super::proxy::{Proxy, Way};
use super::{DATABASE, LEASE};
use crate::process::{Node, Setting};
use crate::random::Random;

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A node is killed, and started again.
    Kill,
    /// A node stops for longer than its lease, and goes on as if nothing had happened.
    Suspend,
    /// The database loses power.
    CrashDatabase,
    /// All connections to the database end.
    EndConnections,
    /// What one node says to the database arrives late, and so do the answers.
    FreezeWay,
    /// One node does not reach the database.
    CutWay,
    /// Another node joins, and leaves in good order.
    JoinAndLeave,
    /// A node is drained, and takes part again.
    Drain,
    /// The database loses power while a node is stopped.
    CrashWhileSuspended,
}

/// What is said of schedules that a node gave away in order.
pub const HANDED_OVER: &str = "handed over";

/// How often each happens.
const DECK: [(Fault, usize); 9] = [
    (Fault::Kill, 4),
    (Fault::Suspend, 4),
    (Fault::CrashDatabase, 2),
    (Fault::EndConnections, 3),
    (Fault::FreezeWay, 2),
    (Fault::CutWay, 2),
    (Fault::JoinAndLeave, 2),
    (Fault::Drain, 2),
    (Fault::CrashWhileSuspended, 1),
];

/// How long nodes may be busy with what befell their database: they ask again after two seconds at most. A hand-over in order
/// waits until then, so that it is measured alone.
const UPSET: Duration = Duration::from_millis(2_500);

/// How long after a hand-over its consequences are still looked at.
const AFTERMATH: u64 = 1_500;

/// The nodes, their database, and what has happened to them.
pub struct Weather {
    pub random: Random,
    pub postgres: Postgres,
    /// Node `c` reaches the database through this.
    pub proxy: Proxy,
    pub nodes: BTreeMap<&'static str, Node>,
    /// What one more node would be started with.
    pub another: Setting,
    pub blows: Vec<Blow>,
    /// From when on nobody is busy any more with an earlier fault.
    pub calm_at: Instant,
    pub happened: BTreeMap<Fault, usize>,
}

impl Weather {
    pub async fn storm(&mut self) {
        let mut deck: Vec<Fault> =
            DECK.iter().flat_map(|(fault, count)| std::iter::repeat_n(*fault, *count)).collect();
        self.random.shuffle(&mut deck);
        for fault in deck {
            self.wait(100, 700).await;
            let name = self.random.any(&["a", "b", "c"]);
            eprintln!("{} {fault:?} {name}", Timestamp::now());
            *self.happened.entry(fault).or_default() += 1;
            self.end_of_blows();
            self.strike(fault, name).await;
        }
        self.wait(2_000, 1).await;
        self.end_of_blows();
    }

    async fn strike(&mut self, fault: Fault, name: &'static str) {
        match fault {
            Fault::Kill => self.kill(name).await,
            Fault::Suspend => {
                let trees = gaps::driven_by(&self.postgres, name);
                self.nodes[name].suspend();
                self.blow("stopped", Timestamp::now(), trees);
                self.out_of_lease().await;
                self.nodes[name].wake();
            }
            Fault::CrashDatabase => self.crash_database(),
            Fault::EndConnections => {
                let ended = self.postgres.end_connections(DATABASE).unwrap();
                assert!(ended >= 9, "{ended} connections of three nodes");
            }
            Fault::FreezeWay => self.obstruct(Way::Frozen).await,
            Fault::CutWay => self.obstruct(Way::Cut).await,
            Fault::JoinAndLeave | Fault::Drain => self.hand_over(fault, name).await,
            Fault::CrashWhileSuspended => {
                self.nodes[name].suspend();
                self.wait(0, 1_500).await;
                self.crash_database();
                self.wait(0, 2_500).await;
                self.nodes[name].wake();
            }
        }
        if !matches!(fault, Fault::JoinAndLeave | Fault::Drain) {
            self.calm_at = Instant::now() + UPSET;
        }
    }

    /// In order, there and back again.
    async fn hand_over(&mut self, fault: Fault, name: &'static str) {
        tokio::time::sleep_until(self.calm_at.into()).await;
        let (at, before) = (Timestamp::now(), gaps::drivers(&self.postgres));
        if fault == Fault::Drain {
            self.tell_node("drain", name);
            self.wait(300, 500).await;
            self.tell_node("resume", name);
        } else {
            let node = Node::launch(self.another.clone()).await;
            self.wait(1_000, 1_000).await;
            node.stop().await;
        }
        self.wait(AFTERMATH, 1).await;
        let trees = gaps::handed_over(&self.postgres, &before);
        assert!(!trees.is_empty(), "{fault:?} {name} moved nothing");
        self.blow(HANDED_OVER, at, trees);
        // What is due at the end must not be blamed for what comes next.
        self.end_of_blows();
        self.wait(200, 1).await;
    }

    async fn kill(&mut self, name: &'static str) {
        let trees = gaps::driven_by(&self.postgres, name);
        let node = self.nodes.get_mut(name).unwrap();
        node.kill();
        self.blow("killed", Timestamp::now(), trees);
        // Another process takes its name, sometimes before the others have missed it.
        tokio::time::sleep(Duration::from_millis(self.random.below(3_000))).await;
        self.nodes.get_mut(name).unwrap().restart().await;
        self.out_of_lease().await;
    }

    async fn obstruct(&mut self, way: Way) {
        let trees = gaps::driven_by(&self.postgres, "c");
        self.proxy.set(way);
        self.blow("cut off", Timestamp::now(), trees);
        self.out_of_lease().await;
        self.proxy.set(Way::Open);
    }

    fn blow(&mut self, kind: &'static str, at: Timestamp, trees: BTreeSet<i64>) {
        self.blows.push(Blow { kind, at, until: Timestamp::MAX, trees });
    }

    /// Something else is going to happen.
    fn end_of_blows(&mut self) {
        let open = self.blows.iter_mut().filter(|blow| blow.until == Timestamp::MAX);
        open.for_each(|blow| blow.until = Timestamp::now());
    }

    fn crash_database(&mut self) {
        tokio::task::block_in_place(|| self.postgres.crash_and_restart().unwrap());
    }

    /// As an operator does it.
    fn tell_node(&self, verb: &str, name: &str) {
        let any = self.nodes.values().next().unwrap().address();
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.args(["node", verb, name, "--address", &any, "--timeout", "30s"]);
        let status = tokio::task::block_in_place(|| command.stdout(Stdio::null()).status().unwrap());
        assert!(status.success(), "punctual node {verb} {name}: {status}");
    }

    /// Long enough for others to take over.
    async fn out_of_lease(&mut self) {
        self.wait(LEASE.as_millis() as u64 + 500, 1_500).await;
    }

    async fn wait(&mut self, least: u64, more: u64) {
        tokio::time::sleep(Duration::from_millis(least + self.random.below(more))).await;
    }
}
