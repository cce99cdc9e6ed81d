//! Every bound of a schedule, with unit and reason. A value that can change a decision enters a transition here,
//! so that replaying it gives the same answer.

use jiff::SignedDuration;

/// Bounds and defaults in force for one transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Starts that may wait for the overlap policy; at the bound an occurrence is dropped, in the ledger.
    pub buffered_starts_max: usize,
    /// Starts that wait, are being made or run, all together; bounds the state of a schedule whose runs never end.
    pub starts_max: usize,
    /// Places of the buffer that backfills leave to the schedule itself.
    pub buffer_reserve: usize,
    /// Backfills of one schedule at a time.
    pub backfills_max: usize,
    /// Occurrences that one pass of a backfill takes, so that a transition stays short.
    pub backfill_pass_max: usize,
    /// The rest after a pass of a backfill, so that other schedules have a turn; doubled while there is no room.
    pub backfill_rest: SignedDuration,
    /// Starts of a schedule, those in progress included, beyond which its backfills take no more: every change of a
    /// schedule costs what it has in progress.
    pub backfill_starts_max: usize,
    /// Starts that one transition hands to the dispatcher.
    pub dispatches_max: usize,
    /// Completed runs that a schedule remembers for describe.
    pub recent_runs_max: usize,
    /// Upcoming times that describe shows.
    pub upcoming_max: usize,
    /// Request ids that a schedule remembers, so that repeating a command changes nothing.
    pub requests_max: usize,
    /// Bytes of a request id or of a schedule's id.
    pub id_bytes_max: usize,
    /// Bytes of a note.
    pub note_bytes_max: usize,
    /// Single occurrences that may be marked to be skipped.
    pub skips_max: usize,
    /// Occurrences of a range that are counted; beyond, the count is a lower bound.
    pub counted_max: usize,
    /// How late a start may still happen, unless the schedule says otherwise.
    pub catchup_window_default: SignedDuration,
    /// The least window: below it a short delay would lose starts.
    pub catchup_window_min: SignedDuration,
    /// The wait before the second attempt of a start, a cancel or a backfill pass; doubled each time.
    pub backoff_first: SignedDuration,
    /// The longest such wait.
    pub backoff_max: SignedDuration,
    /// How long a start call may be in flight; only then can its keeper say that it does not run.
    pub call_timeout: SignedDuration,
    /// How long an outside run may be silent before its state is asked for.
    pub reconcile_after: SignedDuration,
    /// How long a schedule without a future stays open after its last event.
    pub idle_time: SignedDuration,
    /// How long a completed schedule stays describable.
    pub retention: SignedDuration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            buffered_starts_max: 1_000,
            starts_max: 10_000,
            buffer_reserve: 50,
            backfills_max: 100,
            backfill_pass_max: 450,
            backfill_rest: SignedDuration::from_millis(10),
            backfill_starts_max: 1_000,
            dispatches_max: 100,
            recent_runs_max: 10,
            upcoming_max: 10,
            requests_max: 64,
            id_bytes_max: 1_000,
            note_bytes_max: 1_000,
            skips_max: 1_000,
            counted_max: 100_000,
            catchup_window_default: SignedDuration::from_hours(365 * 24),
            catchup_window_min: SignedDuration::from_secs(10),
            backoff_first: SignedDuration::from_secs(1),
            backoff_max: SignedDuration::from_secs(60),
            call_timeout: SignedDuration::from_secs(60),
            reconcile_after: SignedDuration::from_mins(5),
            idle_time: SignedDuration::from_hours(7 * 24),
            retention: SignedDuration::from_hours(7 * 24),
        }
    }
}

impl Limits {
    /// The catch-up window in force: unset, zero and negative mean the default, a short one is raised to the least.
    pub fn catchup_window(&self, asked: Option<SignedDuration>) -> SignedDuration {
        match asked {
            Some(window) if window > SignedDuration::ZERO => window.max(self.catchup_window_min),
            Some(_) | None => self.catchup_window_default,
        }
    }

    /// Room for one backfill: half of the buffer, less what waits and what the schedule itself may need, shared with
    /// the other backfills; and no more than may be in progress.
    pub fn backfill_room(&self, waiting: usize, starts: usize, backfills: usize) -> usize {
        let half = self.buffered_starts_max / 2;
        let in_buffer = half.saturating_sub(waiting).saturating_sub(self.buffer_reserve) / backfills.max(1);
        in_buffer.min(self.backfill_starts_max.saturating_sub(starts))
    }

    /// The wait after a number of failed attempts: doubling up to the longest, less up to a fifth that the key
    /// decides, so that many failures do not come back at the same instant.
    pub fn backoff(&self, failed_attempts: u32, key: u64) -> SignedDuration {
        self.doubling(self.backoff_first, failed_attempts, key)
    }

    /// The rest of a backfill after so many passes without room.
    pub fn backfill_rest(&self, blocked_passes: u32, key: u64) -> SignedDuration {
        self.doubling(self.backfill_rest, blocked_passes + 1, key)
    }

    fn doubling(&self, first: SignedDuration, failed_attempts: u32, key: u64) -> SignedDuration {
        let doubled = first.checked_mul(1 << failed_attempts.saturating_sub(1).min(20));
        let full = doubled.unwrap_or(self.backoff_max).min(self.backoff_max);
        let spread = mix(key ^ u64::from(failed_attempts)) % 200;
        let millis = full.as_millis() as i64;
        SignedDuration::from_millis(millis - millis * spread as i64 / 1_000)
    }
}

/// Spreads a key over all bits (the finaliser of splitmix64).
fn mix(key: u64) -> u64 {
    let mut bits = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
