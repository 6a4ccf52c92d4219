//! The face towards the kernel: one read-only folder of regular files.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEntry, ReplyOpen, ReplyStatfs, Request,
};

use crate::READ_BYTES_MAX;
use crate::reads::{ReadReply, Reads};

/// How long the kernel may believe names and attributes: they never change while mounted.
const FOREVER: Duration = Duration::from_secs(1 << 31);

/// Requests that the kernel may have in flight for read-ahead, over all readers.
const BACKGROUND_MAX: u16 = 64;

/// The read size that programs are advised to use. Those that follow it (`cat`, Python) read this much
/// at a time; the kernel's read-ahead does not depend on it.
const BLOCK_BYTES: u32 = 128 << 10;

/// Inode numbers: the folder is 1, file `i` is `FIRST_FILE + i`.
const FIRST_FILE: u64 = 2;

impl ReadReply for ReplyData {
    fn data(self, bytes: &[u8]) {
        ReplyData::data(self, bytes);
    }

    fn failed(self, _: &str) {
        self.error(Errno::EIO);
    }
}

pub(crate) struct FileEntry {
    pub(crate) name: OsString,
    pub(crate) size: u64,
    pub(crate) modified: SystemTime,
}

/// The folder; reads go to `reads`.
pub(crate) struct ExportFolder {
    entries: Vec<(OsString, FileAttr)>,
    folder: FileAttr,
    direct_io: bool,
    reads: Arc<Reads<ReplyData>>,
}

impl ExportFolder {
    pub(crate) fn new(
        entries: Vec<FileEntry>,
        direct_io: bool,
        reads: Arc<Reads<ReplyData>>,
    ) -> Self {
        let newest = entries.iter().map(|e| e.modified).max().unwrap_or(SystemTime::UNIX_EPOCH);
        let folder = attributes(INodeNo::ROOT, FileType::Directory, 0, newest);
        let entries = entries.into_iter().zip(FIRST_FILE..).map(|(entry, ino)| {
            let FileEntry { name, size, modified } = entry;
            (name, attributes(INodeNo(ino), FileType::RegularFile, size, modified))
        });
        ExportFolder { entries: entries.collect(), folder, direct_io, reads }
    }

    fn file(&self, ino: INodeNo) -> Option<(usize, &FileAttr)> {
        let at = usize::try_from(ino.0.checked_sub(FIRST_FILE)?).ok()?;
        Some((at, &self.entries.get(at)?.1))
    }
}

fn attributes(ino: INodeNo, kind: FileType, size: u64, time: SystemTime) -> FileAttr {
    let is_folder = kind == FileType::Directory;
    FileAttr {
        ino,
        size,
        blocks: size.div_ceil(512),
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind,
        perm: if is_folder { 0o555 } else { 0o444 },
        nlink: if is_folder { 2 } else { 1 },
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        rdev: 0,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

impl Filesystem for ExportFolder {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let bytes = READ_BYTES_MAX as u32;
        // Sets the largest request too, reads included; more would only enlarge the workers'
        // buffers.
        config.set_max_write(bytes).map_err(|_| io::Error::other("kernel refuses max_write"))?;
        if let Err(nearest) = config.set_max_readahead(bytes) {
            let _ = config.set_max_readahead(nearest);
        }
        let _ = config.set_max_background(BACKGROUND_MAX);
        if self.direct_io {
            // Where the kernel is too old for it, only `mmap` of a file fails.
            let _ = config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP);
        }
        Ok(())
    }

    fn destroy(&mut self) {
        self.reads.close();
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.entries.iter().find(|(n, _)| parent == INodeNo::ROOT && n == name) {
            Some((_, attr)) => reply.entry(&FOREVER, attr, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.file(ino) {
            Some((_, attr)) => reply.attr(&FOREVER, attr),
            None if ino == INodeNo::ROOT => reply.attr(&FOREVER, &self.folder),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if self.file(ino).is_none() {
            reply.error(Errno::ENOENT);
        } else if flags.acc_mode() != OpenAccMode::O_RDONLY {
            reply.error(Errno::EROFS);
        } else if self.direct_io {
            reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
        } else {
            reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.file(ino) {
            Some((file, _)) => self.reads.read(file, offset, size as usize, reply),
            None => reply.error(Errno::ENOENT),
        }
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
        let own = [OsStr::new("."), OsStr::new("..")].map(|name| (&self.folder, name));
        let all = own.into_iter().chain(self.entries.iter().map(|(name, attr)| (attr, &**name)));
        // The offset given with an entry is where the next call continues.
        for ((attr, name), next) in all.zip(1..).skip(usize::try_from(offset).unwrap_or(usize::MAX))
        {
            if reply.add(attr.ino, next, attr.kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        const UNIT: u32 = 4096;
        let blocks = self.entries.iter().map(|(_, a)| a.size.div_ceil(u64::from(UNIT))).sum();
        reply.statfs(blocks, 0, 0, self.entries.len() as u64, 0, UNIT, 255, UNIT);
    }
}
