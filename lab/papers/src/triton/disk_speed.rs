//! How fast the disk is, through the same code that sorts: the measure that a sort's share of the
//! disk is taken of.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use merganser_storage::file::{FileDirectory, FileStorage};
use merganser_storage::{Buffer, Completions, Directory, Operation, Storage, StorageExt};

use crate::error::ExperimentError;
use crate::lab::Lab;

const PIECE_BYTES: usize = 1 << 20;
/// Pieces in flight.
const PIECES: usize = 8;

/// Bytes a second, one after the other from start to end, past the page cache where it can be.
#[derive(Debug, Clone, Copy)]
pub(super) struct DiskSpeed {
    /// With a sync at the end.
    pub write: f64,
    /// Of what was just written.
    pub read: f64,
}

/// Writes `bytes` into a file of `folder`, reads it, and removes it.
pub(super) fn measure(
    lab: &Lab<'_>,
    folder: &Path,
    bytes: u64,
) -> Result<DiskSpeed, ExperimentError> {
    const NAME: &str = "disk-speed";
    let bytes = bytes.next_multiple_of(PIECE_BYTES as u64);
    lab.progress.phase("disk speed", Some(2 * bytes));
    let run = || -> io::Result<DiskSpeed> {
        let folder = FileDirectory::open(folder)?;
        let file = folder.create_file(NAME)?;
        let write = rate(bytes, || {
            transfer(lab, &file, bytes, |offset, buffer| Operation::Write { offset, buffer })?;
            file.run(Operation::Sync).map(drop)
        })?;
        drop(file);
        let file = folder.open_file(NAME, false)?;
        let read = rate(bytes, || {
            transfer(lab, &file, bytes, |offset, buffer| Operation::Read { offset, buffer })
        })?;
        folder.remove(NAME)?;
        Ok(DiskSpeed { write, read })
    };
    let speed = run().map_err(ExperimentError::Storage)?;
    lab.check_cancelled()?;
    Ok(speed)
}

fn rate(bytes: u64, work: impl FnOnce() -> io::Result<()>) -> io::Result<f64> {
    let started = Instant::now();
    work()?;
    Ok(bytes as f64 / started.elapsed().as_secs_f64())
}

fn transfer(
    lab: &Lab<'_>,
    file: &Arc<FileStorage>,
    bytes: u64,
    operation: impl Fn(u64, Buffer) -> Operation,
) -> io::Result<()> {
    let completions = Completions::new();
    let mut spare: Vec<Buffer> = (0..PIECES).map(|_| Buffer::new(PIECE_BYTES)).collect();
    for buffer in &mut spare {
        // Zeros might be left out by the disk.
        buffer.iter_mut().enumerate().for_each(|(i, byte)| *byte = ((i * 193) >> 3) as u8);
    }
    let (mut offset, mut in_flight) = (0, 0);
    while offset < bytes || in_flight > 0 {
        while offset < bytes
            && !lab.progress.cancelled()
            && let Some(buffer) = spare.pop()
        {
            file.submit(0, operation(offset, buffer), &completions);
            offset += PIECE_BYTES as u64;
            in_flight += 1;
        }
        if in_flight == 0 {
            break;
        }
        let done = completions.wait(&*file.clock());
        done.result?;
        lab.progress.advance(PIECE_BYTES as u64);
        in_flight -= 1;
        spare.extend(done.buffer);
    }
    Ok(())
}
