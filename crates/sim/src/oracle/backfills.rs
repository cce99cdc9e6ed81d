//! How the oracle takes the ranges that people asked for: pass by pass, as far as there is room.

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Definition, Origin, StartId};

use super::Oracle;

impl Oracle {
    /// Backfills share half of the buffer, less a reserve; one that is not through waits.
    pub(super) fn take_backfills(&mut self, now: Timestamp, definition: &Definition) {
        let (count, instant) = (self.backfills.len(), SignedDuration::from_nanos(1));
        let due: Vec<_> = self.backfills.extract_if(.., |_, (_, pass_time, _)| *pass_time <= now).collect();
        for (key, (mut backfill, _, tries)) in due {
            let used = self.ids(false).len() + self.limits.buffer_reserve;
            let share = (self.limits.buffered_starts_max / 2).saturating_sub(used) / count;
            let most = if backfill.pace.is_some() { 1 } else { self.limits.backfill_pass_max };
            let in_progress = self.limits.backfill_starts_max.saturating_sub(self.starts.len());
            let room = share.min(most).min(self.room()).min(in_progress);
            // Ranges are open on the left, and the first time is included.
            let range = definition.compiled().iterate(backfill.from - instant, backfill.through);
            let times: Vec<_> = range.map(|occurrence| occurrence.nominal_time).take(room + 1).collect();
            for time in times.iter().take(room) {
                self.enqueue(StartId::new(*time, Origin::Request(key)), now, backfill.overlap);
                backfill.from = *time + instant;
            }
            if times.len() > room {
                let tries = if room == 0 { tries + 1 } else { 0 };
                let rest = self.limits.backfill_rest(tries, key.0);
                let wait = backfill.pace.filter(|_| room > 0).unwrap_or(rest);
                self.backfills.insert(key, (backfill, now + wait, tries));
            }
        }
    }
}
