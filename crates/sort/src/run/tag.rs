//! Tags, and the sort that moves only them.
//!
//! A tag is 16 bytes: a word of the front of a record's key and where the record is. Sorting tags
//! instead of records moves a sixth of the bytes at 100-byte records (TritonSort 5.2; Nyberg et
//! al., AlphaSort), and most comparisons never touch a record.
//!
//! ```text
//!   127                     64 63              24 23          0
//!   ┌─────────────────────────┬──────────────────┬────────────┐
//!   │ key's first word (u64)  │ place (40 bits)  │ length     │   one u128; order = u128 order
//!   └─────────────────────────┴──────────────────┴────────────┘
//! ```
//!
//! The word is the key's first eight bytes, big-endian, or about twelve in the codes of an
//! alphabet (`run/word.rs`). It compares as the key does, so the `u128` order is the key order wherever the
//! prefixes differ, and input order (place) where they are equal. Equal prefixes of longer keys are
//! settled afterwards, a word deeper at a time (`settle`).
//!
//! The sort itself: most-significant-digit radix passes of 11 bits out of place, starting at the
//! highest bit in which any two tags differ, until a bucket is small enough for the cache; then
//! one pass more within it and insertion (`short_sort`). Bytes moved per tag: 16 a pass, one pass for up to about
//! 8 M uniform tags, two beyond. Measured against alternatives in docs/benchmarks.md.

use std::cmp::Ordering;

use merganser_storage::thread::spawn_or_run;
use parking_lot::Mutex;

use super::short_sort::sort_short;
use super::word::{Alphabet, Equal};
use crate::activity::{Team, leave};
pub use crate::prefix::prefix_at;

/// Prefix, place and length of a record; see the module's drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Tag(u128);

const LENGTH_BITS: u32 = 24;
const PLACE_BITS: u32 = 40;

impl Tag {
    /// Length field of a record that is too long for it; ask the framing instead.
    pub const LONG: usize = (1 << LENGTH_BITS) - 1;
    /// Greatest place.
    pub const PLACE_MAX: u64 = (1 << PLACE_BITS) - 1;

    /// A tag; lengths from [`Tag::LONG`] on are stored as `LONG`.
    #[inline]
    #[must_use]
    pub fn new(prefix: u64, place: u64, len: usize) -> Self {
        debug_assert!(place <= Self::PLACE_MAX);
        let len = len.min(Self::LONG) as u64;
        Tag(u128::from(prefix) << 64 | u128::from(place << LENGTH_BITS | len))
    }

    /// The key prefix.
    #[inline]
    #[must_use]
    pub fn prefix(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Where the record is.
    #[inline]
    #[must_use]
    pub fn place(self) -> u64 {
        self.0 as u64 >> LENGTH_BITS
    }

    /// The record's length, or [`Tag::LONG`].
    #[inline]
    #[must_use]
    pub fn length(self) -> usize {
        (self.0 as u64 & Self::LONG as u64) as usize
    }

    #[inline]
    fn with_prefix(self, prefix: u64) -> Self {
        Tag(u128::from(prefix) << 64 | u128::from(self.0 as u64))
    }
}

/// Buckets up to this size are left to [`sort_short`]: their 64 KiB lie in the second-level cache.
pub(super) const SMALL: usize = super::short_sort::SHORT;
const DIGIT_BITS: u32 = 11;
pub(super) const DIGITS: usize = 1 << DIGIT_BITS;

/// Sorts `tags` by all their bits; `scratch` is as long. Runs on `threads` threads.
pub fn sort(tags: &mut [Tag], scratch: &mut [Tag], threads: usize) {
    assert_eq!(tags.len(), scratch.len());
    if tags.is_sorted() {
        return;
    }
    // Strictly descending prefixes: turning round breaks no tie.
    if tags.is_sorted_by(|a, b| a.prefix() > b.prefix()) {
        return tags.reverse();
    }
    if threads <= 1 || tags.len() < 4 * SMALL {
        return sort_one(tags, scratch, true);
    }
    let Some(shift) = digit_shift(tags) else {
        tags.sort_unstable();
        return;
    };
    let bounds = scatter_parallel(tags, scratch, shift, threads);
    // Each bucket now lies in `scratch` and comes back to `tags`, whoever sorts it.
    let mut jobs = Vec::with_capacity(DIGITS);
    let (mut to, mut from) = (&mut *tags, &mut *scratch);
    for w in bounds.windows(2) {
        let (t, t_rest) = to.split_at_mut(w[1] - w[0]);
        let (f, f_rest) = from.split_at_mut(w[1] - w[0]);
        (to, from) = (t_rest, f_rest);
        if !t.is_empty() {
            jobs.push((t, f));
        }
    }
    on_threads(threads, jobs, |(to, from)| sort_one(from, to, false));
}

/// Does each job once, on whichever of `threads` threads is free.
pub(super) fn on_threads<J: Send>(threads: usize, jobs: Vec<J>, work: impl Fn(J) + Sync) {
    let jobs = Mutex::new(jobs.into_iter());
    let (team, _left) = (Team::here(), leave());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            spawn_or_run(scope, "sort", || {
                let _member = team.join();
                loop {
                    // The lock goes before the work begins.
                    let Some(job) = jobs.lock().next() else {
                        return;
                    };
                    work(job);
                }
            });
        }
    });
}

