//! A mount: how it is asked for, how long it lives, how it ends.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::SystemTime;
use std::{fmt, fs, io};

use merganser_storage::Storage;
use merganser_storage::thread::spawn;
use parking_lot::{Condvar, Mutex};

use super::disk::FuseDisk;
use super::filesystem::{ExportFolder, FileEntry};
use super::mountpoint::{self, Unmounted};
use crate::failures::Failures;
use crate::reads::{ExportedStorage, Reads};
use crate::{Error, OnError, READ_BYTES_MAX};

/// One storage to be shown as a file.
pub struct ExportedFile {
    /// What to call it in the mounted folder.
    pub name: OsString,
    /// Its bytes. The size is asked once, when mounting; size and bytes must not change.
    pub storage: Arc<dyn Storage>,
    /// Shown as the file's times.
    pub modified: SystemTime,
}

/// What to mount where; [`MountOptions::new`] gives the usual choices.
pub struct MountOptions {
    /// An empty folder.
    pub mountpoint: PathBuf,
    /// The files, each with a name of its own.
    pub files: Vec<ExportedFile>,
    /// Let every user read, not only the one who mounts. For a user who is not root this needs
    /// `user_allow_other` in `/etc/fuse.conf`.
    pub allow_other: bool,
    /// Bypass the page cache: every read goes to the storage, nothing is read ahead, and no
    /// memory of the system fills with content. For one pass over more than the memory holds by a
    /// program that reads in large pieces.
    pub direct_io: bool,
    /// How many reads run at once (at least one does). Each worker holds [`READ_BYTES_MAX`].
    pub threads: usize,
    /// Told about every failed read, from the worker it happened in.
    pub on_error: Option<OnError>,
}

impl MountOptions {
    /// `files` on `mountpoint`, for the mounting user alone, through the page cache, two reads at
    /// once, failures told only by [`Mount::run`].
    pub fn new(mountpoint: impl Into<PathBuf>, files: Vec<ExportedFile>) -> Self {
        MountOptions {
            mountpoint: mountpoint.into(),
            files,
            allow_other: false,
            direct_io: false,
            threads: 2,
            on_error: None,
        }
    }
}

/// A disk to be mounted as a file that can be written.
pub struct DiskOptions {
    /// An empty folder.
    pub mountpoint: PathBuf,
    /// What to call the file in the mounted folder.
    pub name: OsString,
    /// Its bytes; the size is asked once and must not change. It gets each request when the kernel
    /// sends it, and may answer from any thread, in any order.
    pub storage: Arc<dyn Storage>,
    /// Let every user use it, not only the one who mounts.
    pub allow_other: bool,
    /// Told about every failed request, from the thread that it failed in, which must not be kept.
    pub on_error: Option<OnError>,
}

/// A mounted folder, served by threads of this process until it is unmounted: by
/// [`Unmounter::unmount`], from outside (`umount`, `fusermount3 -u`), or by dropping this.
pub struct Mount {
    at: Arc<At>,
    /// Its files, below the mount point.
    files: Vec<PathBuf>,
    /// The first request that failed, once.
    first_error: Box<dyn Fn() -> Option<Error> + Send + Sync>,
    threads: Vec<JoinHandle<()>>,
}

/// The work of a thread of a mount besides reading requests.
type MountThread = Box<dyn FnOnce() + Send>;

/// The options that are the same for every mount.
struct ServedFilesystem<F> {
    filesystem: F,
    mountpoint: PathBuf,
    names: Vec<OsString>,
    read_only: bool,
    allow_other: bool,
    workers: Vec<MountThread>,
    first_error: Box<dyn Fn() -> Option<Error> + Send + Sync>,
}

/// Unmounts from another thread, for example the one that waits for signals. It allocates and
/// locks, so it is nothing for a signal handler itself.
#[derive(Clone)]
pub struct Unmounter {
    at: Arc<At>,
}

