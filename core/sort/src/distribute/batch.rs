//! A batch: some records, grouped by bucket in memory that stays in the cache.
//!
//! ```text
//!   records ──bucket of each──► list ──counts──► starts ──copy──► ├ bucket 0 ┼ bucket 1 ┼ … ┤
//! ```
//!
//! Grouping copies each record once more than scattering it to the store would. But it does so in
//! cache and on all cores at once, and then a few stretches are appended in turn, not thousands of
//! records.

use super::partition::{Partition, SampleKey};
use super::store::{Appended, Appender};
use crate::Result;
use crate::access::KeyAccess;
use crate::key::Order;
use crate::record::Framing;
use crate::run::chunk_view::ENTRY_HEAD_BYTES;

/// Distance in bytes between the keys that are offered to a bucket's sample of itself.
const SAMPLE_STEP_BYTES: usize = 64 << 10;

/// The memory of one thread that splits records into buckets.
pub(super) struct BucketBatch {
    grouped: Vec<u8>,
    /// Bucket and length of each record.
    records: Vec<(u32, u32)>,
    records_max: usize,
    parts: Vec<Appended>,
    /// Where in `grouped` the next record of each bucket goes.
    cursors: Vec<usize>,
    sample: Vec<(usize, SampleKey)>,
    until_sample: usize,
    /// One record that is longer than all of `grouped`; it stays where it is.
    long: bool,
}

impl BucketBatch {
    /// Groups `bytes` bytes at a time into `buckets` buckets.
    pub(super) fn new(bytes: usize, buckets: usize) -> Self {
        BucketBatch {
            grouped: vec![0; bytes],
            records: Vec::with_capacity(bytes / 8),
            records_max: bytes / 8,
            parts: vec![Appended::default(); buckets],
            cursors: vec![0; buckets],
            sample: Vec::new(),
            until_sample: SAMPLE_STEP_BYTES / 2,
            long: false,
        }
    }

    /// Groups as many records from the front of `bytes`, whole records, as memory holds. Returns
    /// their bytes.
    pub(super) fn fill<F: Framing, A: KeyAccess>(
        &mut self,
        framing: F,
        access: A,
        order: &Order,
        partition: &Partition,
        bytes: &[u8],
    ) -> usize {
        self.records.clear();
        self.parts.fill(Appended::default());
        self.long = false;
        let mut kept = A::Kept::default();
        let mut full = Vec::new();
        let mut at = 0;
        while at < bytes.len() && self.records.len() < self.records_max {
            let len = framing.first(&bytes[at..]).expect("spans hold whole records");
            if at + len > self.grouped.len() {
                if at > 0 {
                    break;
                }
                self.long = true;
            }
            let record = &bytes[at..at + len];
            let prefix = access.load(record, &mut kept);
            let bucket = partition.bucket_of(prefix, || {
                full.clear();
                order.encode_full(record, &mut full);
                &full
            });
            self.records.push((bucket as u32, len as u32));
            let part = &mut self.parts[bucket];
            part.bytes += len as u32;
            part.records += 1;
            let key_bytes = A::kept_bytes(&kept);
            if order.direct().is_none() {
                part.key_bytes += (key_bytes + ENTRY_HEAD_BYTES) as u32;
            }
            if self.until_sample < len {
                self.sample.push((bucket, SampleKey::of_record(access, order, record)));
                self.until_sample += SAMPLE_STEP_BYTES;
            }
            self.until_sample = self.until_sample.saturating_sub(len);
            at += len;
            if self.long {
                return at;
            }
        }
        let mut start = 0;
        for (cursor, part) in self.cursors.iter_mut().zip(&self.parts) {
            *cursor = start;
            start += part.bytes as usize;
        }
        let mut from = 0;
        for (bucket, len) in &self.records {
            let len = *len as usize;
            let to = &mut self.cursors[*bucket as usize];
            self.grouped[*to..*to + len].copy_from_slice(&bytes[from..from + len]);
            *to += len;
            from += len;
        }
        at
    }

    /// Appends the records that were grouped from the front of `bytes`.
    pub(super) fn append(&mut self, turn: &mut Appender<'_>, bytes: &[u8]) -> Result<()> {
        for (bucket, key) in self.sample.drain(..) {
            turn.sample(bucket, key);
        }
        if self.long {
            let (bucket, len) = self.records[0];
            let bucket = bucket as usize;
            return turn.append(bucket, &bytes[..len as usize], self.parts[bucket]);
        }
        for (bucket, part) in self.parts.iter().enumerate() {
            if part.records > 0 {
                let end = self.cursors[bucket];
                let bytes = &self.grouped[end - part.bytes as usize..end];
                turn.append(bucket, bytes, *part)?;
            }
        }
        Ok(())
    }
}
