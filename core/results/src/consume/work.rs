//! The steps of the protocol, done to real files.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_sort::activity::Activity;
use merganser_sort::error::InputError;
use merganser_sort::journal::{
    CommandNote, FileNote, InputProgress, JournalText, SortJournal, SortPhase,
};
use merganser_sort::note::{NotedInput, WorkNote};
use merganser_sort::view::{View, consumed_into};
use merganser_sort::{Budget, Consumed, Error, Progress, SortReport, sort_consuming};
use merganser_storage::file::{FileDirectory, FileOptions, FileStorage};
use merganser_storage::{Directory, Storage};
use parking_lot::Mutex;

use super::checks::{Inputs, check, has_data, has_hole};
use super::protocol::{ConsumeRefusal, ConsumeSteps, InputState, WorkProgress};
use super::{ConsumeError, ConsumeJob, WrittenInput};
use crate::materialize::{CopyGoal, ViewCopy};
use crate::unfinished::{
    OTHER_LINK, ResultAttributes, Target, WorkError, WorkFolder, claim, claim_unlinked,
    claimed_path, find, has_claimed, holder_of, is_at, is_restored, lock_file, note_of, open_input,
    unclaim_all,
};
use crate::{Notice, ResultsError};

/// Holes begin and end at borders of blocks; no file system has larger blocks.
const BLOCK_BYTES: u64 = 64 << 10;

/// An input that is read further, for the engine and as a file; `None` if it is not needed.
type OpenedInput = (Option<Arc<dyn Storage>>, Option<File>);

/// A command at work.
pub(super) struct ConsumeWork<'a> {
    job: &'a ConsumeJob<'a>,
    progress: &'a dyn Progress,
    tell: &'a dyn Fn(&Notice),
    inputs: Inputs,
    target: Target,
    /// The file that the result replaces: the one that had its name when this command started. If the
    /// result takes an input's name, it replaces no file that appears there later.
    replaces: Option<FileNote>,
    /// Once it has become the view, it is only locked.
    folder: Option<WorkFolder>,
    /// The files in the folder, or in the view that it became.
    files: Arc<dyn Directory>,
    journal: Option<SortJournal>,
    report: SortReport,
}

impl<'a> ConsumeWork<'a> {
    /// Opens the folder of unfinished work, and reads its journal. `None` if an earlier command was
    /// interrupted in its last step, so that no work is left.
    ///
    /// # Errors
    /// When the command makes no sense, or the folder is another process's or user's.
    pub(super) fn open(
        job: &'a ConsumeJob<'a>,
        progress: &'a dyn Progress,
        tell: &'a dyn Fn(&Notice),
    ) -> Result<Option<Self>, ConsumeError> {
        let inputs = Inputs::of_job(job)?;
        let target = Target::new(job.output)?;
        let is_view = job.is_view;
        let replaces = replaced(&inputs, &target)?;
        let ended = if is_view { view_with_journal(&target)? } else { None };
        let folder = ended.map_or_else(|| WorkFolder::open(&target), Ok)?;
        let files = Activity::here().directory(folder.directory()?);
        let journal = SortJournal::read(&files)?;
        if journal.is_none() && is_done(&inputs, &target, &folder, is_view, tell)? {
            return Ok(None);
        }
        let work = ConsumeWork {
            job,
            progress,
            tell,
            inputs,
            target,
            replaces,
            folder: Some(folder),
            files,
            journal,
            report: SortReport::default(),
        };
        // Not before the folder is locked: the process that had the lock before may have made the view.
        let has_become_view = work.folder.as_ref().is_some_and(WorkFolder::is_view);
        if is_view && !has_become_view && work.target.found()?.is_some() {
            let shown = work.target.shown().to_owned();
            return Err(match work.place() {
                None => WorkError::ViewExists(shown).into(),
                Some(_) => work.with_place(WorkError::Taken(shown).into()),
            });
        }
        Ok(Some(work))
    }

