//! What changes when one spec takes the place of another.

use jiff::Timestamp;

use crate::compile::CompiledSpec;
use crate::occurrence::{Occurrence, Occurrences};

/// How one occurrence fares under a change of spec.
///
/// ```
/// use punctual_spec::{Change, Spec, diff};
///
/// let (old, new) = (Spec::new().cron("0 9 * * *").compile()?, Spec::new().cron("0 10 * * *").compile()?);
/// let day = ("2026-01-01T00:00:00Z".parse().unwrap(), "2026-01-02T00:00:00Z".parse().unwrap());
/// let changes: Vec<Change> = diff(&old, &new, day.0, day.1).collect();
/// assert!(matches!(changes[..], [Change::Removed(_), Change::Added(_)]));
/// # Ok::<(), punctual_spec::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// Only the new spec has it.
    Added(Occurrence),
    /// Only the old spec has it.
    Removed(Occurrence),
    /// Both have it, but it is due at another time.
    Moved {
        /// As the old spec had it.
        from: Occurrence,
        /// As the new spec has it.
        to: Occurrence,
    },
    /// Both have it, with the same due time.
    Kept(Occurrence),
}

/// Compares two specs over the nominal times in `(after, through]`, in order.
///
/// ```
/// use punctual_spec::{Change, Spec, diff};
///
/// let (old, new) = (Spec::new().cron("0 9 * * *").compile()?, Spec::new().cron("0 9 * * MON-FRI").compile()?);
/// let week = ("2026-01-01T12:00:00Z".parse().unwrap(), "2026-01-08T12:00:00Z".parse().unwrap());
/// let removed = diff(&old, &new, week.0, week.1).filter(|change| matches!(change, Change::Removed(_)));
/// assert_eq!(removed.count(), 2);
/// # Ok::<(), punctual_spec::Error>(())
/// ```
pub fn diff<'a>(
    old: &'a CompiledSpec,
    new: &'a CompiledSpec,
    after: Timestamp,
    through: Timestamp,
) -> impl Iterator<Item = Change> + 'a {
    Diff { old: old.iterate(after, through).peekable(), new: new.iterate(after, through).peekable() }
}

struct Diff<'a> {
    old: std::iter::Peekable<Occurrences<'a>>,
    new: std::iter::Peekable<Occurrences<'a>>,
}

impl Iterator for Diff<'_> {
    type Item = Change;

    fn next(&mut self) -> Option<Change> {
        let (old, new) = match (self.old.peek().copied(), self.new.peek().copied()) {
            (None, None) => return None,
            (Some(old), Some(new)) if old.nominal_time == new.nominal_time => (Some(old), Some(new)),
            (Some(old), Some(new)) if old.nominal_time < new.nominal_time => (Some(old), None),
            (Some(_), Some(new)) => (None, Some(new)),
            one_of_them => one_of_them,
        };
        if old.is_some() {
            self.old.next();
        }
        if new.is_some() {
            self.new.next();
        }
        match (old, new) {
            (Some(from), Some(to)) if from != to => Some(Change::Moved { from, to }),
            (Some(_), Some(kept)) => Some(Change::Kept(kept)),
            (Some(removed), None) => Some(Change::Removed(removed)),
            (None, added) => added.map(Change::Added),
        }
    }
}
