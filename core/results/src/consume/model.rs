//! Every state of a small disk, every crash, every next command: nothing is lost, and nothing is
//! removed that was not sorted.
//!
//! The disk has a folder with two inputs' names, two results' names and their folders of unfinished
//! work. A file is the set of records that it still has. The commands are the shipped
//! [`protocol::run`] over steps that change this disk one atomic change at a time; a crash is the end
//! of a command before one of its changes. From every state that can be reached, every command is
//! run to its end and to every crash, and the world outside acts: a new file appears under a free
//! name, something is appended to an input, a result is taken away.
//!
//! In each of these states, each file is lost, damaged or replaced, too. Then the advice of `recover` (the
//! shipped [`judge`]) is followed to the letter, and every command is run: no record that was on the disk is gone.

use std::collections::{HashSet, VecDeque};
use std::fmt::{self, Debug, Formatter};

use merganser_sort::journal::SortPhase;

use super::protocol;
use super::protocol::{ConsumeRefusal, ConsumeSteps, InputState, WorkProgress};
use crate::unfinished::{Evidence, NextStep, NoteFacts, SortFacts, WorkFacts, judge};

/// Records, as bits: those of file `n` are bits `2 * n` and `2 * n + 1`. Their order is that of the bits.
///
/// Millions of disks are compared and kept, so a disk is one piece of memory without pointers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct RecordSet(u16);

/// The number of a file that is not one of the story's.
const STRANGER: u8 = 7;

impl RecordSet {
    /// The two records that a new file has.
    fn of_file(id: u8) -> Self {
        RecordSet(0b11 << (2 * id))
    }

    /// The first of them, as many as this.
    fn first(self, count: usize) -> Self {
        let (mut first, mut rest) = (RecordSet::default(), self);
        for _ in 0..count {
            let lowest = rest.lowest();
            first = first.with(lowest);
            rest = rest.without(lowest);
        }
        first
    }

    fn lowest(self) -> Self {
        RecordSet(self.0 & self.0.wrapping_neg())
    }

    fn with(self, other: Self) -> Self {
        RecordSet(self.0 | other.0)
    }

    fn without(self, other: Self) -> Self {
        RecordSet(self.0 & !other.0)
    }

    fn and(self, other: Self) -> Self {
        RecordSet(self.0 & other.0)
    }

    fn is_subset(self, other: Self) -> bool {
        self.without(other).is_empty()
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    fn clear(&mut self) {
        self.0 = 0;
    }
}

impl Debug for RecordSet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let there = (0..16).filter(|bit| self.0 >> bit & 1 == 1);
        f.debug_set().entries(there.map(|bit| (bit / 2, bit % 2))).finish()
    }
}

/// The names of inputs and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ModelName {
    In,
    Other,
    Out,
}

use ModelName::{In, Other, Out};

const NAMES: [ModelName; 3] = [In, Other, Out];

/// What there is under each name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ByName<T>([Option<T>; 3]);

impl<T> Default for ByName<T> {
    fn default() -> Self {
        ByName([const { None }; 3])
    }
}

impl<T> ByName<T> {
    fn get(&self, name: ModelName) -> Option<&T> {
        self.0[name as usize].as_ref()
    }

    fn get_mut(&mut self, name: ModelName) -> Option<&mut T> {
        self.0[name as usize].as_mut()
    }

    fn insert(&mut self, name: ModelName, value: T) {
        self.0[name as usize] = Some(value);
    }

    fn remove(&mut self, name: ModelName) -> Option<T> {
        self.0[name as usize].take()
    }

    fn has(&self, name: ModelName) -> bool {
        self.get(name).is_some()
    }

    fn names(&self) -> impl Iterator<Item = ModelName> {
        NAMES.into_iter().filter(|&name| self.has(name))
    }

    fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }
}

