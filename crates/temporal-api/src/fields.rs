//! A message as the fields that came, known or not, each with its bytes.

use prost::DecodeError;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{
    WireType, decode_key, decode_varint, encode_key, encode_varint, encoded_len_varint, key_len,
};

/// Groups inside groups that are followed; nobody has sent one since protobuf 3.
const GROUP_DEPTH_MAX: u32 = 32;

/// One field as it came: its number and everything behind its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The number of the field.
    pub number: u32,
    wire: Wire,
    /// The value; without its length if it has one.
    pub value: Vec<u8>,
}

/// How a value is written; the library's own type cannot be compared in a `const`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Varint,
    Fixed64,
    Length,
    Group,
    Fixed32,
}

/// The fields of a message in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<Field>);

impl Fields {
    /// Takes a message apart.
    pub fn read(mut bytes: &[u8]) -> Result<Fields, DecodeError> {
        let mut fields = Fields::default();
        while bytes.has_remaining() {
            let (number, wire) = decode_key(&mut bytes)?;
            fields.take(number, wire, &mut bytes)?;
        }
        Ok(fields)
    }

    /// Takes one field whose key has been read.
    pub(crate) fn take(
        &mut self,
        number: u32,
        wire: WireType,
        buf: &mut impl Buf,
    ) -> Result<(), DecodeError> {
        let mut value = Vec::new();
        copy(number, wire, buf, &mut value, 0)?;
        let wire = match wire {
            WireType::Varint => Wire::Varint,
            WireType::SixtyFourBit => Wire::Fixed64,
            WireType::LengthDelimited => Wire::Length,
            WireType::StartGroup | WireType::EndGroup => Wire::Group,
            WireType::ThirtyTwoBit => Wire::Fixed32,
        };
        self.0.push(Field { number, wire, value });
        Ok(())
    }

    /// The contents of a message, text or bytes field, of all its occurrences, one behind the other: so a parser that
    /// joins repeated messages reads the same.
    pub fn content(&self, number: u32) -> Option<Vec<u8>> {
        let mut all =
            self.0.iter().filter(|field| field.number == number && field.wire == Wire::Length).peekable();
        all.peek()?;
        Some(all.flat_map(|field| field.value.iter().copied()).collect())
    }

    /// Puts this content in place of all that the field had; at its old place if it had one.
    pub fn put(&mut self, number: u32, value: Vec<u8>) {
        let place = self.0.iter().position(|field| field.number == number).unwrap_or(self.0.len());
        self.0.retain(|field| field.number != number);
        let place = place.min(self.0.len());
        self.0.insert(place, Field { number, wire: Wire::Length, value });
    }

    /// Puts a number in place of all that the field had.
    pub fn put_number(&mut self, number: u32, value: u64) {
        let mut bytes = Vec::new();
        encode_varint(value, &mut bytes);
        self.put(number, bytes);
        for field in self.0.iter_mut().filter(|field| field.number == number) {
            field.wire = Wire::Varint;
        }
    }

    /// Puts a number of 64 fixed bits, as a `double` is one, in place of all that the field had.
    pub fn put_double(&mut self, number: u32, value: f64) {
        self.put(number, value.to_le_bytes().to_vec());
        for field in self.0.iter_mut().filter(|field| field.number == number) {
            field.wire = Wire::Fixed64;
        }
    }

    /// Whether the field came at all.
    pub fn has(&self, number: u32) -> bool {
        self.0.iter().any(|field| field.number == number)
    }

