//! Reports and traces that a run writes. They are opened before anything else happens, so that one that can't be
//! written is an error at once, but they keep their content until the run has begun, or its results are there: a
//! run that is refused leaves them as they were. Two runs can't write one file at once.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use merganser_storage::file::check_new;

use crate::ResultsError;
use crate::unfinished::lock_file;

/// How often a file is opened that other runs remove meanwhile.
const TRIES: u32 = 10;

/// An open file that has its old content, locked if it is a regular one.
pub struct ReportFile {
    path: PathBuf,
    file: File,
    /// This run made it, and has it locked.
    made: bool,
    begun: bool,
}

impl ReportFile {
    /// Opens a file to write, or makes an empty one.
    ///
    /// # Errors
    /// When another run writes it; the system's.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        let mut tries = 0;
        loop {
            let (file, made) = open_unlocked(path)?;
            let mut kept = ReportFile { path: path.to_owned(), file, made: false, begun: false };
            let is_there = kept.lock()?;
            tries += 1;
            // Some file systems don't count the names of a file.
            if is_there || tries == TRIES {
                kept.made = made && is_there;
                return Ok(kept);
            }
        }
    }

    /// Locks the file, so that only this run writes it, or removes it. `false` if
    /// another run has removed it meanwhile.
    fn lock(&self) -> Result<bool, ResultsError> {
        let on_path = ResultsError::on(&self.path);
        if !self.file.metadata().map_err(on_path)?.is_file() {
            return Ok(true);
        }
        if !lock_file(&self.file) {
            return Err(ResultsError::BusyReport(self.path.clone()));
        }
        Ok(self.file.metadata().map_err(on_path)?.nlink() > 0)
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `text` in the place of the old content.
    ///
    /// # Errors
    /// The system's, with the file's name.
    pub fn write(mut self, text: &str) -> Result<(), ResultsError> {
        let written = self.begin().and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(ResultsError::on(&self.path))
    }

    /// Drops the old content: from now on, the file is that of this run.
    ///
    /// # Errors
    /// The system's.
    pub fn begin(&mut self) -> io::Result<File> {
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.begun = true;
        self.file.try_clone()
    }
}

/// The file, and whether it was made.
fn open_unlocked(path: &Path) -> Result<(File, bool), ResultsError> {
    let failed = ResultsError::on(path);
    check_new(path).map_err(failed)?;
    match File::options().write(true).create_new(true).open(path) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Also a link to a file that is not there yet.
            let file = File::options().write(true).create(true).truncate(false).open(path);
            Ok((file.map_err(failed)?, false))
        }
        Err(error) => Err(failed(error)),
    }
}

impl Drop for ReportFile {
    fn drop(&mut self) {
        if self.made && !self.begun {
            // An empty file that no run has used. If it can't be removed, nothing is lost.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_file_keeps_its_content_until_the_run_begins() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("report.json");
        fs::write(&path, "older").expect("written");
        drop(ReportFile::open(&path).expect("opened"));
        assert_eq!(fs::read(&path).expect("there"), b"older");
        let mut kept = ReportFile::open(&path).expect("opened");
        kept.begin().expect("begun");
        drop(kept);
        assert_eq!(fs::read(&path).expect("there"), b"");
        fs::write(&path, "older").expect("written");
        ReportFile::open(&path).expect("opened").write("new").expect("written");
        assert_eq!(fs::read(&path).expect("there"), b"new");
    }

    /// A run that is refused, or ends before it has results, must not remove those of another.
    #[test]
    fn two_runs_do_not_write_one_file() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("report.json");
        let first = ReportFile::open(&path).expect("opened");
        let refused = ReportFile::open(&path).err().expect("refused");
        assert!(matches!(refused, ResultsError::BusyReport(busy) if busy == path));
        first.write("results").expect("written");
        assert_eq!(fs::read(&path).expect("there"), b"results");
        drop(ReportFile::open(&path).expect("the first has ended"));
        assert_eq!(fs::read(&path).expect("there"), b"results");
    }

    #[test]
    fn a_new_file_goes_unless_the_run_begins() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("trace");
        drop(ReportFile::open(&path).expect("opened"));
        assert!(!path.exists());
        let mut kept = ReportFile::open(&path).expect("opened");
        kept.begin().expect("begun");
        drop(kept);
        assert!(path.exists());
        let nowhere = place.path().join("no/such");
        assert!(ReportFile::open(&nowhere).is_err());
        // A device has nothing to drop.
        ReportFile::open(Path::new("/dev/null")).expect("opened").begin().expect("begun");
    }
}
