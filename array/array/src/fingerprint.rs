//! Fingerprints of pages: step 2 of the engine in the dissertation, chapter 5.3.2.

use sha1::{Digest, Sha1};

use crate::bytes::PageBytes;
use crate::settings::Hash;

/// Bytes of a fingerprint.
pub(crate) const FINGERPRINT_BYTES: usize = 20;

/// 160 bits of a page's hash.
pub(crate) type Fingerprint = [u8; FINGERPRINT_BYTES];

/// The fingerprint of `page`.
pub(crate) fn of_page(hash: Hash, page: &PageBytes) -> Fingerprint {
    match hash {
        Hash::Blake3 => {
            let full = blake3::hash(page);
            full.as_bytes()[..FINGERPRINT_BYTES].try_into().expect("32 bytes are more")
        }
        Hash::Sha1 => Sha1::digest(page).into(),
    }
}

/// A number that identifies `bytes`: the first 128 bits of their BLAKE3, as a big-endian number. For a page,
/// it is the beginning of its fingerprint.
#[must_use]
pub fn content_hash(bytes: &[u8]) -> u128 {
    let hash = blake3::hash(bytes);
    u128::from_be_bytes(hash.as_bytes()[..16].try_into().expect("32 bytes are more"))
}

/// The first eight bytes. The index finds candidates with them. A candidate's whole fingerprint is compared.
pub(crate) fn tag(fingerprint: &Fingerprint) -> u64 {
    u64::from_be_bytes(fingerprint[..8].try_into().expect("eight bytes"))
}
