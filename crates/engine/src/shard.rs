//! One shard, without I/O: events in, effects out. The simulator runs this code as it is.
//!
//! A shard holds the timers of its schedules and a bounded number of loaded trees. Work is queued at its tree; when the
//! driver asks, the shard turns waiting work into loads and into one batch of units, each the transitions of one tree.
//! While a unit is on its way to the database its tree takes no further work, so every tree is changed one commit at a time,
//! and other trees go on. What was computed counts only when the commit is confirmed: replies, timers and calls leave then.
//!
//! | what comes back | what the shard does |
//! |---|---|
//! | written | timers are set, replies and calls leave |
//! | conflict | forget the tree, load it again, apply again, at most [`Settings::tries_max`] times |
//! | fenced | stop for good |
//! | no answer | forget the trees, back off, load again: every change is harmless to repeat |
//! | a transition panics | that one schedule is quarantined; nothing of it was written |
//!
//! Other nodes change trees too, as guests: the same code without an epoch and without timers. The owner hears of it by
//! [`Event::Moved`].

mod ahead;
mod apply;
mod event;
mod held;
mod moved;
mod outcome;
mod role;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Limits, ScheduleKey};
use punctual_store::{Epoch, KeyMap, QueueKey, ShardId, StoreError, StoredTree, TreeKey, TreeRef};

pub(crate) use ahead::fetch;
use apply::Creation;
pub use event::{Assignment, BatchId, Effect, Event, MadeRun, Refusal, Target, Ticket};
pub(crate) use held::open_tree;
use held::{Fault, Held};
use outcome::InFlight;
pub use outcome::UnitInFlight;
use role::Role;

use crate::timers::Timers;
use crate::verb::{Verb, Work};

/// Bounds of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Trees held in memory; beyond it the least used are forgotten and loaded again when needed.
    pub trees_max: usize,
    /// Units in one batch.
    pub units_max: usize,
    /// Trees asked for in one load.
    pub loads_max: usize,
    /// Batches on their way at a time. What comes due while so many are being written waits for one of them.
    pub batches_max: usize,
    /// Transitions of one tree in one unit.
    pub changes_max: usize,
    /// How often a client's change is tried when others are faster or the database is away.
    pub tries_max: u32,
    /// Keys kept in reserve for new runs and schedules.
    pub keys_min: i64,
    /// Keys that were drawn longer ago are thrown away: where several shards draw keys, lists that are sorted by key would
    /// show what is old first.
    pub keys_age_max: SignedDuration,
    /// The first wait after the database did not answer; doubled up to the longest.
    pub backoff_first: SignedDuration,
    /// The longest wait.
    pub backoff_max: SignedDuration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            trees_max: 50_000,
            units_max: 2_000,
            loads_max: 1_000,
            batches_max: 8,
            changes_max: 64,
            tries_max: 5,
            keys_min: 10_000,
            keys_age_max: SignedDuration::MAX,
            backoff_first: SignedDuration::from_millis(50),
            backoff_max: SignedDuration::from_secs(2),
        }
    }
}

/// Keys that one transition may need: one for each run that it makes, or for the tree itself.
fn keys_per_transition(limits: &Limits) -> i64 {
    // Worlds without a bound on dispatches are bounded by their buffers.
    limits.dispatches_max.clamp(1, 2_000) as i64
}

/// Loads on their way at a time.
const LOADS_IN_FLIGHT_MAX: usize = 2;

