//! Where one record ends and the next begins.
//!
//! A [`Format`] frames records; it knows nothing of keys. Six formats exist, each in a file of its
//! own: delimited lines, CSV (RFC 4180 quoting), fixed-length binary, length-prefixed key and value,
//! and the sequences of FASTA and FASTQ. A reader of inputs asks [`Format::cut`] for the boundaries in
//! a buffer and carries the bytes after the last one into the next buffer. [`Format::fault`] says
//! whether these can't be the beginning of a record. When the input ends, [`Format::tail`] says what
//! they mean. Every record ends with its terminator, including the last one of an input.
//!
//! Most records show their own end. A sequence ends where the next one begins, or with the bytes: so
//! there are two questions. [`Format::record_len`] is for bytes that may be cut anywhere, and
//! [`Format::first_len`] for bytes that are whole records.
//!
//! [`SequenceBorders`] finds the borders of sequences in a stream without holding a record.
//!
//! [`ifile`] frames the records of Hadoop's map outputs, which are merged but never an input.
//!
//! ```
//! use merganser_sort::record::Format;
//!
//! let rows = b"1,\"two\nlines\"\n2,x\n3,cut sh";
//! let mut cuts = Vec::new();
//! Format::Csv { separator: b',', header: false }.cut(rows, 8, &mut cuts);
//! assert_eq!(cuts, [14, 18]);
//! ```

mod csv;
mod fasta;
mod fastq;
mod fixed;
mod framing;
pub mod ifile;
mod keyed;
pub(crate) mod letters;
mod lines;
mod outside;
mod sequences;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::run::magic::ContentKind;

pub use csv::CsvFraming;
pub use fasta::FastaFraming;
pub use fastq::FastqFraming;
pub use fixed::FixedFraming;
pub use framing::Framing;
pub use keyed::KeyedFraming;
pub(crate) use keyed::key_of;
pub use lines::LineFraming;
pub(crate) use outside::Outside;
pub(crate) use sequences::probable_start;
pub use sequences::{SequenceBorders, SequenceEnd, SequenceFault, SequenceKind};

/// How a stream of bytes is divided into records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Records end with `delimiter` (newline, or NUL with `-z`), which belongs to the record.
    Lines {
        /// The byte that ends a record.
        delimiter: u8,
    },
    /// RFC 4180 rows: fields split by `separator`, quoted with `"`, newlines allowed in quotes.
    /// A row ends with its newline; a carriage return before it is part of the row, not of a
    /// field.
    Csv {
        /// The byte between fields, neither `"` nor newline.
        separator: u8,
        /// Whether the first row of every input names the columns.
        header: bool,
    },
    /// Every record is `bytes` long.
    Fixed {
        /// Length of a record, at least 1.
        bytes: usize,
    },
    /// `u32` little-endian key length, `u32` little-endian value length, key, value.
    Keyed,
    /// A line that begins with `>`, and all lines up to the next such line: a header and the lines of
    /// a sequence.
    Fasta,
    /// A line that begins with `@`, lines of a sequence, a line that begins with `+`, and as many
    /// letters of quality as the sequence has.
    Fastq,
}

/// How to treat the bytes after the last complete record of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// They are a record as they are.
    Whole,
    /// They are a record once this terminator is added.
    Complete(u8),
    /// They are a damaged record; the text says in which way.
    Damaged(&'static str),
}

/// Runs `$body` with `$framing` bound to the framing type of `$format`, compiled once for each.
macro_rules! with_framing {
    ($format:expr, $framing:ident => $body:expr) => {
        match $format {
            $crate::record::Format::Lines { delimiter } => {
                let $framing = $crate::record::LineFraming { delimiter };
                $body
            }
            $crate::record::Format::Csv { .. } => {
                let $framing = $crate::record::CsvFraming;
                $body
            }
            $crate::record::Format::Fixed { bytes } => {
                let $framing = $crate::record::FixedFraming { bytes };
                $body
            }
            $crate::record::Format::Keyed => {
                let $framing = $crate::record::KeyedFraming;
                $body
            }
            $crate::record::Format::Fasta => {
                let $framing = $crate::record::FastaFraming;
                $body
            }
            $crate::record::Format::Fastq => {
                let $framing = $crate::record::FastqFraming;
                $body
            }
        }
    };
}
pub(crate) use with_framing;

