//! A loaded tree with what the engine must know about it to write it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use punctual_core::{Definition, Lifecycle, RunAction, ScheduleKey, ScheduleTree, StartId, Target};
use punctual_spec::Environment;
use punctual_store::record::{
    TreeState, decode_action, decode_completion, decode_schedule, decode_state, encode_state,
};
use punctual_store::{Bytes, Lifespan, QueueKey, RunKey, Sequence, ShardId, StoredTree, TreeView};

/// The queues that are declared, by namespace and name.
pub(super) type Queues = HashMap<(Arc<str>, Arc<str>), QueueKey>;

/// A loaded tree.
pub(super) struct Held {
    pub(super) tree: ScheduleTree,
    /// The shard that it is stored with.
    pub(super) shard: ShardId,
    pub(super) sequence: Sequence,
    /// The runs of its starts in progress on a queue.
    pub(super) runs: Vec<(StartId, RunKey)>,
    pub(super) action: Option<QueueTarget>,
    pub(super) view: TreeView,
}

/// Where its runs go.
#[derive(Clone)]
pub(super) struct QueueTarget {
    pub(super) queue: QueueKey,
    pub(super) action: Arc<RunAction>,
}

/// Why a tree cannot be worked with.
#[derive(Debug)]
pub(super) enum Fault {
    /// Its runs go to a queue that is not known here.
    UnknownQueue(Arc<str>),
    /// What is stored makes no sense.
    Broken(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::UnknownQueue(queue) => write!(f, "queue {queue:?} is not declared"),
            Fault::Broken(reason) => f.write_str(reason),
        }
    }
}

impl Held {
    /// Puts a stored tree together, or says what is wrong with it.
    pub(super) fn open(stored: &StoredTree, queues: &Queues) -> Result<Held, Fault> {
        let (tree, runs) = open_tree(stored).map_err(Fault::Broken)?;
        let action = queue_target(tree.definition(), &stored.key, queues)?;
        let view = view(&tree, &action);
        Ok(Held { tree, shard: stored.shard, sequence: stored.sequence, runs, action, view })
    }

    /// A tree that was just made.
    pub(super) fn new(tree: ScheduleTree, shard: ShardId, queues: &Queues) -> Result<Held, Fault> {
        let action = queue_target(tree.definition(), &tree.key().clone(), queues)?;
        let view = view(&tree, &action);
        Ok(Held { tree, shard, sequence: Sequence(0), runs: Vec::new(), action, view })
    }

    /// Reads a little of whatever the next transition will read; see [`ScheduleTree::glance`].
    pub(super) fn glance(&self, round: u8) -> usize {
        let action = self.action.as_ref().map(|target| &*target.action);
        let own = match round {
            0 => self.runs.len() ^ self.sequence.0 as usize,
            1 => {
                let runs = self.runs.last().map_or(0, |(_, run)| run.0 as usize);
                let limits = |action: &RunAction| action.timeouts.schedule_to_close.is_some();
                runs ^ action.map_or(0, |action| action.queue.len() ^ usize::from(limits(action)))
            }
            _ => action.map_or(0, |action| {
                let texts = [action.queue.as_bytes(), action.handler.as_bytes(), &action.input];
                let texts = texts.map(|text| text.first().map_or(0, |read| usize::from(*read)));
                texts.iter().fold(Arc::strong_count(&action.key), |sum, read| sum ^ read)
            }),
        };
        own ^ self.tree.glance(round)
    }

    /// What lists can ask for, as things are now.
    pub(super) fn current_view(&self) -> TreeView {
        view(&self.tree, &self.action)
    }

    /// The hot record, as things are now.
    pub(super) fn encode(&mut self) -> Bytes {
        self.forget_ended();
        encode_state(&TreeState { snapshot: self.tree.snapshot(), runs: self.runs[..].into() })
    }

    /// Runs whose starts are over need not be known any more. A backfill may have thousands in progress: both lists are
    /// walked once.
    fn forget_ended(&mut self) {
        if self.runs.is_empty() {
            return;
        }
        let mut open: Vec<StartId> = self.tree.starts().map(|start| start.id).collect();
        open.sort_unstable();
        self.runs.retain(|(start, _)| open.binary_search(start).is_ok());
    }

    pub(super) fn run_of(&self, start: StartId) -> Option<RunKey> {
        self.runs.iter().find(|(of, _)| *of == start).map(|(_, run)| *run)
    }
}

/// A stored tree, put together, with the runs of its starts in progress.
pub(crate) fn open_tree(stored: &StoredTree) -> Result<(ScheduleTree, Vec<(StartId, RunKey)>), String> {
    let schedule = decode_schedule(&stored.definition).map_err(|error| format!("definition: {error}"))?;
    let definition = Definition::new(schedule, &stored.key, &Environment::default())
        .map_err(|rejection| format!("definition: {rejection}"))?;
    let TreeState { snapshot, runs } =
        decode_state(&stored.state).map_err(|error| format!("state: {error}"))?;
    let completion =
        decode_completion(stored.completion.as_deref()).map_err(|error| format!("completion: {error}"))?;
    let key = Arc::new(stored.key.clone());
    Ok((ScheduleTree::restore(key, definition, completion, snapshot), runs.into_owned()))
}

/// Where the runs of a definition go.
pub(super) fn queue_target(
    definition: &Definition,
    key: &ScheduleKey,
    queues: &Queues,
) -> Result<Option<QueueTarget>, Fault> {
    let action = &definition.schedule().action;
    match action.target {
        Target::Outside => Ok(None),
        Target::Queue => {
            let action = decode_action(&action.payload);
            let action = action.map_err(|error| Fault::Broken(format!("action: {error}")))?;
            let queue = queues.get(&(key.namespace.clone(), action.queue.clone()));
            let queue = *queue.ok_or_else(|| Fault::UnknownQueue(action.queue.clone()))?;
            Ok(Some(QueueTarget { queue, action: Arc::new(action) }))
        }
    }
}

fn view(tree: &ScheduleTree, action: &Option<QueueTarget>) -> TreeView {
    let lifespan = match tree.lifecycle() {
        Lifecycle::Open => Lifespan::Open,
        Lifecycle::Completed { .. } => Lifespan::Completed,
        Lifecycle::Deleted { .. } => Lifespan::Deleted,
    };
    TreeView { lifespan, paused: tree.is_paused(), queue: action.as_ref().map(|target| target.queue) }
}
