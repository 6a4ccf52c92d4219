//! Many transfers of one storage at once.

use std::io;

use merganser_storage::{Buffer, Completions, Operation, Storage};

use crate::bytes::{PAGE, PageBytes};

/// Transfers in flight at once: beyond this a disk gains nothing, and each holds a block of memory.
pub(crate) const IN_FLIGHT: usize = 64;

/// Writes each block at its offset.
pub(crate) fn write_blocks<'a>(
    storage: &dyn Storage,
    blocks: impl Iterator<Item = (u64, &'a PageBytes)>,
) -> io::Result<()> {
    let completions = Completions::new();
    let clock = storage.clock();
    let (mut free, mut in_flight, mut first) = (Vec::new(), 0, None);
    let mut spare = Buffer::try_new(IN_FLIGHT * PAGE)?;
    for _ in 1..IN_FLIGHT {
        let rest = spare.split_off(PAGE);
        free.push(std::mem::replace(&mut spare, rest));
    }
    free.push(spare);
    let mut wait = |free: &mut Vec<Buffer>, in_flight: &mut usize| {
        let done = completions.wait(&*clock);
        *in_flight -= 1;
        free.extend(done.buffer);
        if let Err(error) = done.result {
            first.get_or_insert(error);
        }
    };
    for (offset, block) in blocks {
        while free.is_empty() {
            wait(&mut free, &mut in_flight);
        }
        let mut buffer = free.pop().expect("not empty");
        buffer.copy_from_slice(block);
        storage.submit(0, Operation::Write { offset, buffer }, &completions);
        in_flight += 1;
    }
    while in_flight > 0 {
        wait(&mut free, &mut in_flight);
    }
    first.map_or(Ok(()), Err)
}