    /// Removes all that the field had.
    pub fn remove(&mut self, number: u32) {
        self.0.retain(|field| field.number != number);
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The bytes that the message has.
    pub(crate) fn length(&self) -> usize {
        let size = |field: &Field| {
            let key = key_len(field.number);
            let length =
                if field.wire == Wire::Length { encoded_len_varint(field.value.len() as u64) } else { 0 };
            key + length + field.value.len()
        };
        self.0.iter().map(size).sum()
    }

    /// The message again.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    /// Writes the message.
    pub(crate) fn write(&self, buf: &mut impl BufMut) {
        for field in &self.0 {
            let wire = match field.wire {
                Wire::Varint => WireType::Varint,
                Wire::Fixed64 => WireType::SixtyFourBit,
                Wire::Length => WireType::LengthDelimited,
                Wire::Group => WireType::StartGroup,
                Wire::Fixed32 => WireType::ThirtyTwoBit,
            };
            encode_key(field.number, wire, buf);
            if field.wire == Wire::Length {
                encode_varint(field.value.len() as u64, buf);
            }
            buf.put_slice(&field.value);
        }
    }
}

/// Copies a value without understanding it. A group is copied with its end.
fn copy(
    number: u32,
    wire: WireType,
    buf: &mut impl Buf,
    into: &mut Vec<u8>,
    depth: u32,
) -> Result<(), DecodeError> {
    let length = match wire {
        WireType::Varint => {
            let value = decode_varint(buf)?;
            encode_varint(value, into);
            return Ok(());
        }
        WireType::SixtyFourBit => 8,
        WireType::ThirtyTwoBit => 4,
        WireType::LengthDelimited => {
            let length = decode_varint(buf)?;
            // Inside a group the length is part of what is kept.
            if depth > 0 {
                encode_varint(length, into);
            }
            length
        }
        WireType::StartGroup => return copy_group(number, buf, into, depth + 1),
        WireType::EndGroup => return Err(bad()),
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= buf.remaining()).ok_or_else(bad)?;
    into.put(buf.take(length));
    Ok(())
}

fn copy_group(number: u32, buf: &mut impl Buf, into: &mut Vec<u8>, depth: u32) -> Result<(), DecodeError> {
    if depth > GROUP_DEPTH_MAX {
        return Err(bad());
    }
    loop {
        let (inner, wire) = decode_key(buf)?;
        encode_key(inner, wire, into);
        match wire {
            WireType::EndGroup if inner == number => return Ok(()),
            WireType::StartGroup => copy_group(inner, buf, into, depth + 1)?,
            _ => copy(inner, wire, buf, into, depth)?,
        }
    }
}

/// Bytes that are no message.
#[expect(deprecated, reason = "the library offers no other way to refuse bytes in a hand-written message")]
fn bad() -> DecodeError {
    DecodeError::new("a value is longer than its message, or a group has no end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_field_comes_back_as_it_came() {
        // Varint, 64 bits, text, a group with a text and a group inside, 32 bits.
        let bytes = [
            &[0x08, 0x96, 0x01, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 2, b'h', b'i'][..],
            &[0x23, 0x0a, 1, b'x', 0x13, 0x08, 7, 0x14, 0x24, 0x2d, 1, 2, 3, 4],
        ]
        .concat();
        let fields = Fields::read(&bytes).unwrap();
        assert_eq!(fields.bytes(), bytes);
        assert_eq!(fields.content(3).as_deref(), Some(b"hi".as_slice()));
        assert_eq!(fields.content(9), None);
    }

    #[test]
    fn what_is_put_takes_the_place_of_all_that_was() {
        let mut fields = Fields::read(&[0x0a, 1, b'a', 0x10, 5, 0x0a, 1, b'b']).unwrap();
        assert_eq!(fields.content(1).as_deref(), Some(b"ab".as_slice()));
        fields.put(1, b"c".to_vec());
        fields.put_number(3, 300);
        assert_eq!(fields.bytes(), [0x0a, 1, b'c', 0x10, 5, 0x18, 0xac, 0x02]);
    }

    #[test]
    fn broken_bytes_are_refused() {
        let deep = [[0x0b].repeat(100), [0x0c].repeat(100)].concat();
        for bytes in [&[0x0a, 9, 1][..], &[0x0b, 0x08, 1], &[0x0c], &[0x11, 1], &[0xff], &deep] {
            assert!(Fields::read(bytes).is_err(), "{bytes:?}");
        }
    }
}
