//! A stream that is compressed on its way out, in blocks, by several threads.
//!
//! ```text
//!   bytes ─► │block│block│…│ one for each thread ─► compressed at once ─► members or frames, in order
//! ```
//!
//! Each block of 1 MiB becomes a member of gzip or a frame of Zstandard, and files of both may have any number of these.
//! So the bytes depend on the content alone, and not on how many threads there are or how it was cut into writes.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use merganser_storage::thread::spawn_or_run;

use crate::run::magic::Codec;

/// Bytes of a block. With less, a file grows: windows end at its borders.
const BLOCK_BYTES: usize = 1 << 20;
/// Blocks that are compressed at once, at most: each takes its bytes and what they become.
const THREADS_MAX: usize = 4;
/// The levels of `gzip` and `zstd` without options.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// Compresses what is written through it.
pub struct Compressed {
    codec: Codec,
    threads: usize,
    /// The last one is being filled.
    blocks: Vec<Vec<u8>>,
    any: bool,
}

impl Compressed {
    /// In the form of `codec`, by up to `threads` threads. `None` if nothing is written in this form.
    #[must_use]
    pub fn new(codec: Codec, threads: usize) -> Option<Self> {
        matches!(codec, Codec::Gzip | Codec::Zstd).then(|| Compressed {
            codec,
            threads: threads.clamp(1, THREADS_MAX),
            blocks: Vec::new(),
            any: false,
        })
    }

    /// Takes the next bytes; full blocks go to `out`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&mut self, mut bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.blocks.last().is_none_or(|block| block.len() == BLOCK_BYTES) {
                if self.blocks.len() == self.threads {
                    self.pass_on(out)?;
                }
                self.blocks.push(Vec::with_capacity(BLOCK_BYTES));
            }
            let block = self.blocks.last_mut().expect("one was added");
            let taken = bytes.len().min(BLOCK_BYTES - block.len());
            block.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Passes the rest on to `out`. Of nothing, there is a block of nothing: a file of no bytes is not compressed.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if !self.any && self.blocks.is_empty() {
            self.blocks.push(Vec::new());
        }
        self.pass_on(out)
    }

    fn pass_on(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let (codec, blocks) = (self.codec, std::mem::take(&mut self.blocks));
        let packed: Vec<io::Result<Vec<u8>>> = std::thread::scope(|scope| {
            let (first, others) = blocks.split_first().expect("there is a block");
            let others: Vec<_> = others
                .iter()
                .map(|block| spawn_or_run(scope, "compress", move || packed(codec, block)))
                .collect();
            let first = packed(codec, first);
            let others = others.into_iter().map(|other| match other.join() {
                Ok(packed) => packed,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(first).chain(others).collect()
        });
        self.any = true;
        packed.into_iter().try_for_each(|packed| out.write_all(&packed?))
    }
}

fn packed(codec: Codec, block: &[u8]) -> io::Result<Vec<u8>> {
    if codec == Codec::Gzip {
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
        packed.write_all(block)?;
        return packed.finish();
    }
    let mut packed = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
    packed.include_checksum(true)?;
    packed.set_pledged_src_size(Some(block.len() as u64))?;
    packed.write_all(block)?;
    packed.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;

    use merganser_storage::Storage;
    use merganser_storage::memory::MemoryStorage;

    use super::*;
    use crate::Budget;
    use crate::run::magic::ContentKind;
    use crate::run::packed::Unpacked;

    fn compressed(codec: Codec, threads: usize, bytes: &[u8], piece: usize) -> Vec<u8> {
        let mut writer = Compressed::new(codec, threads).expect("it is written");
        let mut out = Vec::new();
        for piece in bytes.chunks(piece) {
            writer.write(piece, &mut out).expect("memory");
        }
        writer.finish(&mut out).expect("memory");
        out
    }

    #[test]
    fn what_is_written_is_read_and_the_same_from_any_threads_and_pieces() {
        let bytes: Vec<u8> = (0..700_000_u32).flat_map(|n| (n % 77_777).to_be_bytes()).collect();
        for codec in [Codec::Gzip, Codec::Zstd] {
            for len in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, bytes.len()] {
                let bytes = &bytes[..len];
                let expected = compressed(codec, 1, bytes, 1 << 16);
                assert!(!expected.is_empty());
                for (threads, piece) in [(2, 1 << 20), (3, 333_333), (64, usize::MAX)] {
                    assert!(compressed(codec, threads, bytes, piece) == expected, "{len}");
                }
                let storage: Arc<dyn Storage> = MemoryStorage::from_bytes("out", &expected);
                let budget = Budget::new(64 << 20);
                let read = Unpacked::of_storage(&storage, ContentKind::Text, &budget);
                let mut found = Vec::new();
                let mut read = read.expect("reads").expect("it is compressed");
                read.read_to_end(&mut found).expect("reads");
                assert!(found == bytes, "{codec:?} {len}");
            }
        }
        assert!(Compressed::new(Codec::Xz, 1).is_none());
    }

    #[test]
    fn a_refused_write_is_an_error() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut writer = Compressed::new(Codec::Zstd, 1).expect("it is written");
        writer.write(&[0; BLOCK_BYTES], &mut Full).expect("nothing goes out yet");
        let error = writer.write(&[0], &mut Full).expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
