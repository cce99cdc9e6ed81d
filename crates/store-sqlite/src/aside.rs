//! Long work on the whole file, on a thread and a connection of its own, so that nobody else waits for it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use punctual_store::{Reply, StoreError};
use rusqlite::{Connection, InterruptHandle};
use tokio::sync::oneshot;

use crate::options::Options;
use crate::{open, spawn};

/// Who works aside, and on what.
pub(crate) struct Aside {
    path: PathBuf,
    options: Options,
    working: Mutex<Vec<(InterruptHandle, JoinHandle<()>)>>,
}

impl Aside {
    pub(crate) fn new(path: &Path, options: &Options) -> Aside {
        Aside { path: path.into(), options: options.clone(), working: Mutex::default() }
    }

    /// Works with a connection that cannot write.
    pub(crate) fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, &Path) -> Result<T, StoreError> + Send + 'static,
    ) -> Reply<'_, T> {
        match self.begin(work) {
            Ok(answer) => Box::pin(async move {
                answer.await.unwrap_or_else(|_| Err(StoreError::unavailable("the store's thread has ended")))
            }),
            Err(fault) => Box::pin(std::future::ready(Err(fault))),
        }
    }

    fn begin<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, &Path) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, StoreError>>, StoreError> {
        let connection = open::open_reader(&self.path, &self.options).map_err(StoreError::unavailable)?;
        let interrupt = connection.get_interrupt_handle();
        let (reply, answer) = oneshot::channel();
        let path = self.path.clone();
        let thread = spawn("punctual-aside", move || {
            let outcome = work(&connection, &path);
            drop(connection);
            // Whoever asked may have stopped waiting.
            let _ = reply.send(outcome);
        });
        let thread = thread.map_err(StoreError::unavailable)?;
        let mut working = self.lock();
        working.retain(|(_, thread)| !thread.is_finished());
        working.push((interrupt, thread));
        Ok(answer)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(InterruptHandle, JoinHandle<()>)>> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all of it.
    pub(crate) fn end(&self) {
        for (interrupt, thread) in self.lock().drain(..) {
            interrupt.interrupt();
            let _ = thread.join();
        }
    }
}
