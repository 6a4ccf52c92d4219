//! Views whose buckets are of both kinds: some hold sorted runs, some unsorted extents.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use merganser_sort::key::OrderSpec;
use merganser_sort::output::{Materialize, forget, materialize};
use merganser_sort::record::Format;
use merganser_sort::run::builder::RunBuilder;
use merganser_sort::run::{Compression, RunWriter, SortInput};
use merganser_sort::view::{Bucket, KeyBytes, MANIFEST_NAME, Manifest, Segment, View};
use merganser_sort::{
    Budget, CompressionChoice, Error, Progress, Silent, SortOptions, SortOutput, Strategy, sort,
};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Storage, StorageExt};
use merganser_testkit::Random;

use crate::consuming;

const MEMORY_BYTES: u64 = 6 << 20;

/// A view with buckets of both kinds, and the bytes that it reads like.
struct Mixed {
    folder: Arc<dyn Directory>,
    expected: Vec<u8>,
    header: usize,
}

/// Makes a view of buckets of `input`, and replaces some of the buckets by runs of their records. `expected`
/// is how the whole reads.
fn mixed(
    order: &OrderSpec,
    input: &[u8],
    expected: Vec<u8>,
    is_sorted: impl Fn(usize) -> bool,
) -> Mixed {
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let options = SortOptions::new(order.clone())
        .memory(MEMORY_BYTES)
        .threads(2)
        .temp(Vec::new())
        .compression(CompressionChoice::Fixed(Compression::Off))
        .strategy(Strategy::Distribute { uniform: false });
    let inputs = vec![SortInput::Storage(MemoryStorage::from_bytes("in", input))];
    let output = SortOutput::View { folder: Arc::clone(&folder), name: "mixed".to_owned() };
    sort(inputs, output, &options, &Silent).expect("sorts");
    let unsorted = Manifest::read(&folder).expect("reads");
    let header = unsorted.preamble.len();
    let mut at = header;
    let mut buckets = Vec::new();
    for (number, bucket) in unsorted.buckets.iter().enumerate() {
        let bytes = bucket.segments[0].bytes as usize;
        if is_sorted(number) && !bucket.one_key {
            let records = &expected[at..at + bytes];
            let segments = runs(&folder, order, &unsorted.preamble, number, records);
            buckets.push(Bucket { segments, from: bucket.from.clone(), one_key: false });
        } else {
            buckets.push(bucket.clone());
        }
        at += bytes;
    }
    assert_eq!(at, expected.len());
    let (name, preamble) = ("mixed".to_owned(), unsorted.preamble.clone());
    let manifest = Manifest::of_buckets(name, order.clone(), preamble, 7, buckets);
    assert_eq!((manifest.records, manifest.size_bytes), (unsorted.records, unsorted.size_bytes));
    folder.remove(MANIFEST_NAME).expect("removes");
    manifest.write(&folder).expect("writes");
    Mixed { folder, expected, header }
}

/// Three runs of `records`, which are in order.
fn runs(
    folder: &Arc<dyn Directory>,
    spec: &OrderSpec,
    header: &[u8],
    number: usize,
    records: &[u8],
) -> Vec<Segment> {
    let header = Some(header).filter(|header| !header.is_empty());
    let order = spec.compile(header).expect("compiles");
    let records: Vec<&[u8]> = records.split_inclusive(|b| *b == b'\n').collect();
    let kinds = [Compression::Off, Compression::Lz4, Compression::Off];
    let runs = kinds.into_iter().enumerate().map(|(run, compression)| {
        let storage = folder.create(&format!("{:06}.run", 10 * number + run)).expect("new");
        let memory = Budget::new(1 << 30).reserve(0, "fences").expect("fits");
        let writer = RunWriter::new(storage, 4096, compression, None, memory).expect("begins");
        let mut builder = RunBuilder::new(writer, order.clone()).expect("begins");
        let own: Vec<&[u8]> = records.iter().skip(run).step_by(3).copied().collect();
        builder.append(&own.concat()).expect("appends");
        Segment::of_run(&builder.finish("{}", true).expect("ends"))
    });
    runs.collect()
}

/// Lines in which one line makes a tenth of all, so that one bucket has one key.
fn lines() -> Mixed {
    lines_with(|number| number % 3 == 1)
}

fn lines_with(is_sorted: impl Fn(usize) -> bool) -> Mixed {
    let mut random = Random::new(5);
    let mut records: Vec<Vec<u8>> = (0..90_000)
        .map(|i| match i % 10 {
            0 => b"the same line again and again and again and again\n".to_vec(),
            _ => format!("{:016x} {}\n", random.bits(), "x".repeat(random.index(150))).into_bytes(),
        })
        .collect();
    let input = records.concat();
    records.sort();
    let order = OrderSpec::new(Format::Lines { delimiter: b'\n' });
    mixed(&order, &input, records.concat(), is_sorted)
}

