//! Sorts a buffer of fixed-length records, in place or into a second one (TritonSort 5.2).
//!
//! ```text
//!   records ──► count ──► scatter ──► tags in buckets ──► flag passes, sort, ties ──┬─► permute   in place
//!   n bytes     keys read twice       16 a record         16 a record and pass        └─► gather    into a second buffer
//! ```
//!
//! The first radix pass needs no scratch, because it is the extraction itself: a first walk over
//! the records counts the tags of each bucket, and a second one writes every tag into its bucket.
//! Buckets that are still larger than the cache are split further by in-place passes (American
//! flag: McIlroy, Bostic, McIlroy, *Engineering Radix Sort*, 1993), and small ones are sorted by
//! `short_sort`. The in-place pass is unstable, which does not matter: a tag's low bits are its
//! record's number, so no two tags are equal, and equal keys keep their input order.
//!
//! In place, the tags are then cut down to record numbers, in their own memory, and [`permute()`]
//! follows them. In all that takes 1 + 16 / n times the records' bytes: 1.16 for 100-byte records,
//! where the paper's two sets of tags take 1.32 and a second buffer 2.16. Which one is faster when is
//! in docs/benchmarks.md.
//!
//! Records of varying length cannot change places, because the places differ in length. They are
//! gathered into pieces (`form`), and only the pieces that are being written have to be in memory.
//!
//! The sort in place serves whole buckets when memory is short, and records of 1,000 bytes and more, where it is
//! also faster.

use std::ops::Range;

use merganser_storage::Buffer;

use super::form::as_tags;
use super::permute::{self, permute, prefetch_record};
use super::radix::{DIGITS, SMALL, digit, digit_shift, on_threads};
use super::short_sort::sort_short;
use super::tag::Tag;
use crate::key::Order;
use crate::prefix::prefix_at;
use crate::record::Format;

/// Most records of a buffer.
pub const RECORDS_MAX: usize = permute::RECORDS_MAX;

/// Bytes of memory that sorting takes for every record, in addition to the buffer itself.
pub const TAG_BYTES: usize = size_of::<Tag>();

/// The gather prefetches records this many tags ahead.
const AHEAD: usize = 24;
/// How many records tell the range of the keys.
const SAMPLE: usize = 4096;
/// Buckets of the first pass: at most, and with how many tags where fewer do. 64 to 2,048 tags differ
/// by less than two runs do; 256 were a little ahead.
const BUCKET_BITS_MAX: u32 = 14;
const BUCKET_TAGS: usize = 256;

/// Sorts `records` by the keys of `order` with `threads` threads; equal keys keep their order. All
/// records stay, even if `order` is [`Order::unique`].
///
/// `tags` is memory for [`TAG_BYTES`] a record, whose content is of no use before and after.
///
/// # Panics
/// When `order` is not of [`Format::Fixed`], when `records` ends within a record or has more than
/// [`RECORDS_MAX`], or when `tags` is too small.
pub fn sort_in_place(records: &mut [u8], order: &Order, tags: &mut Buffer, threads: usize) {
    let Some(keys) = BufferKeys::new(records, order) else { return };
    let (bytes, tags) = (keys.record_bytes, &mut as_tags(tags)[..keys.count()]);
    sort_tags(&keys, tags, threads);
    permute(records, bytes, sources(tags), threads);
}

