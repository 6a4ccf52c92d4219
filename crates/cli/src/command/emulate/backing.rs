//! Where an emulated disk keeps its data.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use merganser_storage::file::{Direct, EngineChoice, FileOptions, FileStorage};
use merganser_storage::memory::MemoryStorage;
use merganser_storage::{Operation, Storage, StorageExt};
use rustix::fs::{FlockOperation, flock};

use crate::config::BackingConfig;
use crate::failure::Failure;

/// Opens the data, or makes them.
pub fn open(config: &BackingConfig) -> Result<Arc<dyn Storage>, Failure> {
    match config {
        BackingConfig::Memory(bytes) => {
            let storage = MemoryStorage::new("memory");
            storage
                .run(Operation::SetSize { size: *bytes })
                .map_err(|error| Failure::named(&error))?;
            Ok(storage)
        }
        BackingConfig::File(path, size) => file(path, *size),
    }
}

fn file(path: &Path, size: Option<u64>) -> Result<Arc<dyn Storage>, Failure> {
    let failed = |error: io::Error| Failure::on(path, &error);
    let found = match path.metadata() {
        Ok(found) => Some(found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    if let Some(found) = &found
        && !found.is_file()
    {
        return Err(format!("{}: is no regular file", path.display()).into());
    }
    let Some(size) = size.or(found.as_ref().map(|found| found.len())) else {
        return Err(format!(
            "{}: there is no such file; say how large to make it, such as --size 4G",
            path.display()
        )
        .into());
    };
    if size == 0 {
        return Err(
            format!("{}: is empty; say how large to make it with --size", path.display()).into()
        );
    }
    if let Some(found) = &found
        && found.len() > size
    {
        return Err(format!(
            "--size: {size} bytes would cut {}, which has {}",
            path.display(),
            found.len()
        )
        .into());
    }
    let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let file = open().map_err(failed)?;
    lock(path, &file)?;
    if found.is_none_or(|found| found.len() < size) {
        file.set_len(size).map_err(failed)?;
    }
    // Through the page cache, so that data are there as soon as the model wants them.
    let options =
        FileOptions { direct: Direct::Never, engine: EngineChoice::Auto, queue_depth: 256 };
    let name = path.display().to_string();
    let storage = FileStorage::from_file(file, name, true, options)
        .map_err(|error| Failure::named(&error))?;
    Ok(storage)
}

/// Two emulations of one file would overwrite each other's data. The lock ends with the process.
fn lock(path: &Path, file: &File) -> Result<(), Failure> {
    // A file system without locks refuses differently.
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => {
            Err(format!("{}: is used by another emulation; end that one first", path.display())
                .into())
        }
        _ => file.read_at(&mut [0], 0).map(|_| ()).map_err(|error| Failure::on(path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_grows_and_is_never_cut() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("d");
        let open = |size| open(&BackingConfig::File(path.clone(), size));
        let said = |size| match open(size) {
            Ok(_) => panic!("opened"),
            Err(failure) => {
                failure.sentence().expect("a sentence").replace(path.to_str().expect("text"), "d")
            }
        };
        assert_eq!(
            said(None),
            "d: there is no such file; say how large to make it, such as --size 4G"
        );
        assert_eq!(open(Some(10_000)).map(|disk| disk.size()).ok(), Some(10_000));
        assert_eq!(said(Some(9_999)), "--size: 9999 bytes would cut d, which has 10000");
        let disk = open(Some(20_000)).expect("extended");
        disk.write_at(19_999, b"x").expect("written");
        assert_eq!(said(None), "d: is used by another emulation; end that one first");
        drop(disk);
        assert_eq!(std::fs::read(&path).expect("there")[19_999], b'x');
    }
}
