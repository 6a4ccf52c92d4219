//! A command that makes one output, tried until it works.
//!
//! ```text
//!   new folder NAME.PID-N.new ──► the command writes into it ──► synced ──► renamed to NAME
//!                                        └ fails: the folder is removed, and another try has another one
//! ```

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::statvfs;

use super::child::{ChildEnd, ChildRun, last_lines};
use super::content::FolderContent;
use super::error::{CommandEnding, PipelineError, StageFailure};
use super::folder::{OUT_NAME, remove, sync_folder};
use super::schedule::{DiskWriter, PipelineContext};

/// A disk with less is full.
const FREE_BYTES_MIN: u64 = 1 << 20;
/// Before another try: so much for each try before, and no more than the second.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A command to try.
pub(super) struct Tries<'a> {
    /// Its name for errors: `the stage 'search' of partition 3`.
    pub(super) who: String,
    /// The folder that it becomes.
    pub(super) folder: PathBuf,
    /// The folder of a try.
    pub(super) attempt: &'a dyn Fn(u32) -> PathBuf,
    /// The command, given its folder.
    pub(super) command: &'a dyn Fn(&Path) -> OsString,
    /// Its variables, given its folder.
    pub(super) variables: &'a dyn Fn(&Path) -> Vec<(&'static str, OsString)>,
    /// The file that it reads.
    pub(super) input: Option<&'a Path>,
    /// Whether what it prints is its output.
    pub(super) prints: bool,
    /// Whether it has to write the file `out`.
    pub(super) must_write: bool,
    /// Keeps what it said when it failed for good.
    pub(super) said: PathBuf,
    /// The thread that tries it.
    pub(super) writer: DiskWriter,
    /// Called for each try that failed, with the time when it began.
    pub(super) failed: &'a dyn Fn(f64),
}

/// A try that worked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Worked {
    /// Its files.
    pub(super) content: FolderContent,
    /// When it began, in seconds.
    pub(super) start: f64,
    /// Processor time.
    pub(super) processor: Duration,
}

impl Tries<'_> {
    /// Tries until it works, or as often as the settings say.
    ///
    /// # Errors
    /// [`PipelineError::Stage`]; files that fail; the end of the pipeline.
    pub(super) fn run(&self, shared: &PipelineContext<'_>) -> Result<Worked, PipelineError> {
        let mut attempts = 0;
        loop {
            let folder = (self.attempt)(shared.next_attempt());
            let (start, freed) = (shared.seconds(), shared.freed());
            let made = shared.within(&folder, || self.once(shared, &folder));
            let (failure, disk_full) = match made {
                Ok(Once::Worked(content, processor)) => {
                    return Ok(Worked { content, start, processor });
                }
                Ok(Once::Stopped) => {
                    remove(&folder)?;
                    return Err(PipelineError::Cancelled);
                }
                Ok(Once::Failed(ending, said)) => {
                    // Before the folder is removed, which gives back space.
                    let disk_full = says_full(&said) || is_disk_full(shared.folder.path());
                    (Some((ending, said)), disk_full)
                }
                Err(error) if error.is_full_disk() => (None, true),
                Err(error) => {
                    // The error is what counts.
                    let _ = remove(&folder);
                    return Err(error);
                }
            };
            (self.failed)(start);
            remove(&folder)?;
            if disk_full && shared.wait_for_space(self.writer, freed) {
                continue;
            }
            attempts += 1;
            if shared.is_ending() {
                return Err(PipelineError::Cancelled);
            }
            if attempts > shared.settings.retries {
                return Err(self.given_up(failure, attempts, disk_full));
            }
            shared.pause((PAUSE * attempts).min(PAUSE_MAX));
        }
    }

    fn given_up(
        &self,
        failure: Option<(CommandEnding, Vec<u8>)>,
        attempts: u32,
        disk_full: bool,
    ) -> PipelineError {
        let (ended, said) = failure.unwrap_or_else(|| {
            (CommandEnding::NotStarted("the disk is full".to_owned()), Vec::new())
        });
        let log = (!said.is_empty() && fs::write(&self.said, &said).is_ok()).then_some(&self.said);
        PipelineError::Stage(Box::new(StageFailure {
            who: self.who.clone(),
            ended,
            attempts,
            said: last_lines(&said),
            log: log.cloned(),
            disk_full,
        }))
    }

    fn once(&self, shared: &PipelineContext<'_>, folder: &Path) -> Result<Once, PipelineError> {
        let failed = |error| PipelineError::file(folder)(error);
        DirBuilder::new().mode(0o700).create(folder).map_err(failed)?;
        let out = folder.join(OUT_NAME);
        let output = match self.prints {
            true => {
                let mut how = File::options();
                let file = how.write(true).create_new(true).mode(0o600).open(&out);
                Some(file.map_err(failed)?)
            }
            false => None,
        };
        let input = match self.input {
            Some(path) => Stdio::from(File::open(path).map_err(PipelineError::file(path))?),
            None => Stdio::null(),
        };
        let (command, variables) = ((self.command)(folder), (self.variables)(folder));
        let limit = shared.settings.time_limit;
        let run = ChildRun { command: &command, variables: &variables, input, output, limit };
        let ended = shared.commands.run(run, &|| shared.is_ending()).map_err(failed)?;
        let Some(ChildEnd { result, said, processor }) = ended else { return Ok(Once::Stopped) };
        if let Err(ending) = result {
            return Ok(Once::Failed(ending, said));
        }
        if self.must_write && !out.symlink_metadata().is_ok_and(|found| found.is_file()) {
            return Ok(Once::Failed(CommandEnding::NoOutput("output file"), said));
        }
        match FolderContent::synced(folder) {
            Ok(content) => {
                // What an earlier try left when only its last step failed.
                remove(&self.folder)?;
                fs::rename(folder, &self.folder).map_err(failed)?;
                sync_folder(self.folder.parent().unwrap_or(Path::new(".")))?;
                Ok(Once::Worked(content, processor))
            }
            Err(error) => Err(failed(error)),
        }
    }
}

enum Once {
    Worked(FolderContent, Duration),
    Failed(CommandEnding, Vec<u8>),
    Stopped,
}

/// Whether the disk of this folder is full.
fn is_disk_full(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < FREE_BYTES_MIN)
}

/// Whether a program said so.
fn says_full(said: &[u8]) -> bool {
    let text = String::from_utf8_lossy(said);
    text.contains("No space left on device") || text.contains("Disk quota exceeded")
}

impl PipelineContext<'_> {
    /// Does `work`, which writes into `folder` meanwhile.
    fn within<T>(&self, folder: &Path, work: impl FnOnce() -> T) -> T {
        self.writes_into(folder, true);
        let result = work();
        self.writes_into(folder, false);
        result
    }

    /// Sleeps, but not when the pipeline ends.
    fn pause(&self, time: Duration) {
        let until = std::time::Instant::now() + time;
        let mut state = self.lock();
        while !self.is_ending() && std::time::Instant::now() < until {
            self.wait(&mut state);
        }
    }
}