/// As [`sort_in_place`], but leaves the sorted records in `sorted` and `records` as they are.
///
/// # Panics
/// As [`sort_in_place`], and when `sorted` is not as long as `records`.
pub fn sort_into(
    records: &[u8],
    order: &Order,
    tags: &mut Buffer,
    sorted: &mut [u8],
    threads: usize,
) {
    assert_eq!(records.len(), sorted.len());
    let Some(keys) = BufferKeys::new(records, order) else {
        return sorted.copy_from_slice(records);
    };
    let (bytes, tags) = (keys.record_bytes, &mut as_tags(tags)[..keys.count()]);
    sort_tags(&keys, tags, threads);
    let part = tags.len().div_ceil(threads.max(1));
    let jobs = tags.chunks(part).zip(sorted.chunks_mut(part * bytes)).collect();
    on_threads(threads, jobs, |(tags, sorted): (&[Tag], &mut [u8])| {
        for (i, place) in sorted.chunks_exact_mut(bytes).enumerate() {
            if let Some(tag) = tags.get(i + AHEAD) {
                prefetch_record(records[tag.place() as usize * bytes..].as_ptr(), bytes);
            }
            place.copy_from_slice(&records[tags[i].place() as usize * bytes..][..bytes]);
        }
    });
}

/// The records, by number.
struct BufferKeys<'a> {
    records: &'a [u8],
    record_bytes: usize,
    order: &'a Order,
    /// Bytes of every key: those of fixed-length records are all of one length.
    key_bytes: usize,
}

impl<'a> BufferKeys<'a> {
    /// `None` for fewer than two records, which need no sort.
    fn new(records: &'a [u8], order: &'a Order) -> Option<Self> {
        let Format::Fixed { bytes: record_bytes } = order.format() else {
            panic!("records of varying length cannot change places");
        };
        assert_eq!(records.len() % record_bytes, 0, "whole records");
        let count = records.len() / record_bytes;
        assert!(count <= RECORDS_MAX, "{count} records are too many");
        let mut key = Vec::new();
        order.encode(records.get(..record_bytes)?, &mut key);
        (count > 1).then_some(BufferKeys { records, record_bytes, order, key_bytes: key.len() })
    }

    fn count(&self) -> usize {
        self.records.len() / self.record_bytes
    }

    /// Calls `f` with the number and the key's first eight bytes of each of `numbers`.
    #[inline(always)]
    fn for_each(
        &self,
        numbers: impl Iterator<Item = usize>,
        depth: usize,
        mut f: impl FnMut(usize, u64),
    ) {
        let record = |at: usize| &self.records[at * self.record_bytes..][..self.record_bytes];
        if let Some(direct) = self.order.direct() {
            let flip = if direct.descending { u64::MAX } else { 0 };
            numbers
                .for_each(|at| f(at, prefix_at(direct.place.of_record(record(at)), depth) ^ flip));
        } else {
            let mut key = Vec::with_capacity(self.key_bytes);
            numbers.for_each(|at| {
                key.clear();
                self.order.encode(record(at), &mut key);
                f(at, prefix_at(&key, depth));
            });
        }
    }
}

/// Makes the tags of all records, in order.
fn sort_tags(keys: &BufferKeys<'_>, tags: &mut [Tag], threads: usize) {
    let buckets = Buckets::sample(keys);
    let mut parts: Vec<ThreadShare<'_>> = (0..threads.max(1))
        .map(|part| {
            keys.count() * part / threads.max(1)..keys.count() * (part + 1) / threads.max(1)
        })
        .map(|numbers| ThreadShare { numbers, counts: vec![0; buckets.count], room: Vec::new() })
        .collect();
    on_threads(threads, parts.iter_mut().collect(), |part: &mut ThreadShare<'_>| {
        let ThreadShare { numbers, counts, .. } = part;
        keys.for_each(numbers.clone(), 0, |_, prefix| counts[buckets.of_prefix(prefix)] += 1);
    });
    // Every part gets its own stretch of every bucket, in the order of the parts.
    let mut ends = Vec::with_capacity(buckets.count);
    let (mut rest, mut end) = (&mut *tags, 0);
    for bucket in 0..buckets.count {
        for part in &mut parts {
            let (own, others) = std::mem::take(&mut rest).split_at_mut(part.counts[bucket]);
            part.room.push(own.iter_mut());
            end += part.counts[bucket];
            rest = others;
        }
        ends.push(end);
    }
    on_threads(threads, parts, |ThreadShare { numbers, mut room, .. }| {
        keys.for_each(numbers, 0, |number, prefix| {
            let next = room[buckets.of_prefix(prefix)].next().expect("counted before");
            *next = Tag::new(prefix, number as u64, 0);
        });
    });
    let mut rest = tags;
    let mut start = 0;
    let mut jobs = Vec::with_capacity(buckets.count);
    for end in ends {
        let (bucket, others) = rest.split_at_mut(end - start);
        jobs.push(bucket);
        (rest, start) = (others, end);
    }
    on_threads(threads, jobs, |bucket: &mut [Tag]| {
        sort_bucket(bucket);
        order_ties(keys, bucket);
    });
}

