//! Lengths in as few bytes as they need: seven bits in each, the lowest first, and a bit that says whether more follow.

/// Bytes of `number`.
#[inline]
pub(crate) fn varint_len(number: usize) -> usize {
    if number < 1 << 7 { 1 } else { (number.ilog2() as usize) / 7 + 1 }
}

/// Writes `number` at `at`, and returns what is behind it.
#[inline]
pub(crate) fn put_varint(bytes: &mut [u8], mut at: usize, mut number: usize) -> usize {
    while number >= 1 << 7 {
        bytes[at] = (number & 0x7F) as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    bytes[at] = number as u8;
    at + 1
}

/// The number at `at`, and what is behind it; `None` if it is cut or too large.
#[inline]
pub(crate) fn get_varint(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((usize::from(first), at + 1));
    }
    let (mut number, mut shift) = (usize::from(first & 0x7F), 7);
    loop {
        at += 1;
        let byte = *bytes.get(at)?;
        number |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some((number, at + 1));
        }
        shift += 7;
        if shift > 35 {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 300, 16_383, 16_384, 1 << 21, u32::MAX as usize] {
            let mut bytes = [0xAA; 8];
            let end = put_varint(&mut bytes, 1, number);
            assert_eq!(end, 1 + varint_len(number), "{number}");
            assert_eq!(get_varint(&bytes, 1), Some((number, end)), "{number}");
            assert_eq!(get_varint(&bytes[..end - 1], 1), None, "{number}");
        }
        assert_eq!(get_varint(&[0xFF; 20], 0), None);
    }
}
