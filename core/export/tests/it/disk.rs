//! A real mount of a disk that can be written. Where `/dev/fuse` cannot be opened, each test says that
//! it was skipped.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use merganser_export::Error;
use merganser_export::fuse::{DiskOptions, Mount};
use merganser_storage::memory::MemoryStorage;
use merganser_storage::{
    Buffer, Clock, Completion, Completions, Operation, RealClock, Storage, StorageExt,
};
use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate};

const SIZE: u64 = 8 << 20;

/// Memory that notes its requests, and fails beyond a byte.
struct Noted {
    inner: Arc<MemoryStorage>,
    bad_from: u64,
    full: AtomicBool,
    bad_syncs: AtomicBool,
    seen: Mutex<Vec<(&'static str, u64, u64)>>,
}

impl Noted {
    fn new(bad_from: u64) -> Arc<Self> {
        let inner = MemoryStorage::new("memory");
        inner.run(Operation::SetSize { size: SIZE }).expect("sized");
        let (full, bad_syncs, seen) = Default::default();
        Arc::new(Noted { inner, bad_from, full, bad_syncs, seen })
    }

    fn fail_syncs(&self) {
        self.bad_syncs.store(true, Ordering::Relaxed);
    }

    fn take(&self) -> Vec<(&'static str, u64, u64)> {
        std::mem::take(&mut self.seen.lock())
    }
}

impl Storage for Noted {
    fn name(&self) -> &str {
        "noted"
    }

    fn size(&self) -> u64 {
        SIZE
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(RealClock::new())
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let noted = match &operation {
            Operation::Read { offset, buffer } => ("read", *offset, buffer.len() as u64),
            Operation::Write { offset, buffer } => ("write", *offset, buffer.len() as u64),
            Operation::Discard { offset, len } => ("discard", *offset, *len),
            Operation::Sync => ("sync", 0, 0),
            Operation::Allocate { .. } | Operation::SetSize { .. } => panic!("{operation:?}"),
        };
        self.seen.lock().push(noted);
        if noted.0 == "write" && self.full.load(Ordering::Relaxed) {
            let result = Err(io::ErrorKind::StorageFull.into());
            return completions.post(Completion { token, buffer: None, result });
        }
        let bad_sync = noted.0 == "sync" && self.bad_syncs.load(Ordering::Relaxed);
        if bad_sync || noted.1 + noted.2 > self.bad_from {
            let result = Err(io::Error::other("noted: damaged here"));
            return completions.post(Completion { token, buffer: None, result });
        }
        self.inner.submit(token, operation, completions);
    }
}

fn skipped() -> bool {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    if let Err(e) = &opened {
        eprintln!("skipped: /dev/fuse: {e}");
    }
    opened.is_err()
}

fn mounted(storage: Arc<Noted>, dir: &Path) -> (Mount, PathBuf) {
    mounted_for(storage, dir, false)
}

fn mounted_for(storage: Arc<Noted>, dir: &Path, allow_other: bool) -> (Mount, PathBuf) {
    let mountpoint = dir.join("m");
    fs::create_dir(&mountpoint).expect("made");
    let name = "disk".into();
    let options =
        DiskOptions { mountpoint: mountpoint.clone(), name, storage, allow_other, on_error: None };
    (Mount::disk(options).expect("mounted"), mountpoint.join("disk"))
}

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).expect("opened")
}

#[test]
fn requests_reach_the_storage_as_they_are_made() {
    if skipped() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let storage = Noted::new(u64::MAX);
    let (mount, path) = mounted(Arc::clone(&storage), dir.path());
    assert_eq!(fs::metadata(&path).expect("there").len(), SIZE);
    let names: Vec<_> = fs::read_dir(path.parent().expect("a folder")).expect("listed").collect();
    assert_eq!(names.len(), 1);

    let file = open(&path);
    file.write_all_at(b"merganser", 100).expect("written");
    let mut seen = [1; 12];
    file.read_exact_at(&mut seen, 99).expect("read");
    assert_eq!(&seen, b"\0merganser\0\0");
    // Nothing is cached, read ahead or written late.
    file.read_exact_at(&mut seen, 99).expect("read");
    file.sync_all().expect("synced");
    assert_eq!(
        storage.take(),
        [("write", 100, 9), ("read", 99, 12), ("read", 99, 12), ("sync", 0, 0)]
    );

    // Large ones are cut at 1 MiB.
    let large: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    file.write_all_at(&large, 4096).expect("written");
    let mut back = vec![0; large.len()];
    file.read_exact_at(&mut back, 4096).expect("read");
    assert!(back == large);
    assert!(storage.take().iter().all(|(_, _, len)| *len <= 1 << 20));

    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, hole, 4096, 8192).expect("punched");
    assert_eq!(storage.take(), [("discard", 4096, 8192)]);
    let mut zeros = [1; 8192];
    file.read_exact_at(&mut zeros, 4096).expect("read");
    assert_eq!(zeros, [0; 8192]);
    drop(file);
    mount.unmounter().unmount().expect("unmounted");
    mount.run().expect("no failure");
}

