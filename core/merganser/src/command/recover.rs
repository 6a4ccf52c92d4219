//! `merganser recover`: what interrupted commands left, and what to do with it.
//!
//! It looks at a leftover, decides what it is ([`judge`], which also decides for the commands that would
//! remove it), and prints what the user can do. A user may follow that literally, so a removal is advised
//! only where nothing is lost with it, and a command is one of [`AdvisedCommand`]'s, never a text that was
//! found.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_results::ResultsError;
use merganser_results::pipeline::{self, Left};
use merganser_results::unfinished::{
    NextStep, Verdict, WorkContents, claimed_name, is_work_name, judge, work_name,
};
use merganser_shell::failure::Failure;
use merganser_shell::results::told;
use merganser_shell::{shown, standard};
use merganser_sort::journal::{JournalText, SortJournal, SortPhase};
use merganser_sort::output::{PARTIAL_NAME, Resume};
use merganser_sort::view::{CONSUMED_NAME, MANIFEST_NAME, consumed_into};
use merganser_storage::Directory;
use merganser_storage::file::{FileDirectory, own, unpublished_name_of};
use serde::Serialize;

use crate::advised::AdvisedCommand;
use crate::args::RecoverArgs;

/// Something that an interrupted command left.
#[derive(Debug, Serialize)]
struct Leftover {
    /// Where it is.
    path: String,
    /// Its kind: `sort`, `copy`, `view`, `pipeline`, `input`, `file` or `unknown`.
    kind: &'static str,
    /// Number of the user who owns it.
    owner: u32,
    /// Bytes that it takes on the disk.
    bytes: u64,
    /// Whether a process works on it now.
    in_use: bool,
    /// Whether it holds records that exist nowhere else.
    only_copy: bool,
    /// A description: its purpose, and the progress of the work.
    what: String,
    /// The command that continues the work, or removes what is left of it, for a shell.
    command: Option<String>,
    /// The same, word by word.
    argv: Option<Vec<JournalText>>,
}

/// Prints what is left at a place.
///
/// # Errors
/// When the place can't be looked at.
pub fn run(typed: &RecoverArgs) -> Result<(), Failure> {
    let found = leftovers(&typed.path)?;
    let text = if typed.json {
        format!("{:#}\n", serde_json::json!({ "leftovers": found }))
    } else {
        as_text(&typed.path, &found)
    };
    standard::print(text)
}

fn as_text(path: &Path, found: &[Leftover]) -> String {
    if found.is_empty() {
        return format!("{}: no interrupted work\n", shown::escaped(&shown::name(path), &[]));
    }
    let mut text = String::new();
    for left in found {
        let mine = if left.owner == own::user() { "yours" } else { "of another user" };
        let _ = writeln!(text, "{}", shown::escaped(&left.path, &[]));
        let _ = writeln!(text, "  what:  {}", shown::escaped(&left.what, &[]));
        let _ = writeln!(
            text,
            "  whose: user {} ({mine}); {} bytes on the disk",
            left.owner, left.bytes
        );
        if left.only_copy {
            let _ = writeln!(
                text,
                "  keep:  it has records that are nowhere else, as far as can be seen"
            );
        }
        match &left.command {
            _ if left.in_use => {
                let _ = writeln!(text, "  next:  nothing; a process works on it now");
            }
            Some(command) => {
                // It has no control characters, and must not lose its middle.
                let _ = writeln!(text, "  next:  {command}");
            }
            None => {}
        }
    }
    text
}

/// Added to the description of work that replaces no file.
const TAKEN: &str = "; another file has the result's name, so move that away first";
/// Added to the description of other work.
const REPLACED: &str = "; it replaces the file that has the result's name now";

