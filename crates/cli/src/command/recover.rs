//! `merganser recover`: what interrupted commands left, and what to do with it.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_node::pipeline::{self, Left};
use merganser_sort::journal::{CommandNote, Journal, Phase};
use merganser_sort::output::{PARTIAL_NAME, Resume, consumed_into};
use merganser_sort::view::MANIFEST_NAME;
use merganser_storage::Directory;
use merganser_storage::file::{FileDirectory, own, unpublished_name_of};
use serde::Serialize;

use super::pipeline::partitions_of;
use crate::args::RecoverArgs;
use crate::failure::Failure;
use crate::unfinished::{claimed_name, claimed_path, is_at, is_work_name, work_name};
use crate::{shown, standard};

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
    /// The command that continues the work, or removes what is left of it.
    command: Option<String>,
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
            let _ = writeln!(text, "  keep:  it has records that are nowhere else");
        }
        match &left.command {
            _ if left.in_use => {
                let _ = writeln!(text, "  next:  nothing; a process works on it now");
            }
            Some(command) => {
                let _ = writeln!(text, "  next:  {}", shown::escaped(command, &[]));
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
    let is_view = path.join(MANIFEST_NAME).exists()
        || path.join(merganser_sort::output::CONSUMED_NAME).exists();
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
        }
    }
}

/// A folder of unfinished work.
fn work(path: &Path) -> Leftover {
    match read_work(path) {
        Ok(left) => left,
        Err(failure) => Leftover::new(
            path,
            "unknown",
            format!(
                "unfinished work that can't be read: {}",
                failure.sentence().unwrap_or_default()
            ),
        ),
    }
}

fn read_work(path: &Path) -> Result<Leftover, Failure> {
    let folder: Arc<dyn Directory> =
        FileDirectory::open_own(path).map_err(|error| Failure::named(&error))?;
    let resume = Resume::read(&folder)?;
    let remove = || format!("rm -r {}", shown::shell_word(&shown::name(path)));
    if let Some(journal) = Journal::read(&folder)? {
        let untouched = journal.is_untouched() && !is_claimed(&journal);
        let mut left = Leftover::new(path, "sort", story(&journal, resume.as_ref()));
        left.only_copy = !untouched && journal.phase != Phase::Delivered;
        let output = Path::new(journal.command.output.as_os_str());
        if left.only_copy && output.symlink_metadata().is_ok() {
            let onto_input =
                journal.inputs.iter().any(|input| Path::new(input.path.as_os_str()) == output);
            let refused = journal.command.view || onto_input;
            left.what.push_str(if refused { TAKEN } else { REPLACED });
        }
        left.command = Some(command_line(&journal.command));
        return Ok(left);
    }
    if let Some(resume) = resume {
        let done = if resume.complete { "complete" } else { "not complete" };
        let mut left = Leftover::new(
            path,
            "copy",
            format!(
                "a copy of the view {} to {}, {done}: {} of {} bytes are written",
                shown::name(Path::new(resume.view.as_os_str())),
                shown::name(Path::new(resume.output.as_os_str())),
                resume.written,
                resume.total
            ),
        );
        left.only_copy = resume.consume;
        let output = Path::new(resume.output.as_os_str());
        if path.join(PARTIAL_NAME).exists() && output.symlink_metadata().is_ok() {
            left.what.push_str(REPLACED);
        }
        let consume = if resume.consume { " --consume" } else { "" };
        left.command = Some(format!(
            "merganser materialize {} -o {}{consume}",
            shown::shell_word(&shown::name(Path::new(resume.view.as_os_str()))),
            shown::shell_word(&shown::name(Path::new(resume.output.as_os_str())))
        ));
        return Ok(left);
    }
    if let Some(left) = pipeline::left_in(path)? {
        return Ok(of_pipeline(path, &left, remove()));
    }
    let what = "a view that was not finished; its inputs are whole".to_owned();
    Ok(Leftover { command: Some(remove()), ..Leftover::new(path, "view", what) })
}

/// A pipeline, which continues where it was.
fn of_pipeline(path: &Path, work: &Left, remove: String) -> Leftover {
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
            format!("{finished} of {} partitions passed all stages", partitions_of(work))
        }
    };
    let what = format!("{who} into {output} ({stages}): {far}; its inputs are whole");
    let mut left = Leftover::new(path, "pipeline", what);
    left.bytes = work.bytes;
    left.command = Some(if work.of_stream { remove } else { command_line(&work.command) });
    left
}