/// The part of the records that one thread extracts.
struct ThreadShare<'t> {
    numbers: Range<usize>,
    /// Tags of each bucket.
    counts: Vec<usize>,
    /// Where they go.
    room: Vec<std::slice::IterMut<'t, Tag>>,
}

/// Ranges of prefixes that a sample suggests to be equally full. They cover all prefixes in
/// ascending order, so a poor sample costs only time.
struct Buckets {
    least: u64,
    greatest: u64,
    shift: u32,
    count: usize,
}

impl Buckets {
    fn sample(keys: &BufferKeys<'_>) -> Self {
        let (mut least, mut greatest) = (u64::MAX, 0);
        let step = (keys.count() / SAMPLE).max(1);
        keys.for_each((0..keys.count()).step_by(step), 0, |_, prefix| {
            least = least.min(prefix);
            greatest = greatest.max(prefix);
        });
        let wanted = (keys.count() / BUCKET_TAGS).max(1).ilog2().min(BUCKET_BITS_MAX);
        let shift = (64 - (greatest - least).leading_zeros()).saturating_sub(wanted);
        let count = ((greatest - least) >> shift.min(63)) as usize + 1;
        Buckets { least, greatest, shift: shift.min(63), count }
    }

    #[inline]
    fn of_prefix(&self, prefix: u64) -> usize {
        ((prefix.clamp(self.least, self.greatest) - self.least) >> self.shift) as usize
    }
}

/// Sorts tags by all their bits, in place.
fn sort_bucket(tags: &mut [Tag]) {
    if tags.len() <= SMALL {
        return sort_short(tags);
    }
    let Some(shift) = digit_shift(tags) else {
        return tags.sort_unstable();
    };
    let mut ends = [0usize; DIGITS];
    for tag in &*tags {
        ends[digit(*tag, shift)] += 1;
    }
    let mut heads = [0usize; DIGITS];
    let mut sum = 0;
    for (head, end) in heads.iter_mut().zip(&mut ends) {
        *head = sum;
        sum += *end;
        *end = sum;
    }
    let starts = heads;
    for d in 0..DIGITS {
        while heads[d] < ends[d] {
            // The tag in this place goes to its bucket, the tag that was there goes to its own, and
            // so on, until one belongs here.
            let mut tag = tags[heads[d]];
            loop {
                let to = digit(tag, shift);
                if to == d {
                    break;
                }
                std::mem::swap(&mut tag, &mut tags[heads[to]]);
                heads[to] += 1;
            }
            tags[heads[d]] = tag;
            heads[d] += 1;
        }
    }
    for (start, end) in starts.into_iter().zip(ends) {
        if end - start > 1 {
            sort_bucket(&mut tags[start..end]);
        }
    }
}

/// Tags that get their next prefix at once.
const FEW: usize = 64;

