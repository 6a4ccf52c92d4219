//! A map's result as a view: its records are reduced when they are read, unless they are already.
//!
//! ```text
//!   not spilled: one run of rows, each key once       any reader of views takes it
//!   spilled:     runs of records, keys several times   only this reader takes it, and combines them
//! ```

use std::sync::Arc;

use merganser_storage::{Directory, Storage};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::encoding::Encoding;
use super::reducer::{REDUCER_BYTES, Reducer};
use crate::budget::{MemoryShare, Reservation};
use crate::key::OrderSpec;
use crate::record::Format;
use crate::rows::{CARRY_BYTES, Combine, RecordCutter, RowStream, RowsError, Type};
use crate::view::{MapResult, View, ViewStream};
use crate::{Budget, Error, Result};

/// The order of a result's records.
pub fn order() -> OrderSpec {
    OrderSpec::new(Format::Keyed)
}

/// The meaning of the rows of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultDescription {
    /// The SSDlet that made it.
    pub ssdlet: String,
    /// The type of keys.
    pub key: Type,
    /// The type of combined values.
    pub value: Type,
    /// How values of one key become one.
    pub combine: Combine,
}

impl ResultDescription {
    /// As it is in a manifest.
    pub(super) fn stored(&self, unreduced: bool) -> MapResult {
        MapResult {
            ssdlet: self.ssdlet.clone(),
            key: word(&self.key),
            value: word(&self.value),
            combine: word(&self.combine),
            unreduced,
        }
    }

    fn of_stored(stored: &MapResult) -> Option<Self> {
        Some(ResultDescription {
            ssdlet: stored.ssdlet.clone(),
            key: of_word(&stored.key)?,
            value: of_word(&stored.value)?,
            combine: of_word(&stored.combine)?,
        })
    }
}

/// The word that stands for `value`.
fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("a word");
    value.as_str().expect("a word").to_owned()
}

fn of_word<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
}

/// The memory of rows: a copy of the record that is cut, and those of a reducer. They have a part of all
/// memory for themselves; streams are planned for the rest, whatever they could use.
struct RowsMemory {
    budget: Budget,
    _part: Reservation,
    /// Bytes of all memory, and of what was taken of it before.
    limit_bytes: u64,
    others_bytes: u64,
}

impl RowsMemory {
    const PART: MemoryShare =
        MemoryShare { share: 8, bytes_min: CARRY_BYTES as u64 + REDUCER_BYTES };

    fn of_budget(budget: &Budget) -> Result<Self> {
        let free_bytes = budget.free_bytes();
        let bytes = Self::PART.of_memory(free_bytes);
        Ok(RowsMemory {
            budget: Budget::new(bytes),
            _part: budget.reserve(bytes, "reading rows")?,
            limit_bytes: budget.limit_bytes(),
            others_bytes: budget.limit_bytes() - free_bytes,
        })
    }

    /// An error of the streams, which names the least in which rows have their part, too.
    fn beside(&self, error: Error) -> Error {
        let part = self.others_bytes + self.budget.limit_bytes();
        self.of_whole(error, |least| Self::PART.least_beside(least - part))
    }

    /// An error of the rows, which names the least of all memory.
    fn within(&self, error: Error) -> Error {
        self.of_whole(error, |least| Self::PART.least_with(least))
    }

    fn of_whole(&self, error: Error, whole: impl Fn(u64) -> u64) -> Error {
        match error {
            Error::Memory { owner, least_bytes, .. } => {
                let least_bytes = self.others_bytes.saturating_add(whole(least_bytes));
                Error::Memory { owner, least_bytes, limit_bytes: self.limit_bytes }
            }
            other => other,
        }
    }
}

/// The result of a map, open for reading.
pub struct ResultView {
    view: View,
    description: ResultDescription,
    memory: RowsMemory,
}

