//! The resume point of a copy: how much of the output is durable, its checksum, and where the view
//! is continued.

use std::sync::Arc;

use merganser_storage::{Directory, DirectoryExt, Storage, StorageExt};
use serde::{Deserialize, Serialize};

use crate::run::format::corrupt;
use crate::sealed::{seal, unseal};
use crate::text::JournalText;
use crate::view::View;
use crate::{Error, Progress, Result};

/// Name of the resume point in the folder of unfinished work.
pub const RESUME_NAME: &str = "resume";
const FORMAT_NAME: &str = "merganser-resume";
const VERSION: u32 = 2;
/// Enough for any key of [`KEY_BYTES_MAX`]; each of its bytes takes up to nine in the file.
const RESUME_BYTES_MAX: u64 = 1 << 30;
/// A longer key makes no resume point.
pub(super) const KEY_BYTES_MAX: usize = 16 << 20;
/// The written part of an interrupted copy is checked in pieces of this size.
const CHECKED_BYTES: u64 = 1 << 20;

/// Where an interrupted copy continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    pub(super) format: String,
    pub(super) version: u32,
    /// CRC32C of the view's manifest: which view this is.
    pub(super) view_crc: u32,
    /// The path of the view.
    pub view: JournalText,
    /// The path of the output.
    pub output: JournalText,
    /// Whether the view is given back as it is copied.
    pub consume: bool,
    /// Bytes of the output that are synced.
    pub written: u64,
    /// CRC32C of these bytes.
    pub(super) written_crc: u32,
    /// Bytes of the whole output.
    pub total: u64,
    /// The bound there: key, and run and position of the tie.
    pub(super) key: Vec<u8>,
    pub(super) tie: Option<(usize, u64)>,
    /// Whether the whole output was written.
    pub complete: bool,
}

impl Resume {
    /// Reads the resume point in a folder of unfinished work, if it has one.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; [`Error::UnknownVersion`]; the storage's own.
    pub fn read(work: &Arc<dyn Directory>) -> Result<Option<Self>> {
        let Some(file) = work.open_if_exists(RESUME_NAME)? else { return Ok(None) };
        if file.size() > RESUME_BYTES_MAX {
            return Err(corrupt(
                file.name(),
                RESUME_BYTES_MAX,
                "too large for a resume point".into(),
            ));
        }
        let bytes = file.read_vec(0, file.size() as usize)?;
        Self::decode(file.name(), &bytes).map(Some)
    }

    /// Reads the bytes of a resume point; `file` names it in errors.
    ///
    /// # Errors
    /// As [`Resume::read`].
    pub fn decode(file: &str, bytes: &[u8]) -> Result<Self> {
        let resume: Resume = unseal(file, "resume point", bytes)?;
        if resume.format != FORMAT_NAME || resume.version != VERSION {
            return Err(Error::UnknownVersion {
                file: file.to_owned(),
                kind: resume.format,
                version: resume.version,
                known: format!("{FORMAT_NAME} version {VERSION}"),
            });
        }
        if resume.written > resume.total {
            return Err(corrupt(file, 0, "more is written than there is".to_owned()));
        }
        Ok(resume)
    }

    /// The bytes of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        seal(self)
    }

    /// The point before the first byte of a copy of `view`; its path and that of the output.
    pub(super) fn at_start(
        (view_path, output): (&JournalText, &JournalText),
        consume: bool,
        view: &View,
    ) -> Self {
        Resume {
            format: FORMAT_NAME.to_owned(),
            version: VERSION,
            view_crc: crc32c::crc32c(&view.manifest().encode()),
            view: view_path.clone(),
            output: output.clone(),
            consume,
            written: 0,
            written_crc: 0,
            total: view.size(),
            key: Vec::new(),
            tie: None,
            complete: false,
        }
    }

    /// Whether both are points of copies of one view.
    pub(super) fn is_of_same_view(&self, other: &Resume) -> bool {
        self.view_crc == other.view_crc && self.total == other.total
    }

    pub(super) fn write(&self, work: &Arc<dyn Directory>) -> Result<()> {
        Ok(work.publish(RESUME_NAME, &self.encode())?)
    }
}

/// Reads what an interrupted copy has written, and compares it with the checksum in the resume point.
pub(super) fn check_written(
    partial: &dyn Storage,
    resume: &Resume,
    progress: &dyn Progress,
) -> Result<()> {
    if partial.size() < resume.written {
        let (written, size) = (resume.written, partial.size());
        let detail = format!("{written} bytes were synced but only {size} are there");
        return Err(corrupt(partial.name(), size, detail));
    }
    progress.phase("checking", Some(resume.written));
    let (mut at, mut crc) = (0, 0);
    while at < resume.written {
        if progress.cancelled() {
            return Err(Error::Cancelled);
        }
        let bytes = partial.read_vec(at, (resume.written - at).min(CHECKED_BYTES) as usize)?;
        crc = crc32c::crc32c_append(crc, &bytes);
        at += bytes.len() as u64;
        progress.advance(bytes.len() as u64);
    }
    if crc != resume.written_crc {
        let detail = format!(
            "its first {at} bytes have the CRC {crc:08x}, and {:08x} was written",
            resume.written_crc
        );
        return Err(corrupt(partial.name(), 0, detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn resume() -> Resume {
        Resume {
            format: FORMAT_NAME.to_owned(),
            version: VERSION,
            view_crc: 0x89ab_cdef,
            view: JournalText::from(OsStr::new("/data/big.view")),
            output: JournalText(b"/data/out\xff".to_vec()),
            consume: true,
            written: 64,
            written_crc: 0x0123_4567,
            total: 100,
            key: b"key\0\xff".to_vec(),
            tie: Some((2, 17)),
            complete: false,
        }
    }

    #[test]
    fn the_bytes_are_pinned() {
        let text = String::from_utf8(resume().encode()).expect("text");
        let golden = include_str!("golden/resume");
        assert_eq!(text, golden, "docs/formats.md and the version must follow");
    }

    #[test]
    fn written_bytes_are_read_back() {
        let resume = resume();
        assert_eq!(Resume::decode("x", &resume.encode()).expect("whole"), resume);
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let bytes = resume().encode();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            let read = Resume::decode("x", &damaged);
            assert!(matches!(read, Err(Error::Corrupt { .. })), "byte {at}");
            assert!(Resume::decode("x", &bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_resume_point_that_wrote_more_than_there_is_is_damaged() {
        let wrong = Resume { written: 101, ..resume() };
        assert!(matches!(Resume::decode("x", &wrong.encode()), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn another_version_is_not_read() {
        let wrong = Resume { version: VERSION + 1, ..resume() };
        assert!(matches!(Resume::decode("x", &wrong.encode()), Err(Error::UnknownVersion { .. })));
    }
}
