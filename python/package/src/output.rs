//! Where the result of a job goes.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_results::ResultSource;
use merganser_results::output::{ResultOutput, codec_by_name};
use merganser_results::unfinished::{DoomedFolders, UnfinishedFiles};
use merganser_sort::Error;
use merganser_sort::files::LazyDirectory;
use merganser_storage::Directory;

use crate::failure::Failure;
use crate::work::Watch;

/// Opens the result at `path`: it replaces a file of that name when it is complete.
pub(crate) fn open(path: &Path, watch: &Arc<Watch>) -> Result<ResultOutput, Failure> {
    Ok(ResultOutput::open(path, Arc::clone(watch) as _)?)
}

/// Refuses the name of an output that would be compressed as a whole: a table is packed inside.
pub(crate) fn refuse_compressed(path: &Path) -> Result<(), Failure> {
    match codec_by_name(path)? {
        None => Ok(()),
        Some(_) => Err(Failure::Other(format!(
            "{}: the name says that the output is compressed, and a table is packed inside; give a plain name",
            path.display()
        ))),
    }
}

/// A signal that ends the process becomes an exception here, after which the folder is dropped: no list is needed.
struct NoList;

impl DoomedFolders for NoList {
    fn add(&self, _: &Path) {}

    fn remove(&self, _: &Path) {}
}

/// Starts the folder of files `path`, which is made of the files `inputs`; without any, of a table of Python.
pub(crate) fn begin_files(path: &Path, inputs: &[PathBuf]) -> Result<UnfinishedFiles, Failure> {
    // A folder may be typed with a slash.
    let path: PathBuf = path.components().collect();
    let mut sources: Vec<_> = inputs.iter().map(|file| ResultSource::File(file)).collect();
    if sources.is_empty() {
        sources.push(ResultSource::Stream("a table"));
    }
    Ok(UnfinishedFiles::create(&path, &sources, Box::new(NoList), &|_| {})?)
}

/// Folders for temporary files. A job that fits into the memory does not look at them.
pub(crate) fn temp(folders: &[PathBuf]) -> Vec<Arc<dyn Directory>> {
    folders.iter().map(|path| LazyDirectory::new(path) as Arc<dyn Directory>).collect()
}

/// A result that stays in memory, and takes no more than a limit.
pub(crate) struct KeptResult {
    pub(crate) bytes: Vec<u8>,
    pub(crate) limit_bytes: u64,
}

impl Write for KeptResult {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wanted = (self.bytes.len() + bytes.len()) as u64;
        if wanted > self.limit_bytes {
            let (owner, limit_bytes) = ("a result without an output", self.limit_bytes);
            return Err(Error::Memory { owner, least_bytes: wanted, limit_bytes }.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
