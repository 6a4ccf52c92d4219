//! Continues the work of a process that was killed: it has to be the same work, and its files have to be there.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use merganser_results::pipeline::{
    InputNote, MergeBy, Partitions, PieceFormat, PipelineProgress, PipelineRecord, PipelineWork,
};
use merganser_sort::journal::JournalText;

use super::content::FolderContent;
use super::error::PipelineError;
use super::folder::{WorkPaths, remove, with_new};
use super::journal::PipelineJournal;
use super::plan::{PipelinePlan, PipelineSettings};

/// Opens the journal again, and removes what it does not name. `None` if the work is other work, or a file has gone,
/// and no stage has ended yet: nothing is lost by beginning again.
///
/// # Errors
/// [`PipelineError::Changed`] if the work is other work, or a file has gone.
pub(super) fn continue_work(
    settings: &PipelineSettings,
    plan: &PipelinePlan,
    folder: &WorkPaths,
    inputs: &[InputNote],
    record: &PipelineRecord,
) -> Result<Option<(PipelineJournal, PipelineProgress)>, PipelineError> {
    let path = folder.journal();
    let mut done = PipelineProgress::of_record(&path.display().to_string(), record)?;
    let is_begun = done.merged.is_some() || !done.ran.iter().all(Vec::is_empty);
    let what = changed(&record.header.work, &settings.work(), &record.header.inputs, inputs);
    if let Some(what) = what {
        return if is_begun { Err(PipelineError::Changed { what }) } else { Ok(None) };
    }
    if let Some(bytes) = done.merged {
        compare_whole(settings, plan, folder, (&done, bytes))?;
    } else {
        folder.create()?;
        match clean(plan, folder, &mut done) {
            // A process that was killed while it removed the files leaves the journal, which goes last.
            Err(PipelineError::Changed { .. }) if !is_begun => return Ok(None),
            other => other?,
        }
    }
    let journal = PipelineJournal::reopen(&path, record)?;
    Ok(Some((journal, done)))
}

/// Keeps the files that are still needed, and checks that they are as they were left.
fn clean(
    plan: &PipelinePlan,
    folder: &WorkPaths,
    done: &mut PipelineProgress,
) -> Result<(), PipelineError> {
    let mut kept = compare_items(plan, folder, done)?;
    if done.gathered > 0 {
        kept.insert(folder.gathered());
    }
    if let Some(path) = plan.gathered_path(folder).filter(|_| done.gathered > 0) {
        // The end of an append that was interrupted may make it longer.
        let start = FolderContent::of_start(&path, done.gathered_bytes);
        // A journal of an earlier version has no checksum, which the next results need.
        done.gathered_crc = Some(compare(&path, start, done.gathered_bytes, done.gathered_crc)?);
    }
    remove(&with_new(&folder.journal()))?;
    folder.keep_only(&|path| kept.contains(path))
}

/// Checks the partitions and the outputs of stages that are still needed; gives their paths.
fn compare_items(
    plan: &PipelinePlan,
    folder: &WorkPaths,
    done: &PipelineProgress,
) -> Result<BTreeSet<PathBuf>, PipelineError> {
    let mut kept = BTreeSet::new();
    for (k, cut) in done.cuts.iter().enumerate().skip(done.gathered as usize) {
        let (ran, crcs) = (&done.ran[k], &done.ran_crcs[k]);
        let items = [(cut.bytes, Some(cut.crc))].into_iter();
        let items = items.chain(ran.iter().copied().zip(crcs.iter().copied())).enumerate();
        for (item, (bytes, crc)) in items.filter(|(item, _)| plan.is_needed(*item, ran.len())) {
            let path = match item.checked_sub(1) {
                None => folder.part(cut.k),
                Some(stage) => folder.stage(cut.k, &plan.stages[stage].name),
            };
            compare(&path, FolderContent::of_path(&path), bytes, crc)?;
            kept.insert(path);
        }
    }
    Ok(kept)
}

/// Checks the whole output, which has not got its name yet. Where stages keep their files, the caller makes the output
/// of these, and may have begun.
fn compare_whole(
    settings: &PipelineSettings,
    plan: &PipelinePlan,
    folder: &WorkPaths,
    (done, bytes): (&PipelineProgress, u64),
) -> Result<(), PipelineError> {
    let partial = folder.partial();
    if !partial.exists() {
        // It has its name, and the files are going.
        return Ok(());
    }
    if settings.stages.iter().any(|stage| stage.keep) {
        return compare_items(plan, folder, done).map(drop);
    }
    compare(&partial, FolderContent::of_path(&partial), bytes, done.merged_crc).map(drop)
}

