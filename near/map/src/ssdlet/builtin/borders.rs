//! The record around a place, without a walk from record to record.
//!
//! A search finds a place in a chunk of many records. [`Format::cut`] then finds the last record border
//! before it: for lines a search backwards, for csv a count of quotes at the speed of memory.

use std::ops::Range;

use merganser_sort::record::Format;

/// Finds records in a chunk, from front to back.
pub(super) struct RecordBorders {
    format: Format,
    cuts: Vec<usize>,
}

impl RecordBorders {
    pub(super) fn new(format: Format) -> Self {
        RecordBorders { format, cuts: Vec::new() }
    }

    /// The record of `bytes` that holds the byte `place`; a record begins at `from`, which is not behind it.
    pub(super) fn around(&mut self, bytes: &[u8], from: usize, place: usize) -> Range<usize> {
        self.cuts.clear();
        // With pieces this large, the last border is the only cut.
        self.format.cut(&bytes[from..place], usize::MAX, &mut self.cuts);
        let start = from + self.cuts.last().copied().unwrap_or(0);
        start..self.end(bytes, start)
    }

    /// Where the record ends that begins at `start`. Chunks hold whole records, so it does.
    pub(super) fn end(&self, bytes: &[u8], start: usize) -> usize {
        self.format.record_len(&bytes[start..]).map_or(bytes.len(), |len| start + len)
    }

    /// A record without its delimiter. A carriage return before it is a part of the record.
    pub(super) fn undelimited<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        match self.format.terminator() {
            Some(delimiter) => record.strip_suffix(&[delimiter]).unwrap_or(record),
            None => record,
        }
    }

    /// The text of a record: without its delimiter, and without a carriage return before a newline.
    pub(super) fn text<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        let text = self.undelimited(record);
        if self.format.terminator() == Some(b'\n') {
            text.strip_suffix(b"\r").unwrap_or(text)
        } else {
            text
        }
    }
}

/// Whole records on their way out; those that lie next to each other go as one.
pub(super) struct Spans<'a> {
    bytes: &'a [u8],
    pending: Range<usize>,
}

impl<'a> Spans<'a> {
    pub(super) fn of_bytes(bytes: &'a [u8]) -> Self {
        Spans { bytes, pending: 0..0 }
    }

    pub(super) fn push(&mut self, records: Range<usize>, out: &mut crate::ssdlet::Emitter<'_>) {
        if records.start == self.pending.end {
            self.pending.end = records.end;
            return;
        }
        self.finish(out);
        self.pending = records;
    }

    pub(super) fn finish(&mut self, out: &mut crate::ssdlet::Emitter<'_>) {
        if !self.pending.is_empty() {
            out.records(&self.bytes[self.pending.clone()]);
        }
        self.pending.start = self.pending.end;
    }
}
