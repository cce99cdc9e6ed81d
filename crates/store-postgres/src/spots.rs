//! Where rows were written last: a row whose spot is known is found at once, without its index.
//!
//! The index leads to every version of a row that PostgreSQL still keeps, the oldest first. While somebody holds a snapshot
//! open these are all since then, and with each minute a row that changes often is dearer to find. Its spot leads to the last
//! version alone.
//!
//! A spot is a hint. Statements compare the key as well, so that one that is wrong finds nothing; what found nothing is
//! written again by its key, and the spot is forgotten. Whoever writes a row from elsewhere changes its sequence too, and
//! would have been met in any case.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

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
pub(crate) struct Known<K>(Mutex<HashMap<K, Spot>>);

impl<K> Default for Known<K> {
    fn default() -> Known<K> {
        Known(Mutex::default())
    }
}

impl<K: Hash + Eq + Copy> Known<K> {
    fn spots(&self) -> MutexGuard<'_, HashMap<K, Spot>> {
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

    pub(crate) fn learn(&self, rows: impl Iterator<Item = (K, Spot)>) {
        let mut spots = self.spots();
        for (key, spot) in rows {
            if spots.len() >= SPOTS_MAX {
                *spots = HashMap::new();
            }
            spots.insert(key, spot);
        }
    }

    pub(crate) fn forget(&self, keys: impl Iterator<Item = K>) {
        let mut spots = self.spots();
        for key in keys {
            spots.remove(&key);
        }
    }
}

/// The spots that this process knows.
#[derive(Default)]
pub(crate) struct Spots {
    /// Of the states of schedules, which change with every start.
    pub(crate) trees: Known<i64>,
    /// Of runs that somebody works on.
    pub(crate) runs: Known<i64>,
    /// Of leases, which are made longer all the time.
    pub(crate) leases: Known<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_all_spots_are_known_or_none_is_used() {
        let known = Known::default();
        let spot = |place| Spot { page: 7, place };
        known.learn([(1, spot(1)), (2, spot(2))].into_iter());
        assert_eq!(known.of([2, 1].into_iter()), Some(vec![spot(2), spot(1)]));
        assert_eq!(known.of([1, 3].into_iter()), None);
        assert_eq!(known.take([3, 2].into_iter()), None);
        assert_eq!(known.of([2].into_iter()), None, "it was taken all the same");
        known.forget([1].into_iter());
        assert_eq!(known.of([1].into_iter()), None);
    }

    #[test]
    fn a_spot_is_read_as_it_was_written() {
        let (spot, mut bytes) = (Spot { page: 0x01020304, place: 0x0506 }, BytesMut::new());
        spot.to_sql(&Type::TID, &mut bytes).unwrap();
        assert_eq!(&bytes[..], [1, 2, 3, 4, 5, 6]);
        assert_eq!(Spot::from_sql(&Type::TID, &bytes).unwrap(), spot);
    }
}