/// Sorts what is in `tags`; the result is left there (`in_place`) or in `other`.
fn sort_one(tags: &mut [Tag], other: &mut [Tag], in_place: bool) {
    if tags.len() <= SMALL {
        sort_short(tags);
        if !in_place {
            other.copy_from_slice(tags);
        }
        return;
    }
    let Some(shift) = digit_shift(tags) else {
        // All prefixes are equal, so the low bits (input order) decide; mostly they are in order.
        if !tags.is_sorted() {
            tags.sort_unstable();
        }
        if !in_place {
            other.copy_from_slice(tags);
        }
        return;
    };
    let mut counts = [0usize; DIGITS];
    for tag in &*tags {
        counts[digit(*tag, shift)] += 1;
    }
    let mut ends = [0usize; DIGITS];
    let mut sum = 0;
    for (end, count) in ends.iter_mut().zip(counts) {
        *end = sum;
        sum += count;
    }
    for tag in &*tags {
        let end = &mut ends[digit(*tag, shift)];
        other[*end] = *tag;
        *end += 1;
    }
    let mut from = 0;
    for to in ends {
        if to - from > 1 {
            sort_one(&mut other[from..to], &mut tags[from..to], !in_place);
        } else if to > from && in_place {
            tags[from] = other[from];
        }
        from = to;
    }
}

/// Lowest bit of the 11-bit digit that begins at the highest bit in which prefixes differ.
pub(super) fn digit_shift(tags: &[Tag]) -> Option<u32> {
    let first = tags[0].prefix();
    let differing = tags.iter().fold(0, |all, tag| all | (tag.prefix() ^ first));
    (differing != 0).then(|| (64 - differing.leading_zeros()).saturating_sub(DIGIT_BITS))
}

#[inline]
pub(super) fn digit(tag: Tag, shift: u32) -> usize {
    (tag.prefix() >> shift) as usize & (DIGITS - 1)
}