/// What a mount and its unmounters share.
struct At {
    path: PathBuf,
    device: Option<String>,
    phase: Mutex<MountPhase>,
    changed: Condvar,
    failed: Mutex<Option<io::Error>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MountPhase {
    Serving,
    /// Unmounted, but some program still holds a file open and the threads serve it on.
    Detached,
    /// The connection to the kernel is closed, the threads end.
    Ended,
}

impl Mount {
    /// Mounts and begins to serve.
    ///
    /// # Errors
    /// A bad mount point or file name, or a system that does not let this process mount.
    pub fn new(options: MountOptions) -> Result<Mount, Error> {
        let names = options.files.iter().map(|file| &file.name);
        check_names(names)?;
        let names = options.files.iter().map(|file| file.name.clone()).collect();
        let (entries, contents) = options.files.into_iter().map(split).unzip();
        let failures = Arc::new(Failures::new(options.on_error));
        let reads = Arc::new(Reads::new(contents, Arc::clone(&failures)));
        let worker = |_| {
            let reads = Arc::clone(&reads);
            Box::new(move || reads.work()) as MountThread
        };
        Self::serve(ServedFilesystem {
            filesystem: ExportFolder::new(entries, options.direct_io, Arc::clone(&reads)),
            mountpoint: options.mountpoint,
            names,
            read_only: true,
            allow_other: options.allow_other,
            workers: (0..options.threads.max(1)).map(worker).collect(),
            first_error: Box::new(move || failures.take_first()),
        })
    }

    /// Mounts a disk: one file that can be read and written, and keeps its size. The page cache is
    /// bypassed, so the storage gets the requests of programs as they make them, up to
    /// [`READ_BYTES_MAX`] each.
    ///
    /// # Errors
    /// As [`Mount::new`].
    pub fn disk(options: DiskOptions) -> Result<Mount, Error> {
        check_names([&options.name])?;
        let DiskOptions { mountpoint, name, storage, allow_other, on_error } = options;
        let names = vec![name.clone()];
        let disk = FuseDisk::new(name, storage, allow_other, on_error);
        let first_error = disk.first_error();
        Self::serve(ServedFilesystem {
            filesystem: disk,
            mountpoint,
            names,
            read_only: false,
            allow_other,
            workers: Vec::new(),
            first_error,
        })
    }

    fn serve<F: fuser::Filesystem + Send + 'static>(
        served: ServedFilesystem<F>,
    ) -> Result<Mount, Error> {
        let ServedFilesystem {
            filesystem,
            mountpoint,
            names,
            read_only,
            allow_other,
            workers,
            first_error,
        } = served;
        // If two processes mounted here at once, one mount would be below the other, and not end.
        let _lock = mountpoint::lock(&mountpoint);
        let path = mountpoint::check(&mountpoint)?;
        mountpoint::check_device()?;
        let config = fuse_config(read_only, allow_other);
        let session = fuser::Session::new(filesystem, &path, &config)
            .map_err(|e| mountpoint::explain_mount(&e, &mountpoint, allow_other))?;

        let device = mountpoint::device_at(&path);
        if let Some(device) = &device {
            mountpoint::raise_read_ahead(device, READ_BYTES_MAX);
        }
        let at = Arc::new(At {
            path,
            device,
            phase: Mutex::new(MountPhase::Serving),
            changed: Condvar::new(),
            failed: Mutex::new(None),
        });
        let files = names.iter().map(|name| mountpoint.join(name)).collect();
        let mut mount = Mount { at, files, first_error, threads: Vec::new() };
        mount.start(session, workers)?;
        Ok(mount)
    }

    /// Its files, each with the mount point as it was given in front.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Waits until the kernel has begun to use the mount, and says whether a program can read it now. Once it is mounted,
    /// requests wait for the kernel's first one; if that fails, so do all others.
    #[must_use]
    pub fn answers(&self) -> bool {
        let path = &self.at.path;
        // The folder below has another device, before the mount and after it.
        let is_mounted = || mountpoint::device_at(path) == self.at.device;
        self.at.phase() == MountPhase::Serving && fs::metadata(path).is_ok() && is_mounted()
    }

    /// A handle that can unmount from any thread.
    #[must_use]
    pub fn unmounter(&self) -> Unmounter {
        Unmounter { at: Arc::clone(&self.at) }
    }

    /// Waits for the unmount.
    ///
    /// # Errors
    /// The first read that failed while it was mounted, or a broken connection to the kernel.
    pub fn run(mut self) -> Result<(), Error> {
        if self.at.wait() == MountPhase::Ended {
            self.join();
        }
        if let Some(source) = self.at.failed.lock().take() {
            return Err(Error::Serve { path: self.at.path.clone(), source });
        }
        (self.first_error)().map_or(Ok(()), Err)
    }

