//! The tag sort compared with its rivals, on uniform and on text-like prefixes. This measurement
//! decided for it. Prints seconds, the median of five.
//!
//! ```text
//! tag_sorts [MILLIONS]        16 unless said otherwise
//! ```

use std::time::Instant;

use merganser_sort::run::radix::sort;
use merganser_sort::run::tag::Tag;

/// Sorts tags with as much scratch.
type Sorter = dyn Fn(&mut [Tag], &mut [Tag]);

fn main() {
    let millions = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(16usize);
    let count = millions * 1_000_000;
    for (name, tags) in [("uniform", uniform(count)), ("text", text(count))] {
        let rivals: [(&str, &Sorter); 4] = [
            ("radix to cache size, then short_sort", &|tags, scratch| sort(tags, scratch, 1)),
            ("the same, 2 threads", &|tags, scratch| sort(tags, scratch, 2)),
            ("std unstable", &|tags, _| tags.sort_unstable()),
            ("LSD radix, 8 passes of 8 bits", &least_significant_digit),
        ];
        for (rival, run) in rivals {
            let mut seconds: Vec<f64> = (0..5)
                .map(|_| {
                    let (mut tags, mut scratch) = (tags.clone(), tags.clone());
                    let started = Instant::now();
                    run(&mut tags, &mut scratch);
                    let seconds = started.elapsed().as_secs_f64();
                    assert!(tags.is_sorted(), "{rival} does not sort");
                    seconds
                })
                .collect();
            seconds.sort_by(f64::total_cmp);
            #[expect(clippy::print_stdout, reason = "the figures are this program's output")]
            {
                println!("{count} {name} tags, {rival}: {:.3} s", seconds[2]);
            }
        }
    }
}

fn uniform(count: usize) -> Vec<Tag> {
    let mut random = random(1);
    (0..count as u64).map(|i| Tag::new(random(), i, 100)).collect()
}

/// Prefixes of words whose letters are far from evenly spread.
fn text(count: usize) -> Vec<Tag> {
    let mut random = random(2);
    let letters = b"aaaabbcdeeeeeefghiiijklmnnnooopqrrrsssttttuvwxyz     ";
    (0..count as u64)
        .map(|i| {
            let draw = random();
            let byte = |at: u32| letters[(draw >> (at * 8)) as usize % 256 % letters.len()];
            let prefix = [0, 1, 2, 3, 4, 5, 6, 7].map(byte);
            Tag::new(u64::from_be_bytes(prefix), i, 70)
        })
        .collect()
}

fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

fn least_significant_digit(tags: &mut [Tag], scratch: &mut [Tag]) {
    let (mut from, mut to) = (tags, scratch);
    for pass in 0..8 {
        let digit = |tag: Tag| (tag.prefix() >> (8 * pass)) as usize & 255;
        let mut ends = [0usize; 257];
        for tag in &*from {
            ends[digit(*tag) + 1] += 1;
        }
        for d in 0..256 {
            ends[d + 1] += ends[d];
        }
        for tag in &*from {
            let end = &mut ends[digit(*tag)];
            to[*end] = *tag;
            *end += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
}
