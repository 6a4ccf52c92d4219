//! Real files: what only they can do.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use merganser_storage::file::{
    Direct, Engine, EngineChoice, FileDirectory, FileError, FileOptions, FileStorage,
    UnpublishedFile,
};
use merganser_storage::{
    Buffer, Collect, Completion, Completions, Directory, Operation, RealClock, Storage, StorageExt,
};

fn every_option(queue_depth: u32) -> Vec<FileOptions> {
    let mut all = Vec::new();
    for engine in [EngineChoice::Auto, EngineChoice::Threads] {
        for direct in [Direct::Auto, Direct::Never] {
            all.push(FileOptions { direct, engine, queue_depth });
        }
    }
    all
}

fn names(path: &Path) -> Vec<String> {
    FileDirectory::open(path).expect("open").list().expect("list")
}

#[test]
fn a_file_is_written_renamed_and_read_again() {
    let place = tempfile::tempdir().expect("temporary directory");
    let directory = FileDirectory::open(place.path()).expect("open");
    let run = directory.create("run.part").expect("create");
    run.write_at(0, b"merganser").expect("write");
    run.sync().expect("sync");
    directory.rename("run.part", "run").expect("rename");
    directory.sync().expect("sync");

    assert_eq!(directory.list().expect("list"), ["run"]);
    let run = directory.open("run", false).expect("open");
    assert_eq!((run.size(), run.read_vec(3, 6).expect("read")), (9, b"ganser".to_vec()));
    directory.remove("run").expect("remove");
    assert!(directory.list().expect("list").is_empty());
    assert_eq!(run.read_vec(0, 3).expect("still open"), b"mer");
}

#[test]
fn the_mode_says_what_is_used_and_why() {
    let place = tempfile::tempdir().expect("temporary directory");
    for options in every_option(4) {
        let directory = FileDirectory::open_with(place.path(), options).expect("open");
        let mode = directory.create_unnamed_file().expect("create").mode();
        assert_eq!(mode.reason.is_none(), mode.direct && mode.engine == Engine::Ring, "{mode}");
        assert!(!(mode.direct && options.direct == Direct::Never));
        assert!(options.engine == EngineChoice::Auto || mode.engine == Engine::Threads);
        assert_eq!(directory.mode(), mode);
    }
}

#[test]
fn where_no_ring_can_be_had_there_are_threads() {
    let place = tempfile::tempdir().expect("temporary directory");
    let options = FileOptions { queue_depth: u32::MAX, ..FileOptions::default() };
    let directory = FileDirectory::open_with(place.path(), options).expect("open");
    let file = directory.create_unnamed_file().expect("create");
    file.write_at(0, b"good").expect("write");
    assert_eq!(file.read_vec(0, 4).expect("read"), b"good");
    let mode = file.mode();
    assert_eq!(mode.engine, Engine::Threads);
    assert!(mode.reason.is_some_and(|reason| reason.contains("io_uring: no ring is that deep")));
}

#[test]
fn many_threads_submit_more_than_the_queue_holds() {
    const THREADS: u64 = 4;
    const BLOCKS: u64 = 64;
    const BLOCK: usize = 8192;
    let place = tempfile::tempdir().expect("temporary directory");
    for options in every_option(3) {
        let directory = FileDirectory::open_with(place.path(), options).expect("open");
        let file = directory.create_unnamed_file().expect("create");
        // Blocks of all threads alternate; one more byte per thread number makes some unaligned.
        let offset = |thread: u64, block: u64| {
            (block * THREADS + thread) * 2 * BLOCK as u64 + thread.saturating_sub(2)
        };
        let byte = |thread: u64, block: u64| (thread * BLOCKS + block) as u8;
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let file = &file;
                scope.spawn(move || {
                    let completions = Completions::new();
                    for block in 0..BLOCKS {
                        let mut buffer = Buffer::new(BLOCK);
                        buffer.fill(byte(thread, block));
                        let offset = offset(thread, block);
                        file.submit(block, Operation::Write { offset, buffer }, &completions);
                    }
                    let mut seen = [false; BLOCKS as usize];
                    for _ in 0..BLOCKS {
                        let done = completions.wait(&RealClock::new());
                        assert_eq!(done.result.expect("write"), BLOCK);
                        assert!(!std::mem::replace(&mut seen[done.token as usize], true));
                    }
                    for block in 0..BLOCKS {
                        let (offset, buffer) = (offset(thread, block), Buffer::new(BLOCK));
                        file.submit(block, Operation::Read { offset, buffer }, &completions);
                    }
                    for _ in 0..BLOCKS {
                        let done = completions.wait(&RealClock::new());
                        assert_eq!(done.result.expect("read"), BLOCK);
                        let buffer = done.buffer.expect("comes back");
                        assert!(buffer.iter().all(|&b| b == byte(thread, done.token)));
                    }
                    assert!(completions.poll().is_none(), "one completion for each operation");
                });
            }
        });
    }
}

