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

/// Bytes that one instruction compares.
const PIECE: usize = 16;

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
            let [quotes, wanted] = match rest.first_chunk() {
                Some(block) => places([b'"', self.wanted], block),
                None => places_in_short([b'"', self.wanted], rest),
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

/// Bit *i* of a result is set if `block[i]` is the byte.
#[inline]
fn places(bytes: [u8; 2], block: &[u8; BLOCK]) -> [u64; 2] {
    let (pieces, _) = block.as_chunks();
    let mut found = [0; 2];
    for (at, piece) in pieces.iter().enumerate() {
        found = with_piece(found, bytes, piece, PIECE * at);
    }
    found
}

/// As [`places`], for fewer bytes than a block. The last piece overlaps the one before it, which costs less
/// than a copy of the bytes into a whole block: the copy would be read before it has left the store buffer.
#[inline]
fn places_in_short(bytes: [u8; 2], rest: &[u8]) -> [u64; 2] {
    let Some(last) = rest.last_chunk::<PIECE>() else {
        let bit = |byte| {
            (0..).zip(rest).fold(0, |bits, (at, &found)| bits | u64::from(found == byte) << at)
        };
        return bytes.map(bit);
    };
    let (pieces, _) = rest.as_chunks();
    let mut found = with_piece([0; 2], bytes, last, rest.len() - PIECE);
    for (at, piece) in pieces.iter().enumerate() {
        found = with_piece(found, bytes, piece, PIECE * at);
    }
    found
}

/// `found` with the bits of a piece that begins at byte `at` of the block.
#[inline]
fn with_piece(found: [u64; 2], bytes: [u8; 2], piece: &[u8; PIECE], at: usize) -> [u64; 2] {
    let [first, second] = equal_bytes(bytes, piece);
    [found[0] | u64::from(first) << at, found[1] | u64::from(second) << at]
}

/// Bit *i* of a result is set if `piece[i]` is the byte.
#[cfg(target_arch = "x86_64")]
#[inline]
fn equal_bytes(bytes: [u8; 2], piece: &[u8; PIECE]) -> [u16; 2] {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let (words, _) = piece.as_chunks::<8>();
    let [low, high] = [words[0], words[1]].map(i64::from_le_bytes);
    // SAFETY: these need SSE2 and nothing else, and every x86-64 processor has it.
    bytes.map(|byte| unsafe {
        let equal = _mm_cmpeq_epi8(_mm_set_epi64x(high, low), _mm_set1_epi8(byte as i8));
        _mm_movemask_epi8(equal) as u16
    })
}

/// Bit *i* of a result is set if `piece[i]` is the byte.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn equal_bytes(bytes: [u8; 2], piece: &[u8; PIECE]) -> [u16; 2] {
    bytes.map(|byte| (0..PIECE).fold(0, |bits, at| bits | u16::from(piece[at] == byte) << at))
}
