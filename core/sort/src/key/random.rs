//! A random permutation of keys in which equal keys stay together: the option `R`.
//!
//! ```text
//! 8 bytes of a hash of salt and text    the text as in `text`
//! ```
//! The text behind the hash keeps different texts apart when their hashes collide. GNU sort uses
//! another hash, so its permutation is another one even with the same source of randomness.

use super::text;

/// How many bytes of a source of randomness decide. GNU sort reads as many: the source may be a
/// device that never ends.
pub const SALT_SOURCE_BYTES: usize = 16;

/// The salt from the first bytes of a source of randomness.
#[must_use]
pub fn salt_from(source: &[u8; SALT_SOURCE_BYTES]) -> u64 {
    hash(0, source)
}

/// Appends `text`, shuffled by `salt`.
pub(super) fn encode(text: &[u8], salt: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&hash(salt, text).to_be_bytes());
    text::encode(text, out);
}

/// Folded multiplication over words of eight bytes. Odd 64-bit constants from the digits of pi.
fn hash(salt: u64, text: &[u8]) -> u64 {
    const STEP: u64 = 0x243f_6a88_85a3_08d3;
    const FINISH: u64 = 0x1319_8a2e_0370_7345;
    let mut state = fold(salt ^ STEP, FINISH ^ text.len() as u64);
    for chunk in text.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = fold(state ^ u64::from_le_bytes(word), STEP);
    }
    fold(state ^ salt, FINISH)
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64 ^ (product >> 64) as u64).wrapping_add(a.rotate_left(32))
}