/// A file: its identity (a new file has a new one), and its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ModelFile {
    id: u8,
    /// The records that it was made of.
    content: RecordSet,
    records: RecordSet,
    /// Whether something was appended since the file was made.
    appended: bool,
}

impl ModelFile {
    fn new(id: u8, content: RecordSet) -> Self {
        ModelFile { id, records: content, content, appended: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ModelJournal {
    command: ModelCommand,
    phase: PhaseNote,
    /// The file under the input's name when the sort began.
    input: u8,
    /// Its records.
    content: RecordSet,
    /// How many of them are in runs.
    taken: usize,
    /// The file that is the result.
    result: Option<u8>,
}

impl ModelJournal {
    /// The records that are in runs, as it says.
    fn named(&self) -> RecordSet {
        self.content.first(self.taken)
    }
}

/// [`SortPhase`], which is not hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PhaseNote {
    Sorting,
    Sorted,
    Removed,
    Delivered,
}

impl From<PhaseNote> for SortPhase {
    fn from(note: PhaseNote) -> Self {
        match note {
            PhaseNote::Sorting => SortPhase::Sorting,
            PhaseNote::Sorted => SortPhase::Sorted,
            PhaseNote::Removed => SortPhase::Removed,
            PhaseNote::Delivered => SortPhase::Delivered,
        }
    }
}

/// The folder of unfinished work of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct ModelWork {
    journal: Option<ModelJournal>,
    /// Whether the note says that the input loses its bytes.
    note: Evidence<()>,
    /// Whether the journal is there and can't be read.
    bad_journal: bool,
    runs: RecordSet,
    /// The output, before it has its name.
    partial: Option<RecordSet>,
    resume: ResumeNote,
    /// Whether the view in the folder has the marker: parts of it may be given back.
    marked: bool,
    /// Whether there is a file that no command of this program writes.
    stranger: bool,
}

/// The resume point of the copy of the runs to the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum ResumeNote {
    #[default]
    Absent,
    Damaged,
    Started,
    Complete,
}

impl ModelWork {
    /// Whether the output has got its name, so that the runs belong to it.
    fn is_published(&self) -> bool {
        self.resume == ResumeNote::Complete && self.partial.is_none()
    }

    /// What the shipped code sees of it.
    fn facts(&self, disk: &ModelDisk) -> WorkFacts {
        let journal = self.journal.as_ref().map(|journal| {
            let claimed = disk.hidden.get(journal.command.input);
            let claimed = claimed.is_some_and(|file| file.id == journal.input);
            SortFacts { phase: journal.phase.into(), untouched: journal.taken == 0 && !claimed }
        });
        WorkFacts {
            stranger: self.stranger,
            records: !self.runs.is_empty() || self.partial.is_some_and(|p| !p.is_empty()),
            whole_view: false,
            journal: match journal {
                _ if self.bad_journal => Evidence::Damaged,
                Some(journal) => Evidence::Says(journal),
                None => Evidence::Absent,
            },
            note: match self.note {
                Evidence::Says(()) => {
                    Evidence::Says(NoteFacts { consumes: true, inputs_whole: false })
                }
                Evidence::Damaged => Evidence::Damaged,
                Evidence::Absent => Evidence::Absent,
            },
            copy: match self.resume {
                ResumeNote::Absent => Evidence::Absent,
                ResumeNote::Damaged => Evidence::Damaged,
                ResumeNote::Started | ResumeNote::Complete => Evidence::Says(true),
            },
            pipeline: Evidence::Absent,
        }
    }
}

/// `sort --consume INPUT -o OUTPUT`, by names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ModelCommand {
    input: ModelName,
    output: ModelName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct ModelDisk {
    files: ByName<ModelFile>,
    /// Inputs under their hidden names.
    hidden: ByName<ModelFile>,
    work: ByName<ModelWork>,
    /// Files that were there or appeared, so that a new one gets a new number.
    born: u8,
}

