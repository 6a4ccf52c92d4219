//! The result of a map against a simple one.

use std::fs;

use merganser_hadoop_node::hdfs::{
    CombineKind, DataDirs, HdfsError, MapRequest, MapTask, Modules, Writable,
};

use super::support::{HdfsFile, Spills, change, count, lines};

const MEMORY: u64 = 8 << 20;

fn run(
    file: &HdfsFile,
    request: &MapRequest,
    memory_bytes: u64,
) -> Result<(Spills, merganser_hadoop_node::hdfs::MapCounters), HdfsError> {
    let dirs = DataDirs::new(vec![file.dir()]);
    let mut spills = Spills::default();
    let counters =
        MapTask::open(request, &dirs, &Modules::new(None), memory_bytes)?.run(&mut spills)?;
    Ok((spills, counters))
}

#[test]
fn a_small_spill_is_pinned() {
    let file = HdfsFile::new(b"b a\nc b\n", 1024);
    let request = MapRequest { partitions: 2, ..file.whole("wordcount") };
    let (spills, counters) = run(&file, &request, MEMORY).expect("mapped");
    // The hash codes are 31 + 97, 98, 99: a and c are in partition 0, b is in partition 1.
    let first = b"\x02\x04\x01a\0\0\0\x01\x02\x04\x01c\0\0\0\x01\xff\xff";
    let second = b"\x02\x04\x01b\0\0\0\x02\xff\xff";
    let crc = |bytes: &[u8]| crc32fast::hash(bytes).to_be_bytes();
    let bytes = [&first[..], &crc(first), second, &crc(second)].concat();
    assert_eq!(spills.spills[0].0, bytes);
    assert_eq!((counters.input_records, counters.input_bytes), (2, 8));
    assert_eq!((counters.output_records, counters.output_bytes), (4, 4 * 6));
    assert_eq!((counters.combine_input_records, counters.combine_output_records), (4, 3));
    assert_eq!((counters.spilled_records, counters.spills), (3, 1));
    assert_eq!(counters.spill_bytes, bytes.len() as u64);
    assert_eq!((counters.read_bytes, counters.verified_bytes), (8 + 7 + 4, 8));
}

#[test]
fn a_map_without_output_has_one_spill() {
    let file = HdfsFile::new(b" \n", 1024);
    let (spills, counters) = run(&file, &file.whole("wordcount"), MEMORY).expect("mapped");
    assert_eq!(spills.spills.len(), 1);
    assert_eq!(spills.spills[0].0, b"\xff\xff\xff\xff\0\0".repeat(3));
    assert_eq!((counters.input_records, counters.spills, counters.spilled_records), (1, 1, 0));
    let empty = HdfsFile::new(b"", 1024);
    let (spills, counters) = run(&empty, &empty.whole("wordcount"), MEMORY).expect("mapped");
    assert_eq!((spills.spills.len(), counters.input_records), (1, 0));
}

#[test]
fn words_of_all_splits_are_those_of_the_file() {
    let text = lines(9000, 5000);
    let file = HdfsFile::new(&text, 100_000);
    let (mut all, mut records) = (Default::default(), 0);
    // Splits that have nothing to do with blocks.
    let cuts: Vec<_> = (0..text.len()).step_by(170_001).chain([text.len()]).collect();
    for pair in cuts.windows(2) {
        let request = file.split("wordcount", pair[0], pair[1]);
        let (spills, counters) = run(&file, &request, MEMORY).expect("mapped");
        assert_eq!(spills.spills.len(), 1, "it fits");
        records += counters.input_records;
        for (key, count) in spills.sums() {
            *std::collections::BTreeMap::entry(&mut all, key).or_insert(0) += count;
        }
    }
    assert_eq!(all, count(&text, 3));
    assert_eq!(records, 9000);
}

#[test]
fn a_table_that_is_full_is_spilled() {
    // More words than a table of a few MiB holds: 32 bytes each, at most 3 of 4 places taken.
    let text = lines(60_000, 400_000);
    let file = HdfsFile::new(&text, 1 << 20);
    let (spills, counters) = run(&file, &file.whole("wordcount"), MEMORY).expect("mapped");
    assert!(spills.spills.len() > 1, "{} spills", spills.spills.len());
    assert_eq!(counters.spills, spills.spills.len() as u64);
    assert_eq!(spills.sums(), count(&text, 3));
    assert!(counters.combine_output_records < counters.combine_input_records);
    let (done, records) = *spills.progress.last().expect("some");
    assert_eq!((done, records), (text.len() as u64, 60_000));
    let (one, _) = run(&file, &file.whole("wordcount"), 256 << 20).expect("mapped");
    assert_eq!(one.spills.len(), 1);
    assert_eq!(one.sums(), spills.sums());
}

#[test]
fn without_a_combiner_every_row_leaves() {
    let text = lines(500, 20);
    let file = HdfsFile::new(&text, 1 << 20);
    let none = MapRequest { combine: CombineKind::None, ..file.whole("wordcount") };
    let (spills, counters) = run(&file, &none, MEMORY).expect("mapped");
    assert_eq!((counters.output_records, counters.spilled_records), (4000, 4000));
    assert_eq!((counters.combine_input_records, counters.combine_output_records), (0, 0));
    assert_eq!(spills.sums(), count(&text, 3));
    let rows: usize = spills.rows_of(0).iter().map(Vec::len).sum();
    assert_eq!(rows, 4000);
}

