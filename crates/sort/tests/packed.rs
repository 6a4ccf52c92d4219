//! Compressed inputs of sorts: every format, several of them at once, merges, plans, and what is damaged.

use std::io::{Cursor, Write};
use std::sync::Arc;

use flate2::write::GzEncoder;
use merganser_sort::key::OrderSpec;
use merganser_sort::merge::{Merging, merge_sorted};
use merganser_sort::record::Format;
use merganser_sort::run::{Compression, Input};
use merganser_sort::{
    Budget, CompressionChoice, Error, Silent, SortOptions, SortOutput, SortReport, Strategy,
    explain, sort,
};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Storage, StorageExt};
use merganser_testkit::Random;
use proptest::prelude::*;

const LINES: Format = Format::Lines { delimiter: b'\n' };
const DISTRIBUTE: Strategy = Strategy::Distribute { uniform: false };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Plain,
    Gzip,
    Zstd,
}

/// `bytes` in this form, in as many members or frames.
fn pack(bytes: &[u8], how: How, parts: usize) -> Vec<u8> {
    let one = |part: &[u8]| match how {
        How::Plain => part.to_vec(),
        How::Gzip => {
            let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(part).expect("packs");
            packed.finish().expect("packs")
        }
        How::Zstd => {
            let mut packed = zstd::Encoder::new(Vec::new(), 1).expect("a level");
            // As `zstd` does: without it, changed literals may go unnoticed.
            packed.include_checksum(true).expect("a setting");
            packed.write_all(part).expect("packs");
            packed.finish().expect("packs")
        }
    };
    if bytes.is_empty() {
        return one(bytes);
    }
    bytes.chunks(bytes.len().div_ceil(parts)).flat_map(one).collect()
}

fn options(
    order: &OrderSpec,
    memory_bytes: u64,
    threads: usize,
    strategy: Strategy,
) -> SortOptions {
    SortOptions {
        order: order.clone(),
        budget: Budget::new(memory_bytes),
        threads,
        temp: vec![MemoryDirectory::new() as Arc<dyn Directory>],
        temp_limit_bytes: None,
        compression: CompressionChoice::Fixed(Compression::Off),
        top: None,
        strategy,
    }
}

fn stored(bytes: &[u8], budget: &Budget) -> Input {
    Input::Storage(MemoryStorage::from_bytes("in.gz", bytes)).unpacked(budget).expect("a head")
}

fn piped(bytes: &[u8], budget: &Budget) -> Input {
    let reader = Box::new(Cursor::new(bytes.to_vec()));
    Input::Stream { name: "in.gz".to_owned(), reader }.unpacked(budget).expect("nothing is read")
}

fn sorted(
    inputs: &[Vec<u8>],
    input: impl Fn(&[u8], &Budget) -> Input,
    options: &SortOptions,
) -> merganser_sort::Result<(Vec<u8>, SortReport)> {
    let output = MemoryStorage::new("output");
    let inputs = inputs.iter().map(|bytes| input(bytes, &options.budget)).collect();
    let report = sort(inputs, SortOutput::Storage(output.clone()), options, &Silent)?;
    assert_eq!(options.budget.free_bytes(), options.budget.limit_bytes(), "all memory is back");
    Ok((output.read_vec(0, output.size() as usize)?, report))
}

/// Records of each format.
fn data(format: Format, seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut out = Vec::new();
    while out.len() < bytes {
        let word: Vec<u8> = (0..random.index(40)).map(|_| b"ACGT"[random.index(4)]).collect();
        match format {
            Format::Lines { .. } => out.extend([&word[..], b"\n"].concat()),
            Format::Csv { .. } => out.extend([b"\"x\n\",", &word[..], b"\n"].concat()),
            Format::Fixed { bytes } => out.extend((0..bytes).map(|_| random.bits() as u8)),
            Format::Keyed => {
                out.extend((word.len() as u32).to_le_bytes());
                out.extend(3_u32.to_le_bytes());
                out.extend([&word[..], b"abc"].concat());
            }
            Format::Fasta => out.extend([b">", &word[..], b" x\n", &word, b"\n"].concat()),
            Format::Fastq => {
                out.extend([b"@", &word[..], b"\n", &word, b"\n+\n", &word, b"\n"].concat());
            }
        }
    }
    out
}