impl ResultView {
    /// Opens the view in `folder`. Readers have `threads` threads in addition to their own.
    ///
    /// # Errors
    /// [`RowsError::NotAResult`] for another view; as [`View::open`].
    pub fn open(folder: &Arc<dyn Directory>, budget: &Budget, threads: usize) -> Result<Self> {
        let memory = RowsMemory::of_budget(budget)?;
        let view = View::open_to_reduce(folder, budget, threads);
        let view = view.map_err(|error| memory.beside(error))?;
        let manifest = view.manifest();
        let description = manifest.result.as_ref().and_then(ResultDescription::of_stored);
        let Some(description) = description.filter(|_| manifest.order == order()) else {
            return Err(RowsError::NotAResult { view: folder.name().to_owned() }.into());
        };
        Ok(ResultView { view, description, memory })
    }

    /// The meaning of its rows.
    #[must_use]
    pub fn description(&self) -> &ResultDescription {
        &self.description
    }

    /// Whether each key is there once, so that it reads like any view.
    #[must_use]
    pub fn is_reduced(&self) -> bool {
        !self.view.manifest().is_unreduced()
    }

    /// The number of rows; `None` when only a reader can tell.
    #[must_use]
    pub fn rows_count(&self) -> Option<u64> {
        self.is_reduced().then(|| self.view.records())
    }

    /// The records as they are stored.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The rows from the first key on that is at least `from_key`, reduced.
    ///
    /// # Errors
    /// Too little memory, damage found, the storage's own.
    pub fn rows(&self, from_key: Option<&[u8]>) -> Result<ResultRows<'_>> {
        let combine = self.description.combine;
        let encoding =
            if self.is_reduced() { Encoding::Plain } else { Encoding::of_unreduced(combine) };
        let start = match from_key {
            Some(key) => self.view.offset_of_key(&encoding.first_key(key))?,
            None => 0,
        };
        let (memory, of) = (&self.memory, self.description.value);
        let within = |error| memory.within(error);
        Ok(ResultRows {
            memory,
            records: RecordCutter::new(&memory.budget).map_err(within)?,
            reducer: Reducer::new(combine, of, encoding, &memory.budget).map_err(within)?,
            stream: self.view.stream(start..self.view.size())?,
            used: 0,
            name: self.view.name().to_owned(),
            ended: false,
        })
    }
}

/// A key and its value.
pub type ResultRow<'a> = (&'a [u8], &'a [u8]);

/// The rows of a result in order, each key once ([`Combine::None`]: each value).
pub struct ResultRows<'a> {
    memory: &'a RowsMemory,
    stream: ViewStream<'a>,
    /// The bytes that the stream gave last and that are used.
    used: usize,
    records: RecordCutter,
    reducer: Reducer,
    name: String,
    ended: bool,
}

impl ResultRows<'_> {
    /// The next row: key, value.
    ///
    /// # Errors
    /// Too little memory, damage found, the storage's own, a sum that leaves 64 bits.
    #[expect(clippy::should_implement_trait, reason = "a row is lent")]
    pub fn next(&mut self) -> Result<Option<ResultRow<'_>>> {
        Ok(if self.advance()? { Some(self.reducer.row()) } else { None })
    }
}

impl RowStream for ResultRows<'_> {
    type Error = Error;

    fn advance(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        loop {
            let last = self.stream.last_bytes();
            let mut rest = &last[self.used..];
            let within = |error| self.memory.within(error);
            while let Some(record) = self.records.next(&mut rest).map_err(within)? {
                let complete = self.reducer.push(record).map_err(within)?;
                if complete {
                    self.used = last.len() - rest.len();
                    self.reducer.reduce()?;
                    return Ok(true);
                }
            }
            self.used = 0;
            if self.stream.next_bytes()?.is_some() {
                continue;
            }
            self.ended = true;
            if self.records.is_inside_a_record() {
                return Err(Error::Corrupt {
                    file: self.name.clone(),
                    offset: 0,
                    detail: "its last record is cut short".to_owned(),
                });
            }
            let more = self.reducer.end();
            if more {
                self.reducer.reduce()?;
            }
            return Ok(more);
        }
    }

    fn key(&self) -> &[u8] {
        self.reducer.row().0
    }

    fn value(&self) -> &[u8] {
        self.reducer.row().1
    }
}
