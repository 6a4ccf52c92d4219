//! FASTQ: a header line with `@`, a sequence, a line with `+`, and as many letters of quality.
//!
//! Whether a line begins a record depends on the letters before it, so records are cut one after the
//! other.

use super::answers::{FormatError, KeySyntax, ParseBytes, RecordFormat, Tail};
use super::framing::Framing;
use super::letters::title_of;
use super::sequences::{self, SequenceKind, fastq_len, probable_start};

/// [`Framing`] of [`Format::Fastq`](super::Format::Fastq).
#[derive(Debug, Clone, Copy)]
pub struct FastqFraming;

impl Framing for FastqFraming {
    #[inline]
    fn next(self, bytes: &[u8]) -> Option<usize> {
        fastq_len(bytes, false)
    }

    #[inline]
    fn first(self, bytes: &[u8]) -> Option<usize> {
        fastq_len(bytes, true)
    }
}

impl RecordFormat for FastqFraming {
    const NAME: &'static str = "fastq";
    const IS_SELF_FRAMING: bool = false;

    fn parse(parameter: Option<&str>, _: ParseBytes<'_>) -> Result<Option<Self>, FormatError> {
        Ok(parameter.is_none().then_some(FastqFraming))
    }

    fn key_syntax(self) -> KeySyntax {
        KeySyntax::Sequences(SequenceKind::Fastq)
    }

    fn probable_start(self, bytes: &[u8]) -> usize {
        probable_start(SequenceKind::Fastq, bytes).unwrap_or(bytes.len())
    }

    fn shown(self, record: &[u8]) -> &[u8] {
        title_of(record)
    }

    fn tail(self, bytes: &[u8]) -> Tail {
        sequences::end(SequenceKind::Fastq, bytes).into()
    }
}
