//! Owner and permissions of a file that replaces another one.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

use super::at;

/// The kernel's name for the list of users and groups that may do more or less than the mode says.
const ACL: &std::ffi::CStr = c"system.posix_acl_access";
/// Larger than any list that a file system takes.
const ACL_BYTES_MAX: usize = 64 << 10;

/// Owner, group and permission bits of a file. The file that replaces it gets them by
/// [`Attributes::give_to`].
///
/// Set-user-ID, set-group-ID and sticky bits are left out: they were given to other bytes. So are
/// lists of further users (ACLs) and extended attributes; the permissions of a file that has an ACL
/// are narrowed to those of its group's own entry, so that the loss gives no user more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    uid: u32,
    gid: u32,
    /// The nine permission bits.
    mode: u32,
}

impl Attributes {
    /// Permission bits, a user and a group.
    #[must_use]
    pub fn new(mode: u32, uid: u32, gid: u32) -> Attributes {
        Attributes { uid, gid, mode: mode & 0o777 }
    }

    /// The permission bits.
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// User and group.
    #[must_use]
    pub fn owner(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Those of an open file, which may have been opened with `O_PATH`.
    ///
    /// # Errors
    /// The system's own.
    pub fn of_file(file: &File) -> io::Result<Attributes> {
        let found = file.metadata()?;
        let acl = at::attribute(file, ACL, ACL_BYTES_MAX)?;
        let group = acl.map_or(0o7, |acl| group_entry(&acl));
        Ok(Attributes { mode: found.mode() & (0o707 | group << 3), ..Attributes::from(&found) })
    }

    /// Gives `file` this owner and these permissions, as far as this user may: an ordinary user can't
    /// give files away. Where the group stays another one, it gets no more than all users have.
    ///
    /// # Errors
    /// When the permissions can't be set.
    pub fn give_to(&self, file: &File) -> io::Result<()> {
        let now = file.metadata()?;
        let set_mode = |mode| file.set_permissions(fs::Permissions::from_mode(mode));
        // What the folder hands down to new files would widen what the old one allowed.
        at::remove_attribute(file, ACL)?;
        if (now.uid(), now.gid()) != (self.uid, self.gid) {
            // Neither the old nor the new group may read it in between.
            set_mode(self.mode & 0o700)?;
            if fchown(file, Some(self.uid), Some(self.gid)).is_err() {
                // One of several groups that this user belongs to.
                let _ = fchown(file, None, Some(self.gid));
            }
        }
        let now = file.metadata()?;
        let mut mode = self.mode;
        if now.gid() != self.gid {
            mode &= 0o707 | (mode & 0o007) << 3;
        }
        set_mode(mode)
    }
}

impl From<&Metadata> for Attributes {
    /// Without a look at the file's ACL: [`Attributes::of_file`] is better where the file can be opened.
    fn from(found: &Metadata) -> Attributes {
        Attributes { uid: found.uid(), gid: found.gid(), mode: found.mode() & 0o777 }
    }
}

/// The permissions of the owning group by its own entry of an ACL; none if there is no such entry. The
/// bits for the group in a file's mode are those of the mask then, which counts for all groups and
/// further users together.
fn group_entry(acl: &[u8]) -> u32 {
    const HEAD_BYTES: usize = 4;
    const ENTRY_BYTES: usize = 8;
    const GROUP_OBJ: u16 = 0x04;
    let field = |entry: &[u8], at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
    let entries = acl.get(HEAD_BYTES..).unwrap_or_default().chunks_exact(ENTRY_BYTES);
    let mut found = entries.filter(|entry| field(entry, 0) == GROUP_OBJ);
    found.next().map_or(0, |entry| u32::from(field(entry, 2)) & 0o7)
}

/// Makes a private file (mode 0600) one as every program makes them, by its umask.
///
/// # Errors
/// The system's own.
pub fn publish_file(file: &File) -> io::Result<()> {
    file.set_permissions(fs::Permissions::from_mode(new_file_mode()))
}

/// Makes a private folder (mode 0700) one as every program makes them, by its umask.
///
/// # Errors
/// The system's own.
pub fn publish_folder(folder: &File) -> io::Result<()> {
    folder.set_permissions(fs::Permissions::from_mode(0o777 & !umask()))
}

/// The permission bits that a new ordinary file gets: what the process's mask leaves of 0666.
#[must_use]
pub fn new_file_mode() -> u32 {
    0o666 & !umask()
}

/// The process's umask, which no system call tells without changing it for all threads. Where /proc
/// does not tell it either, the usual one.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok()).unwrap_or(0o022)
}
