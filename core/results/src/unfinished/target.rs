//! The name of a result, resolved once.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use merganser_storage::file::{self, OutputKind, own};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::ResultAttributes;
use crate::ResultsError;
use crate::error::{SpecialKind, TargetError};

/// The longest name that Linux file systems take, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// A file that a result is to replace.
#[derive(Debug)]
pub struct Replaced {
    /// Its metadata.
    pub found: Metadata,
    /// The attributes that the result inherits.
    pub attributes: ResultAttributes,
}

/// The place of a result: a name in a folder. Symbolic links are followed when it is made, so that
/// a later change of a link or of the working directory does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    shown: PathBuf,
    folder: PathBuf,
    name: OsString,
}

impl Target {
    /// The place that `path` means, whether something is there or not.
    ///
    /// # Errors
    /// When its folder is missing or a link can't be followed.
    pub fn new(path: &Path) -> Result<Self, ResultsError> {
        let on_path = ResultsError::on(path);
        let resolved = file::resolve_output(path).map_err(ResultsError::Named)?;
        let place = match resolved.kind() {
            OutputKind::Absent | OutputKind::Regular => resolved.path(),
            _ => path.to_owned(),
        };
        let place = std::path::absolute(place).map_err(on_path)?;
        let no_name = || TargetError::NoName(path.to_owned());
        let name = place.file_name().ok_or_else(no_name)?.to_owned();
        let folder = place.parent().unwrap_or(Path::new("/"));
        let folder = fs::canonicalize(folder).map_err(on_path)?;
        Ok(Target { shown: path.to_owned(), folder, name })
    }

    /// As it was typed, for messages.
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// The folder that it is in, without links.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name there.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// The whole path, without links.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// The file that has the name now.
    ///
    /// # Errors
    /// When the system can't tell.
    pub fn found(&self) -> Result<Option<Metadata>, ResultsError> {
        super::find(&self.path()).map_err(ResultsError::on(&self.shown))
    }

    /// Checks before any work that a file can get this name at the end: the name is short enough
    /// for the names that are derived from it, and it is free, or belongs to a regular file that this
    /// user may replace. Returns the file that it replaces.
    ///
    /// # Errors
    /// A [`TargetError`] that says which of it is wrong; the system's own.
    pub fn check_file(&self) -> Result<Option<Replaced>, ResultsError> {
        self.check_name()?;
        let shown = || self.shown.clone();
        let Some(found) = self.found()? else { return Ok(None) };
        let kind = found.file_type();
        if kind.is_dir() {
            return Err(TargetError::Directory(shown()).into());
        }
        if !kind.is_file() {
            let kind = match () {
                () if kind.is_fifo() => SpecialKind::Fifo,
                () if kind.is_socket() => SpecialKind::Socket,
                () if kind.is_symlink() => SpecialKind::Link,
                () => SpecialKind::Device,
            };
            return Err(TargetError::Special { path: shown(), kind }.into());
        }
        if !may_remove(&self.folder, found.uid())? {
            return Err(TargetError::OtherOwner(shown()).into());
        }
        let resolved = file::resolve_output(self.path()).map_err(ResultsError::Named)?;
        let attributes = resolved.attributes().map_err(ResultsError::on(&self.shown))?;
        Ok(attributes.map(|old| Replaced { found, attributes: old.into() }))
    }

    /// Checks that the folder of unfinished work can have its name.
    ///
    /// # Errors
    /// When the name is too long.
    pub fn check_name(&self) -> Result<(), ResultsError> {
        let over_bytes = super::work_name(&self.name).len().saturating_sub(NAME_BYTES_MAX);
        if over_bytes == 0 {
            return Ok(());
        }
        Err(TargetError::LongName { path: self.shown.clone(), over_bytes }.into())
    }
}

/// Whether this process may remove a file of `owner` from `folder`.
///
/// # Errors
/// When the system does not say.
pub fn may_remove(folder: &Path, owner: u32) -> Result<bool, ResultsError> {
    let sticky = fs::metadata(folder).map_err(ResultsError::on(folder))?;
    let me = own::user();
    if sticky.mode() & libc::S_ISVTX != 0 && me != 0 && me != owner && me != sticky.uid() {
        return Ok(false);
    }
    let access = Access::WRITE_OK | Access::EXEC_OK;
    Ok(accessat(CWD, folder, access, AtFlags::EACCESS).is_ok())
}
