//! The caller's side of a sort that consumes its inputs and of a copy of a view: it keeps the
//! journal, and gives the output its name.

use std::ffi::OsStr;
use std::sync::Arc;

use merganser_sort::journal::{
    CommandNote, FileNote, InputProgress, JournalText, SortJournal, SortPhase,
};
use merganser_sort::output::PARTIAL_NAME;
use merganser_sort::view::Manifest;
use merganser_sort::{Consumed, Progress, SortOptions, SortReport, sort_consuming};
use merganser_storage::{Directory, Storage};

/// A text of the journal.
pub(crate) fn text(text: &str) -> JournalText {
    JournalText::from(OsStr::new(text))
}

/// The journal of a sort of these inputs at its beginning.
pub(crate) fn fresh_journal(inputs: &[Arc<dyn Storage>], options: &SortOptions) -> SortJournal {
    let command = CommandNote {
        words: vec![text("sort")],
        folder: text("/"),
        output: text("/x"),
        view: true,
        mode: 0o600,
        owner: None,
    };
    let taken = |(inode, input): (u64, &Arc<dyn Storage>)| InputProgress {
        path: text(input.name()),
        file: FileNote {
            device: 1,
            inode,
            born_unix_ns: None,
            size: input.size(),
            modified_unix_ns: 0,
        },
        taken: 0,
        given_back: 0,
    };
    let inputs = (1..).zip(inputs).map(taken).collect();
    SortJournal::new(command, options.order.clone(), inputs)
}

/// Starts or continues a sort into `folder`; leaves its journal there.
pub(crate) fn consume(
    inputs: &[Arc<dyn Storage>],
    folder: &Arc<dyn Directory>,
    options: &SortOptions,
    progress: &dyn Progress,
) -> merganser_sort::Result<SortReport> {
    let journal = match SortJournal::read(folder)? {
        Some(journal) if journal.phase == SortPhase::Sorted => return report_of_view(folder),
        Some(journal) => journal,
        None => {
            let journal = fresh_journal(inputs, options);
            journal.write(folder)?;
            journal
        }
    };
    let stamp = |index: usize| Ok((inputs[index].size(), 0));
    let storages: Vec<_> = inputs.iter().cloned().map(Some).collect();
    let consumed = Consumed { storages: &storages, stamp: &stamp, claim: &|_| Ok(()) };
    sort_consuming(&consumed, folder, journal, "x".to_owned(), options, progress)
}

/// The report of a sort that made the view in `folder`.
pub(crate) fn report_of_view(folder: &Arc<dyn Directory>) -> merganser_sort::Result<SortReport> {
    let mut report = SortReport::default();
    report.records = Manifest::read(folder)?.records;
    Ok(report)
}

/// Whether `folder` has a journal.
pub(crate) fn is_interrupted(folder: &Arc<dyn Directory>) -> bool {
    SortJournal::read(folder).expect("reads").is_some()
}

/// Renames the complete output of a copy in `work` to `out`.
pub(crate) fn publish_in(work: &Arc<dyn Directory>) -> std::io::Result<()> {
    work.rename(PARTIAL_NAME, "out")?;
    work.sync()
}
