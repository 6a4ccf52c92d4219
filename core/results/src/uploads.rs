//! The note of uploads to an object store, next to temporary files.
//!
//! The parts of an upload stay in the store until it is completed or aborted, and no list of objects shows them. So a file of
//! this machine names an upload as long as it is open. It is locked by the process that makes it: without that lock, the process
//! is dead, and the upload may be aborted.
//!
//! ```text
//!   .OUT-0123456789abcdef.merganser-upload      a line of JSON each:
//!     {"format":"merganser-upload","version":1,"result":"s3://bucket/out.parquet"}
//!     {"begins":"s3://bucket/out.parquet"}                          perhaps an upload was begun
//!     {"object":"s3://bucket/out.parquet","upload":"2~abc"}         it was, with this id
//!     {"ended":"s3://bucket/out.parquet"}                           it was completed or aborted
//! ```
//!
//! Lines are only added, and synced before the next step. A last line without its end is one that was not finished.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use merganser_storage::file::own;
use serde::{Deserialize, Serialize};

use crate::ResultsError;
use crate::unfinished::lock_file;

const SUFFIX: &str = ".merganser-upload";
const FORMAT: &str = "merganser-upload";
const VERSION: u32 = 1;
/// Bytes of the result's name in that of the file.
const NAME_BYTES: usize = 64;

/// An upload that was not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenUpload {
    /// The object that it would make.
    pub object: String,
    /// Its id; `None` if the process died while it was begun, and perhaps there is none.
    pub id: Option<String>,
}

/// What a note says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotedUploads {
    /// The result that was made: an object, or a folder of objects.
    pub result: String,
    /// The uploads that were not ended.
    pub open: Vec<OpenUpload>,
}

/// A line of a note.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum NoteLine {
    Head { format: String, version: u32, result: String },
    Begins { begins: String },
    Begun { object: String, upload: String },
    Ended { ended: String },
}

/// The note of the uploads of a result that is being made, locked.
#[derive(Debug)]
pub struct UploadNote {
    path: PathBuf,
    file: File,
}

/// Why a note can't be made.
#[derive(Debug, thiserror::Error)]
pub enum UploadNoteError {
    /// Another process makes this result.
    #[error("{0}: another process is making this now")]
    Busy(String),
    /// A note that can't be read, or is one of another user.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

impl UploadNote {
    /// Begins the note of `result` in `folder`, and says which uploads an earlier process left open.
    ///
    /// # Errors
    /// Another process makes this result; a note that is damaged, or not of this user; the system's own.
    pub fn begin(
        folder: &Path,
        result: &str,
    ) -> Result<(UploadNote, Vec<OpenUpload>), UploadNoteError> {
        let path = folder.join(note_name(result));
        let on_path = ResultsError::on(&path);
        loop {
            let mut options = File::options();
            let careful = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            options.read(true).append(true).create(true).mode(0o600).custom_flags(careful);
            let mut file = options.open(&path).map_err(on_path)?;
            if !lock_file(&file) {
                return Err(UploadNoteError::Busy(result.to_owned()));
            }
            let found = file.metadata().map_err(on_path)?;
            if found.nlink() == 0 {
                // The process that had the lock has ended, and has removed the note.
                continue;
            }
            own::check_file(&found).map_err(|refusal| on_path(refusal.into()))?;
            let left = read_lines(&mut file).map_err(on_path)?;
            // A line that was not finished must not be the front of the next one.
            file.set_len(left.as_ref().map_or(0, |(_, bytes)| *bytes)).map_err(on_path)?;
            let mut note = UploadNote { path, file };
            if left.is_none() {
                let format = FORMAT.to_owned();
                note.add(&NoteLine::Head { format, version: VERSION, result: result.to_owned() })?;
                let parent = File::open(folder).and_then(|folder| folder.sync_all());
                parent.map_err(ResultsError::on(folder))?;
            }
            return Ok((note, left.map(|(left, _)| left.open).unwrap_or_default()));
        }
    }

    /// An upload of `object` begins now.
    ///
    /// # Errors
    /// The system's own.
    pub fn begins(&mut self, object: &str) -> Result<(), ResultsError> {
        self.add(&NoteLine::Begins { begins: object.to_owned() })
    }

    /// It has begun, with this id.
    ///
    /// # Errors
    /// The system's own.
    pub fn begun(&mut self, object: &str, id: &str) -> Result<(), ResultsError> {
        self.add(&NoteLine::Begun { object: object.to_owned(), upload: id.to_owned() })
    }

    /// It is completed, or aborted.
    ///
    /// # Errors
    /// The system's own.
    pub fn ended(&mut self, object: &str) -> Result<(), ResultsError> {
        self.add(&NoteLine::Ended { ended: object.to_owned() })
    }