fn csv() -> Mixed {
    let mut random = Random::new(6);
    let mut rows: Vec<(u64, String)> = (0..120_000)
        .map(|i| (random.bits() >> 20, format!("row number {i:08} of the table")))
        .collect();
    let text = |rows: &[(u64, String)]| {
        let rows: Vec<String> = rows.iter().map(|(n, t)| format!("{n:014},{t}\n")).collect();
        format!("number,text\n{}", rows.concat()).into_bytes()
    };
    let input = text(&rows);
    rows.sort();
    let format = Format::csv_rows(b',', true);
    let order = OrderSpec { keys: vec!["number".to_owned()], ..OrderSpec::new(format) };
    mixed(&order, &input, text(&rows), |number| number % 2 == 0)
}

fn open(mixed: &Mixed, threads: usize) -> View {
    View::open(&mixed.folder, &Budget::new(MEMORY_BYTES), threads).expect("opens")
}

fn streamed(view: &View, range: std::ops::Range<u64>) -> Vec<u8> {
    let mut stream = view.stream(range).expect("streams");
    let mut out = Vec::new();
    while let Some(bytes) = stream.next_bytes().expect("streams") {
        out.extend_from_slice(bytes);
    }
    out
}

#[test]
fn a_mixed_view_reads_like_the_file_in_every_way() {
    for (mixed, seed) in [(lines(), 1), (csv(), 2)] {
        let manifest = Manifest::read(&mixed.folder).expect("reads");
        let unsorted = manifest.buckets.iter().filter(|bucket| bucket.is_unsorted()).count();
        assert!(unsorted > 2 && manifest.buckets.len() - unsorted > 1, "{unsorted} are unsorted");
        let expected = &mixed.expected;
        for threads in [1, 2] {
            let view = open(&mixed, threads);
            assert_eq!(view.buckets(), manifest.buckets.len());
            assert!(streamed(&view, 0..u64::MAX) == *expected);
            let mut random = Random::new(seed);
            for _ in 0..20 {
                let at = random.index(expected.len() + 1);
                // Some reads cross from one kind of bucket into the other.
                let end = (at + random.index(1_500_000)).min(expected.len());
                let mut out = vec![0; end - at];
                assert_eq!(view.read_random(at as u64, &mut out).expect("reads"), end - at);
                assert!(out == expected[at..end], "{} bytes at {at}", end - at);
                assert!(streamed(&view, at as u64..end as u64) == expected[at..end]);
            }
            let mut at = 0;
            while at < expected.len() {
                let mut out = vec![0; 70_000];
                let n = view.read_at(at as u64, &mut out).expect("reads");
                assert!(n > 0 && out[..n] == expected[at..at + n], "at {at}");
                at += n;
            }
            let mut checked = 0;
            view.verify_all(|bytes| {
                checked += bytes;
                Ok(())
            })
            .expect("undamaged");
            assert_eq!(checked, (expected.len() - mixed.header) as u64);
        }
    }
}

#[test]
fn every_record_and_key_of_a_mixed_view_is_found() {
    for mixed in [lines(), csv()] {
        let view = open(&mixed, 2);
        let all: Vec<&[u8]> =
            mixed.expected[mixed.header..].split_inclusive(|b| *b == b'\n').collect();
        let mut offsets = vec![mixed.header as u64];
        for record in &all {
            offsets.push(offsets.last().expect("one") + record.len() as u64);
        }
        let some = (0..all.len()).step_by(3989).chain([all.len() - 1, all.len(), all.len() + 5]);
        for number in some {
            let expected = offsets[number.min(all.len())];
            assert_eq!(view.offset_of_record(number as u64).expect("finds"), expected);
        }
        let full = |record: &[u8]| {
            let mut key = Vec::new();
            view.order().encode_full(record, &mut key);
            key
        };
        for number in (0..all.len()).step_by(3989) {
            let key = full(all[number]);
            let first = all.partition_point(|record| full(record) < key);
            assert_eq!(view.offset_of_key(&key).expect("finds"), offsets[first]);
        }
        assert_eq!(view.offset_of_key(&[]).expect("finds"), mixed.header as u64);
        assert_eq!(view.offset_of_key(&[0xff; 40]).expect("finds"), view.size());
    }
}

/// Ends a copy after a number of bytes.
struct Until(AtomicU64, u64);

impl Progress for Until {
    fn advance(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= self.1
    }
}

/// Bytes on disk of all files of the view, but the manifest.
fn allocated(mixed: &Mixed) -> u64 {
    let names = mixed.folder.list().expect("lists");
    let files = names.iter().filter(|name| *name != MANIFEST_NAME);
    files
        .map(|name| {
            let file = mixed.folder.open(name, false).expect("opens");
            let bytes = file.read_vec(0, file.size() as usize).expect("reads");
            bytes.chunks(4096).filter(|page| page.iter().any(|b| *b != 0)).count() as u64 * 4096
        })
        .sum()
}