#[test]
fn operations_outlive_the_handles_they_were_submitted_to() {
    let place = tempfile::tempdir().expect("temporary directory");
    for (at, options) in every_option(2).into_iter().enumerate() {
        let name = format!("file{at}");
        let completions = Completions::new();
        {
            let directory = FileDirectory::open_with(place.path(), options).expect("open");
            let file = directory.create(&name).expect("create");
            for block in 0..32 {
                let mut buffer = Buffer::new(4096);
                buffer.fill(block as u8);
                let write = Operation::Write { offset: block * 4096, buffer };
                file.submit(block, write, &completions);
            }
        }
        for _ in 0..32 {
            let done = completions.wait(&RealClock::new());
            assert_eq!(done.result.expect("write"), 4096);
        }
        let bytes = fs::read(place.path().join(name)).expect("read");
        assert!(bytes.chunks(4096).zip(0..32).all(|(page, n)| page.iter().all(|&b| b == n)));
    }
}

#[test]
fn reads_stop_at_the_end_wherever_it_lies() {
    let place = tempfile::tempdir().expect("temporary directory");
    for options in every_option(4) {
        let directory = FileDirectory::open_with(place.path(), options).expect("open");
        for size in [0, 1, 4095, 4096, 4097, 10_000] {
            let file = directory.create_unnamed().expect("create");
            file.write_at(0, &vec![9; size]).expect("write");
            for offset in [0_usize, 4096, 8192, 12_288] {
                let mut out = vec![0; 8192];
                let count = file.read_at(offset as u64, &mut out).expect("read");
                assert_eq!(count, size.saturating_sub(offset).min(8192));
                assert!(out[..count].iter().all(|&b| b == 9));
            }
            let error = file.read_vec(0, size + 1).expect_err("too much");
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        }
    }
}

#[test]
fn errors_name_the_file_the_operation_and_the_offset() {
    let place = tempfile::tempdir().expect("temporary directory");
    let path = place.path().join("input");
    fs::write(&path, "x").expect("write");
    for options in every_option(4) {
        let file = FileStorage::open_path_with(&path, false, options).expect("open");
        let error = file.write_at(5, b"yy").expect_err("read only");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        let wanted = format!("{}: write of 2 bytes at 5: ", path.display());
        assert!(error.to_string().starts_with(&wanted), "{error}");
        let error = file.run(Operation::SetSize { size: 0 }).expect_err("read only");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);

        // Beyond what any file system takes, though not beyond an `i64`.
        let file = FileStorage::open_path_with(&path, true, options).expect("open");
        let far = i64::MAX as u64 / 8192 * 4096;
        let error = file.write_at(far + 1, b"yy").expect_err("too far");
        let inner = error.get_ref().and_then(|e| e.downcast_ref::<FileError>()).expect("ours");
        assert_eq!(inner.cause.raw_os_error(), Some(libc::EFBIG));
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        let error = file.write_at(u64::MAX, b"yy").expect_err("too far");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(fs::read(&path).expect("read"), b"x");
}

