//! Real mounts, read by the programs that people use. Where `/dev/fuse` cannot be opened, each
//! test says that it was skipped.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime};

use merganser_export::Error;
use merganser_export::fuse::{ExportedFile, Mount, MountOptions};
use merganser_storage::{Clock, Completion, Completions, Operation, RealClock, Storage};
use parking_lot::Mutex;

const SIZE: usize = 5_000_017;

/// Bytes in memory that count how they are read, and fail where told to.
#[derive(Default)]
struct Bytes {
    content: Vec<u8>,
    bad: Option<u64>,
    /// Where reads ended so far.
    ends: Mutex<HashSet<u64>>,
    reads: AtomicU64,
    /// Reads that did not begin where an earlier one had ended.
    jumps: AtomicU64,
    longest: AtomicU64,
}

impl Bytes {
    fn new(content: Vec<u8>) -> Arc<Self> {
        Arc::new(Bytes { content, ..Bytes::default() })
    }
}

impl Storage for Bytes {
    fn name(&self) -> &str {
        "test bytes"
    }

    fn size(&self) -> u64 {
        self.content.len() as u64
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(RealClock::new())
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let Operation::Read { offset, mut buffer } = operation else { panic!("only reads") };
        let from = (offset as usize).min(self.content.len());
        let count = buffer.len().min(self.content.len() - from);
        buffer[..count].copy_from_slice(&self.content[from..from + count]);
        let end = offset + count as u64;
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.longest.fetch_max(count as u64, Ordering::Relaxed);
        let mut ends = self.ends.lock();
        if !ends.contains(&offset) {
            self.jumps.fetch_add(1, Ordering::Relaxed);
        }
        ends.insert(end);
        drop(ends);
        let result = match self.bad {
            Some(bad) if (offset..end).contains(&bad) => Err(io::Error::other("damaged here")),
            _ => Ok(count),
        };
        completions.post(Completion { token, buffer: Some(buffer), result });
    }
}

/// Numbered lines, so that misplaced bytes show in a diff.
fn lines(size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(size + 16);
    for i in 0.. {
        if out.len() >= size {
            break;
        }
        writeln!(out, "{i:011}").expect("a vector takes all");
    }
    out.truncate(size);
    out
}

/// True, with a line said, when this machine cannot mount.
fn skipped() -> bool {
    let opened = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
    if let Err(e) = &opened {
        eprintln!("skipped: /dev/fuse: {e}");
    }
    opened.is_err()
}

fn modified() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::new(1_234_567_890, 123_456_789)
}

fn file(name: &str, storage: Arc<dyn Storage>) -> ExportedFile {
    ExportedFile { name: name.into(), storage, modified: modified() }
}

/// A mount of one file `view`, and the same bytes in a real file next to it.
struct Fixture {
    mount: Option<Mount>,
    folder: tempfile::TempDir,
    bytes: Arc<Bytes>,
}

impl Fixture {
    fn new(content: Vec<u8>) -> Self {
        Self::with(Bytes { content, ..Bytes::default() }, |options| options)
    }

    fn with(bytes: Bytes, change: impl FnOnce(MountOptions) -> MountOptions) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("m")).expect("made");
        fs::write(folder.path().join("plain"), &bytes.content).expect("written");
        let bytes = Arc::new(bytes);
        let options = MountOptions::new(folder.path().join("m"), vec![file("view", bytes.clone())]);
        let mount = Mount::new(change(options)).expect("mounted");
        assert!(mount.answers() && mount.files().iter().all(|file| file.is_file()));
        let mount = Some(mount);
        Fixture { mount, folder, bytes }
    }

    fn mountpoint(&self) -> PathBuf {
        self.folder.path().join("m")
    }

    fn view(&self) -> PathBuf {
        self.mountpoint().join("view")
    }

    /// Output of a shell command with `$V` the mounted file and `$P` the plain one.
    fn shell(&self, command: &str) -> Vec<u8> {
        let output = self.try_shell(command);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {said}");
        output.stdout
    }

    fn try_shell(&self, command: &str) -> std::process::Output {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("V", self.view()).env("M", self.mountpoint());
        shell.env("P", self.folder.path().join("plain")).output().expect("sh runs")
    }
}

