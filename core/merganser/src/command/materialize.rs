//! `merganser materialize`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_results::output::{ResultOutput, codec_by_name};
use merganser_results::unfinished::{
    ResultAttributes, Target, WorkError, WorkFolder, holder_of, lock_file, note_of, publish,
};
use merganser_shell::apart::Precious;
use merganser_shell::args::RowForm;
use merganser_shell::failure::Failure;
use merganser_shell::opened::{open_folder, open_view};
use merganser_shell::output::{self, refuse_compressed};
use merganser_shell::results::tell;
use merganser_shell::signals::Cancel;
use merganser_shell::{failure, progress, report, shown};
use merganser_sort::activity::Activity;
use merganser_sort::budget::OwnerPeak;
use merganser_sort::journal::{FileNote, JournalText, SortJournal, SortPhase};
use merganser_sort::output::{Materialize, PARTIAL_NAME, Resume, materialize};
use merganser_sort::reduced::ResultView;
use merganser_sort::{Budget, Progress};
use merganser_storage::Directory;
use serde_json::json;

use super::result;
use crate::config::MaterializeConfig;

/// Why `--consume` writes no compressed file.
pub const CONSUME_CONTINUES: &str =
    "--consume continues at a place in the output, which a compressed one does not have";

/// Copies a view out.
pub fn run(config: &MaterializeConfig, cancel: &Cancel) -> Result<(), Failure> {
    if config.consume {
        refuse_compressed(&config.output, CONSUME_CONTINUES)?;
    }
    let (view, output) = (&config.view, &config.output);
    let precious = || [Precious::Input(view), Precious::Result(output)];
    let files = || vec![view.clone(), output.clone()];
    let watch = report::ReportWatch::start(config.report.as_ref(), precious, files)?;
    let activity = watch.activity();
    let _worker = activity.enroll("write");
    let progress = progress::on_stderr(config.quiet, cancel);
    let phases = activity.phases(&*progress);
    let known = |(bytes, memory)| (Some(bytes), memory);
    let (bytes, memory) = if let Some(result) = map_result(config)? {
        reduced(config, &result, cancel, &phases)?
    } else if !config.consume && is_streamed(&config.output)? {
        known(write_through(config, cancel, &phases)?)
    } else {
        known(to_file(config, &phases)?)
    };
    drop(phases);
    drop(progress);
    watch.finish(|| report::CommandFigures {
        command: "materialize",
        inputs: vec![config.view.display().to_string()],
        output: config.output.display().to_string(),
        output_bytes: bytes,
        memory_limit_bytes: config.memory_bytes,
        memory,
        detail: json!({ "output_bytes": bytes }),
        ..report::CommandFigures::default()
    })
}

/// Whether an output can only be written from its beginning to its end.
fn is_streamed(output: &Path) -> Result<bool, Failure> {
    Ok(codec_by_name(output)?.is_some() || ResultOutput::is_special(output)?)
}

/// The view as a map's result, if it is one. A view that is gone may have been consumed.
fn map_result(config: &MaterializeConfig) -> Result<Option<ResultView>, Failure> {
    let result = match config.view.is_dir() {
        true => result::open(&config.view, config.memory_bytes, config.threads)?,
        false => None,
    };
    match &result {
        None => result::refuse_form(config.form)?,
        Some(_) if config.consume => {
            let view = shown::name(&config.view);
            return Err(format!(
                "--consume: the rows of {view} are combined while they are copied, so its space can't be given back meanwhile; leave it out"
            )
            .into());
        }
        Some(_) => {}
    }
    Ok(result)
}

/// Writes the rows of a map's result. Their size is not known beforehand.
fn reduced(
    config: &MaterializeConfig,
    result: &ResultView,
    cancel: &Cancel,
    progress: &dyn Progress,
) -> Result<(Option<u64>, Vec<OwnerPeak>), Failure> {
    let mut output = output::open(Some(&config.output), cancel)?;
    progress.phase("reducing", None);
    let form = config.form.unwrap_or(RowForm::Tsv);
    result::write(result, &result::RowRange::default(), form, &mut output, progress)?;
    output.finish()?;
    Ok((None, Vec::new()))
}

/// Writes the view's bytes into a device or a named pipe.
fn write_through(
    config: &MaterializeConfig,
    cancel: &Cancel,
    progress: &dyn Progress,
) -> Result<(u64, Vec<OwnerPeak>), Failure> {
    let view = open_view(&config.view, config.memory_bytes, config.threads)?;
    let mut output = output::open(Some(&config.output), cancel)?;
    progress.phase("merging", Some(view.manifest().size_bytes));
    let mut stream = view.stream(0..u64::MAX)?;
    while let Some(bytes) = stream.next_bytes()? {
        output.write_all(bytes).map_err(|error| Failure::named(&error))?;
        progress.advance(bytes.len() as u64);
    }
    output.finish()?;
    Ok((view.manifest().size_bytes, Vec::new()))
}