/// One schedule that the shard has something to do with.
#[derive(Default)]
struct Slot {
    /// The tree, once it is loaded.
    held: Option<Box<Held>>,
    /// What is to be done, in order.
    pending: VecDeque<Assignment>,
    status: Status,
    /// Used since the hand of the clock last passed.
    used: bool,
    /// Somebody else has written it since it was asked for.
    moved: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Status {
    /// Not loaded, and nobody asks for it.
    #[default]
    Absent,
    /// Asked for.
    Loading,
    /// Loaded.
    Idle,
    /// A unit of it is on its way.
    Committing,
}

/// A slice of the schedules, as its owner drives it; or all of them, as a guest changes some.
pub struct Shard {
    role: Role,
    limits: Limits,
    settings: Settings,
    queues: HashMap<(Arc<str>, Arc<str>), QueueKey>,
    slots: KeyMap<TreeKey, Slot>,
    /// Names of loaded trees.
    names: HashMap<ScheduleKey, TreeKey>,
    /// Work for names that are being looked up.
    unresolved: HashMap<ScheduleKey, VecDeque<Assignment>>,
    /// Schedules to make, their names having been looked up.
    creations: VecDeque<Creation>,
    timers: Timers<TreeKey>,
    /// Loaded trees with work, in the order in which it came.
    ready: VecDeque<TreeKey>,
    to_load: VecDeque<TreeRef>,
    loads_in_flight: usize,
    in_flight: HashMap<BatchId, Vec<InFlight>>,
    /// The order in which loaded trees are considered for being forgotten.
    hand: VecDeque<TreeKey>,
    loaded: usize,
    keys: std::ops::Range<i64>,
    keys_asked: bool,
    /// When they were drawn.
    keys_at: Timestamp,
    batches: u64,
    /// Since when the database does not answer, and how often in a row.
    failures: u32,
    not_before: Timestamp,
    quarantined: KeyMap<TreeKey, Arc<str>>,
    /// Somebody follows along.
    followed: bool,
    /// Trees whose queue is not known here, until all queues were looked up again.
    puzzled: Vec<StoredTree>,
    fenced: bool,
}

impl Shard {
    /// A shard that has just been acquired. Its timers come with [`Event::Timers`].
    pub fn new(shard: ShardId, epoch: Epoch, limits: Limits, settings: Settings) -> Shard {
        Shard::with(Role::Owner { shard, epoch }, limits, settings)
    }

    /// A guest in all shards: it serves what it is asked, and wakes nobody.
    pub fn guest(shards: u32, limits: Limits, settings: Settings) -> Shard {
        Shard::with(Role::Guest { shards }, limits, settings)
    }

    fn with(role: Role, limits: Limits, settings: Settings) -> Shard {
        Shard {
            role,
            limits,
            settings,
            queues: HashMap::new(),
            slots: KeyMap::default(),
            names: HashMap::new(),
            unresolved: HashMap::new(),
            creations: VecDeque::new(),
            timers: Timers::default(),
            ready: VecDeque::new(),
            to_load: VecDeque::new(),
            loads_in_flight: 0,
            in_flight: HashMap::new(),
            hand: VecDeque::new(),
            loaded: 0,
            keys: 0..0,
            keys_asked: false,
            keys_at: Timestamp::MIN,
            batches: 0,
            failures: 0,
            not_before: Timestamp::MIN,
            quarantined: KeyMap::default(),
            followed: true,
            puzzled: Vec::new(),
            fenced: false,
        }
    }

    /// Whether anybody wants to hear of what happens to schedules, line by line. If not, nothing is noted until somebody does.
    pub fn is_followed(&mut self, followed: bool) {
        self.followed = followed;
    }

    /// When [`flush`](Shard::flush) has something to do, if nothing else happens before.
    pub fn next_time(&self) -> Option<Timestamp> {
        if self.fenced {
            return None;
        }
        let room = self.has_room();
        let timer = self
            .timers
            .next_time()
            .filter(|_| room && self.takes_timers())
            .map(|time| time.max(self.not_before));
        let build = room && self.has_keys() && !(self.ready.is_empty() && self.creations.is_empty());
        let load = self.loads_in_flight < LOADS_IN_FLIGHT_MAX && !self.to_load.is_empty();
        let work = (build || load).then_some(self.not_before);
        work.into_iter().chain(timer).min()
    }

    fn has_room(&self) -> bool {
        self.in_flight.len() < self.settings.batches_max
    }

    /// Below this many keys no unit is built: one unit may make as many runs as one transition dispatches.
    fn has_keys(&self) -> bool {
        self.keys.end - self.keys.start >= keys_per_transition(&self.limits)
    }

    /// No more timers than one batch can take: a herd is worked off batch by batch.
    fn takes_timers(&self) -> bool {
        self.ready.len() < self.settings.units_max && self.to_load.len() < self.settings.loads_max
    }

    /// Schedules that are broken and do nothing.
    pub fn quarantined(&self) -> impl Iterator<Item = TreeKey> {
        self.quarantined.keys().copied()
    }

