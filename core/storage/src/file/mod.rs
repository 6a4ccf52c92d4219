//! Real files: io_uring with O_DIRECT, or threads and the page cache where the system takes
//! neither.
//!
//! A [`FileStorage`] holds its file open twice, once past the page cache and once through it. Each
//! operation is cut into pieces: what is page-aligned in the file and in memory goes direct, the
//! rest (usually the odd tail of a file) goes buffered; the kernel keeps the two coherent. Where
//! direct I/O is refused, on opening or on the first transfer, the file and its directory fall back
//! to buffered I/O and [`Mode`] says why.
//!
//! ```text
//!  submit ──► Flight ──► engine ──► system call ──► Flight::took ──► Completions::post
//!               ▲          ring.rs or threads.rs         │
//!               └──────────── a short transfer, EINTR ◄──┘
//! ```
//!
//! The engine is shared by all files of the process that ask for the same kind, and its threads end
//! with the last of them, after the last operation.
//!
//! ```
//! use merganser_storage::file::{FileDirectory, FileOptions, UnpublishedFile};
//! use merganser_storage::{Directory, Storage, StorageExt};
//!
//! # let place = tempfile::tempdir()?;
//! # let path = place.path();
//! let directory = FileDirectory::open(path)?;
//! let run = directory.create_unnamed()?; // gone with its last handle
//! run.write_at(0, b"merganser")?;
//!
//! let output = UnpublishedFile::create(path.join("sorted"), FileOptions::default())?;
//! output.storage().write_at(0, &run.read_vec(3, 6)?)?;
//! assert!(directory.list()?.is_empty()); // the file has no name before
//! output.publish()?;
//! assert_eq!(directory.open("sorted", false)?.size(), 6);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Two rules for callers that move much data. Reserve the space first (`Allocate`): direct writes that
//! make a file longer go one at a time, and scatter it. Take the buffer that came back last: a few
//! buffers that stay in the caches are filled faster than many that do not (3 GiB read in pieces of
//! 1 MiB, 8 in flight: 2.5 GB/s in turns with 8 buffers, 1.9 GB/s in turns with 512).
//!
//! Not every file system can do everything: [`Operation::Discard`](crate::Operation::Discard) is an
//! error of kind `Unsupported` where holes cannot be punched; `Allocate` only sets the size where space
//! cannot be reserved.
//!
//! After a failed sync, all later syncs of the same handle fail: the system forgets what it could not write.

mod at;
mod attributes;
pub mod descriptors;
mod devices;
mod directory;
mod error;
mod flight;
mod hidden;
mod kind;
mod lazy;
mod open_file;
mod output;
pub mod own;
mod rename;
mod resolve;
mod ring;
mod storage;
mod threads;
mod wall;

use std::fmt;
use std::io;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

pub use attributes::{Attributes, new_file_mode, publish_file, publish_folder};
pub use directory::FileDirectory;
pub use error::FileError;
pub use hidden::{unpublished_name_of, unpublished_names};
pub use kind::FileKind;
pub use lazy::LazyDirectory;
pub use output::UnpublishedFile;
pub use rename::rename_to_free;
pub use resolve::{OutputKind, ResolvedOutput, check_new, resolve_output};
pub use storage::FileStorage;

use flight::Flight;
use ring::Ring;
use threads::ThreadPool;

/// How to reach files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOptions {
    /// Whether to go past the page cache.
    pub direct: Direct,
    /// The engine that makes the system calls.
    pub engine: EngineChoice,
    /// Most requests in flight at once, at least 1; further ones queue. A ring takes up to 32,767,
    /// and there are threads instead where more is asked for.
    pub queue_depth: u32,
}

impl Default for FileOptions {
    /// Direct I/O and io_uring where there are, 64 requests in flight.
    fn default() -> Self {
        FileOptions { direct: Direct::Auto, engine: EngineChoice::Auto, queue_depth: 64 }
    }
}

/// Whether to go past the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    /// Wherever the file system takes it.
    Auto,
    /// Never.
    Never,
}

