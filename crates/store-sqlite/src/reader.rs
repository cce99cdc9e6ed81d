//! Threads that answer questions, each with a connection of its own that cannot write.

mod tree;
mod ledger;
mod run;
mod runs;
mod queue;
mod document;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use punctual_store::StoreError;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::fault::Fault;
use crate::open;
use crate::options::Options;

pub(crate) use document::document;
pub(crate) use ledger::ledger;
pub(crate) use queue::{first_made_at, queues};
pub(crate) use run::{closed_run, live_runs, load_runs, run_details};
pub(crate) use runs::runs;
pub(crate) use tree::{count_schedules, load, schedules, timers};

/// A question that knows where its answer goes.
pub(crate) type Question = Box<dyn FnOnce(&Connection) -> Option<Fault> + Send>;

/// The queue that all readers take questions from.
pub(crate) type Questions = Arc<Mutex<mpsc::Receiver<Question>>>;

/// A question, and where its answer will be.
pub(crate) fn question<T: Send + 'static>(
    ask: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
) -> (Question, oneshot::Receiver<Result<T, StoreError>>) {
    let (reply, answer) = oneshot::channel();
    let question = move |connection: &Connection| {
        let outcome = consistently(connection, ask);
        let lost = match &outcome {
            Err(Fault::Database(error)) => error.sqlite_error_code().map(|_| ()),
            _ => None,
        };
        let (answer, fault) = match outcome {
            Ok(answer) => (Ok(answer), None),
            Err(fault) => (Err(fault.answer()), lost.map(|()| fault)),
        };
        // Whoever asked may have stopped waiting.
        let _ = reply.send(answer);
        fault
    };
    (Box::new(question), answer)
}

/// One answer is of one moment, however many statements it takes.
fn consistently<T>(
    connection: &Connection,
    ask: impl FnOnce(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let moment = connection.unchecked_transaction()?;
    let answer = ask(connection)?;
    moment.commit()?;
    Ok(answer)
}

/// Answers until nobody can ask any more.
pub(crate) fn run(mut connection: Connection, path: PathBuf, options: &Options, questions: &Questions) {
    loop {
        let next = questions.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(question) = next else { return };
        let fault = question(&connection);
        // A fault of the disk may be over for a new connection; if it is not, the next question says so again.
        if fault.is_some_and(|fault| fault.is_connection_lost())
            && let Ok(opened) = open::open_reader(&path, options)
        {
            connection = opened;
        }
    }
}
