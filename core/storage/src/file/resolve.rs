//! Which file an output's name means, links followed as the kernel follows them.
//!
//! ```text
//!   -o NAME ─► open(NAME, O_PATH): the kernel's answer, with its own rules and this user's rights
//!           ─► walk: each link of NAME in turn, from folder to folder, by open handles
//!              both must end at the same file ─► folder handle + last name, or a device or pipe
//! ```
//!
//! In a sticky folder that all users may write, such as /tmp, anybody can put a link or a file
//! under the name that another user is going to write. Linux refuses to follow such a link, or to
//! open such a file for output, where `fs.protected_symlinks`, `fs.protected_regular` and
//! `fs.protected_fifos` are set. Replacing a file by a rename doesn't pass these checks, so they are
//! made here, whatever the settings say.
//!
//! A name is resolved once. Commands run as root, in folders that other users may write, so later calls use the
//! handle of the folder and the last name, and not the path again.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::attributes::Attributes;
use super::directory::FileDirectory;
use super::error::FileError;
use super::kind::FileKind;
use super::own::{self, FileRefusal};
use super::{FileOptions, at, devices};

/// As many links in turn as the kernel follows.
const LINKS_MAX: usize = 40;
/// How often to look again at a name that changes meanwhile.
const TRIES_MAX: usize = 8;

/// What an output's name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// Nothing yet: a file is going to be made.
    Absent,
    /// A regular file, which is going to be replaced.
    Regular,
    /// A pipe, which is written as it is.
    Fifo,
    /// A character or block device, which is written as it is.
    Device,
    /// A folder, which can't be an output.
    Folder,
    /// A socket, or another kind that can't be an output.
    Socket,
}

/// An output's name, resolved once. Its handles stay those of the file that was checked, even if
/// other processes change the names meanwhile.
#[derive(Debug)]
pub struct ResolvedOutput {
    given: PathBuf,
    kind: OutputKind,
    /// The existing file, open with `O_PATH`.
    existing: Option<File>,
    /// Only of a regular file, or of one that is going to be made.
    place: Option<ResolvedName>,
}

/// A name in an open folder.
#[derive(Debug)]
pub(super) struct ResolvedName {
    pub(super) folder: File,
    pub(super) name: OsString,
}

/// Finds out what `path` means as an output.
///
/// # Errors
/// The system's own; a [`FileRefusal`] for a link, file or FIFO of another user in a sticky folder that
/// all users may write, and for a file in a folder of devices.
pub fn resolve_output(path: impl AsRef<Path>) -> io::Result<ResolvedOutput> {
    let path = path.as_ref();
    let resolve = || {
        for _ in 0..TRIES_MAX {
            if let Some(resolved) = look_once(path)? {
                return Ok(resolved);
            }
        }
        let why = "another process changes what this name means all the time";
        Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
    };
    resolve().map_err(|e| FileError::wrap(&path.display().to_string(), "create", e))
}

/// Refuses a name that would make a file in a folder of devices. A file that is there is not looked at.
///
/// # Errors
/// The [`FileRefusal`], or the system's own. The path is not in the text.
pub fn check_new(path: &Path) -> io::Result<()> {
    match walk(path)? {
        Walked::Absent(place) => Ok(devices::check_folder(&place.folder)?),
        Walked::Found(..) | Walked::Folder | Walked::OfProcess => Ok(()),
    }
}

impl ResolvedOutput {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> OutputKind {
        self.kind
    }

    /// The existing file, open with `O_PATH`: its metadata can be read, and `/proc/self/fd/N` opens
    /// it.
    #[must_use]
    pub fn existing(&self) -> Option<&File> {
        self.existing.as_ref()
    }

