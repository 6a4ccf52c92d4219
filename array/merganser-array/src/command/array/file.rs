//! The file that describes a volume: which members it has, in order. Docs: docs/array/array.md, "Description".

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_array::{Members, Volume};
use merganser_shell::failure::Failure;
use merganser_shell::input::is_same_file;
use merganser_shell::patience::patiently;
use merganser_shell::shown;
use merganser_storage::Storage;
use merganser_storage::file::{FileOptions, FileStorage, check_new, own};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

const FORMAT: &str = "merganser-array";
/// Version 1 had no identity of the volume.
const VERSION: u32 = 2;
/// A description is a few names.
const BYTES_MAX: u64 = 1 << 20;

/// A volume's members.
#[derive(Debug)]
pub(super) struct VolumeFile {
    path: PathBuf,
    content: VolumeFileContent,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VolumeFileContent {
    format: String,
    version: u32,
    /// The identity of the volume, from version 2 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    data: Vec<PathBuf>,
    buffer: Vec<PathBuf>,
}

impl VolumeFile {
    /// The description of a volume that is to be at `path`.
    pub(super) fn new(path: &Path, data: &[PathBuf], buffer: &[PathBuf]) -> Result<Self, Failure> {
        let folder = folder_of(path)?;
        let relative = |member: &PathBuf| {
            let whole = std::path::absolute(member).map_err(|error| Failure::on(member, &error))?;
            Ok(whole.strip_prefix(&folder).map(Path::to_owned).unwrap_or(whole))
        };
        let data = data.iter().map(relative).collect::<Result<_, Failure>>()?;
        let buffer = buffer.iter().map(relative).collect::<Result<_, Failure>>()?;
        let content = VolumeFileContent {
            format: FORMAT.to_owned(),
            version: VERSION,
            id: None,
            data,
            buffer,
        };
        Ok(VolumeFile { path: path.to_owned(), content })
    }

    /// Reads a description.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let on = |error: &io::Error| Failure::on(path, error);
        let bytes = fs::metadata(path).map_err(|error| on(&error))?.len();
        if bytes > BYTES_MAX {
            return Err(format!("{}: is no description of a volume", shown::name(path)).into());
        }
        let text = fs::read_to_string(path).map_err(|error| on(&error))?;
        let refuse = |why: String| Failure::from(format!("{}: {why}", shown::name(path)));
        let content: VolumeFileContent = serde_json::from_str(&text)
            .map_err(|error| refuse(format!("is no description of a volume: {error}")))?;
        if content.format != FORMAT {
            return Err(refuse(format!("is a '{}', not a '{FORMAT}'", content.format)));
        }
        if !(1..=VERSION).contains(&content.version) {
            let version = content.version;
            let why = format!("has version {version}; this program reads 1 to {VERSION}");
            return Err(refuse(why));
        }
        if content.version > 1 && content.id.is_none() {
            // Without it, it would open whatever volume its members belong to.
            return Err(refuse(format!("has version {} and no \"id\"", content.version)));
        }
        if content.data.is_empty() {
            return Err(refuse("names no data member".to_owned()));
        }
        Ok(VolumeFile { path: path.to_owned(), content })
    }

    /// Notes the identity of the volume that was made.
    pub(super) fn set_id(&mut self, id: String) {
        self.content.id = Some(id);
    }

    /// Writes it, durable, where nothing is yet. When that fails, nothing is left.
    pub(super) fn write(&self) -> Result<(), Failure> {
        let text =
            serde_json::to_string_pretty(&self.content).expect("names are text or were refused");
        let on = |error: io::Error| Failure::on(&self.path, &error);
        check_new(&self.path).map_err(on)?;
        let mut file = File::create_new(&self.path).map_err(on)?;
        let written = file
            .write_all(format!("{text}\n").as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| own::sync_parent(&self.path));
        written.map_err(|error| {
            // The first error is what the caller needs to know.
            let _ = fs::remove_file(&self.path);
            on(error)
        })
    }

    /// The volume's name in messages.
    pub(super) fn name(&self) -> String {
        shown::name(&self.path)
    }

    /// Refuses a result that would take the place of the description or of a member.
    pub(super) fn refuse_as_result(&self, flag: &str, path: &Path) -> Result<(), Failure> {
        let folder = folder_of(&self.path)?;
        let members = self.content.data.iter().chain(&self.content.buffer);
        let members = members.map(|member| folder.join(member));
        match members.chain([self.path.clone()]).find(|own| is_same_file(own, path)) {
            Some(own) => Err(format!(
                "{flag} {}: is a part of the volume ({}); give another name",
                shown::name(path),
                shown::name(&own)
            )
            .into()),
            None => Ok(()),
        }
    }

    /// Opens the members. Those that were made into another volume since are refused.
    pub(super) fn open(&self, hold: MemberHold) -> Result<Members, Failure> {
        let folder = folder_of(&self.path)?;
        let open = |member: &PathBuf| open_member(&folder.join(member), hold);
        let data = self.content.data.iter().map(open).collect::<Result<_, Failure>>()?;
        let buffer = self.content.buffer.iter().map(open).collect::<Result<_, Failure>>()?;
        let members = Members { data, buffer };
        // Where no label is left, others say so.
        if let (Some(id), Ok(found)) = (&self.content.id, Volume::identity(&members))
            && *id != found
        {
            return Err(format!(
                "{}: describes volume {id}, and its members belong to volume {found}: they were made into another one since, which has a description of its own",
                self.name()
            )
            .into());
        }
        Ok(members)
    }
}

/// The folder in which a file is, from the root.
fn folder_of(path: &Path) -> Result<PathBuf, Failure> {
    let whole = std::path::absolute(path).map_err(|error| Failure::on(path, &error))?;
    Ok(whole.parent().map_or_else(|| whole.clone(), Path::to_owned))
}

