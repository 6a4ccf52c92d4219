//! Merges of spill segments: the same bytes as one stable sort of all records, or an error that says
//! where.

use std::fs;
use std::path::{Path, PathBuf};

use merganser_hadoop_node::shuffle::{SegmentMerge, SegmentSpec, ShuffleError, WritableOrder};
use merganser_sort::record::ifile::push_record;
use proptest::prelude::*;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// A segment as Hadoop writes it.
fn segment(pairs: &Pairs) -> Vec<u8> {
    let mut bytes = Vec::new();
    pairs.iter().for_each(|(key, value)| push_record(key, value, &mut bytes));
    bytes.extend([0xff, 0xff]);
    let crc = crc32fast::hash(&bytes);
    bytes.extend(crc.to_be_bytes());
    bytes
}

fn spec(path: &Path, offset: usize, part: usize) -> SegmentSpec {
    SegmentSpec {
        path: path.to_path_buf(),
        offset: offset as u64,
        raw: part as u64 - 4,
        part: part as u64,
    }
}

/// Writes one spill a run, whose segment lies between two others.
fn spills(folder: &Path, runs: &[Pairs]) -> Vec<SegmentSpec> {
    let write = |(number, run): (usize, &Pairs)| {
        let path = folder.join(format!("spill_{number}.out"));
        let before = segment(&vec![(b"before".to_vec(), vec![7; number])]);
        let bytes = segment(run);
        fs::write(&path, [&before[..], &bytes, b"behind"].concat()).expect("written");
        spec(&path, before.len(), bytes.len())
    };
    runs.iter().enumerate().map(write).collect()
}

fn order(description: &str) -> WritableOrder {
    description.parse().expect("an order")
}

fn read_all(merge: &mut SegmentMerge, out_bytes: usize) -> Result<Vec<u8>, ShuffleError> {
    let (mut all, mut out) = (Vec::new(), vec![0; out_bytes]);
    loop {
        match merge.read(&mut out)? {
            0 => return Ok(all),
            n => all.extend_from_slice(&out[..n]),
        }
    }
}

fn merged(order: &WritableOrder, specs: &[SegmentSpec]) -> Result<Vec<u8>, ShuffleError> {
    read_all(&mut SegmentMerge::open(order, specs, 1 << 20)?, 4096)
}

fn sorted(order: &WritableOrder, mut pairs: Pairs) -> Pairs {
    pairs.sort_by(|a, b| order.compare(&a.0, &b.0).expect("keys"));
    pairs
}

fn pairs(keys: &[(&str, &str)]) -> Pairs {
    keys.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

#[test]
fn two_spills_and_an_empty_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = [pairs(&[("ant", "1"), ("elk", "2")]), vec![], pairs(&[("ant", "3"), ("cat", "4")])];
    let specs = spills(folder.path(), &runs);
    let merge = SegmentMerge::open(&order("raw"), &specs, 64 << 10).expect("sound");
    assert_eq!((merge.raw_len(), merge.part_len()), (26, 30));
    let bytes = merged(&order("raw"), &specs).expect("sound");
    let expected = b"\x03\x01ant1\x03\x01ant3\x03\x01cat4\x03\x01elk2\xff\xff\x91\x5f\x96\x29";
    assert_eq!(bytes, expected);
    assert_eq!(bytes, segment(&pairs(&[("ant", "1"), ("ant", "3"), ("cat", "4"), ("elk", "2")])));
}

