//! Keys for runs and schedules: whoever asks while another is being answered is answered together with all others.
//!
//! All shards of a node ask at about the same time. One after another, each with a commit of its own, the last would wait for
//! as many commits as there are shards.

use std::sync::{Mutex, PoisonError};

use punctual_store::StoreError;
use tokio::sync::oneshot;

use crate::pool::Pool;
use crate::roster;

/// Somebody who waits for so many.
type Waiter = (u32, oneshot::Sender<Result<i64, StoreError>>);

/// Who waits for keys.
#[derive(Default)]
pub(crate) struct Keys(Mutex<Vec<Waiter>>);

impl Keys {
    /// Draws keys that follow each other; says the first.
    pub(crate) async fn reserve(&self, pool: &Pool, count: u32) -> Result<i64, StoreError> {
        let (waiter, answer) = oneshot::channel();
        self.waiting().push((count, waiter));
        match pool.alone().await {
            // Whoever has the connection asks for all; those who come later find that they have been answered.
            Ok((session, _guard)) => {
                let all = std::mem::take(&mut *self.waiting());
                let sum: i64 = all.iter().map(|(count, _)| i64::from(*count)).sum();
                if sum > 0 {
                    let drawn = session.within(roster::reserve(&session, sum)).await;
                    share(all, drawn.map_err(|fault| fault.answer()));
                }
            }
            Err(fault) => share(std::mem::take(&mut *self.waiting()), Err(fault.answer())),
        }
        answer.await.unwrap_or_else(|_| Err(StoreError::unavailable("whoever asked for keys has gone away")))
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Waiter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
}
