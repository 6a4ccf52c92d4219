//! Two processors, a memory group, a folder, and programs that are timed.
//!
//! The first processor stands for the storage node, the second one for the compute nodes. All programs share
//! the memory group, whose ratio to the database is that of the paper's nodes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use merganser_generate::SequenceAlphabet;
use merganser_pipeline::blast::count::DatabaseCounts;

use super::data;
use super::paper;
use super::tools::InstalledTools;
use crate::child::Child;
use crate::error::ExperimentError;
use crate::folder::ScratchFolder;
use crate::lab::Lab;
use crate::mcsd::group::{self, MemoryGroup};
use crate::statistics::median;

/// Memory of the group, without `--size`.
const MEMORY_BYTES: u64 = 128 << 20;

/// Less is too little for BLAST itself; then a database is no longer a large share of memory.
const MEMORY_BYTES_LEAST: u64 = 128 << 20;

/// Longer than this, a program has no end in sight.
const SECONDS_MOST: u64 = 1800;

/// The system counts processor time of processes in this unit, on every architecture that Rust runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// A processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BedNode {
    /// The first.
    Storage,
    /// The second.
    Compute,
    /// Both.
    Both,
}

/// What a program needed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ProgramTime {
    /// From start to end.
    pub seconds: f64,
    /// Processor time of it and its children, in hundredths.
    pub processor_seconds: f64,
}

/// Fields are dropped from first to last.
pub(super) struct Bed<'a> {
    lab: &'a Lab<'a>,
    child: Child,
    group: Option<MemoryGroup>,
    /// Why there is no group.
    ungrouped: Option<String>,
    _scratch: ScratchFolder,
    folder: PathBuf,
    /// The programs.
    pub tools: InstalledTools,
    processors: [usize; 2],
    /// Of the group.
    pub memory_bytes: u64,
    /// The database of the largest size.
    largest_mb: f64,
    largest_bytes: u64,
    real_bytes: u64,
    /// The letters of the database.
    alphabet: SequenceAlphabet,
    /// The database at the moment.
    pub database: DatabaseCounts,
}

/// Memory of the group, and bytes of the largest database, which has `largest_mb` in the paper.
fn sizes(size_bytes: Option<u64>, largest_mb: f64) -> (u64, u64) {
    let share = largest_mb / paper::MEMORY_MB;
    let largest_bytes = size_bytes.unwrap_or((MEMORY_BYTES as f64 * share) as u64).max(4096);
    (((largest_bytes as f64 / share) as u64).max(MEMORY_BYTES_LEAST), largest_bytes)
}

impl<'a> Bed<'a> {
    /// Makes all of it, with a database of the largest size.
    pub(super) fn new(
        lab: &'a Lab<'a>,
        experiment: &'static str,
        largest_mb: f64,
    ) -> Result<Self, ExperimentError> {
        let tools = InstalledTools::find(experiment)?;
        let processors = two_processors(experiment)?;
        let (memory_bytes, largest_bytes) = sizes(lab.setup.size_bytes, largest_mb);
        let scratch = ScratchFolder::new(lab)?;
        let folder = scratch
            .path()
            .canonicalize()
            .map_err(|error| ExperimentError::on(scratch.path(), error))?;
        let group = group::check(experiment).and_then(|()| MemoryGroup::new(memory_bytes));
        let (group, ungrouped) = match group {
            Ok(group) => (Some(group), None),
            Err(reason) => (None, Some(reason.to_string())),
        };
        let mut bed = Bed {
            child: Child::watched(lab),
            lab,
            group,
            ungrouped,
            _scratch: scratch,
            folder,
            tools,
            processors,
            memory_bytes,
            largest_mb,
            largest_bytes,
            real_bytes: 0,
            alphabet: SequenceAlphabet::Protein,
            database: DatabaseCounts::default(),
        };
        bed.make(bed.alphabet)?;
        Ok(bed)
    }

