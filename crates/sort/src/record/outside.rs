//! Finds a byte outside quotes, 64 bytes at a time.
//!
//! A quote toggles whether the bytes behind it are quoted. For a block of 64 bytes, one bit a
//! byte, that is the running parity of the quote bits:
//!
//! ```text
//! bytes     a , " b , c " , d
//! quotes    0 0 1 0 0 0 1 0 0
//! parity    0 0 1 1 1 1 0 0 0
//! commas    0 1 0 0 1 0 0 1 0
//! outside   0 1 0 0 0 0 0 1 0     commas and not parity
//! ```
//! So a row full of quotes costs no more than one without.

const BLOCK: usize = 64;

/// The places of one byte outside quotes, in rising order.
#[derive(Clone, Copy)]
pub(crate) struct Outside<'a> {
    bytes: &'a [u8],
    wanted: u8,
    /// Where the block after the current one begins.
    next_block: usize,
    /// Places in the current block that are still to be given, one bit each.
    found: u64,
    /// Whether the next block begins inside quotes.
    quoted: bool,
}

impl<'a> Outside<'a> {
    /// `quoted` says whether `bytes` begins inside quotes. `wanted` is not the quote itself.
    #[inline]
    pub(crate) fn new(wanted: u8, bytes: &'a [u8], quoted: bool) -> Self {
        Outside { bytes, wanted, next_block: 0, found: 0, quoted }
    }
}

impl Iterator for Outside<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.found == 0 {
            let rest = self.bytes.get(self.next_block..).filter(|rest| !rest.is_empty())?;
            let (quotes, wanted) = match rest.first_chunk() {
                Some(block) => (places(b'"', block), places(self.wanted, block)),
                None => {
                    let mut block = [0; BLOCK];
                    block[..rest.len()].copy_from_slice(rest);
                    // The bytes behind the end may be wanted ones, if those are NUL.
                    let inside = (1 << rest.len()) - 1;
                    (places(b'"', &block), places(self.wanted, &block) & inside)
                }
            };
            let parity = running_parity(quotes) ^ if self.quoted { u64::MAX } else { 0 };
            self.found = wanted & !parity;
            self.quoted = parity >> (BLOCK - 1) == 1;
            self.next_block += BLOCK;
        }
        let place = self.next_block - BLOCK + self.found.trailing_zeros() as usize;
        self.found &= self.found - 1;
        Some(place)
    }
}

/// Bit *i* of the result is the parity of bits 0 to *i*.
#[inline]
fn running_parity(mut bits: u64) -> u64 {
    if bits != 0 {
        for shift in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << shift;
        }
    }
    bits
}

/// Bit *i* of the result is set if `block[i]` is `byte`.
#[cfg(target_arch = "x86_64")]
#[inline]
fn places(byte: u8, block: &[u8; BLOCK]) -> u64 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let (words, _) = block.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let mut bits = 0;
    for (at, pair) in pairs.iter().enumerate() {
        let [low, high] = pair.map(i64::from_le_bytes);
        // SAFETY: these need SSE2 and nothing else, and every x86-64 processor has it.
        let equal = unsafe {
            let equal = _mm_cmpeq_epi8(_mm_set_epi64x(high, low), _mm_set1_epi8(byte as i8));
            _mm_movemask_epi8(equal)
        };
        bits |= u64::from(equal as u16) << (16 * at);
    }
    bits
}

/// Bit *i* of the result is set if `block[i]` is `byte`.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn places(byte: u8, block: &[u8; BLOCK]) -> u64 {
    (0..BLOCK).fold(0, |bits, at| bits | u64::from(block[at] == byte) << at)
}
