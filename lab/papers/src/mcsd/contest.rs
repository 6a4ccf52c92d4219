//! Programs that do a job on data of a share of memory, timed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::group::{self, MemoryGroup, SwapFile};
use super::job::ContestJob;
use super::phoenix::{Phoenix, PhoenixVersion};
use super::text;
use crate::child::Child;
use crate::error::ExperimentError;
use crate::folder::ScratchFolder;
use crate::lab::Lab;

/// The data of the paper, as shares of its 2 GB of memory: 500 MB, 750 MB, 1 GB and 1.25 GB.
pub(super) const SHARES: [f64; 4] = [0.25, 0.375, 0.5, 0.625];

/// The paper's names for these.
pub(super) const SIZES: [&str; 4] = ["500 MB", "750 MB", "1 GB", "1.25 GB"];

/// The paper's partition of 600 MB as a share of memory.
const PARTITION_SHARE: f64 = 0.3;

/// Memory of the group, without `--size`.
const MEMORY_BYTES: u64 = 512 << 20;

/// Less is too little for any program; then data is no longer a large share of memory.
const MEMORY_BYTES_LEAST: u64 = 128 << 20;

/// Longer than this, a program swaps without an end in sight.
const SECONDS_MOST: u64 = 1800;

/// The contestant that does a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contestant {
    /// Ours on one core, with partitions as memory allows.
    Sequential,
    /// Ours on two cores, with partitions as memory allows.
    Duo,
    /// The same with partitions of the paper's share of memory.
    DuoParts,
    /// The same in one partition.
    DuoWhole,
    /// Phoenix 2.0 on two cores.
    Phoenix,
    /// Phoenix++ 1.0 on two cores.
    PhoenixPlusPlus,
}

impl Contestant {
    pub(super) fn name(self) -> &'static str {
        match self {
            Contestant::Sequential => "ours, one core",
            Contestant::Duo => "ours, two cores",
            Contestant::DuoParts => "ours, two cores, partitions of 0.3 of memory",
            Contestant::DuoWhole => "ours, two cores, no partition",
            Contestant::Phoenix => "Phoenix 2.0, two cores",
            Contestant::PhoenixPlusPlus => "Phoenix++ 1.0, two cores",
        }
    }

    fn version(self) -> Option<PhoenixVersion> {
        match self {
            Contestant::Phoenix => Some(PhoenixVersion::Two),
            Contestant::PhoenixPlusPlus => Some(PhoenixVersion::PlusPlus),
            _ => None,
        }
    }

    fn cores(self) -> usize {
        if self == Contestant::Sequential { 1 } else { 2 }
    }
}

/// The measurements of a contestant; no seconds if it did not end well, or is not here.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContestSeconds {
    pub size: usize,
    pub job: ContestJob,
    pub contestant: Contestant,
    pub seconds: Option<f64>,
}

/// Seconds of all that was measured.
#[derive(Debug, Default)]
pub(super) struct ContestResults(pub Vec<ContestSeconds>);

impl ContestResults {
    pub(super) fn seconds(
        &self,
        size: usize,
        job: ContestJob,
        contestant: Contestant,
    ) -> Option<f64> {
        let wanted = |m: &&ContestSeconds| (m.size, m.job, m.contestant) == (size, job, contestant);
        self.0.iter().find(wanted)?.seconds
    }

    /// How many times as long `slow` took as `fast`.
    pub(super) fn ratio(
        &self,
        size: usize,
        job: ContestJob,
        slow: Contestant,
        fast: Contestant,
    ) -> Option<f64> {
        Some(self.seconds(size, job, slow)? / self.seconds(size, job, fast)?)
    }
}

/// Data, memory group and swap of an experiment. Fields are dropped from first to last.
pub(super) struct ContestArena<'a> {
    lab: &'a Lab<'a>,
    child: Child,
    group: MemoryGroup,
    _swap: SwapFile,
    phoenix: Option<Phoenix>,
    folder: ScratchFolder,
    /// Of the group.
    pub memory_bytes: u64,
    /// The largest data.
    data_bytes: u64,
}

