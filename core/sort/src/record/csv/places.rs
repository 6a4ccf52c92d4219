//! Where bytes are in blocks of 64, a bit for each.

use super::quoting::BLOCK;

/// Bytes that one instruction compares.
const PIECE: usize = 16;

/// Bit *i* of a result is set if `rest[i]` is the byte, for the first block of `rest`.
#[inline(always)]
pub(super) fn places_in(bytes: [u8; 2], rest: &[u8]) -> [u64; 2] {
    match rest.first_chunk::<BLOCK>() {
        Some(block) => in_pieces([0; 2], bytes, block),
        None => in_short(bytes, rest),
    }
}

/// As [`places_in`], for fewer bytes than a block. The last piece overlaps the one before it, which costs less
/// than a copy of the bytes into a whole block: the copy would be read before it has left the store buffer.
#[inline(always)]
fn in_short(bytes: [u8; 2], rest: &[u8]) -> [u64; 2] {
    let Some(last) = rest.last_chunk::<PIECE>() else {
        let bit = |byte| {
            (0..).zip(rest).fold(0, |bits, (at, &found)| bits | u64::from(found == byte) << at)
        };
        return bytes.map(bit);
    };
    let found = with_piece([0; 2], bytes, last, rest.len() - PIECE);
    in_pieces(found, bytes, rest)
}

/// `found` with the bits of the whole pieces of `rest`.
#[inline(always)]
fn in_pieces(mut found: [u64; 2], bytes: [u8; 2], rest: &[u8]) -> [u64; 2] {
    let (pieces, _) = rest.as_chunks();
    for (at, piece) in pieces.iter().enumerate() {
        found = with_piece(found, bytes, piece, PIECE * at);
    }
    found
}

/// `found` with the bits of a piece that begins at byte `at` of the block.
#[inline(always)]
fn with_piece(found: [u64; 2], bytes: [u8; 2], piece: &[u8; PIECE], at: usize) -> [u64; 2] {
    let [first, second] = [any_in_piece([bytes[0]], piece), any_in_piece([bytes[1]], piece)];
    [found[0] | u64::from(first) << at, found[1] | u64::from(second) << at]
}

/// Bit *i* is set if `block[i]` is one of `bytes`.
#[inline(always)]
pub(super) fn any_in_block<const N: usize>(bytes: [u8; N], block: &[u8; BLOCK]) -> u64 {
    let (pieces, _) = block.as_chunks();
    let mut found = 0;
    for (at, piece) in pieces.iter().enumerate() {
        found |= u64::from(any_in_piece(bytes, piece)) << (PIECE * at);
    }
    found
}

/// As [`any_in_block`], for a piece.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn any_in_piece<const N: usize>(bytes: [u8; N], piece: &[u8; PIECE]) -> u16 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
        _mm_setzero_si128,
    };
    let (words, _) = piece.as_chunks::<8>();
    let [low, high] = [i64::from_le_bytes(words[0]), i64::from_le_bytes(words[1])];
    // SAFETY: these need SSE2 and nothing else, and every x86-64 processor has it.
    unsafe {
        let piece = _mm_set_epi64x(high, low);
        let mut found = _mm_setzero_si128();
        for byte in bytes {
            found = _mm_or_si128(found, _mm_cmpeq_epi8(piece, _mm_set1_epi8(byte as i8)));
        }
        _mm_movemask_epi8(found) as u16
    }
}

/// As [`any_in_block`], for a piece.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn any_in_piece<const N: usize>(bytes: [u8; N], piece: &[u8; PIECE]) -> u16 {
    (0..PIECE).fold(0, |bits, at| bits | u16::from(bytes.contains(&piece[at])) << at)
}

/// As [`any_in_block`], for processors with AVX2: two pieces at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn any_in_block_avx2<const N: usize>(bytes: [u8; N], block: &[u8; BLOCK]) -> u64 {
    use std::arch::x86_64::{
        _mm256_cmpeq_epi8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set_epi64x,
        _mm256_set1_epi8, _mm256_setzero_si256,
    };
    let (words, _) = block.as_chunks::<8>();
    let half = |words: &[[u8; 8]]| {
        let word = |at: usize| i64::from_le_bytes(words[at]);
        let half = _mm256_set_epi64x(word(3), word(2), word(1), word(0));
        let mut found = _mm256_setzero_si256();
        for byte in bytes {
            found = _mm256_or_si256(found, _mm256_cmpeq_epi8(half, _mm256_set1_epi8(byte as i8)));
        }
        u64::from(_mm256_movemask_epi8(found) as u32)
    };
    half(&words[..4]) | half(&words[4..]) << 32
}
