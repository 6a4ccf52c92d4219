//! Tells whether a file of queries is the same: a search that continues must have the same queries.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMark {
    /// Its bytes.
    pub bytes: u64,
    /// Their CRC32C.
    pub crc: u32,
}

impl FileMark {
    /// That of a file, which has to be one: others can't be read again.
    ///
    /// # Errors
    /// The system's own.
    pub fn of_path(path: &Path) -> io::Result<Self> {
        if !path.metadata()?.is_file() {
            return Err(io::Error::other("is no regular file, and queries are read several times"));
        }
        let mut file = File::open(path)?;
        let mut buffer = vec![0; READ_BYTES];
        let mut mark = FileMark { bytes: 0, crc: 0 };
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(mark),
                Ok(read) => {
                    mark.bytes += read as u64;
                    mark.crc = crc32c::crc32c_append(mark.crc, &buffer[..read]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