    /// How many schedules have a timer, and how many are loaded.
    pub fn size(&self) -> (usize, usize) {
        (self.timers.len(), self.loaded)
    }

    /// Takes note of what happened. What follows from it leaves with this, or with the next [`flush`](Shard::flush).
    pub fn handle(&mut self, now: Timestamp, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Submit(assignment) if self.fenced => self.refuse(assignment, Refusal::NotOwner, effects),
            Event::Submit(assignment) => self.submit(assignment, effects),
            Event::Timers(timers) => {
                for (tree, time) in timers {
                    self.set_timer(tree, time);
                }
            }
            Event::Moved { tree, due_time } => self.moved(tree, due_time),
            Event::MissedNews => self.missed_news(),
            Event::QueueDeclared { namespace, name, queue } => {
                self.queues.insert((namespace, name), queue);
            }
            Event::QueuesListed => {
                for stored in std::mem::take(&mut self.puzzled) {
                    self.adopt(stored, true, effects);
                }
            }
            Event::Reserved { keys } => {
                self.keys_asked = false;
                let more = keys.end - keys.start > self.keys.end - self.keys.start;
                if more || self.has_old_keys(now, self.settings.keys_age_max / 2) {
                    (self.keys, self.keys_at) = (keys, now);
                }
            }
            Event::ReserveFailed => self.keys_asked = false,
            Event::Loaded { trees, answer } => self.loaded(now, trees, answer, effects),
            Event::Committed { batch, answer } => self.committed(now, batch, answer, effects),
        }
    }

    /// Turns what waits into loads and into at most one batch.
    pub fn flush(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        if self.fenced || now < self.not_before {
            return;
        }
        if self.has_room() {
            while self.takes_timers()
                && let Some(tree) = self.timers.pop_due(now)
            {
                self.queue(tree, Assignment::wake(tree));
            }
            self.refresh_keys(now, effects);
            self.build_batch(now, effects);
        }
        self.reserve_keys(effects);
        while self.loads_in_flight < LOADS_IN_FLIGHT_MAX && !self.to_load.is_empty() {
            let count = self.to_load.len().min(self.settings.loads_max);
            self.loads_in_flight += 1;
            effects.push(Effect::Load(self.to_load.drain(..count).collect()));
        }
        self.forget_surplus();
    }

    fn reserve_keys(&mut self, effects: &mut Vec<Effect>) {
        if self.keys.end - self.keys.start < self.keys_least() {
            self.ask_for_keys(effects);
        }
    }

    /// Fewer than a transition needs would never be enough.
    fn keys_least(&self) -> i64 {
        self.settings.keys_min.max(2 * keys_per_transition(&self.limits))
    }

    fn ask_for_keys(&mut self, effects: &mut Vec<Effect>) {
        if !std::mem::replace(&mut self.keys_asked, true) {
            effects.push(Effect::Reserve { count: (self.keys_least() * 2) as u32 });
        }
    }

    fn has_old_keys(&self, now: Timestamp, age: SignedDuration) -> bool {
        now.duration_since(self.keys_at) > age
    }

    /// Who is busy asks for new keys before the old ones are too old, and so waits for them only after a rest.
    fn refresh_keys(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        if self.ready.is_empty() && self.creations.is_empty() {
            return;
        }
        if self.has_old_keys(now, self.settings.keys_age_max) {
            self.keys = 0..0;
        }
        if self.has_old_keys(now, self.settings.keys_age_max / 2) {
            self.ask_for_keys(effects);
        }
    }

    fn submit(&mut self, assignment: Assignment, effects: &mut Vec<Effect>) {
        let known = match &assignment.target {
            Target::Tree(tree) => Some(*tree),
            Target::Name(name) => self.names.get(name).copied(),
        };
        match (known, &assignment.target) {
            (Some(tree), _) => self.assign(tree, assignment, effects),
            (None, Target::Name(name)) => {
                let name = name.clone();
                let waiting = self.unresolved.entry(name.clone()).or_default();
                if waiting.is_empty() {
                    self.to_load.push_back(TreeRef::Name(name));
                }
                waiting.push_back(assignment);
            }
            (None, Target::Tree(_)) => {}
        }
    }

