//! What a node says about itself to those who ask another one.

use std::sync::Arc;

use jiff::Timestamp;

use super::Malformed;
use super::bytes::{Reader, Writer};
use crate::{Bytes, QueueKey, TreeKey};

const VERSION: u8 = 1;

/// Workers that a report names, and schedules; it is written with a beat, so it must not become long.
const WORKERS_MAX: usize = 1_000;
const BROKEN_MAX: usize = 100;

/// Letters of a worker's name or of a reason that a report keeps.
const LETTERS_MAX: usize = 200;

/// What a node says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeReport {
    /// The workers that it has heard of lately.
    pub workers: Vec<WorkerSeen>,
    /// The schedules that it found to be broken, and why.
    pub broken: Vec<(TreeKey, Arc<str>)>,
}

/// A worker, as a node has heard of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerSeen {
    /// The queue from which it takes runs.
    pub queue: QueueKey,
    /// The name that it gave itself.
    pub worker: Arc<str>,
    /// When it last asked for runs.
    pub seen_at: Timestamp,
    /// Runs of the queue that it has.
    pub running: u32,
}

/// The record of a report. Of long lists the first are kept, of long texts the beginning.
pub fn encode_report(report: &NodeReport) -> Bytes {
    let mut to = Writer::with_version(VERSION);
    to.list(report.workers.iter().take(WORKERS_MAX), |to, worker| {
        to.signed(worker.queue.0);
        to.bytes(shortened(&worker.worker).as_bytes());
        to.time(worker.seen_at);
        to.number(worker.running.into());
    });
    to.list(report.broken.iter().take(BROKEN_MAX), |to, (tree, reason)| {
        to.signed(tree.0);
        to.bytes(shortened(reason).as_bytes());
    });
    to.0.into()
}

/// Reads the record of a report.
pub fn decode_report(bytes: &[u8]) -> Result<NodeReport, Malformed> {
    let mut from = Reader::with_version(bytes, VERSION)?;
    let workers = from.list(|from| {
        Ok(WorkerSeen {
            queue: QueueKey(from.signed()?),
            worker: from.text()?.into(),
            seen_at: from.time()?,
            running: from.small()?,
        })
    })?;
    let broken = from.list(|from| Ok((TreeKey(from.signed()?), from.text()?.into())))?;
    from.end()?;
    Ok(NodeReport { workers, broken })
}

fn shortened(text: &str) -> &str {
    text.char_indices().nth(LETTERS_MAX).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(name: &str) -> WorkerSeen {
        WorkerSeen { queue: QueueKey(-3), worker: name.into(), seen_at: Timestamp::UNIX_EPOCH, running: 7 }
    }

    #[test]
    fn a_report_comes_back_as_it_was() {
        let broken = vec![(TreeKey(5), "a transition panicked".into())];
        let report = NodeReport { workers: vec![worker("one"), worker("")], broken };
        assert_eq!(decode_report(&encode_report(&report)), Ok(report));
        assert_eq!(decode_report(&encode_report(&NodeReport::default())), Ok(NodeReport::default()));
    }

    #[test]
    fn a_report_has_a_bound_and_bytes_of_others_are_none() {
        let long = "\u{1F570}".repeat(5_000);
        let broken = (0..500).map(|tree| (TreeKey(tree), long.as_str().into())).collect();
        let report = NodeReport { workers: vec![worker(&long); 5_000], broken };
        let bytes = encode_report(&report);
        let kept = decode_report(&bytes).expect("it is a report");
        assert_eq!((kept.workers.len(), kept.broken.len()), (WORKERS_MAX, BROKEN_MAX));
        assert!(kept.workers[0].worker.chars().count() == LETTERS_MAX && bytes.len() < 1_000_000);
        for length in 0..200 {
            assert!(decode_report(&bytes[..length]).is_err());
        }
        assert!(decode_report(&[2, 0, 0]).is_err(), "a later release may say it in other words");
    }
}