    /// A path that opens what is there, whatever bears its name by then; the path as it was given
    /// where nothing is, or where there is no /proc.
    #[must_use]
    pub fn reopen_path(&self) -> PathBuf {
        let held = self.existing.as_ref();
        let held = held.map(|file| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())));
        held.filter(|path| path.exists()).unwrap_or_else(|| self.given.clone())
    }

    /// Owner and permissions of what is there, for [`Attributes::give_to`]; none where nothing is.
    ///
    /// # Errors
    /// The system's own.
    pub fn attributes(&self) -> io::Result<Option<Attributes>> {
        self.existing.as_ref().map(Attributes::of_file).transpose()
    }

    /// The open folder of a regular or absent file; none for other kinds.
    #[must_use]
    pub fn folder(&self) -> Option<&File> {
        self.place.as_ref().map(|place| &place.folder)
    }

    /// The name in [`ResolvedOutput::folder`].
    #[must_use]
    pub fn name(&self) -> Option<&OsStr> {
        self.place.as_ref().map(|place| &*place.name)
    }

    /// The absolute path without links of a regular or absent file; of anything else the path as
    /// it was given.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match &self.place {
            Some(place) => match at::real_path(&place.folder) {
                Ok(folder) => folder.join(&place.name),
                Err(_) => self.given.clone(),
            },
            None => self.given.clone(),
        }
    }

    /// [`ResolvedOutput::folder`] as a directory: the open folder itself, not one of the same name.
    ///
    /// # Errors
    /// The system's own; `InvalidInput` for other kinds.
    pub fn directory(&self, options: FileOptions) -> io::Result<Arc<FileDirectory>> {
        let handle = match &self.place {
            Some(place) => place.folder.try_clone(),
            None => Err(self.refusal()),
        };
        let path = self.path();
        FileDirectory::assemble(path.parent().unwrap_or(Path::new("/")), handle, options, false)
    }

    /// The place of a file that can be replaced or made.
    pub(super) fn into_place(self) -> io::Result<ResolvedName> {
        let refusal = self.refusal();
        self.place.ok_or(refusal)
    }

    fn refusal(&self) -> io::Error {
        let found = match self.kind {
            OutputKind::Absent | OutputKind::Regular => FileKind::Regular,
            OutputKind::Fifo => FileKind::Fifo,
            OutputKind::Folder => FileKind::Folder,
            OutputKind::Socket => FileKind::Socket,
            OutputKind::Device => FileKind::CharDevice,
        };
        let found = self
            .existing
            .as_ref()
            .and_then(|file| file.metadata().ok())
            .map_or(found, |m| FileKind::of_type(m.file_type()));
        let refusal = FileRefusal::Kind { found, expected: FileKind::Regular };
        io::Error::new(io::ErrorKind::InvalidInput, refusal)
    }
}

/// One attempt; `None` when the name changed its meaning between two steps.
fn look_once(path: &Path) -> io::Result<Option<ResolvedOutput>> {
    let given = path.to_owned();
    let mut how = OpenOptions::new();
    let existing = match how.read(true).custom_flags(OFlags::PATH.bits().cast_signed()).open(path) {
        Ok(existing) => existing,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return match walk(path)? {
                Walked::Absent(place) => {
                    devices::check_folder(&place.folder)?;
                    let (place, existing) = (Some(place.readable()?), None);
                    Ok(Some(ResolvedOutput { given, kind: OutputKind::Absent, existing, place }))
                }
                Walked::Found(..) => Ok(None),
                // A path that ends in a slash, or a link to a process's file that is gone.
                Walked::Folder | Walked::OfProcess => Err(e),
            };
        }
        // The walk may know more: the link, and its user.
        Err(e) => {
            return Err(walk(path)
                .err()
                .filter(|e| FileRefusal::of_error(e).is_some())
                .unwrap_or(e));
        }
    };
    let found = existing.metadata()?;
    let kind = match FileKind::of_type(found.file_type()) {
        FileKind::Regular => OutputKind::Regular,
        FileKind::Fifo => OutputKind::Fifo,
        FileKind::CharDevice | FileKind::BlockDevice => OutputKind::Device,
        FileKind::Folder => OutputKind::Folder,
        FileKind::Socket | FileKind::Symlink | FileKind::Unknown => OutputKind::Socket,
    };
    let place = match walk(path)? {
        Walked::Found(place, last) => {
            if identity(&last.metadata()?) != identity(&found) {
                return Ok(None);
            }
            if matches!(kind, OutputKind::Regular | OutputKind::Fifo) {
                guard(&place.folder.metadata()?, &found)?;
            }
            Some(place)
        }
        Walked::OfProcess if kind == OutputKind::Regular => Some(place_of(&existing, &found)?),
        Walked::OfProcess | Walked::Folder => None,
        Walked::Absent(_) => return Ok(None),
    };
    let place =
        place.filter(|_| kind == OutputKind::Regular).map(ResolvedName::readable).transpose()?;
    if let Some(place) = &place {
        // It is going to be replaced by a new one.
        devices::check_folder(&place.folder)?;
    }
    Ok(Some(ResolvedOutput { given, kind, existing: Some(existing), place }))
}

