//! Where messages for a driver wait, and the bell of the thread that takes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Thread;
use std::time::Duration;

use crate::driver::Message;

/// Wakes one thread.
pub(crate) struct Bell {
    rung: AtomicBool,
    thread: Thread,
}

impl Bell {
    /// The bell of a thread.
    pub(crate) fn of(thread: Thread) -> Bell {
        Bell { rung: AtomicBool::new(false), thread }
    }

    /// Wakes the thread, unless that was done already and it has not looked yet.
    pub(crate) fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }

    /// The thread looks: what was sent before this is there, and what comes later rings again.
    pub(crate) fn hush(&self) {
        self.rung.swap(false, Ordering::AcqRel);
    }

    /// The thread sleeps until the bell rings, or until the time is over.
    pub(crate) fn wait(&self, length: Duration) {
        if !self.rung.load(Ordering::Acquire) {
            std::thread::park_timeout(length);
        }
    }
}

/// The way to a driver.
#[derive(Clone)]
pub(crate) struct Address {
    sender: Sender<Message>,
    bell: Arc<Bell>,
}

/// What waits for a driver.
pub(crate) struct Inbox {
    receiver: Receiver<Message>,
    /// Counted for as long as it is there.
    _counted: Arc<()>,
}

/// An inbox, for a driver on the thread of this bell.
pub(crate) fn inbox(bell: Arc<Bell>, counted: Arc<()>) -> (Address, Inbox) {
    let (sender, receiver) = channel();
    (Address { sender, bell }, Inbox { receiver, _counted: counted })
}

impl Address {
    /// Sends something; what is sent to a driver that has ended is dropped, and so is whoever waits for it.
    pub(crate) fn send(&self, message: Message) {
        if self.sender.send(message).is_ok() {
            self.bell.ring();
        }
    }

    /// Has the driver look, though nothing is sent.
    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    /// Whether this bell is rung for it.
    pub(crate) fn rings(&self, bell: &Arc<Bell>) -> bool {
        Arc::ptr_eq(&self.bell, bell)
    }
}

impl Inbox {
    /// The next message, if there is one.
    pub(crate) fn take(&self) -> Option<Message> {
        self.receiver.try_recv().ok()
    }
}