/// The access to a member that other processes keep while this one has it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberHold {
    /// Anything: this process looks at a volume that may be served.
    Nothing,
    /// Read it.
    Unchanged,
    /// Nothing but look at it: this process changes it.
    Alone,
}

/// Opens a member, and keeps it locked as `hold` says until it is closed.
pub(super) fn open_member(path: &Path, hold: MemberHold) -> Result<Arc<dyn Storage>, Failure> {
    let writable = hold == MemberHold::Alone;
    let is_device = |found: fs::Metadata| found.file_type().is_block_device();
    let on = |error: io::Error| Failure::on(path, &error);
    let storage = if writable && fs::metadata(path).is_ok_and(is_device) {
        open_device(path)?
    } else {
        FileStorage::open_path(path, writable).map_err(|error| Failure::named(&error))?
    };
    let lock = match hold {
        MemberHold::Nothing => return Ok(storage),
        MemberHold::Unchanged => FlockOperation::NonBlockingLockShared,
        MemberHold::Alone => FlockOperation::NonBlockingLockExclusive,
    };
    // The process that had it before may have removed it.
    let is_free = lock_soon(storage.file(), lock);
    if !is_free || storage.file().metadata().map_err(on)?.nlink() == 0 {
        return Err(in_use(path));
    }
    Ok(storage)
}

/// Locks a member that this process has just made.
pub(super) fn lock_new(path: &Path, file: &File) -> Result<(), Failure> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(in_use(path)),
        _ => Ok(()),
    }
}

/// A member of an open file.
pub(super) fn member_of(path: &Path, file: File) -> Result<Arc<FileStorage>, Failure> {
    FileStorage::from_file(file, path.display().to_string(), true, FileOptions::default())
        .map_err(|error| Failure::named(&error))
}

fn in_use(path: &Path) -> Failure {
    format!("{}: is in use by another process", shown::name(path)).into()
}

/// Locks a member, if no other process has a lock against it.
fn lock_soon(file: &File, lock: FlockOperation) -> bool {
    let lock = || flock(file, lock);
    patiently(lock, |error| matches!(*error, Errno::WOULDBLOCK | Errno::INTR)).is_ok()
}

/// Opens a block device that no other program may use meanwhile: a file system that is mounted on it would
/// be overwritten, and locks of files do not tell.
fn open_device(path: &Path) -> Result<Arc<FileStorage>, Failure> {
    let alone = OFlags::EXCL.bits().cast_signed();
    let open = || File::options().read(true).write(true).custom_flags(alone).open(path);
    let is_busy = |error: &io::Error| error.kind() == io::ErrorKind::ResourceBusy;
    let device = patiently(open, is_busy).map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => Failure::from(format!(
            "{}: is mounted, or in use by another program; it can't be a member",
            shown::name(path)
        )),
        _ => Failure::on(path, &error),
    })?;
    member_of(path, device)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str =
        r#"{"format": "merganser-array", "version": 1, "data": ["a", "/b"], "buffer": ["c"]}"#;
    const WITH_ID: &str = r#"{"format": "merganser-array", "version": 2, "id": "5e", "data": ["a", "/b"], "buffer": ["c"]}"#;

    /// A description, or one sentence that begins with its name.
    fn read(bytes: &[u8]) -> Option<VolumeFile> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("vol.json");
        fs::write(&path, bytes).expect("written");
        match VolumeFile::read(&path) {
            Ok(description) => Some(description),
            Err(failure) => {
                let sentence = failure.sentence().expect("a sentence");
                assert!(sentence.starts_with(&shown::name(&path)), "{sentence}");
                None
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_description_or_a_sentence(bytes: Vec<u8>) {
            prop_assert!(read(&bytes).is_none());
        }

        /// Cut, and with bytes changed. A description that is read is the one that the bytes say.
        #[test]
        fn a_damaged_description_is_another_one_or_a_sentence(
            has_id: bool,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut bytes = if has_id { WITH_ID } else { GOOD }.as_bytes().to_vec();
            let len = bytes.len();
            changes.iter().for_each(|(at, byte)| bytes[at.index(len)] = *byte);
            bytes.truncate(cut.map_or(len, |cut| cut.index(len)));
            if let Some(VolumeFile { content, .. }) = read(&bytes) {
                prop_assert_eq!(&*content.format, FORMAT);
                prop_assert!((1..=VERSION).contains(&content.version));
                // A damaged name of the field would open the members of any volume.
                prop_assert!(content.version == 1 || content.id.is_some());
                prop_assert!(!content.data.is_empty());
                let text = String::from_utf8(bytes).expect("it was read as text");
                // Nothing is added to names, and nothing is left out.
                let names = content.data.iter().chain(&content.buffer);
                let plain = names.filter(|name| !text.contains('\\') && !name.as_os_str().is_empty());
                plain.for_each(|name| assert!(text.contains(name.to_str().expect("text")), "{name:?}"));
            }
        }
    }

    #[test]
    fn a_good_description_is_read() {
        let content = read(GOOD.as_bytes()).expect("good").content;
        assert_eq!(content.data, [Path::new("a"), Path::new("/b")]);
        assert_eq!(content.buffer, [Path::new("c")]);
        assert_eq!(content.id, None);
        let content = read(WITH_ID.as_bytes()).expect("good").content;
        assert_eq!(content.id.as_deref(), Some("5e"));
    }

    #[test]
    fn a_description_of_version_2_has_an_identity() {
        assert!(read(GOOD.replace("version\": 1", "version\": 2").as_bytes()).is_none());
    }
}
