//! When each start was durable, and at which node: what nodes tell, beside what the database has afterwards.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Result, ensure};
use jiff::Timestamp;
use punctual_core::Note;
use punctual_engine::Engine;
use punctual_store::{NodeId, RunKey, ShardId};
use tokio::sync::broadcast::error::RecvError;

use super::super::database::connect;

/// One start of one schedule.
pub struct Start {
    pub shard: ShardId,
    pub due_time: Timestamp,
    /// When it was durable.
    pub started_at: Timestamp,
    /// Where; nothing if the node died before it could tell.
    pub node: Option<NodeId>,
}

/// Hears of starts at all nodes that it listens to.
#[derive(Default)]
pub struct Listener {
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    starts: HashMap<RunKey, (Timestamp, NodeId)>,
    /// Events that came too fast.
    missed: u64,
}

impl Listener {
    /// Listens until the engine is gone, on a thread of its own: what was heard late would pass for a late start.
    pub fn listen_to(&self, engine: &Engine) {
        let (heard, node, mut events) = (self.heard.clone(), engine.node_id().clone(), engine.watch());
        thread::spawn(move || {
            loop {
                let event = events.blocking_recv();
                let now = Timestamp::now();
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                match event {
                    Ok(happened) => {
                        if let (Note::RunStarted(_), Some(run)) = (&happened.note, happened.run) {
                            heard.starts.insert(run, (now, node.clone()));
                        }
                    }
                    Err(RecvError::Lagged(count)) => heard.missed += count,
                    Err(RecvError::Closed) => return,
                }
            }
        });
    }

    /// All starts that a database has. Makes sure that none is missing and none is there twice.
    pub async fn starts(self, database: &str, period: usize) -> Result<Vec<Start>> {
        let client = connect(database).await?;
        let wrong = format!(
            "SELECT count(*) FROM (
                SELECT count(*) AS made, count(DISTINCT nominal_ms) AS times,
                    (max(nominal_ms) - min(nominal_ms)) / {} + 1 AS due
                FROM punctual.run_live GROUP BY tree
            ) AS trees WHERE made <> times OR times <> due",
            period * 1_000
        );
        let wrong: i64 = client.query_one(&wrong, &[]).await?.get(0);
        ensure!(wrong == 0, "{wrong} schedules have missed a start, or started twice");
        let all = "SELECT run, shard, due_time, created_at FROM punctual.run_live JOIN punctual.schedule USING (tree)";
        let rows = client.query(all, &[]).await?;
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let mut starts = Vec::with_capacity(rows.len());
        for row in &rows {
            let time = |column: usize| Timestamp::from_nanosecond(row.get::<_, i64>(column).into());
            // Of one that nobody has told, it is known when it was made; a moment later it was durable.
            let (started_at, node) = match heard.starts.remove(&RunKey(row.get(0))) {
                Some((at, node)) => (at, Some(node)),
                None => (time(3)?, None),
            };
            let shard = ShardId(row.get::<_, i32>(1) as u32);
            starts.push(Start { shard, due_time: time(2)?, started_at, node });
        }
        let untold = starts.iter().filter(|start| start.node.is_none()).count();
        if untold > 0 {
            println!(
                "  note: of {untold} of {} starts it is only known when they were made, {} events were missed",
                starts.len(),
                heard.missed
            );
        }
        Ok(starts)
    }
}
