//! The parts of a record of sequences: its header, its id and its letters.
//!
//! They are defined for any bytes, also for those that are no record of sequences.

use memchr::{memchr, memchr2, memchr3};

use super::sequences::SequenceKind;

/// The header of `record`, without its mark and its line end.
#[inline]
pub(crate) fn header_of(record: &[u8]) -> &[u8] {
    title_of(record).get(1..).unwrap_or_default()
}

/// The header line of `record`, with its mark.
pub(super) fn title_of(record: &[u8]) -> &[u8] {
    let line = &record[..memchr(b'\n', record).unwrap_or(record.len())];
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The id of `record`: its header up to the first blank.
#[inline]
pub(crate) fn id_of(record: &[u8]) -> &[u8] {
    let header = header_of(record);
    &header[..memchr2(b' ', b'\t', header).unwrap_or(header.len())]
}

/// Stretches of letters of the sequence of `record`, which follow one another there: without line ends and
/// blanks.
#[inline]
pub(crate) fn letters_of(kind: SequenceKind, record: &[u8]) -> Letters<'_> {
    let begin = memchr(b'\n', record).map_or(record.len(), |at| at + 1);
    Letters { kind, rest: &record[begin..], line_begins: true }
}

/// How many letters the sequence of `record` has.
#[inline]
pub(crate) fn letters_count(kind: SequenceKind, record: &[u8]) -> u64 {
    letters_of(kind, record).map(|stretch| stretch.len() as u64).sum()
}

/// See [`letters_of`].
pub(crate) struct Letters<'a> {
    kind: SequenceKind,
    rest: &'a [u8],
    line_begins: bool,
}

impl<'a> Iterator for Letters<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let ended = self.line_begins
            && self.kind == SequenceKind::Fastq
            && self.rest.first() == Some(&b'+');
        if ended || self.rest.is_empty() {
            return None;
        }
        let len = memchr3(b'\n', b' ', b'\t', self.rest).unwrap_or(self.rest.len());
        let (stretch, rest) = self.rest.split_at(len);
        self.line_begins = rest.first() == Some(&b'\n');
        self.rest = rest.get(1..).unwrap_or_default();
        let line_ends = self.line_begins || self.rest.is_empty();
        Some(stretch.strip_suffix(b"\r").filter(|_| line_ends).unwrap_or(stretch))
    }
}
