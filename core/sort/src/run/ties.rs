//! The full order of tags: their radix sort, and then the order of keys whose prefixes are equal,
//! decided a word deeper at a time.

use std::cmp::Ordering;

use super::radix::{SMALL, on_threads, sort, sort_one};
use super::tag::{Tag, prefix_at};
use super::word::{Equal, KeyAlphabet};

/// Groups up to this size are ordered by comparing whole keys.
const FEW: usize = 24;

/// So are groups whose keys agree in this many bytes: each level below costs stack, and `memcmp`
/// compares long equal beginnings fastest.
const DEEP: usize = 128;

/// Keys are prefetched this many tags ahead.
const AHEAD: usize = 16;

/// Groups are searched this many tags ahead, because most tags are in no group.
const GROUPS_AHEAD: usize = 64;

/// The records and keys that the tags of one chunk point to.
pub(crate) trait Tagged: Sync {
    /// The key that the tag's prefix begins.
    fn key(&self, tag: Tag) -> &[u8];

    /// Whether keys are in descending order (prefixes are complemented already).
    fn descending(&self) -> bool;

    /// Where in the input the record is: the last word among equal keys.
    fn position(&self, tag: Tag) -> u64;

    /// The bytes that decide between equal keys before the position does, and whether they descend.
    fn last_resort(&self, tag: Tag) -> Option<(&[u8], bool)>;

    /// Whether no key is longer than the prefix and all are equally long, so that equal prefixes
    /// are equal keys.
    fn prefix_decides(&self) -> bool;

    /// The alphabet of the words in tags; `None` when words are plain bytes.
    fn alphabet(&self) -> Option<&KeyAlphabet>;

    /// Prefetches the key's bytes from `depth` on, which will be looked at soon.
    fn prefetch(&self, tag: Tag, depth: usize);

    /// Itself as a trait object, where another instance of the sort is not worth compiling.
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
        return order_positions(tags, tagged);
    }
    if threads <= 1 || tags.len() < 2 * SMALL {
        return order_ties(tags, scratch, tagged);
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
    on_threads(threads, jobs, |(tags, scratch)| order_ties(tags, scratch, tagged));
}

/// Orders each group of equal prefixes in `tags`, which are sorted by prefix.
fn order_ties<T: Tagged>(tags: &mut [Tag], scratch: &mut [Tag], tagged: &T) {
    for_groups(tags, scratch, tagged, 0, |group, scratch| {
        order_words(group, scratch, tagged, tagged.alphabet(), 0);
    });
}

/// Calls `f` for each maximal stretch of two or more equal prefixes. Before that, prefetches their
/// keys from `depth` on.
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

/// Orders tags whose keys have equal words of `alphabet` (or bytes) from `depth` on.
fn order_words<T: Tagged + ?Sized>(
    tags: &mut [Tag],
    scratch: &mut [Tag],
    tagged: &T,
    alphabet: Option<&KeyAlphabet>,
    depth: usize,
) {
    if tags.len() <= FEW || depth > DEEP {
        return tags.sort_by(|a, b| full_order(*a, *b, tagged));
    }
    let Some(words) = alphabet else { return order_bytes(tags, scratch, tagged, depth + 8) };
    match words.equal(tagged.key(tags[0]), depth) {
        Equal::Ended => order_equal_keys(tags, scratch, tagged),
        Equal::Agree(len) => deepen(tags, scratch, tagged, alphabet, depth + len),
        Equal::Unsure(len) => deepen(tags, scratch, tagged, None, depth + len),
    }
}

/// Orders tags whose keys agree in their first `depth` bytes (padded with zeros).
fn order_bytes<T: Tagged + ?Sized>(
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
                order_equal_keys(group, scratch, tagged);
            }
        });
    } else if first == 9 {
        deepen(tags, scratch, tagged, None, depth);
    } else {
        order_equal_keys(tags, scratch, tagged);
    }
}

/// Orders tags whose keys agree up to `depth` by their next words.
fn deepen<T: Tagged + ?Sized>(
    tags: &mut [Tag],
    scratch: &mut [Tag],
    tagged: &T,
    alphabet: Option<&KeyAlphabet>,
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
        order_words(group, scratch, tagged, alphabet, depth);
    });
}

/// The word of `key` from `depth` on: in `alphabet`'s codes, or its bytes.
#[inline]
pub(crate) fn word_at(alphabet: Option<&KeyAlphabet>, key: &[u8], depth: usize) -> u64 {
    match alphabet {
        Some(alphabet) => alphabet.word(key, depth),
        None => prefix_at(key, depth),
    }
}

/// Orders tags with equal keys.
fn order_equal_keys<T: Tagged + ?Sized>(tags: &mut [Tag], scratch: &mut [Tag], tagged: &T) {
    if tagged.last_resort(tags[0]).is_none() {
        return order_positions(tags, tagged);
    }
    let (_, descending) = tagged.last_resort(tags[0]).expect("asked just now");
    let resort = Resort { tagged: tagged.as_dyn(), descending };
    let flip = if descending { u64::MAX } else { 0 };
    for tag in &mut *tags {
        *tag = tag.with_prefix(prefix_at(resort.key(*tag), 0) ^ flip);
    }
    sort_one(tags, scratch, true);
    for_groups(tags, scratch, tagged, 0, |group, scratch| {
        order_words::<dyn Tagged>(group, scratch, &resort, None, 0);
    });
}

fn order_positions<T: Tagged + ?Sized>(tags: &mut [Tag], tagged: &T) {
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

/// The same records, with the last resort as their key.
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

    fn alphabet(&self) -> Option<&KeyAlphabet> {
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

    use super::super::radix::{DIGITS, digit, digit_shift, scatter_parallel};
    use super::*;

    struct Words {
        keys: Vec<Vec<u8>>,
        resort: Option<bool>,
        descending: bool,
        alphabet: Option<KeyAlphabet>,
    }

    impl Words {
        /// Words whose alphabet, if any, is learned from some of them.
        fn new(keys: Vec<Vec<u8>>, resort: Option<bool>, descending: bool, learned: usize) -> Self {
            let some: Vec<&[u8]> = keys.iter().take(learned).map(|key| &key[..]).collect();
            let alphabet = KeyAlphabet::learn(&some);
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
        fn alphabet(&self) -> Option<&KeyAlphabet> {
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
