//! Cuts the stream of all inputs into partitions of whole records, balanced by bytes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use merganser_results::pipeline::{PartitionCut, PieceFormat};
use merganser_sort::Budget;
use merganser_sort::run::magic::ContentKind;

use super::border::{BadRecord, BorderFinder};
use super::error::{PipelineError, is_full};
use super::folder::{remove, sync_folder, with_new};
use super::input::{JoinedInputs, NextInput, PipelineInput};

/// Reads the inputs and writes partitions.
pub(super) struct Cutter<'a> {
    joined: JoinedInputs<'a>,
    borders: BorderFinder,
    /// The next partition: its number and where it begins.
    k: u32,
    start: u64,
    /// The input that bytes come from; `None` before the first one.
    input: Option<String>,
}

/// What the cutter asks while it works.
pub(super) struct Asks<'a> {
    /// Whether the pipeline ends early.
    pub(super) stop: &'a dyn Fn() -> bool,
    /// Counts how often others gave back space.
    pub(super) freed: &'a dyn Fn() -> u64,
    /// Called when the disk is full, with the count before that was found: waits until it is larger. False if no other
    /// thread will give back space.
    pub(super) wait_for_space: &'a dyn Fn(u64) -> bool,
}

impl<'a> Cutter<'a> {
    /// Begins at the partition `k`, which begins at byte `start` of all inputs.
    ///
    /// # Errors
    /// Inputs that fail, or that end before `start`; `stop`.
    pub(super) fn new(
        inputs: &'a mut [PipelineInput],
        (format, content): (PieceFormat, ContentKind),
        budget: &Budget,
        (k, start): (u32, u64),
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, PipelineError> {
        let names: Vec<_> = inputs.iter().map(|input| input.name.clone()).collect();
        let mut joined = JoinedInputs::new(inputs, format.terminator(), content, budget);
        if !joined.skip(start, stop)? {
            let input = names.join(", ");
            return Err(PipelineError::InputChanged { input });
        }
        let mut borders = BorderFinder::new(format);
        borders.begin_at(joined.offset());
        let input = (start > 0).then(|| joined.name());
        Ok(Cutter { joined, borders, k, start, input })
    }

    /// Where the next partition begins.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Writes the next partition to `path`, durably. It ends at the first border at byte `end` of all inputs or
    /// later. `None` if no bytes are left.
    ///
    /// # Errors
    /// Bad records; inputs and files that fail; `stop`.
    pub(super) fn next(
        &mut self,
        path: &Path,
        end: u64,
        asks: &Asks<'_>,
    ) -> Result<Option<PartitionCut>, PipelineError> {
        let new = with_new(path);
        remove(&new)?;
        let mut written = Writing { file: None, bytes: 0, crc: 0 };
        loop {
            if (asks.stop)() {
                return Err(PipelineError::Cancelled);
            }
            let next = self.joined.next()?;
            let name = || self.input.clone().unwrap_or_default();
            match next {
                NextInput::End => {
                    self.borders.end().map_err(|bad| bad_record(name(), bad))?;
                    break;
                }
                NextInput::Input => {
                    self.borders.end().map_err(|bad| bad_record(name(), bad))?;
                    self.borders.begin_at(0);
                    self.input = Some(self.joined.name());
                }
                NextInput::Bytes => {
                    let bytes = self.joined.bytes();
                    let wanted = end.saturating_sub(self.start + written.bytes);
                    // An empty partition would be of no use.
                    let from = wanted.max(u64::from(written.bytes == 0));
                    let from = usize::try_from(from).unwrap_or(usize::MAX);
                    let found = self.borders.take(bytes, from);
                    let found = found.map_err(|bad| bad_record(name(), bad))?;
                    let taken = found.unwrap_or(bytes.len());
                    written.write(&bytes[..taken], &new, asks)?;
                    self.joined.take(taken);
                    if found.is_some() {
                        break;
                    }
                }
            }
        }
        let Some(file) = written.file else { return Ok(None) };
        file.sync_all().map_err(PipelineError::file(&new))?;
        drop(file);
        fs::rename(&new, path).map_err(PipelineError::file(&new))?;
        sync_folder(path.parent().unwrap_or(Path::new(".")))?;
        let cut = PartitionCut {
            k: self.k,
            start: self.start,
            bytes: written.bytes,
            records: self.borders.take_records(),
            crc: written.crc,
        };
        self.k += 1;
        self.start += cut.bytes;
        Ok(Some(cut))
    }
}

/// A partition that is being written.
struct Writing {
    file: Option<File>,
    bytes: u64,
    crc: u32,
}

impl Writing {
    fn write(&mut self, bytes: &[u8], path: &Path, asks: &Asks<'_>) -> Result<(), PipelineError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let freed = (asks.freed)();
            let written = match &mut self.file {
                Some(file) => file.write(rest),
                none => {
                    let mut how = File::options();
                    let opened = how.write(true).create_new(true).mode(0o600).open(path);
                    opened.map(|file| {
                        *none = Some(file);
                        0
                    })
                }
            };
            match written {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Written bytes stay; the rest follows when others have finished.
                Err(error) if is_full(&error) && (asks.wait_for_space)(freed) => {}
                Err(error) => return Err(PipelineError::file(path)(error)),
            }
        }
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// The error for a record that is not in its format.
fn bad_record(file: String, bad: BadRecord) -> merganser_sort::Error {
    merganser_sort::Error::Input { file, offset: bad.offset, detail: bad.detail.to_owned() }
}