/// Memory of the group, and bytes of the largest data.
fn sizes(size_bytes: Option<u64>) -> (u64, u64) {
    let largest = SHARES[SHARES.len() - 1];
    let data_bytes = size_bytes.unwrap_or((MEMORY_BYTES as f64 * largest) as u64).max(4096);
    (((data_bytes as f64 / largest) as u64).max(MEMORY_BYTES_LEAST), data_bytes)
}

impl<'a> ContestArena<'a> {
    /// Makes all of it, with text of the largest size.
    pub(super) fn new(lab: &'a Lab<'a>, experiment: &'static str) -> Result<Self, ExperimentError> {
        group::check(experiment)?;
        let (memory_bytes, data_bytes) = sizes(lab.setup.size_bytes);
        let folder = ScratchFolder::new(lab)?;
        lab.progress.phase("building controls", None);
        let phoenix = Phoenix::build(folder.path())?;
        // Phoenix 2.0 holds up to 4.3 times its input.
        let swap = SwapFile::new(folder.path(), 3 * memory_bytes)?;
        let group = MemoryGroup::new(memory_bytes)?;
        let child = Child::watched(lab);
        let arena = ContestArena {
            lab,
            child,
            group,
            _swap: swap,
            phoenix,
            folder,
            memory_bytes,
            data_bytes,
        };
        lab.progress.phase("generating", None);
        let path = arena.text();
        text::write(&path, data_bytes).map_err(|error| ExperimentError::on(&path, error))?;
        Ok(arena)
    }

    fn text(&self) -> PathBuf {
        self.folder.path().join("text")
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whether the controls are here.
    pub(super) fn has_controls(&self) -> bool {
        self.phoenix.is_some()
    }

    /// Cuts the text to a size, by its place in [`SHARES`]. Sizes only become smaller.
    pub(super) fn cut(&self, size: usize) -> Result<(), ExperimentError> {
        let share = SHARES[size] / SHARES[SHARES.len() - 1];
        let path = self.text();
        text::cut(&path, (self.data_bytes as f64 * share) as u64)
            .map_err(|error| ExperimentError::on(&path, error))
    }

    /// Measures all contestants at the sizes, the largest first.
    pub(super) fn measure(
        &self,
        sizes: &[usize],
        contestants: &[Contestant],
    ) -> Result<ContestResults, ExperimentError> {
        let mut results = ContestResults::default();
        for size in sizes.iter().rev() {
            self.cut(*size)?;
            for job in ContestJob::BOTH {
                for contestant in contestants {
                    let seconds = self.median(|| self.time(job, *contestant))?;
                    let contestant = *contestant;
                    results.0.push(ContestSeconds { size: *size, job, contestant, seconds });
                }
            }
        }
        Ok(results)
    }

    /// The median of the rounds; nothing if one of them failed.
    pub(super) fn median(
        &self,
        time: impl Fn() -> Result<Option<f64>, ExperimentError>,
    ) -> Result<Option<f64>, ExperimentError> {
        let rounds = self.lab.setup.rounds.unwrap_or(1).max(1);
        let mut seconds = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let Some(once) = time()? else { return Ok(None) };
            seconds.push(once);
        }
        seconds.sort_by(f64::total_cmp);
        Ok(Some(seconds[rounds / 2]))
    }

    /// Seconds of a contestant from start to end, with the text not in the page cache.
    fn time(
        &self,
        job: ContestJob,
        contestant: Contestant,
    ) -> Result<Option<f64>, ExperimentError> {
        let Some(mut command) = self.command(job, contestant) else { return Ok(None) };
        self.lab.check_cancelled()?;
        self.lab.progress.phase(job.name(), None);
        self.forget_text()?;
        let started = Instant::now();
        let is_control = contestant.version().is_some();
        let ended = self.wait(&mut command, is_control)?;
        Ok(ended.then(|| started.elapsed().as_secs_f64()))
    }

