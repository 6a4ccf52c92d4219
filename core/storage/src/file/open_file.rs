//! The descriptors of an open file: through the page cache, and past it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::error::FileError;
use super::{Direct, FileOptions, descriptors};

/// Why direct I/O is off for a group of files, once it is; shared by a directory and its files.
#[derive(Debug, Default)]
pub(super) struct DirectRefusal(OnceLock<String>);

impl DirectRefusal {
    pub(super) fn for_options(options: FileOptions) -> Arc<DirectRefusal> {
        let refusal = DirectRefusal::default();
        if options.direct == Direct::Never {
            refusal.set("buffered I/O asked for".to_owned());
        } else if descriptors::are_few() {
            refusal.set("direct I/O: few files can be open (ulimit -n)".to_owned());
        }
        Arc::new(refusal)
    }

    pub(super) fn reason(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    fn set(&self, reason: String) {
        // The first reason stays: later ones are its echo from operations already in flight.
        let _ = self.0.set(reason);
    }
}

/// The descriptors of a file, shared by its handle and the operations in flight.
pub(super) struct OpenFile {
    pub(super) name: String,
    pub(super) writable: bool,
    pub(super) buffered: File,
    pub(super) direct: Option<File>,
    pub(super) refusal: Arc<DirectRefusal>,
    /// A block device, whose size `stat` does not tell.
    pub(super) device: bool,
    pub(super) lost: Lost,
}

/// Whether a sync of this file has failed. The system tells that once, to one of the callers, and takes
/// the pages that it could not write for clean: the next sync succeeds without them. So this one does not.
#[derive(Debug, Default)]
pub(super) struct Lost(AtomicBool);

impl Lost {
    /// A sync has failed.
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// # Errors
    /// When a sync has failed before.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::SeqCst) {
            let why = "an earlier sync failed, and what was written before it may be lost";
            return Err(io::Error::other(why));
        }
        Ok(())
    }
}

impl OpenFile {
    pub(super) fn buffered_fd(&self) -> RawFd {
        self.buffered.as_raw_fd()
    }

    /// The descriptor past the page cache, unless that has been refused.
    pub(super) fn direct_fd(&self) -> Option<RawFd> {
        match &self.direct {
            Some(file) if self.refusal.reason().is_none() => Some(file.as_raw_fd()),
            _ => None,
        }
    }

    pub(super) fn refuse_direct(&self, cause: &io::Error) {
        self.refusal.set(format!("direct I/O: {}: {cause}", self.name));
    }

    /// Makes the file at least `size` long.
    pub(super) fn grow(&self, size: u64) -> io::Result<()> {
        if self.size()? < size { self.set_size(size) } else { Ok(()) }
    }

    pub(super) fn set_size(&self, size: u64) -> io::Result<()> {
        let result = if self.writable {
            self.buffered.set_len(size)
        } else {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "opened for reading only"))
        };
        result.map_err(|e| FileError::wrap(&self.name, format!("setting the size to {size}"), e))
    }

    pub(super) fn size(&self) -> io::Result<u64> {
        if self.device {
            // Nothing uses the position of the descriptor, so it may be moved.
            io::Seek::seek(&mut &self.buffered, io::SeekFrom::End(0))
        } else {
            Ok(self.buffered.metadata()?.len())
        }
    }
}
