//! The work folder of a pipeline.
//!
//! ```text
//!   pipeline-journal          what is done
//!   partial                   the output, until it gets its name
//!   pipeline/000003.part      a partition; .part.new while it is written
//!   pipeline/000003.NAME/     what the stage NAME made of it: the file out, and others that the stage wrote
//!   pipeline/000003.NAME.PID-N.new/    the same while the stage runs: its N-th try in process PID
//!   pipeline/gathered         the results in order, for a merge that reads its standard input
//!   pipeline/000003.NAME.stderr        what a stage wrote to standard error before it failed for good
//! ```
//!
//! A name without `.new` stands for content that is whole and synced.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use merganser_results::pipeline::{JOURNAL_NAME, PARTIAL_NAME, PARTS_NAME};

use super::error::PipelineError;

/// Name of the output of a stage, in its folder.
pub(crate) const OUT_NAME: &str = "out";
/// End of names whose content is not whole.
const NEW: &str = ".new";
/// The time that the processes of a killed pipeline have to end.
const ENDING: Duration = Duration::from_secs(5);

/// The paths of a work folder.
#[derive(Debug, Clone)]
pub(super) struct WorkPaths {
    path: PathBuf,
}

impl WorkPaths {
    pub(super) fn new(path: &Path) -> Self {
        WorkPaths { path: path.to_owned() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL_NAME)
    }

    pub(super) fn partial(&self) -> PathBuf {
        self.path.join(PARTIAL_NAME)
    }

    pub(super) fn parts(&self) -> PathBuf {
        self.path.join(PARTS_NAME)
    }

    pub(super) fn part(&self, k: u32) -> PathBuf {
        self.parts().join(format!("{k:06}.part"))
    }

    pub(super) fn stage(&self, k: u32, name: &str) -> PathBuf {
        self.parts().join(format!("{k:06}.{name}"))
    }

    /// The folder of a try, a name that no other try has.
    pub(super) fn attempt(&self, k: u32, name: &str, attempt: u32) -> PathBuf {
        let process = std::process::id();
        self.parts().join(format!("{k:06}.{name}.{process}-{attempt}{NEW}"))
    }

    /// The results in order, for a merge that reads its standard input.
    pub(super) fn gathered(&self) -> PathBuf {
        self.parts().join("gathered")
    }

    pub(super) fn said(&self, k: u32, name: &str) -> PathBuf {
        self.parts().join(format!("{k:06}.{name}.stderr"))
    }

    /// Makes the folder of partitions, if it is missing.
    pub(super) fn create(&self) -> Result<(), PipelineError> {
        let parts = self.parts();
        match DirBuilder::new().mode(0o700).create(&parts) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(PipelineError::file(parts)(error))
            }
            _ => sync_folder(&self.path),
        }
    }

    /// Removes everything in the folder of partitions that `keep` does not name.
    pub(super) fn keep_only(&self, keep: &dyn Fn(&Path) -> bool) -> Result<(), PipelineError> {
        let parts = self.parts();
        let failed = |error| PipelineError::file(parts.clone())(error);
        for entry in fs::read_dir(&parts).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if !keep(&path) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Removes all that a pipeline writes here, the journal last.
    pub(super) fn clear(&self) -> Result<(), PipelineError> {
        remove(&self.parts())?;
        remove(&self.partial())?;
        remove(&with_new(&self.journal()))?;
        // If a power cut brings the journal back, it says that nothing is left to do.
        remove(&self.journal())
    }
}

/// The name of `path` while its content is not whole.
pub(super) fn with_new(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(NEW);
    PathBuf::from(name)
}

/// Removes a file, or a folder with all that is in it. Links are not followed. Nothing there is fine. The processes
/// of a pipeline that was killed a moment ago may still write there, so a folder that fills again is tried again.
pub(super) fn remove(path: &Path) -> Result<(), PipelineError> {
    let until = Instant::now() + ENDING;
    loop {
        let removed = match path.symlink_metadata() {
            Ok(found) if found.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
            Err(error) => Err(error),
        };
        match removed {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.exists() => {
                return Ok(());
            }
            Err(error) if fills_again(&error) && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(PipelineError::file(path)(error)),
        }
    }
}

/// Whether another process changed a folder while it was removed.
fn fills_again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound)
}

/// Makes the names in a folder survive a power cut.
pub(super) fn sync_folder(path: &Path) -> Result<(), PipelineError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(PipelineError::file(path))
}