/// The kernel flushes nothing for such a file: what the write's own flags ask for is the server's task.
#[test]
fn a_synchronous_write_is_durable_when_it_is_answered() {
    if skipped() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let storage = Noted::new(u64::MAX);
    let (mount, path) = mounted(Arc::clone(&storage), dir.path());
    for flags in [libc::O_DSYNC, libc::O_SYNC, libc::O_DSYNC | libc::O_DIRECT] {
        let file = OpenOptions::new().write(true).custom_flags(flags).open(&path).expect("opened");
        let page = Buffer::new(4096);
        file.write_all_at(&page, 8192).expect("written");
        assert_eq!(storage.take(), [("write", 8192, 4096), ("sync", 0, 0)], "{flags:o}");
    }
    let file = open(&path);
    file.write_all_at(b"x", 0).expect("written");
    assert_eq!(storage.take(), [("write", 0, 1)]);
    // One write of a file without these flags.
    let bytes = [io::IoSlice::new(b"once")];
    let count = rustix::io::pwritev2(&file, &bytes, 5, rustix::io::ReadWriteFlags::DSYNC);
    assert_eq!(count, Ok(4));
    assert_eq!(storage.take(), [("write", 5, 4), ("sync", 0, 0)]);
    // A flush that fails is the write's error.
    storage.fail_syncs();
    let file = OpenOptions::new().write(true).custom_flags(libc::O_DSYNC).open(&path);
    let error = file.expect("opened").write_at(b"lost", 0).expect_err("not durable");
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    mount.unmounter().unmount().expect("unmounted");
    let Err(Error::Request { what, .. }) = mount.run() else { panic!("no failure") };
    assert_eq!(what, "flushing");
}

#[test]
fn a_disk_keeps_its_size() {
    if skipped() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let (mount, path) = mounted(Noted::new(u64::MAX), dir.path());
    let file = open(&path);
    let code = |result: io::Result<()>| result.expect_err("refused").raw_os_error();
    let number = |errno: rustix::io::Errno| Some(errno.raw_os_error());
    assert_eq!(code(file.set_len(SIZE - 1)), number(rustix::io::Errno::INVAL));
    file.set_len(SIZE).expect("it has this size");
    let beyond = file.write_at(b"xx", SIZE - 1).map(|_| ());
    assert_eq!(code(beyond), number(rustix::io::Errno::NOSPC));
    assert_eq!(file.read_at(&mut [0; 100], SIZE - 10).expect("short"), 10);
    assert_eq!(file.read_at(&mut [0; 100], SIZE + 10).expect("nothing"), 0);
    let zeros = fallocate(&file, FallocateFlags::ZERO_RANGE, 0, 4096);
    assert_eq!(zeros, Err(rustix::io::Errno::OPNOTSUPP));
    let other = File::create(path.with_file_name("other")).map(|_| ());
    assert!(other.is_err(), "there is one file");
    drop(file);
    drop(mount);
}

/// The kernel asks the file's permissions, too, so without them the option would let no user in.
#[test]
fn other_users_may_use_a_disk_that_is_theirs_too() {
    if skipped() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can become another user");
    }
    for allow_other in [false, true] {
        let dir = tempfile::tempdir().expect("a folder");
        let open_to_all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(dir.path(), open_to_all).expect("set");
        let (mount, path) = mounted_for(Noted::new(u64::MAX), dir.path(), allow_other);
        let copy = |from: &Path, to: &Path| {
            let mut dd = Command::new("dd");
            dd.uid(65_534).gid(65_534).args(["bs=4096", "count=1", "conv=notrunc", "status=none"]);
            dd.arg(format!("if={}", from.display())).arg(format!("of={}", to.display()));
            dd.stderr(Stdio::null()).status().expect("run").success()
        };
        assert_eq!(copy(&path, Path::new("/dev/null")), allow_other, "read");
        assert_eq!(copy(Path::new("/dev/zero"), &path), allow_other, "write");
        drop(mount);
    }
}

/// A program would take it for the end of the disk, and a copy of the disk would be cut there.
#[test]
fn a_storage_that_ends_too_early_is_an_error() {
    if skipped() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let storage = Noted::new(u64::MAX);
    let (mount, path) = mounted(Arc::clone(&storage), dir.path());
    storage.inner.run(Operation::SetSize { size: 1 << 20 }).expect("cut");
    let file = open(&path);
    assert_eq!(file.read_at(&mut [0; 4096], (1 << 20) - 4096).expect("it is there"), 4096);
    for offset in [(1 << 20) - 10, 1 << 20, SIZE - 4096] {
        let error = file.read_at(&mut [0; 4096], offset).expect_err("cut");
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    }
    drop(file);
    mount.unmounter().unmount().expect("unmounted");
    let error = mount.run().expect_err("the first failure").to_string();
    assert_eq!(
        error,
        "noted: reading 4096 bytes at offset 1048566 failed: it ended after 10 bytes, before its size"
    );
}

#[test]
fn a_failure_is_the_requests_own_and_comes_back_from_run() {
    if skipped() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let storage = Noted::new(1 << 20);
    let (mount, path) = mounted(Arc::clone(&storage), dir.path());
    let file = open(&path);
    file.write_all_at(b"fine", 0).expect("written");
    let error = file.write_all_at(b"bad", 2 << 20).expect_err("damaged");
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    assert!(file.read_at(&mut [0; 4], 2 << 20).is_err());
    let mut fine = [0; 4];
    file.read_exact_at(&mut fine, 0).expect("read");
    assert_eq!(&fine, b"fine");
    storage.full.store(true, Ordering::Relaxed);
    let error = file.write_all_at(b"more", 8).expect_err("full");
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::NOSPC.raw_os_error()));
    drop(file);
    mount.unmounter().unmount().expect("unmounted");
    let Err(Error::Request { what, offset, len, .. }) = mount.run() else { panic!("no failure") };
    assert_eq!((what, offset, len), ("writing", 2 << 20, 3));
}
