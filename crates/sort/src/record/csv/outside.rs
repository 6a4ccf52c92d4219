//! Finds a byte of csv rows outside quotes, 64 bytes at a time; [`Quoting`] says which bytes are in quotes.

use super::quoting::{BLOCK, BeforeBlock, Quoting};

/// Bytes that one instruction compares.
const PIECE: usize = 16;

/// The places of one byte outside quotes, in rising order.
#[derive(Clone, Copy)]
pub(crate) struct Outside<'a> {
    bytes: &'a [u8],
    wanted: u8,
    separator: u8,
    /// Where the block after the current one begins.
    next_block: usize,
    /// Places in the current block that are still to be given, one bit each.
    found: u64,
    quoting: Quoting,
}

impl<'a> Outside<'a> {
    /// The places of `wanted`, which is no quote, in `bytes` from `start` on, where `quoting` is
    /// the state. A row begins at `bytes[0]`.
    #[inline]
    pub(crate) fn new(
        wanted: u8,
        separator: u8,
        bytes: &'a [u8],
        start: usize,
        quoting: Quoting,
    ) -> Self {
        Outside { bytes, wanted, separator, next_block: start, found: 0, quoting }
    }

    /// After the last place: whether the bytes end in quotes.
    pub(crate) fn is_inside(&self) -> bool {
        self.quoting.is_inside()
    }
}

impl Iterator for Outside<'_> {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        while self.found == 0 {
            let rest = self.bytes.get(self.next_block..).filter(|rest| !rest.is_empty())?;
            let (separator, start) = (self.separator, self.next_block);
            let [quotes, wanted] = places_in([b'"', self.wanted], rest);
            let borders = || {
                if self.wanted == separator {
                    // Newlines outside quotes end the row, so none is before a quote in it.
                    return wanted;
                }
                borders_in(separator, rest)
            };
            let before =
                || Some(BeforeBlock::of(*self.bytes.get(start.checked_sub(1)?)?, separator));
            let quoted = self.quoting.block(quotes, borders, before);
            self.found = wanted & !quoted.inside;
            self.next_block += BLOCK;
        }
        let place = self.next_block - BLOCK + self.found.trailing_zeros() as usize;
        self.found &= self.found - 1;
        Some(place)
    }
}

/// The state at a place of `bytes` less than a block before `to`, and that place. The row begins at `bytes[0]`.
///
/// A block without quotes costs one comparison per piece.
#[inline]
pub(super) fn quoting_near(
    bytes: &[u8],
    to: usize,
    separator: u8,
    quoting: Quoting,
) -> (Quoting, usize) {
    let mut quoting = quoting;
    let (blocks, _) = bytes[..to].as_chunks();
    for (n, block) in blocks.iter().enumerate() {
        let borders = || {
            let [newlines, separators] = places([b'\n', separator], block);
            newlines | separators
        };
        let before = || Some(BeforeBlock::of(*bytes.get((n * BLOCK).checked_sub(1)?)?, separator));
        let [quotes, _] = places([b'"', b'"'], block);
        quoting.block(quotes, borders, before);
    }
    (quoting, blocks.len() * BLOCK)
}

/// The newlines and separators in the first block of `rest`.
#[inline(never)]
fn borders_in(separator: u8, rest: &[u8]) -> u64 {
    let [newlines, separators] = places_in([b'\n', separator], rest);
    newlines | separators
}

/// Bit *i* of a result is set if `rest[i]` is the byte, for the first block of `rest`.
#[inline(always)]
pub(super) fn places_in(bytes: [u8; 2], rest: &[u8]) -> [u64; 2] {
    match rest.first_chunk() {
        Some(block) => places(bytes, block),
        None => places_in_short(bytes, rest),
    }
}

/// Bit *i* of a result is set if `block[i]` is the byte.
#[inline(always)]
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
#[inline(always)]
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
#[inline(always)]
fn with_piece(found: [u64; 2], bytes: [u8; 2], piece: &[u8; PIECE], at: usize) -> [u64; 2] {
    let [first, second] = equal_bytes(bytes, piece);
    [found[0] | u64::from(first) << at, found[1] | u64::from(second) << at]
}

/// Bit *i* of a result is set if `piece[i]` is the byte.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
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
#[inline(always)]
fn equal_bytes(bytes: [u8; 2], piece: &[u8; PIECE]) -> [u16; 2] {
    bytes.map(|byte| (0..PIECE).fold(0, |bits, at| bits | u16::from(piece[at] == byte) << at))
}