    /// Removes the note, if all uploads are ended. Otherwise it stays, and the next process that makes this result ends them.
    ///
    /// # Errors
    /// The system's own.
    pub fn finish(mut self) -> Result<(), ResultsError> {
        let on_path = ResultsError::on(&self.path);
        let left = read_lines(&mut self.file).map_err(on_path)?;
        if left.is_none_or(|(left, _)| left.open.is_empty()) {
            fs::remove_file(&self.path).map_err(on_path)?;
        }
        Ok(())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn add(&mut self, line: &NoteLine) -> Result<(), ResultsError> {
        let mut text = serde_json::to_string(line).expect("plain data");
        text.push('\n');
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(ResultsError::on(&self.path))
    }
}

/// What the note at `path` says.
///
/// # Errors
/// A note that is damaged, or not of this user; the system's own.
pub fn read_note(path: &Path) -> Result<NotedUploads, ResultsError> {
    let mut file = own::open_file(path, false).map_err(ResultsError::on(path))?;
    let read = read_lines(&mut file).map_err(ResultsError::on(path))?;
    Ok(read.map(|(noted, _)| noted).unwrap_or_default())
}

/// The name of the result in the name of its note; `None` if it is not that of a note.
#[must_use]
pub fn noted_name(name: &OsStr) -> Option<OsString> {
    let name = name.to_str()?.strip_prefix('.')?.strip_suffix(SUFFIX)?;
    let (name, hash) = name.rsplit_once('-')?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hash && !name.is_empty()).then(|| name.into())
}

/// The name of the note of `result`.
fn note_name(result: &str) -> String {
    let last = result.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "._-=".contains(character);
    let plain = |character| if is_plain(character) { character } else { '_' };
    let shown: String = last.chars().map(plain).collect();
    let shown = &shown[..shown.len().min(NAME_BYTES)];
    // FNV-1a: names of one end in several buckets get notes of their own.
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = result.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    format!(".{shown}-{hash:016x}{SUFFIX}")
}

/// The whole lines of a note, and their bytes; `None` if it has not even a first one.
fn read_lines(file: &mut File) -> io::Result<Option<(NotedUploads, u64)>> {
    file.rewind()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let Some((whole, _)) = text.rsplit_once('\n') else { return Ok(None) };
    let damaged = || io::Error::other("is no note of uploads, or one of a later version");
    let mut noted: Option<NotedUploads> = None;
    for line in whole.lines() {
        let line: NoteLine = serde_json::from_str(line).map_err(|_| damaged())?;
        match (line, &mut noted) {
            (NoteLine::Head { format, version, result }, None)
                if format == FORMAT && version == VERSION =>
            {
                noted = Some(NotedUploads { result, open: Vec::new() });
            }
            (NoteLine::Begins { begins }, Some(noted)) => {
                noted.open.push(OpenUpload { object: begins, id: None });
            }
            (NoteLine::Begun { object, upload }, Some(noted)) => {
                let is_it = |open: &&mut OpenUpload| open.object == object && open.id.is_none();
                match noted.open.iter_mut().find(is_it) {
                    Some(open) => open.id = Some(upload),
                    None => noted.open.push(OpenUpload { object, id: Some(upload) }),
                }
            }
            (NoteLine::Ended { ended }, Some(noted)) => {
                noted.open.retain(|open| open.object != ended);
            }
            _ => return Err(damaged()),
        }
    }
    Ok(noted.map(|noted| (noted, whole.len() as u64 + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT: &str = "s3://bucket/in/out.parquet";

    #[test]
    fn a_note_names_what_is_open_until_it_is_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut note, left) = UploadNote::begin(folder.path(), OUT).expect("begun");
        assert!(left.is_empty());
        let name = note.path().file_name().expect("a name").to_owned();
        assert_eq!(noted_name(&name).as_deref(), Some(OsStr::new("out.parquet")));
        note.begins(OUT).expect("noted");
        let id = None;
        let open = OpenUpload { object: OUT.to_owned(), id };
        assert_eq!(read_note(note.path()).expect("read").open, std::slice::from_ref(&open));
        note.begun(OUT, "id").expect("noted");
        let open = OpenUpload { id: Some("id".to_owned()), ..open };
        let read = read_note(note.path()).expect("read");
        assert_eq!(read, NotedUploads { result: OUT.to_owned(), open: vec![open.clone()] });
        // A second process waits for nothing.
        let busy = UploadNote::begin(folder.path(), OUT).expect_err("locked");
        assert_eq!(busy.to_string(), format!("{OUT}: another process is making this now"));
        // It dies: the next one hears of the upload, and the note stays until that is ended.
        drop(note);
        let (note, left) = UploadNote::begin(folder.path(), OUT).expect("begun");
        assert_eq!(left, [open]);
        note.finish().expect("finished");
        let (mut note, left) = UploadNote::begin(folder.path(), OUT).expect("begun");
        assert_eq!(left.len(), 1);
        note.ended(OUT).expect("noted");
        note.finish().expect("finished");
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 0);
    }

    /// A note is cut at each byte, as a process leaves it that dies while it writes: no id that is noted whole is lost.
    #[test]
    fn a_note_that_is_cut_says_what_its_whole_lines_say() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut note, _) = UploadNote::begin(folder.path(), OUT).expect("begun");
        note.begins(OUT).expect("noted");
        note.begun(OUT, "id").expect("noted");
        let (path, whole) = (note.path().to_owned(), fs::read(note.path()).expect("read"));
        drop(note);
        for length in 0..=whole.len() {
            fs::write(&path, &whole[..length]).expect("written");
            let lines = whole[..length].iter().filter(|byte| **byte == b'\n').count();
            let read = read_note(&path).expect("read");
            let expected = [None, None, Some(None), Some(Some("id".to_owned()))][lines].clone();
            assert_eq!(read.open.first().map(|open| open.id.clone()), expected, "{length}");
        }
        // The next process goes on behind the whole lines.
        fs::write(&path, &whole[..whole.len() - 1]).expect("written");
        let (mut note, _) = UploadNote::begin(folder.path(), OUT).expect("begun");
        note.begun(OUT, "other").expect("noted");
        assert_eq!(read_note(&path).expect("read").open[0].id.as_deref(), Some("other"));
        drop(note);
        fs::write(&path, "{\"format\":\"other\"}\n").expect("written");
        assert!(read_note(&path).is_err() && UploadNote::begin(folder.path(), OUT).is_err());
    }
}