/// Where the links of a path lead.
enum Walked {
    /// To a file of any kind but a link: its place, and a handle of it.
    Found(ResolvedName, File),
    /// To a name that nothing bears.
    Absent(ResolvedName),
    /// To a folder, named in a way that has no last name: `/`, `..`, or with a slash at the end.
    Folder,
    /// Through /proc, whose links are the kernel's own: what they say is no path.
    OfProcess,
}

/// Follows the links that `path` is, but not those of its folders, which the kernel follows.
fn walk(path: &Path) -> io::Result<Walked> {
    let folder_only = OFlags::PATH | OFlags::DIRECTORY;
    let mut how = OpenOptions::new();
    let mut from = how.read(true).custom_flags(folder_only.bits().cast_signed()).open(".")?;
    let mut text = path.as_os_str().to_owned();
    for _ in 0..LINKS_MAX {
        let Some((folder, name)) = split(&text) else { return Ok(Walked::Folder) };
        let folder = at::open(&from, &folder, folder_only, 0)?;
        let place = |folder| ResolvedName { folder, name };
        let last = match at::look(&folder, name_of(&text)) {
            Ok(last) => last,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Ok(Walked::Absent(place(folder)));
            }
            Err(e) => return Err(e),
        };
        let found = last.metadata()?;
        if !found.is_symlink() {
            return Ok(Walked::Found(place(folder), last));
        }
        if is_proc(&folder)? {
            return Ok(Walked::OfProcess);
        }
        guard(&folder.metadata()?, &found)?;
        text = at::read_link(&last)?;
        from = folder;
    }
    Err(Errno::LOOP.into())
}

/// The folder of a path and the name in it. The folder ends in `/.`: a link there is one to a folder,
/// not the last of the path, which the kernel treats in another way.
fn split(path: &OsStr) -> Option<(OsString, OsString)> {
    let name = name_of(path);
    if name.is_empty() || name == "." || name == ".." {
        return None;
    }
    let folder = &path.as_bytes()[..path.len() - name.len()];
    Some((OsString::from_vec([folder, b"."].concat()), name.to_owned()))
}

/// The part behind the last slash.
fn name_of(path: &OsStr) -> &OsStr {
    let bytes = path.as_bytes();
    let start = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    OsStr::from_bytes(&bytes[start..])
}

impl ResolvedName {
    /// The same place with a folder in which files can be made, and which can be synced.
    fn readable(self) -> io::Result<ResolvedName> {
        let folder = at::open(&self.folder, OsStr::new("."), OFlags::DIRECTORY, 0)?;
        Ok(ResolvedName { folder, ..self })
    }
}

/// The place of an open file, by what the kernel calls it.
fn place_of(file: &File, found: &Metadata) -> io::Result<ResolvedName> {
    let path = at::real_path(file)?;
    let no_name = || io::Error::new(io::ErrorKind::NotFound, "this open file has no name");
    match walk(&path)? {
        Walked::Found(place, last) if identity(&last.metadata()?) == identity(found) => {
            guard(&place.folder.metadata()?, found)?;
            Ok(place)
        }
        _ => Err(no_name()),
    }
}

/// Refuses what another user may have put into a sticky folder that all users may write. The folder's
/// own user may do there what they like.
pub(super) fn guard(folder: &Metadata, found: &Metadata) -> Result<(), FileRefusal> {
    const STICKY_FOR_ALL: u32 = 0o1002;
    let shared = folder.mode() & STICKY_FOR_ALL == STICKY_FOR_ALL;
    if shared && found.uid() != own::user() && found.uid() != folder.uid() {
        let kind = FileKind::of_type(found.file_type());
        return Err(FileRefusal::Planted { found: kind, owner: found.uid() });
    }
    Ok(())
}

fn is_proc(folder: &File) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(folder)?.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

pub(super) fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}
