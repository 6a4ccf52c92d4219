//! The face of a disk towards the kernel: one folder with one file that can be read and written.
//!
//! ```text
//!   kernel ── read, write, fsync, punch hole ──► Storage::submit, in the kernel's order
//!     ▲                                              │
//!     └──────────── requests, in the thread that the storage answers from ◄──┘
//! ```
//!
//! - The page cache is bypassed, as for a disk behind its own cache: every read and write of a program
//!   is a request to the storage. A program that opens the file with `O_DIRECT` and submits several
//!   requests at once (`libaio`, `io_uring`, a loop device with direct I/O) has them in flight together.
//! - `fsync` is a flush, a punched hole is a discard. The file keeps its size: it can't be truncated or
//!   extended.
//! - A write of a file that was opened with `O_DSYNC` or `O_SYNC`, or with `RWF_DSYNC`, is a write and then a
//!   flush. The kernel leaves this to the server where the page cache is bypassed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use merganser_storage::{Operation, Storage};
use rustix::fs::{FallocateFlags, OFlags};

use super::requests::{DiskShared, KernelReply};
use crate::failures::Failures;
use crate::spare::SpareBuffers;
use crate::{Error, OnError, READ_BYTES_MAX};

/// How long the kernel may believe names and attributes: they never change while mounted.
const FOREVER: Duration = Duration::from_secs(1 << 31);
/// Requests that the kernel may have in flight without a program that waits for each.
const BACKGROUND_MAX: u16 = 1024;
/// The inode number of the file; the folder is 1.
const FILE: INodeNo = INodeNo(2);
/// A write with this bit is durable when it is answered; `O_SYNC` has it, too.
const DURABLE: i32 = OFlags::DSYNC.bits().cast_signed();

/// A folder with one file, which is `storage`.
pub(super) struct FuseDisk {
    name: OsString,
    size: u64,
    /// The file's permissions.
    mode: u16,
    mounted: SystemTime,
    shared: Arc<DiskShared>,
}

impl FuseDisk {
    pub(super) fn new(
        name: OsString,
        storage: Arc<dyn Storage>,
        allow_other: bool,
        on_error: Option<OnError>,
    ) -> Self {
        // The kernel compares them with a program's user.
        let mode = if allow_other { 0o666 } else { 0o600 };
        let failures = Failures::new(on_error);
        let (size, mounted) = (storage.size(), SystemTime::now());
        let shared = Arc::new(DiskShared { storage, spare: SpareBuffers::default(), failures });
        FuseDisk { name, size, mode, mounted, shared }
    }

    /// Takes the first failure, if there was one.
    pub(super) fn first_error(&self) -> Box<dyn Fn() -> Option<Error> + Send + Sync> {
        let shared = Arc::clone(&self.shared);
        Box::new(move || shared.failures.take_first())
    }

    fn attributes(&self, ino: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match ino {
            INodeNo::ROOT => (FileType::Directory, 0o555, 0),
            FILE => (FileType::RegularFile, self.mode, self.size),
            _ => return None,
        };
        let time = self.mounted;
        Some(FileAttr {
            ino,
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            nlink: if kind == FileType::Directory { 2 } else { 1 },
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

impl Filesystem for FuseDisk {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let bytes = READ_BYTES_MAX as u32;
        config.set_max_write(bytes).map_err(|_| io::Error::other("kernel refuses max_write"))?;
        let _ = config.set_max_background(BACKGROUND_MAX);
        // Requests of one program that submits several; without it they would go one by one.
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(|_| io::Error::other("kernel has no asynchronous direct I/O for FUSE"))?;
        // Where the kernel is too old for it, only `mmap` of the file fails.
        let _ = config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE) {
            Some(attr) if parent == INodeNo::ROOT && name == self.name => {
                reply.entry(&FOREVER, &attr, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Some(attr) => reply.attr(&FOREVER, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(ino) {
            None => reply.error(Errno::ENOENT),
            // As for a block device.
            Some(attr) if size.is_some_and(|size| size != attr.size) => {
                reply.error(Errno::EINVAL);
            }
            Some(attr) => reply.attr(&FOREVER, &attr),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if ino == FILE {
            let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
            reply.opened(FileHandle(0), flags);
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        // A program may ask beyond the end, and gets what is before it.
        let rest = self.size.saturating_sub(offset);
        let len = usize::try_from(rest).map_or(size as usize, |rest| rest.min(size as usize));
        match self.shared.spare.take(size as usize) {
            Ok(buffer) => {
                let reply = KernelReply::Read { reply, len };
                self.shared.submit(Operation::Read { offset, buffer }, reply);
            }
            Err(_) => reply.error(Errno::ENOMEM),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let end = offset.checked_add(data.len() as u64);
        if end.is_none_or(|end| end > self.size) {
            return reply.error(Errno::ENOSPC);
        }
        match self.shared.spare.take(data.len()) {
            Ok(mut buffer) => {
                buffer.copy_from_slice(data);
                let durable = flags.0 & DURABLE != 0;
                let reply = if durable {
                    KernelReply::DurableWrite(reply)
                } else {
                    KernelReply::Write(reply)
                };
                self.shared.submit(Operation::Write { offset, buffer }, reply);
            }
            Err(_) => reply.error(Errno::ENOMEM),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Of `close(2)`: nothing is held back, and a disk knows of no files.
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.shared.submit(Operation::Sync, KernelReply::Flush(reply));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if mode.cast_unsigned() != hole.bits() {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let len = length.min(self.size.saturating_sub(offset));
        if len == 0 {
            return reply.ok();
        }
        self.shared.submit(Operation::Discard { offset, len }, KernelReply::Discard(reply));
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if ino != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let (folder, file) = (FileType::Directory, FileType::RegularFile);
        let all = [
            (INodeNo::ROOT, folder, OsStr::new(".")),
            (INodeNo::ROOT, folder, OsStr::new("..")),
            (FILE, file, &self.name),
        ];
        for ((ino, kind, name), next) in
            all.into_iter().zip(1..).skip(usize::try_from(offset).unwrap_or(usize::MAX))
        {
            if reply.add(ino, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        const UNIT: u32 = 4096;
        reply.statfs(self.size.div_ceil(u64::from(UNIT)), 0, 0, 1, 0, UNIT, 255, UNIT);
    }
}
