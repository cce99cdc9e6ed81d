//! The threads that drive shards: as many as there are processors, each with several shards.
//!
//! A thread gives every driver a turn, sends off what they want to have written, and sleeps until one of its inboxes gets
//! something or a timer comes; the operating system ends that sleep within a tenth of a millisecond. With a thread for each shard,
//! 32 of them would share the processors with those that carry their work to the database and its answers back, and with the
//! database itself if it is on the same machine; each would wake up for one start, and find its memory gone from the caches.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::sync::oneshot;

use crate::driver::{Driver, Ended, Message, Outgoing, Surroundings, Turn};
use crate::inbox::{Address, Bell, Inbox, inbox};
use crate::shard::{Event, Shard, fetch};

/// Timers that come within this time of the last turn are taken together. Messages never wait for it.
const GATHER: Duration = Duration::from_millis(1);

/// The longest sleep without a look at the clock, which may have been set or have run on while the machine slept.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The threads that drive shards.
pub(crate) struct Threads {
    around: Arc<Surroundings>,
    places: Vec<Arc<Place>>,
    threads: Vec<JoinHandle<()>>,
}

/// One thread, as others see it.
struct Place {
    bell: Arc<Bell>,
    /// Drivers that it has not seen yet.
    newcomers: Mutex<Vec<Driver>>,
    /// Every inbox has one of these.
    inboxes: Arc<()>,
    closed: AtomicBool,
}

impl Place {
    fn load(&self) -> usize {
        Arc::strong_count(&self.inboxes)
    }
}

impl Threads {
    /// As many as there are processors, if there are as many shards.
    pub(crate) fn start(around: Surroundings, shards: u32) -> std::io::Result<Threads> {
        let count = thread::available_parallelism().map_or(1, NonZero::get).min(shards.max(1) as usize);
        let mut threads = Threads { around: Arc::new(around), places: Vec::new(), threads: Vec::new() };
        for number in 0..count {
            let (place, thread) = start(format!("drivers-{number}"), threads.around.clone())?;
            threads.places.push(place);
            threads.threads.push(thread);
        }
        Ok(threads)
    }

    /// An inbox for the driver of a shard, on the thread that has the fewest; messages wait in it until the shard is driven.
    pub(crate) fn inbox(&self) -> (Address, Inbox) {
        let place =
            self.places.iter().min_by_key(|place| place.load()).expect("there is at least one thread");
        inbox(place.bell.clone(), place.inboxes.clone())
    }

    /// Drives a shard from now on; says how that ended.
    pub(crate) fn drive(&self, shard: Shard, (address, inbox): (Address, Inbox)) -> oneshot::Receiver<Ended> {
        let (ended, end) = oneshot::channel();
        if let Some(place) = self.places.iter().find(|place| address.rings(&place.bell)) {
            let driver = Driver::new(shard, self.around.clone(), (address, inbox), ended);
            place.newcomers.lock().unwrap_or_else(PoisonError::into_inner).push(driver);
            place.bell.ring();
        }
        end
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for place in &self.places {
            place.closed.store(true, Ordering::Release);
            place.bell.ring();
        }
        // Only when they are gone have they let go of the store.
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn start(name: String, around: Arc<Surroundings>) -> std::io::Result<(Arc<Place>, JoinHandle<()>)> {
    let (sender, receiver) = std::sync::mpsc::channel::<Arc<Place>>();
    let thread = thread::Builder::new().name(name).spawn(move || {
        if let Ok(place) = receiver.recv() {
            run(&place, &around);
        }
    })?;
    let bell = Arc::new(Bell::of(thread.thread().clone()));
    let (newcomers, inboxes, closed) = Default::default();
    let place = Arc::new(Place { bell, newcomers, inboxes, closed });
    let _ = sender.send(place.clone());
    Ok((place, thread))
}

/// Turns, for as long as there may be something to drive.
fn run(place: &Place, around: &Surroundings) {
    let mut drivers: Vec<Driver> = Vec::new();
    loop {
        let begun = Instant::now();
        place.bell.hush();
        if place.closed.load(Ordering::Acquire) {
            return;
        }
        drivers.append(&mut place.newcomers.lock().unwrap_or_else(PoisonError::into_inner));
        let (mut outgoing, mut next) = (Vec::new(), None);
        let mut now = Timestamp::MIN;
        each(&mut drivers, |driver| driver.take_in().map(|time| now = time).err());
        fetch(drivers.iter().map(Driver::shard), now);
        each(&mut drivers, |driver| match driver.turn(&mut outgoing) {
            Turn::Next(time) => {
                next = next.into_iter().chain(time).min();
                None
            }
            Turn::Last(ended) => Some(ended),
        });
        send_off(outgoing, around);
        let wait = next.map(|next: Timestamp| around.clock.real(next.duration_since(around.clock.now())));
        let rest = GATHER.saturating_sub(begun.elapsed());
        // The wait is measured by a clock that stands still while the machine sleeps, and knows nothing of corrections.
        place.bell.wait(wait.unwrap_or(WAIT_MAX).clamp(rest, WAIT_MAX));
    }
}

/// Gives every driver its turn; those that have ended go.
fn each(drivers: &mut Vec<Driver>, mut turn: impl FnMut(&mut Driver) -> Option<Ended>) {
    let mut index = 0;
    while index < drivers.len() {
        // A driver that panics ends alone: its shard is given up, and taken again by whoever should have it.
        match catch_unwind(AssertUnwindSafe(|| turn(&mut drivers[index]))) {
            Ok(None) => index += 1,
            Ok(Some(ended)) => drivers.swap_remove(index).end(ended),
            Err(_) => drivers.swap_remove(index).abandon(),
        }
    }
}

/// Has batches written, all of them at once.
fn send_off(outgoing: Vec<Outgoing>, around: &Surroundings) {
    if outgoing.is_empty() {
        return;
    }
    let store = around.store.clone();
    around.runtime.spawn(async move {
        join_all(outgoing.into_iter().map(async |Outgoing { address, batch, units }| {
            let answer = store.commit(units).await;
            address.send(Message::Event(Event::Committed { batch, answer }));
        }))
        .await;
    });
}

#[cfg(test)]
mod tests {
    use punctual_core::Limits;
    use punctual_store::memory::Memory;
    use punctual_store::{Epoch, Keeper, ShardId};
    use tokio::runtime::Handle;

    use super::*;
    use crate::clock::Clock;
    use crate::metrics::Metrics;
    use crate::outlet::Outlet;
    use crate::shard::Settings;
    use crate::watchers::Watchers;

    /// Stands still, and breaks when it is told to.
    #[derive(Default)]
    struct Still {
        breaks: AtomicBool,
    }

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            assert!(!self.breaks.swap(false, Ordering::SeqCst), "the clock broke");
            Timestamp::UNIX_EPOCH
        }
    }

