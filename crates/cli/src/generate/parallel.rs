//! Every thread makes blocks; they leave in order.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

use crate::failure::Stopped;
use merganser_generate::Generator;
use sort::Progress;
use storage::thread::spawn_or_run;

/// Bytes of a block, roughly: large enough that a write costs nothing besides its bytes, small
/// enough that a block is still in the cache when it is written.
const BLOCK_BYTES: u64 = 1 << 20;

/// Writes the records `numbers` of `generator`, its header first when they begin at 0, with
/// `threads` threads. Returns the number of bytes.
///
/// The bytes do not depend on `threads`.
///
/// # Errors
/// The first error of `out`; [`Stopped::Cancelled`] when `progress` is cancelled.
pub fn write(
    generator: &dyn Generator,
    numbers: Range<u64>,
    threads: usize,
    out: &mut (dyn Write + Send),
    progress: &dyn Progress,
) -> io::Result<u64> {
    let header = if numbers.start == 0 { generator.header() } else { b"" };
    out.write_all(header)?;
    let records_per_block = (BLOCK_BYTES / generator.record_bytes_mean()).max(1);
    let blocks = (numbers.end - numbers.start).div_ceil(records_per_block);
    let next = AtomicU64::new(0);
    let door = Door::new(out);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            spawn_or_run(scope, "generate", || {
                let mut bytes = Vec::new();
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    if block >= blocks || door.is_closed() {
                        return;
                    }
                    let start = numbers.start + block * records_per_block;
                    let end = numbers.end.min(start + records_per_block);
                    bytes.clear();
                    generator.records(start..end, &mut bytes);
                    if progress.cancelled() {
                        door.close(Stopped::Cancelled.into());
                    }
                    door.pass(block, &bytes);
                    progress.advance(bytes.len() as u64);
                }
            });
        }
    });
    door.finish().map(|bytes| bytes + header.len() as u64)
}

/// Lets blocks through in the order of their numbers, until a write fails.
struct Door<'a> {
    state: Mutex<DoorState<'a>>,
    moved: Condvar,
    closed: AtomicBool,
}

struct DoorState<'a> {
    out: &'a mut (dyn Write + Send),
    turn: u64,
    bytes: u64,
    error: Option<io::Error>,
}

impl<'a> Door<'a> {
    fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Door {
            state: Mutex::new(DoorState { out, turn: 0, bytes: 0, error: None }),
            moved: Condvar::new(),
            closed: AtomicBool::new(false),
        }
    }

    fn pass(&self, block: u64, bytes: &[u8]) {
        let mut state = self.state.lock().expect("no writer panics");
        while state.turn != block && state.error.is_none() {
            state = self.moved.wait(state).expect("no writer panics");
        }
        if state.error.is_none() {
            match state.out.write_all(bytes) {
                Ok(()) => {
                    state.turn += 1;
                    state.bytes += bytes.len() as u64;
                    self.moved.notify_all();
                }
                Err(error) => {
                    drop(state);
                    self.close(error);
                }
            }
        }
    }

    /// Closes for good; the first reason stays.
    fn close(&self, reason: io::Error) {
        self.closed.store(true, Ordering::Relaxed);
        self.state.lock().expect("no writer panics").error.get_or_insert(reason);
        self.moved.notify_all();
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn finish(self) -> io::Result<u64> {
        let state = self.state.into_inner().expect("no writer panics");
        match state.error {
            Some(error) => Err(error),
            None => Ok(state.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Csv, Gensort, Kind, Lines};
    use super::*;
    use crate::progress::Silent;
    use crate::signals::Cancel;

    fn generators() -> Vec<Box<dyn Generator>> {
        vec![
            Box::new(Gensort::new(Kind::Binary, 100, true, 0)),
            Box::new(Gensort::new(Kind::Ascii, 4096, false, 2)),
            Box::new(Lines::new(0)),
            Box::new(Csv::new(1)),
        ]
    }

    fn written(generator: &dyn Generator, numbers: Range<u64>, threads: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let silent = Silent(Cancel::default());
        let bytes =
            write(generator, numbers, threads, &mut out, &silent).expect("a vector takes all");
        assert_eq!(bytes, out.len() as u64);
        out
    }

    #[test]
    fn threads_do_not_change_the_bytes() {
        for generator in generators() {
            let numbers = 0..(3 * BLOCK_BYTES / generator.record_bytes_mean() + 17);
            let mut serial = generator.header().to_vec();
            generator.records(numbers.clone(), &mut serial);
            for threads in [1, 2, 5] {
                assert!(
                    written(&*generator, numbers.clone(), threads) == serial,
                    "{threads} threads"
                );
            }
        }
    }

    #[test]
    fn parts_made_apart_join_to_the_whole() {
        for generator in generators() {
            let mut parts = written(&*generator, 0..123, 2);
            parts.extend(written(&*generator, 123..1000, 2));
            assert!(parts == written(&*generator, 0..1000, 2));
            assert!(written(&*generator, 5..5, 2).is_empty());
        }
    }

    #[test]
    fn the_first_failed_write_ends_it() {
        struct Full(u64);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                if self.0 < bytes.len() as u64 {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                self.0 -= bytes.len() as u64;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let generator = Lines::new(0);
        let silent = Silent(Cancel::default());
        let error = write(&generator, 0..u64::MAX, 3, &mut Full(5 * BLOCK_BYTES), &silent);
        assert_eq!(error.expect_err("full").kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_cancelled_generation_stops() {
        let cancel = Cancel::default();
        cancel.set(libc::SIGINT);
        let error = write(&Lines::new(0), 0..u64::MAX, 2, &mut Vec::new(), &Silent(cancel));
        assert_eq!(Stopped::of(&error.expect_err("cancelled")), Some(Stopped::Cancelled));
    }
}