/// Copies the view to a file that appears complete.
fn to_file(
    config: &MaterializeConfig,
    progress: &dyn Progress,
) -> Result<(u64, Vec<OwnerPeak>), Failure> {
    let target = Target::new(&config.output)?;
    let replaced = target.check_file()?;
    let work = WorkFolder::open(&target)?;
    let attributes = replaced.as_ref().map_or_else(ResultAttributes::of_new, |old| old.attributes);
    let replaces = replaced.as_ref().map(|old| note_of(&old.found));
    let goal = CopyGoal { target: &target, replaces, attributes, before: &|_| Ok(()) };
    let view_path = match fs::canonicalize(&config.view) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound && config.consume => {
            return after_the_view(config, work, &goal, &error, progress);
        }
        Err(error) => return Err(Failure::on(&config.view, &error)),
    };
    // The process that had the lock before may have made it, out of a view that is gone.
    if let Some(now) = target.found()?
        && !replaces.is_some_and(|then| then.is_same_file(&note_of(&now)))
    {
        return Err(WorkError::Taken(target.shown().to_owned()).into());
    }
    refuse_inside(&target, &view_path)?;
    let view: Arc<dyn Directory> = open_folder(&config.view)?;
    let _lock = if config.consume { Some(lock_view(&config.view, &view)?) } else { None };
    if config.consume {
        refuse_other_links(&config.view)?;
    }
    refuse_foreign_work(&work, &view_path)?;
    let copy = Copy {
        view: Activity::here().directory(view),
        view_path: view_path.clone(),
        work: &work,
        goal,
        consume: config.consume,
        memory_bytes: config.memory_bytes,
        threads: config.threads,
    };
    let copied = copy.run(progress).map_err(|failure| failure.and(what_is_left(config, &work)))?;
    if config.consume {
        remove_folder(&view_path)?;
        work.mark_finished()?;
        let files: Arc<dyn Directory> = work.directory()?;
        merganser_sort::output::forget(&files)?;
    }
    work.close()?;
    Ok(copied)
}

/// Where the records are after a failure, if they are not in the view alone.
fn what_is_left(config: &MaterializeConfig, work: &WorkFolder) -> Option<String> {
    let files: Arc<dyn Directory> = work.directory().ok()?;
    Resume::read(&files).ok()??;
    Some(format!(
        "every record is in {} and {}: repeat the command to continue, or see 'merganser recover {}'",
        shown::name(&config.view),
        shown::name(work.path()),
        shown::shell_word(&config.output)
    ))
}

/// The view is gone: either an earlier command consumed it to its end, or there never was one.
fn after_the_view(
    config: &MaterializeConfig,
    work: WorkFolder,
    goal: &CopyGoal<'_>,
    missing: &io::Error,
    progress: &dyn Progress,
) -> Result<(u64, Vec<OwnerPeak>), Failure> {
    let files: Arc<dyn Directory> = work.directory()?;
    let absolute = std::path::absolute(&config.view).map_err(|e| Failure::on(&config.view, &e))?;
    let is_its = |resume: &Resume| {
        let view = Path::new(resume.view.as_os_str());
        resume.complete && resume.consume && view.file_name() == absolute.file_name()
    };
    match Resume::read(&files)?.filter(is_its) {
        Some(resume) => {
            let path = work.path().join(PARTIAL_NAME);
            let give_name = |_: &_| goal.publish(&path);
            merganser_sort::output::finish(&files, &give_name, progress)?;
            work.mark_finished()?;
            merganser_sort::output::forget(&files)?;
            work.close()?;
            Ok((resume.total, Vec::new()))
        }
        None if work.was_finished()? && goal.target.found()?.is_some() => {
            let shown = config.output.display();
            failure::notice(&format!("{shown}: was finished before; nothing is left to do"));
            work.close()?;
            Ok((0, Vec::new()))
        }
        None => Err(Failure::on(&config.view, missing)),
    }
}

/// A view is removed once it is consumed, and an output in it would go with it.
fn refuse_inside(target: &Target, view: &Path) -> Result<(), Failure> {
    if !target.folder().starts_with(view) {
        return Ok(());
    }
    let shown = target.shown().display();
    Err(format!("{shown}: is inside the view; give -o a name outside of it").into())
}

