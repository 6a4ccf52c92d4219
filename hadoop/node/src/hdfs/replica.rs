//! Where the files of a block are.
//!
//! ```text
//!   DIR/current/POOL/current/finalized/subdirA/subdirB/blk_ID                    the bytes
//!                                                      blk_ID_GENERATION.meta    their checksums
//!   A = bits 16 to 20 of the number, B = bits 8 to 12
//! ```
//!
//! A client names numbers and a pool, and never a path. Files are opened below the folder of the data without
//! following links ([`beneath`]), and only replicas that HDFS has finalized. An open file stays readable when the
//! balancer moves or deletes the replica.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Dir;
use rustix::io::Errno;

use super::{HdfsBlock, HdfsError, HdfsResult};
use crate::message::BadMessage;
use merganser_server::beneath;

/// The longest name of a pool, in bytes.
pub(super) const POOL_BYTES_MAX: usize = 255;

/// The folders of a DataNode (`dfs.datanode.data.dir`).
#[derive(Debug, Clone)]
pub struct DataDirs(Vec<PathBuf>);

/// Whether the process can read blocks in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderState {
    /// As far as it was looked at.
    Readable = 0,
    /// There is no such folder.
    Missing = 1,
    /// This process may not read it, or something in it.
    Denied = 2,
    /// No DataNode has ever used it.
    Unused = 3,
    /// The system failed to read it.
    Failed = 4,
    /// Another request waits for its disk.
    Waiting = 5,
}

impl FolderState {
    const ALL: [Self; 6] = {
        use FolderState::*;
        [Readable, Missing, Denied, Unused, Failed, Waiting]
    };

    pub(super) fn of_number(number: u8) -> HdfsResult<Self, BadMessage> {
        let found = FolderState::ALL.into_iter().find(|state| *state as u8 == number);
        found.ok_or_else(|| BadMessage(format!("there is no state {number} of folders")))
    }
}

/// The open files of a replica.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) data: File,
    pub(super) meta: File,
}

/// Whether `pool` can be the name of a block pool, and is one name in a folder.
pub(super) fn is_pool(pool: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !pool.is_empty()
        && pool.len() <= POOL_BYTES_MAX
        && !pool.starts_with('.')
        && pool.bytes().all(plain)
}

/// The folder of a block, below that of the data.
fn folder_of(pool: &str, id: i64) -> PathBuf {
    let (a, b) = (id >> 16 & 0x1f, id >> 8 & 0x1f);
    format!("current/{pool}/current/finalized/subdir{a}/subdir{b}").into()
}

impl DataDirs {
    /// Those at `dirs`, absolute paths. They are looked up at each block, so they may be mounted later.
    #[must_use]
    pub fn new(dirs: Vec<PathBuf>) -> Self {
        DataDirs(dirs)
    }

    /// The folders.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }

    /// Opens the replica of `block`, whose length is `length`.
    pub(super) fn open(&self, pool: &str, block: HdfsBlock, length: u64) -> HdfsResult<Replica> {
        let folder = folder_of(pool, block.id);
        let mut why = None;
        for dir in &self.0 {
            match open_in(dir, &folder, block, length) {
                Ok(replica) => return Ok(replica),
                // A folder with another generation says more than one without the block.
                Err(HdfsError::Replica { .. }) if why.is_some() => {}
                Err(error) => why = Some(error),
            }
        }
        Err(why.unwrap_or_else(|| missing(block, "no folder of this node has it")))
    }
}

/// Looks whether blocks can be read in `dir`. May wait for its disk.
pub(super) fn state_of(dir: &Path) -> FolderState {
    match look_at(dir) {
        Ok(true) => FolderState::Readable,
        Ok(false) => FolderState::Unused,
        Err(e) if e.kind() == io::ErrorKind::NotFound => FolderState::Missing,
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => FolderState::Denied,
        Err(_) => FolderState::Failed,
    }
}

/// Opens the folder of each pool and, if there are blocks, one of them. False if there is no place for pools.
fn look_at(dir: &Path) -> io::Result<bool> {
    let current = match beneath::open_folder(dir, "current".as_ref()) {
        Err(e) if e.kind() == io::ErrorKind::NotFound && dir.is_dir() => return Ok(false),
        opened => opened?,
    };
    for entry in Dir::read_from(current)? {
        let entry = entry?;
        if let Ok(pool) = entry.file_name().to_str()
            && pool.starts_with("BP-")
            && is_pool(pool)
        {
            open_a_block(dir, &Path::new("current").join(pool).join("current/finalized"), 2)?;
        }
    }
    Ok(true)
}

