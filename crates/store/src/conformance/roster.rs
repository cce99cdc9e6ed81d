//! Nodes that share a database: who is there, who looks after which run, and what they tell each other.

use jiff::{SignedDuration, Timestamp};

use punctual_core::{Note, ScheduleKey};

use super::Subject;
use super::support::{Bed, at, bytes, new_queue, new_tree, next};
use crate::{
    Batch, Beat, Claim, Epoch, Keeper, Kept, Listener, LiveRun, News, NodeId, QueueSettings, Roster,
    RunWrite, ShardId, Told, TreeKey, TreeWrite, Unit, Watch,
};

pub(super) async fn exercise(subject: &impl Subject) {
    if !subject.create().await.is_shared() {
        return;
    }
    nodes_come_and_go(subject).await;
    who_is_silent_is_over(subject).await;
    a_node_is_drained(subject).await;
    what_nodes_say_about_themselves_is_heard(subject).await;
    what_a_node_held_is_free_when_it_is_struck_off(subject).await;
    runs_are_looked_after(subject).await;
    news_arrive(subject).await;
    many_leases_are_renewed_at_once(subject).await;
}

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const MOMENT: SignedDuration = SignedDuration::from_millis(30);
const LONGER: SignedDuration = SignedDuration::from_millis(90);

fn named(node: &str) -> NodeId {
    NodeId(node.into())
}

async fn beat(bed: &Bed, node: &str, keeper: i64, ttl: SignedDuration) -> Roster {
    let (node, keeper) = (named(node), Keeper(keeper));
    let beat =
        Beat { node, keeper, started_at: at(keeper.0), version: "1.2.3".to_owned(), ttl, report: None };
    bed.store.beat(beat).await.expect("the store answers")
}

/// A beat of a node that has something to say about itself.
async fn say(bed: &Bed, node: &str, keeper: i64, ttl: SignedDuration, report: &str) {
    let (node, keeper, report) = (named(node), Keeper(keeper), Some(bytes(report)));
    let beat = Beat { node, keeper, started_at: at(keeper.0), version: "1.2.3".to_owned(), ttl, report };
    bed.store.beat(beat).await.expect("the store answers");
}

fn keepers(roster: &Roster) -> Vec<i64> {
    roster.nodes.iter().map(|seen| seen.keeper.0).collect()
}

async fn nodes_come_and_go(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let before = bed.store.now().await.expect("the store has a clock");
    let roster = beat(&bed, "two", 2, HOUR).await;
    assert!(roster.was_over, "nobody knew it");
    assert!(roster.now >= before, "by the database's clock");
    let roster = beat(&bed, "one", 1, HOUR).await;
    assert_eq!(keepers(&roster), [1, 2], "by keeper");
    let seen = &roster.nodes[0];
    assert_eq!((&*seen.node.0, seen.started_at, &*seen.version), ("one", at(1), "1.2.3"));
    assert!(!seen.draining && seen.expires_at > roster.now);
    assert!(!beat(&bed, "two", 2, HOUR).await.was_over, "it was heard of in time");

    bed.store.strike(named("two"), false).await.expect("the store answers");
    assert_eq!(keepers(&bed.store.roster().await.expect("the store answers")), [1, 2], "it is alive");
    bed.store.strike(named("two"), true).await.expect("the store answers");
    assert_eq!(keepers(&bed.store.roster().await.expect("the store answers")), [1], "it left");
    assert!(beat(&bed, "two", 2, HOUR).await.was_over, "and came back");
}

async fn who_is_silent_is_over(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    beat(&bed, "one", 1, MOMENT).await;
    beat(&bed, "two", 2, HOUR).await;

    subject.advance(LONGER).await;

    let roster = bed.store.roster().await.expect("the store answers");
    let alive = |seen: &&crate::NodeSeen| seen.expires_at > roster.now;
    assert_eq!(roster.nodes.iter().filter(alive).map(|seen| seen.keeper.0).collect::<Vec<_>>(), [2]);
    assert_eq!(keepers(&roster), [1, 2], "it stays until somebody has seen to what it did");
    assert!(beat(&bed, "one", 1, MOMENT).await.was_over, "and learns that it was over");
    assert!(!beat(&bed, "one", 1, MOMENT).await.was_over);

    subject.advance(LONGER).await;
    bed.store.strike(named("one"), false).await.expect("the store answers");
    assert_eq!(keepers(&bed.store.roster().await.expect("the store answers")), [2]);
}

