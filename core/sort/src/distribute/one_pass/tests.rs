//! Small inputs, shared pieces, and random lines against a standard sort.

use std::sync::Arc;

use merganser_storage::memory::MemoryStorage;
use merganser_storage::{Buffer, Storage, StorageExt};
use proptest::prelude::*;

use super::*;
use crate::key::OrderSpec;
use crate::run::gather::GatherRecords;
use crate::run::piece::Piece;
use crate::run::write_behind::WriteBehind;
use crate::{Budget, Silent};

const LINES: Format = Format::Lines { delimiter: b'\n' };

fn order(format: Format, keys: &[&str]) -> Order {
    let mut spec = OrderSpec::new(format);
    spec.keys = keys.iter().map(|key| (*key).to_owned()).collect();
    spec.compile(None).expect("an order")
}

fn records(bytes: &[u8], format: Format) -> Vec<&[u8]> {
    let mut ends = Vec::new();
    format.cut(bytes, 1, &mut ends);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, end)| &bytes[start..*end]).collect()
}

/// All of `inputs` in order; `None` where one pass does not suit. There is room for `tags` tags.
fn sorted(
    inputs: &[Vec<u8>],
    order: &Order,
    (buckets, threads, tags): (u64, usize, usize),
) -> Option<Vec<u8>> {
    let stored = inputs.iter().map(|bytes| MemoryStorage::from_bytes("input", bytes));
    let inputs: Vec<SortInput> = stored.map(|storage| SortInput::Storage(storage as _)).collect();
    let total: u64 = inputs.iter().filter_map(SortInput::size).sum();
    let sample =
        RecordSample { record_bytes: 20.0, key_bytes: 8.0, fence_key_bytes: 8.0, in_order: false };
    let one = OnePass::with_buckets(&inputs, order, sample, buckets, threads);
    let one = one.expect("reads")?;
    let read_bytes = (total as usize + 8192 * (inputs.len() + 1)).next_multiple_of(4096);
    let mut chunk = Chunk::new(read_bytes.max(65536)).expect("there is memory");
    let mut reader = ChunkReader::new(inputs, order.format(), read_bytes.max(65536));
    let room = || Buffer::new(tags * size_of::<Tag>());
    let keys = Buffer::new((64 << 10) * threads + 40 * tags);
    let mut memory = SortMemory::new(room(), room(), keys, &Budget::new(1 << 30));
    let bucketed = one
        .read(&mut reader, &mut chunk, read_bytes.max(65536), &mut memory, &Silent)
        .expect("reads");
    assert_eq!(chunk.data_bytes() as u64, total, "the chunk is whole either way");
    let bucketed = bucketed?;
    let out = MemoryStorage::new("out");
    let behind =
        || WriteBehind::new(Arc::clone(&out) as Arc<dyn Storage>, vec![Buffer::new(PIECE_BYTES)]);
    let mut behinds: Vec<_> = (0..threads).map(|_| behind()).collect();
    let place = |number, piece: Piece, behind: &mut WriteBehind| {
        let (buffer, len) = piece.into_bytes();
        behind.write(number * PIECE_BYTES as u64, buffer, len)
    };
    let mut bucketed = bucketed.of_chunk(&chunk, &mut memory);
    bucketed.gather(4096, false, &mut behinds, &place).expect("writes");
    behinds.iter_mut().try_for_each(WriteBehind::drain).expect("writes");
    assert_eq!((bucketed.bytes(), out.size()), (total, total));
    Some(out.read_vec(0, total as usize).expect("reads"))
}

fn check(inputs: &[Vec<u8>], order: &Order, buckets: u64, threads: usize) {
    let all = inputs.concat();
    let mut expected = records(&all, order.format());
    let blocks = threads * (buckets as usize + 1) * BLOCK_TAGS;
    let tags = 2 * threads * expected.len() + blocks;
    expected.sort_by(|a, b| order.compare(a, b));
    let found = sorted(inputs, order, (buckets, threads, tags)).expect("suits");
    assert!(found == expected.concat(), "{:?}, {buckets} buckets", order.spec());
}

