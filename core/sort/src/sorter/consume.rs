//! A sort that gives the blocks of its inputs back as they are sorted, for callers that have no
//! room for both.
//!
//! ```text
//!   chunk sorted ─► run written ─► run synced ─► journal: runs so far, inputs taken so far
//!                                                     └─► blocks of the inputs before that given back
//! ```
//!
//! At every moment each record is in an input or in a run that the journal names (some in both).
//! A sort that was interrupted at any point continues from the journal when it is called again.
//! Until then the journal's folder must be kept: what is left of the inputs is not enough alone.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use merganser_storage::memory::MemoryStorage;
use merganser_storage::{Directory, Operation, Storage, StorageExt};

use super::journal::{JournalText, SortJournal, SortPhase};
use super::{SortOptions, SortOutput, SortReport, Sorter};
use crate::record::Format;
use crate::run::Run;
use crate::run::chunk_reader::ChunkReader;
use crate::run::input::SortInput;
use crate::view::{MANIFEST_NAME, Manifest, Segment};
use crate::{Conflict, Error, Progress, Result};

/// Bytes are given back in whole units of this size, the largest block that file systems use.
const HOLE_BYTES: u64 = 64 << 10;
/// A chunk is at most this part of the inputs, so that the run that is written before its chunk is
/// given back takes little extra space.
const CHUNK_SHARE: u64 = 16;
/// Chunks are not made shorter than this for the sake of space.
const CHUNK_BYTES_MIN: u64 = 1 << 20;

/// A file as it is now: its size, and when it was modified, in nanoseconds since 1970.
pub type Stamp = (u64, i64);

/// Inputs whose bytes are given back. The sort itself knows storages only, so the caller says
/// whether the files behind them are still what they were.
pub struct Consumed<'a> {
    /// The inputs, writable, in the order of the journal. One that is sorted whole may be missing.
    pub storages: &'a [Option<Arc<dyn Storage>>],
    /// How an input looks now. It is asked before bytes are given back: where an input has changed
    /// since the sort looked last, the sort ends with [`Error::InputChanged`] instead.
    pub stamp: &'a (dyn Fn(usize) -> io::Result<Stamp> + Sync),
    /// Called before the first bytes of an input are given back, and before the journal says so: the
    /// caller takes the input out of the way of others, durably.
    pub claim: &'a (dyn Fn(usize) -> io::Result<()> + Sync),
}

/// Sorts inputs into a view in `folder`, giving their blocks back on the way. The folder's journal
/// (the caller wrote it) says what is done already. On success the inputs still have their size but
/// no content, and the journal is in [`SortPhase::Sorted`].
///
/// # Errors
/// As [`super::sort`]; [`Error::InputChanged`]. After any error the same call continues; inputs
/// and folder together still hold every record.
pub fn sort_consuming(
    inputs: &Consumed<'_>,
    folder: &Arc<dyn Directory>,
    journal: SortJournal,
    name: String,
    options: &SortOptions,
    progress: &dyn Progress,
) -> Result<SortReport> {
    if options.order.unique || options.top.is_some() {
        return Err(Conflict::ConsumeDrops.into());
    }
    assert_eq!(journal.phase, SortPhase::Sorting, "the caller continues a sorted one");
    assert_eq!(journal.inputs.len(), inputs.storages.len(), "the inputs of the journal");
    let (total, started) = (total_bytes(&journal), Instant::now());
    let short = (total / CHUNK_SHARE).max(CHUNK_BYTES_MIN);
    let (target, consumed) = ((folder, name.clone()), journal.clone());
    match sort_in_chunks(inputs, target, consumed, Some(short), (options, started), progress) {
        // Short chunks save space, long records need long ones.
        Err(Error::RecordTooLong { .. }) => {
            let journal = SortJournal::read(folder)?.unwrap_or(journal);
            sort_in_chunks(inputs, (folder, name), journal, None, (options, started), progress)
        }
        done => done,
    }
}

