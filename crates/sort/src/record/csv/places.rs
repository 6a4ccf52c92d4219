//! Where bytes are in blocks of 64, a bit for each.

use super::quoting::BLOCK;

/// Bytes that one instruction compares.
const PIECE: usize = 16;

/// Bit *i* is set if `rest[i]` is one of `bytes`, for the first block of `rest`.
#[inline(always)]
pub(super) fn any_of<const N: usize>(bytes: [u8; N], rest: &[u8]) -> u64 {
    match rest.first_chunk() {
        Some(block) => any_in_block(bytes, block),
        None => any_in_short(bytes, rest),
    }
}

/// As [`any_of`], for a whole block.
#[inline(always)]
pub(super) fn any_in_block<const N: usize>(bytes: [u8; N], block: &[u8; BLOCK]) -> u64 {
    let (pieces, _) = block.as_chunks();
    let piece = |at: usize| u64::from(any_in_piece(bytes, &pieces[at])) << (PIECE * at);
    piece(0) | piece(1) | piece(2) | piece(3)
}

/// As [`any_of`], for fewer bytes than a block. The last piece overlaps the one before it, which costs less
/// than a copy of the bytes into a whole block: the copy would be read before it has left the store buffer.
#[inline(always)]
fn any_in_short<const N: usize>(bytes: [u8; N], rest: &[u8]) -> u64 {
    let Some(last) = rest.last_chunk::<PIECE>() else {
        return (0..)
            .zip(rest)
            .fold(0, |bits, (at, byte)| bits | u64::from(bytes.contains(byte)) << at);
    };
    let (pieces, _) = rest.as_chunks();
    let last = u64::from(any_in_piece(bytes, last)) << (rest.len() - PIECE);
    pieces.iter().enumerate().fold(last, |bits, (at, piece)| {
        bits | u64::from(any_in_piece(bytes, piece)) << (PIECE * at)
    })
}

/// As [`any_of`], for a piece.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn any_in_piece<const N: usize>(bytes: [u8; N], piece: &[u8; PIECE]) -> u16 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
        _mm_setzero_si128,
    };
    let (words, _) = piece.as_chunks::<8>();
    let [low, high] = [words[0], words[1]].map(i64::from_le_bytes);
    // SAFETY: these need SSE2 and nothing else, and every x86-64 processor has it.
    unsafe {
        let piece = _mm_set_epi64x(high, low);
        let found = bytes.into_iter().fold(_mm_setzero_si128(), |found, byte| {
            _mm_or_si128(found, _mm_cmpeq_epi8(piece, _mm_set1_epi8(byte as i8)))
        });
        _mm_movemask_epi8(found) as u16
    }
}

/// As [`any_of`], for a piece.
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
