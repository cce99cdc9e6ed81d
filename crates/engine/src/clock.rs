//! The one clock. Nothing else in the engine knows what time it is.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// What time it is.
    fn now(&self) -> Timestamp;

    /// How long the machine has to wait for a length of this clock's time: a clock may run faster, to see a day in minutes.
    fn real(&self, length: SignedDuration) -> Duration {
        length.max(SignedDuration::ZERO).unsigned_abs()
    }
}

/// The clock of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let nanos = i128::try_from(since_epoch.as_nanos()).unwrap_or(0);
        Timestamp::from_nanosecond(nanos).unwrap_or(Timestamp::MAX)
    }
}
