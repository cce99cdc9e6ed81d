//! What other nodes tell, and what this one does about it.

use std::time::Duration;

use punctual_store::{Listener, News};

use super::Engine;
use crate::shard::Event;

/// How long to wait before listening or reading again, when the way on which news come was cut.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// News that are heard at a time.
const NEWS_MAX: usize = 1_000;

impl Engine {
    /// Hears news, one after the other, for as long as the process lives.
    pub(super) async fn hear_all(self, mut listener: Listener) {
        let mut heard = Vec::new();
        loop {
            while listener.recv_many(&mut heard, NEWS_MAX).await > 0 {
                if heard.iter().any(|news| matches!(news, News::Queue(_))) {
                    // Once for all of them, and first: others may be of schedules of these queues.
                    self.hear_of_queues().await;
                }
                let mut changed = Vec::new();
                for news in heard.drain(..) {
                    match news {
                        News::Stop(run) => changed.push(run),
                        news => self.hear(news).await,
                    }
                }
                if !changed.is_empty() {
                    let desk = self.inner.desk.clone();
                    tokio::spawn(async move { desk.look_at(changed).await });
                }
            }
            tokio::time::sleep(LISTEN_AGAIN).await;
            let Some(again) = self.inner.store.listen() else { return };
            listener = again;
            self.hear(News::Gap).await;
        }
    }

    async fn hear(&self, news: News) {
        let inner = &self.inner;
        match news {
            News::Ready(queue) | News::Queue(queue) => inner.desk.ring_here(queue),
            News::Wanted { queue, at } => inner.desk.wanted_at(queue, at),
            News::Tree { shard, tree, due_time } => inner.router.tell(shard, Event::Moved { tree, due_time }),
            // All that were told together are looked at together.
            News::Stop(_) => {}
            News::Ending(ending) => {
                let (desk, run) = (inner.desk.clone(), ending.run);
                if let Some(written) = inner.router.hear_of_end(*ending) {
                    tokio::spawn(async move {
                        if written.await {
                            desk.has_ended(run);
                        }
                    });
                }
            }
            News::Written { to, ticket, answer } => inner.router.hear_of_answer(to, ticket, answer),
            News::Watched { at, watch } => inner.outlet.watchers.hear_of_watch(at, watch, self.now()),
            News::Happened(told) => inner.outlet.watchers.hear(*told),
            News::Untold { from, count } => inner.outlet.watchers.hear_of_untold(from, count),
            News::Roster => {
                inner.desk.announce_again();
                inner.roster_bell.notify_one();
                inner.router.give_up_relayed();
            }
            News::Gap => {
                inner.router.give_up_relayed();
                inner.router.tell_all(|| Event::MissedNews);
                self.hear_of_queues().await;
                inner.desk.ring_all();
                inner.roster_bell.notify_one();
                tokio::spawn(inner.desk.clone().reconcile());
                let engine = self.clone();
                tokio::spawn(async move {
                    while let Err(error) = engine.check_timers().await {
                        tracing::warn!(%error, "timers could not be read again; trying again");
                        tokio::time::sleep(LISTEN_AGAIN).await;
                        if engine.is_stopping() {
                            return;
                        }
                    }
                });
            }
        }
    }

    async fn hear_of_queues(&self) {
        if let Err(error) = self.refresh_queues().await {
            // Whoever meets a queue that is not known asks for it anyway.
            tracing::warn!(%error, "the queues could not be read again");
        }
    }

    /// Tells others, if there may be any.
    pub(super) fn tell(&self, news: News) {
        if self.inner.node.shared {
            self.inner.store.tell(news);
        }
    }
}
