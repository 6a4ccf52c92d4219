//! A pipeline from its inputs to its whole output, or from where another process left it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use merganser_results::pipeline::{InputNote, JournalHeader, PipelineProgress};
use merganser_sort::journal::{FileNote, JournalText};
use merganser_storage::thread::spawn_scoped;

use super::cutting::cut_all;
use super::error::PipelineError;
use super::folder::WorkPaths;
use super::input::PipelineInput;
use super::journal::PipelineJournal;
use super::plan::PipelineSettings;
use super::report::PipelineReport;
use super::resume;
use super::schedule::PipelineContext;
use super::standing::Standing;
use super::summary;

/// A watcher of a pipeline: it sees how far the pipeline is, and says whether it continues.
pub trait PipelineWatch: Sync {
    /// Whether the end was asked for.
    fn cancelled(&self) -> bool;
    /// Called some times per second.
    fn standing(&self, standing: &Standing);
    /// Called when the pipeline ends before its inputs do. Reads of them that wait have to end soon, because the thread
    /// that reads is waited for. Their errors are not reported.
    fn ends_early(&self);
}

/// A pipeline that has come to its end.
#[derive(Debug)]
pub struct PipelineOutcome {
    /// The whole output, to be renamed; then [`finish`] is called.
    pub partial: PathBuf,
    /// The work that was done.
    pub report: PipelineReport,
}

/// Runs a pipeline, or continues it where its folder says. `look_again` looks at the files of the inputs, in
/// order, when all of them were read.
///
/// # Errors
/// See [`PipelineError`]. Finished work stays: the same call continues.
pub fn run(
    settings: &PipelineSettings,
    mut inputs: Vec<PipelineInput>,
    look_again: &(dyn Fn() -> Vec<Option<FileNote>> + Sync),
    watch: &dyn PipelineWatch,
) -> Result<PipelineOutcome, PipelineError> {
    let plan = settings.plan()?;
    let folder = WorkPaths::new(&settings.folder);
    let notes: Vec<_> = inputs.iter().map(note_of).collect();
    let found = PipelineJournal::read(&folder.journal())?;
    let again = notes.iter().all(|note| note.file.is_some());
    let found = match found {
        // A stream gives its bytes once, so nothing that was made of it can be compared.
        Some(_) if !again => None,
        found => found,
    };
    let found = match found {
        Some(record) => resume::continue_work(settings, &plan, &folder, &notes, &record)?,
        None => None,
    };
    let continued = found.is_some();
    let (journal, done) = match found {
        Some(found) => found,
        None => begin(settings, &folder, notes)?,
    };
    if let Some(bytes) = done.merged {
        let report = summary::of_merged(&done, bytes);
        return Ok(PipelineOutcome { partial: folder.partial(), report });
    }
    let shared = PipelineContext::new(settings, &plan, &folder, journal, done)?;
    run_threads(&shared, &mut inputs, look_again, watch)?;
    let stages_seconds = shared.seconds();
    let output_bytes = while_watched(&shared, watch, || shared.merge())?;
    let report = summary::of_run(&shared, continued, output_bytes, stages_seconds);
    Ok(PipelineOutcome { partial: folder.partial(), report })
}

/// Runs all threads to their end.
fn run_threads(
    shared: &PipelineContext<'_>,
    inputs: &mut [PipelineInput],
    look_again: &(dyn Fn() -> Vec<Option<FileNote>> + Sync),
    watch: &dyn PipelineWatch,
) -> Result<(), PipelineError> {
    let refused = |error| shared.fail(PipelineError::file(shared.folder.path())(error));
    std::thread::scope(|scope| {
        for (pool, of) in shared.plan.pools.iter().enumerate() {
            for thread in 0..of.threads {
                let work = move || shared.work(pool, thread);
                if let Err(error) = spawn_scoped(scope, format!("{}-{thread}", of.name), work) {
                    refused(error);
                }
            }
        }
        let cut = move || {
            if let Err(error) = cut_all(shared, inputs, look_again) {
                shared.fail(error);
            }
        };
        if let Err(error) = spawn_scoped(scope, "cut", cut) {
            refused(error);
        }
        if let Err(error) = gather_all(shared, watch) {
            shared.fail(error);
        }
        if shared.is_ending() {
            watch.ends_early();
        }
    });
    match shared.lock().failure.take() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Gathers results as they come, until all are there or the pipeline ends early.
fn gather_all(
    shared: &PipelineContext<'_>,
    watch: &dyn PipelineWatch,
) -> Result<(), PipelineError> {
    let mut gather = shared.gather();
    loop {
        if watch.cancelled() {
            return Err(PipelineError::Cancelled);
        }
        let mut state = shared.lock();
        if let Some((gather, k)) = gather.as_mut().zip(state.next_result()) {
            drop(state);
            gather.append(shared, k)?;
            continue;
        }
        if shared.is_ending() || state.is_over() {
            return Ok(());
        }
        shared.wait(&mut state);
        let standing = state.standing();
        drop(state);
        watch.standing(&standing);
        shared.limit()?;
    }
}

/// Does `work`, which ends early once the end is asked for.
fn while_watched<T: Send>(
    shared: &PipelineContext<'_>,
    watch: &dyn PipelineWatch,
    work: impl FnOnce() -> Result<T, PipelineError> + Send,
) -> Result<T, PipelineError> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let working = spawn_scoped(scope, "merge", || {
            let made = work();
            over.store(true, Ordering::Relaxed);
            shared.wake();
            made
        });
        let working = working.map_err(PipelineError::file(shared.folder.path()))?;
        // A thread that panics is finished, and wakes no other.
        let is_over = || over.load(Ordering::Relaxed) || working.is_finished();
        while !is_over() {
            if watch.cancelled() {
                shared.fail(PipelineError::Cancelled);
            }
            let mut state = shared.lock();
            if !is_over() {
                shared.wait(&mut state);
            }
        }
        working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn note_of(input: &PipelineInput) -> InputNote {
    InputNote { name: JournalText(input.name.clone().into_bytes()), file: input.note }
}

fn begin(
    settings: &PipelineSettings,
    folder: &WorkPaths,
    notes: Vec<InputNote>,
) -> Result<(PipelineJournal, PipelineProgress), PipelineError> {
    folder.clear()?;
    let header = JournalHeader::new(settings.command.clone(), settings.work(), notes);
    let journal = PipelineJournal::create(&folder.journal(), &header)?;
    folder.create()?;
    Ok((journal, PipelineProgress::default()))
}

/// Gives the folder back: the output has its name. The journal goes last.
///
/// # Errors
/// Files that can't be removed.
pub fn finish(folder: &Path) -> Result<(), PipelineError> {
    WorkPaths::new(folder).clear()
}
