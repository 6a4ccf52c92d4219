//! What a killed pipeline left in its folder of unfinished work.

use std::fs;
use std::path::Path;

use merganser_sort::journal::CommandNote;

use super::error::JournalError;
use super::journal::{InputNote, PipelineEvent};
use super::progress::{PipelineProgress, contradiction};
use super::scan::scan;

/// Name of the journal.
pub const JOURNAL_NAME: &str = "pipeline-journal";
/// Name of the folder of partitions.
pub const PARTS_NAME: &str = "pipeline";
/// Name of the output before it gets its own.
pub const PARTIAL_NAME: &str = "partial";
/// Levels of folders that a stage may make in its own.
pub const LEVELS_MAX: u32 = 32;

/// A pipeline that a process left.
#[derive(Debug, Clone)]
pub struct Left {
    /// The command.
    pub command: CommandNote,
    /// The names of the stages.
    pub stages: Vec<String>,
    /// Partitions that were cut.
    pub cut: usize,
    /// Whether these are all.
    pub all_cut: bool,
    /// Partitions that passed all stages.
    pub finished: usize,
    /// Stages of partitions that ran.
    pub ran: usize,
    /// Whether the output is whole.
    pub merged: bool,
    /// Whether an input is a stream, so that the work can't be continued.
    pub of_stream: bool,
    /// The inputs, in order.
    pub inputs: Vec<InputNote>,
    /// Bytes of all files.
    pub bytes: u64,
}

impl Left {
    /// How many partitions there are, in words, as far as that is known.
    #[must_use]
    pub fn partitions(&self) -> String {
        if self.all_cut { self.cut.to_string() } else { format!("{} or more", self.cut) }
    }
}

/// What a folder of unfinished work holds of a pipeline; `None` if nothing.
///
/// # Errors
/// A journal that can't be read.
pub fn left_in(folder: &Path) -> Result<Option<Left>, JournalError> {
    let journal = folder.join(JOURNAL_NAME);
    let mut done = PipelineProgress::default();
    let mut line = 1;
    let each = |event: &PipelineEvent, stages: usize| {
        line += 1;
        done.apply(event, stages).ok_or_else(|| contradiction(&journal.display().to_string(), line))
    };
    let Some(header) = scan(&journal, each)? else { return Ok(None) };
    Ok(Some(Left {
        cut: done.cuts.len(),
        all_cut: done.all_cut,
        finished: done.finished(header.work.stages.len()),
        ran: done.ran.iter().map(Vec::len).sum(),
        merged: done.merged.is_some(),
        of_stream: header.inputs.iter().any(|input| input.file.is_none()),
        inputs: header.inputs,
        stages: header.work.stages.into_iter().map(|(name, _)| name).collect(),
        command: header.command,
        bytes: tree_bytes(folder),
    }))
}

/// The bytes of the files below `path`, as far as they can be seen: it may change meanwhile.
#[must_use]
pub fn tree_bytes(path: &Path) -> u64 {
    fn level(path: &Path, levels: u32) -> u64 {
        match path.symlink_metadata() {
            Ok(found) if found.is_file() => found.len(),
            Ok(found) if found.is_dir() && levels > 0 => {
                let entries = fs::read_dir(path).into_iter().flatten().flatten();
                entries.map(|entry| level(&entry.path(), levels - 1)).sum()
            }
            _ => 0,
        }
    }
    level(path, LEVELS_MAX)
}