fn is_mounted(path: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("readable");
    table.contains(&format!(" {} ", path.display()))
}

#[test]
fn programs_read_exact_bytes() {
    if skipped() {
        return;
    }
    let f = Fixture::new(lines(SIZE));
    f.shell("cmp $V $P");
    f.shell("cmp $V $P"); // out of the page cache
    assert!(f.shell("cat $V") == f.bytes.content);
    for command in [
        "head -c 1",
        "head -c 4097",
        "tail -c 1",
        "tail -c 131073",
        "tail -n 3",
        "wc -c",
        "grep -c 7",
        "grep 00000012345",
        "sha256sum",
        "od -An -tx1 -j 1048575 -N 3",
    ] {
        let on = |file: &str| f.shell(&format!("{command} < {file}"));
        assert!(on("$V") == on("$P"), "{command}");
    }
    for (block, skip, count) in [(1, 4095, 3), (511, 77, 9), (4097, 1000, 30), (1_048_577, 3, 9)] {
        let dd = |file| {
            f.shell(&format!("dd status=none if={file} bs={block} skip={skip} count={count}"))
        };
        assert!(dd("$V") == dd("$P"), "bs={block} skip={skip}");
    }
    f.shell("test -z \"$(dd status=none if=$V bs=5000017 skip=1)\"");
    f.shell("cp $V $P.copy && cmp $P.copy $P");
}

#[test]
fn a_mount_that_has_ended_does_not_answer() {
    if skipped() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let files = vec![file("file", Bytes::new(vec![1; 10]))];
    let mount = Mount::new(MountOptions::new(dir.path(), files)).expect("mounted");
    assert_eq!(mount.files(), [dir.path().join("file")]);
    assert!(mount.answers());
    mount.unmounter().unmount().expect("unmounted");
    assert!(!mount.answers());
    mount.run().expect("served");
}

#[test]
fn python_maps_it() {
    if skipped() {
        return;
    }
    let f = Fixture::new(lines(SIZE));
    let program = "import mmap,os,sys\n\
        plain=open(os.environ['P'],'rb').read()\n\
        v=open(os.environ['V'],'rb')\n\
        m=mmap.mmap(v.fileno(),0,prot=mmap.PROT_READ)\n\
        assert len(m)==len(plain)\n\
        for at in list(range(len(plain)-1,0,-333333))+[0,4095,4096,1<<20]: assert m[at:at+99]==plain[at:at+99]\n\
        assert m[:]==plain\n\
        assert m.find(b'00000099999')==plain.find(b'00000099999')\n";
    let python = Command::new("python3")
        .args(["-c", program])
        .env("V", f.view())
        .env("P", f.folder.path().join("plain"))
        .output();
    match python {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        Err(e) => eprintln!("skipped: python3: {e}"),
    }
}

#[test]
fn every_offset_of_small_files_is_exact() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sizes = [0usize, 1, 2, 511, 512, 4095, 4096, 4097, 8191];
    let files = sizes.map(|size| file(&size.to_string(), Bytes::new(lines(size))));
    let _mount = Mount::new(MountOptions::new(folder.path(), files.into())).expect("mounted");
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .expect("listed")
        .map(|e| e.expect("an entry").file_name().into_string().expect("a number"))
        .collect();
    names.sort_by_key(|n| n.parse::<usize>().expect("a number"));
    assert_eq!(names, sizes.map(|s| s.to_string()));
    for size in sizes {
        let content = lines(size);
        let view = fs::File::open(folder.path().join(size.to_string())).expect("opened");
        for from in (0..size + 2).step_by(if size > 600 { 97 } else { 1 }) {
            let mut out = [0; 700];
            let count = view.read_at(&mut out, from as u64).expect("read");
            let expected = &content[from.min(size)..(from + 700).min(size)];
            assert_eq!(&out[..count], expected, "{size} bytes from {from}");
        }
    }
}

