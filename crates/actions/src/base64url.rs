//! Bytes as text that may stand in a URL: base64 with `-` and `_`, without padding (RFC 4648, section 5).

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = [0; 4];
        bits[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(bits);
        for place in 0..=group.len() {
            text.push(LETTERS[(bits >> (18 - 6 * place)) as usize & 63] as char);
        }
    }
    text
}

/// The bytes of a text; nothing if it is not exactly what [`encode`] would have made.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.as_bytes().chunks(4) {
        let mut bits = 0;
        for place in 0..4 {
            let value = group.get(place).map_or(Some(0), |letter| value_of(*letter))?;
            bits |= value << (18 - 6 * place);
        }
        let length = match group.len() {
            4 => 3,
            3 => 2,
            2 => 1,
            _ => return None,
        };
        let whole = bits.to_be_bytes();
        // Bits that no byte needs must be zero, or two texts would mean the same.
        if whole[1 + length..].iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(&whole[1..=length]);
    }
    Some(bytes)
}

fn value_of(letter: u8) -> Option<u32> {
    LETTERS.iter().position(|known| *known == letter).and_then(|index| u32::try_from(index).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts() {
        for (bytes, text) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg")] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(encode(&[0xfb, 0xff]), "-_8");
    }

    #[test]
    fn one_text_for_the_same_bytes() {
        for text in ["Zh", "Zm9", "Z", "Zg==", "Zm+v", "Zm 9v"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