/// How far a sort that consumes its inputs was, and where its records are.
fn story(journal: &Journal, resume: Option<&Resume>) -> String {
    let total: u64 = journal.inputs.iter().map(|input| input.file.size).sum();
    let taken: u64 = journal.inputs.iter().map(|input| input.taken).sum();
    let output = shown::name(Path::new(journal.command.output.as_os_str()));
    let inputs = match &journal.inputs[..] {
        [input] => shown::name(Path::new(input.path.as_os_str())),
        inputs => format!("{} inputs", inputs.len()),
    };
    let head = format!("sort --consume of {inputs} into {output}");
    match (journal.phase, resume) {
        (Phase::Sorting, _) => format!(
            "{head}: {taken} of {total} bytes are sorted and here, the rest is in the inputs"
        ),
        (Phase::Sorted, _) => format!("{head}: all {total} bytes are sorted and here"),
        (Phase::Removed, Some(resume)) => format!(
            "{head}: all {total} bytes are here, {} of them in the output that is being written",
            resume.written
        ),
        (Phase::Removed, None) => {
            format!("{head}: all {total} bytes are sorted and here, the inputs are removed")
        }
        (Phase::Delivered, _) => format!("{head}: the result is there; only leftovers are here"),
    }
}

/// Whether an input has its hidden name already.
fn is_claimed(journal: &Journal) -> bool {
    journal.inputs.iter().any(|input| {
        let hidden = claimed_path(Path::new(input.path.as_os_str()));
        is_at(&hidden, &input.file).unwrap_or(true)
    })
}

/// An input that has lost bytes already, because its sort gave them back.
fn input_left(path: &Path, input: &Path, folder: &Path) -> Leftover {
    let what = format!(
        "the rest of {}, an input of a sort --consume; its other records are in the folder of that sort",
        shown::name(input)
    );
    let mut left = Leftover::new(path, "input", what);
    left.only_copy = true;
    left.command = owner_of(input, folder);
    if left.command.is_none() {
        left.what.push_str(", which is next to the sort's result");
    }
    left
}

/// The command whose journal, in one of the work folders of `folder`, names `input`.
fn owner_of(input: &Path, folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let works = entries.filter(|entry| is_work_name(&entry.file_name()).is_some());
    for work in works {
        let files: Arc<dyn Directory> = FileDirectory::open_own(work.path()).ok()?;
        let Ok(Some(journal)) = Journal::read(&files) else { continue };
        if journal.inputs.iter().any(|known| Path::new(known.path.as_os_str()) == input) {
            return Some(command_line(&journal.command));
        }
    }
    None
}

/// A file that was being given its name.
fn unpublished(path: &Path) -> Leftover {
    let what = "a result that was not given its name; the command's inputs are whole".to_owned();
    let remove = format!("rm {}", shown::shell_word(&shown::name(path)));
    Leftover { command: Some(remove), ..Leftover::new(path, "file", what) }
}

/// A view that is being consumed, or that still has the journal of its sort.
fn view(path: &Path) -> Option<Leftover> {
    let folder: Arc<dyn Directory> = FileDirectory::open(path).ok()?;
    if let Ok(Some(output)) = consumed_into(&folder) {
        let output = shown::name(Path::new(output.as_os_str()));
        let what =
            format!("a view that is being consumed into {output}; a part of it may be there only");
        let mut left = Leftover::new(path, "view", what);
        left.only_copy = true;
        left.command = Some(format!(
            "merganser materialize {} -o {} --consume",
            shown::shell_word(&shown::name(path)),
            shown::shell_word(&output)
        ));
        return Some(left);
    }
    if !path.join(MANIFEST_NAME).exists() {
        return None;
    }
    let journal = Journal::read(&folder).ok()??;
    let what = "a whole view that still has the journal of the sort that made it".to_owned();
    let command = Some(command_line(&journal.command));
    Some(Leftover { command, ..Leftover::new(path, "view", what) })
}

/// A command as it was typed, with the folder where it was.
pub fn command_line(note: &CommandNote) -> String {
    let words = note.words.iter().map(|word| shown::command_word(word.as_os_str()));
    let words: Vec<String> = words.collect();
    format!("cd {} && {}", shown::command_word(note.folder.as_os_str()), words.join(" "))
}

/// Bytes on the disk of a file, or of the files in a folder.
fn bytes_of(path: &Path) -> u64 {
    let of_file = |path: PathBuf| path.symlink_metadata().map_or(0, |found| found.blocks() * 512);
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| of_file(entry.path())).sum(),
        Err(_) => of_file(path.to_owned()),
    }
}

/// Whether a process holds the lock that tells work in progress from a leftover.
fn is_locked(path: &Path) -> bool {
    let is_regular = path.symlink_metadata().is_ok_and(|found| found.is_file() || found.is_dir());
    is_regular && File::open(path).is_ok_and(|file| file.try_lock().is_err())
}
