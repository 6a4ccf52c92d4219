//! The memory that an xz file needs.

use std::io::{self, Read};

use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Error, Stream};

use super::PackedBytes;

/// The dictionary of `xz` without options.
pub(super) const DICTIONARY_BYTES_USUAL: u64 = 8 << 20;
/// The decoder's tables and filters, more than they take.
const TABLES_BYTES: u64 = 256 << 10;
const STREAM_HEADER_BYTES: usize = 12;
const LZMA2: u64 = 0x21;

/// The memory of a decoder for this dictionary.
pub(super) fn memory_bytes(dictionary_bytes: u64) -> u64 {
    dictionary_bytes + TABLES_BYTES
}

/// The dictionary of the first block (the .xz file format 1.2, sections 3.1 and 5.3.1); `None` if there is no block, or
/// `head` is no beginning of a file that a decoder takes.
pub(super) fn dictionary_bytes(head: &[u8]) -> Option<u64> {
    let block = head.get(STREAM_HEADER_BYTES..)?;
    let (size, flags) = (*block.first()?, *block.get(1)?);
    if size == 0 {
        return None;
    }
    let mut fields = block.get(2..)?;
    for has_size in [flags & 0x40 != 0, flags & 0x80 != 0] {
        if has_size {
            number(&mut fields)?;
        }
    }
    for _ in 0..=flags & 3 {
        let (filter, len) = (number(&mut fields)?, number(&mut fields)?);
        let properties;
        (properties, fields) = fields.split_at_checked(usize::try_from(len).ok()?)?;
        if filter == LZMA2 {
            let bits = u32::from(properties.first()? & 0x3f);
            return Some((2 | u64::from(bits & 1)) << (bits.min(40) / 2 + 11));
        }
    }
    None
}

/// A number of up to nine bytes with seven bits each.
fn number(fields: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for at in 0..9 {
        let (byte, rest) = fields.split_first()?;
        *fields = rest;
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// A decoder of all streams that takes no more than `memory_bytes`.
pub(super) fn decoder(bytes: PackedBytes, memory_bytes: u64) -> io::Result<impl Read + Send> {
    let stream = Stream::new_stream_decoder(memory_bytes, CONCATENATED)?;
    Ok(Limited(XzDecoder::new_stream(bytes, stream)))
}

struct Limited(XzDecoder<PackedBytes>);

impl Read for Limited {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out).map_err(|error| {
            let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
            match cause {
                Some(Error::MemLimit) => super::more_memory_than_first(),
                _ => error,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dictionary_is_read_from_the_first_block() {
        // `xz -0`, `-6` and `-9` of a line, and of nothing.
        let head = |property: u8| {
            let stream = [0xfd, b'7', b'z', b'X', b'Z', 0, 0, 4, 0xe6, 0xd6, 0xb4, 0x46];
            [&stream[..], &[2, 0, 0x21, 1, property, 0, 0, 0]].concat()
        };
        for (property, expected) in [(0, 4096), (12, 256 << 10), (22, 8 << 20), (28, 64 << 20)] {
            assert_eq!(dictionary_bytes(&head(property)), Some(expected));
        }
        assert_eq!(dictionary_bytes(&head(1)), Some(6144));
        assert_eq!(dictionary_bytes(&[0; 13]), None);
        for len in 0..17 {
            assert_eq!(dictionary_bytes(&head(22)[..len]), None, "{len}");
        }
        // With sizes of the block and a filter of programs before LZMA2.
        let mut with = head(22)[..12].to_vec();
        with.extend([3, 0xc1, 0x80, 1, 5, 4, 0, 0x21, 1, 22]);
        assert_eq!(dictionary_bytes(&with), Some(8 << 20));
    }
}
