//! What bears a name in a folder, in words.

use std::fmt;
use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;

/// The kind of a file, named as messages name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Bytes with offsets.
    Regular,
    /// A directory.
    Folder,
    /// A symbolic link itself, not what it names.
    Symlink,
    /// A named or unnamed pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// Anything that this program does not know.
    Unknown,
}

impl FileKind {
    /// The kind that `stat` reported.
    #[must_use]
    pub fn of_type(found: FileType) -> FileKind {
        match found {
            kind if kind.is_file() => FileKind::Regular,
            kind if kind.is_dir() => FileKind::Folder,
            kind if kind.is_symlink() => FileKind::Symlink,
            kind if kind.is_fifo() => FileKind::Fifo,
            kind if kind.is_socket() => FileKind::Socket,
            kind if kind.is_char_device() => FileKind::CharDevice,
            kind if kind.is_block_device() => FileKind::BlockDevice,
            _ => FileKind::Unknown,
        }
    }
}

impl fmt::Display for FileKind {
    /// With its article: `a FIFO`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Regular => "a regular file",
            FileKind::Folder => "a directory",
            FileKind::Symlink => "a symbolic link",
            FileKind::Fifo => "a FIFO",
            FileKind::Socket => "a socket",
            FileKind::CharDevice => "a character device",
            FileKind::BlockDevice => "a block device",
            FileKind::Unknown => "a file of an unknown kind",
        })
    }
}
