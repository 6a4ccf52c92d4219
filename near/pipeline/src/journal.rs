//! The journal of a pipeline, as it grows.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use merganser_results::pipeline::{
    BYTES_MAX, JournalHeader, PipelineEvent, PipelineRecord, line_of,
};
use merganser_sort::Error;
use merganser_storage::file::own;

use super::error::PipelineError;
use super::folder::{sync_folder, with_new};

/// An open journal, which grows.
pub(super) struct PipelineJournal {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl PipelineJournal {
    /// Reads the journal at `path`; `None` if there is no such file.
    pub(super) fn read(path: &Path) -> Result<Option<PipelineRecord>, PipelineError> {
        let failed = |error| PipelineError::file(path)(error);
        let file = match own::open_file(path, false) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let size = file.metadata().map_err(failed)?.len();
        let shown = path.display().to_string();
        if size > BYTES_MAX {
            let detail = "too large for a journal".to_owned();
            return Err(Error::Corrupt { file: shown, offset: BYTES_MAX, detail }.into());
        }
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
        Ok(Some(PipelineRecord::decode(&shown, &bytes)?))
    }

    /// Starts a journal, durably.
    pub(super) fn create(path: &Path, header: &JournalHeader) -> Result<Self, PipelineError> {
        let failed = |error| PipelineError::file(path)(error);
        let new = with_new(path);
        super::folder::remove(&new)?;
        let mut how = File::options();
        let mut file = how.write(true).create_new(true).mode(0o600).open(&new).map_err(failed)?;
        let line = line_of(header);
        file.write_all(&line).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&new, path).map_err(failed)?;
        sync_folder(path.parent().unwrap_or(Path::new(".")))?;
        Ok(PipelineJournal { file, path: path.to_owned(), bytes: line.len() as u64 })
    }

    /// Continues the journal at `path`, whose content is `record`.
    pub(super) fn reopen(path: &Path, record: &PipelineRecord) -> Result<Self, PipelineError> {
        let failed = |error| PipelineError::file(path)(error);
        let mut file = own::open_file(path, true).map_err(failed)?;
        let bytes = record.whole_bytes;
        let cut = file.set_len(bytes).and_then(|()| file.sync_all());
        let placed = cut.and_then(|()| io::Seek::seek(&mut file, io::SeekFrom::Start(bytes)));
        placed.map_err(failed)?;
        Ok(PipelineJournal { file, path: path.to_owned(), bytes })
    }

    /// Adds a line, durably. If that fails, the journal is what it was.
    pub(super) fn append(&mut self, event: &PipelineEvent) -> Result<(), PipelineError> {
        let line = line_of(event);
        match self.file.write_all(&line).and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                self.bytes += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A line that stays in part is cut when the journal is read.
                let _ = self.file.set_len(self.bytes);
                let _ = io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.bytes));
                Err(PipelineError::file(&self.path)(error))
            }
        }
    }
}
