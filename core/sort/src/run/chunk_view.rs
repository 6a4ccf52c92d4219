//! The records of a chunk, as their tags point to them.

use super::long::LongRecords;
use super::tag::Tag;
use super::ties::Tagged;
use super::word::KeyAlphabet;
use crate::access::resort_bytes;
use crate::key::{self, Order};
use merganser_storage::prefetch::prefetch;

/// The gather prefetches records this many tags ahead.
const AHEAD: usize = 24;

/// Before each encoded key: the record's place and length, and the key's length.
pub(crate) const ENTRY_HEAD_BYTES: usize = 12;

/// The records that tags point to: directly in the chunk, or through an encoded key's head.
#[derive(Clone, Copy)]
pub(crate) struct ChunkView<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) keys: &'a [u8],
    pub(crate) order: &'a Order,
    pub(crate) alphabet: Option<&'a KeyAlphabet>,
    pub(crate) long: &'a LongRecords,
}

impl<'a> ChunkView<'a> {
    #[inline]
    fn head(&self, tag: Tag) -> (u64, usize) {
        let at = tag.place() as usize;
        let place = u64::from_le_bytes(self.keys[at..at + 8].try_into().expect("a head"));
        let len = u32::from_le_bytes(self.keys[at + 8..at + 12].try_into().expect("a head"));
        (place, len as usize)
    }

    #[inline]
    pub(crate) fn record(&self, tag: Tag) -> &'a [u8] {
        let place =
            if self.order.direct().is_some() { tag.place() } else { self.head(tag).0 } as usize;
        &self.bytes[place..place + self.length(tag, place)]
    }

    #[inline]
    fn length(&self, tag: Tag, place: usize) -> usize {
        match tag.length() {
            Tag::LONG => self.long.len_at(place),
            len => len,
        }
    }
}

impl ChunkView<'_> {
    /// Prefetches a record some places behind the `i`-th of `tags`, which are gathered in their
    /// order.
    #[inline]
    pub(crate) fn prefetch_records(&self, tags: &[Tag], i: usize) {
        let direct = self.order.direct().is_some();
        if !direct && let Some(tag) = tags.get(i + 2 * AHEAD) {
            prefetch(self.keys, tag.place() as usize);
        }
        if let Some(tag) = tags.get(i + AHEAD) {
            let place = if direct { tag.place() } else { self.head(*tag).0 } as usize;
            let len = tag.length();
            prefetch(self.bytes, place);
            if len > 64 {
                prefetch(self.bytes, place + 64);
            }
        }
    }
}

impl Tagged for ChunkView<'_> {
    #[inline]
    fn key(&self, tag: Tag) -> &[u8] {
        match self.order.direct() {
            Some(key) => key.place.of_record(self.record(tag)),
            None => {
                let at = tag.place() as usize + ENTRY_HEAD_BYTES;
                &self.keys[at..at + self.head(tag).1]
            }
        }
    }

    fn descending(&self) -> bool {
        self.order.direct().is_some_and(|key| key.descending)
    }

    #[inline]
    fn position(&self, tag: Tag) -> u64 {
        if self.order.direct().is_some() { tag.place() } else { self.head(tag).0 }
    }

    #[inline]
    fn last_resort(&self, tag: Tag) -> Option<(&[u8], bool)> {
        self.order.last_resort().map(|descending| (resort_bytes(self.record(tag)), descending))
    }

    fn prefix_decides(&self) -> bool {
        let direct = self.order.direct();
        direct.is_some_and(|key| matches!(key.place, key::Place::Range { len, .. } if len <= 8))
    }

    fn alphabet(&self) -> Option<&KeyAlphabet> {
        self.alphabet
    }

    #[inline]
    fn prefetch(&self, tag: Tag, depth: usize) {
        match self.order.direct() {
            Some(_) => prefetch(self.bytes, tag.place() as usize + depth),
            None => prefetch(self.keys, tag.place() as usize + ENTRY_HEAD_BYTES + depth),
        }
    }

    fn as_dyn(&self) -> &dyn Tagged {
        self
    }
}
