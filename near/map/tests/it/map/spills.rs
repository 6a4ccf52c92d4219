//! Data of many times the memory: the rows are those of any memory, and few bytes are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use merganser_map::ssdlet::{Combine, Emitter, Ssdlet, SsdletError, Type};
use merganser_map::{MapOptions, MapOutput, MapReport, map};
use merganser_sort::Silent;
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::metered::{Meter, MeteredDirectory, Transfer};
use merganser_testkit::Random;
use proptest::prelude::*;

use super::support::{EVERY_COMBINE, How, LINES, Plain, Rows};

/// Counts the bytes that are written.
#[derive(Default)]
struct Written(AtomicU64);

impl Meter for Written {
    fn began(&self, _: Transfer) {}

    fn ended(&self, transfer: Transfer, bytes: u64) {
        if transfer == Transfer::Write {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// The rows, up to `most`, and the bytes of spills that were written.
fn mapped(
    how: How,
    ssdlet: &dyn Ssdlet,
    bytes: &[u8],
    most: Option<usize>,
) -> (Rows, MapReport, u64) {
    let written = Arc::new(Written::default());
    let temp = MeteredDirectory::new(MemoryDirectory::new(), Arc::clone(&written) as _);
    let options = MapOptions { temp: vec![temp], ..how.options() };
    let mut rows = Rows { most, ..Rows::default() };
    let inputs = how.inputs(&[bytes.to_vec()]);
    let report = map(ssdlet, inputs, MapOutput::Rows(&mut rows), &options, &Silent).expect("maps");
    assert_eq!(options.budget.free_bytes(), how.memory, "all memory is back");
    assert!(report.memory_peak_bytes <= how.memory);
    let bytes = written.0.load(Ordering::Relaxed);
    (rows, report, bytes)
}

/// Hands out the line with its length.
fn whole(record: &[u8], _: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    out.add(record, record.len() as i64);
    Ok(())
}

/// Lines of 80 random letters: none comes twice, and nothing shrinks.
fn noise(lines: usize) -> Vec<u8> {
    let mut random = Random::new(7);
    let mut line = || {
        let mut line: Vec<u8> = (0..80).map(|_| b'!' + random.below(94) as u8).collect();
        line.push(b'\n');
        line
    };
    (0..lines).flat_map(|_| line()).collect()
}

/// Each record goes to one run: all runs are merged at once.
#[test]
fn data_of_many_times_the_memory_is_written_once() {
    let bytes = noise(1_200_000);
    let how = How { memory: 12 << 20, ..How::default() };
    let ssdlet = Plain::keyed(LINES, Combine::Sum, Type::I64, whole);
    let (rows, report, written) = mapped(how, &ssdlet, &bytes, None);
    assert_eq!(rows.keyed.len(), 1_200_000);
    assert!(rows.keyed.is_sorted());
    let spilled = report.spilled_records * (8 + 81 + 8);
    assert!(spilled > 9 * how.memory && report.spill_runs > 10, "{report:?}");
    let times = written as f64 / spilled as f64;
    assert!(times < 1.1, "{times:.2} times {spilled} bytes in {} runs", report.spill_runs);
}

/// Records that shrink are written packed.
#[test]
fn spilled_records_are_packed_where_they_shrink() {
    let lines = (0..1_000_000_u64).map(|n| {
        let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        format!("{n:08}{}\n", "the same in every line ".repeat(2))
    });
    let bytes = lines.collect::<String>().into_bytes();
    let how = How { memory: 12 << 20, ..How::default() };
    let ssdlet = Plain::keyed(LINES, Combine::Count, Type::I64, whole);
    let (_, report, written) = mapped(how, &ssdlet, &bytes, None);
    let spilled = report.spilled_records * (8 + 55 + 8);
    let times = written as f64 / spilled as f64;
    assert!(report.spill_runs > 3 && times < 0.6, "{times:.2} times {spilled} bytes: {report:?}");
}

/// Values of one key become one before a run is written, and where runs are merged.
#[test]
fn runs_of_the_same_keys_do_not_grow_when_they_are_merged() {
    let mut random = Random::new(3);
    let mut line = || format!("{:06}\n", random.below(150_000));
    let bytes = (0..3_000_000).map(|_| line()).collect::<String>().into_bytes();
    let ssdlet = Plain::keyed(LINES, Combine::Count, Type::I64, whole);
    let roomy = How { memory: 1 << 30, ..How::default() };
    let (expected, report, _) = mapped(roomy, &ssdlet, &bytes, None);
    assert_eq!(report.spills, 0);
    let how = How { memory: 5 << 20, ..How::default() };
    let (rows, report, written) = mapped(how, &ssdlet, &bytes, None);
    assert!(rows.keyed == expected.keyed);
    let spilled = report.spilled_records * (8 + 7 + 8);
    let times = written as f64 / spilled as f64;
    assert!(report.spill_runs > 10 && times < 1.1, "{times:.2} times {spilled} bytes: {report:?}");
}

/// Numbers that leave 64 bits on the way, and come back.
fn far(record: &[u8], offset: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    let number = (offset as i64).wrapping_mul(0x5851_f42d_4c95_7f2d);
    out.emit(record, &number.to_le_bytes());
    out.emit(record, &(-(number / 2)).to_le_bytes());
    out.emit(record, &(number / 2 - number).to_le_bytes());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    /// One run or many, all rows or the first ones.
    #[test]
    fn rows_do_not_depend_on_how_spills_are_sorted(
        combine in prop::sample::select(&EVERY_COMBINE[..]),
        memory in (6u64 << 20)..(16 << 20),
        threads in 1usize..4,
        distinct in prop::sample::select(&[100_000u64, 400_000, 2_000_000][..]),
        most in prop::option::of(1usize..300_000),
        seed in any::<u64>(),
    ) {
        let mut random = Random::new(seed);
        let mut line = || format!("{:x}\n", random.below(distinct) * 0x1_0001);
        let bytes = (0..300_000).map(|_| line()).collect::<String>().into_bytes();
        let ssdlet = Plain::keyed(LINES, combine, Type::I64, far);
        let roomy = How { memory: 1 << 30, ..How::default() };
        let (mut expected, report, _) = mapped(roomy, &ssdlet, &bytes, None);
        prop_assert_eq!(report.spills, 0);
        let how = How { memory, threads, ..How::default() };
        let (rows, _, _) = mapped(how, &ssdlet, &bytes, most);
        expected.keyed.truncate(most.unwrap_or(usize::MAX));
        prop_assert!(rows.keyed == expected.keyed, "{:?} {:?}", combine, how);
    }
}