/// Orders each group of equal prefixes in `tags`, which are sorted, eight bytes deeper at a time.
/// Where keys end, they are equal, and their tags in input order already. The tags' prefixes end up
/// as whatever was compared last.
fn order_ties(keys: &BufferKeys<'_>, tags: &mut [Tag]) {
    if keys.key_bytes <= 8 {
        return;
    }
    // The ranges that are still to be searched for groups, and how many bytes of their keys are known to agree.
    // This is a list with a frame per depth and no recursion, because keys may be long and alike,
    // and the stack is short.
    let mut frames = vec![(0..tags.len(), 8)];
    while let Some((rest, depth)) = frames.last_mut() {
        let Some(group) = next_group(tags, rest) else {
            frames.pop();
            continue;
        };
        let depth = *depth;
        for few in tags[group.clone()].chunks_mut(FEW) {
            let mut numbers = [0; FEW];
            for (number, tag) in numbers.iter_mut().zip(&*few) {
                *number = tag.place() as usize;
            }
            let mut deeper = few.iter_mut();
            let numbers = numbers[..deeper.len()].iter().copied();
            keys.for_each(numbers, depth, |number, prefix| {
                *deeper.next().expect("as many") = Tag::new(prefix, number as u64, 0);
            });
        }
        sort_bucket(&mut tags[group.clone()]);
        if depth + 8 < keys.key_bytes {
            frames.push((group, depth + 8));
        }
    }
}

/// The first stretch of two or more equal prefixes in `rest`. After the call, `rest` begins behind
/// it.
fn next_group(tags: &[Tag], rest: &mut Range<usize>) -> Option<Range<usize>> {
    while rest.len() > 1 {
        let start = rest.start;
        let prefix = tags[start].prefix();
        let others = tags[start + 1..rest.end].iter();
        rest.start += 1 + others.take_while(|tag| tag.prefix() == prefix).count();
        if rest.start - start > 1 {
            return Some(start..rest.start);
        }
    }
    None
}