/// Copies the view out, interrupted again and again. Returns how often, and how many bytes were given
/// back before the last call.
fn copied(mixed: &Mixed, consume: bool) -> (u32, u64) {
    let output: Arc<dyn Directory> = MemoryDirectory::new();
    let before = allocated(mixed);
    let (mut interrupted, mut given_back) = (0, 0);
    loop {
        let what = Materialize {
            folder: &mixed.folder,
            work: &output,
            publish: &|_| consuming::publish_in(&output),
            output: consuming::text("out"),
            view: consuming::text("view"),
            consume,
            budget: &Budget::new(MEMORY_BYTES),
            threads: 2,
            checkpoint_bytes: Some(300_000),
        };
        // Bytes that were copied before count again.
        let until = u64::from(interrupted + 1) * 1_100_000;
        match materialize(&what, &Until(AtomicU64::new(0), until)) {
            Ok(bytes) => {
                if consume {
                    forget(&output).expect("forgets");
                }
                assert_eq!(bytes, mixed.expected.len() as u64);
                break;
            }
            Err(Error::Cancelled) => interrupted += 1,
            Err(other) => panic!("{other}"),
        }
        // The marker takes a page.
        given_back = before - allocated(mixed).min(before);
    }
    let file = output.open("out", false).expect("opens");
    assert!(file.read_vec(0, file.size() as usize).expect("reads") == mixed.expected);
    assert_eq!(output.list().expect("lists"), ["out"]);
    (interrupted, given_back)
}

#[test]
fn a_mixed_view_is_copied_out_however_often_it_is_interrupted() {
    for consume in [false, true] {
        for mixed in [lines(), csv()] {
            let bytes = mixed.expected.len() as u64;
            let (interrupted, given_back) = copied(&mixed, consume);
            assert!(interrupted > 4, "{interrupted}");
            let most = given_back > bytes / 3 * 2;
            assert_eq!(most, consume, "{given_back} of {bytes} were given back");
            assert_eq!(mixed.folder.list().expect("lists").is_empty(), consume);
        }
    }
}

#[test]
fn a_view_may_be_all_of_one_kind_or_begin_and_end_with_either() {
    type Choice = fn(usize) -> bool;
    let all = |_| true;
    let none = |_| false;
    let checks: [(&str, Choice); 4] =
        [("sorted", all), ("unsorted", none), ("odd", |n| n % 2 == 1), ("even", |n| n % 2 == 0)];
    for (what, is_sorted) in checks {
        let mixed = lines_with(is_sorted);
        let view = open(&mixed, 2);
        assert!(streamed(&view, 0..u64::MAX) == mixed.expected, "{what}");
        let third = view.size() / 3;
        let expected = &mixed.expected[third as usize..2 * third as usize];
        assert!(streamed(&view, third..2 * third) == expected, "{what}");
    }
}

#[test]
fn the_manifest_of_a_mixed_view_says_so() {
    let mixed = csv();
    let manifest = Manifest::read(&mixed.folder).expect("reads");
    let text = String::from_utf8(manifest.encode()).expect("text");
    assert!(text.contains("\"version\": 3"), "{text}");
    assert_eq!(Manifest::decode("x", text.as_bytes()).expect("reads"), manifest);
    // Views with buckets of one kind have the same bytes as before.
    let unsorted = lines_with(|_| false);
    let text = Manifest::read(&unsorted.folder).expect("reads").encode();
    assert!(String::from_utf8_lossy(&text).contains("\"version\": 2"));
}

#[test]
fn manifests_that_contradict_themselves_are_refused() {
    let mixed = csv();
    let manifest = Manifest::read(&mixed.folder).expect("reads");
    let refused = |change: fn(&mut Vec<Bucket>)| {
        let mut buckets = manifest.buckets.clone();
        change(&mut buckets);
        let (order, preamble) = (manifest.order.clone(), manifest.preamble.clone());
        let changed = Manifest::of_buckets("x".to_owned(), order, preamble, 7, buckets);
        mixed.folder.remove(MANIFEST_NAME).expect("removes");
        changed.write(&mixed.folder).expect("writes");
        let opened = View::open(&mixed.folder, &Budget::new(MEMORY_BYTES), 1);
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "{:?}", opened.err());
    };
    // Without a bound; both kinds in a bucket; out of order; a sorted bucket of one key; a bucket twice.
    refused(|buckets| buckets[1].from = None);
    refused(|buckets| {
        let segment = buckets[1].segments[0].clone();
        buckets[0].segments.push(segment);
    });
    refused(|buckets| buckets.swap(0, 1));
    refused(|buckets| buckets[0].one_key = true);
    refused(|buckets| {
        let mut again = buckets[1].clone();
        again.from = Some(KeyBytes(vec![0xff; 30]));
        buckets.push(again);
    });
}
