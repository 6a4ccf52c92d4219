//! TritonSort 6.1, Tables 8 and 9: one buffer sorted in memory by one core, by a radix sort of tags
//! and by quicksort.

use std::time::Instant;

use merganser_sort::key::{Order, OrderSpec};
use merganser_sort::record::Format;
use merganser_sort::run::buffer_sort::{TAG_BYTES, sort_in_place, sort_into};
use merganser_sort::run::permute::permute;
use merganser_storage::Buffer;

use super::quicksort::quicksort;
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use crate::statistics::mean;
use merganser_generate::{Generator, Gensort, GensortKind};
use merganser_pages::{Chart, ChartSeries};

const RECORD_BYTES: usize = Gensort::RECORD_BYTES;
const KEY_BYTES: usize = 10;
const ROUNDS: usize = 5;

/// Table 8 (MB/s) and Table 9 (seconds): MB, then radix and quicksort of each.
const PAPER: [(u64, [f64; 2], [f64; 2]); 5] = [
    (100, [343.1, 89.6], [0.29, 1.12]),
    (200, [328.9, 81.0], [0.61, 2.47]),
    (400, [317.3, 73.9], [1.26, 5.41]),
    (800, [305.8, 66.1], [2.62, 12.11]),
    (1600, [296.2, 60.8], [5.40, 26.33]),
];

/// A sort, and which column of the paper's tables it is held against.
struct Rival {
    name: &'static str,
    column: Option<usize>,
    /// Sorts [`SortBuffers::records`]; gives the seconds that took, and has checked the result since.
    sort: fn(&mut SortBuffers) -> f64,
}

/// In the order of the tables.
const RIVALS: [Rival; 8] = [
    Rival { name: "radix tag sort, in place", column: Some(0), sort: in_place },
    Rival { name: "radix tag sort, into a second buffer", column: None, sort: into_second },
    Rival { name: "quicksort through pointers, memcmp", column: Some(1), sort: pointers },
    Rival {
        name: "quicksort through pointers, keys as integers",
        column: None,
        sort: pointers_to_integers,
    },
    Rival {
        name: "quicksort of pointers, memcmp, records left",
        column: None,
        sort: pointers_only,
    },
    Rival { name: "sort_unstable of pointers, keys as integers", column: None, sort: references },
    Rival { name: "quicksort of tags, then permuted", column: None, sort: tags },
    Rival { name: "the C library's qsort of the records", column: None, sort: c_qsort },
];
const IN_PLACE: usize = 0;
/// Quicksorts of records through pointers.
const POINTERS: [usize; 2] = [2, 3];

/// One buffer size: mean seconds of each rival.
struct RivalSeconds {
    bytes: u64,
    seconds: [f64; RIVALS.len()],
}

/// Measures all rivals at every size of the paper, or at the one asked for.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let sizes: Vec<u64> = match lab.setup.size_bytes {
        Some(bytes) => vec![bytes],
        None => PAPER.iter().map(|(megabytes, ..)| megabytes * 1_000_000).collect(),
    };
    let mut measured = Vec::new();
    for bytes in sizes {
        let bytes = bytes / RECORD_BYTES as u64 * RECORD_BYTES as u64;
        let least = bytes * 3 + 3 * bytes / RECORD_BYTES as u64 * TAG_BYTES as u64;
        if least > lab.machine.memory_bytes {
            return Err(ExperimentError::Memory { bytes, needed_bytes: least });
        }
        measured.push(measure(lab, bytes as usize)?);
    }
    Ok(outcome(&measured))
}

/// The buffers of the sorts, allocated and touched before any sort is timed.
struct SortBuffers {
    unsorted: Buffer,
    /// A copy of `unsorted` before each sort.
    records: Buffer,
    second: Buffer,
    tags: Buffer,
    order: Order,
}