    fn threads(clock: Arc<Still>, shards: u32) -> Threads {
        let store = Arc::new(Memory::new(shards, Timestamp::UNIX_EPOCH));
        let watchers = Watchers::new(store.clone(), Keeper(1));
        let (outlet, _) = Outlet::new(Arc::new(Metrics::default()), watchers);
        let around = Surroundings { keeper: Keeper(1), store, clock, runtime: Handle::current(), outlet };
        Threads::start(around, shards).unwrap()
    }

    fn shard(number: u32) -> Shard {
        Shard::new(ShardId(number), Epoch(1), Limits::default(), Settings::default())
    }

    /// Whether a driver answers.
    async fn answers(address: &Address) -> bool {
        let (waiter, answer) = oneshot::channel();
        address.send(Message::Recheck(Vec::new(), waiter));
        answer.await.is_ok()
    }

    #[tokio::test]
    async fn what_is_sent_before_a_shard_is_driven_waits() {
        let threads = threads(Arc::default(), 8);
        let inboxes: Vec<_> = (0..8).map(|_| threads.inbox()).collect();
        inboxes.iter().for_each(|(address, _)| address.send(Message::Stop));
        for (number, inbox) in inboxes.into_iter().enumerate() {
            assert_eq!(threads.drive(shard(number as u32), inbox).await, Ok(Ended::Stopped));
        }
    }

    #[tokio::test]
    async fn every_thread_has_its_share() {
        let threads = threads(Arc::default(), 8);
        let loads = || threads.places.iter().map(|place| place.load()).collect::<Vec<_>>();
        let is_fair = || loads().iter().max().unwrap() - loads().iter().min().unwrap() <= 1;
        let mut inboxes: Vec<_> = (0..9).map(|_| threads.inbox()).collect();
        assert!(is_fair(), "{:?}", loads());
        // Those of one thread go, and others come.
        inboxes.retain(|(address, _)| !address.rings(&threads.places[0].bell));
        inboxes.extend((0..5).map(|_| threads.inbox()));
        assert!(is_fair(), "{:?}", loads());
    }

    #[tokio::test]
    async fn a_driver_that_panics_ends_alone() {
        let clock = Arc::new(Still::default());
        // One thread for all of them.
        let threads = threads(clock.clone(), 1);
        let (first, second) = (threads.inbox(), threads.inbox());
        let (of_first, of_second) = (first.0.clone(), second.0.clone());
        let mut first_end = threads.drive(shard(0), first);
        assert!(answers(&of_first).await);
        let mut second_end = threads.drive(shard(1), second);
        assert!(answers(&of_second).await);

        clock.breaks.store(true, Ordering::SeqCst);
        of_first.ring();
        // Either may be the one that looks at the clock next.
        let (ended, gone, left, end) = tokio::select! {
            ended = &mut first_end => (ended, of_first, of_second, second_end),
            ended = &mut second_end => (ended, of_second, of_first, first_end),
        };
        assert!(ended.is_err(), "nobody says how it ended");
        assert!(!answers(&gone).await && answers(&left).await);
        left.send(Message::Stop);
        assert_eq!(end.await, Ok(Ended::Stopped));
    }

    #[tokio::test]
    async fn threads_let_go_of_the_store() {
        let threads = threads(Arc::default(), 4);
        let (store, end) = (threads.around.store.clone(), threads.drive(shard(0), threads.inbox()));
        drop(threads);
        assert_eq!(Arc::strong_count(&store), 1);
        assert!(end.await.is_err(), "its driver is gone");
    }
}