/// One radix pass from `tags` to `out`, stable, by all threads. Returns the bucket bounds.
fn scatter_parallel(tags: &[Tag], out: &mut [Tag], shift: u32, threads: usize) -> Vec<usize> {
    struct Target(*mut Tag);
    // SAFETY: the threads write disjoint indices, see below.
    unsafe impl Sync for Target {}

    let parts: Vec<&[Tag]> = tags.chunks(tags.len().div_ceil(threads)).collect();
    let (team, _left) = (&Team::here(), leave());
    let mut counts: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let workers: Vec<_> = parts
            .iter()
            .map(|part| {
                spawn_or_run(scope, "sort", move || {
                    let _member = team.join();
                    let mut counts = vec![0usize; DIGITS];
                    for tag in *part {
                        counts[digit(*tag, shift)] += 1;
                    }
                    counts
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().expect("counting does not panic")).collect()
    });
    let mut bounds = Vec::with_capacity(DIGITS + 1);
    let mut sum = 0;
    for d in 0..DIGITS {
        bounds.push(sum);
        for part in &mut counts {
            (part[d], sum) = (sum, sum + part[d]);
        }
    }
    bounds.push(sum);
    assert_eq!(sum, out.len());
    let target = Target(out.as_mut_ptr());
    std::thread::scope(|scope| {
        for (part, mut at) in parts.into_iter().zip(counts) {
            let target = &target;
            spawn_or_run(scope, "sort", move || {
                let _member = team.join();
                for tag in part {
                    let place = &mut at[digit(*tag, shift)];
                    // SAFETY: the prefix sums above give every (part, digit) its own stretch of
                    // `out`, exactly as long as that part's count, so each index below
                    // `out.len()` is written by exactly one thread, once.
                    unsafe { target.0.add(*place).write(*tag) };
                    *place += 1;
                }
            });
        }
    });
    bounds
}

/// What the tags of one chunk point to.
pub(crate) trait Tagged: Sync {
    /// The key that the tag's prefix begins.
    fn key(&self, tag: Tag) -> &[u8];

    /// Whether keys are in descending order (prefixes are complemented already).
    fn descending(&self) -> bool;

    /// Where in the input the record is: the last word among equal keys.
    fn position(&self, tag: Tag) -> u64;

    /// What decides between equal keys before the position does, and whether it descends.
    fn last_resort(&self, tag: Tag) -> Option<(&[u8], bool)>;

    /// Whether no key is longer than the prefix and all are equally long, so that equal prefixes
    /// are equal keys.
    fn prefix_decides(&self) -> bool;

    /// In which words tags hold keys; plain bytes without one.
    fn alphabet(&self) -> Option<&Alphabet>;

    /// Asks for the memory of the key's bytes from `depth` on, which will be looked at soon.
    fn prefetch(&self, tag: Tag, depth: usize);

    /// Itself, where one more instance of the sort is not worth compiling.
    fn as_dyn(&self) -> &dyn Tagged;
}

/// Sorts `tags`, whose prefixes are those of their keys, into the full order.
pub(crate) fn sort_tagged<T: Tagged>(
    tags: &mut [Tag],
    scratch: &mut [Tag],
    tagged: &T,
    threads: usize,
) {
    sort(tags, scratch, threads);
    let has_resort = tags.first().is_some_and(|t| tagged.last_resort(*t).is_some());
    if tagged.prefix_decides() && !has_resort {
        return settle_positions(tags, tagged);
    }
    if threads <= 1 || tags.len() < 2 * SMALL {
        return settle(tags, scratch, tagged);
    }
    // Cut where prefixes change, in more pieces than threads: groups are of uneven work.
    let step = tags.len().div_ceil(threads * 16).max(SMALL);
    let mut jobs = Vec::new();
    let (mut rest, mut rest_scratch) = (tags, scratch);
    while !rest.is_empty() {
        let mut cut = step.min(rest.len());
        if cut < rest.len() {
            let prefix = rest[cut - 1].prefix();
            cut += rest[cut..].partition_point(|t| t.prefix() <= prefix);
        }
        let (piece, after) = rest.split_at_mut(cut);
        let (piece_scratch, after_scratch) = rest_scratch.split_at_mut(cut);
        (rest, rest_scratch) = (after, after_scratch);
        jobs.push((piece, piece_scratch));
    }
    on_threads(threads, jobs, |(tags, scratch)| settle(tags, scratch, tagged));
}

/// Orders each group of equal prefixes in `tags`, which are sorted by prefix.
fn settle<T: Tagged>(tags: &mut [Tag], scratch: &mut [Tag], tagged: &T) {
    for_groups(tags, scratch, tagged, 0, |group, scratch| {
        settle_words(group, scratch, tagged, tagged.alphabet(), 0);
    });
}

/// Calls `f` for each maximal stretch of two or more equal prefixes, and asks for their keys from
/// `depth` on before that.
fn for_groups<T: Tagged + ?Sized>(
    tags: &mut [Tag],
    scratch: &mut [Tag],
    tagged: &T,
    depth: usize,
    mut f: impl FnMut(&mut [Tag], &mut [Tag]),
) {
    let (mut from, mut asked) = (0, 0);
    while from + 1 < tags.len() {
        let prefix = tags[from].prefix();
        let mut to = from + 1;
        while to < tags.len() && tags[to].prefix() == prefix {
            to += 1;
        }
        asked = asked.max(from);
        while asked + 1 < tags.len().min(to.min(from + AHEAD) + GROUPS_AHEAD) {
            if tags[asked].prefix() == tags[asked + 1].prefix() {
                tagged.prefetch(tags[asked], depth);
                tagged.prefetch(tags[asked + 1], depth);
            }
            asked += 1;
        }
        if to - from > 1 {
            f(&mut tags[from..to], &mut scratch[from..to]);
        }
        from = to;
    }
}

/// Groups up to this size are settled by comparing whole keys.
const FEW: usize = 24;
/// And so are groups whose keys agree this far: each level below costs stack, and comparing long
/// equal beginnings is what `memcmp` does fastest.
const DEEP: usize = 128;
/// How many tags ahead keys are asked for.
const AHEAD: usize = 16;
/// How many tags ahead groups are looked for, as most tags are in none.
const GROUPS_AHEAD: usize = 64;

/// Orders tags whose keys have equal words of `alphabet` (or bytes) from `depth` on.
fn settle_words<T: Tagged + ?Sized>(
    tags: &mut [Tag],
    scratch: &mut [Tag],
    tagged: &T,
    alphabet: Option<&Alphabet>,
    depth: usize,
) {
    if tags.len() <= FEW || depth > DEEP {
        return tags.sort_by(|a, b| full_order(*a, *b, tagged));
    }
    let Some(words) = alphabet else { return settle_bytes(tags, scratch, tagged, depth + 8) };
    match words.equal(tagged.key(tags[0]), depth) {
        Equal::Ended => settle_equal(tags, scratch, tagged),
        Equal::Agree(len) => deepen(tags, scratch, tagged, alphabet, depth + len),
        Equal::Unsure(len) => deepen(tags, scratch, tagged, None, depth + len),
    }
}

/// Orders tags whose keys agree in their first `depth` bytes (padded with zeros).
fn settle_bytes<T: Tagged + ?Sized>(
    tags: &mut [Tag],
    scratch: &mut [Tag],
    tagged: &T,
    depth: usize,
) {
    let descending = tagged.descending();
    // A key that ended within the agreed bytes is a prefix of all that did not, and of the longer
    // ones that did: zero padding hides only trailing zeros. So how much of the last word a key
    // has is the next thing to order by.
    let ended = |tag: Tag| tagged.key(tag).len().saturating_sub(depth - 8).min(9) as u64;
    let first = ended(tags[0]);
    if tags.iter().any(|tag| ended(*tag) != first) {
        for tag in &mut *tags {
            let rank = ended(*tag);
            *tag = tag.with_prefix(if descending { 9 - rank } else { rank });
        }
        sort_one(tags, scratch, true);
        for_groups(tags, scratch, tagged, depth, |group, scratch| {
            if group[0].prefix() == if descending { 0 } else { 9 } {
                deepen(group, scratch, tagged, None, depth);
            } else {
                settle_equal(group, scratch, tagged);
            }
        });
    } else if first == 9 {
        deepen(tags, scratch, tagged, None, depth);
    } else {
        settle_equal(tags, scratch, tagged);
    }
}

/// Orders tags whose keys agree up to `depth` by their next words.
fn deepen<T: Tagged + ?Sized>(
    tags: &mut [Tag],
    scratch: &mut [Tag],
    tagged: &T,
    alphabet: Option<&Alphabet>,
    depth: usize,
) {
    let flip = if tagged.descending() { u64::MAX } else { 0 };
    for i in 0..tags.len() {
        if let Some(ahead) = tags.get(i + AHEAD) {
            tagged.prefetch(*ahead, depth);
        }
        let tag = &mut tags[i];
        *tag = tag.with_prefix(word_at(alphabet, tagged.key(*tag), depth) ^ flip);
    }
    sort_one(tags, scratch, true);
    for_groups(tags, scratch, tagged, depth, |group, scratch| {
        settle_words(group, scratch, tagged, alphabet, depth);
    });
}

/// The word of `key` from `depth` on: in `alphabet`'s codes, or its bytes.
#[inline]
pub(crate) fn word_at(alphabet: Option<&Alphabet>, key: &[u8], depth: usize) -> u64 {
    match alphabet {
        Some(alphabet) => alphabet.word(key, depth),
        None => prefix_at(key, depth),
    }
}

/// Orders tags with equal keys.
fn settle_equal<T: Tagged + ?Sized>(tags: &mut [Tag], scratch: &mut [Tag], tagged: &T) {
    if tagged.last_resort(tags[0]).is_none() {
        return settle_positions(tags, tagged);
    }
    let (_, descending) = tagged.last_resort(tags[0]).expect("asked just now");
    let resort = Resort { tagged: tagged.as_dyn(), descending };
    let flip = if descending { u64::MAX } else { 0 };
    for tag in &mut *tags {
        *tag = tag.with_prefix(prefix_at(resort.key(*tag), 0) ^ flip);
    }
    sort_one(tags, scratch, true);
    for_groups(tags, scratch, tagged, 0, |group, scratch| {
        settle_words::<dyn Tagged>(group, scratch, &resort, None, 0);
    });
}

fn settle_positions<T: Tagged + ?Sized>(tags: &mut [Tag], tagged: &T) {
    // Only groups of equal keys may be out of order: those whose tags' places are not positions.
    let mut from = 0;
    while from + 1 < tags.len() {
        let prefix = tags[from].prefix();
        let mut to = from + 1;
        while to < tags.len() && tags[to].prefix() == prefix {
            to += 1;
        }
        let group = &mut tags[from..to];
        if group.len() > 1 && !group.is_sorted_by_key(|t| tagged.position(*t)) {
            group.sort_unstable_by_key(|t| tagged.position(*t));
        }
        from = to;
    }
}

/// The last resort of another's tags, seen as their key.
struct Resort<'a> {
    tagged: &'a dyn Tagged,
    descending: bool,
}