fn measure(lab: &Lab<'_>, bytes: usize) -> Result<RivalSeconds, ExperimentError> {
    lab.progress.phase("sorting", None);
    let count = bytes / RECORD_BYTES;
    let mut spec = OrderSpec::new(Format::Fixed { bytes: RECORD_BYTES });
    spec.keys.push("0:10".to_owned());
    let mut bench = SortBuffers {
        unsorted: Buffer::new(bytes),
        records: Buffer::new(bytes),
        second: Buffer::new(bytes),
        tags: Buffer::new(count * TAG_BYTES),
        order: spec.compile(None)?,
    };
    let generator = Gensort::new(GensortKind::Binary, RECORD_BYTES, false, 0);
    const BLOCK: usize = 10_000;
    for (i, block) in bench.unsorted.chunks_mut(BLOCK * RECORD_BYTES).enumerate() {
        let first = (i * BLOCK) as u64;
        let mut made = Vec::with_capacity(block.len());
        generator.records(first..first + (block.len() / RECORD_BYTES) as u64, &mut made);
        block.copy_from_slice(&made);
    }
    bench.second.fill(1);
    bench.tags.fill(1);

    let mut seconds = [const { Vec::new() }; RIVALS.len()];
    for _ in 0..lab.setup.rounds.unwrap_or(ROUNDS) {
        for (rival, seconds) in RIVALS.iter().zip(&mut seconds) {
            lab.check_cancelled()?;
            bench.records.copy_from_slice(&bench.unsorted);
            seconds.push((rival.sort)(&mut bench));
            lab.progress.advance(bytes as u64);
        }
    }
    Ok(RivalSeconds { bytes: bytes as u64, seconds: seconds.map(|rounds| mean(&rounds)) })
}

fn in_place(SortBuffers { records, tags, order, .. }: &mut SortBuffers) -> f64 {
    let seconds = timed(|| sort_in_place(records, order, tags, 1));
    assert!(is_sorted(records.chunks_exact(RECORD_BYTES)));
    seconds
}

fn into_second(SortBuffers { records, second, tags, order, .. }: &mut SortBuffers) -> f64 {
    let seconds = timed(|| sort_into(records, order, tags, second, 1));
    assert!(is_sorted(second.chunks_exact(RECORD_BYTES)));
    seconds
}

fn pointers(bench: &mut SortBuffers) -> f64 {
    through_pointers(bench, |pointers| quicksort(pointers, &by_memcmp))
}

fn pointers_to_integers(bench: &mut SortBuffers) -> f64 {
    through_pointers(bench, |pointers| quicksort(pointers, &|a, b| key(a) < key(b)))
}

fn references(bench: &mut SortBuffers) -> f64 {
    through_pointers(bench, |references| references.sort_unstable_by_key(|record| key(record)))
}

/// Without what a radix sort has done when it ends: the records are where they were.
fn pointers_only(bench: &mut SortBuffers) -> f64 {
    let mut pointers = Vec::new();
    let seconds = timed(|| {
        pointers.extend(bench.records.chunks_exact(RECORD_BYTES));
        quicksort(&mut pointers, &by_memcmp);
    });
    assert!(is_sorted(pointers.into_iter()));
    seconds
}

fn by_memcmp(a: &&[u8], b: &&[u8]) -> bool {
    a[..KEY_BYTES] < b[..KEY_BYTES]
}

/// Makes the pointers, sorts them, and moves the records to their places as the radix sort does.
fn through_pointers(
    SortBuffers { records, .. }: &mut SortBuffers,
    sort: impl FnOnce(&mut [&[u8]]),
) -> f64 {
    let seconds = timed(|| {
        let start = records.as_ptr() as usize;
        let mut pointers: Vec<&[u8]> = records.chunks_exact(RECORD_BYTES).collect();
        sort(&mut pointers);
        let number = |record: &&[u8]| ((record.as_ptr() as usize - start) / RECORD_BYTES) as u32;
        let mut from: Vec<u32> = pointers.iter().map(number).collect();
        drop(pointers);
        permute(records, RECORD_BYTES, &mut from, 1);
    });
    assert!(is_sorted(records.chunks_exact(RECORD_BYTES)));
    seconds
}

fn tags(SortBuffers { records, .. }: &mut SortBuffers) -> f64 {
    let seconds = timed(|| {
        let tag = |(i, record)| key(record) << 48 | i as u128;
        let mut tags: Vec<u128> = records.chunks_exact(RECORD_BYTES).enumerate().map(tag).collect();
        quicksort(&mut tags, &|a, b| a < b);
        let mut from: Vec<u32> = tags.iter().map(|tag| *tag as u32).collect();
        permute(records, RECORD_BYTES, &mut from, 1);
    });
    assert!(is_sorted(records.chunks_exact(RECORD_BYTES)));
    seconds
}

fn timed(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64()
}

/// The ten bytes of the key as a number, in two loads.
#[inline]
fn key(record: &[u8]) -> u128 {
    let high = u64::from_be_bytes(*record.first_chunk().expect("100 bytes"));
    let low = u16::from_be_bytes([record[8], record[9]]);
    u128::from(high) << 16 | u128::from(low)
}

fn is_sorted<'a>(records: impl Iterator<Item = &'a [u8]>) -> bool {
    records.map(key).is_sorted()
}

