//! The protocol on real files: it ends before each of its steps in turn, and the same job continues.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::Compression;
use merganser_sort::view::View;
use merganser_sort::{Budget, CompressionChoice, Silent, Strategy};
use merganser_storage::file::FileDirectory;

use super::protocol::{ConsumeRefusal, ConsumeSteps, InputState, WorkProgress};
use super::*;
use crate::unfinished::{WorkError, claimed_path, work_name};

const MEMORY_BYTES: u64 = 8 << 20;
const WORDS: [&str; 2] = ["b\nd\na\n", "c\ne\n"];
const SORTED: &str = "a\nb\nc\nd\ne\n";

#[derive(Debug)]
enum Ending {
    Interrupted,
    Error(ConsumeError),
}

/// The steps of real work, until some of them are taken.
struct InterruptedWork<'a> {
    work: ConsumeWork<'a>,
    left: Cell<usize>,
}

impl InterruptedWork<'_> {
    fn step(&self) -> Result<(), Ending> {
        self.left.set(self.left.get().checked_sub(1).ok_or(Ending::Interrupted)?);
        Ok(())
    }
}

impl ConsumeSteps for InterruptedWork<'_> {
    type Error = Ending;

    fn begun(&self) -> Result<WorkProgress, Ending> {
        self.work.begun().map_err(Ending::Error)
    }

    fn inputs(&self) -> usize {
        self.work.inputs()
    }

    fn look(&self, input: usize) -> Result<InputState, Ending> {
        self.work.look(input).map_err(Ending::Error)
    }

    fn has_stranger(&self, input: usize) -> Result<bool, Ending> {
        self.work.has_stranger(input).map_err(Ending::Error)
    }

    fn is_output(&self, input: usize) -> bool {
        self.work.is_output(input)
    }

    fn begin(&mut self) -> Result<(), Ending> {
        self.step()?;
        self.work.begin().map_err(Ending::Error)
    }

    fn sort(&mut self) -> Result<(), Ending> {
        self.step()?;
        self.work.sort().map_err(Ending::Error)
    }

    fn verify(&self) -> Result<(), Ending> {
        self.work.verify().map_err(Ending::Error)
    }

    fn remove_input(&mut self, input: usize) -> Result<(), Ending> {
        self.step()?;
        self.work.remove_input(input).map_err(Ending::Error)
    }

    fn removed(&mut self) -> Result<(), Ending> {
        self.step()?;
        self.work.removed().map_err(Ending::Error)
    }

    fn deliver(&mut self) -> Result<(), Ending> {
        self.step()?;
        self.work.deliver().map_err(Ending::Error)
    }

    fn delivered(&mut self) -> Result<(), Ending> {
        self.step()?;
        self.work.delivered().map_err(Ending::Error)
    }

    fn end(&mut self) -> Result<(), Ending> {
        self.step()?;
        self.work.end().map_err(Ending::Error)
    }

    fn refuse(&self, refusal: ConsumeRefusal) -> Ending {
        Ending::Error(self.work.refuse(refusal))
    }
}

/// Two inputs in a new folder, and the name of a result.
struct Place {
    folder: tempfile::TempDir,
    is_view: bool,
}

impl Place {
    fn new(is_view: bool) -> Self {
        let place = Place { folder: tempfile::tempdir().expect("a folder"), is_view };
        for (number, words) in WORDS.iter().enumerate() {
            fs::write(place.input(number), words).expect("written");
        }
        place
    }

    fn input(&self, number: usize) -> std::path::PathBuf {
        self.folder.path().join(format!("in{number}"))
    }

    fn output(&self) -> std::path::PathBuf {
        self.folder.path().join("out")
    }

