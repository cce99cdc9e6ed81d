//! The end of a run as a word: numbers, and the payload in hexadecimal digits.

use punctual_core::StartId;
use punctual_store::{Closing, Ending, Keeper, RunKey, ShardId, TreeKey, number};

use super::hex;
use crate::value::{at, time};

pub(super) fn encode(ending: &Ending) -> String {
    let Ending { from, ticket, shard, tree, start, run, attempt, closing } = ending;
    let attempt = attempt.map(|attempt| attempt.to_string()).unwrap_or_default();
    let (nominal, request) = (start.nominal_ms, number::request(start.origin));
    let (outcome, closed_at) = (number::outcome_number(closing.outcome), time(closing.closed_at));
    let mut word =
        format!("{from}:{ticket}:{shard}:{tree}:{nominal}:{request}:{run}:{attempt}:{outcome}:{closed_at}:");
    if let Some(payload) = &closing.payload {
        word.push('x');
        hex::push(&mut word, payload);
    }
    word
}

pub(super) fn decode(word: &str) -> Option<Ending> {
    let mut parts = word.split(':');
    let mut next = || parts.next();
    Some(Ending {
        from: Keeper(next()?.parse().ok()?),
        ticket: next()?.parse().ok()?,
        shard: ShardId(next()?.parse().ok()?),
        tree: TreeKey(next()?.parse().ok()?),
        start: StartId { nominal_ms: next()?.parse().ok()?, origin: number::origin(next()?.parse().ok()?) },
        run: RunKey(next()?.parse().ok()?),
        attempt: match next()? {
            "" => None,
            attempt => Some(attempt.parse().ok()?),
        },
        closing: Closing {
            outcome: number::outcome(next()?.parse().ok()?)?,
            closed_at: at(next()?.parse().ok()?),
            payload: match next()?.strip_prefix('x') {
                Some(digits) => Some(hex::read(digits)?.into()),
                None => None,
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use punctual_core::{Origin, Outcome, RequestKey};
    use punctual_store::Bytes;

    use super::*;

    fn ending(attempt: Option<u32>, payload: Option<&[u8]>) -> Ending {
        Ending {
            from: Keeper(7),
            ticket: 81,
            shard: ShardId(3),
            tree: TreeKey(12),
            start: StartId { nominal_ms: -5, origin: Origin::Request(RequestKey(u64::MAX)) },
            run: RunKey(99),
            attempt,
            closing: Closing {
                outcome: Outcome::TimedOut,
                closed_at: at(1_700_000_000_123_456_789),
                payload: payload.map(Bytes::from),
            },
        }
    }

    #[test]
    fn every_end_comes_back_as_it_was() {
        let all: Vec<u8> = (0..=255).collect();
        for attempt in [None, Some(1)] {
            for payload in [None, Some(&b""[..]), Some(&all)] {
                let ending = ending(attempt, payload);
                let word = encode(&ending);
                assert!(!word.contains(' '), "words are told apart by spaces: {word}");
                assert_eq!(decode(&word), Some(ending));
            }
        }
    }

    #[test]
    fn what_is_cut_short_is_nothing() {
        let word = encode(&ending(Some(1), Some(b"abc")));
        for length in 0..word.len() {
            if let Some(short) = decode(&word[..length]) {
                assert_ne!(short.closing.payload, ending(Some(1), Some(b"abc")).closing.payload);
            }
        }
    }
}
