//! Compressed inputs of a sort: who decompresses them, in which memory, and how much they may hold.
//!
//! One of them is decompressed by the thread that reads. Of several, some are decompressed at once, ahead
//! of that thread. All the memory for this is reserved before the rest is planned.

use std::io::{Cursor, Read};
use std::sync::Arc;

use crate::budget::Reservation;
use crate::run::input::SortInput;
use crate::run::packed::{UnpackCounts, Unpacked};
use crate::run::unpack_ahead::{BLOCK_BYTES, readers};
use crate::{Budget, Error, Result};

/// Decompressing several inputs at once takes at most this part of the memory.
const AT_ONCE_SHARE: u64 = 8;
/// The blocks that wait to be read take at most this part.
const BLOCKS_SHARE: u64 = 32;
/// Blocks that wait to be read, for each input that is decompressed at once.
const BLOCKS_MIN: u64 = 2;
const BLOCKS_MAX: u64 = 64;
/// Blocks of each of these inputs that are being filled or read.
const BLOCKS_IN_HAND: u64 = 2;
/// Memory for a pipe that turns out to be compressed when its turn comes, where it is no more than this
/// part of the free memory.
const PIPE_BYTES: u64 = (256 << 10) + (2 << 20);
const PIPE_SHARE: u64 = 16;
/// How much is read of an input to see how far it expands.
const FRONT_BYTES: u64 = 1 << 20;

/// The compressed inputs of a sort.
pub(super) struct Unpacking {
    /// Until all of them were read.
    _memory: Option<Reservation>,
    /// Place among the inputs, compressed size, and what was decompressed so far.
    packed: Vec<(usize, u64, Arc<UnpackCounts>)>,
    /// Bytes of the other inputs, where they are known.
    plain_bytes: Option<u64>,
    /// Memory to be left to pipes.
    pub(super) kept_bytes: u64,
}

impl Unpacking {
    /// Makes streams of the compressed ones of `inputs`. With `threads` of 1, they are decompressed by
    /// their reader.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn prepare(
        inputs: Vec<SortInput>,
        threads: usize,
        budget: &Budget,
    ) -> Result<(Vec<SortInput>, Unpacking)> {
        let decoder_bytes = inputs.iter().map(SortInput::unpack_memory_bytes).max().unwrap_or(0);
        let is_pipe = |input: &&SortInput| matches!(input, SortInput::Stream { .. });
        let pipes = inputs.iter().filter(is_pipe).count();
        let mut plain = Vec::new();
        let mut unpacked = Vec::new();
        for (place, input) in inputs.into_iter().enumerate() {
            match input {
                SortInput::Packed(input) => unpacked.push((place, input)),
                other => plain.push((place, other)),
            }
        }
        let sizes = plain.iter().map(|(_, input)| input.size());
        let plain_bytes = sizes.sum();
        let mut memory = None;
        let packed = unpacked.iter().map(|(place, input)| {
            (*place, input.packed_bytes().unwrap_or(0), Arc::clone(input.counts()))
        });
        let packed: Vec<_> = packed.collect();
        if !packed.is_empty() {
            let plan = AtOnce::new(decoder_bytes, packed.len(), threads, budget.free_bytes());
            memory = Some(budget.reserve(plan.memory_bytes(), "decompressing")?);
            plain.extend(plan.streams(unpacked));
            plain.sort_unstable_by_key(|(place, _)| *place);
        }
        // The first pipe was looked at before sizes are decided.
        let kept_bytes = if pipes > 1 && PIPE_BYTES <= budget.free_bytes() / PIPE_SHARE {
            PIPE_BYTES
        } else {
            0
        };
        let inputs = plain.into_iter().map(|(_, input)| input).collect();
        Ok((inputs, Unpacking { _memory: memory, packed, plain_bytes, kept_bytes }))
    }

    /// Bytes of all `inputs` if the compressed ones expand like the part that was read of them; `None`
    /// where there is a pipe. If nothing of them was read yet, the front of one is, and is put back.
    ///
    /// # Errors
    /// What reading it gives.
    pub(super) fn assumed_bytes(&self, inputs: &mut [SortInput]) -> Result<Option<u64>> {
        let Some(plain_bytes) = self.plain_bytes else { return Ok(None) };
        let seen = || {
            let counts = self.packed.iter().map(|(_, _, counts)| counts.bytes());
            counts.fold((0, 0), |sum, (packed, unpacked)| (sum.0 + packed, sum.1 + unpacked))
        };
        if seen().0 == 0
            && let Some((place, ..)) = self.packed.first()
            && let SortInput::Stream { name, reader } = &mut inputs[*place]
        {
            let mut front = Vec::new();
            let read = reader.by_ref().take(FRONT_BYTES).read_to_end(&mut front);
            read.map_err(|error| Error::reading(name, error))?;
            let rest = std::mem::replace(reader, Box::new(std::io::empty()));
            *reader = Box::new(Cursor::new(front).chain(rest));
        }
        let (packed, unpacked) = seen();
        let times = if packed == 0 { 1.0 } else { unpacked as f64 / packed as f64 };
        let stored: u64 = self.packed.iter().map(|(_, bytes, _)| *bytes).sum();
        Ok(Some(plain_bytes + (stored as f64 * times) as u64))
    }
}