#[test]
fn a_full_disk_is_told_as_such() {
    // A memory file system refuses at once what exceeds it, without filling anything.
    let Ok(directory) = FileDirectory::open("/dev/shm") else { return };
    let file = directory.create_unnamed().expect("create");
    let error = file.run(Operation::Allocate { offset: 0, len: 1 << 46 }).expect_err("too much");
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(error.to_string().contains("allocation of 70368744177664 bytes at 0"), "{error}");
}

#[test]
fn what_cannot_be_opened_is_refused_with_its_kind() {
    let place = tempfile::tempdir().expect("temporary directory");
    let directory = FileDirectory::open(place.path()).expect("open");
    directory.create("there").expect("create");
    let kind = |result: std::io::Result<Arc<dyn Storage>>| result.err().expect("refused").kind();
    assert_eq!(kind(directory.create("there")), ErrorKind::AlreadyExists);
    assert_eq!(kind(directory.open("missing", true)), ErrorKind::NotFound);
    for name in ["", ".", "..", "a/b", "/etc/passwd", "there/"] {
        assert_eq!(kind(directory.create(name)), ErrorKind::InvalidInput, "{name:?}");
        assert_eq!(kind(directory.open(name, false)), ErrorKind::InvalidInput, "{name:?}");
    }
    let kind = |path: &Path| FileStorage::open_path(path, false).err().expect("refused").kind();
    assert_eq!(kind(place.path()), ErrorKind::IsADirectory);
    assert_eq!(kind(Path::new("/dev/null")), ErrorKind::InvalidInput);
    assert_eq!(kind(&place.path().join("missing")), ErrorKind::NotFound);
    let error = FileDirectory::open(place.path().join("there")).err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::NotADirectory);
}

#[test]
fn a_discard_gives_blocks_back() {
    let place = tempfile::tempdir().expect("temporary directory");
    for options in every_option(4) {
        let directory = FileDirectory::open_with(place.path(), options).expect("open");
        let file = directory.create_unnamed_file().expect("create");
        file.run(Operation::Allocate { offset: 0, len: 1 << 20 }).expect("allocate");
        file.write_at(0, &[1; 1 << 20]).expect("write");
        file.sync().expect("sync");
        let before = file.allocated_bytes().expect("stat");
        file.run(Operation::Discard { offset: 0, len: 1 << 19 }).expect("discard");
        assert_eq!(file.size(), 1 << 20);
        let given_back = before - file.allocated_bytes().expect("stat");
        assert!((1 << 19..(1 << 19) + 65_536).contains(&given_back), "{given_back}");
    }
}

#[test]
fn unnamed_files_leave_no_name() {
    let place = tempfile::tempdir().expect("temporary directory");
    let directory = FileDirectory::open(place.path()).expect("open");
    let file = directory.create_unnamed().expect("create");
    file.write_at(0, b"secret").expect("write");
    assert!(names(place.path()).is_empty());
    assert_eq!(file.read_vec(0, 6).expect("read"), b"secret");
}

#[test]
fn an_output_appears_whole_or_not_at_all() {
    let place = tempfile::tempdir().expect("temporary directory");
    let path = place.path().join("sorted");
    for options in every_option(4) {
        let given_up = UnpublishedFile::create(&path, options).expect("create");
        given_up.storage().write_at(0, b"half").expect("write");
        assert!(names(place.path()).is_empty());
        drop(given_up);

        let output = UnpublishedFile::create(&path, options).expect("create");
        output.storage().write_at(0, b"all of it").expect("write");
        assert!(names(place.path()).is_empty());
        output.publish().expect("publish");
        assert_eq!(names(place.path()), ["sorted"]);
        assert_eq!(fs::read(&path).expect("read"), b"all of it");
        fs::remove_file(&path).expect("remove");
    }
}

