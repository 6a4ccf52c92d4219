//! Where one record ends and the next begins.
//!
//! A [`Format`] frames records; it knows nothing of keys. Six formats exist, each in a file of its
//! own: delimited lines, CSV (RFC 4180 quoting), fixed-length binary, length-prefixed key and value,
//! and the sequences of FASTA and FASTQ. A reader of inputs asks [`Format::cut`] for the boundaries in
//! a buffer and carries the bytes after the last one into the next buffer. [`Format::fault`] says
//! whether these can't be the beginning of a record. [`InputRecords`] knows what comes before the records
//! of an input, and when the input ends, what the bytes after the last one mean. Every record ends with
//! its terminator, including the last one of an input.
//!
//! Most records show their own end. A sequence ends where the next one begins, or with the bytes: so
//! there are two questions. [`Format::record_len`] is for bytes that may be cut anywhere, and
//! [`Format::first_len`] for bytes that are whole records.
//!
//! A format also says what it is called, how its keys are written and how its inputs may be split ([`Format::name`],
//! [`Format::key_syntax`], [`Format::split_rule`]); `answers` has the
//! questions, `formats` the table. Work that is compiled for each
//! framing is a [`FramingVisitor`].
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
//! Format::csv_rows(b',', false).cut(rows, 8, &mut cuts);
//! assert_eq!(cuts, [14, 18]);
//! ```

mod answers;
mod csv;
mod fasta;
mod fastq;
mod fixed;
mod framing;
#[doc(hidden)]
pub mod ifile;
mod input;
mod keyed;
pub(crate) mod letters;
mod lines;
mod sequences;
mod stored;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use answers::{FormatError, KeySyntax, ParseBytes, SplitRule, Tail};
pub use csv::{
    ColumnError, CsvField, CsvFields, CsvFraming, CsvHeader, CsvQuotes, HeaderDifference,
    QuotedBlock, Quoting, StrayQuote,
};
pub use fasta::FastaFraming;
pub use fastq::FastqFraming;
pub(crate) use fixed::FIXED_BYTES_MOST;
pub use fixed::FixedFraming;
pub use framing::Framing;
pub use input::InputRecords;
pub use keyed::KeyedFraming;
pub(crate) use keyed::key_of;
pub use lines::LineFraming;
pub use sequences::{SequenceBorders, SequenceEnd, SequenceFault, SequenceKind};

/// How a stream of bytes is divided into records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "stored::StoredFormat", into = "stored::StoredFormat")]
pub enum Format {
    /// Records end with `delimiter` (newline, or NUL with `-z`), which belongs to the record.
    Lines {
        /// The byte that ends a record.
        delimiter: u8,
    },
    /// Rows of fields split by `separator`, which may be quoted with `"` (RFC 4180); newlines are allowed
    /// in quotes. A row ends with its newline; a carriage return before it is part of the row, not of a
    /// field.
    Csv {
        /// The byte between fields, neither `"` nor newline.
        separator: u8,
        /// Whether the first row of every input names the columns.
        header: bool,
        /// What quotes mean.
        quotes: CsvQuotes,
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

/// Runs `$body` with `$framing` bound to the framing type of `$format`, compiled once for each.
macro_rules! with_framing {
    ($format:expr, $framing:ident => $body:expr) => {
        match $format {
            $crate::record::Format::Lines { delimiter } => {
                let $framing = $crate::record::LineFraming { delimiter };
                $body
            }
            $crate::record::Format::Csv { separator, quotes, .. } => {
                let $framing = $crate::record::CsvFraming { separator, quotes };
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

mod formats;

pub use formats::FramingVisitor;

impl Format {
    /// Csv rows whose stray quotes are letters.
    #[must_use]
    pub const fn csv_rows(separator: u8, header: bool) -> Format {
        Format::Csv { separator, header, quotes: CsvQuotes::Lazy }
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
}

impl From<LineFraming> for Format {
    fn from(LineFraming { delimiter }: LineFraming) -> Self {
        Format::Lines { delimiter }
    }
}

impl From<CsvFraming> for Format {
    /// Without a header.
    fn from(CsvFraming { separator, quotes }: CsvFraming) -> Self {
        Format::Csv { separator, header: false, quotes }
    }
}

impl From<FixedFraming> for Format {
    fn from(FixedFraming { bytes }: FixedFraming) -> Self {
        Format::Fixed { bytes }
    }
}

impl From<KeyedFraming> for Format {
    fn from(_: KeyedFraming) -> Self {
        Format::Keyed
    }
}

impl From<FastaFraming> for Format {
    fn from(_: FastaFraming) -> Self {
        Format::Fasta
    }
}

impl From<FastqFraming> for Format {
    fn from(_: FastqFraming) -> Self {
        Format::Fastq
    }
}
