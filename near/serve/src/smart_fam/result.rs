//! The result of a call: in memory while it is short, in a file when it is longer.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::record::{CallOutcome, to_hex};
use super::{INLINE_MAX, part_file, rows_file};
use merganser_map::RowSink;
use merganser_map::ssdlet::SsdletError;

/// Takes the rows of a result.
pub(super) struct ResultSink {
    folder: PathBuf,
    name: String,
    keyed: bool,
    /// All of it, until there is a file.
    short: Vec<u8>,
    part: Option<PartialRows>,
    bytes: u64,
    crc: u32,
}

/// A file of rows that is being written. If it is dropped before it has its final name, it is removed.
struct PartialRows {
    folder: PathBuf,
    path: PathBuf,
    file: BufWriter<File>,
    stays: bool,
}

impl Drop for PartialRows {
    fn drop(&mut self) {
        if !self.stays {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl PartialRows {
    /// Makes the part of the file `name` in `folder`.
    fn new(folder: PathBuf, name: &str) -> io::Result<PartialRows> {
        let path = folder.join(part_file(name));
        // A part that a killed node left.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let flags = OFlags::NOFOLLOW.bits() as i32;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o644).custom_flags(flags);
        let file = BufWriter::new(options.open(&path)?);
        Ok(PartialRows { folder, path, file, stays: false })
    }

    /// Gives it its name.
    fn put(mut self, name: &str) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        let place = self.folder.join(name);
        fs::rename(&self.path, &place)?;
        self.path = place;
        File::open(&self.folder)?.sync_all()?;
        self.stays = true;
        Ok(())
    }
}

impl ResultSink {
    /// The result of request `id` of `client`, in `folder`.
    pub(super) fn new(folder: &Path, client: &str, id: u64) -> ResultSink {
        ResultSink {
            folder: folder.to_owned(),
            name: rows_file(client, id),
            keyed: false,
            short: Vec::new(),
            part: None,
            bytes: 0,
            crc: 0,
        }
    }

    /// Whether it has rows with keys, also if it has no rows.
    pub(super) fn set_keyed(&mut self, keyed: bool) {
        self.keyed = keyed;
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        if let Some(part) = &mut self.part {
            return part.file.write_all(bytes);
        }
        self.short.extend_from_slice(bytes);
        if self.short.len() <= INLINE_MAX {
            return Ok(());
        }
        let part = self.part.insert(PartialRows::new(self.folder.clone(), &self.name)?);
        part.file.write_all(&std::mem::take(&mut self.short))
    }

    /// Puts a file into its place, and gives the answer. Without it, nothing is left of the result.
    pub(super) fn finish(self) -> io::Result<CallOutcome> {
        let ResultSink { keyed, short, part, bytes, crc, name, .. } = self;
        let Some(part) = part else {
            return Ok(CallOutcome::Inline { keyed, hex: to_hex(&short) });
        };
        part.put(&name)?;
        Ok(CallOutcome::File { keyed, bytes, crc32c: crc })
    }
}

fn failed(error: &io::Error) -> SsdletError {
    SsdletError::Failed(format!("the result can't be written: {error}"))
}

impl RowSink for ResultSink {
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        let head = [(key.len() as u32).to_le_bytes(), (value.len() as u32).to_le_bytes()];
        for part in [head.as_flattened(), key, value] {
            self.take(part).map_err(|e| failed(&e))?;
        }
        Ok(true)
    }

    fn records(&mut self, records: &[u8]) -> Result<bool, SsdletError> {
        self.take(records).map_err(|e| failed(&e))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("there");
        entries.map(|e| e.expect("there").file_name().into_string().expect("text")).collect()
    }

    /// The process of the test below; its files can't be longer than 68 KiB.
    #[test]
    fn results_on_a_full_disk() {
        let Ok(folder) = std::env::var("MERGANSER_TEST_RESULTS") else { return };
        let folder = Path::new(&folder);
        // No room for the first bytes, for those that follow, and for the last ones, which a buffer has until the end.
        let cases = [(vec![70], false), (vec![66, 66], false), (vec![66, 3], true)];
        for (pieces, is_taken) in cases {
            let mut sink = ResultSink::new(folder, "c", 1);
            let taken = pieces.iter().all(|kib| sink.records(&vec![b'x'; kib << 10]).is_ok());
            assert_eq!(taken, is_taken, "{pieces:?}");
            if taken {
                assert_eq!(names(folder), [".c.1.rows.part"]);
                sink.finish().expect_err("no room");
            } else {
                drop(sink);
            }
            assert_eq!(names(folder), [""; 0], "{pieces:?}");
        }
    }

    #[test]
    fn a_result_that_fails_leaves_no_part() {
        let dir = tempfile::tempdir().expect("made");
        let this = std::env::current_exe().expect("this test");
        let limited = "trap '' XFSZ; ulimit -f 68 || exit 9; exec \"$0\" --exact smart_fam::result::tests::results_on_a_full_disk";
        let mut command = Command::new("bash");
        command.args(["-c", limited]).arg(this).env("MERGANSER_TEST_RESULTS", dir.path());
        let output = command.output().expect("bash");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        // Its place is taken.
        fs::create_dir(dir.path().join("c.1.rows")).expect("made");
        let mut sink = ResultSink::new(dir.path(), "c", 1);
        sink.records(&[b'x'; 66 << 10]).expect("there is room");
        sink.finish().expect_err("no file can have this name");
        assert_eq!(names(dir.path()), ["c.1.rows"]);
    }
}