#[test]
fn records_of_every_format_are_what_compressed_inputs_hold() {
    let csv = Format::Csv { separator: b',', header: false };
    let formats =
        [LINES, csv, Format::Fixed { bytes: 10 }, Format::Keyed, Format::Fasta, Format::Fastq];
    for format in formats {
        let order = OrderSpec::new(format);
        let plain = [data(format, 1, 3 << 20), data(format, 2, 1 << 20), Vec::new()];
        let plainly = options(&order, 16 << 20, 2, Strategy::Merge);
        let (expected, _) = sorted(
            &plain,
            |bytes, _| Input::Storage(MemoryStorage::from_bytes("in", bytes)),
            &plainly,
        )
        .expect("sorts");
        for how in [How::Gzip, How::Zstd] {
            let packed: Vec<Vec<u8>> = plain.iter().map(|bytes| pack(bytes, how, 3)).collect();
            for strategy in [Strategy::Auto, DISTRIBUTE] {
                let options = options(&order, 16 << 20, 2, strategy);
                let (found, _) = sorted(&packed, stored, &options).expect("sorts");
                assert!(found == expected, "{format:?} {how:?} {strategy:?}");
            }
            let options = options(&order, 64 << 20, 2, Strategy::Auto);
            let (found, report) = sorted(&packed, piped, &options).expect("sorts");
            assert!(found == expected, "{format:?} {how:?} piped");
            assert_eq!((report.runs, report.input_bytes), (0, expected.len() as u64));
        }
    }
}

/// Decompressed ahead by several threads, or by the reader alone: the order of equal keys is that of the
/// inputs.
#[test]
fn many_inputs_keep_their_order() {
    let order = OrderSpec { keys: vec!["1,1".to_owned()], stable: true, ..OrderSpec::new(LINES) };
    let mut random = Random::new(3);
    let plain: Vec<Vec<u8>> = (0..60)
        .map(|number| {
            let lines = (0..random.index(4000)).map(|n| format!("{} {number} {n}\n", n % 7));
            lines.collect::<String>().into_bytes()
        })
        .collect();
    let whole = plain.concat();
    let mut lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort_by_key(|line| line[0]);
    let expected = lines.concat();
    let forms = [How::Gzip, How::Plain, How::Zstd, How::Gzip];
    let packed: Vec<Vec<u8>> =
        plain.iter().zip(forms.iter().cycle()).map(|(bytes, how)| pack(bytes, *how, 2)).collect();
    for (memory_bytes, threads) in [(8 << 20, 2), (256 << 20, 3), (256 << 20, 1), (64 << 20, 0)] {
        let options = options(&order, memory_bytes, threads, Strategy::Auto);
        let (found, _) = sorted(&packed, stored, &options).expect("sorts");
        assert!(found == expected, "{memory_bytes} {threads}");
        assert!(options.budget.peak_bytes() <= memory_bytes);
    }
}

#[test]
fn sorted_inputs_that_are_compressed_are_merged() {
    let order = OrderSpec::new(LINES);
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for seed in 0..6 {
        let bytes = data(LINES, seed, 100_000);
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        lines.sort_unstable();
        parts.push(lines.concat());
    }
    let whole = parts.concat();
    let mut lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    for memory_bytes in [4 << 20, 64 << 20] {
        let budget = Budget::new(memory_bytes);
        let packed = parts.iter().map(|part| stored(&pack(part, How::Gzip, 2), &budget));
        let with = Merging {
            order: &order,
            budget: &budget,
            temp: &[MemoryDirectory::new() as Arc<dyn Directory>],
            temp_limit_bytes: None,
            inputs_max: 100,
        };
        let mut out = Vec::new();
        merge_sorted(packed.collect(), &with, &Silent, |bytes| {
            out.extend_from_slice(bytes);
            Ok(true)
        })
        .expect("merges");
        assert!(out == lines.concat());
        assert_eq!(budget.free_bytes(), memory_bytes);
    }
}

#[test]
fn damaged_and_cut_inputs_are_named_with_the_place() {
    let order = OrderSpec::new(LINES);
    let plain = data(LINES, 5, 2 << 20);
    for how in [How::Gzip, How::Zstd] {
        let good = pack(&plain, how, 2);
        let mut damaged = good.clone();
        let middle = damaged.len() / 2 + 1000;
        damaged[middle..middle + 60].fill(0x55);
        for bad in [damaged, good[..good.len() - 3].to_vec(), good[..middle].to_vec()] {
            // Alone, read by the reader; and as the second of some, decompressed ahead.
            for inputs in [vec![bad.clone()], vec![good.clone(), bad.clone(), good.clone()]] {
                for (input, threads) in
                    [(stored as fn(&[u8], &Budget) -> Input, 2), (piped, 2), (stored, 1)]
                {
                    let options = options(&order, 64 << 20, threads, Strategy::Auto);
                    let found = sorted(&inputs, input, &options).map(|(_, report)| report);
                    let error = found.expect_err("damaged");
                    let told = error.to_string();
                    assert!(told.starts_with("in.gz: at byte "), "{told}");
                    assert!(told.contains("of the compressed file, after "), "{told}");
                    let place =
                        told["in.gz: at byte ".len()..].split(' ').next().expect("a number");
                    let place: usize = place.parse().expect("a number");
                    assert!(place <= bad.len() && place > 0, "{told}");
                    assert_eq!(options.budget.free_bytes(), 64 << 20);
                }
            }
        }
    }
}

