//! Sequences and letters of FASTA, as makeblastdb counts them.
//!
//! It leaves out blanks and all bytes that are no letter of the molecule, and what follows a `;` on a line. Lines that
//! begin with `!`, `#` or `;` are comments. (Found by formatting a sequence for each byte, with BLAST+ 2.12.)

use memchr::memchr;

use super::program::Molecule;

/// The letters of nucleotides, with those that stand for several; `-` is kept as one that stands for all.
const NUCLEOTIDES: &[u8] = b"ACGTUNRYKMSWBDHV-";
/// The letters of proteins.
const RESIDUES: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ*-";

/// Counts of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DatabaseCounts {
    /// Sequences.
    pub sequences: u64,
    /// Letters of all sequences.
    pub letters: u64,
    /// Bytes of all inputs, decompressed.
    pub bytes: u64,
    /// Sequences without letters, which makeblastdb leaves out.
    pub empty: u64,
}

impl DatabaseCounts {
    /// The sequences that makeblastdb takes.
    #[must_use]
    pub fn with_letters(&self) -> u64 {
        self.sequences - self.empty
    }
}

/// Counts in bytes that come in pieces.
#[derive(Debug)]
pub struct DatabaseCounter {
    counts: DatabaseCounts,
    /// The letters before the last header.
    before: Option<u64>,
    /// 1 for each byte that is a letter.
    letters: [u8; 256],
    place: LinePosition,
}

/// Where in a line the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    /// At its start.
    Start,
    /// After blanks.
    Blanks,
    /// In a sequence.
    Sequence,
    /// In a header or a comment.
    Ignored,
}

impl DatabaseCounter {
    /// Counts letters of this molecule.
    #[must_use]
    pub fn new(molecule: Molecule) -> Self {
        let known = match molecule {
            Molecule::Nucleotide => NUCLEOTIDES,
            Molecule::Protein => RESIDUES,
        };
        let mut letters = [0; 256];
        for byte in known {
            letters[usize::from(*byte)] = 1;
            letters[usize::from(byte.to_ascii_lowercase())] = 1;
        }
        DatabaseCounter {
            counts: DatabaseCounts::default(),
            before: None,
            letters,
            place: LinePosition::Start,
        }
    }

    /// Takes the next bytes.
    pub fn take(&mut self, mut bytes: &[u8]) {
        self.counts.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let newline = memchr(b'\n', bytes);
            self.part_of_line(&bytes[..newline.unwrap_or(bytes.len())]);
            let Some(at) = newline else { return };
            self.place = LinePosition::Start;
            bytes = &bytes[at + 1..];
        }
    }

    fn part_of_line(&mut self, mut part: &[u8]) {
        if self.place == LinePosition::Start && !part.is_empty() {
            self.place = LinePosition::Blanks;
            if part[0] == b'>' {
                self.counts.empty += u64::from(self.last_is_empty());
                self.before = Some(self.counts.letters);
                self.counts.sequences += 1;
                self.place = LinePosition::Ignored;
            }
        }
        if self.place == LinePosition::Blanks {
            part = part.trim_ascii_start();
            match part.first() {
                None => {}
                Some(b'!' | b'#' | b';') => self.place = LinePosition::Ignored,
                Some(_) => self.place = LinePosition::Sequence,
            }
        }
        if self.place != LinePosition::Sequence {
            return;
        }
        if let Some(comment) = memchr(b';', part) {
            self.place = LinePosition::Ignored;
            part = &part[..comment];
        }
        let letters: u64 =
            part.iter().map(|byte| u64::from(self.letters[usize::from(*byte)])).sum();
        self.counts.letters += letters;
    }

    /// Whether no letters came after the last header.
    fn last_is_empty(&self) -> bool {
        self.before == Some(self.counts.letters)
    }

    /// The counts so far. The next input begins a new line.
    pub fn end_input(&mut self) -> DatabaseCounts {
        self.place = LinePosition::Start;
        let last = u64::from(self.last_is_empty());
        DatabaseCounts { empty: self.counts.empty + last, ..self.counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(molecule: Molecule, text: &[u8], piece: usize) -> (u64, u64) {
        let mut counter = DatabaseCounter::new(molecule);
        text.chunks(piece).for_each(|piece| counter.take(piece));
        let found = counter.end_input();
        assert_eq!(found.bytes, text.len() as u64);
        (found.sequences, found.letters)
    }

    #[test]
    fn any_pieces_count_the_same() {
        let text = b">a >x\nAC GT\r\n\n AC\n>b\n#AC\n  ;AC\n!A\n>c\nNN;AC\nX9-";
        for piece in 1..=text.len() {
            assert_eq!(counts(Molecule::Nucleotide, text, piece), (3, 9), "{piece}");
            assert_eq!(counts(Molecule::Protein, text, piece), (3, 10), "{piece}");
        }
    }

    /// makeblastdb was given one sequence for each byte; these are the lengths that it reported.
    #[test]
    fn bytes_that_are_no_letters_are_left_out() {
        let kept = |molecule, of: &[u8]| {
            for byte in (1..=255).filter(|byte| !b"\n\r;".contains(byte)) {
                let expected = if of.contains(&byte) { 9 } else { 8 };
                let text = [b">c\nACGT".as_slice(), &[byte], b"ACGT\n"].concat();
                assert_eq!(counts(molecule, &text, 99), (1, expected), "byte {byte}");
            }
        };
        kept(Molecule::Nucleotide, b"-ABCDGHKMNRSTUVWYabcdghkmnrstuvwy");
        kept(Molecule::Protein, b"*-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    }

    #[test]
    fn the_next_input_begins_a_line() {
        let mut counter = DatabaseCounter::new(Molecule::Nucleotide);
        counter.take(b">a\nAC");
        counter.end_input();
        counter.take(b">b\nGT");
        let DatabaseCounts { sequences, letters, bytes, empty } = counter.end_input();
        assert_eq!((sequences, letters, bytes, empty), (2, 4, 10, 0));
    }

    #[test]
    fn sequences_without_letters_are_counted() {
        for (inputs, expected) in [
            (&[""][..], 0),
            (&["AC\n>a\nAC\n"], 0),
            (&[">a\n>b\nAC\n>c\nAC\n"], 1),
            (&[">a\nAC\n>b\n\n>c\nAC\n"], 1),
            (&[">a\nAC\n>b\nAC\n>c"], 1),
            (&[">a\n>b\n;AC\n>c\n12\n"], 3),
            (&[">a", ">b\nAC\n"], 1),
            (&[">a\n", "", ">b"], 2),
            // The letters of the second input are those of the sequence that the first one began.
            (&[">a\n", "AC\n>b\nAC"], 0),
        ] {
            for piece in [1, 3, 99] {
                let mut counter = DatabaseCounter::new(Molecule::Nucleotide);
                let mut empty = 0;
                for input in inputs {
                    input.as_bytes().chunks(piece).for_each(|piece| counter.take(piece));
                    empty = counter.end_input().empty;
                }
                assert_eq!(empty, expected, "{inputs:?} in pieces of {piece}");
            }
        }
    }
}