fn total_bytes(journal: &SortJournal) -> u64 {
    journal.inputs.iter().map(|input| input.file.size).sum()
}

/// Sorts in chunks of at most `chunk_bytes`, or of what memory allows.
fn sort_in_chunks(
    inputs: &Consumed<'_>,
    (folder, name): (&Arc<dyn Directory>, String),
    mut journal: SortJournal,
    chunk_bytes: Option<u64>,
    (options, started): (&SortOptions, Instant),
    progress: &dyn Progress,
) -> Result<SortReport> {
    if folder.list()?.iter().any(|n| n == MANIFEST_NAME) {
        // Only the note that all is sorted is missing.
        let manifest = Manifest::read(folder)?;
        for segment in manifest.buckets.iter().flat_map(|bucket| &bucket.segments) {
            check(&segment.find(folder, false)?.open_within(&options.budget)?, progress)?;
        }
        journal.enter(SortPhase::Sorted, folder)?;
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
    // They were written before a crash, and more of the inputs is given back because of them.
    runs.iter().try_for_each(|run| check(run, progress))?;
    let begun = !journal.is_untouched();
    let as_input = |storage: &Option<Arc<dyn Storage>>| match storage {
        Some(storage) => SortInput::Storage(Arc::clone(storage)),
        None => SortInput::Storage(MemoryStorage::new("an input that is sorted")),
    };
    let as_inputs = || inputs.storages.iter().map(as_input).collect();
    // The plan leaves room for the fences of all runs, those that are held already among them.
    let held_bytes = runs.iter().map(|run: &Arc<Run>| run.reserved_bytes()).sum();
    let header = &journal.header.0;
    let mut sorter = Sorter::prepare_from(as_inputs(), options, header, !begun, held_bytes)?;
    sorter.runs = runs;
    if let Some(chunk_bytes) = chunk_bytes {
        sorter.plan = sorter.plan.with_chunks_of(chunk_bytes);
    }
    if begun {
        sorter.plan.block_bytes = journal.block_bytes;
        sorter.compression = journal.compression;
    } else {
        sorter.look_for_columns(as_inputs(), progress)?;
    }
    journal.block_bytes = sorter.plan.block_bytes;
    journal.compression = sorter.compression;
    // Runs that the journal does not name were not finished: their records are in the inputs.
    for name in folder.list()? {
        if name.ends_with(".run") && !journal.runs.iter().any(|run| run.run == name) {
            folder.remove(&name)?;
        }
    }
    progress.phase("sorting", Some(total_bytes(&journal)));
    progress.advance(journal.inputs.iter().map(|i| i.taken).sum());
    let mut keeper = Keeper { folder: Arc::clone(folder), journal, inputs };
    keeper.give_back_the_rest()?;
    sorter.journal = Some(keeper);
    let output = SortOutput::View { folder: Arc::clone(folder), name };
    sorter.run(output, started, progress)
}

/// Reads a run that an interrupted sort wrote, and checks every block.
fn check(run: &Run, progress: &dyn Progress) -> Result<()> {
    progress.phase("checking", Some(run.data_bytes()));
    run.verify_all(|bytes| {
        progress.advance(bytes);
        if progress.cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    })
}

/// Keeps the journal of a sort under way.
pub(super) struct Keeper<'a> {
    folder: Arc<dyn Directory>,
    journal: SortJournal,
    inputs: &'a Consumed<'a>,
}