    /// Does `work` with the job of this place.
    fn with_job<T>(&self, work: impl FnOnce(&ConsumeJob<'_>) -> T) -> T {
        let inputs = [self.input(0), self.input(1)];
        let inputs = inputs.each_ref().map(|path| ResultSource::File(path));
        let options = SortOptions::new(OrderSpec::new(Format::Lines { delimiter: b'\n' }))
            .memory(MEMORY_BYTES)
            .threads(1)
            .temp(Vec::new())
            .compression(CompressionChoice::Fixed(Compression::Off))
            .strategy(Strategy::Merge);
        work(&ConsumeJob {
            inputs: &inputs,
            output: &self.output(),
            is_view: self.is_view,
            name: "out".to_owned(),
            content: ContentKind::Text,
            options: &options,
            memory_bytes: MEMORY_BYTES,
            words: Vec::new(),
            folder: JournalText(b"/".to_vec()),
        })
    }

    /// Takes this many steps.
    fn interrupt(&self, steps: usize) -> Result<(), Ending> {
        self.with_job(|job| {
            let work = ConsumeWork::open(job, &Silent, &|_| {}).map_err(Ending::Error)?;
            let work = work.expect("nothing was finished before");
            protocol::run(&mut InterruptedWork { work, left: Cell::new(steps) })
        })
    }

    /// The same job, to its end.
    fn repeat(&self) -> Result<(), ConsumeError> {
        self.with_job(|job| consume(job, &Silent, &|_| {})).map(|_| ())
    }

    fn result(&self) -> Vec<u8> {
        if !self.is_view {
            return fs::read(self.output()).expect("the result");
        }
        let folder: std::sync::Arc<dyn merganser_storage::Directory> =
            FileDirectory::open(self.output()).expect("the view");
        let view = View::open(&folder, &Budget::new(MEMORY_BYTES), 1).expect("a view");
        let mut stream = view.stream(0..u64::MAX).expect("a stream");
        let mut all = Vec::new();
        while let Some(bytes) = stream.next_bytes().expect("read") {
            all.extend_from_slice(bytes);
        }
        all
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("listed");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<_> =
            entries.map(|entry| name(entry).into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    fn work(&self) -> std::path::PathBuf {
        self.folder.path().join(work_name("out".as_ref()))
    }
}

/// Changes of a job with two inputs: begin, sort, two removals, removed, deliver, delivered, end.
const STEPS: usize = 8;

#[test]
fn the_same_job_continues_after_any_step() {
    for is_view in [false, true] {
        for steps in 0..STEPS {
            let place = Place::new(is_view);
            match place.interrupt(steps) {
                Err(Ending::Interrupted) => {}
                Err(Ending::Error(error)) => panic!("{steps}: {error}"),
                Ok(()) => panic!("{steps}: there are fewer steps"),
            }
            place.repeat().unwrap_or_else(|error| panic!("view {is_view}, {steps}: {error}"));
            assert_eq!(place.result(), SORTED.as_bytes(), "view {is_view}, after {steps} steps");
            assert_eq!(place.names(), ["out"], "view {is_view}, after {steps} steps");
        }
        Place::new(is_view).interrupt(STEPS).expect("all steps");
    }
}

#[test]
fn a_file_that_appears_later_is_neither_read_nor_lost() {
    // The inputs are claimed once they are sorted.
    for steps in 2..STEPS {
        let place = Place::new(false);
        place.interrupt(steps).expect_err("interrupted");
        fs::write(place.input(1), "new\n").expect("written");
        let refused = place.repeat().expect_err("not read");
        assert!(
            matches!(&refused, ConsumeError::NotRead { input, .. } if *input == place.input(1)),
            "{steps}: {refused}"
        );
        assert_eq!(fs::read(place.input(1)).expect("there"), b"new\n");
        assert_eq!(place.result(), SORTED.as_bytes());
        assert_eq!(place.names(), ["in1", "out"]);
    }
}

#[test]
fn an_input_that_was_written_to_is_kept() {
    let place = Place::new(false);
    place.interrupt(2).expect_err("interrupted");
    let hidden = claimed_path(&place.input(0));
    fs::write(&hidden, "another length").expect("written");
    let refused = place.repeat().expect_err("changed");
    let ConsumeError::Begun { error, folder, phase, .. } = refused else { panic!("{refused}") };
    assert!(matches!(*error, ConsumeError::Written(ref input) if input.place == hidden), "{error}");
    assert_eq!((folder, phase), (place.work(), merganser_sort::journal::SortPhase::Sorted));
    assert_eq!(fs::read(&hidden).expect("kept"), b"another length");
}

#[test]
fn a_view_does_not_take_the_name_of_a_file() {
    let place = Place::new(true);
    place.interrupt(5).expect_err("interrupted");
    fs::write(place.output(), "a stranger").expect("written");
    let refused = place.repeat().expect_err("taken");
    let ConsumeError::Begun { error, .. } = refused else { panic!("{refused}") };
    let ConsumeError::Results(crate::ResultsError::Work(WorkError::Taken(name))) = *error else {
        panic!("{error}")
    };
    assert_eq!(name, place.output());
    assert_eq!(fs::read(place.output()).expect("there"), b"a stranger");
    fs::remove_file(place.output()).expect("removed");
    place.repeat().expect("delivered");
    assert_eq!(place.result(), SORTED.as_bytes());
}

#[test]
fn other_work_and_lost_files_are_refused() {
    let place = Place::new(false);
    place.interrupt(2).expect_err("interrupted");
    // The same folder, for one of the inputs only.
    fs::rename(claimed_path(&place.input(1)), place.folder.path().join("aside")).expect("moved");
    let other = place.with_job(|job| {
        let job = ConsumeJob {
            inputs: &job.inputs[..1],
            name: job.name.clone(),
            words: Vec::new(),
            folder: job.folder.clone(),
            ..*job
        };
        consume(&job, &Silent, &|_| {})
    });
    let Err(ConsumeError::Begun { error, .. }) = other else { panic!("{other:?}") };
    let ConsumeError::OtherWork { journal, .. } = *error else { panic!("{error}") };
    assert_eq!(journal.inputs.len(), 2);
    // A journal that can't be read ends every job, and nothing is cleared.
    let before = fs::read_dir(place.work()).expect("listed").count();
    fs::write(place.work().join("sort-journal"), "damage").expect("written");
    assert!(matches!(place.repeat(), Err(ConsumeError::Results(_))));
    assert_eq!(fs::read_dir(place.work()).expect("listed").count(), before);
}

#[test]
fn what_would_stop_the_job_later_is_found_before_it_begins() {
    let refused = |change: &dyn Fn(&Path)| {
        let place = Place::new(false);
        change(&place.input(0));
        let error = place.repeat().expect_err("refused");
        assert_eq!(fs::read(place.input(1)).expect("whole"), WORDS[1].as_bytes());
        assert!(!place.work().exists(), "{error}");
        error
    };
    let unfit = |change: &dyn Fn(&Path)| match refused(change) {
        ConsumeError::Unfit { why, .. } => why,
        error => panic!("{error}"),
    };
    let again = |path: &Path| path.with_file_name("again");
    assert_eq!(
        unfit(&|path| fs::hard_link(path, again(path)).expect("linked")),
        UnfitInput::OtherLinks
    );
    let linked = unfit(&|path| {
        fs::rename(path, again(path)).expect("renamed");
        std::os::unix::fs::symlink(again(path), path).expect("linked");
    });
    assert_eq!(linked, UnfitInput::Link);
    let folder = unfit(&|path| {
        fs::remove_file(path).expect("removed");
        fs::create_dir(path).expect("made");
    });
    assert_eq!(folder, UnfitInput::NotRegular);
    let claimed = unfit(&|path| fs::write(claimed_path(path), "").expect("written"));
    assert!(matches!(claimed, UnfitInput::Claimed(_)));
    let packed =
        refused(&|path| fs::write(path, b"\x1f\x8b\x08\0\0\0\0\0\0\x03").expect("written"));
    assert!(matches!(packed, ConsumeError::Packed(_)), "{packed}");
    let missing = refused(&|path| fs::remove_file(path).expect("removed"));
    assert!(
        matches!(missing, ConsumeError::Results(crate::ResultsError::File { .. })),
        "{missing}"
    );
    let twice = refused(&|path| {
        let other = path.with_file_name("in1");
        fs::remove_file(path).expect("removed");
        fs::hard_link(other, path).expect("linked");
    });
    assert!(matches!(twice, ConsumeError::Unfit { why: UnfitInput::OtherLinks, .. }), "{twice}");
}
