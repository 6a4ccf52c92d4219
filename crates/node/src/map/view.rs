//! A map's result as a view: its records are reduced when they are read, unless they are already.
//!
//! ```text
//!   not spilled: one run of rows, each key once       any reader of views takes it
//!   spilled:     runs of records, keys several times   only this reader takes it, and combines them
//! ```

use std::sync::Arc;

use merganser_sort::budget::{MemoryShare, Reservation};
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::{Compression, RunBuilder, RunWriter};
use merganser_sort::view::{Manifest, MapResult, Segment, View, ViewStream};
use merganser_sort::{Budget, Error};
use merganser_storage::{Directory, Storage};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::chunk_buffer::CARRY_BYTES;
use super::encoding::Encoding;
use super::records::RecordCutter;
use super::reduce::{REDUCER_BYTES, Reducer};
use super::rows::RowStream;
use crate::ssdlet::{Combine, SsdletDescription, SsdletError, SsdletOutput, Type};

/// Bytes of a block of a result's run.
const BLOCK_BYTES: u32 = 32 << 10;
/// What [`RunBuilder`] holds: four buffers.
const BUILDER_BYTES: u64 = 4 << 20;
/// The least memory in which [`write_reduced`] works, in bytes. Fences take a hundredth of the rows, which are in
/// tables then; what the workers had is free.
pub(super) const WRITER_BYTES: u64 = BUILDER_BYTES + (256 << 10);

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
    /// That of the keyed output of `description`; `None` for an ordered one.
    #[must_use]
    pub fn of(description: &SsdletDescription) -> Option<Self> {
        let SsdletOutput::Keyed { key, value, combine } = description.output else { return None };
        let value = combine.result_type(value);
        Some(ResultDescription { ssdlet: description.name.clone(), key, value, combine })
    }

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

/// The order of a result's records.
pub(super) fn order() -> OrderSpec {
    OrderSpec::new(Format::Keyed)
}

