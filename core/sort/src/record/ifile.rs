//! Records of Hadoop's intermediate files (`IFile`): key and value, each with its length in front.
//!
//! ```text
//! ┌─────────────┬───────────────┬──────────┬────────────┐
//! │ key length  │ value length  │ key      │ value      │   ... and after the last record FF FF,
//! │ VInt        │ VInt          │ k bytes  │ v bytes    │   which are two lengths of -1
//! └─────────────┴───────────────┴──────────┴────────────┘
//! ```
//! The lengths are in the coding of `org.apache.hadoop.io.WritableUtils`: a value from -112 to 127
//! is its own byte. For any other value, the first byte gives sign and size, and the rest is
//! big-endian. For a negative value the rest is the complement:
//!
//! ```text
//! first byte   80 .. 87    88 .. 8F    90 .. FF     00 .. 7F
//! means        negative    positive    -112 .. -1   0 .. 127
//! bytes after   8 ..  1     8 ..  1    none         none
//! ```
//!
//! ```
//! use merganser_sort::record::ifile::{RecordLengths, header};
//!
//! let record = b"\x03\x02keyno";
//! assert_eq!(header(record), Ok(Some(RecordLengths { bytes: 2, key: 3, value: 2 })));
//! assert_eq!(header(&record[..1]), Ok(None), "more bytes are needed");
//! ```

use thiserror::Error;

/// The end of the records of a segment: two lengths of -1.
pub const END_MARKER: [u8; 2] = [0xff, 0xff];

/// The most bytes that the two lengths of a record take.
pub const HEADER_BYTES_MAX: usize = 2 * VINT_BYTES_MAX;

/// The most bytes of a VInt or VLong.
pub const VINT_BYTES_MAX: usize = 9;

/// The lengths in front of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLengths {
    /// Bytes of the lengths themselves.
    pub bytes: usize,
    /// Bytes of the key, at most 2^31 - 1.
    pub key: usize,
    /// Bytes of the value, at most 2^31 - 1.
    pub value: usize,
}

impl RecordLengths {
    /// Bytes of the whole record, its lengths included.
    #[inline]
    #[must_use]
    pub fn record_bytes(&self) -> u64 {
        (self.bytes + self.key) as u64 + self.value as u64
    }
}

/// Why bytes are not the lengths of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LengthsFault {
    /// The end marker where a record should be.
    #[error("the records end here, before the segment does")]
    End,
    /// The length of the key is no length.
    #[error("a key length of {0}, which no record has")]
    Key(i64),
    /// The length of the value is no length.
    #[error("a value length of {0}, which no record has")]
    Value(i64),
}

/// The header at the start of `bytes`; `None` when it does not end within them.
///
/// # Errors
/// When a length is negative or more than 2^31 - 1.
#[inline]
pub fn header(bytes: &[u8]) -> Result<Option<RecordLengths>, LengthsFault> {
    // Nearly all keys and many values have lengths of one byte.
    if let [key @ 0..=0x7f, value @ 0..=0x7f, ..] = *bytes {
        return Ok(Some(RecordLengths {
            bytes: 2,
            key: usize::from(key),
            value: usize::from(value),
        }));
    }
    long_header(bytes)
}

fn long_header(bytes: &[u8]) -> Result<Option<RecordLengths>, LengthsFault> {
    if bytes.starts_with(&END_MARKER) {
        return Err(LengthsFault::End);
    }
    let Some((key, key_bytes)) = vlong(bytes) else { return Ok(None) };
    let Some((value, value_bytes)) = vlong(&bytes[key_bytes..]) else {
        // A key's length of -1 alone may be the end marker's first half.
        return if key < -1 { Err(LengthsFault::Key(key)) } else { Ok(None) };
    };
    let len = |value: i64| i32::try_from(value).ok().and_then(|len| usize::try_from(len).ok());
    Ok(Some(RecordLengths {
        bytes: key_bytes + value_bytes,
        key: len(key).ok_or(LengthsFault::Key(key))?,
        value: len(value).ok_or(LengthsFault::Value(value))?,
    }))
}

/// Bytes of the VInt or VLong that begins with `first`.
#[inline]
#[must_use]
pub fn vlong_bytes(first: u8) -> usize {
    match first {
        0x80..=0x87 => 0x88 - usize::from(first) + 1,
        0x88..=0x8f => 0x90 - usize::from(first) + 1,
        _ => 1,
    }
}

/// The VInt or VLong at the start of `bytes` and its size; `None` when it does not end within them.
#[inline]
#[must_use]
pub fn vlong(bytes: &[u8]) -> Option<(i64, usize)> {
    let first = *bytes.first()?;
    if !(0x80..=0x8f).contains(&first) {
        return Some((i64::from(first as i8), 1));
    }
    let size = vlong_bytes(first);
    let magnitude = bytes.get(1..size)?.iter().fold(0, |n, byte| n << 8 | i64::from(*byte));
    Some((if first < 0x88 { !magnitude } else { magnitude }, size))
}

