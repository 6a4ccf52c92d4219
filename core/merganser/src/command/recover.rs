//! `merganser recover`: what interrupted commands left, and what to do with it.
//!
//! It reads the leftovers ([`leftovers`]) and prints what they are and what the user can do. A user may follow that
//! literally, so a removal is advised only where nothing is lost with it, and a command is one of [`AdvisedCommand`]'s,
//! never a text that was found.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

use merganser_results::ResultsError;
use merganser_results::leftover::{LeftBehind, Leftover, leftovers};
use merganser_results::pipeline::{self, Left};
use merganser_results::unfinished::{NextStep, Verdict};
use merganser_results::uploads::NotedUploads;
use merganser_shell::failure::Failure;
use merganser_shell::results::told;
use merganser_shell::{shown, standard};
use merganser_sort::journal::{JournalText, SortJournal, SortPhase};
use merganser_sort::output::Resume;
use merganser_storage::file::own;
use serde::Serialize;

use crate::advised::AdvisedCommand;
use crate::args::RecoverArgs;

/// Something that an interrupted command left, with its words.
#[derive(Debug, Serialize)]
struct ToldLeftover {
    /// Where it is.
    path: String,
    /// Its kind: `sort`, `copy`, `view`, `files`, `pipeline`, `input`, `upload`, `file` or `unknown`.
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
pub(super) fn run(typed: &RecoverArgs) -> Result<(), Failure> {
    let found: Vec<_> = leftovers(&typed.path)?.iter().map(in_words).collect();
    let text = if typed.json {
        format!("{:#}\n", serde_json::json!({ "leftovers": found }))
    } else {
        as_text(&typed.path, &found)
    };
    standard::print(text)
}

fn as_text(path: &Path, found: &[ToldLeftover]) -> String {
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

/// Uploads that are named one by one.
const UPLOADS_SHOWN: usize = 20;
/// Added to the description of work that replaces no file.
const TAKEN: &str = "; another file has the result's name, so move that away first";
/// Added to the description of other work.
const REPLACED: &str = "; it replaces the file that has the result's name now";

impl ToldLeftover {
    fn new(left: &Leftover, kind: &'static str, what: String) -> Self {
        ToldLeftover {
            path: shown::name(&left.path),
            kind,
            owner: left.owner,
            bytes: left.bytes,
            in_use: left.in_use,
            only_copy: left.only_copy,
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

/// The words and the advice for a leftover.
fn in_words(left: &Leftover) -> ToldLeftover {
    match &left.found {
        LeftBehind::Unreadable(error) => {
            let what = format!("unfinished work that can't be read: {}", told(error));
            ToldLeftover::new(left, "unknown", what)
        }
        LeftBehind::Sort { journal, resume, in_place, name_taken } => {
            let mut told = ToldLeftover::new(left, "sort", story(journal, resume.as_ref()));
            if *name_taken {
                told.what.push_str(if replaces_nothing(journal) { TAKEN } else { REPLACED });
            }
            let command = repeated(&mut told, *in_place, AdvisedCommand::sort(journal));
            told.advise(command)
        }
        LeftBehind::Copy { resume, in_place, name_taken } => {
            of_copy(left, resume, *in_place, *name_taken)
        }
        LeftBehind::Pipeline { left: work, inputs_whole } => {
            let what = of_pipeline(&left.path, work, *inputs_whole);
            ToldLeftover::new(left, "pipeline", what)
        }
        LeftBehind::Folder { verdict, stranger, trouble, copy_to, files } => {
            let stranger = stranger.clone().unwrap_or_default();
            let (kind, of) = match (verdict, files) {
                (Verdict::Foreign, _) => ("unknown", ""),
                (_, true) => ("files", "a folder of tables"),
                (_, false) => ("view", "a view"),
            };
            let what = what(*verdict, of, &stranger, trouble.as_ref());
            let told = ToldLeftover::new(left, kind, what);
            let command = match (verdict.next_step(), copy_to) {
                (NextStep::Remove, _) => AdvisedCommand::remove_folder(&left.path),
                (NextStep::CopyOut, Some(output)) => {
                    let view = std::path::absolute(&left.path).unwrap_or_default();
                    AdvisedCommand::materialize(&view, output, false)
                }
                _ => None,
            };
            told.advise(command)
        }
        LeftBehind::Input { input, sorts } => of_input(left, input, sorts),
        LeftBehind::Uploads(noted) => ToldLeftover::new(left, "upload", of_uploads(noted)),
        LeftBehind::SecondName => {
            let what = "a second name of a result, which a killed command left".to_owned();
            let command = AdvisedCommand::remove_file(&left.path);
            ToldLeftover::new(left, "file", what).advise(command)
        }
        LeftBehind::Unpublished => {
            let what = "a result that was not given its name, perhaps not whole; the same command makes it again, if its inputs are still there";
            ToldLeftover::new(left, "file", what.to_owned())
        }
        LeftBehind::ConsumedView { place, output, is_copied, is_own } => {
            let what = format!(
                "a view that is being consumed into {}; a part of it may be there only",
                shown::name(output)
            );
            let mut told = ToldLeftover::new(left, "view", what);
            let command = match is_copied {
                true => AdvisedCommand::materialize(place, output, true),
                false => None,
            };
            if command.is_none() {
                told.what
                    .push_str("; the folder of that copy is not next to it, or says otherwise");
            }
            of_view(told, command, *is_own)
        }
        LeftBehind::SortedView { journal, is_its, is_own } => {
            let what = "a whole view that still has the journal of the sort that made it";
            let told = ToldLeftover::new(left, "view", what.to_owned());
            let command = is_its.then(|| AdvisedCommand::sort(journal)).flatten();
            of_view(told, command, *is_own)
        }
    }
}

/// Whether a sort never replaces a file that has the name of its result: a view, or a result onto an input.
fn replaces_nothing(journal: &SortJournal) -> bool {
    let output = Path::new(journal.command.output.as_os_str());
    let onto_input = journal.inputs.iter().any(|input| Path::new(input.path.as_os_str()) == output);
    journal.command.view || onto_input
}

/// The description of a folder without a journal.
fn what(verdict: Verdict, of: &str, stranger: &OsStr, trouble: Option<&ResultsError>) -> String {
    let stranger = shown::name(Path::new(stranger));
    let trouble = trouble.map(|trouble| format!(" ({})", told(trouble))).unwrap_or_default();
    let whole = "; it is a whole view, which can be copied to a file";
    match verdict {
        Verdict::Foreign => format!(
            "a folder with '{stranger}', which no merganser command writes there; it is not merganser's, so leave it to its owner"
        ),
        Verdict::Empty => "a folder without records, which an interrupted command left".to_owned(),
        Verdict::Copies { inputs_whole: true } => {
            format!("{of} that was not finished; its inputs are whole")
        }
        Verdict::Copies { .. } => format!(
            "{of} that was not finished; its inputs are not all there as they were, so these may be the only copy of their records; the same command would begin again, and remove this"
        ),
        Verdict::Orphaned { whole_view } => format!(
            "records of an interrupted command whose journal is lost or damaged{trouble}; keep the folder, its inputs may have lost these records{}",
            if whole_view { whole } else { "; restore the journal from a copy" }
        ),
        Verdict::Unexplained { whole_view } => format!(
            "records of an interrupted command; no file here says which, or whether they are anywhere else{}",
            if whole_view {
                whole
            } else {
                "; remove it only if you know that its inputs are whole"
            }
        ),
        Verdict::Begun | Verdict::Sort(_) | Verdict::Copy { .. } | Verdict::Pipeline { .. } => {
            unreachable!("these have a journal")
        }
    }
}

/// A copy of a view to a file.
fn of_copy(left: &Leftover, resume: &Resume, in_place: bool, name_taken: bool) -> ToldLeftover {
    let (view, output) = (Path::new(resume.view.as_os_str()), Path::new(resume.output.as_os_str()));
    let done = if resume.complete { "complete" } else { "not complete" };
    let mut told = ToldLeftover::new(
        left,
        "copy",
        format!(
            "a copy of the view {} to {}, {done}: {} of {} bytes are written",
            shown::name(view),
            shown::name(output),
            resume.written,
            resume.total
        ),
    );
    if name_taken {
        told.what.push_str(REPLACED);
    }
    let command = AdvisedCommand::materialize(view, output, resume.consume);
    let command = repeated(&mut told, in_place, command);
    told.advise(command)
}

/// The command that continues work, or why none is given.
fn repeated(
    told: &mut ToldLeftover,
    in_place: bool,
    command: Option<AdvisedCommand>,
) -> Option<AdvisedCommand> {
    if !in_place {
        told.what.push_str("; the folder was moved or copied here, so move it back next to its result, where the same command continues");
        return None;
    }
    if command.is_none() {
        told.what.push_str("; repeat its command with the same options to continue");
    }
    command
}

/// A pipeline, which continues where it was.
fn of_pipeline(path: &Path, work: &Left, inputs_whole: bool) -> String {
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
    let inputs = match inputs_whole {
        true => {
            format!("its inputs are whole; repeat its command to continue ({journal} has it)")
        }
        _ if work.of_stream => "it read a pipe, whose bytes may be here alone, and can't continue; save what you need of them before you remove the folder".to_owned(),
        _ => "its inputs are not all there as they were, so this may be the only copy of what was made of them".to_owned(),
    };
    format!("{who} into {output} ({stages}): {far}; {inputs}")
}

/// Uploads that were not ended. Their ids are shown without a command, since no text of a file should be run.
fn of_uploads(noted: &NotedUploads) -> String {
    let result = match &noted.result[..] {
        "" => "a result in an object store",
        result => result,
    };
    let next = "the same command with the same --temp-dir aborts what is left of it";
    if noted.open.is_empty() {
        return format!(
            "the note of uploads to {result}; none of them is open, so remove it, or {next}"
        );
    }
    let mut open: Vec<_> = noted
        .open
        .iter()
        .take(UPLOADS_SHOWN)
        .map(|upload| match &upload.id {
            Some(id) => format!("{} with the id {id}", upload.object),
            None => format!("{}, which perhaps was not begun", upload.object),
        })
        .collect();
    if let more @ 1.. = noted.open.len().saturating_sub(UPLOADS_SHOWN) {
        open.push(format!("{more} more"));
    }
    format!(
        "an upload to {result} that was not completed, so it made no object; the store keeps its parts, and may charge for them: {next}, or abort it with the tools of the store (such as aws s3api abort-multipart-upload) and remove this note; open are {}",
        open.join("; ")
    )
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
fn of_input(left: &Leftover, input: &Path, sorts: &[SortJournal]) -> ToldLeftover {
    let what = format!(
        "the rest of {}, an input of a sort --consume; its other records are in the folder of that sort",
        shown::name(input)
    );
    let mut told = ToldLeftover::new(left, "input", what);
    let command = sorts.iter().find_map(AdvisedCommand::sort);
    if command.is_none() {
        told.what.push_str(", which is next to the sort's result");
    }
    told.advise(command)
}

/// Advises a command for a view, unless others may have written what it is made from.
fn of_view(mut told: ToldLeftover, command: Option<AdvisedCommand>, is_own: bool) -> ToldLeftover {
    if !is_own {
        told.what.push_str("; other users can write to it, so no command of its files is given");
    }
    told.advise(command.filter(|_| is_own))
}