#[test]
fn size_mode_owner_and_times() {
    if skipped() {
        return;
    }
    let f = Fixture::new(lines(SIZE));
    let view = fs::metadata(f.view()).expect("metadata");
    let temp = fs::metadata(f.folder.path()).expect("metadata");
    assert!(view.is_file());
    assert_eq!((view.len(), view.blocks()), (SIZE as u64, (SIZE as u64).div_ceil(512)));
    assert_eq!((view.mode() & 0o7777, view.nlink()), (0o444, 1));
    assert_eq!((view.uid(), view.gid()), (temp.uid(), temp.gid()));
    assert_eq!(view.modified().expect("known"), modified());
    assert_eq!(view.accessed().expect("known"), modified());
    assert_eq!((view.ctime(), view.ctime_nsec()), (1_234_567_890, 123_456_789));
    let folder = fs::metadata(f.mountpoint()).expect("metadata");
    assert_eq!(folder.mode() & 0o7777, 0o555);
    f.shell("test $(df --output=size -B1 $M | tail -n 1) -ge 5000017");
    f.shell("test $(find $M -type f -size 5000017c) = $V");
}

#[test]
fn nothing_can_be_changed() {
    if skipped() {
        return;
    }
    let f = Fixture::new(lines(100));
    for command in [
        "echo x >> $V",
        ": > $V",
        "echo x > $M/new",
        "mkdir $M/d",
        "rm -f $V",
        "mv $V $M/w",
        "chmod 644 $V",
    ] {
        let output = f.try_shell(command);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("Read-only file system"),
            "{command}: {said}"
        );
    }
    f.shell("cmp $V $P");
}

#[test]
fn several_readers_at_once() {
    if skipped() {
        return;
    }
    for direct_io in [false, true] {
        let bytes = Bytes { content: lines(SIZE), ..Bytes::default() };
        let f = Fixture::with(bytes, |o| MountOptions { direct_io, threads: 3, ..o });
        std::thread::scope(|scope| {
            for reader in 0..6usize {
                let (view, content) = (f.view(), &f.bytes.content);
                scope.spawn(move || {
                    let mut view = fs::File::open(view).expect("opened");
                    let from = reader * 800_003;
                    view.seek(SeekFrom::Start(from as u64)).expect("sought");
                    let mut out = Vec::new();
                    view.read_to_end(&mut out).expect("read");
                    assert!(out == content[from..], "reader {reader}");
                    for i in 0..100 {
                        let at = (i * 7_654_321 + reader * 1_234_567) % (SIZE - 5_000);
                        let mut piece = [0; 5_000];
                        view.read_exact_at(&mut piece, at as u64).expect("read");
                        assert!(piece[..] == content[at..at + 5_000], "reader {reader} at {at}");
                    }
                });
            }
        });
        f.shell("cmp $V $P");
    }
}

/// The storage sees each sequential reader's offsets in order, in large pieces, each once.
#[test]
fn sequential_readers_reach_the_storage_in_order() {
    if skipped() {
        return;
    }
    for (command, streams) in [
        ("cat $V > /dev/null", 1),
        ("head -c 32M $V > /dev/null & tail -c +33554433 $V > /dev/null; wait", 2),
    ] {
        let bytes = Bytes { content: lines(64 << 20), ..Bytes::default() };
        let f = Fixture::with(bytes, |o| MountOptions { threads: 4, ..o });
        f.shell(command);
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (reads, jumps) = (read(&f.bytes.reads), read(&f.bytes.jumps));
        let longest = read(&f.bytes.longest);
        eprintln!("64 MiB in {reads} reads, {jumps} began a stretch, the longest {longest} bytes");
        // A reader may look at one more place first, as `tail` does.
        assert!(jumps < 2 * streams, "{jumps} of {reads} reads were out of order");
        assert!(reads <= 64 * 8 + 2 * streams, "{reads} reads for 64 MiB");
        assert!(longest <= merganser_export::READ_BYTES_MAX as u64);
    }
}

