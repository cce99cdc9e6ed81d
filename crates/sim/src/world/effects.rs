//! What a shard asks for travels through the world, and so do the answers.

use jiff::{SignedDuration, Timestamp};
use punctual_engine::shard::{Assignment, Effect, Event, Refusal, Target};
use punctual_engine::{Verb, Work};
use punctual_store::{RunWrite, Store, StoreError, TreeKey, TreeRef, Unit};

use super::World;
use super::agenda::{Happening, Letter};
use super::node::{Process, Word};
use crate::checker::{self, Violation};
use crate::chronicle::Sent;
use crate::store::at_once;

/// A start call takes so long from the process to its keeper.
const CALL_SLACK: SignedDuration = SignedDuration::from_secs(5);

/// Rounds in which a shard must come to rest, at one instant.
const ROUNDS_MAX: usize = 10_000;

impl World {
    /// Tells a shard what happened, if it is still there, and does what follows.
    pub(super) fn tell_shard(&mut self, by: Process, event: Event) {
        if let Some(late) = &mut self.nodes[by.node].stopped {
            return late.push(Happening::Hear { by, event: Box::new(event) });
        }
        let (now, mut effects) = (self.clock(by.node), Vec::new());
        let calls_since = self.now - (self.limits.call_timeout - CALL_SLACK);
        let mut too_late = false;
        let Some(seat) = self.seat(by) else { return };
        match &event {
            Event::Committed { batch, .. } => {
                too_late = seat.on_its_way.remove(batch).is_some_and(|left_at| left_at < calls_since);
            }
            // A driver that stops refuses what is new.
            Event::Submit(work) if seat.stopping => {
                if let Some(ticket) = work.ticket {
                    self.answered(ticket, Err(Refusal::NotOwner));
                }
                return;
            }
            _ => {}
        }
        let Some(shard) = &mut seat.shard else { return seat.inbox.push(Word::Event(event)) };
        shard.handle(now, event, &mut effects);
        if too_late {
            // Whoever stood still in between makes no calls: the start may have been given up, and its keeper asked.
            effects.retain(|effect| !matches!(effect, Effect::Start { .. }));
        }
        self.perform(by, effects);
        self.settle(by);
    }

    pub(super) fn tick(&mut self, by: Process) {
        if let Some(seat) = self.seat(by) {
            seat.tick_time = None;
            self.settle(by);
        }
    }

    /// Lets a shard do what it can do now, and looks at it again when it has more to do.
    pub(super) fn settle(&mut self, by: Process) {
        if self.nodes[by.node].stopped.is_some() {
            return;
        }
        let now = self.clock(by.node);
        for _ in 0..ROUNDS_MAX {
            let mut effects = Vec::new();
            let Some(seat) = self.seat(by) else { return };
            let Some(shard) = &mut seat.shard else { return };
            if seat.stopping {
                if seat.on_its_way.is_empty() {
                    self.driver_ends(by);
                }
                return;
            }
            shard.flush(now, &mut effects);
            let next = shard.next_time();
            self.perform(by, effects);
            if next.is_none_or(|next| next > now) {
                return self.plan_tick(by, next);
            }
        }
        self.found("nothing spins", format!("a shard does not come to rest at {now}"));
    }

    /// A node looks at its shard when its own clock says so; a clock that is behind looks late.
    fn plan_tick(&mut self, by: Process, next: Option<Timestamp>) {
        let (skew, now) = (self.nodes[by.node].skew, self.now);
        let Some(next) = next.and_then(|next| next.checked_sub(skew).ok()) else { return };
        let (next, Some(seat)) = (next.max(now), self.seat(by)) else { return };
        if seat.tick_time.is_none_or(|planned| next < planned) {
            seat.tick_time = Some(next);
            self.at_time(next, Happening::Tick { by });
        }
    }

    pub(super) fn found(&mut self, promise: &'static str, seen: String) {
        self.broken.get_or_insert(Violation { promise, seen });
    }