/// A file with other hard links is a part of another copy of the view, whose content would vanish, too.
fn refuse_other_links(view: &Path) -> Result<(), Failure> {
    let on_view = |error: io::Error| Failure::on(view, &error);
    for entry in fs::read_dir(view).map_err(on_view)? {
        let entry = entry.map_err(on_view)?;
        let found = entry.metadata().map_err(on_view)?;
        if found.is_file() && found.nlink() > 1 {
            let name = shown::name(&entry.path());
            return Err(format!(
                "{name}: --consume: has other hard links, perhaps in a copy of the view, whose content would vanish, too; remove them, or leave out --consume"
            )
            .into());
        }
    }
    Ok(())
}

/// A folder that holds a sort is not this command's.
fn refuse_foreign_work(work: &WorkFolder, view: &Path) -> Result<(), Failure> {
    let files: Arc<dyn Directory> = work.directory()?;
    let names = files.list().map_err(|error| Failure::named(&error))?;
    let is_copy = |name: &String| {
        let name = name.strip_suffix(".new").unwrap_or(name);
        [PARTIAL_NAME, merganser_sort::output::RESUME_NAME].contains(&name)
    };
    if work.path() == view || names.iter().all(is_copy) {
        return Ok(());
    }
    Ok(work.clear(&tell)?)
}

/// Locks a view for this process, so that no other process reads or consumes it meanwhile. If the sort that made the
/// view was interrupted in its very last step, its journal is removed.
fn lock_view(shown: &Path, view: &Arc<dyn Directory>) -> Result<File, Failure> {
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_DIRECTORY);
    let folder = options.open(shown).map_err(|error| Failure::on(shown, &error))?;
    if !lock_file(&folder) {
        let by = holder_of(&folder).map(|by| by.to_string());
        let by = by.unwrap_or_else(|| "another process".to_owned());
        let shown = shown::name(shown);
        return Err(format!(
            "{shown}: --consume: {by} is reading or consuming this view now; wait for its end, or leave out --consume"
        )
        .into());
    }
    if SortJournal::read(view)?.is_some_and(|journal| journal.phase >= SortPhase::Removed) {
        SortJournal::remove(view)?;
    }
    Ok(folder)
}

/// Removes the folder of a view that was consumed, unless something else is in it.
fn remove_folder(view: &Path) -> Result<(), Failure> {
    match fs::remove_dir(view) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            let shown = view.display();
            failure::notice(&format!(
                "{shown}: stays, since it holds files that are no part of the view"
            ));
            Ok(())
        }
        Err(error) => Err(Failure::on(view, &error)),
        Ok(()) => {
            let parent = std::path::absolute(view).ok();
            let parent = parent.as_deref().and_then(Path::parent).unwrap_or(Path::new("/"));
            let synced = File::open(parent).and_then(|parent| parent.sync_all());
            synced.map_err(|error| Failure::on(parent, &error))
        }
    }
}

/// The result of a copy.
pub struct CopyGoal<'a> {
    /// Its name.
    pub target: &'a Target,
    /// The file that it replaces; another one is not replaced.
    pub replaces: Option<FileNote>,
    /// Its mode and owner.
    pub attributes: ResultAttributes,
    /// Called with the complete file before it gets its name.
    pub before: &'a dyn Fn(&Path) -> io::Result<()>,
}

impl CopyGoal<'_> {
    /// Gives the complete file its name.
    fn publish(&self, partial: &Path) -> io::Result<()> {
        (self.before)(partial)?;
        publish(partial, self.target, self.replaces.as_ref(), self.attributes)
    }
}

/// A view to be copied out to a file.
pub struct Copy<'a> {
    /// The view.
    pub view: Arc<dyn Directory>,
    /// Its path, without links.
    pub view_path: PathBuf,
    /// Where the copy grows.
    pub work: &'a WorkFolder,
    /// The result that it becomes.
    pub goal: CopyGoal<'a>,
    /// Whether the view is removed while it is copied.
    pub consume: bool,
    /// The memory budget.
    pub memory_bytes: u64,
    /// How many threads.
    pub threads: usize,
}

impl Copy<'_> {
    /// Copies. Returns the bytes of the file, and the peak memory of each owner.
    ///
    /// # Errors
    /// As [`materialize`]; when the name can't be taken.
    pub fn run(&self, progress: &dyn Progress) -> Result<(u64, Vec<OwnerPeak>), Failure> {
        let work = Activity::here().directory(self.work.directory()?);
        let partial = self.work.path().join(PARTIAL_NAME);
        let budget = Budget::new(self.memory_bytes);
        let what = Materialize {
            folder: &self.view,
            work: &work,
            publish: &|_| self.goal.publish(&partial),
            output: JournalText::from(self.goal.target.path().as_os_str()),
            view: JournalText::from(self.view_path.as_os_str()),
            consume: self.consume,
            budget: &budget,
            threads: self.threads,
            checkpoint_bytes: None,
        };
        let bytes = materialize(&what, progress)?;
        Ok((bytes, budget.owner_peaks()))
    }
}
