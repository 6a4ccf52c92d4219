//! The errors of a volume.
//!
//! The texts name the member or the volume, the place and the numbers. They do not name flags: a
//! program that has flags matches on the variant and adds the advice.

use std::io;

/// The errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A member failed; the text names it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A member can't read some of its bytes; the text names it. Nothing else has changed.
    #[error("{0}")]
    Unreadable(#[source] io::Error),
    /// Bytes on a member are not those that were written there.
    #[error("{volume}: {what} {number} is damaged: {detail}")]
    Damaged {
        /// The volume.
        volume: String,
        /// The kind of block.
        what: &'static str,
        /// Its number.
        number: u64,
        /// The evidence.
        detail: String,
    },
    /// The content of a page of the volume was damaged before it was moved, or its map was. Writing the page makes
    /// it good again.
    #[error("{volume}: page {page} (byte {}) was lost to damage; write it again", page * 4096)]
    Lost {
        /// The volume.
        volume: String,
        /// Number of the page.
        page: u64,
    },
    /// A member is not the one that the volume expects in this place.
    #[error("{member}: {detail}")]
    Member {
        /// The member's name.
        member: String,
        /// Its real place, and the expected one.
        detail: String,
    },
    /// Members, or the superblock, are older than others: a copy that was put back, or a disk lost writes.
    #[error("{member}: members are of different ages: {detail}")]
    Old {
        /// The member that is older, as far as that is known.
        member: String,
        /// The evidence.
        detail: String,
    },
    /// The settings can't be used together, or with these members.
    #[error("{0}")]
    Settings(String),
    /// No page is free on the data members.
    #[error(
        "{volume}: the data members are full: no page is free; trim or overwrite data, or make a larger volume"
    )]
    Full {
        /// The volume.
        volume: String,
    },
    /// An earlier write failed, so that nothing more is written.
    #[error("{volume}: writes are refused since an earlier one failed: {first}")]
    Refused {
        /// The volume.
        volume: String,
        /// The first failure.
        first: String,
    },
    /// A request that volumes of this kind can't serve, or a volume that this program can't open.
    #[error("{volume}: {detail}")]
    Unsupported {
        /// The volume.
        volume: String,
        /// Which request, and why.
        detail: String,
    },
    /// A request is beyond the end, or not possible on a volume.
    #[error("{volume}: {detail}")]
    Request {
        /// The volume.
        volume: String,
        /// Which request, and why.
        detail: String,
    },
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whether it says that stored bytes are damaged or can't be read, and no more than these bytes are concerned.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Damaged { .. } | Error::Lost { .. } | Error::Unreadable(_))
    }

    /// The error of a read that failed.
    pub(crate) fn of_read(error: io::Error) -> Error {
        // Missing memory says nothing about the member.
        if error.kind() == io::ErrorKind::OutOfMemory {
            return Error::Io(error);
        }
        Error::Unreadable(error)
    }

    /// The kind that an [`io::Error`] of it has.
    fn kind(&self) -> io::ErrorKind {
        match self {
            Error::Io(error) | Error::Unreadable(error) => error.kind(),
            Error::Damaged { .. }
            | Error::Lost { .. }
            | Error::Member { .. }
            | Error::Old { .. } => io::ErrorKind::InvalidData,
            Error::Settings(_) | Error::Request { .. } => io::ErrorKind::InvalidInput,
            Error::Full { .. } => io::ErrorKind::StorageFull,
            Error::Unsupported { .. } => io::ErrorKind::Unsupported,
            Error::Refused { .. } => io::ErrorKind::Other,
        }
    }

    /// The same error as one of a storage.
    #[must_use]
    pub fn to_io(&self) -> io::Error {
        io::Error::new(self.kind(), self.to_string())
    }
}
