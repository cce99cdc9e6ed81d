//! Numbers, texts and lists as bytes: short for what is small, and every length is checked before it is believed.

use std::ops::RangeInclusive;

use jiff::{SignedDuration, Timestamp};

use super::Malformed;

/// Appends values to bytes.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn with_version(version: u8) -> Writer {
        let mut bytes = Vec::with_capacity(256);
        bytes.push(version);
        Writer(bytes)
    }

    /// Seven bits a byte, the lowest first.
    pub(super) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Small positive and small negative numbers are both short.
    pub(super) fn signed(&mut self, value: i64) {
        self.number((value << 1 ^ value >> 63) as u64);
    }

    pub(super) fn time(&mut self, time: Timestamp) {
        self.signed(time.as_second());
        self.signed(i64::from(time.subsec_nanosecond()));
    }

    pub(super) fn duration(&mut self, duration: SignedDuration) {
        self.signed(duration.as_secs());
        self.signed(i64::from(duration.subsec_nanos()));
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Writer, T)) {
        self.number(u64::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    pub(super) fn list<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        write: impl Fn(&mut Writer, T),
    ) {
        self.number(items.len() as u64);
        for item in items {
            write(self, item);
        }
    }
}

/// Takes values from bytes.
pub(super) struct Reader<'a>(&'a [u8]);

type Read<T> = Result<T, Malformed>;

impl<'a> Reader<'a> {
    pub(super) fn with_version(bytes: &'a [u8], known: u8) -> Read<Reader<'a>> {
        match bytes.split_first() {
            Some((version, rest)) if *version == known => Ok(Reader(rest)),
            Some((version, _)) => {
                Err(Malformed(format!("record version is {version}, this release knows {known}")))
            }
            None => Err(Malformed::new("an empty record")),
        }
    }

    /// A record of any of these versions, and which one it is.
    pub(super) fn with_versions(bytes: &'a [u8], known: RangeInclusive<u8>) -> Read<(Reader<'a>, u8)> {
        match bytes.split_first() {
            Some((version, rest)) if known.contains(version) => Ok((Reader(rest), *version)),
            Some((version, _)) => {
                Err(Malformed(format!("record version is {version}, this release knows {known:?}")))
            }
            None => Err(Malformed::new("an empty record")),
        }
    }

    pub(super) fn end(self) -> Read<()> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed(format!("{} bytes too many", self.0.len()))) }
    }

    pub(super) fn number(&mut self) -> Read<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or_else(|| Malformed::new("the record is cut off"))?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed::new("a number is too long"))
    }

    pub(super) fn small(&mut self) -> Read<u32> {
        let value = self.number()?;
        u32::try_from(value).map_err(|_| Malformed(format!("{value} is too large")))
    }

    pub(super) fn flag(&mut self) -> Read<bool> {
        Ok(self.number()? != 0)
    }

    pub(super) fn signed(&mut self) -> Read<i64> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn time(&mut self) -> Read<Timestamp> {
        let (seconds, nanos) = (self.signed()?, self.signed()?);
        let nanos = i32::try_from(nanos).map_err(Malformed::new)?;
        Timestamp::new(seconds, nanos).map_err(Malformed::new)
    }

    pub(super) fn duration(&mut self) -> Read<SignedDuration> {
        let (seconds, nanos) = (self.signed()?, self.signed()?);
        let whole = nanos.unsigned_abs() < 1_000_000_000;
        let nanos =
            i32::try_from(nanos).ok().filter(|_| whole).ok_or_else(|| Malformed::new("bad nanoseconds"))?;
        Ok(SignedDuration::new(seconds, nanos))
    }

    pub(super) fn bytes(&mut self) -> Read<&'a [u8]> {
        let length = usize::try_from(self.number()?).map_err(Malformed::new)?;
        let (bytes, rest) =
            self.0.split_at_checked(length).ok_or_else(|| Malformed::new("the record is cut off"))?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Read<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(Malformed::new)
    }

    pub(super) fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    pub(super) fn list<T>(&mut self, read: impl Fn(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let length = usize::try_from(self.number()?).map_err(Malformed::new)?;
        // Every item takes at least one byte, so a lie about the length cannot ask for much memory.
        if length > self.0.len() {
            return Err(Malformed::new("the record is cut off"));
        }
        (0..length).map(|_| read(self)).collect()
    }
}
