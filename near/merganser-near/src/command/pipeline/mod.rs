//! `merganser pipeline`.

mod page;
mod watch;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_map::MapInput;
use merganser_pipeline::{
    self, InputSource, PipelineError, PipelineOutcome, PipelineReport, PipelineSettings,
};
use merganser_results::kept::ReportFile;
use merganser_results::pipeline::{JOURNAL_NAME, PARTIAL_NAME, PARTS_NAME, left_in};
use merganser_results::unfinished::{ResultAttributes, Target, WorkFolder, note_of, publish};
use merganser_shell::apart::{precious, refuse_overwriting};
use merganser_shell::config::ReportForm;
use merganser_shell::failure::Failure;
use merganser_shell::input::{Input, OpenInputs};
use merganser_shell::results::tell;
use merganser_shell::signals::Cancel;
use merganser_shell::{failure, shown};
use merganser_sort::Budget;
use merganser_sort::journal::{CommandNote, FileNote, JournalText};
use merganser_sort::run::magic::ContentKind;
use merganser_storage::Directory;

use crate::config::PipelineConfig;
use crate::sentences::Told;

/// Runs the pipeline, or continues it.
pub(super) fn run(config: &PipelineConfig, cancel: &Cancel) -> Result<(), Failure> {
    failure::offer_no_decompress();
    let job = PipelineJob {
        inputs: &config.inputs,
        content: config.content(),
        output: &config.output,
        report: config.report.as_ref(),
        quiet: config.quiet,
        settings: &|folder, command, streams| config.settings(folder, command, streams),
        finish: &|_, _| Ok(()),
    };
    execute(&job, cancel)
}

/// A pipeline into a file.
pub(super) struct PipelineJob<'a> {
    /// The inputs, in order.
    pub inputs: &'a [Input],
    /// What they should hold.
    pub content: ContentKind,
    /// The result.
    pub output: &'a Path,
    /// The report's file, and its kind.
    pub report: Option<&'a (PathBuf, ReportForm)>,
    /// No progress.
    pub quiet: bool,
    /// Its settings for work in a folder, and whether an input has no size.
    pub settings: &'a dyn Fn(PathBuf, CommandNote, bool) -> PipelineSettings,
    /// The last step before the result gets its name, given the folder of the work and the file. It is repeated if the
    /// command is killed in it.
    pub finish: &'a dyn Fn(&Path, &Path) -> Result<(), Failure>,
}

/// Runs a pipeline, or continues it.
pub(super) fn execute(job: &PipelineJob<'_>, cancel: &Cancel) -> Result<(), Failure> {
    let report_file = report_file(job)?;
    let target = Target::new(job.output)?;
    let replaced = target.check_file()?;
    let cancels = watch::Cancels { command: cancel.clone(), reading: Cancel::default() };
    let inputs = open(job, &cancels.reading)?;
    let replaces = replaced.as_ref().map(|old| note_of(&old.found));
    refuse_input(&target, replaces.as_ref(), &inputs)?;
    let attributes = replaced.as_ref().map_or_else(ResultAttributes::of_new, |old| old.attributes);
    let streams = inputs.iter().any(|input| matches!(input.source, InputSource::Stream(_)));
    let work = WorkFolder::open(&target)?;
    let settings = (job.settings)(work.path().to_owned(), note(&target, attributes), streams);
    settings.check().map_err(|error| PipelineError::from(error).told())?;
    refuse_foreign_work(&work)?;
    refuse_stream_of_before(&work)?;
    let look_again = || job.inputs.iter().map(file_note).collect();
    let watch = watch::on_stderr(&settings, job.quiet, cancels);
    let ran = merganser_pipeline::run(&settings, inputs, &look_again, &*watch);
    drop(watch);
    let PipelineOutcome { partial, report } = match ran {
        Ok(outcome) => outcome,
        Err(error) => return Err(ended_early(error, &target, &work)),
    };
    if report.continued && !partial.exists() {
        return after_the_end(&target, work);
    }
    (job.finish)(work.path(), &partial).map_err(|failure| with_left(failure, &target, &work))?;
    publish(&partial, &target, replaces.as_ref(), attributes).map_err(|error| {
        match error.kind() {
            // Its text has the name.
            io::ErrorKind::AlreadyExists => Failure::named(&error),
            _ => Failure::on(target.shown(), &error),
        }
    })?;
    merganser_pipeline::finish(work.path()).map_err(|error| match error.told() {
        Failure::Error(why) => {
            format!("the result is complete, but what is left of the work is not removed: {why}")
                .into()
        }
        other => other,
    })?;
    work.close()?;
    match report_file {
        Some((file, form)) => Ok(file.write(&report_text(job, form, &settings, &report))?),
        None => Ok(()),
    }
}

/// The inputs, each with the file that it is now. `reading` ends reads that wait.
fn open(
    job: &PipelineJob<'_>,
    reading: &Cancel,
) -> Result<Vec<merganser_pipeline::PipelineInput>, Failure> {
    // Their content is often read twice, by a cut and by a stage, so through the page cache.
    let open = OpenInputs::of_map();
    let ready = |input: &Input| {
        let before = file_note(input);
        let (source, note) = match input.open_for_sort(&open, reading)? {
            merganser_sort::run::SortInput::Storage(storage) => {
                // No partition is cut before the last input is known to be one.
                MapInput::detect(Arc::clone(&storage), job.content, &Budget::new(0))?;
                (InputSource::File(storage), before)
            }
            merganser_sort::run::SortInput::Stream { reader, .. } => {
                (InputSource::Stream(reader), None)
            }
            merganser_sort::run::SortInput::Packed(_) => {
                unreachable!("inputs are opened as they are")
            }
        };
        Ok(merganser_pipeline::PipelineInput { name: input.to_string(), note, source })
    };
    job.inputs.iter().map(ready).collect()
}