    /// The report of the finished sort.
    pub(super) fn report(self) -> SortReport {
        self.report
    }

    /// The folder that has records, and how far the work in it is. `None` if all records are in the inputs.
    fn place(&self) -> Option<(PathBuf, SortPhase)> {
        let journal = SortJournal::read(&self.files).ok().flatten()?;
        let folder = self.folder.as_ref().filter(|folder| !folder.is_view())?;
        Some((folder.path().to_owned(), journal.phase))
    }

    /// Adds to an error where the records are, if they are not in the inputs alone.
    pub(super) fn with_place(&self, error: ConsumeError) -> ConsumeError {
        match self.place() {
            None => error,
            Some((folder, phase)) => ConsumeError::Begun {
                error: Box::new(error),
                folder,
                phase,
                output: self.target.shown().to_owned(),
            },
        }
    }

    fn is_view(&self) -> bool {
        self.job.is_view
    }

    fn journal(&self) -> &SortJournal {
        self.journal.as_ref().expect("the work is begun")
    }

    /// The command line and its surroundings, so that a later command can name them.
    fn note(&self, attributes: ResultAttributes) -> CommandNote {
        CommandNote {
            words: self.job.words.clone(),
            folder: self.job.folder.clone(),
            output: JournalText::from(self.target.path().as_os_str()),
            view: self.is_view(),
            mode: attributes.mode,
            owner: attributes.owner,
        }
    }

    /// Says in a second file, before a byte is taken, that the folder will have the only copy of records. The work
    /// of an older version has no such file.
    fn keep_note(&self) -> Result<(), ConsumeError> {
        if matches!(WorkNote::read(&self.files), Ok(Some(note)) if note.consumes) {
            return Ok(());
        }
        let journal = self.journal();
        let noted = journal
            .inputs
            .iter()
            .map(|input| NotedInput { path: input.path.clone(), file: Some(input.file) });
        let note = WorkNote::new(true, journal.command.output.clone(), Some(noted.collect()));
        Ok(note.write(&self.files)?)
    }

    /// Opens the input for a sort that continues, once it is seen to be the journal's file.
    fn open_untaken(&self, index: usize) -> Result<OpenedInput, ConsumeError> {
        let (known, shown) = (&self.journal().inputs[index], &self.inputs.shown[index]);
        let path = self.place_of(index)?;
        let on_input = ResultsError::on(&path);
        let seen = find(&path).map_err(on_input)?;
        if seen.as_ref().is_none_or(|seen| !self.is_input(index, &path, seen)) && is_taken(known) {
            return Ok((None, None));
        }
        if seen.is_none() && known.taken > 0 {
            // Its own name is free for other files.
            return Err(self.missing_input(index));
        }
        let file = match open_input(&path, true) {
            Ok(file) => file,
            // A link, a folder, a device: something has taken the name.
            Err(_) if find(&path).map_err(on_input)?.is_some_and(|seen| !seen.is_file()) => {
                return Err(self.not_the_input(index, &path));
            }
            Err(error) => return Err(on_input(error).into()),
        };
        // Two sorts that give bytes of one file back, or a reader, would take holes for records.
        if !lock_file(&file) {
            return Err(ConsumeError::Busy { input: shown.clone(), by: holder_of(&file) });
        }
        let found = file.metadata().map_err(on_input)?;
        if !self.is_input(index, &path, &found) {
            return Err(self.not_the_input(index, &path));
        }
        if is_written(&file, known).map_err(on_input)? {
            return Err(self.refuse(ConsumeRefusal::Written(index)));
        }
        let name = shown.display().to_string();
        let handle = file.try_clone().map_err(on_input)?;
        let storage = FileStorage::from_file(file, name, true, FileOptions::default());
        let storage = storage.map_err(ResultsError::Named)?;
        Ok((Some(Activity::here().storage(storage)), Some(handle)))
    }

