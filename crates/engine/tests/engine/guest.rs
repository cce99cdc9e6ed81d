//! Guests change schedules that others drive; whatever order the news come in, the owner wakes every schedule in time.

use punctual_core::{Command, OverlapPolicy, Policies, RequestId, StartId};
use punctual_engine::shard::{Event, Refusal};
use punctual_engine::{Verb, Work};
use punctual_store::{Listener, News, QueueKey, ShardId, Store, TreeKey, TreeRef};

use crate::bench::{Bench, every, every_on, now_or_never};

fn allow_all() -> Policies {
    Policies { overlap: OverlapPolicy::AllowAll, ..Policies::default() }
}

/// An owner, a guest, and what the store tells the owner.
fn pair() -> (Bench, Bench, Listener) {
    let owner = Bench::new();
    let news = owner.store.listen().unwrap();
    let guest = Bench::guest(&owner);
    (owner, guest, news)
}

/// All news of schedules that wait to be heard.
fn waiting(news: &mut Listener) -> Vec<Event> {
    let mut events = Vec::new();
    while let Ok(news) = news.try_recv() {
        if let News::Tree { tree, due_time, .. } = news {
            events.push(Event::Moved { tree, due_time });
        }
    }
    events
}

fn hear(owner: &mut Bench, news: &mut Listener) {
    waiting(news).into_iter().for_each(|event| owner.event(event));
}

fn resume(bench: &mut Bench, name: &str, request: &str) {
    let command = Command { request: RequestId::new(request), body: Default::default() };
    let ticket = bench.ask(name, Work::Change(Verb::Resume(command)));
    assert!(bench.answer(ticket).is_ok());
}

fn delete(bench: &mut Bench, name: &str, request: &str) {
    let command = Command { request: RequestId::new(request), body: () };
    let ticket = bench.ask(name, Work::Change(Verb::Delete(command)));
    assert!(bench.answer(ticket).is_ok());
}

fn starts(bench: &Bench) -> Vec<StartId> {
    bench.claim(100).iter().map(|run| run.made.origin.unwrap().1).collect()
}

#[test]
fn a_guest_wakes_nobody_and_remembers_nothing() {
    let (mut owner, mut guest, mut news) = pair();
    let created = guest.create(every(10, "a", allow_all()));
    assert!(guest.answer(created).is_ok());
    assert_eq!((guest.shard.size(), guest.shard.next_time()), ((0, 0), None));

    guest.advance(20);
    assert_eq!(starts(&guest), []);

    hear(&mut owner, &mut news);
    owner.advance(20);
    assert_eq!(starts(&owner).len(), 2);
    assert!(waiting(&mut news).is_empty(), "an owner tells nobody");
}

#[test]
fn late_news_postpone_nothing() {
    let (mut owner, mut guest, mut news) = pair();
    owner.create(every(10, "a", allow_all()));
    guest.pause("a", "p");
    let late = waiting(&mut news);
    resume(&mut owner, "a", "r");

    // It speaks of a time when the schedule was paused.
    late.into_iter().for_each(|event| owner.event(event));

    owner.advance(10);
    assert_eq!(starts(&owner).len(), 1);
}

#[test]
fn a_schedule_changed_while_its_commit_is_on_its_way_is_looked_at_again() {
    let (mut owner, mut guest, mut news) = pair();
    owner.create(every(3_600, "a", allow_all()));
    owner.pause("a", "p");
    owner.holds_batches = true;
    // The owner writes something, and does not know yet that it is written.
    let command = Command { request: RequestId::new("t"), body: Default::default() };
    owner.ask("a", Work::Change(Verb::Trigger(command)));
    let (batch, units) = owner.held.remove(0);
    let answer = Ok(owner.store.commit_now(&units));
    resume(&mut guest, "a", "r");
    hear(&mut owner, &mut news);

    // What it promised itself is older than what the guest wrote: a paused schedule has no timer.
    owner.holds_batches = false;
    owner.event(Event::Committed { batch, answer });

    assert_eq!(owner.stored("a").unwrap().due_time, owner.shard.next_time());
    assert_eq!(starts(&owner).len(), 1);
    owner.advance(3_600);
    assert_eq!(starts(&owner).len(), 1);
}

