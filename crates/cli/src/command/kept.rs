//! Reports and traces that a run writes. They are opened before anything else happens, so that one that can't be
//! written is an error at once, but they keep their content until the run has begun, or its results are there: a
//! run that is refused leaves them as they were.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// An open file that has its old content.
pub struct Kept {
    path: PathBuf,
    file: File,
    /// This run made it.
    made: bool,
    begun: bool,
}

impl Kept {
    /// Opens a file to write, or makes an empty one.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::on(path, &error);
        let (file, made) = match File::options().write(true).create_new(true).open(path) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Also a link to a file that is not there yet.
                let file = File::options().write(true).create(true).truncate(false).open(path);
                (file.map_err(failed)?, false)
            }
            Err(error) => return Err(failed(error)),
        };
        Ok(Kept { path: path.to_owned(), file, made, begun: false })
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `text` in the place of the old content.
    ///
    /// # Errors
    /// The system's, with the file's name.
    pub fn write(mut self, text: &str) -> Result<(), Failure> {
        let written = self.begin().and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| Failure::on(&self.path, &error))
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

impl Drop for Kept {
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
        drop(Kept::open(&path).expect("opened"));
        assert_eq!(fs::read(&path).expect("there"), b"older");
        let mut kept = Kept::open(&path).expect("opened");
        kept.begin().expect("begun");
        drop(kept);
        assert_eq!(fs::read(&path).expect("there"), b"");
        fs::write(&path, "older").expect("written");
        Kept::open(&path).expect("opened").write("new").expect("written");
        assert_eq!(fs::read(&path).expect("there"), b"new");
    }

    #[test]
    fn a_new_file_goes_unless_the_run_begins() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("trace");
        drop(Kept::open(&path).expect("opened"));
        assert!(!path.exists());
        let mut kept = Kept::open(&path).expect("opened");
        kept.begin().expect("begun");
        drop(kept);
        assert!(path.exists());
        let nowhere = place.path().join("no/such");
        assert!(Kept::open(&nowhere).is_err());
        // A device has nothing to drop.
        Kept::open(Path::new("/dev/null")).expect("opened").begin().expect("begun");
    }
}
