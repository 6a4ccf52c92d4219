//! The contents of the files of a pipeline: their bytes, and a checksum. The process that continues the work
//! compares it, and so knows that the files are as they were left.
//!
//! | | checksum |
//! |---|---|
//! | a file | CRC32C of its bytes |
//! | a folder with nothing but the file `out` | that of `out` |
//! | any other folder | CRC32C of its entries, in the order of their names |
//! | an entry | its name, a zero byte, `f` for a file, `d` for a folder, `l` for a link or `o`; bytes (u64) and checksum (u32) of what it is, little-endian |
//!
//! A link counts as no bytes, and its checksum is that of its text.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::folder::OUT_NAME;
use merganser_results::pipeline::LEVELS_MAX;

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// The content of a file, or of a folder with all that is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FolderContent {
    /// Bytes of the files.
    pub(super) bytes: u64,
    /// Their checksum.
    pub(super) crc: u32,
}

impl FolderContent {
    /// Looks at what is at `path`.
    ///
    /// # Errors
    /// The system's own; folders in folders without an end.
    pub(super) fn of_path(path: &Path) -> io::Result<Self> {
        level(path, LEVELS_MAX, false)
    }

    /// The same, and syncs it.
    ///
    /// # Errors
    /// As [`FolderContent::of_path`].
    pub(super) fn synced(path: &Path) -> io::Result<Self> {
        level(path, LEVELS_MAX, true)
    }

    /// The next bytes of all that `input` gives.
    fn and(self, input: &mut impl Read) -> io::Result<Self> {
        let mut content = self;
        copy_into(input, &mut io::sink(), &mut content)?;
        Ok(content)
    }

    /// The first `bytes` of a file.
    ///
    /// # Errors
    /// The system's own.
    pub(super) fn of_start(path: &Path, bytes: u64) -> io::Result<Self> {
        FolderContent::default().and(&mut careful().open(path)?.take(bytes))
    }
}

/// Copies all that `input` gives, and adds it to `content`.
///
/// # Errors
/// Those of both.
pub(super) fn copy_into(
    input: &mut impl Read,
    output: &mut impl io::Write,
    content: &mut FolderContent,
) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        output.write_all(read)?;
        content.bytes += read.len() as u64;
        content.crc = crc32c::crc32c_append(content.crc, read);
    }
}

/// A stage may have made files of any kind.
fn careful() -> fs::OpenOptions {
    let mut how = File::options();
    how.read(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    how
}

fn level(path: &Path, levels: u32, sync: bool) -> io::Result<FolderContent> {
    let found = path.symlink_metadata()?;
    if found.is_symlink() {
        let text = fs::read_link(path)?;
        return Ok(FolderContent { bytes: 0, crc: crc32c::crc32c(text.as_os_str().as_bytes()) });
    }
    if !found.is_file() && !found.is_dir() {
        return Ok(FolderContent::default());
    }
    let mut file = careful().open(path)?;
    let content = match found.is_dir() {
        true => folder(path, levels, sync)?,
        false => FolderContent::default().and(&mut file)?,
    };
    if sync {
        file.sync_all()?;
    }
    Ok(content)
}

fn folder(path: &Path, levels: u32, sync: bool) -> io::Result<FolderContent> {
    let Some(levels) = levels.checked_sub(1) else {
        let text = format!("more than {LEVELS_MAX} levels of folders");
        return Err(io::Error::other(text));
    };
    let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut all = FolderContent::default();
    for entry in &entries {
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let found = level(&entry.path(), levels, sync)?;
        if entries.len() == 1 && kind.is_file() && name == OUT_NAME {
            return Ok(found);
        }
        let kind = match () {
            () if kind.is_file() => b'f',
            () if kind.is_dir() => b'd',
            () if kind.is_symlink() => b'l',
            () => b'o',
        };
        let line =
            [name.as_bytes(), &[0, kind], &found.bytes.to_le_bytes(), &found.crc.to_le_bytes()];
        all.bytes += found.bytes;
        all.crc = crc32c::crc32c_append(all.crc, &line.concat());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_change_of_a_tree_is_another_content() {
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(name);
        let content = || FolderContent::of_path(place.path()).expect("read");
        fs::write(at(OUT_NAME), b"abc").expect("written");
        assert_eq!(content(), FolderContent { bytes: 3, crc: crc32c::crc32c(b"abc") });
        assert_eq!(content(), FolderContent::of_path(&at(OUT_NAME)).expect("read"));
        assert_eq!(content(), FolderContent::synced(place.path()).expect("synced"));
        let mut seen = vec![content().crc];
        let mut is_new = |what: &str| {
            let found = content();
            assert!(!seen.contains(&found.crc), "{what}");
            seen.push(found.crc);
            assert_eq!(found, content(), "{what}");
        };
        fs::write(at("b"), b"").expect("written");
        is_new("a new empty file");
        fs::rename(at("b"), at("c")).expect("renamed");
        is_new("another name");
        fs::remove_file(at("c")).expect("removed");
        fs::create_dir(at("c")).expect("made");
        is_new("a folder in its place");
        fs::write(at("c/d"), b"12").expect("written");
        is_new("a file in the folder");
        fs::write(at("c/d"), b"13").expect("written");
        is_new("another byte");
        symlink("x", at("e")).expect("linked");
        is_new("a link");
        fs::remove_file(at("e")).expect("removed");
        symlink("y", at("e")).expect("linked");
        is_new("another link");
        assert_eq!(
            FolderContent::of_start(&at(OUT_NAME), 2).expect("read").crc,
            crc32c::crc32c(b"ab")
        );
    }
}
