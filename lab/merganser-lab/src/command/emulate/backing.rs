//! Where an emulated disk keeps its data.
//!
//! A file is written to only if it is empty, or has the label of a disk that this command made
//! ([`DiskLabel`]), or if the user says that it may be. Each choice is made after the file is locked, and
//! about the open file, so that a second emulation that starts meanwhile can't decide differently.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use merganser_shell::failure::Failure;
use merganser_shell::input::is_same_file;
use merganser_shell::patience::patiently;
use merganser_storage::file::{Direct, EngineChoice, FileOptions, FileStorage, check_new, own};
use merganser_storage::memory::MemoryStorage;
use merganser_storage::region::Regions;
use merganser_storage::{Operation, Storage, StorageExt};
use rustix::fs::{FlockOperation, FsWord, flock, fstatfs};
use rustix::io::Errno;

use super::label::DiskLabel;
use crate::config::BackingConfig;

/// The number of tmpfs in `statfs` (TMPFS_MAGIC).
const TMPFS: FsWord = 0x0102_1994;

/// Opens the data, or makes them. A disk in memory for which no size is given has `capacity_bytes`.
pub(super) fn open(
    config: &BackingConfig,
    capacity_bytes: u64,
) -> Result<Arc<dyn Storage>, Failure> {
    match config {
        BackingConfig::Memory(bytes) => {
            // Pages that nothing was written to take no memory.
            let storage = MemoryStorage::new("memory");
            sized(&*storage, bytes.unwrap_or(capacity_bytes))?;
            Ok(storage)
        }
        BackingConfig::File { path, size, existing } => file(path, *size, *existing),
    }
}

/// Refuses an output that would overwrite the data, by whatever name or link it is reached.
pub(super) fn check_apart(
    config: &BackingConfig,
    output: &Path,
    option: &str,
) -> Result<(), Failure> {
    let BackingConfig::File { path, .. } = config else { return Ok(()) };
    if is_same_file(path, output) {
        return Err(format!(
            "{option}: would overwrite {}, which holds the data of the disk; name another file",
            path.display()
        )
        .into());
    }
    Ok(())
}

fn sized(storage: &dyn Storage, size: u64) -> Result<(), Failure> {
    storage.run(Operation::SetSize { size }).map(|_| ()).map_err(|error| Failure::named(&error))
}

fn file(path: &Path, size: Option<u64>, existing: bool) -> Result<Arc<dyn Storage>, Failure> {
    let failed = |error: io::Error| Failure::on(path, &error);
    let shown = path.display();
    match path.metadata() {
        // Opened only now: the open of a FIFO or of a device may wait, or do something.
        Ok(found) if !found.is_file() => {
            return Err(format!("{shown}: is no regular file").into());
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if existing || size.is_none() {
                return Err(format!(
                    "{shown}: there is no such file; say how large to make it, such as --size 4G"
                )
                .into());
            }
        }
        Err(error) => return Err(failed(error)),
    }
    let make = size.is_some() && !existing;
    check_new(path).map_err(failed)?;
    let mut options = OpenOptions::new();
    // Whoever can read the file reads the disk.
    options.read(true).write(true).create(make).mode(0o600);
    let file = options.open(path).map_err(failed)?;
    lock(path, &file)?;
    let bytes = disk_bytes(path, &file, size, existing)?;
    if !existing {
        // A flush of the disk is a sync of the file, and that may not keep the name of a new file.
        own::sync_parent(path).map_err(failed)?;
    }
    let engine = match is_in_memory(&file) {
        // io_uring passes such reads and writes on to other threads of the kernel.
        true => EngineChoice::Threads,
        false => EngineChoice::Auto,
    };
    // Through the page cache, so that data are there as soon as the model wants them.
    let options = FileOptions { direct: Direct::Never, engine, queue_depth: 256 };
    let storage = FileStorage::from_file(file, shown.to_string(), true, options)
        .map_err(|error| Failure::named(&error))?;
    // The label is behind the data, out of reach of programs.
    let disk = Regions::new(storage).next();
    sized(&*disk, bytes)?;
    Ok(disk)
}

/// Whether the file is in a file system that is in memory.
fn is_in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|system| system.f_type == TMPFS)
}

/// The size of the disk in `file`, which is locked, and made or extended if `size` asks for it.
fn disk_bytes(path: &Path, file: &File, size: Option<u64>, existing: bool) -> Result<u64, Failure> {
    let failed = |error: io::Error| Failure::on(path, &error);
    let shown = path.display();
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(format!("{shown}: is no regular file").into());
    }
    let len = found.len();
    match (DiskLabel::read(file, len).map_err(failed)?, size) {
        (Some(label), size) => {
            label.finish(file).map_err(failed)?;
            let size = size.unwrap_or(label.bytes);
            if size < label.bytes {
                let has = label.bytes;
                return Err(
                    format!("--size: {size} bytes would cut {shown}, which has {has}").into()
                );
            }
            if size > label.bytes {
                DiskLabel::write(file, size, Some(label.bytes)).map_err(failed)?;
            }
            Ok(size)
        }
        (None, None) if len == 0 => {
            Err(format!("{shown}: is empty; say how large to make it with --size").into())
        }
        (None, Some(size)) if len == 0 && !existing => {
            DiskLabel::write(file, size, None).map_err(failed)?;
            Ok(size)
        }
        (None, _) if !existing => Err(format!(
            "{shown}: has {len} bytes that no emulated disk wrote, and would be overwritten; name \
             another file, or say --existing if programs may change this one"
        )
        .into()),
        (None, Some(size)) if size != len => {
            Err(format!("--size: {size} bytes, but {shown} has {len}, and keeps its size").into())
        }
        (None, _) => Ok(len),
    }
}

