//! Where records begin in a stream that comes in pieces: McSD's integrity check (Figures 3.7 and 4.4), in
//! which the end of a partition is moved to the next border.
//!
//! ```text
//!   … record │ record │ rec|ord │ record …       | the wanted end, from
//!                               ▲                  the border that is used instead
//! ```
//!
//! The stream is looked at from its beginning, so a quality line of FASTQ that begins with `@` is not taken
//! for a header.

use memchr::{memchr, memchr_iter};
use merganser_results::pipeline::PieceFormat;
use merganser_sort::record::{SequenceBorders, SequenceEnd, SequenceKind};

/// A record that is not in its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadRecord {
    /// Where it begins in its input.
    pub offset: u64,
    /// The fault.
    pub detail: &'static str,
}

/// Finds borders. It is given all bytes of an input, in order.
#[derive(Debug)]
pub struct BorderFinder {
    state: BorderState,
    /// Place in the input of the next byte.
    at: u64,
    /// Records that began since [`BorderFinder::take_records`].
    records: u64,
}

#[derive(Debug)]
enum BorderState {
    Lines { delimiter: u8, inside: bool },
    Fixed { bytes: u64, into: u64 },
    Sequences(SequenceScan),
}

impl BorderFinder {
    /// At the beginning of an input.
    #[must_use]
    pub fn new(format: PieceFormat) -> Self {
        let state = match format {
            PieceFormat::Lines { delimiter } => BorderState::Lines { delimiter, inside: false },
            PieceFormat::Fixed { bytes } => BorderState::Fixed { bytes: bytes.max(1), into: 0 },
            PieceFormat::Fasta => BorderState::Sequences(SequenceScan::new(SequenceKind::Fasta)),
            PieceFormat::Fastq => BorderState::Sequences(SequenceScan::new(SequenceKind::Fastq)),
        };
        BorderFinder { state, at: 0, records: 0 }
    }

    /// The next byte is at `offset` of an input, where a record begins.
    pub fn begin_at(&mut self, offset: u64) {
        self.at = offset;
        if let BorderState::Sequences(sequences) = &mut self.state {
            sequences.base = offset;
        }
    }

    /// Takes `bytes` up to the first place at `from` or later where a record begins, and returns that place;
    /// the bytes from there on are given
    /// again, all of them and no others. Takes all of them and returns `None` if there is no such place.
    /// Where only a byte that is not there yet can tell, the end is no such place.
    ///
    /// # Errors
    /// Records that are not in the format.
    pub fn take(&mut self, bytes: &[u8], from: usize) -> Result<Option<usize>, BadRecord> {
        let found = match &mut self.state {
            BorderState::Lines { delimiter, inside } => {
                let end = border_of_lines(bytes, from, *delimiter, *inside);
                let taken = &bytes[..end.unwrap_or(bytes.len())];
                if let Some((last, before)) = taken.split_last() {
                    self.records += u64::from(!*inside);
                    self.records += memchr_iter(*delimiter, before).count() as u64;
                    *inside = last != delimiter;
                }
                end
            }
            BorderState::Fixed { bytes: length, into } => {
                let rest = (*length - (*into + from as u64) % *length) % *length;
                let end = usize::try_from(rest).ok().and_then(|rest| from.checked_add(rest));
                let end = end.filter(|end| *end <= bytes.len());
                let taken = end.unwrap_or(bytes.len()) as u64;
                self.records += (*into + taken).div_ceil(*length) - into.div_ceil(*length);
                *into = (*into + taken) % *length;
                end
            }
            BorderState::Sequences(sequences) => sequences.take(bytes, from, &mut self.records)?,
        };
        self.at += found.unwrap_or(bytes.len()) as u64;
        Ok(found)
    }

    /// The input has ended.
    ///
    /// # Errors
    /// Its last record is cut.
    pub fn end(&mut self) -> Result<(), BadRecord> {
        match &mut self.state {
            BorderState::Lines { inside, .. } => {
                *inside = false;
                Ok(())
            }
            BorderState::Fixed { into: 0, .. } => Ok(()),
            BorderState::Fixed { into, .. } => {
                let detail = "the input ends inside this record; check the length of records";
                Err(BadRecord { offset: self.at - *into, detail })
            }
            BorderState::Sequences(sequences) => sequences.end(),
        }
    }

