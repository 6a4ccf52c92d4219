//! Fixed-length records: every record has the same number of bytes, whatever they are.

use super::answers::{FormatError, KeySyntax, ParseBytes, RecordFormat, SplitRule, Tail};
use super::framing::Framing;
use crate::run::magic::ContentKind;

/// [`Framing`] of [`Format::Fixed`](super::Format::Fixed).
#[derive(Debug, Clone, Copy)]
pub struct FixedFraming {
    /// Length of a record, at least 1.
    pub bytes: usize,
}

impl Framing for FixedFraming {
    #[inline]
    fn next(self, bytes: &[u8]) -> Option<usize> {
        (bytes.len() >= self.bytes).then_some(self.bytes)
    }

    fn cut(self, bytes: &[u8], piece: usize, cuts: &mut Vec<usize>) {
        let end = bytes.len() / self.bytes * self.bytes;
        let step = (piece / self.bytes).max(1) * self.bytes;
        cuts.extend((step..end).step_by(step));
        if end > 0 {
            cuts.push(end);
        }
    }
}

/// The longest record, so that sums of a few lengths can't overflow.
pub(crate) const FIXED_BYTES_MOST: usize = 1 << 30;

impl RecordFormat for FixedFraming {
    const NAME: &'static str = "fixed";
    const TYPED: &'static str = "fixed:N";
    const ABOUT: Option<&'static str> = Some("N bytes each");
    const CONTENT: ContentKind = ContentKind::Binary;

    fn parse(parameter: Option<&str>, bytes: ParseBytes<'_>) -> Result<Option<Self>, FormatError> {
        let parameter = parameter.ok_or(FormatError::NoLength)?;
        let bytes = bytes(parameter).map_err(FormatError::Parameter)?;
        match usize::try_from(bytes) {
            Ok(0) => Err(FormatError::Parameter("a record has at least 1 byte".to_owned())),
            Ok(bytes) if bytes <= FIXED_BYTES_MOST => Ok(Some(FixedFraming { bytes })),
            _ => Err(FormatError::Parameter("a fixed record has at most 1 GiB".to_owned())),
        }
    }

    fn parameter(self) -> Option<usize> {
        Some(self.bytes)
    }

    fn key_syntax(self) -> KeySyntax {
        KeySyntax::Fields { bytes: self.bytes }
    }

    fn split_rule(self) -> SplitRule {
        SplitRule::Multiples { bytes: self.bytes }
    }

    fn are_whole(self, records: &[u8]) -> bool {
        records.len().is_multiple_of(self.bytes)
    }

    fn probable_start(self, _: &[u8]) -> usize {
        0
    }

    fn tail(self, _: &[u8]) -> Tail {
        Tail::Damaged("its last record is cut short")
    }
}