/// The balancer, or the DataNode's restart, may remove a replica while it is mapped.
#[test]
fn a_replica_that_goes_under_its_map_is_mapped_to_its_end() {
    let file = HdfsFile::new(&lines(40_000, 1000), 1 << 20);
    let request = file.whole("wordcount");
    let (expected, counters) = run(&file, &request, MEMORY).expect("mapped");
    let dirs = DataDirs::new(vec![file.dir()]);
    let modules = Modules::new(None);
    let task = MapTask::open(&request, &dirs, &modules, MEMORY).expect("it is here");
    for n in 0..file.bytes.len().div_ceil(1 << 20) {
        let (data, meta) = file.paths(n);
        fs::remove_file(data).expect("removed");
        fs::remove_file(meta).expect("removed");
    }
    let mut spills = Spills::default();
    let found = task.run(&mut spills).expect("mapped");
    assert_eq!((&spills.spills, found.input_bytes), (&expected.spills, counters.input_bytes));
    let gone = MapTask::open(&request, &dirs, &modules, MEMORY).expect_err("it is gone");
    assert!(matches!(gone, HdfsError::Replica { .. }));
}

#[test]
fn damage_at_the_borders_of_a_split_fails_its_map() {
    let text = lines(200, 50);
    let file = HdfsFile::new(&text, 2048);
    let request = file.split("wordcount", 1000, 3000);
    run(&file, &request, MEMORY).expect("whole");
    for (block, at) in [(0, 999), (0, 1000), (0, 2047), (1, 0), (1, 951)] {
        let (data, _) = file.paths(block);
        change(&data, at);
        let error = run(&file, &request, MEMORY).expect_err("damaged");
        let HdfsError::Damaged { offset, .. } = &error else { panic!("{error}") };
        assert_eq!(*offset, at as u64 / 512 * 512, "{error}");
        change(&data, at);
    }
    // Pieces that the split has no byte of are not read.
    change(&file.paths(0).0, 100);
    change(&file.paths(1).0, 1024);
    run(&file, &request, MEMORY).expect("whole");
}

#[test]
fn a_map_that_cannot_be_is_refused_before_it_begins() {
    let text = lines(10, 50);
    let file = HdfsFile::new(&text, 1 << 20);
    let whole = || file.whole("wordcount");
    let refused = |request: &MapRequest| {
        let dirs = DataDirs::new(vec![file.dir()]);
        MapTask::open(request, &dirs, &Modules::new(None), MEMORY).expect_err("refused")
    };
    let mut request = whole();
    request.ranges[0].block.generation = 1002;
    assert!(matches!(refused(&request), HdfsError::Generation { found: 1001, .. }));
    let mut request = whole();
    request.ranges[0].block_length += 1;
    assert!(matches!(refused(&request), HdfsError::Length { .. }));
    let mut request = whole();
    request.ranges[0].block.id += 1;
    assert!(matches!(refused(&request), HdfsError::Replica { .. }));
    let request = MapRequest { pool: "BP-2".to_owned(), ..whole() };
    assert!(matches!(refused(&request), HdfsError::Replica { .. }));
    let request = MapRequest { delimiter: b"aab".to_vec(), ..whole() };
    assert!(matches!(refused(&request), HdfsError::Delimiter));
    let request = MapRequest { value: Writable::Text, ..whole() };
    assert!(matches!(refused(&request), HdfsError::Types { .. }));
    let request = MapRequest { partitions: 32_768, tail: vec![b'x'; 4 << 20], ..whole() };
    assert!(matches!(refused(&request), HdfsError::Memory { .. }));
    fs::remove_file(file.paths(0).1).expect("removed");
    assert!(matches!(refused(&whole()), HdfsError::Replica { .. }));
}

#[test]
fn a_long_tail_takes_no_room_from_records() {
    // The last line begins in the split and ends far behind it.
    let text = [lines(20_000, 500), b"x".repeat(3 << 20), b" y\n".to_vec()].concat();
    let file = HdfsFile::new(&text, 8 << 20);
    let begin = text.len() - (3 << 20);
    let request = file.split("wordcount", 0, begin);
    assert!(request.tail.len() > 2 << 20);
    let (spills, counters) = run(&file, &request, 24 << 20).expect("mapped");
    assert_eq!(spills.sums(), count(&text, 3));
    assert_eq!(counters.input_records, 20_001);
    let little = run(&file, &request, 12 << 20).map(|(_, counters)| counters);
    let little = little.expect_err("it is counted");
    assert!(matches!(little, HdfsError::Memory { .. } | HdfsError::Record { .. }), "{little}");
}

#[test]
fn a_row_longer_than_the_memory_is_an_error() {
    let text = [b"a ".as_slice(), &b"x".repeat(3 << 20), b"\n"].concat();
    let file = HdfsFile::new(&text, 8 << 20);
    let error = run(&file, &file.whole("wordcount"), MEMORY).expect_err("too long");
    assert!(matches!(error, HdfsError::Record { .. }), "{error}");
    let (spills, _) = run(&file, &file.whole("wordcount"), 64 << 20).expect("it fits");
    assert_eq!(spills.sums(), count(&text, 3));
}
