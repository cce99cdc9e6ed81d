//! Records: what was written is read again, by this release and by later ones, and no bytes make reading panic.

mod generator;
mod samples;

use std::fmt::Debug;
use std::path::PathBuf;

use generator::Generator;
use punctual_store::Bytes;
use punctual_store::record::{
    Malformed, decode_action, decode_body, decode_completion, decode_failure, decode_queue, decode_schedule,
    decode_state, encode_action, encode_body, encode_completion, encode_failure, encode_queue,
    encode_schedule, encode_state, verdict_number, verdict_of,
};

const SEEDS: u64 = 300;

/// Reads bytes as every kind of record; none may panic.
fn read_all(bytes: &[u8]) -> [Option<Malformed>; 7] {
    [
        decode_state(bytes).err(),
        decode_schedule(bytes).err(),
        decode_action(bytes).err(),
        decode_body(bytes).err(),
        decode_completion(Some(bytes)).err(),
        decode_failure(bytes).err(),
        decode_queue(bytes).err(),
    ]
}

/// Every record of one seed, with its place in [`read_all`].
fn records(seed: u64) -> [Bytes; 7] {
    let mut from = Generator::new(seed);
    let completion = from.completion();
    [
        encode_state(&from.state()),
        encode_schedule(&from.schedule()),
        encode_action(&from.action()),
        encode_body(&from.body()),
        encode_completion(Some(&completion)).expect("there is something to tell"),
        encode_failure(&from.failure()),
        encode_queue(&from.queue()),
    ]
}

#[test]
fn what_is_written_is_read() {
    for seed in 0..SEEDS {
        let mut from = Generator::new(seed);
        let state = from.state();
        assert_eq!(decode_state(&encode_state(&state)), Ok(state), "seed {seed}");
        let schedule = from.schedule();
        assert_eq!(decode_schedule(&encode_schedule(&schedule)), Ok(schedule), "seed {seed}");
        let action = from.action();
        assert_eq!(decode_action(&encode_action(&action)), Ok(action), "seed {seed}");
        let body = from.body();
        assert_eq!(decode_body(&encode_body(&body)), Ok(body), "seed {seed}");
        let completion = from.completion();
        let bytes = encode_completion(Some(&completion));
        assert_eq!(decode_completion(bytes.as_deref()), Ok(completion), "seed {seed}");
        let failure = from.failure();
        assert_eq!(decode_failure(&encode_failure(&failure)), Ok(failure), "seed {seed}");
        let queue = from.queue();
        assert_eq!(decode_queue(&encode_queue(&queue)), Ok(queue), "seed {seed}");
    }
    assert_eq!(encode_completion(None), None);
    assert_eq!(decode_completion(None), Ok(Default::default()), "nothing to tell is nothing to read");
}

#[test]
fn a_record_that_is_cut_off_or_too_long_is_refused() {
    for seed in 0..20 {
        for (place, bytes) in records(seed).iter().enumerate() {
            // An empty record of a queue is one without a description, as the first release wrote it.
            for length in usize::from(place == 6)..bytes.len() {
                let refused = read_all(&bytes[..length])[place].clone();
                assert!(refused.is_some(), "seed {seed}: record {place} was read from {length} bytes");
            }
            let longer = [bytes, &[0][..]].concat();
            assert!(
                read_all(&longer)[place].is_some(),
                "seed {seed}: record {place} was read with a byte too many"
            );
        }
    }
}

#[test]
fn no_bytes_make_reading_panic() {
    for seed in 0..SEEDS {
        let mut from = Generator::new(seed);
        for bytes in records(seed) {
            let mut bytes = bytes.to_vec();
            for _ in 0..20 {
                let place = from.below(bytes.len());
                bytes[place] = from.number() as u8;
                read_all(&bytes);
            }
        }
        let garbage: Vec<u8> = (0..from.below(300)).map(|_| from.number() as u8).collect();
        read_all(&garbage);
        read_all(&[&[1], &garbage[..]].concat());
        // A length that nothing can have.
        read_all(&[&[1], &[0xff; 9][..], &[1], &garbage].concat());
    }
}

#[test]
fn a_later_version_is_refused_by_its_number() {
    for (place, bytes) in records(7).iter().enumerate() {
        let mut later = bytes.to_vec();
        later[0] = 8;
        let refused = read_all(&later)[place].clone().expect("it is refused").to_string();
        let known = ["1", "1..=2", "1..=2", "1..=2", "1", "1", "2"][place];
        assert_eq!(refused, format!("record version is 8, this release knows {known}"));
    }
}

#[test]
fn every_verdict_has_a_number_of_its_own() {
    let verdicts: Vec<_> = (0..=u8::MAX).filter_map(verdict_of).collect();
    assert_eq!(verdicts.len(), 14, "started, and thirteen reasons why not");
    for (number, verdict) in verdicts.into_iter().enumerate() {
        assert_eq!(usize::from(verdict_number(verdict)), number);
    }
}

#[test]
fn what_a_release_wrote_is_read_by_this_one() {
    check("v1/state", &samples::state(), encode_state, decode_state);
    check("v1/schedule", &samples::schedule(), encode_schedule, decode_schedule);
    check("v1/action", &samples::action(), encode_action, decode_action);
    check("v1/body", &samples::body(), encode_body, decode_body);
    check("v1/queue", &samples::queue(), |queue| queue.description.as_bytes().into(), decode_queue);
    check("v2/schedule", &samples::schedule_2(), encode_schedule, decode_schedule);
    check("v2/action", &samples::action_2(), encode_action, decode_action);
    check("v2/body", &samples::body_2(), encode_body, decode_body);
    check("v2/queue", &samples::queue_2(), encode_queue, decode_queue);
    let completion = |value: &_| encode_completion(Some(value)).expect("there is something to tell");
    check("v1/completion", &samples::completion(), completion, |bytes| decode_completion(Some(bytes)));
    check("v1/failure", &samples::failure(), encode_failure, decode_failure);
}

/// Reads a fixture; writes it if there is none and `WRITE_FIXTURES` is set. What is there is never changed.
fn check<T: PartialEq + Debug>(
    name: &str,
    value: &T,
    encode: impl Fn(&T) -> Bytes,
    decode: impl Fn(&[u8]) -> Result<T, Malformed>,
) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "fixtures", &format!("{name}.bin")].iter().collect();
    if !path.exists() && std::env::var_os("WRITE_FIXTURES").is_some() {
        std::fs::write(&path, encode(value)).expect("the fixture is written");
    }
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(decode(&bytes).as_ref(), Ok(value), "{}", path.display());
}