    fn start<F: fuser::Filesystem + Send + 'static>(
        &mut self,
        session: fuser::Session<F>,
        workers: Vec<MountThread>,
    ) -> Result<(), Error> {
        let at = Arc::clone(&self.at);
        let serve = move || {
            // One thread reads the requests, so that they keep the kernel's order.
            if let Err(e) = session.run() {
                *at.failed.lock() = Some(e);
            }
            at.enter(MountPhase::Ended);
        };
        let failed = |source| Error::Serve { path: self.at.path.clone(), source };
        // Dropping the session, as a failed spawn does, unmounts.
        self.threads.push(spawn("export", serve).map_err(failed)?);
        for (worker, work) in workers.into_iter().enumerate() {
            let worker = spawn(format!("export-{worker}"), work).map_err(failed)?;
            self.threads.push(worker);
        }
        Ok(())
    }

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to tell.
            let _ = thread.join();
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Without threads there is nothing mounted: `run` has ended, or `start` failed.
        if self.threads.is_empty() {
            return;
        }
        // A caller that wants to know why it stayed mounted uses an unmounter.
        if self.unmounter().unmount().is_ok() && self.at.wait() == MountPhase::Ended {
            self.join();
        }
    }
}

impl Unmounter {
    /// Unmounts, and ends the reads that are under way with errors. After this [`Mount::run`]
    /// returns. Unmounting what is no longer mounted is no error.
    ///
    /// # Errors
    /// When the system refuses; the mount is then still served.
    pub fn unmount(&self) -> Result<(), Error> {
        if self.at.phase() != MountPhase::Serving {
            return Ok(());
        }
        match mountpoint::unmount(&self.at.path, self.at.device.as_deref()) {
            // The serving thread sees the connection close, and says so.
            Ok(Unmounted::Ended) => Ok(()),
            Ok(Unmounted::Detached) => {
                self.at.enter(MountPhase::Detached);
                Ok(())
            }
            Err(problem) => Err(Error::Unmount { path: self.at.path.clone(), problem }),
        }
    }
}

impl At {
    fn phase(&self) -> MountPhase {
        *self.phase.lock()
    }

    fn enter(&self, phase: MountPhase) {
        *self.phase.lock() = phase;
        self.changed.notify_all();
    }

    /// Waits for the end of serving.
    fn wait(&self) -> MountPhase {
        let mut phase = self.phase.lock();
        self.changed.wait_while(&mut phase, |phase| *phase == MountPhase::Serving);
        *phase
    }
}

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mount").field("at", &self.at.path).finish_non_exhaustive()
    }
}

impl fmt::Debug for Unmounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unmounter").field("at", &self.at.path).finish_non_exhaustive()
    }
}

fn check_names<'a>(names: impl IntoIterator<Item = &'a OsString>) -> Result<(), Error> {
    let mut seen = HashSet::new();
    for name in names {
        let bytes = name.as_encoded_bytes();
        let problem = if bytes.is_empty() || matches!(bytes, b"." | b"..") {
            "a file needs a name"
        } else if bytes.iter().any(|b| matches!(b, b'/' | 0)) {
            "a name has no '/' and no NUL"
        } else if bytes.len() > 255 {
            "a name has at most 255 bytes"
        } else if !seen.insert(name) {
            "two files would bear it"
        } else {
            continue;
        };
        return Err(Error::Name { name: Path::new(name).display().to_string(), problem });
    }
    Ok(())
}

fn split(file: ExportedFile) -> (FileEntry, ExportedStorage) {
    let ExportedFile { name, storage, modified } = file;
    let content = ExportedStorage::new(storage);
    (FileEntry { name, size: content.size, modified }, content)
}

fn fuse_config(read_only: bool, allow_other: bool) -> fuser::Config {
    use fuser::MountOption::{DefaultPermissions, FSName, NoDev, NoSuid, RO, RW, Subtype};
    let mut config = fuser::Config::default();
    let name = "merganser".to_owned();
    config.mount_options = vec![
        if read_only { RO } else { RW },
        NoDev,
        NoSuid,
        DefaultPermissions,
        FSName(name.clone()),
        Subtype(name),
    ];
    config.acl = if allow_other { fuser::SessionACL::All } else { fuser::SessionACL::Owner };
    config.n_threads = Some(1);
    config
}