#[test]
fn a_tree_read_before_a_guest_wrote_it_is_read_again() {
    let (mut owner, mut guest, mut news) = pair();
    owner.create(every(3_600, "a", allow_all()));
    owner.pause("a", "p");
    let stored = owner.stored("a").unwrap();
    // The owner is asked to look at it, and its answer is older than what the guest writes.
    owner.event(Event::MissedNews);
    let mut effects = Vec::new();
    owner.shard.handle(owner.now, Event::Timers(vec![(stored.tree, Some(owner.now))]), &mut effects);
    owner.shard.flush(owner.now, &mut effects);
    resume(&mut guest, "a", "r");
    hear(&mut owner, &mut news);
    let trees = vec![TreeRef::Key(stored.tree)];
    owner.event(Event::Loaded { trees, answer: Ok(vec![Some(stored)]) });

    owner.advance(3_600);
    assert_eq!(starts(&owner).len(), 1);
}

#[test]
fn missed_news_are_made_up_for_by_the_stored_timers() {
    let (mut owner, mut guest, _) = pair();
    owner.create(every(3_600, "a", allow_all()));
    owner.create(every(3_600, "b", allow_all()));
    owner.pause("a", "p");
    resume(&mut guest, "a", "r");
    guest.create(every(3_600, "c", allow_all()));

    owner.event(Event::MissedNews);
    let timers: Vec<(TreeKey, _)> = now_or_never(owner.store.timers(ShardId(0), None, usize::MAX)).unwrap();
    owner.shard.recheck(&timers);

    owner.advance(3_600);
    assert_eq!(starts(&owner).len(), 3);
}

#[test]
fn a_name_given_to_another_schedule_elsewhere_means_that_one() {
    let (mut owner, mut guest, mut news) = pair();
    owner.create(every(10, "a", allow_all()));
    // The owner remembers the old one, closed.
    delete(&mut owner, "a", "d1");
    let mut again = every(3_600, "a", allow_all());
    again.request = RequestId::new("again");
    let again = guest.create(again);
    assert!(guest.answer(again).is_ok());
    let paused = owner.pause("a", "p1");
    assert!(owner.answer(paused).is_ok(), "{:?}", owner.answer(paused));
    waiting(&mut news);

    // The owner remembers the old one, open.
    delete(&mut guest, "a", "d2");
    let mut third = every(3_600, "a", allow_all());
    third.request = RequestId::new("third");
    guest.create(third);
    let paused = owner.pause("a", "p2");
    assert!(owner.answer(paused).is_ok(), "{:?}", owner.answer(paused));
}

#[test]
fn a_queue_that_is_not_known_is_looked_up_before_a_schedule_is_called_broken() {
    let (mut owner, mut guest, mut news) = pair();
    let queue = QueueKey(owner.queue.0 + 1_000);
    let declared = || Event::QueueDeclared { namespace: "default".into(), name: "fresh".into(), queue };
    guest.event(declared());
    guest.create(every_on("fresh", 10, "a", allow_all()));
    hear(&mut owner, &mut news);
    let paused = owner.pause("a", "p");
    assert_eq!(owner.effects, ["ListQueues"]);

    owner.event(declared());
    owner.event(Event::QueuesListed);
    assert!(owner.answer(paused).is_ok());

    // Where there is none, it is broken; a guest says so every time, and remembers nothing.
    let mut stranger = Bench::guest(&owner);
    for request in ["one", "two"] {
        let paused = stranger.pause("a", request);
        stranger.event(Event::QueuesListed);
        stranger.event(Event::QueuesListed);
        assert!(matches!(stranger.answer(paused), Err(Refusal::Quarantined(_))));
    }
    assert!(!stranger.effects.iter().any(|effect| effect.starts_with("Quarantined")));
    stranger.event(declared());
    let paused = stranger.pause("a", "three");
    assert!(stranger.answer(paused).is_ok());
}
