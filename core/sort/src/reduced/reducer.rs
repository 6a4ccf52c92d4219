//! Reduce: the sorted records of spills become rows, each key once.
//!
//! ```text
//!   records in order ──► neighbours of one key, combined ──► rows
//! ```

use super::encoding::Encoding;
use crate::budget::Reservation;
use crate::rows::{Combine, Combined, RowsError, Type, set};
use crate::{Budget, Result};

/// Memory that a reducer holds at least, in bytes: enough for rows of 13 KiB.
pub const REDUCER_BYTES: u64 = 64 << 10;
/// Copies of the longest record that it holds, at most: the row under way, the one that is complete, a key without
/// its escapes, and the caller's record of the complete row. One more while a copy grows.
const COPIES: u64 = 5;

/// Takes records in order and hands out rows.
pub struct Reducer {
    combine: Combine,
    encoding: Encoding,
    /// The row under way, if any.
    any: bool,
    key: Vec<u8>,
    combined: Combined,
    /// The row that is complete.
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
    pub fn new(combine: Combine, of: Type, encoding: Encoding, budget: &Budget) -> Result<Self> {
        let (combined_as, of) = encoding.combined_as(combine, of);
        let combined = || Combined::new(combined_as, of);
        Ok(Reducer {
            combine,
            encoding,
            any: false,
            key: Vec::new(),
            combined: combined(),
            done_key: Vec::new(),
            done: combined(),
            unescaped: Vec::new(),
            memory: budget.reserve(REDUCER_BYTES, "reducing")?,
        })
    }

    /// Takes the next record. When it is of another key, the answer is true: the row of the last one is
    /// complete, until the next call.
    ///
    /// # Errors
    /// Too little memory for a long record; a record that no map wrote.
    pub fn push(&mut self, record: &[u8]) -> Result<bool> {
        self.memory.grow_to(COPIES * record.len() as u64)?;
        let mut unescaped = std::mem::take(&mut self.unescaped);
        let split = self.encoding.split(record, &mut unescaped);
        let taken = match split {
            Some((key, value)) => Ok(self.take(key, value)),
            None => Err(RowsError::NoRecord.into()),
        };
        self.unescaped = unescaped;
        taken
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> bool {
        if self.any && self.combine != Combine::None && self.key == key {
            self.combined.fold(value);
            return false;
        }
        let complete = self.end();
        self.any = true;
        set(&mut self.key, key);
        self.combined.begin(value);
        complete
    }

    /// After the last record: whether there is one more row.
    pub fn end(&mut self) -> bool {
        if !std::mem::take(&mut self.any) {
            return false;
        }
        std::mem::swap(&mut self.key, &mut self.done_key);
        std::mem::swap(&mut self.combined, &mut self.done);
        true
    }

    /// Makes the values of the complete row one.
    ///
    /// # Errors
    /// A sum that leaves 64 bits.
    pub fn reduce(&mut self) -> Result<()> {
        self.done.finish().map_err(|_| RowsError::overflow(&self.done_key))?;
        Ok(())
    }

    /// The complete row, reduced.
    pub fn row(&self) -> (&[u8], &[u8]) {
        (&self.done_key, &self.done.value()[self.encoding.place_bytes()..])
    }
}