    /// Makes the database of the largest size, of these letters.
    pub(super) fn make(&mut self, alphabet: SequenceAlphabet) -> Result<(), ExperimentError> {
        self.lab.check_cancelled()?;
        self.lab.progress.phase("generating", None);
        let path = self.database_path();
        let made = data::write(&path, self.largest_bytes, alphabet, &data::real(alphabet));
        self.real_bytes = made.map_err(|error| ExperimentError::on(&path, error))?;
        self.alphabet = alphabet;
        self.count()
    }

    fn count(&mut self) -> Result<(), ExperimentError> {
        let path = self.database_path();
        let counts = data::count(&path, self.alphabet);
        self.database = counts.map_err(|error| ExperimentError::on(&path, error))?;
        Ok(())
    }

    /// Cuts the database to a size of the paper's, in MB. Sizes only become smaller.
    pub(super) fn cut(&mut self, megabytes: f64) -> Result<(), ExperimentError> {
        let path = self.database_path();
        let bytes = (self.largest_bytes as f64 * megabytes / self.largest_mb) as u64;
        data::cut(&path, bytes).map_err(|error| ExperimentError::on(&path, error))?;
        self.count()
    }

    /// Where the database is.
    pub(super) fn database_path(&self) -> PathBuf {
        self.path("database.fa")
    }

    /// A file in the folder; the path is absolute.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The command that this program is.
    pub(super) fn merganser(&self) -> &Path {
        &self.lab.setup.program
    }

    /// The number of a processor, for `taskset`.
    pub(super) fn processors_of(&self, node: BedNode) -> String {
        let [storage, compute] = self.processors;
        match node {
            BedNode::Storage => storage.to_string(),
            BedNode::Compute => compute.to_string(),
            BedNode::Both => format!("{storage},{compute}"),
        }
    }

    /// A program in the memory group, on these processors, with nothing to read.
    pub(super) fn command(&self, node: BedNode, program: &Path) -> Command {
        let mut command = match &self.group {
            Some(group) => group.joined(Path::new("taskset")),
            None => Command::new("taskset"),
        };
        command.args(["--cpu-list", &self.processors_of(node)]).arg(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).current_dir(&self.folder);
        command
    }

    /// The median of the rounds of `--rounds`, 1 by default, by the seconds of each.
    pub(super) fn median<T>(
        &self,
        mut once: impl FnMut() -> Result<T, ExperimentError>,
        seconds: impl Fn(&T) -> f64,
    ) -> Result<T, ExperimentError> {
        let mut rounds = Vec::new();
        for _ in 0..self.lab.setup.rounds.unwrap_or(1).max(1) {
            rounds.push(once()?);
        }
        let wanted = median(rounds.iter().map(&seconds).collect());
        let found = rounds.iter().position(|round| seconds(round) == wanted);
        Ok(rounds.swap_remove(found.expect("the median is one of them")))
    }

    /// Has the kernel forget what it holds of the database, so that the next program reads it from the disk.
    pub(super) fn forget(&self) -> Result<(), ExperimentError> {
        let path = self.database_path();
        let file = File::open(&path).map_err(|error| ExperimentError::on(&path, error))?;
        file.sync_all().map_err(|error| ExperimentError::on(&path, error))?;
        // A kernel may ignore the advice.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        Ok(())
    }