impl Keeper<'_> {
    /// Reads on where the journal ends.
    pub(super) fn reader(
        &self,
        inputs: Vec<SortInput>,
        format: Format,
        chunk_bytes: usize,
    ) -> ChunkReader {
        let starts = self.journal.inputs.iter().zip(self.inputs.storages);
        let starts = starts.map(|(input, storage)| storage.as_ref().map_or(0, |_| input.taken));
        let starts: Vec<u64> = starts.collect();
        let header = Some(self.journal.header.0.clone()).filter(|h| !h.is_empty());
        ChunkReader::resume(inputs, format, chunk_bytes, header, &starts)
    }

    /// Remembers `runs` and what they hold of the inputs, durably, and gives that back.
    pub(super) fn record(
        &mut self,
        header: &[u8],
        runs: &[Arc<Run>],
        taken: &[(Arc<dyn Storage>, u64)],
    ) -> Result<()> {
        self.journal.header = JournalText(header.to_vec());
        self.journal.runs = runs.iter().map(|run| Segment::of_run(run)).collect();
        let mut given = Vec::new();
        for (storage, upto) in taken {
            let is_it = |input: &Option<Arc<dyn Storage>>| {
                input.as_ref().is_some_and(|input| Arc::ptr_eq(input, storage))
            };
            let Some(index) = self.inputs.storages.iter().position(is_it) else { continue };
            let input = &mut self.journal.inputs[index];
            if input.taken < *upto {
                given.push((index, input.taken));
                input.taken = *upto;
            }
        }
        for (index, from) in &given {
            self.check(*index)?;
            if *from == 0 {
                (self.inputs.claim)(*index)?;
            }
        }
        self.journal.write(&self.folder)?;
        self.give_back_all(given)
    }

    /// Gives bytes back, and remembers how the inputs look then: a change by another program shows.
    fn give_back_all(&mut self, given: Vec<(usize, u64)>) -> Result<()> {
        if given.is_empty() {
            return Ok(());
        }
        for (index, from) in given {
            self.give_back(index, from)?;
        }
        self.journal.write(&self.folder)
    }

    /// An input that was written to has records that no run has.
    fn check(&self, index: usize) -> Result<()> {
        let known = &self.journal.inputs[index];
        let (size, modified) = (self.inputs.stamp)(index)?;
        if (size, modified) == (known.file.size, known.file.modified_unix_ns) {
            return Ok(());
        }
        Err(Error::InputChanged {
            file: known.path.as_os_str().display().to_string(),
            expected_bytes: known.file.size,
            found_bytes: size,
        })
    }

    /// Gives back what an interrupted sort had taken and not given back yet.
    fn give_back_the_rest(&mut self) -> Result<()> {
        let inputs = self.journal.inputs.iter().zip(self.inputs.storages).enumerate();
        let rest = inputs
            .filter(|(_, (input, storage))| input.given_back < input.taken && storage.is_some());
        let rest: Vec<_> = rest.map(|(index, (input, _))| (index, input.given_back)).collect();
        rest.iter().try_for_each(|(index, _)| self.check(*index))?;
        self.give_back_all(rest)
    }

    /// Gives the bytes of an input back from `from` to what is taken.
    fn give_back(&mut self, index: usize, from: u64) -> Result<()> {
        let input = &mut self.journal.inputs[index];
        // The first unit may hold the end of what an earlier call gave back. Behind the last byte that was taken, another
        // program may have written.
        let offset = from / HOLE_BYTES * HOLE_BYTES;
        let end = input.taken;
        let storage = self.inputs.storages[index].as_ref().expect("it was read");
        match storage.run(Operation::Discard { offset, len: end - offset }) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Unsupported => return Ok(()),
            Err(e) => return Err(Error::Io(e)),
        }
        // Holes that a power cut fills again would look like writes of another program.
        storage.sync()?;
        input.given_back = input.taken;
        // Giving bytes back is a modification, too.
        input.file.modified_unix_ns = (self.inputs.stamp)(index)?.1;
        Ok(())
    }

    /// `runs` hold what the runs before held.
    pub(super) fn replace_runs<'r>(
        &mut self,
        runs: impl Iterator<Item = &'r Arc<Run>>,
    ) -> Result<()> {
        self.journal.runs = runs.map(|run| Segment::of_run(run)).collect();
        self.journal.write(&self.folder)
    }

    /// The view is durable: it has every record.
    pub(super) fn sorted(&mut self) -> Result<()> {
        self.journal.enter(SortPhase::Sorted, &self.folder)
    }
}