/// Opens the first block that is `depth` folders below `folder`, if the first folders lead to one.
fn open_a_block(dir: &Path, folder: &Path, depth: u32) -> io::Result<()> {
    // A file that has just been removed is no error.
    let there = |error: &io::Error| error.kind() != io::ErrorKind::NotFound;
    let opened = match beneath::open_folder(dir, folder) {
        Ok(opened) => opened,
        Err(e) => return if there(&e) { Err(e) } else { Ok(()) },
    };
    let prefix = if depth > 0 { "subdir" } else { "blk_" };
    for entry in Dir::read_from(opened)? {
        let entry = entry?;
        // Those of checksums, which are called `.meta`, may be readable although the blocks are not.
        let wanted = |name: &&str| name.starts_with(prefix) && !name.ends_with(".meta");
        let Some(name) = entry.file_name().to_str().ok().filter(wanted) else { continue };
        let below = folder.join(name);
        if depth > 0 {
            return open_a_block(dir, &below, depth - 1);
        }
        return match beneath::open_file(dir, &below) {
            Err(e) if there(&e) => Err(e),
            _ => Ok(()),
        };
    }
    Ok(())
}

fn missing(block: HdfsBlock, detail: impl Into<String>) -> HdfsError {
    HdfsError::Replica { block, detail: detail.into() }
}

fn open_in(dir: &Path, folder: &Path, block: HdfsBlock, length: u64) -> HdfsResult<Replica> {
    let path = folder.join(format!("blk_{}", block.id));
    let data = beneath::open_file(dir, &path).map_err(|e| opening(block, e))?;
    let found = data.metadata().map_err(|e| opening(block, e))?.len();
    let path = folder.join(format!("{block}.meta"));
    let meta = match beneath::open_file(dir, &path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(match generation_in(dir, folder, block.id) {
                Some(found) => HdfsError::Generation { block, found },
                None => missing(block, "its .meta file is missing"),
            });
        }
        Err(e) => return Err(opening(block, e)),
    };
    if found != length {
        return Err(HdfsError::Length { block, expected: length, found });
    }
    Ok(Replica { data, meta })
}

/// The generation stamp of the block's checksums in `folder`.
fn generation_in(dir: &Path, folder: &Path, id: i64) -> Option<i64> {
    let folder = beneath::open_folder(dir, folder).ok()?;
    let prefix = format!("blk_{id}_");
    let generation = |name: &str| name.strip_prefix(&prefix)?.strip_suffix(".meta")?.parse().ok();
    let entries = Dir::read_from(folder).ok()?.filter_map(|entry| entry.ok());
    entries.into_iter().find_map(|entry| generation(entry.file_name().to_str().ok()?))
}