    /// Has the kernel forget what it holds of the text.
    pub(super) fn forget_text(&self) -> Result<(), ExperimentError> {
        let path = self.text();
        let file = File::open(&path).map_err(|error| ExperimentError::on(&path, error))?;
        file.sync_all().map_err(|error| ExperimentError::on(&path, error))?;
        // A kernel may ignore the advice.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        Ok(())
    }

    /// The command of a contestant, in the group; `None` for a control that is not here.
    pub(super) fn command(&self, job: ContestJob, contestant: Contestant) -> Option<Command> {
        let cores = contestant.cores();
        let mut command = match contestant.version() {
            Some(version) => {
                let mut command =
                    self.group.command(&self.phoenix.as_ref()?.program(version, job), cores);
                command.env("MR_NUMTHREADS", cores.to_string());
                command.env("MAPRED_NPROCESSORS", cores.to_string());
                command.arg(self.text());
                command
            }
            None => {
                let mut command = self.group.command(&self.lab.setup.program, cores);
                command.args(["map", map_name(job)]).arg(self.text());
                command.args(words(job, contestant, self.memory_bytes, cores));
                command.arg("--temp-dir").arg(self.folder.path());
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Some(command)
    }

    /// Runs a command to its end. A control may fail: whether it ended well is the answer.
    pub(super) fn wait(
        &self,
        command: &mut Command,
        may_fail: bool,
    ) -> Result<bool, ExperimentError> {
        let program = &self.lab.setup.program;
        let said = self.path("said");
        let log = File::create(&said).map_err(|error| ExperimentError::on(&said, error))?;
        command.stderr(log);
        let mut child = command.spawn().map_err(|error| ExperimentError::on(program, error))?;
        self.child.set(Some(child.id()));
        let begun = Instant::now();
        let status = loop {
            if let Some(status) =
                self.child.poll(&mut child).map_err(|error| ExperimentError::on(program, error))?
            {
                break status;
            }
            if begun.elapsed() > Duration::from_secs(SECONDS_MOST) {
                // It can't be reaped before: it is still a child.
                let _ = child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.lab.check_cancelled()?;
        if status.success() || may_fail {
            return Ok(status.success());
        }
        let said = fs::read_to_string(&said).unwrap_or_default();
        let message = said.trim_end().trim_start_matches("merganser: ").to_owned();
        let message = if message.is_empty() { status.to_string() } else { message };
        Err(ExperimentError::Command { command: "map".to_owned(), message })
    }

    /// The differences from the paper that all its experiments have.
    pub(super) fn differs(&self) -> Vec<String> {
        let mebibytes = |bytes: u64| bytes >> 20;
        let mut differs = vec![
            format!(
                "Theirs: 2 GB of memory, a Core2 Duo E4400 and gcc 4.4. Ours: a memory group of {} MiB with a swap file, on two processors of the machine above; the largest text has {} MiB.",
                mebibytes(self.memory_bytes),
                mebibytes(self.data_bytes)
            ),
            format!(
                "The text: {} distinct words by Zipf's law, which the paper doesn't tell. Phoenix 2.0 slows down with more. All programs count words of letters, in upper case.",
                text::VOCABULARY
            ),
            "Ours reads its input piece by piece and never holds all of it, so \"no partition\" costs it nothing as long as the counts fit. The paper's gain is that of partitions over Phoenix 2.0, which holds two to four times its input; Phoenix 2.0 is therefore the control."
                .to_owned(),
            "Phoenix's string match compares each word with four texts after changing all its bytes; ours searches lines for the same four texts. The paper describes a file of keys."
                .to_owned(),
        ];
        if !self.has_controls() {
            differs.push(
                "The rows of Phoenix 2.0 and Phoenix++ were skipped: PHOENIX_DIR names no folder with their sources."
                    .to_owned(),
            );
        }
        if (self.data_bytes as f64) < self.memory_bytes as f64 * 0.6 {
            differs.push(format!(
                "The text is small compared with the memory group, which has at least {} MiB: these figures show only that the experiment runs.",
                mebibytes(MEMORY_BYTES_LEAST)
            ));
        }
        differs
    }
}

/// The SSDlet of a job.
fn map_name(job: ContestJob) -> &'static str {
    match job {
        ContestJob::WordCount => "wordcount",
        ContestJob::StringMatch => "match",
    }
}

/// The words of our command. Half of the memory of the group is its own, the rest is for the page cache.
fn words(
    job: ContestJob,
    contestant: Contestant,
    memory_bytes: u64,
    threads: usize,
) -> Vec<String> {
    let partition = match contestant {
        Contestant::DuoParts => ((memory_bytes as f64 * PARTITION_SHARE) as u64).to_string(),
        Contestant::DuoWhole => "none".to_owned(),
        _ => "auto".to_owned(),
    };
    let mut words = match job {
        ContestJob::WordCount => vec!["--rule", "letters", "--order", "value"],
        // The texts that Phoenix's program has built in.
        ContestJob::StringMatch => vec![
            "--key",
            "Helloworld",
            "--key",
            "howareyou",
            "--key",
            "ferrari",
            "--key",
            "whotheman",
        ],
    };
    words.push("--quiet");
    let numbers = [
        ("--memory", (memory_bytes / 2).to_string()),
        ("--threads", threads.to_string()),
        ("--partition-size", partition),
    ];
    let words = words.into_iter().map(str::to_owned);
    words.chain(numbers.into_iter().flat_map(|(flag, number)| [flag.to_owned(), number])).collect()
}

/// A program and the lab's own, for experiments that run two at once.
pub(super) fn host_command(lab: &Lab<'_>, words: &[&str], paths: &[&Path]) -> Command {
    let mut command = Command::new(&lab.setup.program);
    command.args(words).args(paths);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Results whose control grows beyond half of memory.
    pub(crate) fn results() -> ContestResults {
        let mut results = ContestResults::default();
        for (size, share) in SHARES.iter().enumerate() {
            for job in ContestJob::BOTH {
                let mut push = |contestant, seconds| {
                    results.0.push(ContestSeconds {
                        size,
                        job,
                        contestant,
                        seconds: Some(seconds),
                    });
                };
                push(Contestant::Sequential, 20.0 * share);
                push(Contestant::Duo, 10.0 * share);
                push(Contestant::DuoParts, 10.0 * share);
                push(Contestant::DuoWhole, 10.0 * share);
                push(Contestant::Phoenix, if *share > 0.5 { 60.0 * share } else { 10.0 * share });
            }
        }
        results
    }

    #[test]
    fn memory_follows_the_data_down_to_a_least() {
        assert_eq!(sizes(None), (512 << 20, 320 << 20));
        assert_eq!(sizes(Some(640 << 20)), (1024 << 20, 640 << 20));
        assert_eq!(sizes(Some(1 << 20)), (128 << 20, 1 << 20));
    }

    #[test]
    fn our_command_is_told_its_partition() {
        let of = |contestant| words(ContestJob::WordCount, contestant, 1 << 30, 2).join(" ");
        assert_eq!(
            of(Contestant::DuoParts),
            "--rule letters --order value --quiet --memory 536870912 --threads 2 --partition-size 322122547"
        );
        assert!(of(Contestant::DuoWhole).ends_with("--partition-size none"));
        assert!(of(Contestant::Duo).ends_with("--partition-size auto"));
    }

    #[test]
    fn ratios_need_both_sides() {
        let results = results();
        let ratio = |fast| results.ratio(3, ContestJob::WordCount, Contestant::Phoenix, fast);
        assert_eq!(ratio(Contestant::Duo), Some(6.0));
        assert_eq!(ratio(Contestant::PhoenixPlusPlus), None);
    }
}