/// Writes rows, each key once, as a view of one run in the empty `folder`; how many there are.
pub(super) fn write_reduced(
    rows: &mut dyn RowStream,
    folder: &Arc<dyn Directory>,
    name: String,
    what: &ResultDescription,
    budget: &Budget,
    mut advance: impl FnMut(u64) -> Result<(), SsdletError>,
) -> Result<u64, SsdletError> {
    let spec = serde_json::to_string(&order()).expect("plain data");
    let (mut count, mut builder, mut record) = (0, None, Vec::new());
    while rows.advance()? {
        if builder.is_none() {
            let memory = budget.reserve(BUILDER_BYTES, "writing the result")?;
            let fences = budget.reserve(0, "writing the result")?;
            let storage = folder.create("000000.run").map_err(Error::from)?;
            let writer = RunWriter::new(storage, BLOCK_BYTES, Compression::Off, None, fences)?;
            let order = order().compile(None).map_err(Error::from)?;
            builder = Some((RunBuilder::new(writer, order)?, memory));
        }
        let (builder, _) = builder.as_mut().expect("made above");
        let (key, value) = (rows.key(), rows.value());
        if Encoding::Plain.record_bytes(key, value).is_none() {
            let detail = "a key and its value are longer than a record can be";
            return Err(SsdletError::Failed(detail.to_owned()));
        }
        record.clear();
        Encoding::Plain.push(key, value, &mut record);
        builder.append(&record)?;
        count += 1;
        advance(record.len() as u64)?;
    }
    let mut segments = Vec::new();
    if let Some((builder, _memory)) = builder {
        segments.push(Segment::of(&builder.finish(&spec, true)?));
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
    let manifest = Manifest::new(name, order(), Vec::new(), now, segments);
    manifest.of_map(what.stored(false)).write(folder)?;
    Ok(count)
}

/// Says in the manifest of `folder`, which no one else has seen yet, that its records are to be combined. `more` is a
/// run that was added to those that it has.
pub(super) fn mark_unreduced(
    folder: &Arc<dyn Directory>,
    what: &ResultDescription,
    more: Option<Segment>,
) -> Result<Manifest, Error> {
    let Manifest { name, order, preamble, made_unix_ns, buckets, .. } = Manifest::read(folder)?;
    let segments = buckets.into_iter().flat_map(|bucket| bucket.segments).chain(more).collect();
    let manifest = Manifest::new(name, order, preamble, made_unix_ns, segments);
    let manifest = manifest.of_map(what.stored(true));
    manifest.write(folder)?;
    Ok(manifest)
}

/// Writes rows that are still to be combined, of about `bytes`, as one more run in the folder of a view.
pub(super) fn write_run(
    rows: &mut dyn RowStream,
    encoding: Encoding,
    folder: &Arc<dyn Directory>,
    bytes: u64,
    budget: &Budget,
    mut advance: impl FnMut(u64) -> Result<(), SsdletError>,
) -> Result<Segment, SsdletError> {
    let spec = serde_json::to_string(&order()).expect("plain data");
    let name = free_run_name(&folder.list().map_err(Error::from)?);
    let _memory = budget.reserve(BUILDER_BYTES, "writing the result")?;
    let fences = budget.reserve(0, "writing the result")?;
    let storage = folder.create(&name).map_err(Error::from)?;
    let block_bytes = block_bytes(bytes, budget.limit_bytes());
    let writer = RunWriter::new(storage, block_bytes, Compression::Off, None, fences)?;
    let mut builder = RunBuilder::new(writer, order().compile(None).map_err(Error::from)?)?;
    let mut record = Vec::new();
    while rows.advance()? {
        record.clear();
        encoding.push(rows.key(), rows.value(), &mut record);
        builder.append(&record)?;
        advance(record.len() as u64)?;
    }
    Ok(Segment::of(&builder.finish(&spec, true)?))
}

/// The name after all names of runs.
fn free_run_name(names: &[String]) -> String {
    let number = |name: &String| name.strip_suffix(".run")?.parse::<u64>().ok();
    let last = names.iter().filter_map(number).max();
    format!("{:06}.run", last.map_or(0, |last| last + 1))
}

/// Blocks so long that their fences take a sixteenth of the memory at most, if there are such blocks.
fn block_bytes(bytes: u64, memory_bytes: u64) -> u32 {
    const FENCE_BYTES: u64 = 400;
    let wanted = bytes.saturating_mul(16 * FENCE_BYTES) / memory_bytes.max(1);
    let wanted = wanted.clamp(u64::from(BLOCK_BYTES), 1 << 20);
    wanted.next_power_of_two() as u32
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

    fn of(budget: &Budget) -> Result<Self, Error> {
        let free_bytes = budget.free_bytes();
        let bytes = Self::PART.of(free_bytes);
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
    /// [`SsdletError::NotAResult`] for another view; as [`View::open`].
    pub fn open(
        folder: &Arc<dyn Directory>,
        budget: &Budget,
        threads: usize,
    ) -> Result<Self, SsdletError> {
        let memory = RowsMemory::of(budget)?;
        let view = View::open_to_reduce(folder, budget, threads);
        let view = view.map_err(|error| memory.beside(error))?;
        let manifest = view.manifest();
        let description = manifest.result.as_ref().and_then(ResultDescription::of_stored);
        let Some(description) = description.filter(|_| manifest.order == order()) else {
            return Err(SsdletError::NotAResult { view: folder.name().to_owned() });
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
    pub fn rows(&self, from_key: Option<&[u8]>) -> Result<ResultRows<'_>, SsdletError> {
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
    pub fn next(&mut self) -> Result<Option<ResultRow<'_>>, SsdletError> {
        Ok(if self.advance()? { Some(self.reducer.row()) } else { None })
    }
}

impl RowStream for ResultRows<'_> {
    fn advance(&mut self) -> Result<bool, SsdletError> {
        if self.ended {
            return Ok(false);
        }
        loop {
            let last = self.stream.last_bytes();
            let mut rest = &last[self.used..];
            let within = |error| self.memory.within(error);
            while let Some(record) = self.records.next(&mut rest).map_err(within)? {
                let complete = self.reducer.push(record).map_err(|error| match error {
                    SsdletError::Engine(error) => within(error).into(),
                    other => other,
                })?;
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
                }
                .into());
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
