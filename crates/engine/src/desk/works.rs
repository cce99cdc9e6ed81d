//! What is done to its end though nobody may wait for it any more: how much of it is under way.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// More than can ever be under way.
const WORKS_MAX: u32 = u32::MAX >> 3;

/// Whatever is under way has a place.
pub(super) struct Works(Arc<Semaphore>);

impl Default for Works {
    fn default() -> Works {
        Works(Arc::new(Semaphore::new(WORKS_MAX as usize)))
    }
}

impl Works {
    /// Does something in the background.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let place = self.0.clone().try_acquire_owned();
        tokio::spawn(async move {
            let _place = place;
            work.await
        })
    }

    /// Waits until nothing is under way.
    pub(super) async fn finish(&self) {
        let _ = self.0.acquire_many(WORKS_MAX).await;
    }
}