/// Files that are made in one story. More files only repeat the states of fewer files.
const FILES_MAX: u8 = 3;
/// Events of one story: commands that end or crash, and changes from outside. One command more follows.
/// The test passes with five events, too, and then takes half a minute.
const EVENTS_MAX: usize = 4;

impl ModelDisk {
    fn make(&mut self, name: ModelName) {
        self.born += 1;
        let id = self.born;
        self.files.insert(name, ModelFile::new(id, RecordSet::of_file(id)));
    }

    /// The records of all files.
    fn in_files(&self) -> RecordSet {
        let files = self.files.values().chain(self.hidden.values());
        files.fold(RecordSet::default(), |all, file| all.with(file.records))
    }

    /// Every record that can still be had, by reading a file or by repeating a command.
    fn reachable(&self) -> RecordSet {
        let mut all = self.in_files();
        for work in self.work.values() {
            // Published records belong to the result, even if the result is removed later.
            if let Some(journal) = work.journal.filter(|_| !work.is_published()) {
                // A run that the journal does not name yet is removed by the command that continues.
                all = all.with(work.runs.and(journal.named()));
                all = all.with(work.partial.unwrap_or_default());
            }
        }
        all
    }

    /// Every record that is on the disk at all, also where no journal says any more whose it is.
    fn existing(&self) -> RecordSet {
        let mut all = self.in_files();
        for work in self.work.values().filter(|work| !work.is_published()) {
            // A run that a journal does not name yet was not finished: its records are the input's.
            let journal = work.journal.filter(|_| !work.bad_journal);
            all = all.with(journal.map_or(work.runs, |journal| work.runs.and(journal.named())));
            all = all.with(work.partial.unwrap_or_default());
        }
        all
    }
}

#[derive(Debug, PartialEq, Eq)]
enum ModelEnd {
    Crash,
    Refused(ConsumeRefusal),
    Missing,
    /// The inputs are not the journal's files.
    OtherInput,
    /// Another file has the result's name.
    NameTaken,
    /// The hidden name belongs to another interrupted command.
    Claimed,
    /// The folder may have records that are nowhere else.
    Kept,
    /// A file of the folder is missing, or can't be read.
    Damaged,
}

/// One command at work on a disk, until it may change nothing more.
struct ModelRun {
    disk: ModelDisk,
    command: ModelCommand,
    changes_left: usize,
    /// The journal, kept when it was removed.
    journal: Option<ModelJournal>,
    /// The records of files that were removed as inputs.
    removed: RecordSet,
    /// The records of the file that the result replaced, as the command said.
    replaced: RecordSet,
}

impl ModelRun {
    fn new(disk: &ModelDisk, command: ModelCommand, changes_left: usize) -> Self {
        let work = disk.work.get(command.output);
        let journal = work.and_then(|work| work.journal);
        ModelRun {
            disk: *disk,
            command,
            changes_left,
            journal,
            removed: RecordSet::default(),
            replaced: RecordSet::default(),
        }
    }

    /// One atomic, durable change.
    fn change(
        &mut self,
        change: impl FnOnce(&mut ModelDisk, &mut ModelWork),
    ) -> Result<(), ModelEnd> {
        self.changes_left = self.changes_left.checked_sub(1).ok_or(ModelEnd::Crash)?;
        let mut work = self.disk.work.remove(self.command.output).unwrap_or_default();
        change(&mut self.disk, &mut work);
        self.journal = work.journal.or(self.journal);
        self.disk.work.insert(self.command.output, work);
        Ok(())
    }

    fn work(&self) -> ModelWork {
        self.disk.work.get(self.command.output).copied().unwrap_or_default()
    }

    fn journal(&self) -> &ModelJournal {
        self.journal.as_ref().expect("begun")
    }

