//! The result of a call: in memory while it is short, in a file when it is longer.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::record::{Outcome, to_hex};
use super::{INLINE_MAX, rows_file};
use crate::map::RowSink;
use crate::ssdlet::SsdletError;

/// Takes the rows of a result.
pub(super) struct ResultSink {
    folder: PathBuf,
    name: String,
    keyed: bool,
    /// All of it, until there is a file.
    short: Vec<u8>,
    file: Option<BufWriter<File>>,
    bytes: u64,
    crc: u32,
}

impl ResultSink {
    /// The result of request `id` of `client`, in `folder`.
    pub(super) fn new(folder: &Path, client: &str, id: u64) -> ResultSink {
        ResultSink {
            folder: folder.to_owned(),
            name: rows_file(client, id),
            keyed: false,
            short: Vec::new(),
            file: None,
            bytes: 0,
            crc: 0,
        }
    }

    /// Whether it has rows with keys, also if there are none.
    pub(super) fn set_keyed(&mut self, keyed: bool) {
        self.keyed = keyed;
    }

    fn part(&self) -> PathBuf {
        self.folder.join(format!(".{}.part", self.name))
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        if let Some(file) = &mut self.file {
            return file.write_all(bytes);
        }
        self.short.extend_from_slice(bytes);
        if self.short.len() <= INLINE_MAX {
            return Ok(());
        }
        // A part that a killed node left.
        match fs::remove_file(self.part()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let flags = OFlags::NOFOLLOW.bits() as i32;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o644).custom_flags(flags);
        let mut file = BufWriter::new(options.open(self.part())?);
        file.write_all(&std::mem::take(&mut self.short))?;
        self.file = Some(file);
        Ok(())
    }

    /// Puts a file into its place, and gives the answer.
    pub(super) fn finish(self) -> io::Result<Outcome> {
        let (part, place) = (self.part(), self.folder.join(&self.name));
        let ResultSink { keyed, short, file, bytes, crc, folder, .. } = self;
        let Some(file) = file else { return Ok(Outcome::Inline { keyed, hex: to_hex(&short) }) };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&part, place)?;
        File::open(folder)?.sync_all()?;
        Ok(Outcome::File { keyed, bytes, crc32c: crc })
    }

    /// Removes what was written of a result that failed.
    pub(super) fn discard(self) {
        if self.file.is_some() {
            let _ = fs::remove_file(self.part());
        }
    }
}

fn failed(error: &io::Error) -> SsdletError {
    SsdletError::Failed(format!("the result can't be written: {error}"))
}

impl RowSink for ResultSink {
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        let head = [(key.len() as u32).to_le_bytes(), (value.len() as u32).to_le_bytes()];
        for part in [head.as_flattened(), key, value] {
            self.take(part).map_err(|e| failed(&e))?;
        }
        Ok(true)
    }

    fn records(&mut self, records: &[u8]) -> Result<bool, SsdletError> {
        self.take(records).map_err(|e| failed(&e))?;
        Ok(true)
    }
}
