//! What can be set about a queue, as bytes.

use super::Malformed;
use super::bytes::{Reader, Writer};
use crate::Bytes;
use crate::queue::{QueueSettings, Rate};

/// Before version 2 the record was the description alone, without a version.
const VERSION: u8 = 2;

/// The record of a queue's settings.
pub fn encode_queue(settings: &QueueSettings) -> Bytes {
    let mut to = Writer::with_version(VERSION);
    to.bytes(settings.description.as_bytes());
    for bound in [settings.concurrency_max, settings.worker_concurrency_max, settings.key_concurrency_max] {
        to.optional(bound.map(u64::from), Writer::number);
    }
    for rate in [settings.rate, settings.key_rate] {
        to.optional(rate, |to, rate| {
            to.number(rate.starts_max.into());
            to.duration(rate.per);
        });
    }
    to.duration(settings.priority_step);
    to.number(settings.paused.into());
    to.0.into()
}

/// Reads the record of a queue's settings.
pub fn decode_queue(bytes: &[u8]) -> Result<QueueSettings, Malformed> {
    // No description begins with such a character, so it is the version of a later release.
    if bytes.first().is_none_or(|first| *first >= b'\t') {
        let description = std::str::from_utf8(bytes).map_err(Malformed::new)?.into();
        return Ok(QueueSettings { description, ..QueueSettings::default() });
    }
    let mut from = Reader::with_version(bytes, VERSION)?;
    let description = from.text()?.into();
    let concurrency_max = from.optional(Reader::small)?;
    let worker_concurrency_max = from.optional(Reader::small)?;
    let key_concurrency_max = from.optional(Reader::small)?;
    let rate = from.optional(read_rate)?;
    let key_rate = from.optional(read_rate)?;
    let (priority_step, paused) = (from.duration()?, from.flag()?);
    from.end()?;
    Ok(QueueSettings {
        description,
        concurrency_max,
        worker_concurrency_max,
        rate,
        key_concurrency_max,
        key_rate,
        priority_step,
        paused,
    })
}

fn read_rate(from: &mut Reader<'_>) -> Result<Rate, Malformed> {
    Ok(Rate { starts_max: from.small()?, per: from.duration()? })
}