#[test]
fn words_of_two_files_come_in_order() {
    let inputs = [b"pear\nfig\n".to_vec(), b"plum\nfig\napple\n".to_vec()];
    let found = sorted(&inputs, &order(LINES, &[]), (3, 2, 1000)).expect("suits");
    assert_eq!(found, b"apple\nfig\nfig\npear\nplum\n");
}

#[test]
fn every_tiny_input() {
    let order = order(Format::Fixed { bytes: 2 }, &["0:1"]);
    for count in 0..=4u32 {
        for code in 0..3usize.pow(count) {
            let record = |i: u32| [[0, 7, 255][code / 3usize.pow(i) % 3], i as u8];
            check(&[(0..count).flat_map(record).collect()], &order, 3, 2);
        }
    }
}

#[test]
fn pieces_that_buckets_share_and_long_records() {
    let fixed = order(Format::Fixed { bytes: 100 }, &["0:10"]);
    let record = |i: u32, values: u32| {
        let mut record = vec![i as u8; 100];
        let key = i.wrapping_mul(2_654_435_761) % values;
        record[..8].copy_from_slice(b"the same");
        record[4..8].copy_from_slice(&key.to_be_bytes());
        record
    };
    for values in [1, 2, 1000, u32::MAX] {
        let bytes: Vec<u8> = (0..35_000).flat_map(|i| record(i, values)).collect();
        for (buckets, threads) in [(1, 1), (3, 2), (400, 3)] {
            check(&[bytes.clone(), bytes[..5000].to_vec()], &fixed, buckets, threads);
        }
    }
    let line = |i: usize| format!("{:07}{}\n", i * 7919 % 100, "x".repeat(i * i * 3000));
    check(&[(0..30).flat_map(|i| line(i).into_bytes()).collect()], &order(LINES, &[]), 8, 2);
}

#[test]
fn unsuitable_inputs_leave_the_chunk_whole() {
    let fixed = order(Format::Fixed { bytes: 4 }, &["0:4"]);
    let bytes: Vec<u8> = (0..40_000u32).flat_map(u32::to_be_bytes).collect();
    assert_eq!(sorted(&[bytes], &fixed, (4, 2, 20_000)), None);
    let keyed = order(Format::Keyed, &[]);
    assert_eq!(sorted(&[Vec::new()], &keyed, (4, 2, 1000)), None);
}

#[test]
fn a_worker_that_panics_ends_the_reading() {
    let mut chunk = Chunk::new(8 << 20).expect("there is memory");
    let (backing, reads) = chunk.backing(8 << 20);
    let work = SpanWork::new(backing, reads, 2).expect("there is memory");
    let worker = std::panic::AssertUnwindSafe(|| {
        let _alarm = SpanAlarm(&work);
        panic!("in a test");
    });
    std::panic::catch_unwind(worker).expect_err("it panicked");
    let input = SortInput::Storage(MemoryStorage::from_bytes("input", &[7; 5 << 20]) as _);
    let mut reader = ChunkReader::new(vec![input], Format::Fixed { bytes: 4 }, 8 << 20);
    let mut feed = SpanFeed { work: &work };
    let error = reader.fill_followed(&mut chunk, Some(&mut feed), &Silent).expect_err("no worker");
    assert!(error.to_string().contains("the copier is gone"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn agrees_with_the_standard_stable_sort(
        lines in prop::collection::vec(prop::collection::vec(97u8..101, 0..30), 1..3000),
        split in 0usize..3000, threads in 1usize..4, buckets in 1u64..60, kind in 0usize..5,
    ) {
        let split = split % lines.len();
        let part = |lines: &[Vec<u8>]| -> Vec<u8> {
            lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect()
        };
        let inputs = [part(&lines[..split]), part(&lines[split..])];
        let mut spec = OrderSpec::new(LINES);
        match kind {
            0 => {}
            1 => spec.options.push('r'),
            2 => spec.keys.push("1.2,1.9".to_owned()),
            3 => spec.keys.push("1,1r".to_owned()),
            _ => spec.options.push('f'),
        }
        check(&inputs, &spec.compile(None).expect("an order"), buckets, threads);
    }
}
