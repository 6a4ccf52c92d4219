//! A temporary folder with inputs, views and jobs on them.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use merganser_results::consume::{ConsumeError, ConsumeJob, consume};
use merganser_results::materialize::{CopyDone, CopyError, CopyJob, copy_to_file};
use merganser_results::{Notice, ResultSource};
use merganser_sort::journal::JournalText;
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::Compression;
use merganser_sort::run::magic::ContentKind;
use merganser_sort::{CompressionChoice, Progress, Silent, SortOptions, SortReport, Strategy};
use merganser_storage::Directory;
use merganser_storage::file::FileDirectory;
use merganser_testkit::Random;

/// Little enough for several runs of [`Place::many_records`].
pub(crate) const MEMORY_BYTES: u64 = 3_200_000;
const FORMAT: Format = Format::Fixed { bytes: 16 };

/// The end is asked for at this look.
pub(crate) struct EndsAt {
    looks: AtomicU64,
    last: u64,
}

impl EndsAt {
    pub(crate) fn look(last: u64) -> Self {
        EndsAt { looks: AtomicU64::new(0), last }
    }
}

impl Progress for EndsAt {
    fn cancelled(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) >= self.last
    }
}

/// Ignores a notice.
pub(crate) fn unheard(_: &Notice) {}

pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Place(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A new file.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.at(name), content).expect("written");
        self.at(name)
    }

    /// The folder of unfinished work of the result `name`.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.at(&format!(".{name}.unfinished"))
    }

    /// Makes an empty folder of unfinished work.
    pub(crate) fn make_work(&self, result: &str) {
        DirBuilder::new().mode(0o700).create(self.work(result)).expect("made");
    }

    pub(crate) fn names(&self) -> Vec<String> {
        names_in(self.folder())
    }

    /// Enough for several runs.
    pub(crate) fn many_records(&self) -> Vec<u8> {
        records(40_000)
    }

    /// Sorts `input` into `output`, and consumes it.
    pub(crate) fn consume(
        &self,
        input: &str,
        output: &str,
        is_view: bool,
        progress: &dyn Progress,
    ) -> Result<SortReport, ConsumeError> {
        let options = SortOptions::new(OrderSpec::new(FORMAT))
            .memory(MEMORY_BYTES)
            .threads(1)
            .temp(Vec::new())
            .compression(CompressionChoice::Fixed(Compression::Off))
            .strategy(Strategy::Merge);
        let job = ConsumeJob {
            inputs: &[ResultSource::File(&self.at(input))],
            output: &self.at(output),
            is_view,
            name: output.to_owned(),
            content: ContentKind::Binary,
            options: &options,
            memory_bytes: MEMORY_BYTES,
            words: Vec::new(),
            folder: JournalText::from(self.folder().as_os_str()),
        };
        consume(&job, progress, &unheard)
    }

    /// A view whose copy has several resume points.
    pub(crate) fn view(&self, name: &str) -> Vec<u8> {
        let records = records(400_000);
        self.file("records", &records);
        self.consume("records", name, true, &Silent).expect("a view");
        sorted(&records)
    }

    /// Copies a view to a file.
    pub(crate) fn copy(
        &self,
        view: &str,
        output: &str,
        consume: bool,
        progress: &dyn Progress,
    ) -> Result<CopyDone, CopyError> {
        let job = CopyJob {
            view: &self.at(view),
            output: &self.at(output),
            consume,
            memory_bytes: MEMORY_BYTES,
            threads: 1,
        };
        copy_to_file(&job, progress, &unheard)
    }

    /// A job of `begin` that is interrupted so that the folder of `output` stays, with `file` in it.
    pub(crate) fn until_there_is(&self, file: &Path, mut begin: impl FnMut(&EndsAt)) {
        for look in 0..10_000 {
            begin(&EndsAt::look(look));
            if file.exists() {
                return;
            }
        }
        panic!("{} was never left", file.display());
    }
}

fn records(count: usize) -> Vec<u8> {
    let mut random = Random::new(7);
    (0..2 * count).flat_map(|_| random.bits().to_be_bytes()).collect()
}

pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("listed");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<_> =
        entries.map(|entry| name(entry).into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// The files of a folder.
pub(crate) fn files_of(folder: &Path) -> Arc<dyn Directory> {
    FileDirectory::open(folder).expect("opened")
}

/// The records in order.
pub(crate) fn sorted(records: &[u8]) -> Vec<u8> {
    let mut records: Vec<&[u8]> = records.chunks(16).collect();
    records.sort();
    records.concat()
}