    /// Whether the input is not the file that the journal knows.
    fn has_new_input(&self, journal: &ModelJournal) -> Result<bool, ModelEnd> {
        let is_it = |file: &ModelFile| file.id == journal.input;
        match self.disk.hidden.get(self.command.input) {
            Some(file) if !is_it(file) => Err(ModelEnd::OtherInput),
            Some(file) if file.appended => Err(ModelEnd::Refused(ConsumeRefusal::Written(0))),
            Some(_) => Ok(false),
            None => {
                let found = self.disk.files.get(self.command.input);
                Ok(found.is_none_or(|file| !is_it(file) || file.appended))
            }
        }
    }

    /// Gives the input its hidden name.
    fn claim(&mut self) -> Result<(), ModelEnd> {
        let (input, id) = (self.command.input, self.journal().input);
        match self.disk.hidden.get(input) {
            Some(file) if file.id == id => return Ok(()),
            Some(_) => return Err(ModelEnd::Claimed),
            None => {}
        }
        self.change(|disk, _| {
            let file = disk.files.remove(input).expect("just seen");
            disk.hidden.insert(input, file);
        })
    }
}

impl ConsumeSteps for ModelRun {
    type Error = ModelEnd;

    fn begun(&self) -> Result<WorkProgress, ModelEnd> {
        if self.work().bad_journal {
            return Err(ModelEnd::Damaged);
        }
        let Some(journal) = self.work().journal else { return Ok(WorkProgress::Nothing) };
        let same = journal.command == self.command;
        let untouched = journal.taken == 0;
        let claimed = self.disk.hidden.get(journal.command.input);
        let free = !same && claimed.is_none_or(|file| file.id != journal.input);
        Ok(match () {
            () if untouched && (free || same && self.has_new_input(&journal)?) => {
                WorkProgress::Nothing
            }
            () if same => WorkProgress::Ours(journal.phase.into()),
            () => WorkProgress::Other,
        })
    }

    fn inputs(&self) -> usize {
        1
    }

    fn look(&self, _: usize) -> Result<InputState, ModelEnd> {
        let input = self.command.input;
        let id = self.journal().input;
        let ours = |file: &&ModelFile| file.id == id;
        let hidden = self.disk.hidden.get(input).filter(ours);
        Ok(match hidden.or(self.disk.files.get(input)) {
            None => InputState::Missing,
            Some(file) if file.id != id => InputState::Stranger,
            Some(file) if file.appended => InputState::Written,
            Some(_) => InputState::Input,
        })
    }

    fn has_stranger(&self, _: usize) -> Result<bool, ModelEnd> {
        let file = self.disk.files.get(self.command.input);
        let result = self.journal().result;
        Ok(file.is_some_and(|file| result != Some(file.id)))
    }

    fn is_output(&self, _: usize) -> bool {
        self.command.input == self.command.output
    }

    fn begin(&mut self) -> Result<(), ModelEnd> {
        let command = self.command;
        let file = self.disk.files.get(command.input).ok_or(ModelEnd::Missing)?;
        let (input, content) = (file.id, file.content);
        if self.disk.hidden.has(command.input) {
            return Err(ModelEnd::Claimed);
        }
        let phase = PhaseNote::Sorting;
        let work = self.work();
        if !judge(&work.facts(&self.disk)).may_clear() {
            return Err(ModelEnd::Kept);
        }
        if work != ModelWork::default() {
            self.change(|_, work| *work = ModelWork::default())?;
        }
        self.change(|disk, work| {
            // The sort reads the file as it is now, earlier appends included.
            let file = disk.files.get_mut(command.input).expect("just seen");
            file.appended = false;
            work.journal =
                Some(ModelJournal { command, phase, input, content, taken: 0, result: None });
        })
    }