/// Runs itself in a second process, which makes an output and waits to be killed.
#[test]
fn a_killed_process_leaves_neither_outputs_nor_unnamed_files() {
    const CHILD: &str = "STORAGE_TEST_KILLED_IN";
    if let Some(place) = std::env::var_os(CHILD) {
        let place = Path::new(&place);
        let output =
            UnpublishedFile::create(place.join("sorted"), FileOptions::default()).expect("create");
        output.storage().write_at(0, b"half").expect("write");
        let directory = FileDirectory::open(place).expect("open");
        let run = directory.create_unnamed().expect("create");
        run.write_at(0, b"a run").expect("write");
        std::io::stderr().write_all(b"\nready\n").expect("tell");
        std::io::stdin().read_to_end(&mut Vec::new()).expect("wait");
        panic!("not killed");
    }
    let place = tempfile::tempdir().expect("temporary directory");
    fs::write(place.path().join("sorted"), "old").expect("write");
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args([
            "file::a_killed_process_leaves_neither_outputs_nor_unnamed_files",
            "--exact",
            "--nocapture",
        ])
        .env(CHILD, place.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start");
    let said = BufReader::new(child.stderr.take().expect("piped"));
    let ready = said.lines().any(|line| line.expect("text") == "ready");
    child.kill().expect("kill");
    child.wait().expect("wait");
    assert!(ready, "the second process got as far as writing");
    assert_eq!(names(place.path()), ["sorted"]);
    assert_eq!(fs::read(place.path().join("sorted")).expect("read"), b"old");
}

#[test]
fn an_output_replaces_a_file_and_keeps_its_mode() {
    let place = tempfile::tempdir().expect("temporary directory");
    let path = place.path().join("sorted");
    fs::write(&path, "old").expect("write");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("chmod");
    let reader = FileStorage::open_path(&path, false).expect("open");
    let output = UnpublishedFile::create(&path, FileOptions::default()).expect("create");
    output.storage().write_at(0, b"new").expect("write");
    assert_eq!(fs::read(&path).expect("read"), b"old");
    output.publish().expect("publish");
    assert_eq!(fs::read(&path).expect("read"), b"new");
    assert_eq!(fs::metadata(&path).expect("stat").permissions().mode() & 0o7777, 0o640);
    assert_eq!(names(place.path()), ["sorted"]);
    assert_eq!(reader.read_vec(0, 3).expect("the old file is still open"), b"old");
}

#[test]
fn an_output_follows_links_even_dangling_ones() {
    let place = tempfile::tempdir().expect("temporary directory");
    let elsewhere = tempfile::tempdir().expect("temporary directory");
    let (link, target) = (place.path().join("link"), elsewhere.path().join("target"));
    std::os::unix::fs::symlink(&target, &link).expect("link");
    for content in ["first", "second"] {
        let output = UnpublishedFile::create(&link, FileOptions::default()).expect("create");
        output.storage().write_at(0, content.as_bytes()).expect("write");
        output.publish().expect("publish");
        assert!(fs::symlink_metadata(&link).expect("stat").is_symlink());
        assert_eq!(fs::read_to_string(&target).expect("read"), content);
    }
    let error =
        UnpublishedFile::create(place.path(), FileOptions::default()).err().expect("a directory");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

/// The engine's thread must not wait for itself.
#[test]
fn the_last_handle_may_be_dropped_where_the_last_completion_arrives() {
    struct Last {
        storage: Mutex<Option<Arc<dyn Storage>>>,
        dropped: mpsc::Sender<()>,
    }
    impl Collect for Last {
        fn arrived(&self, _: Completion) {
            drop(self.storage.lock().expect("no panic").take());
            self.dropped.send(()).expect("the test waits");
        }
    }
    let place = tempfile::tempdir().expect("temporary directory");
    for engine in [EngineChoice::Auto, EngineChoice::Threads] {
        // No other test has an engine of this depth.
        let options = FileOptions { engine, queue_depth: 11, ..FileOptions::default() };
        let directory = FileDirectory::open_with(place.path(), options).expect("open");
        let file = directory.create_unnamed().expect("create");
        drop(directory);
        let (dropped, wait) = mpsc::channel();
        let last = Arc::new(Last { storage: Mutex::new(Some(Arc::clone(&file))), dropped });
        let completions = Completions::collected(last);
        // The write takes long enough for this handle to go first.
        let buffer = Buffer::new(64 << 20);
        file.submit(0, Operation::Write { offset: 0, buffer }, &completions);
        drop((file, completions));
        wait.recv_timeout(Duration::from_secs(60)).expect("dropped without a panic");
    }
}
