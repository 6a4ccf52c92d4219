//! Reduce: the sorted records of spills become rows, each key once.
//!
//! ```text
//!   bytes of records in order ──► records ──► neighbours of one key, combined ──► rows
//! ```

use merganser_sort::Budget;
use merganser_sort::record::Format;

use super::chunk_buffer::Carry;
use super::encoding::Encoding;
use super::rows::overflow;
use crate::ssdlet::{Combine, Combined, PLACE_BYTES, SsdletError, Type};

/// Takes records in order and hands out rows.
pub(super) struct Reducer {
    combine: Combine,
    encoding: Encoding,
    key: Vec<u8>,
    combined: Combined,
    /// With [`Encoding::Placed`], value and place of the first one so far.
    first: Vec<u8>,
    unescaped: Vec<u8>,
    any: bool,
    /// The key is a row that was handed out.
    handed_out: bool,
}

impl Reducer {
    /// For values of the type `of`, as they were handed out.
    pub(super) fn new(combine: Combine, of: Type, encoding: Encoding) -> Self {
        Reducer {
            combine,
            encoding,
            key: Vec::new(),
            combined: Combined::new(combine, combine.result_type(of)),
            first: Vec::new(),
            unescaped: Vec::new(),
            any: false,
            handed_out: false,
        }
    }

    /// Takes the next record. When it is of another key, the row of the last one is complete and stands in
    /// [`Reducer::row`] until the next call: then the answer is true, and the record was not taken.
    pub(super) fn push(&mut self, record: &[u8]) -> Result<bool, SsdletError> {
        let mut unescaped = std::mem::take(&mut self.unescaped);
        let split = self.encoding.split(record, &mut unescaped);
        let taken = match split {
            Some((key, value)) => self.take(key, value),
            None => {
                Err(SsdletError::Failed("a spilled record is no record of this map".to_owned()))
            }
        };
        self.unescaped = unescaped;
        taken
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        let begins = !self.any || self.handed_out;
        if !begins {
            if self.combine == Combine::None || self.key != key {
                self.finish()?;
                return Ok(true);
            }
            if self.encoding == Encoding::Placed {
                if value < &self.first[..] {
                    self.first.clear();
                    self.first.extend_from_slice(value);
                }
            } else {
                self.combined.fold(value);
            }
            return Ok(false);
        }
        (self.any, self.handed_out) = (true, false);
        self.key.clear();
        self.key.extend_from_slice(key);
        if self.encoding == Encoding::Placed {
            self.first.clear();
            self.first.extend_from_slice(value);
        } else {
            self.combined.begin(value);
        }
        Ok(false)
    }

    fn finish(&mut self) -> Result<(), SsdletError> {
        self.handed_out = true;
        if self.encoding == Encoding::Placed {
            self.combined.begin(&self.first[PLACE_BYTES..]);
        }
        self.combined.finish().map_err(|e| overflow(&self.key, e))?;
        Ok(())
    }

    /// After the last record: whether there is one more row.
    pub(super) fn end(&mut self) -> Result<bool, SsdletError> {
        let more = self.any && !self.handed_out;
        if more {
            self.finish()?;
        }
        Ok(more)
    }

    /// The row.
    pub(super) fn row(&self) -> (&[u8], &[u8]) {
        (&self.key, self.combined.value())
    }
}

/// Finds records in bytes that come in pieces.
pub(super) struct Records {
    /// The beginning of a record.
    carry: Carry,
}

impl Records {
    /// # Errors
    /// Too little memory.
    pub(super) fn new(budget: &Budget) -> merganser_sort::Result<Self> {
        Ok(Records { carry: Carry::new(budget)? })
    }

    /// Hands each whole record of the next `bytes` to `take`.
    ///
    /// # Errors
    /// Those of `take`; too little memory for a record.
    pub(super) fn push(
        &mut self,
        mut bytes: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), SsdletError>,
    ) -> Result<(), SsdletError> {
        while !self.carry.bytes().is_empty() && !bytes.is_empty() {
            // First its lengths, then as much as they say.
            let have = self.carry.bytes().len();
            let wanted = wanted_bytes(self.carry.bytes());
            let n = bytes.len().min(wanted - have);
            self.carry.push(&bytes[..n])?;
            bytes = &bytes[n..];
            if Format::Keyed.record_len(self.carry.bytes()).is_some() {
                take(self.carry.bytes())?;
                self.carry.clear();
            }
        }
        while let Some(len) = Format::Keyed.record_len(bytes) {
            take(&bytes[..len])?;
            bytes = &bytes[len..];
        }
        if !bytes.is_empty() {
            self.carry.push(bytes)?;
        }
        Ok(())
    }
}

/// How long the beginning of a record has to be until more is known of it, or it is whole.
fn wanted_bytes(record: &[u8]) -> usize {
    let number = |at: usize| {
        let bytes = record.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes) as usize)
    };
    match (number(0), number(4)) {
        (Some(key), Some(value)) => 8 + key + value,
        _ => 8,
    }
}