async fn a_node_is_drained(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    beat(&bed, "one", 1, HOUR).await;
    assert_eq!(bed.store.drain(named("nobody"), true).await, Ok(false));
    assert_eq!(bed.store.drain(named("one"), true).await, Ok(true));
    assert!(beat(&bed, "one", 1, HOUR).await.nodes[0].draining, "a beat does not undo it");
    assert_eq!(bed.store.drain(named("one"), false).await, Ok(true));
    assert!(!beat(&bed, "one", 1, HOUR).await.nodes[0].draining);
}

async fn what_nodes_say_about_themselves_is_heard(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let reports = async || bed.store.reports().await.expect("the store answers");
    beat(&bed, "silent", 1, HOUR).await;
    say(&bed, "two", 2, HOUR, "one worker").await;
    say(&bed, "three", 3, MOMENT, "").await;
    assert_eq!(reports().await, [(Keeper(2), bytes("one worker")), (Keeper(3), bytes(""))]);

    beat(&bed, "two", 2, HOUR).await;
    assert_eq!(
        reports().await[0],
        (Keeper(2), bytes("one worker")),
        "a beat without a word leaves it as it was"
    );
    say(&bed, "two", 2, HOUR, "two workers").await;
    subject.advance(LONGER).await;
    assert_eq!(reports().await, [(Keeper(2), bytes("two workers"))], "who is over says nothing");

    bed.store.strike(named("two"), true).await.expect("the store answers");
    beat(&bed, "two", 2, HOUR).await;
    assert_eq!(reports().await, [], "who comes back has to say it again");
}

async fn what_a_node_held_is_free_when_it_is_struck_off(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    beat(&bed, "one", 1, HOUR).await;
    let lease = bed.store.acquire(ShardId(2), named("one"), HOUR).await.expect("the store answers");
    let lease = lease.expect("nobody holds it");
    let roster = bed.store.roster().await.expect("the store answers");
    let held = roster.leases.iter().map(|lease| (lease.shard, lease.epoch, &*lease.node.0));
    assert_eq!(held.collect::<Vec<_>>(), [(ShardId(2), lease.epoch, "one")]);

    bed.store.strike(named("one"), true).await.expect("the store answers");

    assert_eq!(bed.store.roster().await.expect("the store answers").leases, []);
    let taken = bed.store.acquire(ShardId(2), named("two"), HOUR).await.expect("the store answers");
    assert!(taken.expect("nobody has to wait").epoch > lease.epoch);
}

async fn many_leases_are_renewed_at_once(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let mut leases = Vec::new();
    for shard in 0..3 {
        let lease = bed.store.acquire(ShardId(shard), named("one"), MOMENT).await.expect("the store answers");
        leases.push(lease.expect("nobody holds it"));
    }
    bed.store.release(leases[1].clone()).await.expect("the store answers");

    let answers = bed.store.renew_all(leases.clone(), HOUR).await.expect("the store answers");

    let renewed: Vec<Option<Epoch>> =
        answers.iter().map(|answer| answer.as_ref().ok().map(|lease| lease.epoch)).collect();
    assert_eq!(renewed, [Some(leases[0].epoch), None, Some(leases[2].epoch)], "each has its own answer");
    subject.advance(LONGER).await;
    let other = bed.store.acquire(ShardId(2), named("two"), HOUR).await.expect("the store answers");
    assert_eq!(other, None, "it is still held");
}

async fn kept(bed: &Bed, kept: Kept) -> Vec<i64> {
    let live = bed.store.live_runs(kept, None, 99).await.expect("the store answers");
    live.iter().map(|live| live.made.run.0).collect()
}

