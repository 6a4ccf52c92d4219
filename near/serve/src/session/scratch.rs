//! A session's space on the node's disk: files without a name, gone with their last handle, so that a
//! killed server leaves nothing.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use merganser_storage::file::{FileDirectory, FileStorage};

use super::{SessionError, SessionResult};

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// The bytes that one session may keep.
#[derive(Debug)]
pub(super) struct ScratchSpace {
    max_bytes: u64,
    used_bytes: AtomicU64,
}

impl ScratchSpace {
    pub(super) fn new(max_bytes: u64) -> Arc<Self> {
        Arc::new(ScratchSpace { max_bytes, used_bytes: AtomicU64::new(0) })
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> SessionResult<()> {
        let more = |used: u64| used.checked_add(bytes).filter(|used| *used <= self.max_bytes);
        match self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(_) => Err(SessionError::Failed(format!(
                "the session may keep {} bytes of results and blobs on this node, and they are used up",
                self.max_bytes
            ))),
        }
    }
}

/// Bytes that a session keeps, end to end.
pub(super) struct ScratchBytes {
    file: Arc<FileStorage>,
    space: Arc<ScratchSpace>,
    pub(super) bytes: u64,
}

impl ScratchBytes {
    /// The file.
    pub(super) fn storage(&self) -> Arc<FileStorage> {
        Arc::clone(&self.file)
    }

    /// Reads from `offset` on, up to the end.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let len = out.len().min(self.bytes.saturating_sub(offset) as usize);
        let mut done = 0;
        while done < len {
            match self.file.file().read_at(&mut out[done..len], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(len)
    }
}

impl Drop for ScratchBytes {
    fn drop(&mut self) {
        self.space.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes that are being written.
pub(super) struct ScratchWriter {
    kept: ScratchBytes,
    buffer: Vec<u8>,
}

impl ScratchWriter {
    pub(super) fn new(temp: &FileDirectory, space: &Arc<ScratchSpace>) -> SessionResult<Self> {
        let file = temp.create_unnamed_file().map_err(|e| no_room(&e))?;
        let kept = ScratchBytes { file, space: Arc::clone(space), bytes: 0 };
        Ok(ScratchWriter { kept, buffer: Vec::with_capacity(BUFFER_BYTES) })
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.kept.bytes + self.buffer.len() as u64
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> SessionResult<()> {
        while !bytes.is_empty() {
            let n = bytes.len().min(BUFFER_BYTES - self.buffer.len());
            self.buffer.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.buffer.len() == BUFFER_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> SessionResult<()> {
        self.kept.space.take(self.buffer.len() as u64)?;
        let at = self.kept.bytes;
        // Taken before it is written, so that it goes back however this ends.
        self.kept.bytes += self.buffer.len() as u64;
        self.kept.file.file().write_all_at(&self.buffer, at).map_err(|e| no_room(&e))?;
        self.buffer.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> SessionResult<ScratchBytes> {
        self.flush()?;
        Ok(self.kept)
    }
}

fn no_room(error: &io::Error) -> SessionError {
    SessionError::Failed(format!("this node can't keep results: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_reads_back_and_its_room_comes_back() {
        let dir = tempfile::tempdir().expect("a folder");
        let temp = FileDirectory::open(dir.path()).expect("there");
        let space = ScratchSpace::new(1 << 20);
        let mut writer = ScratchWriter::new(&temp, &space).expect("room");
        let bytes: Vec<u8> = (0..700_000_u32).map(|i| i as u8).collect();
        bytes.chunks(333).for_each(|chunk| writer.write(chunk).expect("room"));
        assert_eq!(writer.bytes(), 700_000);
        let kept = writer.finish().expect("room");
        assert_eq!((kept.bytes, space.used_bytes()), (700_000, 700_000));
        let mut out = vec![0; 1000];
        assert_eq!(kept.read(699_500, &mut out).expect("there"), 500);
        assert_eq!(out[..500], bytes[699_500..]);

        let mut second = ScratchWriter::new(&temp, &space).expect("room");
        let error = second.write(&bytes).and_then(|()| second.finish().map(|_| ()));
        assert!(matches!(error, Err(SessionError::Failed(_))), "700,000 twice are too many");
        assert_eq!(space.used_bytes(), 700_000);
        drop(kept);
        assert_eq!(space.used_bytes(), 0);
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 0, "no name");
    }
}