/// `qsort(3)` of whole records.
fn c_qsort(SortBuffers { records, .. }: &mut SortBuffers) -> f64 {
    extern "C" fn compare(a: *const libc::c_void, b: *const libc::c_void) -> libc::c_int {
        // SAFETY: `qsort` gives two of the array's records.
        let [a, b] = [a, b].map(|r| unsafe { std::slice::from_raw_parts(r.cast(), RECORD_BYTES) });
        key(a).cmp(&key(b)) as libc::c_int
    }
    let (base, count) = (records.as_mut_ptr().cast(), records.len() / RECORD_BYTES);
    // SAFETY: an array of whole records, and a comparison that is a total order and does not unwind.
    let seconds = timed(|| unsafe { libc::qsort(base, count, RECORD_BYTES, Some(compare)) });
    assert!(is_sorted(records.chunks_exact(RECORD_BYTES)));
    seconds
}

fn outcome(measured: &[RivalSeconds]) -> Outcome {
    let mut time = OutcomeSection::new("seconds (Table 9)");
    let mut throughput = OutcomeSection::new("MB/s (Table 8)");
    let mut speed_up =
        OutcomeSection::new("radix tag sort in place, times as fast as (Table 8's quotient)");
    for RivalSeconds { bytes, seconds } in measured {
        let megabytes = *bytes as f64 / 1e6;
        let paper = PAPER.iter().find(|(size, ..)| size * 1_000_000 == *bytes);
        for (rival, Rival { name, column, .. }) in RIVALS.iter().enumerate() {
            let what = format!("{megabytes} MB, {name}");
            let (own, rate) = (seconds[rival], megabytes / seconds[rival]);
            match column.and_then(|column| Some((column, paper?))) {
                Some((column, (_, rates, times))) => {
                    time.both(&what, times[column], own);
                    throughput.both(&what, rates[column], rate);
                }
                None => {
                    time.ours(&what, own);
                    throughput.ours(&what, rate);
                }
            }
            match paper {
                _ if rival == IN_PLACE => {}
                Some((_, [radix, quick], _)) if POINTERS.contains(&rival) => {
                    speed_up.both(&what, radix / quick, own / seconds[IN_PLACE]);
                }
                _ => speed_up.ours(&what, own / seconds[IN_PLACE]),
            }
        }
    }
    let mut series: Vec<ChartSeries> = Vec::new();
    for (rival, Rival { name, .. }) in RIVALS.iter().enumerate() {
        let point = |m: &RivalSeconds| {
            let megabytes = m.bytes as f64 / 1e6;
            (megabytes, megabytes / m.seconds[rival])
        };
        let points = measured.iter().map(point).collect();
        series.push(ChartSeries { name: (*name).to_owned(), paper: false, points });
    }
    for (column, name) in ["the paper's radix tag sort", "the paper's quicksort"].iter().enumerate()
    {
        let points = PAPER.iter().map(|(size, rates, _)| (*size as f64, rates[column])).collect();
        series.push(ChartSeries { name: (*name).to_owned(), paper: true, points });
    }
    let mut memory = OutcomeSection::new("memory over the records' (5.2.2)");
    let tags = TAG_BYTES as f64 / RECORD_BYTES as f64;
    memory.both("radix tag sort, in place", 1.32, 1. + tags);
    memory.ours("radix tag sort, into a second buffer", 2. + tags);
    Outcome {
        sections: vec![time, throughput, speed_up, memory],
        differs: vec![
            "Theirs: one core of a 2010 Xeon server; ours: one thread of the machine above.".into(),
            "Theirs is an LSD radix sort of 8 bits over ten key bytes; ours parts tags by up to 14 \
             bits while it extracts them, once more within the cache, and ends with insertion."
                .into(),
            "The paper says \"a default C implementation of Quicksort\", not whether it moves records \
             or pointers nor how it compares. Its figures stand beside a textbook quicksort of \
             pointers by memcmp; the quotient of one that compares two integers is held against the \
             paper's too."
                .into(),
            "A pointer sort's time ends when the pointers are in order, the radix sorts' when the \
             records are."
                .into(),
            "This machine's last-level cache may hold the smaller buffers whole, which helps whoever \
             follows pointers."
                .into(),
            "Means of the rounds, as in the paper; buffers are in memory and touched before; large \
             pages where the system gives them."
                .into(),
        ],
        chart: Chart::Lines {
            title: "Sorting 100-byte records in memory, one core".into(),
            axes: ["buffer, MB".into(), "MB/s".into()],
            series,
        },
    }
}
