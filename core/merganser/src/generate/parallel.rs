//! Every thread makes blocks; they leave in order.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use merganser_generate::Generator;
use merganser_results::stopped::Stopped;
use merganser_sort::pipeline::{Crew, FirstError, Stops, Turns};
use merganser_sort::{Error, Progress};

/// Bytes of a block, roughly: large enough that the overhead of a write is negligible, small enough
/// that a block is still in the cache when it is written.
const BLOCK_BYTES: u64 = 1 << 20;

/// Writes the records `numbers` of `generator`, its header first when they begin at 0, with
/// `threads` threads. Returns the number of bytes.
///
/// The bytes do not depend on `threads`.
///
/// # Errors
/// The first error of `out`; [`Stopped::Cancelled`] when `progress` is cancelled.
pub(crate) fn write(
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
    let outlet = BlockOutlet { turns: Turns::new((out, 0)), failed: FirstError::default() };
    std::thread::scope(|scope| {
        let crew = Crew::new(scope, &outlet);
        let work = || {
            let mut bytes = Vec::new();
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= blocks || outlet.failed.is_set() {
                    return Ok(());
                }
                let start = numbers.start + block * records_per_block;
                let end = numbers.end.min(start + records_per_block);
                bytes.clear();
                generator.records(start..end, &mut bytes);
                if progress.cancelled() {
                    return Err(Error::Cancelled);
                }
                let mut turn = outlet.turns.wait(block).ok_or(Error::Cancelled)?;
                if let Err(error) = turn.0.write_all(&bytes) {
                    turn.stop();
                    return Err(error.into());
                }
                turn.1 += bytes.len() as u64;
                drop(turn);
                progress.advance(bytes.len() as u64);
            }
        };
        for _ in 0..threads {
            crew.spawn_or_run("generate", work);
        }
    });
    match outlet.failed.into_result() {
        Ok(()) => Ok(outlet.turns.into_inner().1 + header.len() as u64),
        Err(Error::Io(error)) => Err(error),
        Err(_) => Err(Stopped::Cancelled.into()),
    }
}

/// The writer that receives the blocks, and the number of bytes that it has received.
struct BlockOutlet<'a> {
    turns: Turns<(&'a mut (dyn Write + Send), u64)>,
    failed: FirstError,
}

impl Stops for BlockOutlet<'_> {
    fn fail(&self, error: Error) {
        self.failed.note(error);
        self.turns.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Csv, Gensort, GensortKind, RandomLines};
    use super::*;
    use merganser_shell::progress::HiddenBar;
    use merganser_shell::signals::Cancel;

    fn generators() -> Vec<Box<dyn Generator>> {
        vec![
            Box::new(Gensort::new(GensortKind::Binary, 100, true, 0)),
            Box::new(Gensort::new(GensortKind::Ascii, 4096, false, 2)),
            Box::new(RandomLines::new(0)),
            Box::new(Csv::new(1)),
        ]
    }

    fn written(generator: &dyn Generator, numbers: Range<u64>, threads: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let silent = HiddenBar(Cancel::default());
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
        let generator = RandomLines::new(0);
        let silent = HiddenBar(Cancel::default());
        let error = write(&generator, 0..u64::MAX, 3, &mut Full(5 * BLOCK_BYTES), &silent);
        assert_eq!(error.expect_err("full").kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_cancelled_generation_stops() {
        let cancel = Cancel::default();
        cancel.set(libc::SIGINT);
        let error =
            write(&RandomLines::new(0), 0..u64::MAX, 2, &mut Vec::new(), &HiddenBar(cancel));
        assert_eq!(Stopped::of_error(&error.expect_err("cancelled")), Some(Stopped::Cancelled));
    }
}