/// How many inputs are decompressed at once, and how far ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AtOnce {
    decoder_bytes: u64,
    inputs: u64,
    /// Blocks that wait to be read; none where the reader decompresses.
    blocks: u64,
}

impl AtOnce {
    fn new(decoder_bytes: u64, count: usize, threads: usize, free_bytes: u64) -> Self {
        let block = BLOCK_BYTES as u64;
        let one = decoder_bytes + (BLOCKS_MIN + BLOCKS_IN_HAND) * block;
        let inputs = (free_bytes / AT_ONCE_SHARE / one).min(count.min(threads) as u64);
        if inputs < 2 {
            return AtOnce { decoder_bytes, inputs: 1, blocks: 0 };
        }
        let blocks = free_bytes / BLOCKS_SHARE / block;
        let blocks = blocks.clamp(BLOCKS_MIN * inputs, BLOCKS_MAX * inputs);
        AtOnce { decoder_bytes, inputs, blocks }
    }

    fn memory_bytes(self) -> u64 {
        let in_hand = if self.blocks > 0 { BLOCKS_IN_HAND * self.inputs } else { 0 };
        self.inputs * self.decoder_bytes + (self.blocks + in_hand) * BLOCK_BYTES as u64
    }

    /// The streams of `packed`, each with its place.
    fn streams(self, packed: Vec<(usize, Unpacked)>) -> impl Iterator<Item = (usize, SortInput)> {
        // Decompressors share what was reserved for them: no more are in use at once.
        let own = Budget::new(self.inputs * self.decoder_bytes);
        let (mut named, mut streams): (Vec<_>, Vec<Box<dyn Read + Send>>) = Default::default();
        for (place, mut input) in packed {
            input.set_budget(&own);
            named.push((place, input.name().to_owned()));
            streams.push(Box::new(input));
        }
        if self.blocks > 0 {
            let ahead = readers(streams, self.inputs as usize, self.blocks as usize);
            streams = ahead.into_iter().map(|reader| Box::new(reader) as _).collect();
        }
        let named = named.into_iter().zip(streams);
        named.map(|((place, name), reader)| (place, SortInput::Stream { name, reader }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_inputs_little_memory_or_one_thread_are_decompressed_by_their_reader() {
        let gzip = 256 << 10;
        for (count, threads, free) in [(1, 8, 1 << 30), (9, 1, 1 << 30), (9, 8, 16 << 20)] {
            let plan = AtOnce::new(gzip, count, threads, free);
            assert_eq!((plan.inputs, plan.blocks, plan.memory_bytes()), (1, 0, gzip));
        }
    }

    #[test]
    fn several_inputs_at_once_take_a_bounded_part_of_the_memory() {
        for free in (5..36).map(|log| 1u64 << log) {
            for decoder in [256 << 10, (256 << 10) + (8 << 20)] {
                for threads in [2, 3, 64] {
                    let plan = AtOnce::new(decoder, 1000, threads, free);
                    let most = (free / AT_ONCE_SHARE + free / BLOCKS_SHARE).max(decoder);
                    assert!(plan.memory_bytes() <= most, "{plan:?} of {free}");
                    assert!(plan.inputs as usize <= threads);
                }
            }
        }
        assert_eq!(AtOnce::new(256 << 10, 1000, 2, 1 << 30).inputs, 2);
    }
}