/// The end of a record can be cut in what a compressed file holds as well.
#[test]
fn a_record_cut_in_a_compressed_input_is_named_with_its_place() {
    let mut plain = data(Format::Fastq, 6, 10_000);
    let place = plain.len() as u64;
    plain.extend_from_slice(b"@last\nACGT\n+\nII");
    let options = options(&OrderSpec::new(Format::Fastq), 16 << 20, 2, Strategy::Auto);
    let error = sorted(&[pack(&plain, How::Gzip, 1)], stored, &options).expect_err("cut");
    assert!(matches!(error, Error::LastRecord { offset, .. } if offset == place), "{error}");
}

#[test]
fn a_plan_says_what_it_assumes() {
    let order = OrderSpec::new(LINES);
    let plain = data(LINES, 7, 8 << 20);
    let packed = pack(&plain, How::Zstd, 1);
    let told = |inputs: Vec<Vec<u8>>, memory_bytes: u64| {
        let options = options(&order, memory_bytes, 2, Strategy::Auto);
        let inputs = inputs.iter().map(|bytes| stored(bytes, &options.budget)).collect();
        explain(inputs, false, &options).expect("a plan")
    };
    for inputs in [vec![packed.clone()], vec![plain[..1000].to_vec(), packed.clone()]] {
        let plan = told(inputs, 16 << 20);
        assert!(plan.input_bytes_assumed);
        let off = plan.input_bytes as f64 / plain.len() as f64;
        assert!((0.8..1.25).contains(&off), "{off}");
        assert_eq!(plan.strategy, "merge");
        assert!(plan.reason.contains("not known before"), "{}", plan.reason);
        assert!(plan.to_string().contains("assumed"), "{plan}");
    }
    assert_eq!(told(vec![packed.clone()], 256 << 20).strategy, "one pass");
    let plan = told(vec![plain], 16 << 20);
    assert!(!plan.input_bytes_assumed && !plan.to_string().contains("assumed"));
    let options = options(&order, 16 << 20, 2, Strategy::Auto);
    let error =
        explain(vec![piped(&packed, &options.budget)], false, &options).expect_err("a pipe");
    assert!(matches!(error, Error::UnknownSize));
}

#[test]
fn too_little_memory_for_a_window_is_an_error() {
    // A frame that says it needs 1 GiB.
    let mut packed = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 20 << 3];
    packed.extend([1, 0, 0]);
    let options = options(&OrderSpec::new(LINES), 64 << 20, 2, Strategy::Auto);
    let error = sorted(&[packed], stored, &options).expect_err("too long a window");
    let Error::Memory { owner: "decompressing", least_bytes, .. } = error else {
        panic!("{error}")
    };
    assert!(least_bytes > 1 << 30);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_mixture_of_inputs_is_sorted_as_what_it_holds(
        inputs in prop::collection::vec((0..1000_u64, 0..300_000_usize, 0..3_usize, 1..4_usize), 0..9),
        threads in 0..4_usize,
        memory_mib in prop::sample::select(vec![6_u64, 16, 200]),
        distribute: bool,
    ) {
        let order = OrderSpec::new(Format::Fasta);
        let plain: Vec<Vec<u8>> =
            inputs.iter().map(|(seed, bytes, ..)| data(Format::Fasta, *seed, *bytes)).collect();
        let forms = [How::Plain, How::Gzip, How::Zstd];
        let packed: Vec<Vec<u8>> = plain
            .iter()
            .zip(&inputs)
            .map(|(bytes, (_, _, how, parts))| pack(bytes, forms[*how], *parts))
            .collect();
        let strategy = if distribute && threads > 0 { DISTRIBUTE } else { Strategy::Auto };
        let whole = plain.concat();
        let mut records: Vec<Vec<u8>> = Vec::new();
        for line in whole.split_inclusive(|byte| *byte == b'\n') {
            if line[0] == b'>' {
                records.push(Vec::new());
            }
            records.last_mut().expect("a mark comes first").extend_from_slice(line);
        }
        records.sort();
        let options = options(&order, memory_mib << 20, threads, strategy);
        let (found, _) = sorted(&packed, stored, &options).expect("sorts");
        prop_assert!(found == records.concat());
        prop_assert!(options.budget.peak_bytes() <= memory_mib << 20);
    }
}