    fn sort(&mut self) -> Result<(), ModelEnd> {
        let command = self.command;
        if self.work().note != Evidence::Says(()) {
            self.change(|_, work| work.note = Evidence::Says(()))?;
        }
        if !self.journal().named().is_subset(self.work().runs) {
            return Err(ModelEnd::Damaged);
        }
        loop {
            let (id, taken) = (self.journal().input, self.journal().taken);
            if taken == self.journal().content.len() {
                break;
            }
            if self.look(0)? != InputState::Input {
                return Err(ModelEnd::OtherInput);
            }
            let record = self.journal().content.without(self.journal().named()).lowest();
            self.change(|_, work| work.runs = work.runs.with(record))?;
            self.claim()?;
            self.change(|_, work| work.journal.as_mut().expect("begun").taken += 1)?;
            self.change(|disk, _| {
                let file = disk.hidden.get_mut(command.input).filter(|file| file.id == id);
                let records = &mut file.expect("claimed").records;
                *records = records.without(record);
            })?;
        }
        self.change(|_, work| work.journal.as_mut().expect("begun").phase = PhaseNote::Sorted)
    }

    fn verify(&self) -> Result<(), ModelEnd> {
        let work = self.work();
        let is_whole = work.marked || self.journal().named().is_subset(work.runs);
        if is_whole { Ok(()) } else { Err(ModelEnd::Damaged) }
    }

    fn remove_input(&mut self, _: usize) -> Result<(), ModelEnd> {
        self.claim()?;
        let input = self.command.input;
        if self.look(0)? == InputState::Written {
            return Err(ModelEnd::Refused(ConsumeRefusal::Written(0)));
        }
        let content = self.disk.hidden.get(input).expect("claimed").content;
        self.change(|disk, _| _ = disk.hidden.remove(input))?;
        self.removed = self.removed.with(content);
        Ok(())
    }

    fn removed(&mut self) -> Result<(), ModelEnd> {
        self.change(|_, work| work.journal.as_mut().expect("begun").phase = PhaseNote::Removed)
    }

    fn deliver(&mut self) -> Result<(), ModelEnd> {
        let work = self.work();
        if work.resume == ResumeNote::Damaged {
            return Err(ModelEnd::Damaged);
        }
        if work.resume != ResumeNote::Complete {
            if work.marked && (work.resume == ResumeNote::Absent || work.partial.is_none()) {
                // The records that were given back of the runs are nowhere else.
                return Err(ModelEnd::Damaged);
            }
            if !self.journal().named().is_subset(work.runs) {
                return Err(ModelEnd::Damaged);
            }
            self.change(|_, work| work.partial = Some(work.runs))?;
            self.change(|_, work| work.resume = ResumeNote::Started)?;
            self.change(|_, work| work.marked = true)?;
            self.change(|_, work| work.resume = ResumeNote::Complete)?;
            // The blocks of the runs are given back.
            self.change(|_, work| work.runs.clear())?;
        }
        if self.work().partial.is_some() {
            let output = self.command.output;
            if self.is_output(0) && self.disk.files.has(output) {
                return Err(ModelEnd::NameTaken);
            }
            let replaced = self.disk.files.get(output).map(|old| old.records);
            self.change(|disk, work| {
                disk.born += 1;
                work.journal.as_mut().expect("begun").result = Some(disk.born);
            })?;
            self.change(|disk, work| {
                let id = work.journal.as_ref().expect("begun").result.expect("just noted");
                let records = work.partial.take().expect("just seen");
                disk.files.insert(output, ModelFile::new(id, records));
            })?;
            self.replaced = self.replaced.with(replaced.unwrap_or_default());
        }
        self.change(|_, work| work.runs.clear())
    }

    fn delivered(&mut self) -> Result<(), ModelEnd> {
        self.change(|_, work| work.journal.as_mut().expect("begun").phase = PhaseNote::Delivered)
    }

    fn end(&mut self) -> Result<(), ModelEnd> {
        self.change(|_, work| work.resume = ResumeNote::Absent)?;
        self.change(|_, work| work.note = Evidence::Absent)?;
        self.change(|_, work| work.journal = None)?;
        self.change(|_, work| *work = ModelWork::default())
    }

    fn refuse(&self, refusal: ConsumeRefusal) -> ModelEnd {
        ModelEnd::Refused(refusal)
    }
}

