//! Keys for runs and schedules: whoever asks while another is being answered is answered together with all others, and some
//! more are drawn for those who ask in a moment.
//!
//! All shards of a node ask at about the same time. One after another, each with a commit of its own, the last would wait for
//! as many commits as there are shards; and with many nodes that would be a good part of all transactions.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use punctual_store::StoreError;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::fresh::Fresh;
use crate::pool::Pool;
use crate::roster;

/// So many are drawn at a time, or more where somebody needs more: what all shards of a busy node ask for in half a second.
const DRAWN: i64 = 262_144;

/// Lists are sorted by key, and several nodes draw keys: what was drawn longer ago is not handed out any more.
const AGE_MAX: Duration = Duration::from_millis(500);

/// Somebody who waits for so many.
type Waiter = (u32, oneshot::Sender<Result<i64, StoreError>>);

/// Who waits for keys, and those that are there.
pub(crate) struct Keys {
    fresh: Arc<Fresh>,
    desk: Mutex<Desk>,
}

#[derive(Default)]
struct Desk {
    waiting: Vec<Waiter>,
    spare: Range<i64>,
    drawn_at: Option<Instant>,
}

impl Desk {
    /// Keys that were drawn a moment ago, if there are enough.
    fn take(&mut self, count: u32) -> Option<i64> {
        let young = self.drawn_at.is_some_and(|drawn_at| drawn_at.elapsed() < AGE_MAX);
        let (first, next) = (self.spare.start, self.spare.start + i64::from(count));
        (young && next <= self.spare.end).then(|| {
            self.spare.start = next;
            first
        })
    }
}

impl Keys {
    /// Whoever writes is told which keys are new.
    pub(crate) fn new(fresh: Arc<Fresh>) -> Keys {
        Keys { fresh, desk: Mutex::default() }
    }

    /// Draws keys that follow each other; says the first.
    pub(crate) async fn reserve(&self, pool: &Pool, count: u32) -> Result<i64, StoreError> {
        let (waiter, answer) = oneshot::channel();
        {
            let mut desk = self.desk();
            if let Some(first) = desk.take(count) {
                return Ok(first);
            }
            desk.waiting.push((count, waiter));
        }
        match pool.alone().await {
            // Whoever has the connection asks for all; those who come later find that they have been answered.
            Ok((session, _guard)) => {
                let all = std::mem::take(&mut self.desk().waiting);
                let wanted: i64 = all.iter().map(|(count, _)| i64::from(*count)).sum();
                if wanted > 0 {
                    let count = wanted.max(DRAWN);
                    let drawn_at = Instant::now();
                    let drawn = session.within(roster::reserve(&session, count)).await;
                    if let Ok(first) = &drawn {
                        self.fresh.add(*first, count);
                        let mut desk = self.desk();
                        (desk.spare, desk.drawn_at) = (first + wanted..first + count, Some(drawn_at));
                    }
                    share(all, drawn.map_err(|fault| fault.answer()));
                }
            }
            Err(fault) => share(std::mem::take(&mut self.desk().waiting), Err(fault.answer())),
        }
        answer.await.unwrap_or_else(|_| Err(StoreError::unavailable("whoever asked for keys has gone away")))
    }

    /// What is drawn from now on is higher than any key that was drawn elsewhere before.
    pub(crate) fn forget(&self) {
        self.desk().drawn_at = None;
    }

    fn desk(&self) -> std::sync::MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn share(all: Vec<Waiter>, drawn: Result<i64, StoreError>) {
    let mut next = drawn;
    for (count, waiter) in all {
        let _ = waiter.send(next.clone());
        next = next.map(|first| first + i64::from(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_drawn_at_once_is_shared_without_overlap() {
        let (waiters, answers): (Vec<_>, Vec<_>) = [3u32, 0, 5, 1]
            .into_iter()
            .map(|count| {
                let (waiter, answer) = oneshot::channel();
                ((count, waiter), answer)
            })
            .unzip();
        share(waiters, Ok(100));
        let first: Vec<i64> = answers
            .into_iter()
            .map(|mut answer| answer.try_recv().expect("an answer").expect("keys"))
            .collect();
        assert_eq!(first, [100, 103, 103, 108]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_drawn_for_others_is_handed_out_once_and_while_it_is_young() {
        let mut desk = Desk { spare: 100..110, drawn_at: Some(Instant::now()), ..Desk::default() };
        assert_eq!(
            (desk.take(4), desk.take(4), desk.take(4)),
            (Some(100), Some(104), None),
            "too few are left"
        );
        tokio::time::advance(AGE_MAX).await;
        assert_eq!(desk.take(1), None, "they are old");
        assert_eq!(Desk::default().take(1), None, "none were drawn");
    }
}
