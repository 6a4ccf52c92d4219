//! Sets of places among 64 bytes: bit *i* stands for byte *i*.

/// Bytes of a block.
pub(super) const BLOCK: usize = 64;

pub(super) type ByteBlock = [u8; BLOCK];

/// Calls `take` for each block of `bytes`, with its place and with the bits that are inside. The last
/// block is filled up with NUL.
#[inline(always)]
pub(super) fn each_block<E>(
    bytes: &[u8],
    mut take: impl FnMut(usize, &ByteBlock, u64) -> Result<(), E>,
) -> Result<(), E> {
    let (blocks, rest) = bytes.as_chunks();
    for (n, block) in blocks.iter().enumerate() {
        take(n * BLOCK, block, u64::MAX)?;
    }
    if rest.is_empty() {
        return Ok(());
    }
    let mut block = [0; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    take(blocks.len() * BLOCK, &block, (1 << rest.len()) - 1)
}

/// The places of `byte`.
#[inline(always)]
pub(super) fn places(byte: u8, block: &ByteBlock) -> u64 {
    #[cfg(target_arch = "x86_64")]
    return sse2::places(byte, block);
    #[cfg(not(target_arch = "x86_64"))]
    portable(block, |found| found == byte)
}

/// The places of space, tab, newline, form feed, carriage return, and `delimiter`.
#[inline(always)]
pub(super) fn whitespace(delimiter: u8, block: &ByteBlock) -> u64 {
    #[cfg(target_arch = "x86_64")]
    return sse2::whitespace(delimiter, block);
    #[cfg(not(target_arch = "x86_64"))]
    portable(block, |found| found.is_ascii_whitespace() || found == delimiter)
}

/// The places of ASCII letters and apostrophes.
#[inline(always)]
pub(super) fn letters(block: &ByteBlock) -> u64 {
    #[cfg(target_arch = "x86_64")]
    return sse2::letters(block);
    #[cfg(not(target_arch = "x86_64"))]
    portable(block, |found| found.is_ascii_alphabetic() || found == b'\'')
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn portable(block: &ByteBlock, is_in: impl Fn(u8) -> bool) -> u64 {
    (0..BLOCK).fold(0, |bits, at| bits | u64::from(is_in(block[at])) << at)
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set_epi64x, _mm_set1_epi8, _mm_sub_epi8,
    };

    use super::ByteBlock;

    #[inline(always)]
    fn bits(block: &ByteBlock, is_in: impl Fn(__m128i) -> __m128i) -> u64 {
        let (words, _) = block.as_chunks::<8>();
        let (pairs, _) = words.as_chunks::<2>();
        let mut bits = 0;
        for (at, pair) in pairs.iter().enumerate() {
            let [low, high] = pair.map(i64::from_le_bytes);
            // SAFETY: this needs SSE2 and nothing else, and every x86-64 processor has it.
            let found = unsafe { _mm_movemask_epi8(is_in(_mm_set_epi64x(high, low))) };
            bits |= u64::from(found as u16) << (16 * at);
        }
        bits
    }

    #[inline(always)]
    pub(super) fn places(byte: u8, block: &ByteBlock) -> u64 {
        // SAFETY: as in `bits`.
        bits(block, |bytes| unsafe { _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8)) })
    }

    #[inline(always)]
    pub(super) fn whitespace(delimiter: u8, block: &ByteBlock) -> u64 {
        // SAFETY: as in `bits`.
        bits(block, |bytes| unsafe {
            let is = |byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8));
            // Tab, newline, vertical tab, form feed and carriage return are 9 to 13.
            let from_tab = _mm_sub_epi8(bytes, _mm_set1_epi8(9));
            let controls = _mm_cmpeq_epi8(_mm_min_epu8(from_tab, _mm_set1_epi8(4)), from_tab);
            let controls = _mm_andnot_si128(is(11), controls);
            _mm_or_si128(controls, _mm_or_si128(is(b' '), is(delimiter)))
        })
    }

    #[inline(always)]
    pub(super) fn letters(block: &ByteBlock) -> u64 {
        // SAFETY: as in `bits`.
        bits(block, |bytes| unsafe {
            let lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
            let from_a = _mm_sub_epi8(lower, _mm_set1_epi8(b'a' as i8));
            let letters = _mm_cmpeq_epi8(_mm_min_epu8(from_a, _mm_set1_epi8(25)), from_a);
            _mm_or_si128(letters, _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\'' as i8)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_classified_as_the_portable_code_does() {
        for byte in 0..=u8::MAX {
            for at in [0, 15, 16, 40, 63] {
                let mut block = [b'x'; BLOCK];
                block[at] = byte;
                block[(at + 1) % BLOCK] = b' ';
                for delimiter in [b'\n', 0, 11, b'x'] {
                    let is_space = |b: u8| b.is_ascii_whitespace() || b == delimiter;
                    assert_eq!(whitespace(delimiter, &block), portable(&block, is_space));
                    assert_eq!(places(delimiter, &block), portable(&block, |b| b == delimiter));
                }
                let is_letter = |b: u8| b.is_ascii_alphabetic() || b == b'\'';
                assert_eq!(letters(&block), portable(&block, is_letter), "{byte}");
            }
        }
    }

    #[test]
    fn blocks_cover_all_bytes_once() {
        for len in 0..200 {
            let bytes: Vec<u8> = (0..len).map(|n| n as u8 | 1).collect();
            let mut seen = Vec::new();
            let take = |at: usize, block: &ByteBlock, inside: u64| {
                assert_eq!(at, seen.len());
                seen.extend_from_slice(&block[..inside.count_ones() as usize]);
                Ok::<(), ()>(())
            };
            each_block(&bytes, take).expect("no error");
            assert_eq!(seen, bytes);
        }
    }
}
