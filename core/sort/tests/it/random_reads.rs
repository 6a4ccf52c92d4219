//! Reads at random offsets of a view of many runs, against the sorted bytes: runs that are samples
//! of the same keys, where the narrow bounds that are tried first nearly always do, and runs that
//! are not, where they do not.

use std::sync::Arc;

use merganser_sort::Budget;
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::builder::RunBuilder;
use merganser_sort::run::{Compression, RunWriter};
use merganser_sort::view::{Manifest, Segment, View};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, Storage};
use merganser_testkit::Random;

const RUNS: usize = 12;
const LINES: Format = Format::Lines { delimiter: b'\n' };

fn view(runs: &[Vec<String>], compression: Compression) -> View {
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let spec = OrderSpec::new(LINES);
    let segments = runs.iter().enumerate().map(|(i, lines)| {
        let storage = folder.create(&format!("{i:06}.run")).expect("creates");
        let memory = Budget::new(1 << 30).reserve(0, "fences").expect("fits");
        let writer = RunWriter::new(storage, 4096, compression, None, memory).expect("begins");
        let mut builder = RunBuilder::new(writer, spec.compile(None).expect("an order"))
            .expect("there is memory");
        builder.append(lines.concat().as_bytes()).expect("whole lines");
        Segment::of_run(&builder.finish("{}", true).expect("ends"))
    });
    let segments = segments.collect();
    Manifest::new("x".to_owned(), spec, Vec::new(), 0, segments).write(&folder).expect("writes");
    View::open(&folder, &Budget::new(64 << 20), 2).expect("opens")
}

fn check(what: &str, mut runs: Vec<Vec<String>>) {
    runs.iter_mut().for_each(|lines| lines.sort());
    let mut all = runs.concat();
    all.sort();
    let sorted = all.concat().into_bytes();
    for compression in [Compression::Off, Compression::Lz4] {
        let view = view(&runs, compression);
        assert_eq!(view.size(), sorted.len() as u64);
        let mut random = Random::new(7);
        let mut out = vec![0; 40_000];
        for len in [1, 100, 5000, 40_000].repeat(40) {
            let at = random.bits() as usize % sorted.len();
            let n = view.read_random(at as u64, &mut out[..len]).expect("reads");
            assert_eq!(n, len.min(sorted.len() - at), "{what}: {len} bytes at {at}");
            assert!(out[..n] == sorted[at..at + n], "{what}: {len} bytes at {at}");
        }
        for _ in 0..20 {
            let (a, b) = (random.index(sorted.len() + 1), random.index(sorted.len() + 1));
            let (from, to) = (a.min(b), a.max(b));
            let mut stream = view.stream(from as u64..to as u64).expect("begins");
            let mut at = from;
            while let Some(bytes) = stream.next_bytes().expect("streams") {
                assert!(sorted[at..].starts_with(bytes), "{what}: {from}..{to}, at {at}");
                at += bytes.len();
            }
            assert_eq!(at, to, "{what}: {from}..{to}");
            let record = random.index(all.len());
            let place: usize = all[..record].iter().map(String::len).sum();
            let found = view.offset_of_record(record as u64).expect("finds");
            assert_eq!(found, place as u64, "{what}: record {record}");
        }
    }
}

/// `count` lines whose keys begin with `stem`.
fn lines(random: &mut Random, stem: &str, count: usize) -> Vec<String> {
    let mut line = |_| {
        let bits = random.bits();
        format!("{stem}{bits:020} {}\n", "x".repeat(bits as usize % 150))
    };
    (0..count).map(&mut line).collect()
}

#[test]
fn runs_of_the_same_keys() {
    let mut random = Random::new(1);
    check("alike", (0..RUNS).map(|_| lines(&mut random, "", 2000)).collect());
}

#[test]
fn runs_that_follow_one_another_or_hold_other_keys() {
    let mut random = Random::new(2);
    let stem = |i: usize| char::from(b'a' + i as u8).to_string();
    check("apart", (0..RUNS).map(|i| lines(&mut random, &stem(i), 2000)).collect());
    let lopsided = |i: usize| {
        let mut all = lines(&mut random, &stem(i % 3), 1 + 700 * i);
        all.extend(lines(&mut random, "same", 200));
        all
    };
    check("lopsided", (0..RUNS).map(lopsided).collect());
    check("all equal", vec![vec!["same line\n".to_owned(); 5000]; RUNS]);
}

/// Keys longer than fences hold. Most of them begin alike, so that fences do not decide.
#[test]
fn runs_of_long_keys_that_begin_alike() {
    let mut random = Random::new(3);
    let mut line = |_| {
        let len = 10_000_f64.powf(random.fraction()) as usize;
        let byte = ["a", "b", "c"][random.index(3)];
        format!("{}{:03}\n", byte.repeat(len), random.below(1000))
    };
    let mut run = |_| (0..250).map(&mut line).collect();
    check("long", (0..3).map(&mut run).collect());
}
