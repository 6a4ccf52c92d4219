//! CSV rows: a newline ends a row unless it is in quotes.
//!
//! [`CsvQuotes`] is the dialect; [`Quoting`] finds what is in quotes. A row begins outside quotes, whatever was
//! before it. So cutting a large buffer looks at quotes alone between the wanted places, and for row ends only
//! there.
//!
//! A byte order mark at the beginning of an input belongs to no row, so that it is no part of the first field.
//! With the header row, it is the input's *preamble*.
//!
//! ```text
//!   quoting   what is in quotes              outside   separators and newlines that are not
//!   field     the fields of a row, their values        header    the names of columns
//!   check     what a strict reader refuses
//! ```

mod check;
mod field;
mod header;
mod outside;
mod places;
mod quoting;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::answers::{FormatError, KeySyntax, ParseBytes, RecordFormat, Tail, after};
use super::framing::Framing;
use outside::{Outside, quoting_near};

pub(crate) use check::CsvCheck;
pub use check::StrayQuote;
pub use field::{CsvField, CsvFields};
pub use header::{ColumnError, CsvHeader, HeaderDifference};
pub use quoting::{QuotedBlock, Quoting};

/// What quotes mean in csv rows.
///
/// In all of them, a quote that is the first byte of a field opens a quoted field, whose text may have separators
/// and line ends. In it, two quotes stand for one, and a single quote closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CsvQuotes {
    /// Any other quote is a letter of its field, and so is what follows the closing quote, as in Python's module
    /// `csv`.
    #[default]
    Lazy,
    /// A quote in an unquoted field is refused, and so is text behind a closing quote. Readers of inputs look for
    /// both ([`InputRecords`](super::InputRecords)). Framing is as with [`CsvQuotes::Lazy`].
    Strict,
    /// Any quote opens or closes. Programs before this dialect wrote such views, and they are still read.
    Toggled,
}

/// The byte order mark of UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// [`Framing`] of [`Format::Csv`](super::Format::Csv).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvFraming {
    /// The byte between fields.
    pub separator: u8,
    /// What quotes mean.
    pub quotes: CsvQuotes,
}

/// A cut looks for a row end at steps of this many bytes, so that the next look begins nearby.
const STRIDE: usize = 4096;

impl Framing for CsvFraming {
    #[inline(always)]
    fn next(self, bytes: &[u8]) -> Option<usize> {
        self.row_ends(bytes).next()
    }

    fn cut(self, bytes: &[u8], piece: usize, cuts: &mut Vec<usize>) {
        let (mut row, mut cut) = (0, 0);
        'pieces: while bytes.len() - cut > piece {
            let wanted = cut + piece;
            while row <= wanted {
                let ahead = STRIDE.min(wanted - row);
                let Some(len) = self.row_end_near(&bytes[row..], ahead) else { break 'pieces };
                row += len;
            }
            cuts.push(row);
            cut = row;
        }
        while bytes.len() - row > STRIDE {
            let Some(len) = self.row_end_near(&bytes[row..], STRIDE) else { break };
            row += len;
        }
        if let Some(len) = self.row_ends(&bytes[row..]).last() {
            row += len;
        }
        if row > cut {
            cuts.push(row);
        }
    }
}

impl RecordFormat for CsvFraming {
    const NAME: &'static str = "csv";

    fn parse(parameter: Option<&str>, _: ParseBytes<'_>) -> Result<Option<Self>, FormatError> {
        Ok(parameter.is_none().then_some(CsvFraming { separator: b',', quotes: CsvQuotes::Lazy }))
    }

    fn key_syntax(self) -> KeySyntax {
        KeySyntax::Columns
    }

    fn terminator(self) -> Option<u8> {
        Some(b'\n')
    }

    /// Inside quotes it is no end of a row: then a guess is wrong.
    fn probable_start(self, bytes: &[u8]) -> usize {
        after(bytes, b'\n')
    }

    fn shown(self, record: &[u8]) -> &[u8] {
        &record[..record.len() - 1]
    }

    fn tail(self, _: &[u8]) -> Tail {
        Tail::Complete(b"\n")
    }
}

impl CsvFraming {
    fn quoting(self) -> Quoting {
        Quoting::at_row(self.separator, self.quotes == CsvQuotes::Toggled)
    }

    /// Lengths of `bytes`, which begin at a row, up to and including each newline outside quotes.
    #[inline]
    fn row_ends(self, bytes: &[u8]) -> impl Iterator<Item = usize> {
        let ends = Outside::new(b'\n', bytes, 0, self.quoting());
        ends.map(|at| at + 1)
    }

    /// As the first of [`CsvFraming::row_ends`] that is not far before `wanted`.
    fn row_end_near(self, bytes: &[u8], wanted: usize) -> Option<usize> {
        let (quoting, start) = quoting_near(bytes, wanted, self.quoting());
        let mut ends = Outside::new(b'\n', bytes, start, quoting);
        ends.next().map(|at| at + 1)
    }

    /// Whether `row`, which has no end, ends in quotes.
    pub(super) fn ends_quoted(self, row: &[u8]) -> bool {
        let mut ends = Outside::new(b'\n', row, 0, self.quoting());
        ends.by_ref().for_each(drop);
        ends.is_inside()
    }

    /// Whether `row`, the only one of an input, has a carriage return outside quotes that is not its last byte:
    /// then rows end with that alone.
    pub(super) fn has_inner_return(self, row: &[u8]) -> bool {
        let inner = row.strip_suffix(b"\r").unwrap_or(row);
        Outside::new(b'\r', inner, 0, self.quoting()).next().is_some()
    }
}