/// Checks what was found at `path`; gives its checksum.
fn compare(
    path: &Path,
    found: io::Result<FolderContent>,
    bytes: u64,
    crc: Option<u32>,
) -> Result<u32, PipelineError> {
    let found = match found {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(PipelineError::file(path)(error));
        }
        found => found.ok(),
    };
    let as_left =
        |found: &FolderContent| found.bytes == bytes && crc.is_none_or(|crc| crc == found.crc);
    let found = found.filter(as_left);
    found.map(|found| found.crc).ok_or_else(|| PipelineError::Changed { what: other_content(path) })
}

fn other_content(path: &Path) -> String {
    format!(
        "{}: is not as the pipeline left it; move the folder of its unfinished work away to begin again",
        path.display()
    )
}

/// The difference, if there is one.
fn changed(
    was: &PipelineWork,
    now: &PipelineWork,
    inputs_were: &[InputNote],
    inputs: &[InputNote],
) -> Option<String> {
    let differs = |what: &str, was: String, now: String| {
        Some(format!("{what} was {was} when this work began, and is {now} now"))
    };
    if was.records != now.records {
        return differs("the format of records", format_of(was.records), format_of(now.records));
    }
    if was.as_stored != now.as_stored {
        let words = |as_stored| if as_stored { "taken as they are stored" } else { "decompressed" };
        return Some(format!(
            "compressed inputs were {} when this work began, and are {} now",
            words(was.as_stored),
            words(now.as_stored)
        ));
    }
    if was.partitions != now.partitions {
        let words = |partitions| match partitions {
            Partitions::Count(count) => count.to_string(),
            Partitions::Bytes(bytes) => format!("{bytes} bytes each"),
            Partitions::Auto => "auto".to_owned(),
        };
        return differs("the partitions", words(was.partitions), words(now.partitions));
    }
    if was.stages.len() != now.stages.len() {
        let count = |work: &PipelineWork| work.stages.len().to_string();
        return differs("the number of stages", count(was), count(now));
    }
    for ((was_name, was), (name, now)) in was.stages.iter().zip(&now.stages) {
        if was_name != name {
            return differs("the name of a stage", format!("'{was_name}'"), format!("'{name}'"));
        }
        if was != now {
            let what = format!("the stage '{name}'");
            return differs(&what, format!("'{was}'"), format!("'{now}'"));
        }
    }
    if was.merge != now.merge {
        let words = |merge: &MergeBy| match merge {
            MergeBy::Cat => "'cat'".to_owned(),
            MergeBy::Command(command) => format!("'{command}'"),
        };
        return differs("the merge", words(&was.merge), words(&now.merge));
    }
    let text = |text: &JournalText| format!("'{}'", String::from_utf8_lossy(&text.0));
    if was.folder != now.folder {
        return differs("the folder of the command", text(&was.folder), text(&now.folder));
    }
    if inputs_were.len() != inputs.len() {
        let count = |inputs: &[InputNote]| inputs.len().to_string();
        return differs("the number of inputs", count(inputs_were), count(inputs));
    }
    for (was, now) in inputs_were.iter().zip(inputs) {
        if was.name != now.name {
            return differs("an input", text(&was.name), text(&now.name));
        }
        let same = match (was.file, now.file) {
            (Some(was), Some(now)) => {
                let content = (was.size, was.modified_unix_ns);
                was.is_same_file(&now) && content == (now.size, now.modified_unix_ns)
            }
            _ => false,
        };
        if !same {
            let name = String::from_utf8_lossy(&now.name.0);
            return Some(format!("{name}: is not the file that it was when this work began"));
        }
    }
    None
}

fn format_of(records: PieceFormat) -> String {
    match records {
        PieceFormat::Lines { delimiter: 0 } => "lines that end with NUL".to_owned(),
        PieceFormat::Lines { .. } => "lines".to_owned(),
        PieceFormat::Fixed { bytes } => format!("fixed:{bytes}"),
        PieceFormat::Fasta => "fasta".to_owned(),
        PieceFormat::Fastq => "fastq".to_owned(),
    }
}
