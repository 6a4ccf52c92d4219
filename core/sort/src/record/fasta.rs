//! FASTA: a header line with `>`, and the lines of a sequence behind it.

use memchr::memrchr;

use super::answers::{FormatError, KeySyntax, ParseBytes, RecordFormat, Tail};
use super::framing::Framing;
use super::letters::title_of;
use super::sequences::{self, SequenceKind, next_mark, probable_start};

/// [`Framing`] of [`Format::Fasta`](super::Format::Fasta).
#[derive(Debug, Clone, Copy)]
pub struct FastaFraming;

impl Framing for FastaFraming {
    #[inline]
    fn next(self, bytes: &[u8]) -> Option<usize> {
        if bytes.first() != Some(&b'>') {
            return None;
        }
        next_mark(bytes, 1)
    }

    #[inline]
    fn first(self, bytes: &[u8]) -> Option<usize> {
        if bytes.first() != Some(&b'>') {
            return None;
        }
        Some(next_mark(bytes, 1).unwrap_or(bytes.len()))
    }

    /// Looks for marks round the wanted places only.
    fn cut(self, bytes: &[u8], piece: usize, cuts: &mut Vec<usize>) {
        if bytes.first() != Some(&b'>') {
            return;
        }
        let Some(end) = last_mark(bytes, 1) else { return };
        let mut at = 0;
        while end - at > piece {
            let wanted = at + piece;
            // There is a mark at `end`, which is behind `wanted`, so one is found.
            let found =
                last_mark(&bytes[..=wanted], at + 1).or_else(|| next_mark(bytes, wanted + 1));
            let Some(mark) = found else { break };
            at = mark;
            cuts.push(at);
        }
        if at < end {
            cuts.push(end);
        }
    }
}

impl RecordFormat for FastaFraming {
    const NAME: &'static str = "fasta";
    const IS_SELF_FRAMING: bool = false;

    fn parse(parameter: Option<&str>, _: ParseBytes<'_>) -> Result<Option<Self>, FormatError> {
        Ok(parameter.is_none().then_some(FastaFraming))
    }

    fn key_syntax(self) -> KeySyntax {
        KeySyntax::Sequences(SequenceKind::Fasta)
    }

    fn probable_start(self, bytes: &[u8]) -> usize {
        probable_start(SequenceKind::Fasta, bytes).unwrap_or(bytes.len())
    }

    fn shown(self, record: &[u8]) -> &[u8] {
        title_of(record)
    }

    fn tail(self, bytes: &[u8]) -> Tail {
        sequences::end(SequenceKind::Fasta, bytes).into()
    }
}

/// The last `>` at the beginning of a line, at `from` or behind it; `from` is at least 1.
fn last_mark(bytes: &[u8], from: usize) -> Option<usize> {
    let mut end = bytes.len();
    loop {
        let mark = from + memrchr(b'>', bytes.get(from..end)?)?;
        if bytes[mark - 1] == b'\n' {
            return Some(mark);
        }
        end = mark;
    }
}
