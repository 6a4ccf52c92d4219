//! Reduce: the sorted records of spills become rows, each key once.
//!
//! ```text
//!   records in order ──► neighbours of one key, combined ──► rows
//! ```

use merganser_sort::Budget;
use merganser_sort::budget::Reservation;

use super::encoding::Encoding;
use super::rows::overflow;
use crate::ssdlet::{Combine, Combined, PLACE_BYTES, SsdletError, Type, set};

/// Memory that a reducer holds at least, in bytes: enough for rows of 13 KiB.
pub(super) const REDUCER_BYTES: u64 = 64 << 10;
/// Copies of the longest record that it holds, at most: key and value of the row that it handed out; key
/// and value of the one under way, and that value once more with its place; or a key without its
/// escapes, which has no such value. One more while a copy grows.
const COPIES: u64 = 5;

/// Takes records in order and hands out rows.
pub(super) struct Reducer {
    combine: Combine,
    encoding: Encoding,
    /// The row under way, if any.
    any: bool,
    key: Vec<u8>,
    combined: Combined,
    /// With [`Encoding::Placed`], value and place of the first one so far.
    first: Vec<u8>,
    /// The row that was handed out.
    done_key: Vec<u8>,
    done: Combined,
    unescaped: Vec<u8>,
    memory: Reservation,
}

impl Reducer {
    /// For values of the type `of`, as they were handed out, with memory of `budget`.
    ///
    /// # Errors
    /// Too little memory: it holds [`REDUCER_BYTES`] at least.
    pub(super) fn new(
        combine: Combine,
        of: Type,
        encoding: Encoding,
        budget: &Budget,
    ) -> merganser_sort::Result<Self> {
        let combined = || Combined::new(combine, combine.result_type(of));
        Ok(Reducer {
            combine,
            encoding,
            any: false,
            key: Vec::new(),
            combined: combined(),
            first: Vec::new(),
            done_key: Vec::new(),
            done: combined(),
            unescaped: Vec::new(),
            memory: budget.reserve(REDUCER_BYTES, "reducing")?,
        })
    }

    /// Takes the next record. When it is of another key, the answer is true: the row of the last one
    /// is complete, and is in [`Reducer::row`] until the next call.
    ///
    /// # Errors
    /// Too little memory for a long record; a sum that leaves 64 bits.
    pub(super) fn push(&mut self, record: &[u8]) -> Result<bool, SsdletError> {
        self.memory.grow_to(COPIES * record.len() as u64)?;
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
        let placed = self.encoding == Encoding::Placed;
        if self.any && self.combine != Combine::None && self.key == key {
            if !placed {
                self.combined.fold(value);
            } else if value < &self.first[..] {
                set(&mut self.first, value);
            }
            return Ok(false);
        }
        let complete = self.end()?;
        self.any = true;
        set(&mut self.key, key);
        if placed {
            set(&mut self.first, value);
        } else {
            self.combined.begin(value);
        }
        Ok(complete)
    }

    /// After the last record: whether there is one more row.
    ///
    /// # Errors
    /// A sum that leaves 64 bits.
    pub(super) fn end(&mut self) -> Result<bool, SsdletError> {
        if !std::mem::take(&mut self.any) {
            return Ok(false);
        }
        if self.encoding == Encoding::Placed {
            self.combined.begin(&self.first[PLACE_BYTES..]);
        }
        self.combined.finish().map_err(|e| overflow(&self.key, e))?;
        std::mem::swap(&mut self.key, &mut self.done_key);
        std::mem::swap(&mut self.combined, &mut self.done);
        Ok(true)
    }

    /// The row that is complete.
    pub(super) fn row(&self) -> (&[u8], &[u8]) {
        (&self.done_key, self.done.value())
    }
}
