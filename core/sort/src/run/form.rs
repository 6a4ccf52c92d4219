//! A chunk becomes a run: tags out, tags sorted, records gathered in tag order into write buffers.
//!
//! ```text
//!   chunk ──spans──► extract (all cores) ──tags──► sort ──► order ties ──► gather ──► pieces
//!          per input byte:  read 1, write 16/len       move 16/len a pass        read 1, write 1
//! ```
//!
//! `extract` makes the tags, `radix` and `ties` sort them, and `gather` moves the records.

use merganser_storage::Buffer;

use super::chunk::Chunk;
use super::chunk_view::{ChunkView, ENTRY_HEAD_BYTES};
use super::extract::{ChunkResume, Extraction, learn_alphabet};
use super::gather::SortedTags;
use super::long::LongRecords;
use super::tag::Tag;
use super::ties::{Tagged, sort_tagged};
use super::word::KeyAlphabet;
use crate::budget::Reservation;
use crate::key::Order;
use crate::record::with_framing;
use crate::{Budget, Result};

/// Bytes of one tag.
pub(crate) const TAG_BYTES: usize = size_of::<Tag>();

/// The memory in which chunks are sorted, used again for every chunk.
pub(crate) struct SortMemory {
    budget: Budget,
    /// The reservation of `keys`, once they had to grow for one long key.
    grown: Option<Reservation>,
    tags: Buffer,
    scratch: Buffer,
    keys: Buffer,
    /// The alphabet of the chunk that is being sorted.
    alphabet: Option<KeyAlphabet>,
    /// The records of that chunk that are too long for a tag.
    long: LongRecords,
}

impl SortMemory {
    /// Room for tags and, for orders whose keys are encoded, for those; the caller has reserved it.
    /// A key that is longer than all of that takes its room from `budget`.
    pub(crate) fn new(tags: Buffer, scratch: Buffer, keys: Buffer, budget: &Budget) -> Self {
        assert_eq!(tags.len(), scratch.len());
        SortMemory {
            budget: budget.clone(),
            grown: None,
            tags,
            scratch,
            keys,
            alphabet: None,
            long: LongRecords::default(),
        }
    }

    /// Memory for tags, as much again, and memory for encoded keys.
    pub(crate) fn parts(&mut self) -> (&mut [Tag], &mut [Tag], &mut Buffer) {
        (as_tags(&mut self.tags), as_tags(&mut self.scratch), &mut self.keys)
    }

    /// Makes room for the encoded key of `record`, which alone was too long.
    fn grow(&mut self, order: &Order, record: &[u8]) -> Result<()> {
        let mut key = Vec::new();
        order.encode(record, &mut key);
        let need = (ENTRY_HEAD_BYTES + key.len()).next_multiple_of(4096);
        self.grown = None;
        self.grown = Some(self.budget.reserve(need as u64, "the key of one record")?);
        self.keys = Buffer::try_new(need)?;
        Ok(())
    }
}

/// Sorts `chunk` from `from` on (or from its start) with `threads` threads. With `unique`, only
/// the first of equal keys stays.
pub(crate) fn sort_chunk<'a>(
    chunk: &'a Chunk,
    from: Option<ChunkResume>,
    order: &'a Order,
    unique: bool,
    threads: usize,
    memory: &'a mut SortMemory,
) -> Result<SortedTags<'a>> {
    memory.alphabet = learn_alphabet(chunk, order);
    let mut extracting = threads;
    let (mut count, resume, long) = loop {
        let SortMemory { tags, scratch, keys, alphabet, .. } = &mut *memory;
        let alphabet = alphabet.as_ref();
        let (tags, scratch) = (as_tags(tags), as_tags(scratch));
        let mut count = 0;
        let extraction = Extraction { chunk, from, order, alphabet, threads: extracting };
        let (resume, long) = with_framing!(order.format(), framing => {
            extraction.run(framing, scratch, keys, |part| {
                tags[count..count + part.len()].copy_from_slice(part);
                count += part.len();
            })
        });
        let Some(stuck) = resume.filter(|_| count == 0) else {
            break (count, resume, long);
        };
        if extracting > 1 {
            // Other threads had all the room, perhaps.
            extracting = 1;
        } else {
            let rest = &chunk.bytes()[stuck.at..chunk.spans[stuck.span].end];
            let len = order.format().first_len(rest).expect("spans hold whole records");
            memory.grow(order, &rest[..len])?;
        }
    };
    memory.long = long;
    let SortMemory { tags, scratch, keys, alphabet, long, .. } = memory;
    let (tags, scratch) = (as_tags(tags), as_tags(scratch));
    let view = ChunkView { bytes: chunk.bytes(), keys, order, alphabet: alphabet.as_ref(), long };
    sort_tagged(&mut tags[..count], &mut scratch[..count], &view, threads);
    if unique {
        let mut kept = usize::from(count > 0);
        for i in 1..count {
            if view.key(tags[i]) != view.key(tags[kept - 1]) {
                tags[kept] = tags[i];
                kept += 1;
            }
        }
        count = kept;
    }
    Ok(SortedTags::new(&tags[..count], view, order, resume))
}

/// A buffer as tags.
pub(crate) fn as_tags(buffer: &mut Buffer) -> &mut [Tag] {
    let bytes: &mut [u8] = buffer;
    // SAFETY: `Tag` is a transparent `u128`, for which every bit pattern is valid; `align_to_mut`
    // takes care of alignment and length.
    let (before, tags, _) = unsafe { bytes.align_to_mut::<Tag>() };
    assert!(before.is_empty(), "buffers are page-aligned");
    tags
}
