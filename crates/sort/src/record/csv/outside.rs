//! Finds a byte of csv rows outside quotes, 64 bytes at a time; [`Quoting`] says which bytes are in quotes.

#[cfg(target_arch = "x86_64")]
use super::places::any_in_block_avx2;
use super::places::{any_in_block, any_of};
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
            let (separator, start) = (self.quoting.separator(), self.next_block);
            let (quotes, wanted) = (any_of([b'"'], rest), any_of([self.wanted], rest));
            let borders = || {
                if self.wanted == separator {
                    // Newlines outside quotes end the row, so none is before a quote in it.
                    return wanted;
                }
                any_of([b'\n', separator], rest)
            };
            let before = || self.bytes.get(start.checked_sub(1)?).copied();
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
    each_block(blocks, quoting, |block| any_in_block([b'"'], block), any_in_block)
}

/// [`quoting_behind`] for processors with AVX2, whose comparisons are twice as wide.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn quoting_behind_avx2(blocks: &[[u8; BLOCK]], quoting: Quoting) -> Quoting {
    let quotes = |block: &_| any_in_block_avx2([b'"'], block);
    each_block(blocks, quoting, quotes, |bytes, block| any_in_block_avx2(bytes, block))
}

/// Looks at each block in turn. A block without quotes costs one comparison per piece.
#[inline(always)]
fn each_block(
    blocks: &[[u8; BLOCK]],
    mut quoting: Quoting,
    quotes: impl Fn(&[u8; BLOCK]) -> u64,
    either: impl Fn([u8; 2], &[u8; BLOCK]) -> u64,
) -> Quoting {
    let separator = quoting.separator();
    let mut before = None;
    for block in blocks {
        quoting.block(quotes(block), || either([b'\n', separator], block), || before);
        before = Some(block[BLOCK - 1]);
    }
    quoting
}
