//! The sort of a short stretch of tags: one counting pass inside the first-level cache, then insertion.
//!
//! ```text
//!   tags ──count──► starts ──scatter──► scratch on the stack ──copy back──► groups of a few ──insertion──► sorted
//! ```
//!
//! The pass takes the bits from the highest in which two prefixes differ on, with about as many digits
//! as tags, so that evenly spread keys end up in groups of one or two. A group that is larger all the
//! same (skew) is sorted by the standard library. Stretches of some 256 tags with uniform keys take a
//! sixth less time than by that alone, longer ones no more (docs/benchmarks.md).

use std::mem::MaybeUninit;

use super::tag::Tag;

/// Most tags of a short stretch.
pub(super) const SHORT: usize = 4096;
/// Groups up to this many tags are sorted by insertion.
const FEW: usize = 24;

/// Sorts `tags`, at most [`SHORT`], by all their bits.
pub(super) fn sort_short(tags: &mut [Tag]) {
    const FIRST: usize = 512;
    let len = tags.len();
    assert!(len <= SHORT, "longer than a short stretch");
    if len <= FEW {
        insertion(tags);
    } else if len <= FIRST {
        sort_within::<FIRST>(tags);
    } else {
        sort_within::<SHORT>(tags);
    }
}

/// Sorts at most `MOST` tags, a power of two, so the array on the stack is as small as possible. It
/// is not inlined, so that the shortest stretches don't pay for touching the stack of the longest.
#[inline(never)]
fn sort_within<const MOST: usize>(tags: &mut [Tag]) {
    const { assert!(MOST <= SHORT && MOST.is_power_of_two()) };
    let first = tags[0].prefix();
    let differing = tags.iter().fold(0, |all, tag| all | (tag.prefix() ^ first));
    if differing == 0 {
        return tags.sort_unstable();
    }
    let bits = tags.len().ilog2();
    let shift = (u64::BITS - differing.leading_zeros()).saturating_sub(bits);
    // The mask also keeps every index below `MOST`, as the compiler sees.
    let mask = ((1 << bits) - 1) & (MOST - 1);
    let digit = |tag: Tag| (tag.prefix() >> shift) as usize & mask;
    let mut counts = [0u16; MOST];
    for tag in &*tags {
        counts[digit(*tag)] += 1;
    }
    let (mut sum, mut most) = (0, 0);
    for count in &mut counts[..=mask] {
        most = most.max(*count);
        sum += std::mem::replace(count, sum);
    }
    let mut scratch = [MaybeUninit::<Tag>::uninit(); MOST];
    for tag in &*tags {
        let place = &mut counts[digit(*tag)];
        scratch[*place as usize].write(*tag);
        *place += 1;
    }
    for (tag, sorted) in tags.iter_mut().zip(&scratch) {
        // SAFETY: the counts give each of the tags a place of its own below their number, so all
        // places from the first up to that number have been written.
        *tag = unsafe { sorted.assume_init() };
    }
    if most as usize > FEW {
        // The counts have become the ends of the groups.
        let mut from = 0;
        for end in &counts[..=mask] {
            let end = *end as usize;
            if end - from > FEW {
                tags[from..end].sort_unstable();
            }
            from = end;
        }
    }
    insertion(tags);
}

fn insertion(tags: &mut [Tag]) {
    for i in 1..tags.len() {
        let tag = tags[i];
        let mut at = i;
        while at > 0 && tag < tags[at - 1] {
            tags[at] = tags[at - 1];
            at -= 1;
        }
        tags[at] = tag;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(prefixes: &[u64]) {
        let mut tags: Vec<Tag> =
            (0..).zip(prefixes).map(|(place, prefix)| Tag::new(*prefix, place, 0)).collect();
        let mut expected = tags.clone();
        expected.sort();
        sort_short(&mut tags);
        assert!(tags == expected, "{prefixes:?}");
    }

    #[test]
    fn an_example() {
        check(&[5, 3, u64::MAX, 3, 0]);
    }

    #[test]
    fn sanitized_lengths() {
        for len in [1, 2, 3, 17, 70] {
            let spread = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            check(&(0..len).map(spread).collect::<Vec<_>>());
            check(&(0..len).map(|i| spread(i) >> 60).collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_input_of_up_to_six_tags() {
        for len in 0..=6u32 {
            for number in 0..4u64.pow(len) {
                check(&(0..len).map(|i| number / 4u64.pow(i) % 4).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn each_length_spread_alike_and_skewed() {
        for len in (0..200).chain(500..520).chain([1023, 1024, 1025, 4095, SHORT]) {
            let spread = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            check(&(0..len as u64).map(spread).collect::<Vec<_>>());
            check(&(0..len as u64).rev().collect::<Vec<_>>());
            check(&vec![7; len]);
            let skewed = |i: u64| if i.is_multiple_of(9) { spread(i) } else { spread(i) >> 50 };
            check(&(0..len as u64).map(skewed).collect::<Vec<_>>());
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_sort(
            words in prop::collection::vec(any::<u64>(), 0..1500), shift in 0u32..64,
        ) {
            check(&words.iter().map(|word| word >> shift).collect::<Vec<_>>());
        }
    }
}