/// The file that an input is now; `None` if it is no file with a name.
fn file_note(input: &Input) -> Option<FileNote> {
    match input {
        Input::Stdin => None,
        Input::File(path) => {
            fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|found| note_of(&found))
        }
    }
}

/// An input is never changed, not even by the output's name.
fn refuse_input(
    target: &Target,
    replaces: Option<&FileNote>,
    inputs: &[merganser_pipeline::PipelineInput],
) -> Result<(), Failure> {
    let is_it = |note: &FileNote| replaces.is_some_and(|old| old.is_same_file(note));
    if inputs.iter().filter_map(|input| input.note.as_ref()).any(is_it) {
        let shown = target.shown().display();
        return Err(format!("{shown}: is an input; give -o another name").into());
    }
    Ok(())
}

/// The command line and its surroundings, so that a later command can name them.
fn note(target: &Target, attributes: ResultAttributes) -> CommandNote {
    let here = std::env::current_dir().unwrap_or_default();
    CommandNote {
        words: std::env::args_os().map(JournalText::from).collect(),
        folder: JournalText::from(here.as_os_str()),
        output: JournalText::from(target.path().as_os_str()),
        view: false,
        mode: attributes.mode,
        owner: attributes.owner,
    }
}

/// Whether a pipeline writes a file of this name into its folder.
fn is_of_pipeline(name: &str) -> bool {
    let name = name.strip_suffix(".new").unwrap_or(name);
    [JOURNAL_NAME, PARTIAL_NAME, PARTS_NAME].contains(&name)
}

/// A folder that holds other work is not this command's.
fn refuse_foreign_work(work: &WorkFolder) -> Result<(), Failure> {
    let files = work.directory()?;
    let names = files.list().map_err(|error| Failure::named(&error))?;
    let has_journal = names.iter().any(|name| name == JOURNAL_NAME);
    if has_journal && names.iter().all(|name| is_of_pipeline(name)) {
        return Ok(());
    }
    // A kill before the journal had its name leaves nothing else.
    if names.iter().all(|name| name.strip_suffix(".new") == Some(JOURNAL_NAME)) {
        return Ok(());
    }
    Ok(work.clear(&tell)?)
}

/// The work of a pipe that was read before can't be continued, and nothing can give its bytes again.
fn refuse_stream_of_before(work: &WorkFolder) -> Result<(), Failure> {
    let Some(left) = left_in(work.path())? else { return Ok(()) };
    let is_published = left.merged && !work.path().join(PARTIAL_NAME).exists();
    if !left.of_stream || left.ran == 0 || is_published {
        return Ok(());
    }
    let shown = shown::name(work.path());
    Err(format!(
        "{shown}: holds what an interrupted pipeline made of a pipe ({} of {} partitions), perhaps the only copy; save what you need, then move the folder away",
        left.finished,
        left.partitions()
    )
    .into())
}

/// The sentence of an error, and what is left of the work.
fn ended_early(error: PipelineError, target: &Target, work: &WorkFolder) -> Failure {
    let changed = matches!(error, PipelineError::Changed { .. });
    let has_log = matches!(&error, PipelineError::Stage(failure) if failure.log.is_some());
    let failure = error.told();
    if changed {
        return failure.and(Some(format!(
            "give the command as it was to continue, or move {} away to begin again",
            shown::name(work.path())
        )));
    }
    let Ok(Some(left)) = left_in(work.path()) else { return failure };
    if left.ran == 0 && !has_log {
        // Nothing is lost by beginning again.
        let _ = merganser_pipeline::finish(work.path());
        return failure;
    }
    with_left(failure, target, work)
}

/// Adds what is left of the work.
fn with_left(failure: Failure, target: &Target, work: &WorkFolder) -> Failure {
    let Ok(Some(left)) = left_in(work.path()) else { return failure };
    let also = match left.of_stream {
        true => {
            format!(
                "an input is a stream, so nothing can be continued; what was made of it is in {}, perhaps only there: save what you need, then remove the folder",
                shown::name(work.path())
            )
        }
        false => format!(
            "{} of {} partitions are done: repeat the command to continue, or see 'merganser recover {}'",
            left.finished,
            left.partitions(),
            shown::shell_word(target.shown())
        ),
    };
    failure.and(Some(also))
}

/// The output was whole and has got its name, or it is gone.
fn after_the_end(target: &Target, work: WorkFolder) -> Result<(), Failure> {
    let is_there = target.found()?.is_some();
    merganser_pipeline::finish(work.path()).map_err(Told::told)?;
    work.close()?;
    let shown = target.shown().display();
    if is_there {
        failure::notice(&format!("{shown}: was finished before; nothing is left to do"));
        return Ok(());
    }
    let text = "was finished by an earlier command, and has gone since; repeat the command to make it again";
    Err(format!("{shown}: {text}").into())
}

/// The report's file, if one is wanted: one that can't be written is an error now, not after the run.
fn report_file(job: &PipelineJob<'_>) -> Result<Option<(ReportFile, ReportForm)>, Failure> {
    let Some((path, form)) = job.report else { return Ok(None) };
    refuse_overwriting("--report", path, precious(job.inputs, Some(job.output)))?;
    Ok(Some((ReportFile::open(path)?, *form)))
}

fn report_text(
    job: &PipelineJob<'_>,
    form: ReportForm,
    settings: &PipelineSettings,
    report: &PipelineReport,
) -> String {
    match form {
        ReportForm::Html => page::page(&shown::name(job.output), settings, report),
        ReportForm::Json => {
            format!("{:#}\n", serde_json::json!({ "report_version": 1, "pipeline": report }))
        }
    }
}