    /// One effect after the other; a node that dies between two leaves the rest to its successor.
    pub(super) fn perform(&mut self, by: Process, effects: Vec<Effect>) {
        let now = self.now;
        for effect in effects {
            let happening = match effect {
                Effect::Noted { .. }
                | Effect::Decided { .. }
                | Effect::Written { .. }
                | Effect::Stumbled { .. }
                // Workers look by themselves.
                | Effect::RunsMade { .. } => continue,
                Effect::Quarantined { key, reason, .. } => {
                    self.found("no schedule breaks", format!("{}: {reason}", key.schedule));
                    continue;
                }
                Effect::Fenced => {
                    self.met.fenced += u64::from(self.lives(by));
                    self.driver_gone(by);
                    continue;
                }
                Effect::Reply { ticket, answer } => {
                    if !self.dies(by) && !self.random.chance(self.knobs.reply_lost) {
                        self.answered(ticket, answer);
                    }
                    continue;
                }
                Effect::ListQueues => {
                    // There is one queue, and everybody knows it.
                    Happening::Hear { by, event: Box::new(Event::QueuesListed) }
                }
                Effect::Load(trees) => Happening::Load { by, trees },
                Effect::Reserve { count } => Happening::Reserve { by, count },
                Effect::Commit { batch, mut units } => {
                    units.keeper = self.nodes[by.node].member.as_ref().map_or(units.keeper, |member| member.keeper);
                    let Some(seat) = self.seat(by) else { continue };
                    let Some(shard) = &seat.shard else { continue };
                    let sent = shard.in_flight(batch).map(Sent::note).collect();
                    seat.on_its_way.insert(batch, now);
                    Happening::Arrive(Box::new(Letter { by, batch, units, sent, given_up: false }))
                }
                Effect::Start { tree, dispatch, .. } => Happening::Start { by, tree, dispatch },
                Effect::Stop { tree, start, run, kind } => Happening::Stop { by, tree, start, run, kind },
                Effect::Check { tree, start, .. } => Happening::Look { by, tree, start },
            };
            if self.dies(by) {
                continue;
            }
            let delay = match happening {
                Happening::Arrive(_) => self.random.between(0, self.knobs.commit_seconds_max),
                Happening::Start { .. } => self.random.between(0, 1),
                _ => 0,
            };
            self.at(delay, happening);
        }
    }

    fn hear(&mut self, by: Process, delay: i64, event: Event) {
        self.at(delay, Happening::Hear { by, event: Box::new(event) });
    }

    /// Something that a process had in mind itself; if it dies, its successor finds out by itself.
    pub(super) fn submit(&mut self, by: Process, tree: TreeKey, verb: Verb) {
        if !self.dies(by) {
            let (target, work) = (Target::Tree(tree), Work::Change(verb));
            let assignment = Assignment { ticket: None, target, work, runs: Vec::new(), tries: 0 };
            self.tell_shard(by, Event::Submit(assignment));
        }
    }

    /// What is read may be old by the time it is heard.
    pub(super) fn load(&mut self, by: Process, trees: Vec<TreeRef>) {
        let cut = !self.reaches(by.node);
        let failed = cut || self.random.chance(self.knobs.load_fails);
        let answer =
            if failed { Err(StoreError::unavailable("simulated")) } else { Ok(self.store.load_now(&trees)) };
        let slow = cut || self.random.chance(self.knobs.load_fails);
        let delay = if slow { self.patience(cut) } else { 0 };
        self.hear(by, delay, Event::Loaded { trees, answer });
    }

    pub(super) fn reserve(&mut self, by: Process, count: u32) {
        let first = at_once(self.store.reserve(count));
        let cut = !self.reaches(by.node);
        match cut || self.random.chance(self.knobs.load_fails) {
            true => {
                let patience = if cut { self.patience(cut) } else { 1 };
                self.hear(by, patience, Event::ReserveFailed);
            }
            false => self.hear(by, 0, Event::Reserved { keys: first..first + i64::from(count) }),
        }
    }