#[test]
fn nothing_is_an_empty_segment() {
    let empty = [0xff, 0xff, 0xff, 0xff, 0x00, 0x00];
    assert_eq!(segment(&vec![]), empty, "as Hadoop writes it");
    assert_eq!(merged(&order("raw"), &[]).expect("nothing to fail"), empty);
    let folder = tempfile::tempdir().expect("a folder");
    let specs = spills(folder.path(), &[vec![], vec![]]);
    assert_eq!(merged(&order("raw"), &specs).expect("sound"), empty);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the memory and the sizes of reads: the bytes of a stable sort of all records, the
    /// length that was announced, and from any byte on as well.
    #[test]
    fn agrees_with_a_stable_sort(
        runs in prop::collection::vec(prop::collection::vec(
            (prop::collection::vec(b'a'..=b'c', 0..20), 0_usize..400, 0_u8..200), 0..40), 0..9),
        large in prop::collection::vec((0_usize..9, 0_usize..60_000, 0_usize..20_000), 0..3),
        description in prop::sample::select(vec!["raw", "raw:desc", "null,raw"]),
        spare in 0_usize..200_000,
        out in 1_usize..5000,
        skip in 0.0..1.2,
    ) {
        let order = order(description);
        let mut runs: Vec<Pairs> = runs.into_iter()
            .map(|run| run.into_iter().map(|(key, len, byte)| (key, vec![byte; len])).collect())
            .collect();
        for (run, value, key) in large {
            if let Some(run) = runs.get_mut(run) {
                run.push((vec![b'b'; key], vec![9; value]));
            }
        }
        let runs: Vec<Pairs> = runs.into_iter().map(|run| sorted(&order, run)).collect();
        let expected = segment(&sorted(&order, runs.concat()));
        let folder = tempfile::tempdir().expect("a folder");
        let specs = spills(folder.path(), &runs);
        let memory = 64_000 + 6000 * specs.len() + spare;

        let mut merge = SegmentMerge::open(&order, &specs, memory).expect("sound");
        prop_assert_eq!(merge.part_len(), expected.len() as u64);
        prop_assert_eq!(&read_all(&mut merge, out).expect("sound"), &expected);

        let from = (expected.len() as f64 * skip) as usize;
        let mut merge = SegmentMerge::open(&order, &specs, memory).expect("sound");
        merge.skip(from as u64).expect("sound");
        let rest = read_all(&mut merge, out).expect("sound");
        prop_assert_eq!(&rest, &expected[from.min(expected.len())..]);

        let mut merge = SegmentMerge::open(&order, &specs, memory).expect("sound");
        let (mut records, mut out) = (Vec::new(), vec![0; out]);
        loop {
            match merge.read_records(&mut out) {
                Ok(0) => break,
                Ok(n) => records.extend_from_slice(&out[..n]),
                Err(ShuffleError::Output { needed }) => out.resize(needed as usize, 0),
                Err(e) => panic!("{e}"),
            }
        }
        prop_assert_eq!(&records, &expected[..expected.len() - 6]);
    }
}

/// A small spill of two, and what its merge gives.
fn small(folder: &Path) -> (Vec<SegmentSpec>, Vec<u8>) {
    let runs = [pairs(&[("ant", "1"), ("cat", "22"), ("elk", "")]), pairs(&[("bee", "3")])];
    let specs = spills(folder, &runs);
    let bytes = merged(&order("raw"), &specs).expect("sound");
    (specs, bytes)
}

#[test]
fn every_changed_byte_is_found_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (specs, expected) = small(folder.path());
    let path = &specs[0].path;
    let whole = fs::read(path).expect("there");
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            fs::write(path, bytes).expect("written");
            let inside = specs[0].offset..specs[0].offset + specs[0].part;
            match merged(&order("raw"), &specs) {
                Ok(bytes) => {
                    assert!(!inside.contains(&(at as u64)), "byte {at}, bit {bit}");
                    assert_eq!(bytes, expected);
                }
                Err(e @ ShuffleError::Damaged { .. }) => {
                    assert!(inside.contains(&(at as u64)), "{e}");
                    assert!(e.to_string().contains("spill_0.out: damaged at byte "), "{e}");
                }
                Err(e) => panic!("byte {at}, bit {bit}: {e}"),
            }
        }
    }
}

#[test]
fn every_cut_is_found_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (specs, expected) = small(folder.path());
    let path = &specs[0].path;
    let whole = fs::read(path).expect("there");
    for len in 0..whole.len() {
        fs::write(path, &whole[..len]).expect("written");
        match merged(&order("raw"), &specs) {
            Ok(bytes) => {
                assert!(len as u64 >= specs[0].offset + specs[0].part, "{len}");
                assert_eq!(bytes, expected);
            }
            Err(e) => {
                let told = format!(
                    "{}: damaged at byte {len}: the file ends here, and the segment would end at \
                     byte {}",
                    path.display(),
                    specs[0].offset + specs[0].part
                );
                assert_eq!(e.to_string(), told);
            }
        }
    }
}

#[test]
fn a_file_cut_while_it_is_read_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let run: Pairs = (0..200_u8).map(|n| (vec![n], vec![n; 5000])).collect();
    let specs = spills(folder.path(), &[run]);
    let mut merge = SegmentMerge::open(&order("raw"), &specs, 64 << 10).expect("sound");
    let mut out = vec![0; 200_000];
    merge.read(&mut out).expect("sound so far");
    let file = fs::OpenOptions::new().write(true).open(&specs[0].path).expect("there");
    file.set_len(500_000).expect("cut");
    let error = read_all(&mut merge, 4096).expect_err("half of it is gone").to_string();
    assert!(
        error.ends_with("damaged at byte 500000: the file ends here, inside the segment"),
        "{error}"
    );
    let again = merge.read(&mut out).expect_err("no way on");
    assert!(matches!(again, ShuffleError::Failed));
}

#[test]
fn a_missing_file_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (specs, _) = small(folder.path());
    fs::remove_file(&specs[1].path).expect("removed");
    let error = merged(&order("raw"), &specs).expect_err("one is gone");
    assert!(matches!(error, ShuffleError::Missing { .. }));
    assert!(error.to_string().ends_with("spill_1.out: the spill is not there"), "{error}");
}