    /// Runs a program to its end.
    pub(super) fn time(
        &self,
        name: &'static str,
        command: &mut Command,
    ) -> Result<ProgramTime, ExperimentError> {
        self.lab.check_cancelled()?;
        self.lab.progress.phase(name, None);
        let said = self.path("said");
        let log = File::create(&said).map_err(|error| ExperimentError::on(&said, error))?;
        command.stderr(log);
        let failed = |error| ExperimentError::on(Path::new(name), error);
        let before = children_seconds();
        let started = Instant::now();
        let mut child = command.spawn().map_err(failed)?;
        self.child.set(Some(child.id()));
        let status = loop {
            if let Some(status) = self.child.poll(&mut child).map_err(failed)? {
                break status;
            }
            if started.elapsed() > Duration::from_secs(SECONDS_MOST) {
                // It can't be reaped before: it is still a child.
                let _ = child.kill();
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let seconds = started.elapsed().as_secs_f64();
        self.lab.check_cancelled()?;
        if status.success() {
            return Ok(ProgramTime { seconds, processor_seconds: children_seconds() - before });
        }
        let said = fs::read_to_string(&said).unwrap_or_default();
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        let last = last.trim_start_matches("merganser: ");
        let message = if last.is_empty() { status.to_string() } else { last.to_owned() };
        Err(ExperimentError::Program { program: name.to_owned(), message })
    }

    /// Sentences that hold for all experiments of this chapter.
    pub(super) fn differs(&self) -> Vec<String> {
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let mut differs = vec![
            paper::TEST_BED.to_owned(),
            format!(
                "Ours: one machine. Processor {} formats, as the storage node; processor {} searches, as the compute nodes. {}, with makeblastdb in the place of mpiformatdb. mpiBLAST is neither in distributions nor maintained.",
                self.processors[0], self.processors[1], self.tools.blast
            ),
            format!(
                "The largest database has {:.1} MiB of proteins, {:.1} MiB of them real; the rest is generated, with families of mutated copies. Each size keeps its share of the paper's memory of 2 GB.",
                mebibytes(self.largest_bytes),
                mebibytes(self.real_bytes),
            ),
        ];
        if self.real_bytes == 0 {
            differs.push(format!(
                "There are no real sequences: Debian's mmseqs2-examples, prokka, resfinder-db and kleborate have some, installed or unpacked in the folder that {} names.",
                data::VARIABLE
            ));
        }
        if let Some(reason) = &self.ungrouped {
            differs.push(format!(
                "Memory was not limited, so these figures show nothing of its size: {reason}."
            ));
            return differs;
        }
        differs.push(format!(
            "All programs share a control group of {:.0} MiB of memory, page cache included.",
            mebibytes(self.memory_bytes)
        ));
        let share = self.largest_bytes as f64 / self.memory_bytes as f64;
        if share < 0.95 * self.largest_mb / paper::MEMORY_MB {
            differs.push(format!(
                "The database is small compared with the memory, which is at least {:.0} MiB: these figures show only that the experiment runs.",
                mebibytes(MEMORY_BYTES_LEAST)
            ));
        }
        differs
    }
}

/// Two processors that this process may use.
fn two_processors(experiment: &'static str) -> Result<[usize; 2], ExperimentError> {
    let mut allowed = Vec::new();
    if let Ok(set) = rustix::thread::sched_getaffinity(None) {
        allowed = (0..rustix::thread::CpuSet::MAX_CPU).filter(|at| set.is_set(*at)).collect();
    }
    match allowed[..] {
        [first, second, ..] => Ok([first, second]),
        _ => Err(ExperimentError::Needs { experiment, what: "two processors".to_owned() }),
    }
}

/// Processor time of all processes that this one, or a child of it, waited for.
fn children_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold blanks, come the state and numbers; the 14th and 15th are these.
    let numbers = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = numbers.split(' ').skip(13).take(2).filter_map(|number| number.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_the_database_down_to_a_least() {
        assert_eq!(sizes(None, 2000.0), (128 << 20, 128 << 20));
        assert_eq!(sizes(None, 1750.0), (128 << 20, 112 << 20));
        assert_eq!(sizes(Some(1 << 30), 2000.0), (1 << 30, 1 << 30));
        assert_eq!(sizes(Some(1 << 20), 2000.0), (128 << 20, 1 << 20));
    }

    #[test]
    fn processor_time_of_children_is_counted() {
        let before = children_seconds();
        let mut busy = Command::new("sh");
        busy.args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]);
        assert!(busy.status().expect("runs").success());
        let used = children_seconds() - before;
        assert!((0.02..60.0).contains(&used), "{used}");
    }
}
