//! The label behind the data of an emulated disk: it says that the file is one.
//!
//! ```text
//!   0 ────────── the disk, byte for byte ────────── bytes ── label, 4096 bytes ── end of the file
//! ```
//!
//! A file with content but without a label is not a disk, and is not written to. The label is
//! text, padded with zeros, and has exactly one form for its values, so that anything else is no label.
//! docs/lab/emulate.md describes it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of a label.
pub(super) const LABEL_BYTES: u64 = 4096;

/// The label of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DiskLabel {
    /// Bytes of the disk. All of them are before the label.
    pub bytes: u64,
    /// Where a smaller disk ended whose label is still there: it becomes zeros.
    pub clear: Option<u64>,
}

impl DiskLabel {
    /// The label at the end of `file`, which has `len` bytes; `None` if it has none.
    ///
    /// # Errors
    /// The system's own.
    pub(super) fn read(file: &File, len: u64) -> io::Result<Option<DiskLabel>> {
        let Some(bytes) = len.checked_sub(LABEL_BYTES) else { return Ok(None) };
        let mut found = [0; LABEL_BYTES as usize];
        file.read_exact_at(&mut found, bytes)?;
        Ok(Self::decode(&found).filter(|label| label.bytes == bytes))
    }

    /// Makes `file` a disk of `bytes` bytes, durably. `had` is the size of the disk that it was before,
    /// which is smaller.
    ///
    /// A kill leaves the old label or the new one: each is written by one call, and the new one says
    /// where the old one is until that has become zeros.
    ///
    /// # Errors
    /// The system's own.
    pub(super) fn write(file: &File, bytes: u64, had: Option<u64>) -> io::Result<()> {
        let label = DiskLabel { bytes, clear: had };
        file.write_all_at(&label.encode(), bytes)?;
        file.sync_all()?;
        label.finish(file)
    }

    /// Clears what is left of an earlier label.
    ///
    /// # Errors
    /// The system's own.
    pub(super) fn finish(self, file: &File) -> io::Result<()> {
        let Some(at) = self.clear else { return Ok(()) };
        let zeros = [0; LABEL_BYTES as usize];
        let len = self.bytes.saturating_sub(at).min(LABEL_BYTES);
        file.write_all_at(&zeros[..len as usize], at)?;
        file.sync_all()?;
        let whole = DiskLabel { clear: None, ..self };
        file.write_all_at(&whole.encode(), self.bytes)?;
        file.sync_all()
    }

    fn encode(self) -> [u8; LABEL_BYTES as usize] {
        let DiskLabel { bytes, clear } = self;
        let mut text = format!("merganser emulated disk 1\nbytes {bytes}\n");
        if let Some(at) = clear {
            text.push_str(&format!("clear {at}\n"));
        }
        let mut out = [0; LABEL_BYTES as usize];
        out[..text.len()].copy_from_slice(text.as_bytes());
        out
    }

    fn decode(found: &[u8; LABEL_BYTES as usize]) -> Option<DiskLabel> {
        let end = found.iter().position(|&byte| byte == 0)?;
        let text = std::str::from_utf8(&found[..end]).ok()?;
        let mut lines = text.lines().skip(1);
        let bytes = lines.next()?.strip_prefix("bytes ")?.parse().ok()?;
        let clear = match lines.next() {
            Some(line) => Some(line.strip_prefix("clear ")?.parse().ok()?),
            None => None,
        };
        let label = DiskLabel { bytes, clear };
        (label.encode() == *found).then_some(label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_one_form() {
        let label = DiskLabel { bytes: 40_000_000_000, clear: None };
        let bytes = label.encode();
        let text = "merganser emulated disk 1\nbytes 40000000000\n";
        assert_eq!(bytes[..text.len()], *text.as_bytes());
        assert!(bytes[text.len()..].iter().all(|&byte| byte == 0));
        let growing = DiskLabel { bytes: 20, clear: Some(10) };
        assert_eq!(growing.encode()[..43], *b"merganser emulated disk 1\nbytes 20\nclear 10");
        for label in [label, growing] {
            let bytes = label.encode();
            assert_eq!(DiskLabel::decode(&bytes), Some(label));
            // No byte of it may be another.
            for at in (0..60).chain([4095]) {
                let mut other = bytes;
                other[at] ^= 1;
                assert_ne!(DiskLabel::decode(&other), Some(label), "byte {at}");
            }
        }
        for other in
            ["", "merganser emulated disk 1\nbytes 010\n", "merganser emulated disk 2\nbytes 1\n"]
        {
            let mut bytes = [0; LABEL_BYTES as usize];
            bytes[..other.len()].copy_from_slice(other.as_bytes());
            assert_eq!(DiskLabel::decode(&bytes), None, "{other}");
        }
        assert_eq!(DiskLabel::decode(&[b'1'; LABEL_BYTES as usize]), None);
    }

    /// After each step of growing, the file is a disk whose old bytes are there and whose others are zeros.
    #[test]
    fn a_disk_grows_whatever_stops_it() {
        for (had, bytes) in [(10_000, 20_000), (10_000, 10_001), (10_000, 14_096), (5, 14_097)] {
            for stopped in [false, true] {
                let file = tempfile::tempfile().expect("a file");
                DiskLabel::write(&file, had, None).expect("made");
                file.write_all_at(&vec![7; had as usize], 0).expect("written");
                if stopped {
                    let growing = DiskLabel { bytes, clear: Some(had) };
                    file.write_all_at(&growing.encode(), bytes).expect("written");
                    let len = file.metadata().expect("there").len();
                    let label = DiskLabel::read(&file, len).expect("read").expect("a label");
                    label.finish(&file).expect("written");
                } else {
                    DiskLabel::write(&file, bytes, Some(had)).expect("grown");
                }
                let len = file.metadata().expect("there").len();
                assert_eq!(len, bytes + LABEL_BYTES);
                let label = DiskLabel::read(&file, len).expect("read");
                assert_eq!(label, Some(DiskLabel { bytes, clear: None }));
                let mut all = vec![1; bytes as usize];
                file.read_exact_at(&mut all, 0).expect("read");
                assert!(all[..had as usize].iter().all(|&byte| byte == 7), "{had} {bytes}");
                assert!(all[had as usize..].iter().all(|&byte| byte == 0), "{had} {bytes}");
            }
        }
    }
}