    /// How many records began since the last call.
    pub fn take_records(&mut self) -> u64 {
        std::mem::take(&mut self.records)
    }
}

fn border_of_lines(bytes: &[u8], from: usize, delimiter: u8, inside: bool) -> Option<usize> {
    match from.checked_sub(1) {
        None if !inside => Some(0),
        before => {
            let before = before.unwrap_or(0);
            let rest = bytes.get(before..)?;
            memchr(delimiter, rest).map(|at| before + at + 1)
        }
    }
}

/// Records of FASTA and FASTQ. A piece is looked at as a whole when its first bytes are given.
#[derive(Debug)]
struct SequenceScan {
    kind: SequenceKind,
    borders: SequenceBorders,
    /// Place in the input where `borders` began to look.
    base: u64,
    /// Where records begin in the piece, counted from there.
    starts: Vec<u64>,
    /// Bytes that were looked at, and bytes that were taken.
    seen: u64,
    taken: u64,
    /// The last record that was seen.
    last: u64,
    /// Whether a record was seen.
    any: bool,
}

impl SequenceScan {
    fn new(kind: SequenceKind) -> Self {
        let borders = SequenceBorders::new(kind);
        let starts = Vec::new();
        SequenceScan { kind, borders, base: 0, starts, seen: 0, taken: 0, last: 0, any: false }
    }

    fn take(
        &mut self,
        bytes: &[u8],
        from: usize,
        records: &mut u64,
    ) -> Result<Option<usize>, BadRecord> {
        if self.taken == self.seen {
            self.starts.clear();
            let fed = self.borders.feed(bytes, &mut self.starts);
            fed.map_err(|fault| BadRecord { offset: self.base + fault.at, detail: fault.detail })?;
            self.seen += bytes.len() as u64;
            self.last = self.starts.last().copied().unwrap_or(self.last);
            if let Some(first) = self.starts.first()
                && !std::mem::replace(&mut self.any, true)
                && *first > 0
            {
                // A partition of blank lines alone would be of no use.
                self.starts.remove(0);
                *records += 1;
            }
        }
        debug_assert_eq!(self.seen - self.taken, bytes.len() as u64, "the rest of the piece");
        let wanted = self.taken + from as u64;
        let next = self.starts.partition_point(|start| *start < wanted);
        let end = self.starts.get(next).copied();
        let before = self.starts.partition_point(|start| *start < self.taken);
        *records += (next - before) as u64;
        let found = end.map(|end| usize::try_from(end - self.taken).expect("in the piece"));
        self.taken = end.unwrap_or(self.seen);
        Ok(found)
    }