/// Appends `value` as a VInt or VLong, which are the same, in as few bytes as it has.
pub fn push_vlong(value: i64, out: &mut Vec<u8>) {
    if (-112..=127).contains(&value) {
        out.push(value as u8);
        return;
    }
    let (magnitude, base) = if value < 0 { (!value, 0x88) } else { (value, 0x90) };
    let bytes = magnitude.to_be_bytes();
    let skip = magnitude.leading_zeros() as usize / 8;
    out.push(base - (bytes.len() - skip) as u8);
    out.extend_from_slice(&bytes[skip..]);
}

/// Appends a record.
///
/// # Panics
/// When key or value have more than 2^31 - 1 bytes.
pub fn push_record(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    for part in [key, value] {
        let len = i32::try_from(part.len()).expect("Hadoop's lengths are int");
        push_vlong(i64::from(len), out);
    }
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers, and the bytes that `WritableUtils.writeVLong` of Hadoop 3.4.2 writes for them.
    const VALUES: [(i64, &[u8]); 18] = [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x8f\x80"),
        (255, b"\x8f\xff"),
        (256, b"\x8e\x01\x00"),
        (65_535, b"\x8e\xff\xff"),
        (65_536, b"\x8d\x01\x00\x00"),
        (i32::MAX as i64, b"\x8c\x7f\xff\xff\xff"),
        (1 << 32, b"\x8b\x01\x00\x00\x00\x00"),
        (i64::MAX, b"\x88\x7f\xff\xff\xff\xff\xff\xff\xff"),
        (-1, b"\xff"),
        (-112, b"\x90"),
        (-113, b"\x87\x70"),
        (-256, b"\x87\xff"),
        (-257, b"\x86\x01\x00"),
        (i32::MIN as i64, b"\x84\x7f\xff\xff\xff"),
        (-(1 << 32) - 1, b"\x83\x01\x00\x00\x00\x00"),
        (i64::MIN, b"\x80\x7f\xff\xff\xff\xff\xff\xff\xff"),
    ];

    #[test]
    fn integers_are_coded_as_hadoop_codes_them() {
        for (value, bytes) in VALUES {
            let mut coded = Vec::new();
            push_vlong(value, &mut coded);
            assert_eq!(coded, bytes, "{value}");
            assert_eq!(vlong(bytes), Some((value, bytes.len())));
            assert_eq!(vlong_bytes(bytes[0]), bytes.len());
            for len in 0..bytes.len() {
                assert_eq!(vlong(&bytes[..len]), None, "{value}, {len} bytes");
            }
        }
    }

    #[test]
    fn a_record_is_pinned() {
        let mut record = Vec::new();
        push_record(b"key", &[7; 200], &mut record);
        assert_eq!(record[..6], *b"\x03\x8f\xc8key");
        let expected = RecordLengths { bytes: 3, key: 3, value: 200 };
        assert_eq!(header(&record), Ok(Some(expected)));
        assert_eq!(expected.record_bytes(), record.len() as u64);
        assert_eq!(header(&record[..2]), Ok(None));
    }

    #[test]
    fn no_other_lengths_are_taken() {
        assert_eq!(header(b"\xff\xff"), Err(LengthsFault::End));
        assert_eq!(header(b"\xff"), Ok(None));
        assert_eq!(header(b"\xff\x00"), Err(LengthsFault::Key(-1)));
        assert_eq!(header(b"\x00\xff"), Err(LengthsFault::Value(-1)));
        assert_eq!(header(b"\xfe"), Err(LengthsFault::Key(-2)));
        assert_eq!(header(b"\x8c\x80\x00\x00\x00\x00"), Err(LengthsFault::Key(1 << 31)));
        let most = header(b"\x8c\x7f\xff\xff\xff\x8c\x7f\xff\xff\xff").expect("both fit an int");
        assert_eq!(most.expect("whole").record_bytes(), 2 * ((1 << 31) - 1) + 10);
    }

    proptest! {
        #[test]
        fn any_integer_comes_back(value in any::<i64>(), shift in 0_u32..64) {
            let value = value >> shift;
            let mut coded = Vec::new();
            push_vlong(value, &mut coded);
            prop_assert_eq!(vlong(&coded), Some((value, coded.len())));
        }

        #[test]
        fn any_bytes_are_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            if let Ok(Some(found)) = header(&bytes) {
                prop_assert!(found.bytes <= bytes.len().min(HEADER_BYTES_MAX));
            }
        }
    }
}