    /// Gives work to a tree, unless it is broken.
    fn assign(&mut self, tree: TreeKey, assignment: Assignment, effects: &mut Vec<Effect>) {
        match self.quarantined.get(&tree).cloned() {
            Some(reason) => self.refuse(assignment, Refusal::Quarantined(reason), effects),
            None => self.queue(tree, assignment),
        }
    }

    /// Adds work to a tree, and asks for the tree if need be.
    fn queue(&mut self, tree: TreeKey, assignment: Assignment) {
        let slot = self.slots.entry(tree).or_default();
        slot.used = true;
        slot.pending.push_back(assignment);
        match slot.status {
            Status::Absent => {
                slot.status = Status::Loading;
                self.to_load.push_back(TreeRef::Key(tree));
            }
            Status::Idle if slot.pending.len() == 1 => self.ready.push_back(tree),
            Status::Idle | Status::Loading | Status::Committing => {}
        }
    }

    fn loaded(
        &mut self,
        now: Timestamp,
        trees: Vec<TreeRef>,
        answer: Result<Vec<Option<StoredTree>>, StoreError>,
        effects: &mut Vec<Effect>,
    ) {
        self.loads_in_flight = self.loads_in_flight.saturating_sub(1);
        match answer {
            Ok(found) => {
                self.failures = 0;
                for (tree, stored) in trees.into_iter().zip(found) {
                    match (tree, stored) {
                        (TreeRef::Key(_), Some(stored)) => self.adopt(stored, false, effects),
                        (TreeRef::Key(tree), None) => self.gone(tree, effects),
                        (TreeRef::Name(name), found) => self.resolve(name, found, effects),
                    }
                }
            }
            Err(error) => {
                self.back_off(now, &error, effects);
                self.to_load.extend(trees);
            }
        }
    }

    /// A name was looked up: its work goes to the tree, or is refused, or makes a new tree.
    fn resolve(&mut self, name: ScheduleKey, found: Option<StoredTree>, effects: &mut Vec<Effect>) {
        let Some(assignments) = self.unresolved.remove(&name) else { return };
        let tree = match (found, self.names.get(&name)) {
            // It was created while the answer was on its way.
            (_, Some(tree)) => *tree,
            (Some(stored), None) => {
                let tree = stored.tree;
                // What is broken is not loaded again, only answered for.
                if !self.quarantined.contains_key(&tree) {
                    let slot = self.slots.entry(tree).or_default();
                    if matches!(slot.status, Status::Absent) {
                        slot.status = Status::Loading;
                        self.adopt(stored, false, effects);
                    }
                }
                tree
            }
            (None, None) => {
                for assignment in assignments {
                    match assignment.work {
                        Work::Create(_) => {
                            let name = name.clone();
                            self.creations.push_back(Creation { name, assignment, replaces: None });
                        }
                        Work::Change(_) => self.refuse(assignment, Refusal::NotFound, effects),
                    }
                }
                return;
            }
        };
        for assignment in assignments {
            self.assign(tree, assignment, effects);
        }
    }

    /// A loaded tree takes its place, and its work can go on.
    fn adopt(&mut self, stored: StoredTree, queues_are_listed: bool, effects: &mut Vec<Effect>) {
        let tree = stored.tree;
        let waits = |slot: &Slot| slot.status == Status::Loading;
        if !self.slots.get(&tree).is_some_and(waits) {
            return;
        }
        match Held::open(&stored, &self.queues) {
            Ok(held) => {
                // A closed one may have given its name up.
                if held.tree.is_open() {
                    self.names.insert(stored.key, tree);
                }
                self.hold(tree, Box::new(held));
            }
            Err(Fault::UnknownQueue(_)) if !queues_are_listed => {
                // Another node may have declared it just now.
                if self.puzzled.is_empty() {
                    effects.push(Effect::ListQueues);
                }
                self.puzzled.push(stored);
            }
            Err(fault) => self.quarantine(tree, &stored.key, &fault.to_string(), effects),
        }
    }