    fn end(&mut self) -> Result<(), BadRecord> {
        let ended = std::mem::replace(self, SequenceScan::new(self.kind));
        match ended.borders.finish() {
            SequenceEnd::Whole | SequenceEnd::NoNewline => Ok(()),
            SequenceEnd::Cut(detail) => Err(BadRecord { offset: ended.base + ended.last, detail }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Where records begin, and how many there are, if the bytes come in pieces and each border is asked for
    /// that is at least `step` after the one before.
    fn borders(
        format: PieceFormat,
        bytes: &[u8],
        piece: usize,
        step: usize,
    ) -> Result<(Vec<usize>, u64), BadRecord> {
        let mut borders = BorderFinder::new(format);
        let (mut found, mut start) = (Vec::new(), 0);
        for (at, piece) in bytes.chunks(piece).enumerate().map(|(n, p)| (n * piece, p)) {
            let mut from = 0;
            while from < piece.len() {
                let wanted = (start + step).saturating_sub(at + from);
                match borders.take(&piece[from..], wanted)? {
                    None => break,
                    Some(length) => {
                        from += length;
                        start = at + from;
                        found.push(start);
                    }
                }
            }
        }
        borders.end()?;
        Ok((found, borders.take_records()))
    }

    const LINES: PieceFormat = PieceFormat::Lines { delimiter: b'\n' };

    #[test]
    fn an_end_is_moved_to_the_next_border() {
        let found = |format, bytes: &[u8], step| borders(format, bytes, 100, step).expect("whole");
        assert_eq!(found(LINES, b"a\nbb\nccc\nd", 1), (vec![2, 5, 9], 4));
        assert_eq!(found(LINES, b"a\nbb\nccc\nd", 3), (vec![5, 9], 4));
        assert_eq!(found(PieceFormat::Fixed { bytes: 3 }, b"aaabbbccc", 4), (vec![6], 3));
        assert_eq!(found(PieceFormat::Fasta, b">a>\nAC\n>b\n>c\nG", 1), (vec![7, 10], 3));
        assert_eq!(found(PieceFormat::Fasta, b">a>\nAC\n>b\n>c\nG", 8), (vec![10], 3));
        let reads = b"@a\nAC\n+\n@@\n@b\nG\n+\nI\n";
        assert_eq!(found(PieceFormat::Fastq, reads, 1), (vec![11], 2));
        // Blank lines before the first record are no partition.
        assert_eq!(found(PieceFormat::Fasta, b"\n\r\n>a\nAC\n>b\n>c\nG", 1), (vec![9, 12], 3));
        let reads = [b"\n\n", &reads[..]].concat();
        for piece in [1, 2, 3, 100] {
            let found = borders(PieceFormat::Fastq, &reads, piece, 1).expect("whole");
            assert_eq!(found, (vec![13], 2), "{piece}");
        }
    }

    #[test]
    fn damage_has_a_place() {
        let bad = |format, bytes: &[u8]| borders(format, bytes, 4, 1).expect_err("damaged").offset;
        assert_eq!(bad(PieceFormat::Fixed { bytes: 3 }, b"aaabbbcc"), 6);
        assert_eq!(bad(PieceFormat::Fasta, b"ACGT"), 0);
        assert_eq!(bad(PieceFormat::Fastq, b"@a\nA\n+\nI\n@b\nGG\n+\nI\n"), 9);
        assert_eq!(bad(PieceFormat::Fastq, b"@a\nA\n+\nI\nb\n"), 9);
    }

    proptest! {
        /// Any pieces and any steps give borders that one piece and the naive search know.
        #[test]
        fn pieces_do_not_matter(
            bytes in prop::collection::vec(prop::sample::select(b">@+\nA\r".to_vec()), 0..60),
            piece in 1usize..20, step in 1usize..20, length in 1u64..6, format in 0usize..4
        ) {
            let format =
                [LINES, PieceFormat::Fixed { bytes: length }, PieceFormat::Fasta, PieceFormat::Fastq][format];
            let whole = borders(format, &bytes, 1000, 1);
            let found = borders(format, &bytes, piece, step);
            prop_assert_eq!(whole.is_ok(), found.is_ok());
            if let (Ok((all, records)), Ok((found, counted))) = (whole, found) {
                prop_assert_eq!(records, counted);
                let mut start = 0;
                for border in &found {
                    // The end of the bytes is a border that only some pieces show.
                    let wanted = all.iter().find(|known| **known >= start + step);
                    prop_assert!(wanted == Some(border) || *border == bytes.len());
                    start = *border;
                }
                let naive = |at: usize| match format {
                    PieceFormat::Lines { .. } => bytes[at - 1] == b'\n',
                    PieceFormat::Fixed { bytes } => (at as u64).is_multiple_of(bytes),
                    PieceFormat::Fasta => {
                        let is_first = bytes[..at].iter().all(|byte| b"\r\n".contains(byte));
                        bytes[at - 1] == b'\n' && bytes[at] == b'>' && !is_first
                    }
                    PieceFormat::Fastq => all.contains(&at),
                };
                let naive: Vec<_> = (1..bytes.len()).filter(|at| naive(*at)).collect();
                let inside: Vec<_> = all.into_iter().filter(|at| *at < bytes.len()).collect();
                prop_assert_eq!(inside, naive);
            }
        }
    }
}