#[test]
fn lengths_that_contradict_the_bytes_are_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let (specs, _) = small(folder.path());
    let told = |change: &dyn Fn(&mut SegmentSpec)| {
        let mut specs = specs.clone();
        change(&mut specs[0]);
        merged(&order("raw"), &specs).expect_err("it was changed").to_string()
    };
    assert!(told(&|s| s.part += 1).contains("is 4 more than"));
    assert!(told(&|s| (s.raw, s.part) = (1, 5)).contains("which is at least 2"));
    assert!(told(&|s| (s.raw, s.part) = (u64::MAX, 3)).contains("4 more than"));
    assert!(told(&|s| (s.raw, s.part) = (u64::MAX - 4, u64::MAX)).contains("which no file has"));
    assert!(told(&|s| s.offset = u64::MAX - 9).contains("which no file has"));
    assert!(told(&|s| (s.raw, s.part) = (s.raw - 1, s.part - 1)).contains("end marker"));
    assert!(told(&|s| s.offset += 1).contains("damaged at byte"));
    let swapped = merged(&order("int"), &specs).expect_err("no keys of four bytes").to_string();
    assert!(swapped.contains("a key of 3 bytes, which ends inside its field 1 (int)"), "{swapped}");
}

#[test]
fn memory_that_is_too_small_says_how_much_is_needed() {
    let folder = tempfile::tempdir().expect("a folder");
    let long: Pairs = vec![(vec![1; 100_000], vec![])];
    let specs = spills(folder.path(), &[long.clone(), long]);
    let fails = |memory| match SegmentMerge::open(&order("raw"), &specs, memory)
        .and_then(|mut merge| read_all(&mut merge, 64 << 10))
    {
        Err(ShuffleError::Memory { needed, given }) => (needed, given),
        other => panic!("{:?}", other.map(|bytes| bytes.len())),
    };
    assert_eq!(fails(9000), (9362, 9000));
    assert!(fails(100_000).0 > 100_000);
    let mut merge = SegmentMerge::open(&order("raw"), &specs, 300_000).expect("enough");
    assert_eq!(read_all(&mut merge, 64 << 10).expect("enough").len() as u64, merge.part_len());
}

/// Keys that differ only behind hundreds of kilobytes, and more of them than the memory holds.
#[test]
fn keys_longer_than_any_buffer_are_merged_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = |number: usize| {
        [&vec![b'k'; 260_000 + 40_000 * (number % 3)][..], &[number as u8]].concat()
    };
    let text = |key: &[u8]| {
        let mut bytes = Vec::new();
        merganser_sort::record::ifile::push_vlong(key.len() as i64, &mut bytes);
        [&bytes, key].concat()
    };
    for description in ["text", "text:desc", "null,text"] {
        let order = order(description);
        let run = |run: usize| -> Pairs {
            let numbers = (0..5).map(|n| (7 * n + 3 * run) % 11);
            sorted(&order, numbers.map(|n| (text(&key(n)), vec![run as u8; 9])).collect())
        };
        let runs: Vec<Pairs> = (0..8).map(run).collect();
        let specs = spills(folder.path(), &runs);
        let expected = segment(&sorted(&order, runs.concat()));
        let mut merge = SegmentMerge::open(&order, &specs, 8 << 20).expect("sound");
        assert!(read_all(&mut merge, 100_000).expect("enough memory") == expected, "{description}");
        let mut merge = SegmentMerge::open(&order, &specs, 1 << 20).expect("sound");
        let error = read_all(&mut merge, 100_000).expect_err("too little for its keys");
        assert!(matches!(error, ShuffleError::Memory { .. }), "{error}");
        let mut merge = SegmentMerge::open_for_any_key(&order, &specs, 1 << 20).expect("sound");
        assert!(read_all(&mut merge, 100_000).expect("takes more") == expected, "{description}");
    }
}

#[test]
fn many_segments_share_little_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |n: u8| -> Pairs { (0..40_u8).map(|i| (vec![i, n], vec![n; 3000])).collect() };
    let runs: Vec<Pairs> = (0..64).map(run).collect();
    let specs: Vec<SegmentSpec> = spills(folder.path(), &runs);
    let mut merge = SegmentMerge::open(&order("fixed:1"), &specs, (64 * 5) << 10).expect("enough");
    let bytes = read_all(&mut merge, 10_000).expect("sound");
    assert_eq!(bytes, segment(&sorted(&order("fixed:1"), runs.concat())));
}

#[test]
fn no_descriptor_stays_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let (specs, _) = small(folder.path());
    let open = || {
        fs::read_dir("/proc/self/fd")
            .expect("Linux")
            .filter(|entry| {
                let link = entry.as_ref().ok().and_then(|entry| fs::read_link(entry.path()).ok());
                link.is_some_and(|path: PathBuf| path.starts_with(folder.path()))
            })
            .count()
    };
    let merge = SegmentMerge::open(&order("raw"), &specs, 64 << 10).expect("sound");
    assert_eq!(open(), 2);
    drop(merge);
    assert_eq!(open(), 0);
}
