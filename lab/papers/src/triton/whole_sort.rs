//! A sort as a user runs it, by the rules of the Sort Benchmark: data from `generate`, sorted by
//! this very command as a process of its own, timed from its start to its end with the result
//! synced, and checked by `verify`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::child::Child;
use crate::error::ExperimentError;
use crate::folder::ScratchFolder;
use crate::lab::Lab;
use merganser_generate::Gensort;

/// Free space that is asked for, over the data's: the data itself, the result, temporary runs whose
/// space comes back while they are merged, and the file that tells the disk's speed.
const SPACE: f64 = 2.3;

/// A data set in a folder of its own, to be sorted as often as wanted. The folder goes away with
/// it.
pub(super) struct WholeSort<'a> {
    lab: &'a Lab<'a>,
    folder: ScratchFolder,
    child: Child,
    /// Bytes of the data set, and how many records and which checksum `verify` found.
    data: Option<(u64, Value, Value)>,
}

/// One sort.
#[derive(Debug, Clone, Copy)]
pub(super) struct SortTime {
    /// From start to end.
    pub seconds: f64,
    /// What it read from and wrote to devices, temporary runs included.
    pub device_bytes: u64,
    /// The most memory it had.
    pub peak_rss_bytes: u64,
}

impl<'a> WholeSort<'a> {
    /// An empty folder in the lab's.
    ///
    /// # Errors
    /// When it can't be made.
    pub(super) fn new(lab: &'a Lab<'a>) -> Result<Self, ExperimentError> {
        let folder = ScratchFolder::new(lab)?;
        Ok(WholeSort { lab, folder, child: Child::watched(lab), data: None })
    }

    /// The folder of all files.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes `bytes` of records, in place of what was made before. Gives their exact bytes.
    ///
    /// # Errors
    /// When there is no space for them and their sort, or they can't be written.
    pub(super) fn generate(&mut self, bytes: u64) -> Result<u64, ExperimentError> {
        self.data = None;
        remove(&self.data_path());
        remove(&self.sorted_path());
        let records = bytes / Gensort::RECORD_BYTES as u64;
        let bytes = records * Gensort::RECORD_BYTES as u64;
        let free_bytes =
            free_bytes(self.folder()).map_err(|error| ExperimentError::on(self.folder(), error))?;
        let needed_bytes = (bytes as f64 * SPACE) as u64;
        if needed_bytes > free_bytes {
            return Err(ExperimentError::Space {
                dir: self.lab.setup.dir.clone(),
                bytes,
                needed_bytes,
                free_bytes,
            });
        }
        self.lab.progress.phase("generating", None);
        let data = self.data_path();
        self.run(&["generate", "--records", &records.to_string(), "-o"], &[&data], 0)?;
        let found = self.verify(&data, 1)?;
        self.data = Some((bytes, found["records"].clone(), found["checksum"].clone()));
        Ok(bytes)
    }

    /// Sorts the data set from a cold cache, and checks and removes the result.
    ///
    /// # Errors
    /// When the sort fails, or its result is not the data set in order.
    pub(super) fn sort(&self) -> Result<SortTime, ExperimentError> {
        let (_, records, checksum) = self.data.as_ref().expect("generated before");
        let (data, sorted, report) =
            (self.data_path(), self.sorted_path(), self.folder().join("report.json"));
        forget_cached(&data).map_err(|error| ExperimentError::on(&data, error))?;
        let setup = self.lab.setup;
        let (memory, threads) = (setup.memory_bytes.to_string(), setup.threads.to_string());
        let words = [
            "sort",
            "--quiet",
            "--format",
            "fixed:100",
            "--key",
            "0:10",
            "--memory",
            &memory,
            "--threads",
            &threads,
            "--temp-dir",
        ];
        let paths =
            [self.folder(), Path::new("--report"), &report, Path::new("-o"), &sorted, &data];
        self.lab.progress.phase("sorting", None);
        let (seconds, _) = self.run(&words, &paths, 0)?;
        let told = fs::read(&report).map_err(|error| ExperimentError::on(&report, error))?;
        let told: Value = serde_json::from_slice(&told).unwrap_or_default();
        let bytes = |field: &str| told[field].as_u64().unwrap_or(0);
        let found = self.verify(&sorted, 0)?;
        if (&found["records"], &found["checksum"]) != (records, checksum) {
            let words =
                |records: &Value, checksum: &Value| format!("{records} with checksum {checksum}");
            return Err(ExperimentError::WrongRecords {
                found: words(&found["records"], &found["checksum"]),
                expected: words(records, checksum),
            });
        }
        remove(&sorted);
        Ok(SortTime {
            seconds,
            device_bytes: bytes("device_read_bytes") + bytes("device_written_bytes"),
            peak_rss_bytes: bytes("peak_rss_bytes"),
        })
    }

    /// The output of `verify` for `path`; an exit status up to `worst` is accepted (1: not sorted).
    fn verify(&self, path: &Path, worst: i32) -> Result<Value, ExperimentError> {
        self.lab.progress.phase("verifying", None);
        let words = ["verify", "--json", "--quiet", "--format", "fixed:100", "--key", "0:10"];
        let (_, told) = self.run(&words, &[path], worst)?;
        serde_json::from_str(&told).map_err(|error| ExperimentError::Command {
            command: "verify".to_owned(),
            message: format!("no JSON: {error}"),
        })
    }

    /// Runs this command with other words. Gives seconds, and what it printed.
    fn run(
        &self,
        words: &[&str],
        paths: &[&Path],
        worst: i32,
    ) -> Result<(f64, String), ExperimentError> {
        self.lab.check_cancelled()?;
        let failed = |error: io::Error| ExperimentError::on(&self.lab.setup.program, error);
        let mut command = Command::new(&self.lab.setup.program);
        command.args(words).args(paths);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().map_err(failed)?;
        self.child.set(Some(child.id()));
        let (mut printed, mut said) = (String::new(), String::new());
        // What they print fits into a pipe: an object, a sentence. They close both when they end.
        let read = child.stdout.take().expect("piped").read_to_string(&mut printed);
        let read = read.and(child.stderr.take().expect("piped").read_to_string(&mut said));
        // Not reaped yet, so its number is still its own.
        self.child.set(None);
        let status = child.wait().map_err(failed)?;
        let seconds = started.elapsed().as_secs_f64();
        self.lab.check_cancelled()?;
        read.map_err(failed)?;
        if status.code().is_none_or(|code| code > worst) {
            let said = said.trim_end().trim_start_matches("merganser: ");
            return Err(ExperimentError::Command {
                command: words[0].to_owned(),
                message: said.to_owned(),
            });
        }
        Ok((seconds, printed))
    }

    fn data_path(&self) -> PathBuf {
        self.folder().join("data.bin")
    }

    fn sorted_path(&self) -> PathBuf {
        self.folder().join("sorted.bin")
    }
}

fn remove(path: &Path) {
    // It may not be there.
    let _ = fs::remove_file(path);
}

/// Has the kernel forget what it holds of a file, so that a sort reads it from the disk.
fn forget_cached(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    // A kernel may ignore the advice.
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    Ok(())
}

/// Bytes that may still be written below `path`.
fn free_bytes(path: &Path) -> io::Result<u64> {
    let folder = File::open(path)?;
    let found = rustix::fs::fstatvfs(&folder)?;
    Ok(found.f_bavail * found.f_frsize)
}
