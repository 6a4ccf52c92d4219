//! Fixed-length records: every record has the same number of bytes, whatever they are.

use super::framing::Framing;

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