impl Tagged for Resort<'_> {
    fn key(&self, tag: Tag) -> &[u8] {
        self.tagged.last_resort(tag).expect("asked before").0
    }

    fn descending(&self) -> bool {
        self.descending
    }

    fn position(&self, tag: Tag) -> u64 {
        self.tagged.position(tag)
    }

    fn last_resort(&self, _tag: Tag) -> Option<(&[u8], bool)> {
        None
    }

    fn prefix_decides(&self) -> bool {
        false
    }

    fn alphabet(&self) -> Option<&Alphabet> {
        None
    }

    fn prefetch(&self, _tag: Tag, _depth: usize) {}

    fn as_dyn(&self) -> &dyn Tagged {
        self
    }
}

fn full_order<T: Tagged + ?Sized>(a: Tag, b: Tag, tagged: &T) -> Ordering {
    let keys = tagged.key(a).cmp(tagged.key(b));
    let keys = if tagged.descending() { keys.reverse() } else { keys };
    keys.then_with(|| match (tagged.last_resort(a), tagged.last_resort(b)) {
        (Some((x, true)), Some((y, _))) => y.cmp(x),
        (Some((x, false)), Some((y, _))) => x.cmp(y),
        _ => Ordering::Equal,
    })
    .then_with(|| tagged.position(a).cmp(&tagged.position(b)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Words {
        keys: Vec<Vec<u8>>,
        resort: Option<bool>,
        descending: bool,
        alphabet: Option<Alphabet>,
    }

    impl Words {
        /// Words whose alphabet, if any, is learned from some of them.
        fn new(keys: Vec<Vec<u8>>, resort: Option<bool>, descending: bool, learned: usize) -> Self {
            let some: Vec<&[u8]> = keys.iter().take(learned).map(|key| &key[..]).collect();
            let alphabet = Alphabet::learn(&some);
            Words { keys, resort, descending, alphabet }
        }
    }

    impl Tagged for Words {
        fn key(&self, tag: Tag) -> &[u8] {
            let key = &self.keys[tag.place() as usize];
            if self.resort.is_some() { &key[..key.len() / 2] } else { key }
        }
        fn descending(&self) -> bool {
            self.descending
        }
        fn position(&self, tag: Tag) -> u64 {
            tag.place()
        }
        fn last_resort(&self, tag: Tag) -> Option<(&[u8], bool)> {
            self.resort.map(|descending| (&self.keys[tag.place() as usize][..], descending))
        }
        fn prefix_decides(&self) -> bool {
            false
        }
        fn alphabet(&self) -> Option<&Alphabet> {
            self.alphabet.as_ref()
        }
        fn prefetch(&self, _tag: Tag, _depth: usize) {}
        fn as_dyn(&self) -> &dyn Tagged {
            self
        }
    }

    fn check(words: &Words, threads: usize) {
        let flip = if words.descending { u64::MAX } else { 0 };
        let mut tags: Vec<Tag> = (0..words.keys.len() as u64)
            .map(|i| {
                let tag = Tag::new(0, i, 1);
                tag.with_prefix(word_at(words.alphabet(), words.key(tag), 0) ^ flip)
            })
            .collect();
        let mut expected = tags.clone();
        expected.sort_by(|a, b| full_order(*a, *b, words));
        let mut scratch = tags.clone();
        sort_tagged(&mut tags, &mut scratch, words, threads);
        let places = |tags: &[Tag]| tags.iter().map(|t| t.place()).collect::<Vec<_>>();
        assert_eq!(places(&tags), places(&expected));
    }

    #[test]
    fn sorts_words_by_key_then_position() {
        let keys = ["pear", "fig", "apple", "fig", "applesauce with cinnamon", ""];
        let keys = keys.iter().map(|k| k.as_bytes().to_vec()).collect();
        check(&Words::new(keys, None, false, 0), 1);
    }

    /// The scatter of several threads writes through a shared pointer.
    #[test]
    fn sanitized_threads_scatter_tags() {
        let count = 300_u64;
        let tags: Vec<Tag> =
            (0..count).map(|i| Tag::new(i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i, 0)).collect();
        let mut scattered = tags.clone();
        let shift = digit_shift(&tags).expect("they differ");
        let bounds = scatter_parallel(&tags, &mut scattered, shift, 3);
        let digits = scattered.iter().map(|tag| digit(*tag, shift));
        assert!(digits.is_sorted() && bounds.len() == DIGITS + 1);
        assert_eq!(*bounds.last().expect("an end"), tags.len());
        scattered.sort();
        let mut expected = tags;
        expected.sort();
        assert_eq!(scattered, expected);
    }

    #[test]
    fn every_tiny_input_over_a_nasty_alphabet() {
        let alphabet: [&[u8]; 6] = [b"", b"\0", b"\0\0", b"aaaaaaaa", b"aaaaaaaa\0", b"aaaaaaaab"];
        for n in 0..=4u32 {
            for code in 0..6usize.pow(n) {
                let keys = (0..n).map(|i| alphabet[code / 6usize.pow(i) % 6].to_vec()).collect();
                check(&Words::new(keys, None, code % 2 == 1, 4), 1);
            }
        }
    }

    #[test]
    fn long_equal_beginnings_need_no_stack() {
        let keys = (0..3000u32).map(|i| {
            let mut key = vec![b'x'; 20_000];
            key.extend_from_slice(&(i.wrapping_mul(2_654_435_761) % 1000).to_be_bytes());
            key
        });
        check(&Words::new(keys.collect(), None, false, 9), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn agrees_with_a_comparison_sort(
            keys in prop::collection::vec(prop::collection::vec(0u8..3, 0..20), 0..3000),
            repeat in 1usize..12,
            resort in prop::option::of(any::<bool>()),
            descending in any::<bool>(),
            learned in 0usize..40,
            threads in 1usize..4,
        ) {
            let keys: Vec<_> = keys.iter().cycle().take(keys.len() * repeat).cloned().collect();
            check(&Words::new(keys, resort, descending, learned), threads);
        }

        #[test]
        fn radix_passes_agree_with_the_standard_sort(
            seed in any::<u64>(), shift in 0u32..64, n in 0usize..40_000, threads in 1usize..4,
        ) {
            let mut x = seed | 1;
            let mut tags: Vec<Tag> = (0..n as u64).map(|i| {
                x ^= x << 13; x ^= x >> 7; x ^= x << 17;
                Tag::new(x >> shift, i, 0)
            }).collect();
            let mut expected = tags.clone();
            expected.sort();
            let mut scratch = tags.clone();
            sort(&mut tags, &mut scratch, threads);
            prop_assert_eq!(tags, expected);
        }
    }
}
