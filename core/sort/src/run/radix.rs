//! The radix sort of tags.
//!
//! Most-significant-digit passes of 11 bits out of place, starting at the highest bit in which any
//! two tags differ, until a bucket is small enough for the cache. Then one more pass within it, and
//! insertion (`run/short_sort.rs`). A pass moves 16 bytes per tag; up to about 8 M uniform tags take
//! one pass, more take two. docs/benchmarks.md compares it with alternatives.

use merganser_storage::thread::spawn_or_run;
use parking_lot::Mutex;

use super::short_sort::{SHORT, sort_short};
use super::tag::Tag;
use crate::activity::{Team, leave};

/// Buckets up to this size are left to [`sort_short`]: their 64 KiB fit into the second-level
/// cache.
pub(super) const SMALL: usize = SHORT;

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
    // Each bucket is now in `scratch`, and the thread that sorts it brings it back to `tags`.
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

/// Sorts `tags`; the result is left there (`in_place`) or in `other`.
pub(super) fn sort_one(tags: &mut [Tag], other: &mut [Tag], in_place: bool) {
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
pub(super) fn scatter_parallel(
    tags: &[Tag],
    out: &mut [Tag],
    shift: u32,
    threads: usize,
) -> Vec<usize> {
    struct SharedTags(*mut Tag);
    // SAFETY: the threads write disjoint indices, see below.
    unsafe impl Sync for SharedTags {}

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
    let target = SharedTags(out.as_mut_ptr());
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