/// Finds leftovers in a folder, or next to a result.
fn leftovers(path: &Path) -> Result<Vec<Leftover>, Failure> {
    let is_leftover = |path: &Path| path.file_name().is_some_and(|name| result_of(name).is_some());
    let is_view = path.join(MANIFEST_NAME).exists() || path.join(CONSUMED_NAME).exists();
    let absolute = std::path::absolute(path).map_err(|error| Failure::on(path, &error))?;
    let name = absolute.file_name().unwrap_or_default();
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    if path.is_dir() && !is_view && !is_leftover(path) {
        let mut found = in_folder(path, None)?;
        // It may have taken the name of a view that was being made.
        let next_to_it = folder.join(work_name(name));
        if next_to_it.symlink_metadata().is_ok() {
            found.push(work(&next_to_it));
        }
        return Ok(found);
    }
    in_folder(folder, Some(&result_of(name).unwrap_or_else(|| name.to_owned())))
}

/// The name that a leftover belongs to.
fn result_of(name: &OsStr) -> Option<OsString> {
    is_work_name(name).or_else(|| claimed_name(name)).or_else(|| unpublished_name_of(name))
}

/// The leftovers in `folder`, of the result or input `only` if that is given.
fn in_folder(folder: &Path, only: Option<&OsStr>) -> Result<Vec<Leftover>, Failure> {
    let on_folder = |error: io::Error| Failure::on(folder, &error);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(on_folder)? {
        let name = entry.map_err(on_folder)?.file_name();
        let path = folder.join(&name);
        let belongs_to = result_of(&name).unwrap_or_else(|| name.clone());
        if only.is_some_and(|only| only != belongs_to) {
            continue;
        }
        let left = if is_work_name(&name).is_some() {
            Some(work(&path))
        } else if let Some(input) = claimed_name(&name) {
            Some(input_left(&path, &folder.join(input), folder))
        } else if unpublished_name_of(&name).is_some() {
            Some(unpublished(&path))
        } else if path.is_dir() {
            view(&path)
        } else {
            None
        };
        found.extend(left);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

impl Leftover {
    fn new(path: &Path, kind: &'static str, what: String) -> Self {
        let owner = path.symlink_metadata().map_or(u32::MAX, |found| found.uid());
        Leftover {
            path: shown::name(path),
            kind,
            owner,
            bytes: bytes_of(path),
            in_use: is_locked(path),
            only_copy: false,
            what,
            command: None,
            argv: None,
        }
    }

    /// Advises a command. While a process works there, none is right.
    fn advise(mut self, command: Option<AdvisedCommand>) -> Self {
        let command = command.filter(|_| !self.in_use);
        self.argv = command.as_ref().map(AdvisedCommand::words);
        self.command = command.as_ref().map(AdvisedCommand::line);
        self
    }
}

/// A folder of unfinished work.
fn work(path: &Path) -> Leftover {
    let read = || {
        let files: Arc<dyn Directory> =
            FileDirectory::open_own(path).map_err(ResultsError::Named)?;
        WorkContents::of(path, &files)
    };
    match read() {
        Ok(contents) => read_work(path, &contents),
        Err(error) => Leftover::new(
            path,
            "unknown",
            format!("unfinished work that can't be read: {}", told(&error)),
        ),
    }
}

/// The kind of a folder of unfinished work, and the advice on it.
fn read_work(path: &Path, contents: &WorkContents) -> Leftover {
    let verdict = judge(&contents.facts);
    let what = || what(verdict, contents);
    let mut left = match (&contents.journal, &contents.resume, &contents.pipeline) {
        (Some(journal), ..) if matches!(verdict, Verdict::Sort(_) | Verdict::Begun) => {
            of_sort(path, journal, contents.resume.as_ref())
        }
        (_, Some(resume), _) if matches!(verdict, Verdict::Copy { .. }) => of_copy(path, resume),
        (.., Some(pipeline)) if matches!(verdict, Verdict::Pipeline { .. }) => {
            of_pipeline(path, pipeline, verdict)
        }
        _ if verdict == Verdict::Foreign => Leftover::new(path, "unknown", what()),
        _ => Leftover::new(path, "view", what()),
    };
    left.only_copy = verdict.may_be_only_copy() && verdict != Verdict::Foreign;
    match verdict.next_step() {
        NextStep::Repeat | NextStep::Keep => left,
        NextStep::Remove => left.advise(AdvisedCommand::remove_folder(path)),
        NextStep::CopyOut => {
            let result = path.file_name().and_then(is_work_name).unwrap_or_default();
            let mut name = result;
            name.push(".recovered");
            let view = std::path::absolute(path).unwrap_or_default();
            let output = view.with_file_name(name);
            let is_free = output.symlink_metadata().is_err();
            let command = AdvisedCommand::materialize(&view, &output, false);
            left.advise(command.filter(|_| is_free))
        }
    }
}

/// The description of a folder without a journal.
fn what(verdict: Verdict, contents: &WorkContents) -> String {
    let stranger = shown::name(Path::new(contents.stranger.as_deref().unwrap_or_default()));
    let trouble = contents.trouble.as_ref();
    let trouble = trouble.map(|trouble| format!(" ({})", told(trouble))).unwrap_or_default();
    let whole = "; it is a whole view, which can be copied to a file";
    match verdict {
        Verdict::Foreign => format!(
            "a folder with '{stranger}', which no merganser command writes there; it is not merganser's, so leave it to its owner"
        ),
        Verdict::Empty => "a folder without records, which an interrupted command left".to_owned(),
        Verdict::Copies { inputs_whole: true } => {
            "a view that was not finished; its inputs are whole".to_owned()
        }
        Verdict::Copies { .. } => "a view that was not finished; its inputs are not all there as they were, so these may be the only copy of their records; the same command would begin again, and remove this".to_owned(),
        Verdict::Orphaned { whole_view } => format!(
            "records of an interrupted command whose journal is lost or damaged{trouble}; keep the folder, its inputs may have lost these records{}",
            if whole_view { whole } else { "; restore the journal from a copy" }
        ),
        Verdict::Unexplained { whole_view } => format!(
            "records of an interrupted command; no file here says which, or whether they are anywhere else{}",
            if whole_view { whole } else { "; remove it only if you know that its inputs are whole" }
        ),
        Verdict::Begun | Verdict::Sort(_) | Verdict::Copy { .. } | Verdict::Pipeline { .. } => {
            unreachable!("these have a journal")
        }
    }
}

/// A sort that consumes its inputs.
fn of_sort(path: &Path, journal: &SortJournal, resume: Option<&Resume>) -> Leftover {
    let mut left = Leftover::new(path, "sort", story(journal, resume));
    let output = Path::new(journal.command.output.as_os_str());
    if journal.phase != SortPhase::Delivered && output.symlink_metadata().is_ok() {
        let onto_input =
            journal.inputs.iter().any(|input| Path::new(input.path.as_os_str()) == output);
        let refused = journal.command.view || onto_input;
        left.what.push_str(if refused { TAKEN } else { REPLACED });
    }
    let command = repeated(&mut left, is_in_place(path, output), AdvisedCommand::sort(journal));
    left.advise(command)
}

/// A copy of a view to a file.
fn of_copy(path: &Path, resume: &Resume) -> Leftover {
    let (view, output) = (Path::new(resume.view.as_os_str()), Path::new(resume.output.as_os_str()));
    let done = if resume.complete { "complete" } else { "not complete" };
    let mut left = Leftover::new(
        path,
        "copy",
        format!(
            "a copy of the view {} to {}, {done}: {} of {} bytes are written",
            shown::name(view),
            shown::name(output),
            resume.written,
            resume.total
        ),
    );
    if path.join(PARTIAL_NAME).exists() && output.symlink_metadata().is_ok() {
        left.what.push_str(REPLACED);
    }
    let command = AdvisedCommand::materialize(view, output, resume.consume);
    let command = repeated(&mut left, is_in_place(path, output), command);
    left.advise(command)
}

/// The command that continues work, or why none is given.
fn repeated(
    left: &mut Leftover,
    in_place: bool,
    command: Option<AdvisedCommand>,
) -> Option<AdvisedCommand> {
    if !in_place {
        left.what.push_str("; the folder was moved or copied here, so move it back next to its result, where the same command continues");
        return None;
    }
    if command.is_none() {
        left.what.push_str("; repeat its command with the same options to continue");
    }
    command
}

/// Whether the folder of unfinished work `path` is where the command makes it that writes `output`.
fn is_in_place(path: &Path, output: &Path) -> bool {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let folder = fs::canonicalize(parent.unwrap_or(Path::new("."))).ok();
    folder.as_deref() == output.parent()
        && path.file_name().and_then(is_work_name).as_deref() == output.file_name()
}

/// A pipeline, which continues where it was.
fn of_pipeline(path: &Path, work: &Left, verdict: Verdict) -> Leftover {
    let output = shown::name(Path::new(work.command.output.as_os_str()));
    let stages = work.stages.join(", ");
    let is_blast = work.command.words.get(1).is_some_and(|word| word.0 == b"blast");
    let who = if is_blast { "a BLAST search" } else { "a pipeline" };
    let far = match (work.merged, work.finished) {
        (true, _) if is_blast => {
            "all partitions are searched, and its output is made next".to_owned()
        }
        (true, _) => "its output is complete, and gets its name next".to_owned(),
        (false, finished) => {
            format!("{finished} of {} partitions passed all stages", work.partitions())
        }
    };
    // The commands of its stages may be anything, so they are not advised.
    let journal = shown::name(&path.join(pipeline::JOURNAL_NAME));
    let inputs = match verdict {
        Verdict::Pipeline { inputs_whole: true } => {
            format!("its inputs are whole; repeat its command to continue ({journal} has it)")
        }
        _ if work.of_stream => "it read a pipe, whose bytes may be here alone, and can't continue; save what you need of them before you remove the folder".to_owned(),
        _ => "its inputs are not all there as they were, so this may be the only copy of what was made of them".to_owned(),
    };
    let mut left =
        Leftover::new(path, "pipeline", format!("{who} into {output} ({stages}): {far}; {inputs}"));
    left.bytes = work.bytes;
    left
}

/// How far a sort that consumes its inputs was, and where its records are.
fn story(journal: &SortJournal, resume: Option<&Resume>) -> String {
    let total: u64 = journal.inputs.iter().map(|input| input.file.size).sum();
    let taken: u64 = journal.inputs.iter().map(|input| input.taken).sum();
    let output = shown::name(Path::new(journal.command.output.as_os_str()));
    let inputs = match &journal.inputs[..] {
        [input] => shown::name(Path::new(input.path.as_os_str())),
        inputs => format!("{} inputs", inputs.len()),
    };
    let head = format!("sort --consume of {inputs} into {output}");
    match (journal.phase, resume) {
        (SortPhase::Sorting, _) => format!(
            "{head}: {taken} of {total} bytes are sorted and here, the rest is in the inputs"
        ),
        (SortPhase::Sorted, _) => format!("{head}: all {total} bytes are sorted and here"),
        (SortPhase::Removed, Some(resume)) => format!(
            "{head}: all {total} bytes are here, {} of them in the output that is being written",
            resume.written
        ),
        (SortPhase::Removed, None) => {
            format!("{head}: all {total} bytes are sorted and here, the inputs are removed")
        }
        (SortPhase::Delivered, _) => {
            format!("{head}: the result is there; only leftovers are here")
        }
    }
}

/// An input that has lost bytes already, because its sort gave them back.
fn input_left(path: &Path, input: &Path, folder: &Path) -> Leftover {
    let what = format!(
        "the rest of {}, an input of a sort --consume; its other records are in the folder of that sort",
        shown::name(input)
    );
    let mut left = Leftover::new(path, "input", what);
    left.only_copy = true;
    let command = owner_of(input, folder);
    if command.is_none() {
        left.what.push_str(", which is next to the sort's result");
    }
    left.advise(command)
}

/// The command whose journal, in one of the work folders of `folder`, names `input`.
fn owner_of(input: &Path, folder: &Path) -> Option<AdvisedCommand> {
    let input = fs::canonicalize(folder).ok()?.join(input.file_name()?);
    let entries = fs::read_dir(folder).ok()?.flatten();
    let works = entries.filter(|entry| is_work_name(&entry.file_name()).is_some());
    works.into_iter().find_map(|work| {
        let files: Arc<dyn Directory> = FileDirectory::open_own(work.path()).ok()?;
        let journal = SortJournal::read(&files).ok()??;
        let output = Path::new(journal.command.output.as_os_str());
        let is_its = journal.inputs.iter().any(|known| Path::new(known.path.as_os_str()) == input);
        let is_known = is_its && is_in_place(&work.path(), output);
        is_known.then(|| AdvisedCommand::sort(&journal)).flatten()
    })
}

/// A file that was being given its name.
fn unpublished(path: &Path) -> Leftover {
    let found = path.symlink_metadata().ok();
    let is_own = found.as_ref().is_some_and(|found| found.is_file() && found.uid() == own::user());
    if is_own && found.is_some_and(|found| found.nlink() > 1) {
        let what = "a second name of a result, which a killed command left".to_owned();
        return Leftover::new(path, "file", what).advise(AdvisedCommand::remove_file(path));
    }
    let what = "a result that was not given its name, perhaps not whole; the same command makes it again, if its inputs are still there";
    let mut left = Leftover::new(path, "file", what.to_owned());
    left.only_copy = true;
    left
}

/// A view that is being consumed, or that still has the journal of its sort.
fn view(path: &Path) -> Option<Leftover> {
    let opened = FileDirectory::open(path).ok()?;
    let is_own = opened.file().metadata().is_ok_and(|found| own::check_folder(&found).is_ok());
    let folder: Arc<dyn Directory> = opened;
    let place = fs::canonicalize(path).ok()?;
    let (mut left, command) = if let Ok(Some(output)) = consumed_into(&folder) {
        let output = Path::new(output.as_os_str());
        let what = format!(
            "a view that is being consumed into {}; a part of it may be there only",
            shown::name(output)
        );
        let mut left = Leftover::new(path, "view", what);
        left.only_copy = true;
        // Without its other half, the marker alone proves nothing.
        let command = match is_copy_of(&place, output) {
            true => AdvisedCommand::materialize(&place, output, true),
            false => None,
        };
        if command.is_none() {
            left.what.push_str("; the folder of that copy is not next to it, or says otherwise");
        }
        (left, command)
    } else {
        let journal =
            path.join(MANIFEST_NAME).exists().then(|| SortJournal::read(&folder).ok())???;
        let what = "a whole view that still has the journal of the sort that made it".to_owned();
        let is_its = journal.command.view && Path::new(journal.command.output.as_os_str()) == place;
        let command = is_its.then(|| AdvisedCommand::sort(&journal)).flatten();
        (Leftover::new(path, "view", what), command)
    };
    if !is_own {
        left.what.push_str("; other users can write to it, so no command of its files is given");
    }
    Some(left.advise(command.filter(|_| is_own)))
}

/// Whether a folder of unfinished work next to `output` says that the view at `place` is consumed into it.
fn is_copy_of(place: &Path, output: &Path) -> bool {
    let Some(name) = output.file_name() else { return false };
    let Ok(files) = FileDirectory::open_own(output.with_file_name(work_name(name))) else {
        return false;
    };
    let files: Arc<dyn Directory> = files;
    let resume = Resume::read(&files).ok().flatten();
    resume.is_some_and(|resume| {
        resume.consume
            && Path::new(resume.view.as_os_str()) == place
            && Path::new(resume.output.as_os_str()) == output
    })
}

/// Bytes on the disk of a file, or of the files in a folder.
fn bytes_of(path: &Path) -> u64 {
    let of_file = |path: PathBuf| path.symlink_metadata().map_or(0, |found| found.blocks() * 512);
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| of_file(entry.path())).sum(),
        Err(_) => of_file(path.to_owned()),
    }
}

/// Whether a process holds the lock that tells work in progress from a leftover. A shared lock stops no
/// command that looks for work at the same moment.
fn is_locked(path: &Path) -> bool {
    let is_regular = path.symlink_metadata().is_ok_and(|found| found.is_file() || found.is_dir());
    is_regular && File::open(path).is_ok_and(|file| file.try_lock_shared().is_err())
}
