//! A short measurement of a disk.

use merganser_storage::{Buffer, Completions, Operation, Storage};

use crate::Result;

/// Bytes that are written and read to measure a disk.
const PROBE_BYTES: u64 = 32 << 20;

/// Bytes per second that `disk`, an empty storage, reads and writes.
pub(super) fn probe(disk: &dyn Storage) -> Result<(f64, f64)> {
    const STEP: u64 = 1 << 20;
    let clock = disk.clock();
    let completions = Completions::new();
    let mut buffers: Vec<Buffer> =
        (0..8).map(|_| Buffer::try_new(STEP as usize)).collect::<std::io::Result<_>>()?;
    let mut pass = |write: bool| -> Result<f64> {
        let (started, mut in_flight, mut failed) = (clock.now_ns(), 0, Ok(()));
        for offset in (0..PROBE_BYTES).step_by(STEP as usize).map(Some).chain([None; 8]) {
            if offset.is_none() || buffers.is_empty() {
                if in_flight == 0 {
                    break;
                }
                let done = completions.wait(&*clock);
                in_flight -= 1;
                buffers.extend(done.buffer);
                failed = failed.and(done.result.map(|_| ()));
            }
            let Some(offset) = offset else { continue };
            let buffer = buffers.pop().expect("just waited for");
            let operation = match write {
                true => Operation::Write { offset, buffer },
                false => Operation::Read { offset, buffer },
            };
            disk.submit(offset, operation, &completions);
            in_flight += 1;
        }
        failed?;
        Ok(PROBE_BYTES as f64 * 1e9 / (clock.now_ns() - started).max(1) as f64)
    };
    let write = pass(true)?;
    Ok((pass(false)?, write))
}
