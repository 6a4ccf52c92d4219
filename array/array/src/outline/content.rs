//! The content of a request, and of the pages that it writes.

use merganser_storage::numbers::usize_of;

use super::BLOCK;

/// Two odd numbers, to mix by.
const MIX: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
const SHIFT_MIX: u128 = 0xda94_2042_e4dd_58b5_2545_f491_4f6c_dd1d;

/// Identifies the bytes of a request by hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentHashes<'a> {
    /// The hash of all bytes: equal hashes of equal lengths are equal bytes.
    Whole(u128),
    /// The hash of each 4096 bytes from the first byte on; the last ones may be fewer.
    Pages(&'a [u128]),
}

impl ContentHashes<'_> {
    /// The content of the page that begins `at` bytes behind the first byte of the request, and ends in it.
    ///
    /// A first page with a hash of its own, and a request of one page with that hash, are equal. Pages that
    /// the hashes don't begin with are equal if the same bytes are at the same distance from the same hashes.
    ///
    /// # Panics
    /// When there is no hash of its bytes.
    pub(super) fn page(self, at: u64) -> u128 {
        let (number, shift) = (at / BLOCK, at % BLOCK);
        let content = match self {
            ContentHashes::Whole(hash) => hash ^ u128::from(number).wrapping_mul(MIX),
            ContentHashes::Pages(hashes) if shift == 0 => hashes[usize_of(number)],
            ContentHashes::Pages(hashes) => {
                let [first, second] = [0, 1].map(|more| hashes[usize_of(number) + more]);
                first ^ second.rotate_left(1).wrapping_mul(MIX)
            }
        };
        let content = content ^ u128::from(shift).wrapping_mul(SHIFT_MIX);
        // The outline's own contents, which are like no others, have the first bit.
        content & (u128::MAX >> 1) | 1 << 126
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_equal_where_their_bytes_are() {
        let pages = ContentHashes::Pages(&[7, 8, 7, 8, 9]);
        let alone = ContentHashes::Whole(7);
        assert_eq!(pages.page(0), alone.page(0));
        assert_eq!(pages.page(0), pages.page(2 * BLOCK));
        assert_ne!(pages.page(0), pages.page(BLOCK));
        assert_ne!(alone.page(0), alone.page(BLOCK));
        // At the same distance from the same two hashes; the other one has another second hash.
        assert_eq!(pages.page(512), pages.page(2 * BLOCK + 512));
        assert_ne!(pages.page(512), pages.page(2 * BLOCK + 1024));
        assert_ne!(pages.page(BLOCK + 512), pages.page(3 * BLOCK + 512));
        // Its last page is not where the hash begins.
        assert_ne!(alone.page(512), alone.page(0));
    }
}
