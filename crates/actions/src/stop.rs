//! How a call hears that it is to stop.

use std::future::pending;

use tokio::sync::watch;

/// Tells calls to stop.
#[derive(Debug)]
pub struct Stopper {
    sender: watch::Sender<bool>,
}

impl Stopper {
    /// Somebody who has not said stop yet.
    pub fn new() -> Stopper {
        Stopper { sender: watch::Sender::new(false) }
    }

    /// What a call listens to.
    pub fn signal(&self) -> StopSignal {
        StopSignal { receiver: Some(self.sender.subscribe()) }
    }

    /// Tells everybody who listens, now or later. Saying it again changes nothing.
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }
}

impl Default for Stopper {
    fn default() -> Stopper {
        Stopper::new()
    }
}

/// Says when to stop; copies are cheap. A [`Stopper`] that goes away without a word has not said stop.
#[derive(Debug, Clone)]
pub struct StopSignal {
    receiver: Option<watch::Receiver<bool>>,
}

impl StopSignal {
    /// For a call that nobody stops.
    pub fn never() -> StopSignal {
        StopSignal { receiver: None }
    }

    /// Whether stop was said.
    pub fn is_stopped(&self) -> bool {
        self.receiver.as_ref().is_some_and(|receiver| *receiver.borrow())
    }

    /// Waits until stop is said.
    pub async fn stopped(&self) {
        if let Some(mut receiver) = self.receiver.clone()
            && receiver.wait_for(|stopped| *stopped).await.is_ok()
        {
            return;
        }
        pending::<()>().await;
    }
}