/// Why a file of a block can't be opened.
fn opening(block: HdfsBlock, error: io::Error) -> HdfsError {
    match error.kind() {
        io::ErrorKind::NotFound => missing(block, "no folder of this node has it"),
        io::ErrorKind::PermissionDenied => {
            let detail = match error.get_ref() {
                Some(refusal) => refusal.to_string(),
                None => "this process may not read it; run it as the DataNode's user".to_owned(),
            };
            missing(block, detail)
        }
        _ if matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE)) => {
            HdfsError::Busy { what: "no more files can be opened".to_owned() }
        }
        _ => HdfsError::Io { block, offset: 0, source: error },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const POOL: &str = "BP-1-127.0.0.1-2";
    const BLOCK: HdfsBlock = HdfsBlock { id: 0x4000_0000 | 3 << 16 | 0xff05, generation: 1001 };

    fn folder(root: &Path) -> PathBuf {
        let folder = root.join(folder_of(POOL, BLOCK.id));
        fs::create_dir_all(&folder).expect("made");
        folder
    }

    fn write(folder: &Path, generation: i64, len: usize) {
        fs::write(folder.join(format!("blk_{}", BLOCK.id)), vec![7; len]).expect("written");
        let meta = folder.join(format!("blk_{}_{generation}.meta", BLOCK.id));
        fs::write(meta, b"meta").expect("written");
    }

    #[test]
    fn places_are_those_of_hadoop() {
        // DatanodeUtil.idToBlockDir: five bits each.
        let place =
            |id| folder_of("P", id).to_str().expect("text").replace("current/P/current/", "");
        assert_eq!(place(1_073_741_825), "finalized/subdir0/subdir0");
        assert_eq!(place(0x4000_0000 + (33 << 16) + (2 << 8)), "finalized/subdir1/subdir2");
        assert_eq!(place(-1), "finalized/subdir31/subdir31");
    }

    #[test]
    fn a_replica_is_found_in_any_folder_and_by_all_its_numbers() {
        let root = tempfile::tempdir().expect("a folder");
        let dirs: Vec<_> = ["a", "b", "missing"].map(|name| root.path().join(name)).to_vec();
        fs::create_dir_all(&dirs[0]).expect("made");
        write(&folder(&dirs[1]), 1001, 10);
        let all = DataDirs::new(dirs.clone());
        all.open(POOL, BLOCK, 10).expect("there");
        let open =
            |dirs: &DataDirs, block, length| dirs.open(POOL, block, length).expect_err("refused");
        assert!(matches!(open(&all, BLOCK, 11), HdfsError::Length { found: 10, .. }));
        let newer = HdfsBlock { generation: 1002, ..BLOCK };
        assert!(matches!(open(&all, newer, 10), HdfsError::Generation { found: 1001, .. }));
        let other = HdfsBlock { id: BLOCK.id + 1, ..BLOCK };
        assert!(matches!(open(&all, other, 10), HdfsError::Replica { .. }));
        // A leftover of an older generation in another folder does not hide the replica.
        write(&folder(&dirs[0]), 1000, 3);
        all.open(POOL, BLOCK, 10).expect("there");
        fs::remove_file(folder(&dirs[1]).join(format!("{BLOCK}.meta"))).expect("removed");
        let told = open(&DataDirs::new(vec![dirs[1].clone()]), BLOCK, 10).to_string();
        assert!(told.ends_with("its .meta file is missing"), "{told}");
        assert!(matches!(open(&DataDirs::new(vec![]), BLOCK, 10), HdfsError::Replica { .. }));
    }

    #[test]
    fn links_and_folders_are_no_replicas() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = folder(root.path());
        write(&folder, 1001, 10);
        let data = folder.join(format!("blk_{}", BLOCK.id));
        let (dirs, secret) =
            (DataDirs::new(vec![root.path().to_owned()]), root.path().join("secret"));
        fs::rename(&data, &secret).expect("moved");
        symlink(&secret, &data).expect("made");
        let told = dirs.open(POOL, BLOCK, 10).expect_err("a link").to_string();
        assert!(told.contains("is a link"), "{told}");
        fs::remove_file(&data).expect("removed");
        fs::create_dir(&data).expect("made");
        let told = dirs.open(POOL, BLOCK, 10).expect_err("a folder").to_string();
        assert!(told.contains("no regular file"), "{told}");
    }

    #[test]
    fn folders_are_looked_at() {
        let root = tempfile::tempdir().expect("a folder");
        let dir = root.path();
        assert_eq!(state_of(&dir.join("gone")), FolderState::Missing);
        assert_eq!(state_of(dir), FolderState::Unused);
        fs::create_dir(dir.join("current")).expect("made");
        assert_eq!(state_of(dir), FolderState::Readable, "without blocks");
        // A pool that is being made.
        fs::create_dir(dir.join("current").join(POOL)).expect("made");
        assert_eq!(state_of(dir), FolderState::Readable, "without a folder for blocks");
        write(&folder(dir), 1001, 10);
        assert_eq!(state_of(dir), FolderState::Readable);
        fs::write(dir.join("file"), "").expect("written");
        assert_eq!(state_of(&dir.join("file")), FolderState::Failed);
        // Links aren't followed for maps either.
        let finalized = dir.join("current").join(POOL).join("current/finalized");
        fs::rename(&finalized, dir.join("elsewhere")).expect("moved");
        symlink(dir.join("elsewhere"), &finalized).expect("made");
        assert_eq!(state_of(dir), FolderState::Denied);
        for state in FolderState::ALL {
            assert_eq!(FolderState::of_number(state as u8), Ok(state));
        }
        FolderState::of_number(6).expect_err("no state");
    }

    #[test]
    fn pools_are_plain_names() {
        assert!(is_pool(POOL) && is_pool("BP_1"));
        for bad in ["", ".", "..", "a/b", "a\0", ".hidden", "a b", &"x".repeat(256)] {
            assert!(!is_pool(bad), "{bad:?}");
        }
    }
}