/// All that can happen next, commands aside.
fn outside(disk: &ModelDisk) -> Vec<ModelDisk> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut ModelDisk)| {
        let mut next = *disk;
        change(&mut next);
        all.push(next);
    };
    for name in NAMES {
        match disk.files.get(name) {
            None if disk.born < FILES_MAX => with(&|disk| disk.make(name)),
            None => {}
            // Only appends to the input (file 1) matter: no other file ever gives back bytes.
            Some(file) if !file.appended && file.id == 1 => {
                with(&|disk| disk.files.get_mut(name).expect("there").appended = true);
            }
            Some(_) => {}
        }
    }
    for name in disk.hidden.names() {
        // By a program that had the file open.
        with(&|disk| disk.hidden.get_mut(name).expect("there").appended = true);
    }
    if disk.files.has(Out) {
        with(&|disk| {
            disk.files.remove(Out);
        });
    }
    all
}

/// The commands of every story.
const COMMANDS: [ModelCommand; 4] = [
    ModelCommand { input: In, output: Out },
    ModelCommand { input: Other, output: Out },
    ModelCommand { input: In, output: In },
    ModelCommand { input: In, output: Other },
];

#[test]
fn nothing_is_lost_from_any_state_by_any_crash_or_command() {
    let mut start = ModelDisk::default();
    start.make(In);
    let (mut seen, mut waiting) = (HashSet::new(), VecDeque::from([(start, 0)]));
    seen.insert(start);
    let mut known = HashSet::new();
    let (mut crashes, mut successes, mut refusals, mut checked) = (0u64, 0u64, 0u64, 0u64);
    while let Some((disk, events)) = waiting.pop_front() {
        let mut reached = outside(&disk);
        checked += check_recover(&disk, &mut known);
        for command in COMMANDS {
            for changes in 0.. {
                let mut run = ModelRun::new(&disk, command, changes);
                let ended = protocol::run(&mut run);
                check(&disk, &run, command, &ended);
                let crashed = ended == Err(ModelEnd::Crash);
                match &ended {
                    Ok(()) => successes += 1,
                    Err(ModelEnd::Crash) => crashes += 1,
                    Err(_) => refusals += 1,
                }
                reached.push(run.disk);
                if !crashed {
                    break;
                }
            }
        }
        for next in reached {
            if next.born <= FILES_MAX && events < EVENTS_MAX && seen.insert(next) {
                waiting.push_back((next, events + 1));
            }
        }
    }
    let counts = format!(
        "{} states, {crashes} crashes, {successes} ends, {refusals} refusals, {checked} with lost files",
        seen.len()
    );
    assert!(seen.len() > 1_000 && successes > 100 && refusals > 100, "{counts}");
    assert!(checked > 5_000, "{counts}");
}

/// In a state, and after each file of it is lost, damaged or replaced: whatever `recover` advises for each
/// folder of unfinished work is followed, and then nothing that was on the disk is gone. The same goes for every
/// command, and for commands that want the folder for other work. Returns how many such disks were not `known` yet.
fn check_recover(disk: &ModelDisk, known: &mut HashSet<ModelDisk>) -> u64 {
    // One loss makes the same disk of many states.
    let mut all = losses(disk);
    all.retain(|disk| known.insert(*disk));
    for disk in &all {
        for output in disk.work.names() {
            let work = disk.work.get(output).expect("there");
            let verdict = judge(&work.facts(disk));
            let mut next = *disk;
            match verdict.next_step() {
                NextStep::Remove => _ = next.work.remove(output),
                NextStep::Repeat => {
                    // Without a readable journal it is a copy, whose view this folder is itself.
                    let Some(journal) = work.journal.filter(|_| !work.bad_journal) else {
                        continue;
                    };
                    let mut run = ModelRun::new(disk, journal.command, usize::MAX);
                    let _ended = protocol::run(&mut run);
                    still_there(disk, &run.disk, run.replaced, "repeated as recover says");
                    continue;
                }
                NextStep::CopyOut | NextStep::Keep => {}
            }
            still_there(disk, &next, RecordSet::default(), "as recover says");
            if verdict.may_clear() {
                let mut cleared = *disk;
                cleared.work.remove(output);
                still_there(disk, &cleared, RecordSet::default(), "cleared for other work");
            }
        }
        for command in COMMANDS {
            let mut run = ModelRun::new(disk, command, usize::MAX);
            let _ended = protocol::run(&mut run);
            still_there(disk, &run.disk, run.replaced, "any command");
        }
    }
    all.len() as u64
}

