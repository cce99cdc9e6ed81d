//! A command and all that it started: what is ended together.

use std::process::ExitStatus;

use tokio::process::Child;

/// The processes of one command. Whatever is left of them is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    pub(super) fn of(child: &Child) -> Group {
        let leader =
            child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        Group { leader }
    }

    /// Asks all of them to stop.
    pub(super) fn ask(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Ends all of them at once.
    pub(super) fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    /// The system may give the number of a group that is gone to another one, but not before it has used all others: much
    /// later than the moments between the end of the leader and the end of the call.
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.leader {
            // A group that is gone needs no signal.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

/// Without process groups only the command itself is ended, by its handle.
#[cfg(not(unix))]
impl Group {
    pub(super) fn of(_child: &Child) -> Group {
        Group {}
    }

    pub(super) fn ask(&self) {}

    pub(super) fn kill(&self) {}
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(unix)]
pub(super) fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
pub(super) fn signal_of(_status: ExitStatus) -> Option<i32> {
    None
}
