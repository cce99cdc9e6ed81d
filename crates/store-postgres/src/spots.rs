//! Where rows were written last: a row whose spot is known is found at once, without its index.
//!
//! The index leads to every version of a row that PostgreSQL still keeps, the oldest first. While somebody holds a snapshot
//! open these are all since then, and with each minute a row that changes often is dearer to find. Its spot leads to the last
//! version alone.
//!
//! A spot is a hint. Statements compare the key as well, so that one that is wrong finds nothing; what found nothing is
//! written again by its key, and the spot is forgotten. Whoever writes a row from elsewhere changes its sequence too, and
//! would have been met in any case.

use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use punctual_store::{KeyMap, Unit};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::careful::changed;

/// Spots of one kind that are remembered: some 30 MB. Who has more hot rows than that begins anew.
const SPOTS_MAX: usize = 1_000_000;

/// A page and a place on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    page: u32,
    place: u16,
}

type Fault = Box<dyn std::error::Error + Sync + Send>;

impl ToSql for Spot {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Fault> {
        out.extend_from_slice(&self.page.to_be_bytes());
        out.extend_from_slice(&self.place.to_be_bytes());
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Spot {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Spot, Fault> {
        let raw: [u8; 6] = raw.try_into()?;
        let [a, b, c, d, e, f] = raw;
        Ok(Spot { page: u32::from_be_bytes([a, b, c, d]), place: u16::from_be_bytes([e, f]) })
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TID
    }
}

/// The spots of rows with keys of one kind.
pub(crate) struct Known<K>(Mutex<KeyMap<K, Spot>>);

impl<K> Default for Known<K> {
    fn default() -> Known<K> {
        Known(Mutex::default())
    }
}

impl<K: Hash + Eq + Copy> Known<K> {
    fn spots(&self) -> MutexGuard<'_, KeyMap<K, Spot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The spots of all these rows, or nothing: rows are held in one order, so one statement must find them all.
    pub(crate) fn of(&self, keys: impl Iterator<Item = K>) -> Option<Vec<Spot>> {
        let spots = self.spots();
        keys.map(|key| spots.get(&key).copied()).collect()
    }

    /// Takes the spots of rows that will be gone.
    pub(crate) fn take(&self, keys: impl Iterator<Item = K>) -> Option<Vec<Spot>> {
        let mut spots = self.spots();
        // All are taken, even if one is missing.
        let taken: Vec<Option<Spot>> = keys.map(|key| spots.remove(&key)).collect();
        taken.into_iter().collect()
    }

    /// Takes note of spots. Says how many of the rows were known, and how many of those are on another page now.
    pub(crate) fn learn(&self, rows: impl Iterator<Item = (K, Spot)>) -> (u32, u32) {
        let (mut spots, mut known, mut moved) = (self.spots(), 0, 0);
        for (key, spot) in rows {
            if spots.len() >= SPOTS_MAX {
                *spots = KeyMap::default();
            }
            if let Some(before) = spots.insert(key, spot) {
                known += 1;
                moved += u32::from(before.page != spot.page);
            }
        }
        (known, moved)
    }

    /// None is right any more.
    pub(crate) fn clear(&self) {
        *self.spots() = KeyMap::default();
    }

    pub(crate) fn forget(&self, keys: impl Iterator<Item = K>) {
        let mut spots = self.spots();
        for key in keys {
            spots.remove(&key);
        }
    }
}

/// When states are looked for by their keys although their spots are known.
///
/// Only a look through the index clears a page of versions that nobody needs, so that the next ones find room on it: as long as
/// that helps, it is done. If rows change their page all the same, somebody keeps these versions: then nothing can be cleared
/// and the look leads through all of them, so it is done now and then, to see whether that is over.
#[derive(Default)]
pub(crate) struct Clearing(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    batches: u32,
    known: u32,
    moved: u32,
    is_held: bool,
}

/// Of so many batches one goes by keys, while versions are kept.
const SELDOM: u32 = 64;

/// So many rows say whether they change their pages; and one of so many of them is enough.
const ROWS: u32 = 200;
const SHARE: u32 = 5;

impl Clearing {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the next batch goes by keys.
    pub(crate) fn is_due(&self) -> bool {
        let mut seen = self.seen();
        seen.batches = seen.batches.wrapping_add(1);
        !seen.is_held || seen.batches.is_multiple_of(SELDOM)
    }

    /// A batch went by keys: so many of its rows had been known, and so many of those changed their page.
    pub(crate) fn went(&self, (known, moved): (u32, u32)) {
        let mut seen = self.seen();
        seen.known += known;
        seen.moved += moved;
        if seen.known >= ROWS {
            *seen =
                Seen { batches: seen.batches, is_held: seen.moved > seen.known / SHARE, ..Seen::default() };
        }
    }
}

/// The spots that this process knows.
#[derive(Default)]
pub(crate) struct Spots {
    pub(crate) clearing: Clearing,
    /// Of the states of schedules, which change with every start.
    pub(crate) trees: Known<i64>,
    /// Of runs that somebody works on.
    pub(crate) runs: Known<i64>,
    /// Of leases, which are made longer all the time.
    pub(crate) leases: Known<i32>,
}

impl Spots {
    /// These were written in a way that does not tell where they are now.
    pub(crate) fn forget<'a>(&self, units: impl Iterator<Item = &'a Unit> + Clone) {
        self.trees.forget(units.clone().filter_map(|unit| unit.tree.as_ref()).map(|write| write.tree.0));
        self.runs.forget(units.flat_map(|unit| &unit.runs).filter_map(changed).map(|run| run.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_all_spots_are_known_or_none_is_used() {
        let known = Known::default();
        let spot = |place| Spot { page: 7, place };
        assert_eq!(known.learn([(1, spot(1)), (2, spot(2))].into_iter()), (0, 0));
        assert_eq!(known.learn([(1, Spot { page: 8, place: 1 }), (2, spot(3))].into_iter()), (2, 1));
        known.learn([(1, spot(1)), (2, spot(2))].into_iter());
        assert_eq!(known.of([2, 1].into_iter()), Some(vec![spot(2), spot(1)]));
        assert_eq!(known.of([1, 3].into_iter()), None);
        assert_eq!(known.take([3, 2].into_iter()), None);
        assert_eq!(known.of([2].into_iter()), None, "it was taken all the same");
        known.forget([1].into_iter());
        assert_eq!(known.of([1].into_iter()), None);
    }

    #[test]
    fn pages_are_cleared_unless_that_is_in_vain() {
        let clearing = Clearing::default();
        let due = || (0..SELDOM).filter(|_| clearing.is_due()).count() as u32;
        assert_eq!(due(), SELDOM);
        clearing.went((ROWS - 1, ROWS - 1));
        assert_eq!(due(), SELDOM, "too few rows to tell");
        clearing.went((1, 1));
        assert_eq!(due(), 1);
        clearing.went((ROWS, ROWS / SHARE));
        assert_eq!(due(), SELDOM);
    }

    #[test]
    fn a_spot_is_read_as_it_was_written() {
        let (spot, mut bytes) = (Spot { page: 0x01020304, place: 0x0506 }, BytesMut::new());
        spot.to_sql(&Type::TID, &mut bytes).unwrap();
        assert_eq!(&bytes[..], [1, 2, 3, 4, 5, 6]);
        assert_eq!(Spot::from_sql(&Type::TID, &bytes).unwrap(), spot);
    }
}