async fn runs_are_looked_after(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let (made, other) = (bed.new_run().await, bed.new_run().await);
    let unit = |made| Unit { runs: vec![RunWrite::Insert(made)], ..Unit::default() };
    let batch =
        Batch { keeper: Keeper(7), units: vec![unit(made.clone()), unit(other.clone())], ..Batch::default() };
    assert_eq!(bed.store.commit(batch).await, Ok(vec![Ok(()), Ok(())]));
    assert_eq!(kept(&bed, Kept::By(Keeper(7))).await, [made.run.0, other.run.0], "by whoever made them");
    assert_eq!(kept(&bed, Kept::ByNoneOf(vec![Keeper(7)])).await, [0; 0]);

    let claim =
        Claim { queue: bed.queue, worker: "worker".into(), runs_max: 1, now: at(1), keeper: Keeper(8) };
    let taken: Vec<LiveRun> = bed.store.claim(claim).await.expect("the store answers").runs;
    assert_eq!(taken[0].keeper, Keeper(8), "by whoever handed it out");
    assert_eq!(kept(&bed, Kept::By(Keeper(8))).await, [made.run.0]);

    let (run, not_before) = (made.run, at(5));
    let retry = RunWrite::Retry { run, attempt: 1, not_before, failure: bytes("no") };
    let unit = Unit { runs: vec![retry], ..Unit::default() };
    assert_eq!(
        bed.store.commit(Batch { keeper: Keeper(9), units: vec![unit], ..Batch::default() }).await,
        Ok(vec![Ok(())])
    );
    assert_eq!(kept(&bed, Kept::By(Keeper(9))).await, [run.0], "by whoever heard how an attempt ended");

    bed.store
        .keep(vec![run, other.run, crate::RunKey(1 << 40)], Keeper(10))
        .await
        .expect("the store answers");
    assert_eq!(kept(&bed, Kept::By(Keeper(10))).await, [run.0, other.run.0], "or by whoever takes them over");
    assert_eq!(kept(&bed, Kept::ByNoneOf(vec![Keeper(7), Keeper(9)])).await, [run.0, other.run.0]);
    let after = bed.store.live_runs(Kept::By(Keeper(10)), Some(run), 99).await.expect("the store answers");
    assert_eq!(after.iter().map(|live| live.made.run).collect::<Vec<_>>(), [other.run], "in pages");
}

/// Waits until something is heard; what else is told in between is passed over.
async fn heard(news: &mut Listener, wanted: News) {
    loop {
        match news.recv().await {
            Some(heard) if heard == wanted => return,
            Some(_) => {}
            None => panic!("nothing more will be heard, and {wanted:?} was not"),
        }
    }
}

async fn news_arrive(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let mut news = bed.store.listen().expect("others may write");
    let (store, queue) = (&bed.store, bed.queue);

    store.tell(News::Ready(queue));
    heard(&mut news, News::Ready(queue)).await;
    store.tell(News::Stop(crate::RunKey(5)));
    heard(&mut news, News::Stop(crate::RunKey(5))).await;
    store.tell(News::Roster);
    heard(&mut news, News::Roster).await;
    let watch = Watch { namespace: "default".into(), schedule: None };
    store.tell(News::Watched { at: Keeper(3), watch: watch.clone() });
    heard(&mut news, News::Watched { at: Keeper(3), watch }).await;
    let told =
        |note| Told { from: Keeper(3), key: ScheduleKey::new("default", "one"), at: at(1), note, run: None };
    let happened =
        [Note::Resumed, Note::Created, Note::Updated].map(|note| News::Happened(Box::new(told(note))));
    happened.iter().cloned().for_each(|news| store.tell(news));
    for happened in happened {
        heard(&mut news, happened).await;
    }

    let declared = store.create_queue(new_queue("default", "new")).await.expect("declared").queue;
    heard(&mut news, News::Queue(declared)).await;
    store.update_queue(declared, QueueSettings::default()).await.expect("the store answers");
    heard(&mut news, News::Queue(declared)).await;

    // Whoever does not own a schedule and writes it tells so; the owner need not tell itself.
    let tree = TreeKey(bed.key().await);
    let due_time = Some(Timestamp::UNIX_EPOCH);
    bed.write(TreeWrite { due_time, epoch: None, ..new_tree(tree, "one") }).await.expect("written");
    heard(&mut news, News::Tree { shard: ShardId(0), tree, due_time }).await;
    bed.write(TreeWrite { due_time: None, epoch: None, ..next(tree, 1) }).await.expect("written");
    heard(&mut news, News::Tree { shard: ShardId(0), tree, due_time: None }).await;
    assert!(bed.write(TreeWrite { epoch: None, ..next(tree, 1) }).await.is_err(), "it has moved");
}
