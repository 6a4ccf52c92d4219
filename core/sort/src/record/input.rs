//! One input as a sequence of records: what comes before them, and what the bytes at its end mean.

use super::csv::{BYTE_ORDER_MARK, CsvCheck, StrayQuote};
use super::{CsvFraming, CsvQuotes, Format, Tail};

/// The state of one input, which a reader tells of each record that it finds.
///
/// The end of an input depends on what was before: a last csv row without a line end gets that of the row before it,
/// and a row that is the only one may be many rows, with line ends that aren't line ends here.
#[derive(Debug, Clone)]
pub struct InputRecords {
    format: Format,
    preamble_due: bool,
    /// Whether a record has ended.
    has_records: bool,
    /// Whether the last row ended with a carriage return and a newline.
    crlf: bool,
    check: Option<CsvCheck>,
}

impl InputRecords {
    /// At the beginning of an input.
    #[must_use]
    pub fn of_input(format: Format) -> Self {
        InputRecords::new(format, true)
    }

    /// Inside an input, or in one without anything before its records.
    #[must_use]
    pub fn within(format: Format) -> Self {
        InputRecords { has_records: true, ..InputRecords::new(format, false) }
    }

    fn new(format: Format, from_start: bool) -> Self {
        let csv = format.csv();
        let strict = csv.filter(|csv| csv.quotes == CsvQuotes::Strict);
        InputRecords {
            format,
            preamble_due: from_start && csv.is_some(),
            has_records: false,
            crlf: false,
            check: strict.map(|csv| CsvCheck::new(csv.separator, from_start)),
        }
    }

    /// Whether [`InputRecords::preamble_len`] is still to be asked.
    #[must_use]
    pub fn is_preamble_due(&self) -> bool {
        self.preamble_due
    }

    /// Length of what comes before the records in `bytes`, the beginning of the input: a byte order mark and the
    /// header row of csv. `None` when it does not end within them.
    ///
    /// # Errors
    /// A header that a strict reader refuses.
    pub fn preamble_len(&mut self, bytes: &[u8]) -> Result<Option<usize>, StrayQuote> {
        if !self.preamble_due {
            return Ok(Some(0));
        }
        let Some(len) = self.format.preamble_len(bytes) else { return Ok(None) };
        self.preamble_due = false;
        let mark = mark_len(bytes);
        let told = self.records(&bytes[mark..len]);
        told.map_err(|quote| StrayQuote { at: quote.at + mark, ..quote })?;
        Ok(Some(len))
    }

    /// Tells of whole records behind those before.
    ///
    /// # Errors
    /// A row that a strict reader refuses.
    #[inline]
    pub fn records(&mut self, records: &[u8]) -> Result<(), StrayQuote> {
        if records.is_empty() {
            return Ok(());
        }
        self.has_records = true;
        self.crlf = records.ends_with(b"\r\n");
        self.check.as_mut().map_or(Ok(()), |check| check.rows(records))
    }

    /// The meaning of the bytes after the last record of the input; there is at least one.
    #[must_use]
    pub fn tail(&self, bytes: &[u8]) -> Tail {
        let Some(csv) = self.format.csv() else { return self.format.tail(bytes) };
        let row = if self.preamble_due { &bytes[mark_len(bytes)..] } else { bytes };
        if let Some(damage) = self.returns_alone(bytes) {
            return Tail::Damaged(damage);
        }
        if csv.ends_quoted(row) {
            return Tail::Damaged("its last row has a quote that is never closed");
        }
        let crlf = self.crlf && !row.ends_with(b"\r");
        Tail::Complete(if crlf { b"\r\n" } else { b"\n" })
    }

    /// The fault of `bytes`, the beginning of the first record, if its rows end with carriage returns alone.
    #[must_use]
    pub fn returns_alone(&self, bytes: &[u8]) -> Option<&'static str> {
        let csv = self.format.csv().filter(|_| !self.has_records)?;
        csv.has_inner_return(&bytes[mark_len(bytes)..]).then_some(
            "its rows end with a carriage return alone, and only a newline ends a row; change them with tr '\\r' '\\n'",
        )
    }
}

impl Format {
    /// The framing of csv rows; `None` for all other records.
    #[must_use]
    pub fn csv(&self) -> Option<CsvFraming> {
        match *self {
            Format::Csv { separator, quotes, .. } => Some(CsvFraming { separator, quotes }),
            _ => None,
        }
    }

    /// Whether the first row of an input names the columns.
    #[must_use]
    pub fn has_header(&self) -> bool {
        matches!(self, Format::Csv { header: true, .. })
    }

    /// Length of what comes before the records of an input: see [`InputRecords::preamble_len`].
    #[must_use]
    pub fn preamble_len(&self, bytes: &[u8]) -> Option<usize> {
        let Format::Csv { header, .. } = *self else { return Some(0) };
        if bytes.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(bytes) {
            return None;
        }
        let mark = mark_len(bytes);
        match header {
            false => Some(mark),
            true => self.record_len(&bytes[mark..]).map(|len| mark + len),
        }
    }
}

fn mark_len(bytes: &[u8]) -> usize {
    if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
}
