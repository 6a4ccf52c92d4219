//! Records of a split that follow each other, in one piece.

use memchr::{memchr, memchr_iter};

use super::delimiter::{Delimiter, NO_LIMIT};

/// Records that follow each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitBatch<'a> {
    bytes: &'a [u8],
    /// `None` for a single record, without what ends it.
    divided: Option<(&'a Delimiter, u32)>,
    /// The place of the first in the file.
    pub(super) offset: u64,
}

impl<'a> SplitBatch<'a> {
    /// One record, without what ends it, whose first byte is at `offset` of the file.
    pub(super) fn single(bytes: &'a [u8], offset: u64) -> Self {
        SplitBatch { bytes, divided: None, offset }
    }

    /// Whole records, each with what ends it. Those of `record_bytes_max` bytes are too long and are dropped.
    pub(super) fn whole(
        bytes: &'a [u8],
        delimiter: &'a Delimiter,
        record_bytes_max: u32,
        offset: u64,
    ) -> Self {
        SplitBatch { bytes, divided: Some((delimiter, record_bytes_max)), offset }
    }

    /// The records, without what ends them.
    pub(super) fn records(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (mut rest, divided) = (Some(self.bytes), self.divided);
        std::iter::from_fn(move || {
            let Some((delimiter, size_max)) = divided else { return rest.take() };
            loop {
                let bytes = rest.filter(|rest| !rest.is_empty())?;
                let end = delimiter.find(bytes).expect("a batch has whole records");
                rest = Some(&bytes[end.size..]);
                if end.size < size_max as usize {
                    return Some(&bytes[..end.content]);
                }
            }
        })
    }

    /// How many records there are.
    pub(super) fn count(&self) -> u64 {
        match self.lines() {
            Some(_) if self.divided.is_none() => 1,
            Some(lines) if memchr(b'\r', lines).is_none() => {
                memchr_iter(b'\n', lines).count() as u64
            }
            _ => self.records().count() as u64,
        }
    }

    /// All records as they are, if each ends with the byte `ends` and nothing else.
    pub(super) fn ending_with(&self, ends: u8) -> Option<&'a [u8]> {
        match self.divided {
            Some((Delimiter::Line, NO_LIMIT)) => {
                Some(self.bytes).filter(|bytes| ends == b'\n' && memchr(b'\r', bytes).is_none())
            }
            Some((delimiter, NO_LIMIT)) => Some(self.bytes).filter(|_| delimiter.bytes() == [ends]),
            _ => None,
        }
    }

    /// All records as one text, if they are lines: what ends a line is white space between its words and those of
    /// the next one.
    pub(super) fn lines(&self) -> Option<&'a [u8]> {
        match self.divided {
            None | Some((Delimiter::Line, NO_LIMIT)) => Some(self.bytes),
            Some(_) => None,
        }
    }
}
