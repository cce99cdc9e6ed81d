//! What units of one transaction touch: no two may touch the same, since none sees what another one writes.

use std::collections::HashSet;

use punctual_store::{Expected, KeySet, RunWrite, Unit};

/// What was touched so far.
pub(crate) struct Touched<'a> {
    trees: KeySet<i64>,
    runs: KeySet<i64>,
    words: HashSet<(i64, &'a str, &'a str)>,
}

/// Names and requests stand beside deduplication ids, whose queue is never one of these.
const NAME: i64 = -1;
const REQUEST: i64 = -2;

impl<'a> Touched<'a> {
    /// Room for so many units.
    pub(crate) fn by(units: usize) -> Touched<'a> {
        let room = || KeySet::with_capacity_and_hasher(units, Default::default());
        Touched { trees: room(), runs: room(), words: HashSet::new() }
    }

    /// Takes note of a unit. False if it touches something twice, or something that another one has touched.
    pub(crate) fn add(&mut self, unit: &'a Unit) -> bool {
        let mut alone = true;
        if let Some(write) = &unit.tree {
            alone &= self.trees.insert(write.tree.0);
            if let Expected::New { key, replaces } = &write.expected {
                alone &= self.words.insert((NAME, &key.namespace, &key.schedule));
                if let Some(old) = replaces {
                    alone &= self.trees.insert(old.0);
                }
            }
        }
        if let Some(request) = &unit.request {
            alone &= self.words.insert((REQUEST, &request.namespace, &request.id));
        }
        for write in &unit.runs {
            let run = match write {
                RunWrite::Insert(made) => {
                    if let Some(dedup) = &made.dedup {
                        alone &= self.words.insert((made.queue.0, "", dedup));
                    }
                    made.run
                }
                RunWrite::Retry { run, .. }
                | RunWrite::Release { run }
                | RunWrite::Stop { run, .. }
                | RunWrite::Close { run, .. }
                | RunWrite::HandOver { run, .. }
                | RunWrite::Bury { run }
                | RunWrite::Details { run, .. } => *run,
            };
            alone &= self.runs.insert(run.0);
        }
        alone
    }
}
