//! Key and value, each with its length in front: what Hadoop's spills and similar files hold.
//!
//! ```text
//! ┌─────────────┬───────────────┬──────────┬────────────┐
//! │ key length  │ value length  │ key      │ value      │
//! │ u32 LE      │ u32 LE        │ k bytes  │ v bytes    │
//! └─────────────┴───────────────┴──────────┴────────────┘
//! ```

use super::framing::Framing;

/// Bytes before the key.
pub(crate) const HEADER_LEN: usize = 8;

/// [`Framing`] of [`Format::Keyed`](super::Format::Keyed).
#[derive(Debug, Clone, Copy)]
pub struct KeyedFraming;

impl Framing for KeyedFraming {
    #[inline]
    fn next(self, bytes: &[u8]) -> Option<usize> {
        let len = HEADER_LEN.checked_add(key_len(bytes)?)?.checked_add(value_len(bytes)?)?;
        (bytes.len() >= len).then_some(len)
    }
}

/// The key of `record`; the record must be whole.
#[inline]
pub(crate) fn key_of(record: &[u8]) -> &[u8] {
    let len = key_len(record).expect("a framed record has its lengths");
    &record[HEADER_LEN..HEADER_LEN + len]
}

#[inline]
fn key_len(bytes: &[u8]) -> Option<usize> {
    bytes.first_chunk().map(|len| u32::from_le_bytes(*len) as usize)
}

#[inline]
fn value_len(bytes: &[u8]) -> Option<usize> {
    bytes.get(4..)?.first_chunk().map(|len| u32::from_le_bytes(*len) as usize)
}