/// Which engine is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineChoice {
    /// io_uring where the kernel has it and lets us, else threads.
    Auto,
    /// Threads.
    Threads,
}

/// Whether the kernel has an io_uring that can do all that is needed, and lets this process have it.
///
/// # Errors
/// Why not: [`EngineChoice::Auto`] means threads then.
pub fn check_ring() -> io::Result<()> {
    ring::check()
}

/// Which engine is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// io_uring.
    Ring,
    /// Threads that make blocking calls.
    Threads,
}

/// How files are reached in fact, for a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mode {
    /// Aligned transfers go past the page cache.
    pub direct: bool,
    /// The engine that makes the system calls.
    pub engine: Engine,
    /// Why it is less than direct I/O through io_uring; `None` when it is not.
    pub reason: Option<String>,
}

impl fmt::Display for Mode {
    /// For example `direct I/O, io_uring` or `buffered I/O, io_uring (direct I/O: ...)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cache = if self.direct { "direct" } else { "buffered" };
        let engine = match self.engine {
            Engine::Ring => "io_uring",
            Engine::Threads => "threads",
        };
        write!(f, "{cache} I/O, {engine}")?;
        match &self.reason {
            Some(reason) => write!(f, " ({reason})"),
            None => Ok(()),
        }
    }
}

/// A started engine. Dropping the last handle waits for what is in flight and ends the threads.
pub(crate) struct Engines {
    choice: EngineChoice,
    queue_depth: u32,
    running: RunningEngine,
    /// Why it is not the ring, if it is not.
    refusal: Option<String>,
}

enum RunningEngine {
    Ring(Ring),
    Threads(ThreadPool),
}

static SHARED: Mutex<Vec<Weak<Engines>>> = Mutex::new(Vec::new());

impl Engines {
    /// The running engine of the kind that `options` ask for, which is started if none runs.
    fn shared(options: FileOptions) -> io::Result<Arc<Engines>> {
        let queue_depth = options.queue_depth.max(1);
        let mut all = SHARED.lock();
        all.retain(|engine| engine.strong_count() > 0);
        let found = all
            .iter()
            .filter_map(Weak::upgrade)
            .find(|engine| engine.choice == options.engine && engine.queue_depth == queue_depth);
        if let Some(engine) = found {
            return Ok(engine);
        }
        let engine = Arc::new(Engines::start(options.engine, queue_depth)?);
        all.push(Arc::downgrade(&engine));
        Ok(engine)
    }

    fn start(choice: EngineChoice, queue_depth: u32) -> io::Result<Engines> {
        let refusal = match choice {
            EngineChoice::Auto if descriptors::are_few() => {
                "io_uring: few files can be open (ulimit -n)".to_owned()
            }
            EngineChoice::Auto => match Ring::start(queue_depth) {
                Ok(ring) => {
                    let running = RunningEngine::Ring(ring);
                    return Ok(Engines { choice, queue_depth, running, refusal: None });
                }
                Err(e) => format!("io_uring: {e}"),
            },
            EngineChoice::Threads => "threads asked for".to_owned(),
        };
        let running = RunningEngine::Threads(ThreadPool::start(queue_depth)?);
        Ok(Engines { choice, queue_depth, running, refusal: Some(refusal) })
    }

    fn submit(&self, flight: Flight) {
        match &self.running {
            RunningEngine::Ring(ring) => ring.submit(flight),
            RunningEngine::Threads(pool) => pool.submit(flight),
        }
    }

    fn mode(&self, direct: bool, direct_refusal: Option<&str>) -> Mode {
        let engine = match self.running {
            RunningEngine::Ring(_) => Engine::Ring,
            RunningEngine::Threads(_) => Engine::Threads,
        };
        let parts: Vec<&str> =
            [direct_refusal, self.refusal.as_deref()].into_iter().flatten().collect();
        let reason = (!parts.is_empty()).then(|| parts.join("; "));
        Mode { direct, engine, reason }
    }
}
