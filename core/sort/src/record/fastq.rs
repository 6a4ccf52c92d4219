//! FASTQ: a header line with `@`, a sequence, a line with `+`, and as many letters of quality.
//!
//! Whether a line begins a record depends on the letters before it, so records are cut one after the
//! other.

use super::framing::Framing;
use super::sequences::fastq_len;

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
