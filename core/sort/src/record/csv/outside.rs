//! Finds a byte of csv rows outside quotes, 64 bytes at a time; [`Quoting`] says which bytes are in quotes.

#[cfg(target_arch = "x86_64")]
use super::places::any_in_block_avx2;
use super::places::{any_in_block, places_in};
use super::quoting::{BLOCK, Quoting};

/// The places of one byte outside quotes, in rising order.
#[derive(Clone, Copy)]
pub(crate) struct Outside<'a> {
    bytes: &'a [u8],
    wanted: u8,
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
    pub(crate) fn new(wanted: u8, bytes: &'a [u8], start: usize, quoting: Quoting) -> Self {
        Outside { bytes, wanted, next_block: start, found: 0, quoting }
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
            let [quotes, wanted] = places_in([b'"', self.wanted], rest);
            let inside = if quotes == 0 {
                self.quoting.block_without_quotes()
            } else {
                let separator = self.quoting.separator();
                // Newlines outside quotes end the row, so none is before a quote in it.
                let borders = match self.wanted == separator {
                    true => wanted,
                    false => borders_in(separator, rest),
                };
                let before = self.next_block.checked_sub(1).map(|last| self.bytes[last]);
                self.quoting.block(quotes, borders, before).inside
            };
            self.found = wanted & !inside;
            self.next_block += BLOCK;
        }
        let place = self.next_block - BLOCK + self.found.trailing_zeros() as usize;
        self.found &= self.found - 1;
        Some(place)
    }
}

/// The state at a place of `bytes` less than a block before `to`, and that place. The row begins at `bytes[0]`.
#[inline]
pub(super) fn quoting_near(bytes: &[u8], to: usize, quoting: Quoting) -> (Quoting, usize) {
    let (blocks, _) = bytes[..to].as_chunks();
    (quoting_behind(blocks, quoting), blocks.len() * BLOCK)
}

/// The state behind `blocks`, which begin at a row.
fn quoting_behind(blocks: &[[u8; BLOCK]], quoting: Quoting) -> Quoting {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was just found.
        return unsafe { quoting_behind_avx2(blocks, quoting) };
    }
    quoting_behind_any(blocks, quoting)
}

/// [`quoting_behind`] for processors with AVX2, whose comparisons are twice as wide.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn quoting_behind_avx2(blocks: &[[u8; BLOCK]], quoting: Quoting) -> Quoting {
    let quotes = |block: &_| any_in_block_avx2([b'"'], block);
    each_block(blocks, quoting, quotes, |bytes, block| any_in_block_avx2(bytes, block))
}

/// [`quoting_behind`] for any processor.
fn quoting_behind_any(blocks: &[[u8; BLOCK]], quoting: Quoting) -> Quoting {
    each_block(blocks, quoting, |block| any_in_block([b'"'], block), any_in_block)
}

/// Looks at each block in turn. One without quotes costs one comparison per piece.
#[inline(always)]
fn each_block(
    blocks: &[[u8; BLOCK]],
    mut quoting: Quoting,
    quotes: impl Fn(&[u8; BLOCK]) -> u64,
    either: impl Fn([u8; 2], &[u8; BLOCK]) -> u64,
) -> Quoting {
    let mut before = None;
    for block in blocks {
        match quotes(block) {
            0 => _ = quoting.block_without_quotes(),
            quotes => {
                let borders = either([b'\n', quoting.separator()], block);
                quoting.block(quotes, borders, before);
            }
        }
        before = Some(block[BLOCK - 1]);
    }
    quoting
}

/// The newlines and separators in the first block of `rest`. Not inlined: rows without quotes don't need it.
#[inline(never)]
fn borders_in(separator: u8, rest: &[u8]) -> u64 {
    let [newlines, separators] = places_in([b'\n', separator], rest);
    newlines | separators
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the processor has, the state is that of a walk.
        #[test]
        fn the_state_is_the_same_on_every_processor(
            bytes in prop::collection::vec(prop::sample::select(&b"\"\",\na"[..]), 0..5 * BLOCK),
            toggled: bool,
        ) {
            let (blocks, _) = bytes.as_chunks();
            let at_row = Quoting::at_row(b',', toggled);
            let places = |quoting| Outside::new(b'a', &bytes, blocks.len() * BLOCK, quoting);
            let found = quoting_behind(blocks, at_row);
            prop_assert_eq!(found, quoting_behind_any(blocks, at_row));
            let walked: Vec<usize> = Outside::new(b'a', &bytes, 0, at_row)
                .skip_while(|&at| at < blocks.len() * BLOCK)
                .collect();
            prop_assert_eq!(places(found).collect::<Vec<_>>(), walked);
        }
    }
}
