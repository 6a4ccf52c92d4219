//! Key and value, each with its length in front: what Hadoop's spills and similar files hold.
//!
//! ```text
//! ┌─────────────┬───────────────┬──────────┬────────────┐
//! │ key length  │ value length  │ key      │ value      │
//! │ u32 LE      │ u32 LE        │ k bytes  │ v bytes    │
//! └─────────────┴───────────────┴──────────┴────────────┘
//! ```

use super::answers::{FormatError, KeySyntax, ParseBytes, RecordFormat, Tail};
use super::framing::Framing;
use crate::run::magic::ContentKind;

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

impl RecordFormat for KeyedFraming {
    const NAME: &'static str = "keyed";
    const ABOUT: Option<&'static str> = Some("length-prefixed key and value");
    const CONTENT: ContentKind = ContentKind::Binary;
    const HAS_PROBABLE_STARTS: bool = false;

    fn parse(parameter: Option<&str>, _: ParseBytes<'_>) -> Result<Option<Self>, FormatError> {
        Ok(parameter.is_none().then_some(KeyedFraming))
    }

    fn key_syntax(self) -> KeySyntax {
        KeySyntax::Prefixed
    }

    /// Lengths look like any other bytes.
    fn probable_start(self, bytes: &[u8]) -> usize {
        bytes.len()
    }

    fn tail(self, _: &[u8]) -> Tail {
        Tail::Damaged("its last record is cut short")
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