    /// Seconds until somebody gives up waiting for the store. Where it is away for hours, errors are rare.
    fn patience(&mut self, cut: bool) -> i64 {
        let most = if cut { self.knobs.lease_seconds.clamp(5, 300) } else { 30 };
        self.random.between(1, most)
    }

    /// A batch reaches the store, though whoever sent it may be dead or may have given up.
    pub(super) fn arrive(&mut self, letter: Letter) -> Result<(), Violation> {
        let (by, batch) = (letter.by, letter.batch);
        if !letter.given_up {
            let cut = !self.reaches(by.node);
            // What was on its way when the sender died, or when the database went away, is written or not.
            let vanishes = (cut || !self.lives(by)) && self.random.chance(500);
            if vanishes || self.random.chance(self.knobs.commit_fails) {
                let answer = Err(StoreError::unavailable("simulated: not written"));
                let patience = if cut { self.patience(cut) } else { 1 };
                self.hear(by, patience, Event::Committed { batch, answer });
                return Ok(());
            }
            if cut || self.random.chance(self.knobs.reply_lost) {
                // Nobody knows: it is written before or after whoever sent it gives up.
                let (patience, delay) = (self.patience(false), self.random.between(0, 30));
                let answer = Err(StoreError::unavailable("simulated: nobody knows"));
                self.hear(by, patience, Event::Committed { batch, answer });
                self.at(delay, Happening::Arrive(Box::new(Letter { given_up: true, ..letter })));
                return Ok(());
            }
        }
        let answers = self.store.commit_now(&letter.units);
        for ((unit, sent), answer) in letter.units.units.iter().zip(&letter.sent).zip(&answers) {
            if answer.is_ok() {
                self.written(unit, Some(sent))?;
                self.check_writer(by, unit);
            }
        }
        // If it dies here, it is written, and nobody is left to act on it or to answer.
        if !letter.given_up && !self.dies(by) {
            self.hear(by, 0, Event::Committed { batch, answer: Ok(answers) });
        }
        Ok(())
    }

    /// Of each epoch only one driver ever wrote.
    fn check_writer(&mut self, by: Process, unit: &Unit) {
        let Some((shard, epoch)) = unit.tree.as_ref().and_then(|write| Some((write.shard, write.epoch?)))
        else {
            return;
        };
        if *self.writers.entry((shard, epoch)).or_insert(by.life) != by.life {
            self.found("an epoch has one owner", format!("two drivers wrote to {shard} in {epoch}"));
        }
    }

    /// A unit is durable: it is told, and runs on the queue begin and end with it.
    pub(super) fn written(&mut self, unit: &Unit, sent: Option<&Sent>) -> Result<(), Violation> {
        self.commits += 1;
        if let (Some(sent), Some(write)) = (sent, &unit.tree) {
            if let Some(tale) = self.chronicle.tales.get(&write.tree) {
                checker::check_paused(tale, sent, unit)?;
            }
            self.chronicle.write(sent, unit)?;
        }
        for write in &unit.runs {
            match write {
                RunWrite::Insert(made) => {
                    let Some((tree, start)) = made.origin else { continue };
                    self.runs.insert(made.run, (tree, start));
                    self.begin_run(tree, start)?;
                    let delay = self.random.between(0, 3);
                    self.at(delay, Happening::Claim);
                }
                RunWrite::Close { run, closing, .. } => {
                    let Some((tree, start)) = self.runs.get(run).copied() else { continue };
                    self.dispatcher.end(tree, start, self.now, closing.outcome);
                }
                RunWrite::Retry { .. }
                | RunWrite::Release { .. }
                | RunWrite::Stop { .. }
                | RunWrite::HandOver { .. }
                | RunWrite::Bury { .. }
                | RunWrite::Details { .. } => {}
            }
        }
        Ok(())
    }
}