impl Format {
    /// What an input in this format should hold.
    #[must_use]
    pub fn content(self) -> ContentKind {
        match self {
            Format::Lines { .. } | Format::Csv { .. } | Format::Fasta | Format::Fastq => {
                ContentKind::Text
            }
            Format::Fixed { .. } | Format::Keyed => ContentKind::Binary,
        }
    }

    /// Length of the record at `bytes[0]`; see [`Framing::next`].
    #[must_use]
    pub fn record_len(&self, bytes: &[u8]) -> Option<usize> {
        with_framing!(*self, framing => framing.next(bytes))
    }

    /// Appends to `cuts` record boundaries of `bytes`, which begins at one: about every `piece`
    /// bytes, and last the end of the last complete record. Nothing is appended when no record
    /// ends within `bytes`.
    pub fn cut(&self, bytes: &[u8], piece: usize, cuts: &mut Vec<usize>) {
        with_framing!(*self, framing => framing.cut(bytes, piece, cuts));
    }

    /// Length of the first record of `bytes`, which are whole records; see [`Framing::first`].
    #[must_use]
    pub fn first_len(&self, bytes: &[u8]) -> Option<usize> {
        with_framing!(*self, framing => framing.first(bytes))
    }

    /// As [`Format::cut`], for `bytes` that end with a record: that is the last boundary, unless they
    /// are no whole records.
    pub fn cut_whole(&self, bytes: &[u8], piece: usize, cuts: &mut Vec<usize>) {
        with_framing!(*self, framing => {
            framing.cut(bytes, piece, cuts);
            let last = cuts.last().copied().unwrap_or(0);
            if framing.first(&bytes[last..]) == Some(bytes.len() - last) {
                cuts.push(bytes.len());
            }
        });
    }

    /// Why `bytes`, which follow a record or are the first of an input, are not the beginning of
    /// another record. Only sequences have such bytes: their records have marks at their beginnings.
    #[must_use]
    pub fn fault(&self, bytes: &[u8]) -> Option<SequenceFault> {
        sequences::fault(self.sequences()?, bytes)
    }

    /// Which sequences these records are; `None` for all other records.
    #[must_use]
    pub fn sequences(&self) -> Option<SequenceKind> {
        match self {
            Format::Fasta => Some(SequenceKind::Fasta),
            Format::Fastq => Some(SequenceKind::Fastq),
            _ => None,
        }
    }

    /// How many of `bytes`, which are the first of an input, are blank lines before the first record. Only sequences have
    /// them: for others, they are records.
    #[must_use]
    pub fn leading_blanks(&self, bytes: &[u8]) -> usize {
        if self.sequences().is_some() { sequences::leading_blanks(bytes) } else { 0 }
    }

    /// The meaning of the bytes after the last complete record of an input; there is at least one.
    #[must_use]
    pub fn tail(&self, bytes: &[u8]) -> Tail {
        match *self {
            Format::Lines { delimiter } => Tail::Complete(delimiter),
            Format::Csv { .. } if csv::ends_quoted(bytes) => {
                Tail::Damaged("its last row has a quote that is never closed")
            }
            Format::Csv { .. } => Tail::Complete(b'\n'),
            Format::Fixed { .. } | Format::Keyed => Tail::Damaged("its last record is cut short"),
            Format::Fasta => sequences::end(SequenceKind::Fasta, bytes).into(),
            Format::Fastq => sequences::end(SequenceKind::Fastq, bytes).into(),
        }
    }
}

impl From<SequenceEnd> for Tail {
    fn from(end: SequenceEnd) -> Self {
        match end {
            SequenceEnd::Whole => Tail::Whole,
            SequenceEnd::NoNewline => Tail::Complete(b'\n'),
            SequenceEnd::Cut(how) => Tail::Damaged(how),
        }
    }
}
