//! A sort that gives its inputs' blocks back as they are sorted, for who has no room for both.
//!
//! ```text
//!   chunk sorted ─► run written ─► run synced ─► journal: runs so far, inputs taken so far
//!                                                     └─► blocks of the inputs before that given back
//! ```
//!
//! At every moment each record is in an input or in a run that the journal names (some in both).
//! A sort that was interrupted at any point goes on from the journal when it is asked again; what
//! is left of the inputs alone is of no use then, and the journal's folder must be kept.

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use storage::{Directory, Operation, Storage, StorageExt};

use super::{SortOptions, SortOutput, SortReport, Sorter};
use crate::key::OrderSpec;
use crate::record::Format;
use crate::run::format::corrupt;
use crate::run::input::{ChunkReader, Input};
use crate::run::{Compression, Run};
use crate::view::{MANIFEST_NAME, Manifest, Segment};
use crate::{Error, Progress, Result};

const JOURNAL_NAME: &str = "sort-journal";
const FRESH_NAME: &str = "sort-journal.new";

/// What is sorted so far.
pub(super) struct Journal {
    folder: Arc<dyn Directory>,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    order: OrderSpec,
    header: Vec<u8>,
    runs: Vec<Segment>,
    inputs: Vec<Taken>,
    block_bytes: u32,
    compression: Compression,
}

/// An input, and how many of its bytes are in runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Taken {
    name: String,
    size: u64,
    taken: u64,
}

/// Sorts `inputs`, which are writable, into a view in `folder`, giving their blocks back on the
/// way. When `folder` holds an interrupted sort of the same inputs, that one goes on. On success
/// the inputs still have their size but no content: the caller removes them, gives the view its
/// place, and only then calls [`end_consuming`]. Until that, [`is_interrupted_sort`] tells that
/// `folder` is the only place of its records.
///
/// # Errors
/// As [`super::sort`]; and [`Error::Unsupported`] when `folder` holds another sort, or a view whose
/// sort has ended. After another error the same call goes on; inputs and folder together still hold every record.
pub fn sort_consuming(
    inputs: &[Arc<dyn Storage>],
    folder: &Arc<dyn Directory>,
    name: String,
    options: &SortOptions,
    progress: &dyn Progress,
) -> Result<SortReport> {
    let started = Instant::now();
    if options.order.unique || options.top.is_some() {
        return Err(Error::Unsupported(
            "--consume keeps every record; leave out -u and --top, or --consume".to_owned(),
        ));
    }
    let as_inputs: Vec<Input> = inputs.iter().map(|s| Input::Storage(Arc::clone(s))).collect();
    let fresh = Content {
        order: options.order.clone(),
        header: Vec::new(),
        runs: Vec::new(),
        inputs: inputs
            .iter()
            .map(|s| Taken { name: s.name().to_owned(), size: s.size(), taken: 0 })
            .collect(),
        block_bytes: 0,
        compression: Compression::Off,
    };
    let finished = folder.list()?.iter().any(|n| n == MANIFEST_NAME);
    let (sampled, journal) = match Content::read(folder)? {
        Some(content) => {
            let same = |a: &Taken, b: &Taken| a.name == b.name && a.size == b.size;
            let same = content.order == fresh.order
                && content.inputs.len() == fresh.inputs.len()
                && content.inputs.iter().zip(&fresh.inputs).all(|(a, b)| same(a, b));
            if !same {
                return Err(Error::Unsupported(format!(
                    "{}: holds an interrupted sort of other inputs or with other keys; finish that one first",
                    folder.name()
                )));
            }
            (false, content)
        }
        None if finished => {
            return Err(Error::Unsupported(format!(
                "{}: already holds a view; name a new folder",
                folder.name()
            )));
        }
        None => (true, fresh),
    };
    if finished {
        // The inputs have no content any more, and the view has all of it.
        let manifest = Manifest::read(folder)?;
        return Ok(SortReport {
            records: manifest.records,
            output_bytes: manifest.size_bytes,
            ..SortReport::default()
        });
    }
    // The fences of what is sorted already come first: what they leave is planned with.
    let mut runs = Vec::new();
    for segment in &journal.runs {
        runs.push(Arc::new(segment.find(folder, false)?.open_within(&options.budget)?));
    }
    let mut sorter = Sorter::prepare_from(as_inputs, options, &journal.header, sampled)?;
    sorter.runs = runs;
    if !sampled {
        sorter.plan.block_bytes = journal.block_bytes;
        sorter.compression = journal.compression;
    }
    let mut content = journal;
    content.block_bytes = sorter.plan.block_bytes;
    content.compression = sorter.compression;
    // Runs that the journal does not name were not finished: their records are in the inputs.
    for name in folder.list()? {
        if name.ends_with(".run") && !content.runs.iter().any(|run| run.run == name) {
            folder.remove(&name)?;
        }
    }
    let total: u64 = content.inputs.iter().map(|i| i.size).sum();
    progress.phase("sorting", Some(total));
    progress.advance(content.inputs.iter().map(|i| i.taken).sum());
    sorter.journal = Some(Journal { folder: Arc::clone(folder), content });
    let output = SortOutput::View { folder: Arc::clone(folder), name };
    sorter.run(output, started, progress)
}