/// Cuts tags down to the numbers of their records, in place.
fn sources(tags: &mut [Tag]) -> &mut [u32] {
    // From here on `tags` is only touched through pointers that derive from this one borrow: a look
    // at `tags` itself, even at its length, would forbid writes through them (audit finding F15).
    let (count, from) = (tags.len(), tags.as_mut_ptr());
    let to = from.cast::<u32>();
    for i in 0..count {
        // SAFETY: tag `i` is at byte 16 i and its number goes to byte 4 i, which belongs to this
        // tag or to one that was read before. Both pointers come from the same exclusive borrow of
        // all `count` tags, which lasts as long as `'_`, so either may read and write any of them;
        // any bytes are a valid `Tag` and a valid `u32`, and the alignment of `Tag` is the larger.
        unsafe { to.add(i).write((*from.add(i)).place() as u32) };
    }
    // SAFETY: the loop has initialised `count` numbers, within the first quarter of the tags' bytes.
    // `to` has the provenance of the exclusive borrow, which the result takes over: nothing else
    // refers to these bytes while it lives.
    unsafe { std::slice::from_raw_parts_mut(to, count) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::OrderSpec;

    fn order(record_bytes: usize, keys: &[&str]) -> Order {
        let mut spec = OrderSpec::new(Format::Fixed { bytes: record_bytes });
        spec.keys = keys.iter().map(|key| (*key).to_owned()).collect();
        spec.compile(None).expect("an order")
    }

    fn sorted(records: &[u8], order: &Order, threads: usize) -> Vec<u8> {
        let Format::Fixed { bytes } = order.format() else { unreachable!() };
        let mut tags = Buffer::new(records.len() / bytes * TAG_BYTES);
        let mut records = records.to_vec();
        sort_in_place(&mut records, order, &mut tags, threads);
        records
    }

    /// Compares with the standard library's stable sort of the records' keys.
    fn check(records: &[u8], order: &Order, threads: usize) {
        let Format::Fixed { bytes } = order.format() else { unreachable!() };
        let mut expected: Vec<&[u8]> = records.chunks(bytes).collect();
        expected.sort_by_cached_key(|record| {
            let mut key = Vec::new();
            order.encode(record, &mut key);
            key
        });
        let expected = expected.concat();
        assert!(sorted(records, order, threads) == expected, "in place: {:?}", order.spec());
        let mut tags = Buffer::new(expected.len() / bytes * TAG_BYTES);
        let mut sorted = vec![0; expected.len()];
        sort_into(records, order, &mut tags, &mut sorted, threads);
        assert!(sorted == expected, "into a second buffer: {:?}", order.spec());
    }

    /// Bytes from a seed; each takes one of `values` values.
    fn random(len: usize, seed: u64, values: u64) -> Vec<u8> {
        let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            ((x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) % values) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn sorts_records_by_their_key_and_keeps_the_order_of_equal_ones() {
        let sorted = sorted(b"pear 1fig  2fig  1plum 3fig  0", &order(6, &["0:5"]), 1);
        assert_eq!(sorted, b"fig  2fig  1fig  0pear 1plum 3");
    }

    /// Audit finding F15, in a size that Miri can follow: tags, keys whose ties are decided deeper, and one
    /// walk in place.
    #[test]
    fn f15_sanitized_numbers_take_the_place_of_tags() {
        for (count, values, threads) in [(2, 256, 1), (30, 2, 1), (70, 256, 2)] {
            check(&random(12 * count, 5, values), &order(12, &["1:10"]), threads);
        }
    }

    #[test]
    fn every_tiny_input() {
        let order = order(2, &["0:1"]);
        for count in 0..=5u32 {
            for code in 0..4usize.pow(count) {
                let records: Vec<u8> = (0..count)
                    .flat_map(|i| [[0, 1, 127, 255][code / 4usize.pow(i) % 4], i as u8])
                    .collect();
                check(&records, &order, 1);
            }
        }
    }

    #[test]
    fn every_record_length() {
        for bytes in 1..=300usize {
            let key = format!("{}:{}", bytes / 3, bytes.div_ceil(2));
            check(&random(bytes * 150, bytes as u64, 3), &order(bytes, &[&key]), 1);
        }
    }

    #[test]
    fn equal_sorted_and_reversed_keys_and_those_that_differ_late() {
        let count = 20_000u32;
        let order = order(28, &["0:24"]);
        let records = |key: &dyn Fn(u32) -> u32, at: usize| -> Vec<u8> {
            let mut records = vec![b'x'; count as usize * 28];
            for (i, record) in (0..count).zip(records.chunks_mut(28)) {
                record[at..at + 4].copy_from_slice(&key(i).to_be_bytes());
                record[24..].copy_from_slice(&i.to_be_bytes());
            }
            records
        };
        for at in [0, 6, 20] {
            for threads in [1, 3] {
                check(&records(&|_| 7, at), &order, threads);
                check(&records(&|i| i, at), &order, threads);
                check(&records(&|i| count - i, at), &order, threads);
                check(&records(&|i| i.wrapping_mul(2_654_435_761) % 100, at), &order, threads);
                check(&records(&|i| i.wrapping_mul(2_654_435_761), at), &order, threads);
                // One key far from all others, which a sample may miss: a huge bucket is left.
                check(
                    &records(&|i| if i == 3 { u32::MAX } else { i * 7 % 5001 }, at),
                    &order,
                    threads,
                );
            }
        }
    }

    #[test]
    fn keys_of_any_kind() {
        for keys in [
            &["4:8:u64le"] as &[_],
            &["0:4:i32be:r", "8:2"],
            &["3:8:f64le", "0:1:u8:r"],
            &["0:20:r"],
            &["17:3", "0:17"],
            &[],
        ] {
            for values in [2, 256] {
                check(&random(20 * 5000, 3, values), &order(20, keys), 2);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn agrees_with_the_standard_stable_sort(
            seed in any::<u64>(), count in 0usize..20_000, bytes in 1usize..40, offset in 0usize..40,
            len in 1usize..40, values in 2u64..256, descending in any::<bool>(), threads in 1usize..4,
        ) {
            let offset = offset % bytes;
            let len = len.min(bytes - offset);
            let key = format!("{offset}:{len}{}", if descending { ":bytes:r" } else { "" });
            check(&random(count * bytes, seed, values), &order(bytes, &[&key]), threads);
        }
    }
}
