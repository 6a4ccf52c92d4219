//! Values as bytes in the order of their ranks: the largest value first.
//!
//! A row's *rank* is its value's rank, then its key. It is unique among rows of different keys, and
//! the bytes of ranks compare as the rows are to be printed:
//!
//! ```text
//!   numbers   8 bytes, big-endian, complemented, so that 3 comes before 2 and before -1
//!   others    each byte complemented; 00 as FF 00, and the end as FF FE
//!             so "b" comes before "ab", and "ab" before "a"
//! ```

use merganser_map::ssdlet::Type;

/// Appends the rank of a row.
pub(super) fn rank(of: Type, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    rank_of_value(of, value, out);
    out.extend_from_slice(key);
}

/// The key of a row whose rank is `rank`.
pub(super) fn key_of_rank(of: Type, rank: &[u8]) -> &[u8] {
    match of {
        Type::I64 | Type::F64 => rank.get(8..).unwrap_or_default(),
        Type::Text | Type::Bytes | Type::Decimal => {
            let mut at = 0;
            while let Some(byte) = rank.get(at) {
                at += 1;
                if *byte == 0xff {
                    at += 1;
                    if rank.get(at - 1) == Some(&0xfe) {
                        break;
                    }
                }
            }
            rank.get(at..).unwrap_or_default()
        }
    }
}

fn rank_of_value(of: Type, value: &[u8], out: &mut Vec<u8>) {
    const SIGN: u64 = 1 << 63;
    // Bytes that are no number count as 0, as in a combine.
    let eight = || value.try_into().unwrap_or_default();
    let ascending = match of {
        Type::I64 => i64::from_le_bytes(eight()).cast_unsigned() ^ SIGN,
        // The order of `f64::total_cmp`.
        Type::F64 => match u64::from_le_bytes(eight()) {
            negative if negative & SIGN != 0 => !negative,
            positive => positive ^ SIGN,
        },
        Type::Text | Type::Bytes | Type::Decimal => {
            for byte in value {
                out.push(!byte);
                if *byte == 0 {
                    out.push(0x00);
                }
            }
            out.extend_from_slice(&[0xff, 0xfe]);
            return;
        }
    };
    out.extend_from_slice(&(!ascending).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(of: Type, key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        rank(of, key, value, &mut out);
        out
    }

    #[test]
    fn larger_numbers_come_first_and_ties_by_key() {
        let numbers = [i64::MAX, 300, 2, 1, 0, -1, -300, i64::MIN];
        let ranks: Vec<_> = numbers.map(|n| ranked(Type::I64, b"k", &n.to_le_bytes())).into();
        assert!(ranks.is_sorted_by(|a, b| a < b));
        let one = 1i64.to_le_bytes();
        assert!(ranked(Type::I64, b"a", &one) < ranked(Type::I64, b"ab", &one));
        assert!(ranked(Type::I64, b"ab", &one) < ranked(Type::I64, b"b", &one));
        let floats = [f64::INFINITY, 1e300, 1.5, 1.0, 5e-324, 0.0, -0.0, -1.0, f64::NEG_INFINITY];
        let ranks: Vec<_> = floats.map(|n| ranked(Type::F64, b"k", &n.to_le_bytes())).into();
        assert!(ranks.is_sorted_by(|a, b| a < b));
    }

    /// All texts of up to four of these bytes, with keys that could run into them.
    #[test]
    fn texts_compare_as_texts_whatever_bytes_they_have() {
        let bytes = [0x00, 0x01, b'a', 0xfe, 0xff];
        let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
        for at in 0.. {
            if texts.get(at).is_none_or(|text| text.len() == 3) {
                break;
            }
            for byte in bytes {
                let mut longer = texts[at].clone();
                longer.push(byte);
                texts.push(longer);
            }
        }
        let keys: [&[u8]; 4] = [b"", b"\0", b"\xff\xfe", b"key"];
        let mut rows: Vec<(&[u8], &[u8])> =
            texts.iter().flat_map(|text| keys.map(|key| (&**text, key))).collect();
        rows.sort_by(|a, b| b.0.cmp(a.0).then(a.1.cmp(b.1)));
        let ranks: Vec<_> = rows.iter().map(|(text, key)| ranked(Type::Text, key, text)).collect();
        assert!(ranks.is_sorted_by(|a, b| a < b));
        for ((_, key), rank) in rows.iter().zip(&ranks) {
            assert_eq!(key_of_rank(Type::Text, rank), *key);
        }
        assert_eq!(key_of_rank(Type::I64, &ranked(Type::I64, b"k\xff", &[0; 8])), b"k\xff");
    }
}