fn still_there(before: &ModelDisk, after: &ModelDisk, replaced: RecordSet, why: &str) {
    let lost = before.existing().without(after.existing()).without(replaced);
    assert!(lost.is_empty(), "{why}: lost {lost:?}\nbefore {before:?}\nafter {after:?}");
}

/// The disk, and the disk with one file lost, damaged or replaced.
fn losses(disk: &ModelDisk) -> Vec<ModelDisk> {
    let mut all = vec![*disk];
    let mut with = |change: &dyn Fn(&mut ModelDisk)| {
        let mut next = *disk;
        change(&mut next);
        if next != *disk {
            all.push(next);
        }
    };
    let changes: [&dyn Fn(&mut ModelWork); 9] = [
        &|work| work.journal = None,
        &|work| work.bad_journal = work.journal.is_some(),
        &|work| work.note = Evidence::Absent,
        &|work| {
            if work.note != Evidence::Absent {
                work.note = Evidence::Damaged;
            }
        },
        &|work| work.runs.clear(),
        // A complete output that is lost is lost: the folder then looks as if it had its name.
        &|work| {
            if work.resume != ResumeNote::Complete {
                work.partial = None;
            }
        },
        &|work| work.resume = ResumeNote::Absent,
        &|work| {
            if work.resume != ResumeNote::Absent {
                work.resume = ResumeNote::Damaged;
            }
        },
        &|work| work.stranger = true,
    ];
    for output in disk.work.names() {
        for change in changes {
            with(&|disk| change(disk.work.get_mut(output).expect("there")));
        }
    }
    let stranger = ModelFile::new(STRANGER, RecordSet::of_file(STRANGER));
    for input in disk.hidden.names() {
        with(&|disk| _ = disk.hidden.remove(input));
        with(&|disk| disk.hidden.insert(input, stranger));
    }
    all
}

/// What must hold after a command, however it ended.
fn check(before: &ModelDisk, run: &ModelRun, command: ModelCommand, ended: &Result<(), ModelEnd>) {
    let after = &run.disk;
    let story = || format!("{command:?} {ended:?}\nbefore {before:?}\nafter {after:?}");
    let lost = before.reachable().without(after.reachable()).without(run.replaced);
    assert!(lost.is_empty(), "lost {lost:?}: {}", story());
    let sorted = run.journal.map(|journal| journal.content).unwrap_or_default();
    assert!(run.removed.is_subset(sorted), "removed unread: {}", story());
    if ended.is_ok() {
        // The result may be gone again when the command only cleaned up behind it.
        let left = before.work.get(command.output);
        let is_delivered = |work: &ModelWork| {
            let phase = work.journal.as_ref().map(|journal| journal.phase);
            phase == Some(PhaseNote::Delivered) || work.is_published()
        };
        let cleaned = left.is_some_and(is_delivered);
        let out = after.files.get(command.output);
        assert!(cleaned || out.is_some_and(|out| sorted.is_subset(out.records)), "{}", story());
        assert_eq!(after.work.get(command.output), Some(&ModelWork::default()), "{}", story());
        if let Some(file) = after.files.get(command.input) {
            assert!(run.journal().result == Some(file.id), "a newer input: {}", story());
        }
    }
}