#[test]
fn a_failed_read_is_eio_and_is_told() {
    if skipped() {
        return;
    }
    let bad = 3_000_000;
    let bytes = Bytes { content: lines(SIZE), bad: Some(bad), ..Bytes::default() };
    let (told, heard) = mpsc::channel();
    let told = Mutex::new(told);
    let on_error = move |e: &Error| {
        let Error::Read { offset, len, .. } = e else { panic!("{e}") };
        told.lock().send((*offset, *len as u64, e.to_string())).expect("heard");
    };
    let mut f = Fixture::with(bytes, |o| MountOptions { on_error: Some(Box::new(on_error)), ..o });
    let output = f.try_shell("cat $V");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("Input/output error"), "{said}");
    assert!(output.stdout.len() <= bad as usize);
    assert!(f.bytes.content.starts_with(&output.stdout));
    let (offset, len, sentence) = heard.recv().expect("told");
    assert!((offset..offset + len).contains(&bad));
    let expected =
        format!("test bytes: reading {len} bytes at offset {offset} failed: damaged here");
    assert_eq!(sentence, expected);
    // Undamaged bytes can still be read.
    let view = fs::File::open(f.view()).expect("opened");
    let mut out = [0; 1000];
    view.read_exact_at(&mut out, SIZE as u64 - 1000).expect("read");
    assert!(out[..] == f.bytes.content[SIZE - 1000..]);
    drop(view);

    let mount = f.mount.take().expect("mounted");
    mount.unmounter().unmount().expect("unmounted");
    let error = mount.run().expect_err("the failed read");
    assert!(error.to_string().contains("damaged here"), "{error}");
}

#[test]
fn dropping_unmounts_and_lets_go_of_the_storage() {
    if skipped() {
        return;
    }
    let mut f = Fixture::new(lines(SIZE));
    assert!(is_mounted(&f.mountpoint()));
    drop(f.mount.take());
    assert!(!is_mounted(&f.mountpoint()));
    assert_eq!(Arc::strong_count(&f.bytes), 1);
    assert_eq!(fs::read_dir(f.mountpoint()).expect("listed").count(), 0);
}

#[test]
fn dropping_unmounts_even_when_a_file_is_open() {
    if skipped() {
        return;
    }
    let mut f = Fixture::new(lines(SIZE));
    let mut open = fs::File::open(f.view()).expect("opened");
    open.read_exact(&mut [0; 10]).expect("read");
    drop(f.mount.take());
    assert!(!is_mounted(&f.mountpoint()));
    // A user who may not end the connection serves what is open to its end; root ends it.
    let mut out = [0; 10];
    match open.read_at(&mut out, 4_000_000) {
        Ok(count) => assert_eq!(out[..count], f.bytes.content[4_000_000..4_000_000 + count]),
        Err(_) => assert_eq!(Arc::strong_count(&f.bytes), 1),
    }
    // SAFETY: asking for the own id touches no memory and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    assert!(!root || Arc::strong_count(&f.bytes) == 1);
}

#[test]
fn an_unmount_from_outside_ends_the_run() {
    if skipped() {
        return;
    }
    let mut f = Fixture::new(lines(SIZE));
    let mount = f.mount.take().expect("mounted");
    let unmounter = mount.unmounter();
    let run = std::thread::spawn(move || mount.run());
    f.shell("cmp $V $P");
    if !f.try_shell("umount $M || fusermount3 -u $M").status.success() {
        eprintln!("skipped: neither umount nor fusermount3 may unmount here");
        unmounter.unmount().expect("unmounted");
    }
    run.join().expect("no panic").expect("no error");
    unmounter.unmount().expect("nothing to do");
    assert!(!is_mounted(&f.mountpoint()));
}

#[test]
fn unmounting_leaves_a_later_mount_alone() {
    if skipped() {
        return;
    }
    let mut f = Fixture::new(lines(10));
    let old = f.mount.take().expect("mounted").unmounter();
    f.mount = Some(
        Mount::new(MountOptions::new(f.mountpoint(), vec![file("view", f.bytes.clone())]))
            .expect("mounted again"),
    );
    old.unmount().expect("nothing to do");
    f.shell("cmp $V $P");
}