/// Ends a [`sort_consuming`] whose inputs are removed and whose view in `folder` is in its place.
///
/// # Errors
/// The storage's own.
pub fn end_consuming(folder: &Arc<dyn Directory>) -> Result<()> {
    match folder.remove(JOURNAL_NAME) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::Io(e)),
        _ => {}
    }
    folder.sync()?;
    Ok(())
}

impl Journal {
    /// Reads on where the journal ends.
    pub(super) fn reader(
        &self,
        inputs: Vec<Input>,
        format: Format,
        chunk_bytes: usize,
    ) -> ChunkReader {
        let starts: Vec<u64> = self.content.inputs.iter().map(|i| i.taken).collect();
        let header = Some(self.content.header.clone()).filter(|h| !h.is_empty());
        ChunkReader::resume(inputs, format, chunk_bytes, header, &starts)
    }

    /// Remembers `runs` and what they hold of the inputs, durably, and gives that back.
    pub(super) fn record(
        &mut self,
        header: &[u8],
        runs: &[Arc<Run>],
        taken: &[(Arc<dyn Storage>, u64)],
    ) -> Result<()> {
        self.content.header = header.to_vec();
        self.content.runs = runs.iter().map(|run| Segment::of(run)).collect();
        let mut given = Vec::new();
        for (storage, upto) in taken {
            let entry = self
                .content
                .inputs
                .iter_mut()
                .find(|input| input.name == storage.name() && input.taken < *upto);
            if let Some(input) = entry {
                given.push((storage, input.taken, *upto));
                input.taken = *upto;
            }
        }
        self.content.write(&self.folder)?;
        for (storage, from, to) in given {
            // The first page may hold the end of what an earlier call gave back.
            let offset = from / 4096 * 4096;
            match storage.run(Operation::Discard { offset, len: to - offset }) {
                Err(e) if e.kind() != std::io::ErrorKind::Unsupported => return Err(Error::Io(e)),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Journal {
    /// `runs` hold what those before held.
    pub(super) fn replace_runs(&mut self, runs: &[Arc<Run>]) -> Result<()> {
        self.content.runs = runs.iter().map(|run| Segment::of(run)).collect();
        self.content.write(&self.folder)
    }
}

/// Whether `folder` holds a [`sort_consuming`] that has not come to [`end_consuming`]: it must not
/// be lost.
///
/// # Errors
/// The storage's own.
pub fn is_interrupted_sort(folder: &Arc<dyn Directory>) -> Result<bool> {
    Ok(folder.list()?.iter().any(|name| name == JOURNAL_NAME))
}

impl Content {
    fn read(folder: &Arc<dyn Directory>) -> Result<Option<Self>> {
        let names = folder.list()?;
        if !names.iter().any(|n| n == JOURNAL_NAME) {
            return Ok(None);
        }
        let file = folder.open(JOURNAL_NAME, false)?;
        let bytes = file.read_vec(0, file.size() as usize)?;
        let malformed = || corrupt(file.name(), 0, "not a sort's journal".to_owned());
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(malformed)?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return Err(malformed());
        }
        serde_json::from_slice(body).map(Some).map_err(|_| malformed())
    }

    fn write(&self, folder: &Arc<dyn Directory>) -> Result<()> {
        let mut bytes = serde_json::to_vec(self).expect("plain data");
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        match folder.remove(FRESH_NAME) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::Io(e)),
            _ => {}
        }
        let file = folder.create(FRESH_NAME)?;
        file.write_at(0, &bytes)?;
        file.sync()?;
        folder.rename(FRESH_NAME, JOURNAL_NAME)?;
        folder.sync()?;
        Ok(())
    }
}