/// Two emulations of one file would overwrite each other's data. The lock ends with the process.
fn lock(path: &Path, file: &File) -> Result<(), Failure> {
    let shown = path.display();
    let attempt = || flock(file, FlockOperation::NonBlockingLockExclusive);
    match patiently(attempt, |error| *error == Errno::WOULDBLOCK) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => {
            Err(format!("{shown}: is used by another emulation or volume; end that one first")
                .into())
        }
        Err(error) => Err(format!(
            "{shown}: cannot be locked against other emulations: {error}; put it on another file \
             system"
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn open(config: &BackingConfig) -> Result<Arc<dyn Storage>, Failure> {
        super::open(config, 1 << 20)
    }

    #[test]
    fn a_disk_in_memory_is_as_large_as_its_device() {
        let size = |asked| open(&BackingConfig::Memory(asked)).expect("opened").size();
        assert_eq!((size(None), size(Some(5000))), (1 << 20, 5000));
    }

    fn config(path: &Path, size: Option<u64>, existing: bool) -> BackingConfig {
        BackingConfig::File { path: path.to_owned(), size, existing }
    }

    /// The sentence of a refusal, with the file as `d`.
    fn said(path: &Path, size: Option<u64>, existing: bool) -> String {
        match open(&config(path, size, existing)) {
            Ok(_) => panic!("opened"),
            Err(failure) => {
                failure.sentence().expect("a sentence").replace(path.to_str().expect("text"), "d")
            }
        }
    }

    #[test]
    fn a_file_is_made_grows_and_is_never_cut() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("d");
        let open = |size| open(&config(&path, size, false));
        assert_eq!(
            said(&path, None, false),
            "d: there is no such file; say how large to make it, such as --size 4G"
        );
        assert!(!path.exists());
        assert_eq!(open(Some(10_000)).map(|disk| disk.size()).ok(), Some(10_000));
        assert_eq!(
            said(&path, Some(9_999), false),
            "--size: 9999 bytes would cut d, which has 10000"
        );
        let disk = open(Some(20_000)).expect("extended");
        disk.write_at(19_999, b"x").expect("written");
        assert_eq!(disk.read_at(19_990, &mut [0; 100]).expect("read"), 10, "no label is seen");
        let used = "d: is used by another emulation or volume; end that one first";
        assert_eq!(said(&path, None, false), used);
        drop(disk);
        let bytes = fs::read(&path).expect("there");
        assert_eq!((bytes[10_000], bytes[19_999], bytes.len()), (0, b'x', 20_000 + 4096));
        let disk = open(None).expect("opened");
        assert_eq!(disk.size(), 20_000);
        assert_eq!(disk.read_vec(19_999, 1).expect("read"), b"x");
    }

    /// A process that was killed keeps its lock until its last requests to the disk have ended.
    #[test]
    fn n12_a_lock_that_is_given_back_soon_is_waited_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("d");
        let held = open(&config(&path, Some(10_000), false)).expect("made");
        let soon = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            drop(held);
        });
        assert!(open(&config(&path, None, false)).is_ok());
        soon.join().expect("no panic");
    }

    #[test]
    fn a_file_of_the_user_is_not_touched() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("d");
        for content in [vec![b'x'], vec![0; 4096], vec![b'x'; 100_000]] {
            fs::write(&path, &content).expect("written");
            let len = content.len() as u64;
            for size in [None, Some(1), Some(len), Some(1 << 20)] {
                assert_eq!(
                    said(&path, size, false),
                    format!(
                        "d: has {len} bytes that no emulated disk wrote, and would be overwritten; \
                         name another file, or say --existing if programs may change this one"
                    )
                );
            }
            assert!(fs::read(&path).expect("there") == content, "its bytes are its own");
            assert_eq!(
                said(&path, Some(len + 1), true),
                format!("--size: {} bytes, but d has {len}, and keeps its size", len + 1)
            );
            let disk = open(&config(&path, None, true)).expect("opened");
            assert_eq!(disk.size(), len);
            disk.write_at(0, b"y").expect("written");
            drop(disk);
            let after = fs::read(&path).expect("there");
            assert!(after[0] == b'y' && after[1..] == content[1..], "no label is added");
        }
        // A disk that was cut, or got more bytes, has no label at its end.
        let disk = dir.path().join("disk");
        drop(open(&config(&disk, Some(9000), false)).expect("made"));
        let file = OpenOptions::new().write(true).open(&disk).expect("opened");
        for len in [9000 + 4095, 9000 + 4097] {
            file.set_len(len).expect("cut");
            assert!(said(&disk, None, false).contains("that no emulated disk wrote"), "{len}");
        }
        assert_eq!(said(dir.path(), None, false), "d: is no regular file");
    }

    #[test]
    fn an_output_over_the_data_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, link) = (dir.path().join("d"), dir.path().join("run.trace"));
        let config = config(&path, Some(10_000), false);
        drop(open(&config).expect("made"));
        fs::hard_link(&path, &link).expect("linked");
        let refused = check_apart(&config, &link, "--trace").expect_err("refused");
        assert!(refused.sentence().expect("a sentence").starts_with("--trace: would overwrite"));
        assert!(check_apart(&config, &dir.path().join("other"), "--trace").is_ok());
    }
}