    fn hold(&mut self, tree: TreeKey, held: Box<Held>) {
        let slot = self.slots.entry(tree).or_default();
        slot.held = Some(held);
        slot.status = Status::Idle;
        self.loaded += 1;
        self.hand.push_back(tree);
        if !slot.pending.is_empty() {
            self.ready.push_back(tree);
        }
    }

    /// The tree is not there any more.
    fn gone(&mut self, tree: TreeKey, effects: &mut Vec<Effect>) {
        self.timers.set(tree, None);
        let Some(slot) = self.slots.remove(&tree) else { return };
        for assignment in slot.pending {
            self.refuse(assignment, Refusal::NotFound, effects);
        }
    }

    /// Keeps a broken schedule from doing anything, and tells why. Its stored state stays as it is.
    fn quarantine(&mut self, tree: TreeKey, key: &ScheduleKey, reason: &str, effects: &mut Vec<Effect>) {
        let reason: Arc<str> = reason.into();
        self.timers.set(tree, None);
        self.release_name(tree, key);
        if !self.role.is_guest() {
            self.quarantined.insert(tree, reason.clone());
        }
        if let Some(slot) = self.slots.remove(&tree) {
            self.loaded -= usize::from(slot.held.is_some());
            for assignment in slot.pending {
                self.refuse(assignment, Refusal::Quarantined(reason.clone()), effects);
            }
        }
        // Whether it does anything is for its owner to say.
        if !self.role.is_guest() {
            effects.push(Effect::Quarantined { tree, key: key.clone(), reason });
        }
    }

    fn refuse(&self, assignment: Assignment, refusal: Refusal, effects: &mut Vec<Effect>) {
        if let Some(ticket) = assignment.ticket {
            effects.push(Effect::Reply { ticket, answer: Err(refusal) });
        }
    }

    fn back_off(&mut self, now: Timestamp, error: &StoreError, effects: &mut Vec<Effect>) {
        self.failures = self.failures.saturating_add(1);
        let doubled =
            self.settings.backoff_first.saturating_mul(1 << self.failures.min(10).saturating_sub(1));
        let wait = doubled.min(self.settings.backoff_max);
        self.not_before = now.checked_add(wait).unwrap_or(now);
        effects.push(Effect::Stumbled { reason: error.to_string(), failures: self.failures });
    }

    /// Forgets a loaded tree; what is stored counts.
    fn forget(&mut self, tree: TreeKey) {
        let held = self.slots.get_mut(&tree).and_then(|slot| slot.held.take());
        if let Some(held) = held {
            self.loaded -= 1;
            self.release_name(tree, held.tree.key());
        }
        let Some(slot) = self.slots.get_mut(&tree) else { return };
        (slot.status, slot.moved) = (Status::Absent, false);
        if slot.pending.is_empty() {
            self.slots.remove(&tree);
        } else {
            slot.status = Status::Loading;
            self.to_load.push_back(TreeRef::Key(tree));
        }
    }

    /// Lets go of trees that were not used for a while, when there are too many.
    fn forget_surplus(&mut self) {
        let mut looks = 2 * self.settings.units_max;
        while self.loaded > self.settings.trees_max && looks > 0 {
            looks -= 1;
            let Some(tree) = self.hand.pop_front() else { return };
            let Some(slot) = self.slots.get_mut(&tree).filter(|slot| slot.held.is_some()) else { continue };
            let busy = slot.status != Status::Idle || !slot.pending.is_empty();
            if busy || slot.used {
                slot.used = false;
                self.hand.push_back(tree);
            } else {
                self.forget(tree);
            }
        }
        // Trees that were forgotten in other ways leave their place in the queue behind.
        if self.hand.len() > 2 * self.loaded + 1_000 {
            let slots = &self.slots;
            self.hand.retain(|tree| slots.get(tree).is_some_and(|slot| slot.held.is_some()));
        }
    }

    /// The name may belong to a later schedule by now.
    fn release_name(&mut self, tree: TreeKey, key: &ScheduleKey) {
        if self.names.get(key) == Some(&tree) {
            self.names.remove(key);
        }
    }

    fn take_key(&mut self) -> Option<i64> {
        self.keys.next()
    }

    fn is_wake(assignment: &Assignment) -> bool {
        matches!(assignment.work, Work::Change(Verb::Wake))
    }
}
