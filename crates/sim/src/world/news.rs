//! What nodes tell each other through the store: late, lost, twice; and ends of runs that go to their owners this way.

use punctual_engine::relay::{ending_of, meaning_of, work_of};
use punctual_engine::shard::{Assignment, Event};
use punctual_store::{Ending, EndingAnswer, Keeper, News, ShardId, Store};

use super::World;
use super::agenda::Happening;
use super::clients::Asked;
use super::node::{Role, Who};

/// How long an owner may take to write an end that it was told, at most; a lease, where that is shorter.
const RELAY_SECONDS_MAX: i64 = 30;

impl World {
    /// Whatever the store has told travels to every node that listens. A node that is cut learns later that it missed some.
    pub(super) fn spread_news(&mut self) {
        while let Ok(news) = self.listener.try_recv() {
            if !matches!(news, News::Tree { .. } | News::Ending(_) | News::Written { .. } | News::Roster) {
                continue;
            }
            for node in 0..self.nodes.len() {
                if let Some(who) = self.who(node).filter(|_| self.reaches(node)) {
                    self.send_news(who, &news);
                }
            }
        }
    }

    fn send_news(&mut self, who: Who, news: &News) {
        let late = self.random.between(0, self.knobs.news_seconds_max);
        if self.random.chance(self.knobs.news_lost) {
            return self.at(late + 30, Happening::Gap { who });
        }
        self.at(late, Happening::News { who, news: Box::new(news.clone()) });
        if self.random.chance(self.knobs.news_twice) {
            let later = late + self.random.between(0, self.knobs.news_seconds_max);
            self.at(later, Happening::News { who, news: Box::new(news.clone()) });
        }
    }

    pub(super) fn hear_news(&mut self, who: Who, news: News) {
        if self.member(who).is_none() {
            return;
        }
        match news {
            News::Tree { shard, tree, due_time } => {
                if let Some(by) = self.process(who.node, Role::Owner(shard)) {
                    self.tell_shard(by, Event::Moved { tree, due_time });
                }
            }
            News::Ending(ending) => self.hear_of_end(who, *ending),
            News::Written { to, ticket, answer } => self.hear_of_answer(who, to, ticket, answer),
            News::Roster => {
                self.give_up_told(who);
                self.ring(who.node);
            }
            News::Ready(_) | News::Wanted { .. } | News::Queue(_) | News::Stop(_) | News::Gap => {}
            // For people who look: nothing rests on it.
            News::Watched { .. } | News::Happened(_) | News::Untold { .. } => {}
        }
    }

    /// Serves what somebody asks of a node: as the owner, by telling the owner, or as a guest.
    pub(super) fn serve(&mut self, who: Who, shard: ShardId, work: Assignment) {
        if self.member(who).is_none() {
            return;
        }
        if self.nodes[who.node].drives(shard)
            && let Some(by) = self.process(who.node, Role::Owner(shard))
        {
            return self.tell_shard(by, Event::Submit(work));
        }
        let Some(member) = self.member(who) else { return };
        let Some(ending) = ending_of(member.keeper, shard, &work) else {
            return self.serve_as_guest(who, work);
        };
        let ending = member.told.tell(ending, work);
        let (ticket, patience) = (ending.ticket, self.knobs.lease_seconds.min(RELAY_SECONDS_MAX));
        if self.reaches(who.node) {
            self.store.tell(News::Ending(Box::new(ending)));
        }
        self.met.told += 1;
        self.at(patience, Happening::LosePatienceWithOwner { who, ticket });
    }

    fn serve_as_guest(&mut self, who: Who, work: Assignment) {
        if let Some(by) = self.guest(who.node) {
            self.tell_shard(by, Event::Submit(work));
        }
    }

    /// The owner of a schedule hears that one of its runs has ended; anybody else keeps silent.
    fn hear_of_end(&mut self, who: Who, ending: Ending) {
        let (to, told) = (ending.from, ending.ticket);
        let Some(by) = self.process(who.node, Role::Owner(ending.shard)) else { return };
        if self.nodes[who.node].drives(ending.shard) {
            let ticket = self.wait_for(Asked::told(who, to, told));
            self.tell_shard(by, Event::Submit(Assignment { ticket: Some(ticket), ..work_of(ending) }));
        }
    }

    /// The owner tells what became of it.
    pub(super) fn tell_answer(&mut self, who: Who, to: Keeper, ticket: u64, answer: EndingAnswer) {
        if self.member(who).is_some() && self.reaches(who.node) {
            self.store.tell(News::Written { to, ticket, answer });
        }
    }

    fn hear_of_answer(&mut self, who: Who, to: Keeper, ticket: u64, answer: EndingAnswer) {
        let member = self.member(who).filter(|member| member.keeper == to);
        let Some(work) = member.and_then(|member| member.told.take(ticket)) else { return };
        match (meaning_of(answer), work.ticket) {
            (Some(answer), Some(ticket)) => {
                self.met.answered += 1;
                self.answered(ticket, answer);
            }
            (Some(_), None) => {}
            (None, _) => {
                self.met.refused += 1;
                self.serve_as_guest(who, work);
            }
        }
    }

    /// The owner took too long: the end is written here.
    pub(super) fn lose_patience_with_owner(&mut self, who: Who, ticket: u64) {
        if let Some(work) = self.member(who).and_then(|member| member.told.take(ticket)) {
            self.serve_as_guest(who, work);
        }
    }

    /// Shards may have moved, or answers may have been missed: whoever waits is served here.
    pub(super) fn give_up_told(&mut self, who: Who) {
        let told = self.member(who).map(|member| member.told.take_all());
        for work in told.unwrap_or_default() {
            self.serve_as_guest(who, work);
        }
    }
}
