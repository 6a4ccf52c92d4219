//! The files of a result that is a folder.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A folder that gets the files of a result. A caller gives it its name when all are written.
pub trait TableFolder: Send + Sync {
    /// Makes a new file in these folders of it, which are made if they are missing.
    ///
    /// # Errors
    /// The system's own, which name the file.
    fn create(&self, folders: &[String], name: &str) -> io::Result<Box<dyn FolderFile>>;
}

/// A new file in a folder.
pub trait FolderFile: Write + Send {
    /// Makes its bytes survive a power cut. The names of files and folders are the business of the caller.
    ///
    /// # Errors
    /// The system's own, which names the file.
    fn sync(&mut self) -> io::Result<()>;
}

/// A folder of a file system, which is there.
#[derive(Debug, Clone)]
pub struct DiskFolder(PathBuf);

impl DiskFolder {
    /// The folder at `path`.
    #[must_use]
    pub fn new(path: &Path) -> DiskFolder {
        DiskFolder(path.to_owned())
    }
}

impl TableFolder for DiskFolder {
    fn create(&self, folders: &[String], name: &str) -> io::Result<Box<dyn FolderFile>> {
        let mut path = self.0.clone();
        path.extend(folders);
        fs::create_dir_all(&path).map_err(|error| named(&path, error))?;
        path.push(name);
        let file = File::create_new(&path).map_err(|error| named(&path, error))?;
        Ok(Box::new(DiskFile { path, file }))
    }
}

struct DiskFile {
    path: PathBuf,
    file: File,
}

impl Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| named(&self.path, error))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FolderFile for DiskFile {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all().map_err(|error| named(&self.path, error))
    }
}

/// The error with the name of the file, except that of a write that is tried again.
fn named(path: &Path, error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::Interrupted => error,
        kind => io::Error::new(kind, format!("{}: {error}", path.display())),
    }
}
