//! The bytes of a file on a disk, or of an object, as the libraries of Parquet and Arrow read them.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::ends::ObjectTail;
use super::object::{ObjectError, StoredObject};
use super::opened::{BytesFrom, OpenedFile};
use super::pieces::Pieces;

/// Bytes that are read at once where the header of a page is.
const HEADER_BYTES: usize = 256;

/// An open file: many readers read it, at any place.
#[derive(Clone)]
pub(super) enum OpenContent {
    Disk(OpenedFile),
    Object(Arc<Mutex<Pieces>>),
}

impl OpenContent {
    /// An object whose end is known, with memory for pieces.
    pub(super) fn of_object(
        object: &Arc<dyn StoredObject>,
        ahead_bytes: u64,
        tail: ObjectTail,
    ) -> OpenContent {
        let mut pieces = Pieces::new(Arc::clone(object), ahead_bytes);
        pieces.put(tail.start, tail.bytes);
        OpenContent::Object(Arc::new(Mutex::new(pieces)))
    }

    /// The error of its store, which the error of a library was made of.
    pub(super) fn failure(&self) -> Option<ObjectError> {
        match self {
            OpenContent::Disk(_) => None,
            OpenContent::Object(pieces) => pieces.lock().failure(),
        }
    }

    /// Gives up what was read ahead for other row groups than `group` and the `next` one, and begins to read these two ahead;
    /// `columns` gives the places of the columns of a row group.
    pub(super) fn read_ahead(
        &self,
        group: usize,
        next: Option<usize>,
        columns: impl Fn(usize) -> Vec<Range<u64>>,
    ) {
        if let OpenContent::Object(pieces) = self {
            let mut pieces = pieces.lock();
            pieces.keep_groups(|other| other == group || Some(other) == next);
            for group in [Some(group), next].into_iter().flatten() {
                pieces.plan_group(group, || columns(group));
            }
        }
    }

    /// All of it, from the front, for a library that reads one thing after the other.
    pub(super) fn in_order(self) -> InOrder {
        InOrder { content: self, at: 0 }
    }
}

impl Length for OpenContent {
    fn len(&self) -> u64 {
        match self {
            OpenContent::Disk(file) => Length::len(file),
            OpenContent::Object(pieces) => pieces.lock().object_bytes(),
        }
    }
}

impl ChunkReader for OpenContent {
    type T = ContentReader;

    fn get_read(&self, start: u64) -> Result<ContentReader, ParquetError> {
        Ok(match self {
            OpenContent::Disk(file) => ContentReader::Disk(file.get_read(start)?),
            OpenContent::Object(pieces) => {
                let header = PieceReader { pieces: Arc::clone(pieces), at: start };
                ContentReader::Object(BufReader::with_capacity(HEADER_BYTES, header))
            }
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        match self {
            OpenContent::Disk(file) => file.get_bytes(start, length),
            OpenContent::Object(pieces) => {
                let mut pieces = pieces.lock();
                let end = start.checked_add(length as u64);
                let Some(end) = end.filter(|end| *end <= pieces.object_bytes()) else {
                    let what = format!("{length} bytes at {start} are not in the file");
                    return Err(ParquetError::EOF(what));
                };
                // A copy, or a page that stays long would keep a piece of many pages.
                let mut page = Vec::with_capacity(length);
                let mut at = start;
                while at < end {
                    let bytes = pieces.bytes_at(at, end);
                    let bytes = bytes.map_err(|error| ParquetError::External(Box::new(error)))?;
                    page.extend_from_slice(&bytes);
                    at += bytes.len() as u64;
                    pieces.was_read(start..at);
                }
                Ok(page.into())
            }
        }
    }
}

/// Reads from a place on.
pub(super) enum ContentReader {
    Disk(BufReader<BytesFrom>),
    Object(BufReader<PieceReader>),
}

impl Read for ContentReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            ContentReader::Disk(file) => file.read(into),
            ContentReader::Object(object) => object.read(into),
        }
    }
}

/// Looks at an object's bytes: no piece is given up, since they are perhaps read again.
pub(super) struct PieceReader {
    pieces: Arc<Mutex<Pieces>>,
    at: u64,
}

impl Read for PieceReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut pieces = self.pieces.lock();
        let end = pieces.object_bytes().min(self.at.saturating_add(into.len() as u64));
        if self.at >= end {
            return Ok(0);
        }
        let bytes = pieces.bytes_at(self.at, end).map_err(io::Error::other)?;
        into[..bytes.len()].copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}

/// Reads a file in order, from any place on.
pub(super) struct InOrder {
    content: OpenContent,
    at: u64,
}

impl Read for InOrder {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.content {
            OpenContent::Disk(file) => {
                let count = file.read_at(into, self.at)?;
                self.at += count as u64;
                Ok(count)
            }
            OpenContent::Object(pieces) => {
                let mut pieces = pieces.lock();
                let size = pieces.object_bytes();
                let end = size.min(self.at.saturating_add(into.len() as u64));
                if self.at >= end {
                    return Ok(0);
                }
                if !pieces.is_planned(self.at) {
                    pieces.plan_run(self.at..size);
                }
                let bytes = pieces.bytes_at(self.at, end).map_err(io::Error::other)?;
                into[..bytes.len()].copy_from_slice(&bytes);
                let from = self.at;
                self.at += bytes.len() as u64;
                pieces.was_read(from..self.at);
                Ok(bytes.len())
            }
        }
    }
}

impl Seek for InOrder {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let moved = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => Length::len(&self.content).checked_add_signed(by),
        };
        self.at = moved.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
