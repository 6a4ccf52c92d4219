//! A file that is opened once and read by any number of readers, and how a change of it is noticed.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use merganser_sort::journal::FileNote;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::TableError;

/// A file that stays open. Readers have places of their own in it: clones of a [`File`] share one.
#[derive(Debug, Clone)]
pub(crate) struct OpenedFile(Arc<HeldOpen>);

#[derive(Debug)]
struct HeldOpen {
    path: Arc<Path>,
    file: File,
    outer: OuterSigns,
}

/// What the system says of the content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OuterSigns {
    pub(crate) size_bytes: u64,
    /// When its content changed last, in nanoseconds since 1970.
    pub(crate) modified_unix_ns: i64,
}

impl OuterSigns {
    fn of_file(file: &File) -> std::io::Result<OuterSigns> {
        let note = FileNote::of_metadata(&file.metadata()?);
        Ok(OuterSigns { size_bytes: note.size, modified_unix_ns: note.modified_unix_ns })
    }
}

impl OpenedFile {
    /// # Errors
    /// The system's own.
    pub(super) fn open(path: &Arc<Path>) -> Result<OpenedFile, TableError> {
        let file = File::open(path).map_err(TableError::on(path))?;
        let outer = OuterSigns::of_file(&file).map_err(TableError::on(path))?;
        Ok(OpenedFile(Arc::new(HeldOpen { path: Arc::clone(path), file, outer })))
    }

    /// Reads bytes at a place, as many as there are.
    pub(super) fn read_at(&self, buffer: &mut [u8], at: u64) -> std::io::Result<usize> {
        self.0.file.read_at(buffer, at)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    /// Its size and time when it was opened.
    pub(crate) fn outer(&self) -> OuterSigns {
        self.0.outer
    }

    /// Whether the file is as it was when it was opened. A file that another one replaced is: its own bytes are read on.
    ///
    /// # Errors
    /// The system's own.
    pub(crate) fn is_as_opened(&self) -> Result<bool, TableError> {
        let now = OuterSigns::of_file(&self.0.file).map_err(TableError::on(&self.0.path))?;
        Ok(now == self.0.outer)
    }

    /// The CRC32 of the last bytes of a file of Parquet: where its pages are, their statistics and its columns.
    ///
    /// # Errors
    /// The system's own. Its decoder refuses a file that is too short.
    pub(crate) fn footer_crc(&self) -> Result<u32, TableError> {
        // The last eight bytes are the length of the others, and `PAR1`.
        let size = self.outer().size_bytes;
        let mut tail = [0; 8];
        let tail_at = size.saturating_sub(tail.len() as u64);
        let on_path = || TableError::on(&self.0.path);
        self.0.file.read_exact_at(&mut tail, tail_at).map_err(on_path())?;
        let length = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
        let mut at = tail_at.saturating_sub(u64::from(length));
        let mut hasher = crc32fast::Hasher::new();
        let mut piece = vec![0; PIECE_BYTES];
        while at < size {
            let wanted = (size - at).min(PIECE_BYTES as u64) as usize;
            let piece = &mut piece[..wanted];
            self.0.file.read_exact_at(piece, at).map_err(on_path())?;
            hasher.update(piece);
            at += wanted as u64;
        }
        Ok(hasher.finalize())
    }
}

/// Bytes of a footer that are read at a time.
const PIECE_BYTES: usize = 64 << 10;

impl Length for OpenedFile {
    fn len(&self) -> u64 {
        self.0.outer.size_bytes
    }
}

impl ChunkReader for OpenedFile {
    type T = BufReader<BytesFrom>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(BytesFrom { file: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if self.len().checked_sub(start).is_none_or(|rest| rest < length as u64) {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at {start} are not in the file"
            )));
        }
        let mut bytes = vec![0; length];
        self.0.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// The bytes of a file from a place on.
pub(crate) struct BytesFrom {
    file: OpenedFile,
    at: u64,
}

impl Read for BytesFrom {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