    /// Whether an input is not the file that the journal knows, or was written to since.
    fn has_new_input(&self) -> Result<bool, ConsumeError> {
        for (index, shown) in self.inputs.shown.iter().enumerate() {
            let known = self.journal().inputs[index].file;
            let on_input = ResultsError::on(shown);
            let place = self.place_of(index)?;
            let is_hidden = place != self.inputs.paths[index];
            match find(&place).map_err(on_input)? {
                Some(found) if note_of(&found) == known => {}
                Some(found) if is_hidden && is_restored(&found, &known) => {}
                // Only this program uses the hidden name, so this file can't be a new input.
                Some(found) if is_hidden && known.is_same_file(&note_of(&found)) => {
                    return Err(self.refuse(ConsumeRefusal::Written(index)));
                }
                Some(_) if is_hidden => return Err(self.not_the_input(index, &place)),
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    /// The error for an input that is gone, although a part of it is not sorted yet.
    fn missing_input(&self, index: usize) -> ConsumeError {
        ConsumeError::Gone {
            place: claimed_path(&self.inputs.paths[index]),
            known: self.journal().inputs[index].file,
        }
    }

    /// The error for something else at the name of an input that is not sorted yet.
    fn not_the_input(&self, index: usize, place: &Path) -> ConsumeError {
        let known = self.journal().inputs[index].file;
        ConsumeError::NotTheInput { place: place.to_owned(), known }
    }

    /// The path of an input: its hidden name if a file has that name, otherwise its own name.
    fn place_of(&self, index: usize) -> Result<PathBuf, ConsumeError> {
        let path = &self.inputs.paths[index];
        let hidden = claimed_path(path);
        let found = find(&hidden).map_err(ResultsError::on(&hidden))?;
        Ok(if found.is_some() { hidden } else { path.clone() })
    }

    /// Whether a file that was found at `path` is an input.
    fn is_input(&self, index: usize, path: &Path, found: &Metadata) -> bool {
        let known = &self.journal().inputs[index].file;
        let hidden = path != self.inputs.paths[index];
        found.is_file()
            && (known.is_same_file(&note_of(found)) || hidden && is_restored(found, known))
    }

    /// Sorts what the journal does not have yet.
    fn sort_inputs(&self) -> Result<SortReport, ConsumeError> {
        let count = self.inputs.paths.len();
        let opened = (0..count).map(|index| self.open_untaken(index));
        let opened = opened.collect::<Result<Vec<_>, ConsumeError>>()?;
        let (storages, files): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let mut journal = self.journal().clone();
        for ((file, input), shown) in files.iter().zip(&mut journal.inputs).zip(&self.inputs.shown)
        {
            // Only the sort itself has changed the file since the journal was written.
            if let Some(file) = file {
                let now = file.metadata().map_err(ResultsError::on(shown))?;
                input.file.modified_unix_ns = note_of(&now).modified_unix_ns;
            }
        }
        let shown = &self.inputs.shown;
        let stamp = |index: usize| {
            let file: &Option<File> = &files[index];
            let found = file.as_ref().expect("it was read").metadata()?;
            if found.nlink() > 1 {
                let (name, cause) =
                    (shown[index].display().to_string(), io::Error::other(OTHER_LINK));
                return Err(io::Error::other(InputError { name, cause }));
            }
            let now = note_of(&found);
            Ok((now.size, now.modified_unix_ns))
        };
        let (paths, notes) = (&self.inputs.paths, &self.journal().inputs);
        let claim = |index: usize| claim_unlinked(&paths[index], &notes[index].file);
        let consumed = Consumed { storages: &storages, stamp: &stamp, claim: &claim };
        let (name, files) = (self.job.name.clone(), &self.files);
        Ok(sort_consuming(&consumed, files, journal, name, self.job.options, self.progress)?)
    }

    fn deliver_file(&mut self) -> Result<(), ConsumeError> {
        let files = Arc::clone(&self.files);
        let journal = Mutex::new(self.journal().clone());
        let before = |partial: &Path| {
            let mut journal = journal.lock();
            journal.result = Some(note_of(&partial.symlink_metadata()?));
            journal.write(&files).map_err(io::Error::other)
        };
        let note = &self.journal().command;
        let attributes = ResultAttributes { mode: note.mode, owner: note.owner };
        let folder = self.folder.as_ref().expect("a file is made in the folder");
        let copy = ViewCopy {
            view: Arc::clone(&self.files),
            view_path: folder.path().to_owned(),
            work: folder,
            goal: CopyGoal {
                target: &self.target,
                replaces: self.replaces,
                attributes,
                before: &before,
            },
            consume: true,
            memory_bytes: self.job.memory_bytes,
            threads: self.job.options.threads,
        };
        copy.run(self.progress)?;
        self.journal = Some(journal.into_inner());
        Ok(())
    }
}

/// The file that the result replaces: the one that has its name now, unless that is an input.
fn replaced(inputs: &Inputs, target: &Target) -> Result<Option<FileNote>, ConsumeError> {
    let onto_input = inputs.paths.contains(&target.path());
    Ok(target.found()?.filter(|_| !onto_input).as_ref().map(note_of))
}

/// A view that has its name already, and still has its journal: locked.
fn view_with_journal(target: &Target) -> Result<Option<WorkFolder>, ConsumeError> {
    if !target.found()?.is_some_and(|found| found.is_dir()) {
        return Ok(None);
    }
    let files: Arc<dyn Directory> =
        FileDirectory::open(target.path()).map_err(ResultsError::Named)?;
    if SortJournal::read(&files)?.is_none() {
        return Ok(None);
    }
    let folder = WorkFolder::of_view(target)?;
    // The process that had the lock before may have ended the work.
    Ok(SortJournal::read(&files)?.is_some().then_some(folder))
}

/// Whether an earlier command ended but for the removal of its empty folder.
///
/// # Errors
/// When inputs are missing for another reason, and the output is there: perhaps it has their records.
fn is_done(
    inputs: &Inputs,
    target: &Target,
    folder: &WorkFolder,
    is_view: bool,
    tell: &dyn Fn(&Notice),
) -> Result<bool, ConsumeError> {
    let mut missing = Vec::new();
    for (path, shown) in inputs.paths.iter().zip(&inputs.shown) {
        let mut found = false;
        for name in [path.clone(), claimed_path(path)] {
            found |= find(&name).map_err(ResultsError::on(&name))?.is_some();
        }
        missing.extend((!found).then_some(shown));
    }
    let all = missing.len() == inputs.paths.len();
    // A view that is there is refused in any case, and the message must not ask the user to remove it.
    let tells = all || is_view && !missing.is_empty();
    if !tells || target.found()?.is_none() || folder.has_leftovers()? {
        return Ok(false);
    }
    let output = target.shown().to_owned();
    if all && folder.was_finished()? {
        tell(&Notice::FinishedBefore(output));
        return Ok(true);
    }
    Err(ConsumeError::MayHaveFinished { input: missing[0].clone(), output })
}

fn is_taken(input: &InputProgress) -> bool {
    input.taken == input.file.size
}

/// Whether an input was written to since the journal was written. The journal is written before and
/// after the sort punches a hole where it has taken records. Between the two, the time of the last
/// change proves nothing, so the hole decides.
fn is_written(file: &File, known: &InputProgress) -> io::Result<bool> {
    let now = note_of(&file.metadata()?);
    if now.size != known.file.size {
        return Ok(true);
    }
    if now.modified_unix_ns == known.file.modified_unix_ns {
        return Ok(false);
    }
    // A write makes the time later. An earlier one was lost in a power cut.
    let is_open =
        known.given_back < known.taken || now.modified_unix_ns < known.file.modified_unix_ns;
    if !is_open || has_data(file, 0, known.given_back / BLOCK_BYTES * BLOCK_BYTES)? {
        return Ok(true);
    }
    // The block where the last hole ends may be a hole already, and only whole blocks become holes.
    let from = known.given_back.next_multiple_of(BLOCK_BYTES);
    let to = known.taken / BLOCK_BYTES * BLOCK_BYTES;
    Ok(from < to && !has_hole(file, from, to)?)
}

impl ConsumeSteps for ConsumeWork<'_> {
    type Error = ConsumeError;

    fn begun(&self) -> Result<WorkProgress, ConsumeError> {
        let Some(journal) = &self.journal else { return Ok(WorkProgress::Nothing) };
        let note = &journal.command;
        let same = note.output == JournalText::from(self.target.path().as_os_str())
            && note.view == self.is_view()
            && journal.order.is_same_order(&self.job.options.order)
            && journal.inputs.len() == self.inputs.paths.len()
            && journal.inputs.iter().zip(self.inputs.texts()).all(|(a, b)| a.path == b);
        let free = !same && !has_claimed(journal);
        if journal.is_untouched() && (free || same && self.has_new_input()?) {
            // It had only begun: the inputs are whole, and are read as they are now.
            return Ok(WorkProgress::Nothing);
        }
        Ok(if same { WorkProgress::Ours(journal.phase) } else { WorkProgress::Other })
    }

    fn inputs(&self) -> usize {
        self.inputs.paths.len()
    }

    fn look(&self, input: usize) -> Result<InputState, ConsumeError> {
        let known = &self.journal().inputs[input];
        let on_input = ResultsError::on(&self.inputs.shown[input]);
        let place = self.place_of(input)?;
        match find(&place).map_err(on_input)? {
            None => return Ok(InputState::Missing),
            Some(found) if !found.is_file() => return Ok(InputState::Stranger),
            Some(_) => {}
        }
        let file = open_input(&place, false).map_err(on_input)?;
        let found = file.metadata().map_err(on_input)?;
        if !self.is_input(input, &place, &found) {
            return Ok(InputState::Stranger);
        }
        Ok(if is_written(&file, known).map_err(on_input)? {
            InputState::Written
        } else {
            InputState::Input
        })
    }

    fn has_stranger(&self, input: usize) -> Result<bool, ConsumeError> {
        let path = &self.inputs.paths[input];
        let is_result = match &self.journal().result {
            Some(result) => {
                is_at(path, result).map_err(ResultsError::on(&self.inputs.shown[input]))?
            }
            None => false,
        };
        let found = find(path).map_err(ResultsError::on(&self.inputs.shown[input]))?;
        Ok(!is_result && found.is_some())
    }

    fn is_output(&self, input: usize) -> bool {
        self.inputs.paths[input] == self.target.path()
    }

    fn begin(&mut self) -> Result<(), ConsumeError> {
        // Inputs of a sort that had only begun get their names back before they are looked at.
        let folder = self.folder.as_ref().expect("nothing has become a view yet");
        if let Some(journal) = &self.journal {
            unclaim_all(journal, self.tell)?;
        }
        let found = check(&self.inputs, &self.target, self.job)?;
        // The process that had the lock before may have made it, out of inputs that are gone.
        let replaces = replaced(&self.inputs, &self.target)?;
        let is_as_before =
            |now: &FileNote| self.replaces.is_some_and(|then| then.is_same_file(now));
        if replaces.as_ref().is_some_and(|now| !is_as_before(now)) {
            return Err(WorkError::Taken(self.target.shown().to_owned()).into());
        }
        folder.clear(self.tell)?;
        self.replaces = replaces;
        let note = self.note(found.attributes);
        let journal = SortJournal::new(note, self.job.options.order.clone(), found.inputs);
        journal.write(&self.files)?;
        self.journal = Some(journal);
        Ok(())
    }

    fn sort(&mut self) -> Result<(), ConsumeError> {
        self.keep_note()?;
        let done = self.sort_inputs();
        self.journal = SortJournal::read(&self.files)?;
        if done.is_err() && self.journal().is_untouched() {
            // The inputs are complete, so removing the folder loses no records.
            let folder = self.folder.as_ref().expect("the view has no name yet");
            folder.discard(self.tell)?;
        }
        self.report = done?;
        Ok(())
    }

    fn verify(&self) -> Result<(), ConsumeError> {
        let is_copied = consumed_into(&self.files)?.is_some();
        if is_copied || self.journal().phase == SortPhase::Removed && !self.is_view() {
            // The copy checks the bytes that it reads. If it continues, it also checks its own beginning.
            return Ok(());
        }
        let budget = Budget::new(self.job.memory_bytes);
        let view = View::open_unfinished(&self.files, &budget, self.job.options.threads)?;
        self.progress.phase("checking", Some(view.size()));
        Ok(view.verify_all(|bytes| {
            self.progress.advance(bytes);
            if self.progress.cancelled() { Err(Error::Cancelled) } else { Ok(()) }
        })?)
    }

    fn remove_input(&mut self, input: usize) -> Result<(), ConsumeError> {
        let (path, shown) = (&self.inputs.paths[input], &self.inputs.shown[input]);
        let on_input = ResultsError::on(shown);
        // Only this program uses the hidden name, so the removed file is the one that was checked.
        claim(path, &self.journal().inputs[input].file).map_err(on_input)?;
        if self.look(input)? == InputState::Written {
            return Err(self.refuse(ConsumeRefusal::Written(input)));
        }
        Ok(fs::remove_file(claimed_path(path)).map_err(on_input)?)
    }

    fn removed(&mut self) -> Result<(), ConsumeError> {
        let parents = self.inputs.paths.iter().map(|path| path.parent().unwrap_or(Path::new("/")));
        for parent in parents.collect::<BTreeSet<_>>() {
            let synced = File::open(parent).and_then(|folder| folder.sync_all());
            synced.map_err(ResultsError::on(parent))?;
        }
        let journal = self.journal.as_mut().expect("the work is begun");
        Ok(journal.enter(SortPhase::Removed, &self.files)?)
    }

    fn deliver(&mut self) -> Result<(), ConsumeError> {
        if !self.is_view() {
            return self.deliver_file();
        }
        let note = &self.journal().command;
        let attributes = ResultAttributes { mode: note.mode, owner: note.owner };
        let folder = self.folder.as_mut().expect("until the end");
        if folder.is_view() {
            return Ok(());
        }
        folder.become_view(&self.target, attributes)?;
        self.files = FileDirectory::open(self.target.path()).map_err(ResultsError::Named)?;
        Ok(())
    }

    fn delivered(&mut self) -> Result<(), ConsumeError> {
        let journal = self.journal.as_mut().expect("the work is begun");
        Ok(journal.enter(SortPhase::Delivered, &self.files)?)
    }

    fn end(&mut self) -> Result<(), ConsumeError> {
        merganser_sort::output::forget(&self.files)?;
        WorkNote::remove(&self.files)?;
        let folder = self.folder.take().expect("until the end");
        folder.mark_finished()?;
        SortJournal::remove(&self.files)?;
        Ok(folder.close()?)
    }

    fn refuse(&self, refusal: ConsumeRefusal) -> ConsumeError {
        let target = self.target.shown().to_owned();
        match refusal {
            ConsumeRefusal::OtherWork => {
                ConsumeError::OtherWork { target, journal: Box::new(self.journal().clone()) }
            }
            ConsumeRefusal::Written(input) => {
                let own = self.inputs.paths[input].clone();
                let place = self.place_of(input).unwrap_or_else(|_| claimed_path(&own));
                let known = self.journal().inputs[input].clone();
                let input = self.inputs.shown[input].clone();
                ConsumeError::Written(Box::new(WrittenInput { input, own, place, known }))
            }
            ConsumeRefusal::NotRead(input) => {
                ConsumeError::NotRead { target, input: self.inputs.shown[input].clone() }
            }
        }
    }
}
