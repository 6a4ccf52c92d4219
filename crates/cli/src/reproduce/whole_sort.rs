//! A sort as a user runs it, by the rules of the Sort Benchmark: data from `generate`, sorted by
//! this very command as a process of its own, timed from its start to its end with the result
//! synced, and checked by `verify`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::Value;

use super::Lab;
use crate::failure::Failure;
use crate::generate::Gensort;
use crate::signals;

/// Free space that is asked for, over the data's: the data itself, the result, temporary runs whose
/// space comes back while they are merged, and the file that tells the disk's speed.
const SPACE: f64 = 2.3;

/// A data set in a folder of its own, to be sorted as often as wanted. The folder goes away with
/// it.
pub struct WholeSort<'a> {
    lab: &'a Lab<'a>,
    folder: PathBuf,
    program: PathBuf,
    child: Child,
    /// Bytes of the data set, and how many records and which checksum `verify` found.
    data: Option<(u64, Value, Value)>,
}

/// One sort.
#[derive(Debug, Clone, Copy)]
pub struct Timed {
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
    pub fn new(lab: &'a Lab<'a>) -> Result<Self, Failure> {
        let name = format!(".merganser-reproduce-{}", std::process::id());
        let folder = lab.setup.dir.join(name);
        fs::create_dir(&folder).map_err(|error| Failure::on(&folder, &error))?;
        signals::remember(&folder);
        let program = std::env::current_exe().map_err(|error| Failure::named(&error))?;
        Ok(WholeSort { lab, folder, program, child: Child::watched(lab), data: None })
    }

    /// Where it all lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes `bytes` of records, in place of what was made before. Gives their exact bytes.
    ///
    /// # Errors
    /// When there is no space for them and their sort, or they can't be written.
    pub fn generate(&mut self, bytes: u64) -> Result<u64, Failure> {
        self.data = None;
        remove(&self.data_path());
        remove(&self.sorted_path());
        let records = bytes / Gensort::RECORD_BYTES as u64;
        let bytes = records * Gensort::RECORD_BYTES as u64;
        let free = free_bytes(&self.folder).map_err(|error| Failure::on(&self.folder, &error))?;
        let needed = (bytes as f64 * SPACE) as u64;
        if needed > free {
            let dir = self.lab.setup.dir.display();
            return Err(format!(
                "{dir}: sorting {bytes} bytes takes {needed} bytes of space and {free} are free; give a smaller --size or another --dir"
            )
            .into());
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
    pub fn sort(&self) -> Result<Timed, Failure> {
        let (_, records, checksum) = self.data.as_ref().expect("generated before");
        let (data, sorted, report) =
            (self.data_path(), self.sorted_path(), self.folder.join("report.json"));
        forget_cached(&data).map_err(|error| Failure::on(&data, &error))?;
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
        let paths = [&self.folder, Path::new("--report"), &report, Path::new("-o"), &sorted, &data];
        self.lab.progress.phase("sorting", None);
        let (seconds, _) = self.run(&words, &paths, 0)?;
        let told = fs::read(&report).map_err(|error| Failure::on(&report, &error))?;
        let told: Value = serde_json::from_slice(&told).unwrap_or_default();
        let bytes = |field: &str| told[field].as_u64().unwrap_or(0);
        let found = self.verify(&sorted, 0)?;
        if (&found["records"], &found["checksum"]) != (records, checksum) {
            return Err(Failure::Error(format!(
                "the sorted records are not those of the data: {} of {records}, checksum {} instead of {checksum}",
                found["records"], found["checksum"],
            )));
        }
        remove(&sorted);
        Ok(Timed {
            seconds,
            device_bytes: bytes("device_read_bytes") + bytes("device_written_bytes"),
            peak_rss_bytes: bytes("peak_rss_bytes"),
        })
    }

    /// What `verify` says of `path`; an exit status up to `worst` is fine (1: not sorted).
    fn verify(&self, path: &Path, worst: i32) -> Result<Value, Failure> {
        self.lab.progress.phase("verifying", None);
        let words = ["verify", "--json", "--quiet", "--format", "fixed:100", "--key", "0:10"];
        let (_, told) = self.run(&words, &[path], worst)?;
        serde_json::from_str(&told)
            .map_err(|error| Failure::Error(format!("verify gave no JSON: {error}")))
    }

    /// Runs this command with other words. Gives seconds, and what it printed.
    fn run(&self, words: &[&str], paths: &[&Path], worst: i32) -> Result<(f64, String), Failure> {
        self.lab.go_on()?;
        let failed = |error: io::Error| Failure::on(&self.program, &error);
        let mut command = Command::new(&self.program);
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
        self.lab.go_on()?;
        read.map_err(failed)?;
        if status.code().is_none_or(|code| code > worst) {
            let said = said.trim_end().trim_start_matches("merganser: ");
            return Err(Failure::Error(format!("merganser {}: {said}", words[0])));
        }
        Ok((seconds, printed))
    }

    fn data_path(&self) -> PathBuf {
        self.folder.join("data.bin")
    }

    fn sorted_path(&self) -> PathBuf {
        self.folder.join("sorted.bin")
    }
}

impl Drop for WholeSort<'_> {
    fn drop(&mut self) {
        // What can't be removed stays, and has a name that tells whose it was.
        let _ = fs::remove_dir_all(&self.folder);
        signals::forget(&self.folder);
    }
}

/// The process at work, which is told when this one is asked to end.
pub struct Child(Arc<Mutex<Option<u32>>>);

impl Child {
    /// None yet, in a lab that may be asked to end.
    pub fn watched(lab: &Lab<'_>) -> Self {
        let running: Arc<Mutex<Option<u32>>> = Arc::default();
        let (cancel, watched) = (lab.cancel.clone(), Arc::clone(&running));
        std::thread::spawn(move || {
            cancel.wait();
            if let Some(id) = *watched.lock().expect("no holder panics") {
                // SAFETY: a signal to a child that is not reaped: `set(None)` comes before.
                unsafe { libc::kill(id as libc::pid_t, libc::SIGTERM) };
            }
        });
        Child(running)
    }

    /// Which one it is; `None` before it is reaped.
    pub fn set(&self, id: Option<u32>) {
        *self.0.lock().expect("no holder panics") = id;
    }

    /// Whether it has ended; it is forgotten when it is reaped.
    pub fn poll(&self, child: &mut std::process::Child) -> io::Result<Option<ExitStatus>> {
        // Held meanwhile: no signal goes to a number that is not its own any more.
        let mut running = self.0.lock().expect("no holder panics");
        let status = child.try_wait()?;
        if status.is_some() {
            *running = None;
        }
        Ok(status)
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
    // SAFETY: advice about an open file touches no memory. A kernel that does not take it, doesn't.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    Ok(())
}

/// Bytes that may still be written below `path`.
fn free_bytes(path: &Path) -> io::Result<u64> {
    let folder = File::open(path)?;
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: an open descriptor, and room for the answer.
    if unsafe { libc::fstatvfs(folder.as_raw_fd(), found.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed, which is valid for these numbers, and filled since.
    let found = unsafe { found.assume_init() };
    Ok(found.f_bavail * found.f_frsize)
}
