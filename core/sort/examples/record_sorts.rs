//! The ways to sort a buffer of fixed-length records, against each other: in place, into a second
//! buffer, and as runs are formed (tags with scratch, then a gather). Prints seconds, the median of
//! the rounds, and the memory each takes over the records'.
//!
//! ```text
//! record_sorts [MEGABYTES] [RECORD_BYTES] [ROUNDS]        800, 100 and 5 unless said otherwise
//! ```

use std::time::Instant;

use merganser_sort::key::{Order, OrderSpec};
use merganser_sort::record::Format;
use merganser_sort::run::buffer_sort::{TAG_BYTES, sort_in_place, sort_into};
use merganser_sort::run::radix;
use merganser_sort::run::tag::{Tag, prefix_at};
use merganser_storage::Buffer;

const KEY_BYTES: usize = 10;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse().expect("a number"));
    let megabytes: usize = numbers.next().unwrap_or(800);
    let bytes: usize = numbers.next().unwrap_or(100);
    let rounds: usize = numbers.next().unwrap_or(5);
    let count = megabytes * 1_000_000 / bytes;
    let order = order(bytes);
    let mut unsorted = Buffer::new(count * bytes);
    fill(&mut unsorted);
    let mut records = Buffer::new(count * bytes);
    let mut second = Buffer::new(count * bytes);
    let mut tags = Buffer::new(count * TAG_BYTES);
    let mut scratch = Buffer::new(count * TAG_BYTES);
    // Touched, so that no rival pays for the pages.
    for buffer in [&mut records, &mut second, &mut tags, &mut scratch] {
        buffer.fill(1);
    }
    for threads in [1, 2] {
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            records.copy_from_slice(&unsorted);
            times[0].push(seconds(|| sort_in_place(&mut records, &order, &mut tags, threads)));
            times[1]
                .push(seconds(|| sort_into(&unsorted, &order, &mut tags, &mut second, threads)));
            assert!(records[..] == second[..], "both sort alike");
            times[2].push(seconds(|| {
                with_scratch(&unsorted, bytes, [&mut tags, &mut scratch], &mut second, threads);
            }));
            assert!(records[..] == second[..], "all sort alike");
        }
        let tag = TAG_BYTES as f64 / bytes as f64;
        let rivals = [
            "in place",
            "into a second buffer",
            "tags with scratch, one-threaded extract and gather",
        ];
        for ((name, memory), times) in
            rivals.iter().zip([1. + tag, 2. + tag, 2. + 2. * tag]).zip(&mut times)
        {
            times.sort_by(f64::total_cmp);
            let median = times[times.len() / 2];
            #[expect(clippy::print_stdout, reason = "the figures are this program's output")]
            {
                println!(
                    "{megabytes} MB of {bytes} bytes, {threads} threads, {name}: {median:.3} s, {:.0} MB/s, {memory:.2} times the memory",
                    megabytes as f64 / median,
                );
            }
        }
    }
}

fn order(bytes: usize) -> Order {
    let mut spec = OrderSpec::new(Format::Fixed { bytes });
    spec.keys.push(format!("0:{}", KEY_BYTES.min(bytes)));
    spec.compile(None).expect("a key of the records")
}

fn fill(bytes: &mut [u8]) {
    let mut x = 1u64;
    for word in bytes.chunks_mut(8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        word.copy_from_slice(&x.wrapping_mul(0x2545_f491_4f6c_dd1d).to_be_bytes()[..word.len()]);
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64()
}

/// The steps of run formation: tags, radix passes through a scratch, and a gather that prefetches.
/// Equal prefixes are left as they are: uniform data has nearly none.
fn with_scratch(
    records: &[u8],
    bytes: usize,
    [tags, scratch]: [&mut Buffer; 2],
    out: &mut [u8],
    threads: usize,
) {
    // SAFETY: every bit pattern is a tag, and buffers are page-aligned.
    let as_tags = |buffer: &mut Buffer| unsafe {
        std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast::<Tag>(), buffer.len() / TAG_BYTES)
    };
    let (tags, scratch) = (as_tags(tags), as_tags(scratch));
    for (i, record) in records.chunks_exact(bytes).enumerate() {
        tags[i] =
            Tag::new(prefix_at(&record[..KEY_BYTES.min(bytes)], 0), (i * bytes) as u64, bytes);
    }
    radix::sort(tags, scratch, threads);
    for (i, place) in out.chunks_exact_mut(bytes).enumerate() {
        if let Some(tag) = tags.get(i + 24) {
            for line in (0..bytes.min(512)).step_by(64) {
                prefetch(&records[tag.place() as usize + line]);
            }
        }
        place.copy_from_slice(&records[tags[i].place() as usize..][..bytes]);
    }
}

fn prefetch(byte: &u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64, and prefetching has no visible effect.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
            std::ptr::from_ref(byte).cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = byte;
}