/// A copy of this test program that serves 10,000 bytes until it is interrupted.
fn serving_child(mountpoint: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", "mount::serve_until_interrupted", "--ignored", "--nocapture"])
        .env("EXPORT_TEST_MOUNTPOINT", mountpoint)
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut stdout = io::BufReader::new(child.stdout.take().expect("piped"));
    let mut said = String::new();
    while !said.ends_with("serving\n") {
        assert_ne!(stdout.read_line(&mut said).expect("read"), 0, "{said}");
    }
    // The child prints more at its end, and must not die of a closed pipe.
    child.stdout = Some(stdout.into_inner());
    child
}

/// The caller handles signals: here the child does, and then unmounts.
#[test]
fn an_interrupt_handled_by_the_caller_unmounts() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut child = serving_child(folder.path());
    assert_eq!(fs::read(folder.path().join("view")).expect("read"), lines(10_000));
    let pid = libc::pid_t::try_from(child.id()).expect("a pid");
    // SAFETY: a signal to a child that has not been waited for, so the pid is its own.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    assert!(child.wait().expect("ended").success());
    assert!(!is_mounted(folder.path()));
}

#[test]
#[ignore = "a part of an_interrupt_handled_by_the_caller_unmounts"]
fn serve_until_interrupted() {
    let Some(mountpoint) = std::env::var_os("EXPORT_TEST_MOUNTPOINT") else { return };
    let mut signals = signal_hook::iterator::Signals::new([libc::SIGINT]).expect("handled");
    let files = vec![file("view", Bytes::new(lines(10_000)))];
    let mount = Mount::new(MountOptions::new(mountpoint, files)).expect("mounted");
    let unmounter = mount.unmounter();
    std::thread::spawn(move || {
        signals.forever().next();
        unmounter.unmount().expect("unmounted");
    });
    io::stdout().write_all(b"\nserving\n").expect("heard");
    mount.run().expect("a clean end");
}

/// A server that dies without unmounting leaves a mount that says so.
#[test]
fn a_stale_mount_says_how_to_clear_it() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut child = serving_child(folder.path());
    child.kill().expect("killed");
    child.wait().expect("ended");
    let error = refusal(folder.path());
    assert!(error.contains("stale mount") && error.contains("fusermount3 -u"), "{error}");
    let path = folder.path().display();
    assert!(
        Command::new("sh")
            .args(["-c", &format!("umount {path} || fusermount3 -u {path}")])
            .status()
            .expect("sh runs")
            .success()
    );
}

fn refusal(mountpoint: &Path) -> String {
    let files = vec![file("view", Bytes::new(lines(10)))];
    Mount::new(MountOptions::new(mountpoint, files)).expect_err("refused").to_string()
}

#[test]
fn bad_mount_points_are_refused_with_a_sentence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "x").expect("written");
    fs::create_dir_all(at("full/x")).expect("made");
    assert!(
        refusal(&at("missing"))
            .ends_with("missing: there is no such folder; make it first, or name another")
    );
    assert!(refusal(&at("file")).contains("is not a folder"));
    assert!(refusal(&at("file/x")).contains("part of this path is not a folder"));
    assert!(refusal(&at("full")).contains("is not empty"));
    if !skipped() {
        let f = Fixture::new(lines(10));
        assert!(refusal(&f.mountpoint()).contains("already mounted"));
    }
}

#[test]
fn bad_names_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let long = "x".repeat(256);
    for names in [&["a/b"][..], &[""], &["."], &[".."], &["a\0"], &["same", "same"], &[&long]] {
        let files = names.iter().map(|name| file(name, Bytes::new(lines(10)))).collect();
        let error = Mount::new(MountOptions::new(folder.path(), files)).expect_err("refused");
        assert!(matches!(error, Error::Name { .. }), "{error}");
    }
}
