//! Compressed inputs of sorts: every format, several of them at once, merges, plans, and what is damaged.

use std::io::{Cursor, Write};
use std::sync::Arc;

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use merganser_sort::key::OrderSpec;
use merganser_sort::merge::{Merging, merge_sorted};
use merganser_sort::record::Format;
use merganser_sort::run::magic::ContentKind;
use merganser_sort::run::{Compression, SortInput};
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
    Bzip2,
    Xz,
    Lz4,
}

const COMPRESSED: [How; 5] = [How::Gzip, How::Zstd, How::Bzip2, How::Xz, How::Lz4];

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
        How::Bzip2 => {
            let mut packed = BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            packed.write_all(part).expect("packs");
            packed.finish().expect("packs")
        }
        How::Xz => {
            let mut packed = XzEncoder::new(Vec::new(), 0);
            packed.write_all(part).expect("packs");
            packed.finish().expect("packs")
        }
        How::Lz4 => {
            let info = FrameInfo::new()
                .block_size(BlockSize::Max64KB)
                .block_mode(BlockMode::Linked)
                .content_checksum(true);
            let mut packed = FrameEncoder::with_frame_info(info, Vec::new());
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
    SortOptions::new(order.clone())
        .memory(memory_bytes)
        .threads(threads)
        .temp(vec![MemoryDirectory::new() as Arc<dyn Directory>])
        .compression(CompressionChoice::Fixed(Compression::Off))
        .strategy(strategy)
}

fn stored(bytes: &[u8], budget: &Budget) -> SortInput {
    SortInput::Storage(MemoryStorage::from_bytes("in.gz", bytes))
        .unpacked(ContentKind::Text, budget)
        .expect("a head")
}

fn piped(bytes: &[u8], budget: &Budget) -> SortInput {
    let reader = Box::new(Cursor::new(bytes.to_vec()));
    SortInput::Stream { name: "in.gz".to_owned(), reader }
        .unpacked(ContentKind::Text, budget)
        .expect("nothing is read")
}

fn sorted(
    inputs: &[Vec<u8>],
    input: impl Fn(&[u8], &Budget) -> SortInput,
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
    let csv = Format::csv_rows(b',', false);
    let formats =
        [LINES, csv, Format::Fixed { bytes: 10 }, Format::Keyed, Format::Fasta, Format::Fastq];
    for format in formats {
        let order = OrderSpec::new(format);
        let plain = [data(format, 1, 3 << 20), data(format, 2, 1 << 20), Vec::new()];
        let plainly = options(&order, 16 << 20, 2, Strategy::Merge);
        let (expected, _) = sorted(
            &plain,
            |bytes, _| SortInput::Storage(MemoryStorage::from_bytes("in", bytes)),
            &plainly,
        )
        .expect("sorts");
        for how in COMPRESSED {
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
    let forms = [How::Gzip, How::Plain, How::Zstd, How::Lz4, How::Gzip];
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
        merge_sorted(packed.collect(), &with, &Silent, |piece| {
            out.extend_from_slice(piece.bytes);
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
    for how in COMPRESSED {
        let good = pack(&plain, how, 2);
        let mut damaged = good.clone();
        let middle = damaged.len() / 2 + 1000;
        damaged[middle..middle + 60].fill(0x55);
        for bad in [damaged, good[..good.len() - 3].to_vec(), good[..middle].to_vec()] {
            // Alone, read by the reader; and as the second of some, decompressed ahead.
            for inputs in [vec![bad.clone()], vec![good.clone(), bad.clone(), good.clone()]] {
                for (input, threads) in
                    [(stored as fn(&[u8], &Budget) -> SortInput, 2), (piped, 2), (stored, 1)]
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

/// All bytes of an input, and its memory afterwards.
fn read(input: SortInput, budget: &Budget) -> merganser_sort::Result<Vec<u8>> {
    let mut options = options(&OrderSpec::new(LINES), 0, 1, Strategy::Auto);
    options.budget = budget.clone();
    let output = MemoryStorage::new("output");
    sort(vec![input], SortOutput::Storage(output.clone()), &options, &Silent)?;
    Ok(output.read_vec(0, output.size() as usize)?)
}

/// A frame of user data, which Zstandard and LZ4 skip.
fn skippable(low: u8, content: &[u8]) -> Vec<u8> {
    let len = (content.len() as u32).to_le_bytes();
    [&[0x50 | low, 0x2a, 0x4d, 0x18], &len[..], content].concat()
}

/// A1, N19: `pzstd` writes one before each frame, and seekable files end with one.
#[test]
fn skippable_frames_are_skipped_wherever_they_are() {
    for how in [How::Zstd, How::Lz4] {
        let frame = |text: &[u8]| pack(text, how, 1);
        let long = vec![b'x'; 300_000];
        for (bytes, expected) in [
            ([skippable(0, b"size"), frame(b"b\na\n")].concat(), &b"a\nb\n"[..]),
            ([skippable(3, &long), frame(b"b\na\n")].concat(), b"a\nb\n"),
            ([frame(b"b\n"), skippable(15, b""), frame(b"a\n")].concat(), b"a\nb\n"),
            ([frame(b"b\na\n"), skippable(14, b"table")].concat(), b"a\nb\n"),
            (
                [
                    skippable(1, b""),
                    skippable(2, b"1"),
                    frame(b""),
                    skippable(0, b"22"),
                    frame(b"b\na\n"),
                ]
                .concat(),
                b"a\nb\n",
            ),
            (skippable(0, b"nothing else"), b""),
            ([skippable(0, b""), skippable(0, b"")].concat(), b""),
            ([frame(b""), frame(b"")].concat(), b""),
        ] {
            for input in [stored, piped] {
                let budget = Budget::new(16 << 20);
                let found = read(input(&bytes, &budget), &budget).expect("sorts");
                assert_eq!(found, expected, "{how:?} {:?}", &bytes[..bytes.len().min(40)]);
            }
        }
        for bad in [
            skippable(0, b"whole")[..10].to_vec(),
            skippable(0, b"whole")[..6].to_vec(),
            [skippable(0, b""), b"b\na\n".to_vec()].concat(),
            [skippable(0, b""), pack(b"b\n", How::Gzip, 1)].concat(),
            [frame(b"b\n"), skippable(0, b"whole")[..10].to_vec()].concat(),
            [frame(b"b\n"), b"more".to_vec()].concat(),
        ] {
            let budget = Budget::new(16 << 20);
            let stored = SortInput::Storage(MemoryStorage::from_bytes("in", &bad));
            let found = stored.unpacked(ContentKind::Text, &budget);
            let told = found.and_then(|input| read(input, &budget)).expect_err("damaged");
            let told = told.to_string();
            assert!(told.starts_with("in: at byte ") && told.contains("damaged or cut"), "{told}");
            let found = read(piped(&bad, &budget), &budget);
            assert!(found.expect_err("damaged").to_string().contains("damaged or cut"));
        }
    }
}

/// Records of any bytes may begin like a skippable frame. They are compressed only if a frame follows.
#[test]
fn binary_records_that_begin_like_a_frame_are_records() {
    let like = skippable(7, b"12345678");
    for (bytes, expected) in [
        (like.clone(), like.clone()),
        ([like.clone(), b"PAR1".to_vec()].concat(), [like.clone(), b"PAR1".to_vec()].concat()),
        (skippable(7, b"12345678")[..9].to_vec(), like[..9].to_vec()),
        ([like.clone(), pack(b"12", How::Zstd, 1)].concat(), b"12".to_vec()),
        (b"PAR1\x15\0\0\0".to_vec(), b"PAR1\x15\0\0\0".to_vec()),
        (vec![0xff, 0xfe], vec![0xff, 0xfe]),
        (pack(b"PK\x03\x04", How::Gzip, 1), b"PK\x03\x04".to_vec()),
    ] {
        let budget = Budget::new(16 << 20);
        let stored = SortInput::Storage(MemoryStorage::from_bytes("in", &bytes));
        let name = "in".to_owned();
        let piped = SortInput::Stream { name, reader: Box::new(Cursor::new(bytes.clone())) };
        for input in [stored, piped] {
            let input = input.unpacked(ContentKind::Binary, &budget).expect("opens");
            let mut options =
                options(&OrderSpec::new(Format::Fixed { bytes: 1 }), 0, 1, Strategy::Auto);
            options.budget = budget.clone();
            let mut out = Vec::new();
            sort(vec![input], SortOutput::Writer(&mut out), &options, &Silent).expect("sorts");
            let mut expected = expected.clone();
            expected.sort_unstable();
            assert_eq!(out, expected, "{:?}", bytes.escape_ascii().to_string());
        }
    }
}

/// B1: gzip ignores zeros behind the last member.
#[test]
fn zeros_behind_gzip_members_are_ignored_and_nothing_else_is() {
    let good = pack(b"b\na\n", How::Gzip, 2);
    for zeros in [1, 9, 10, 511, 300_000] {
        let padded = [&good[..], &vec![0; zeros]].concat();
        for input in [stored, piped] {
            let budget = Budget::new(16 << 20);
            let found = read(input(&padded, &budget), &budget).expect("sorts");
            assert_eq!(found, b"a\nb\n");
            for behind in [b"x".to_vec(), good.clone()] {
                let bad = [&padded[..], &behind].concat();
                let told = read(input(&bad, &budget), &budget).expect_err("garbage").to_string();
                assert!(told.contains("damaged or cut"), "{told}");
            }
        }
    }
}

/// Each prefix of a file is what was whole before it, or an error; never something else.
#[test]
fn files_that_are_cut_anywhere_are_errors() {
    let text = b"d\nc\nb\na\n";
    for how in COMPRESSED {
        let parts = [pack(b"d\nc\n", how, 1), pack(b"b\na\n", how, 1)];
        let whole = parts.concat();
        for len in 0..=whole.len() {
            let cut = &whole[..len];
            for input in [stored, piped] {
                let budget = Budget::new(16 << 20);
                let found = read(input(cut, &budget), &budget);
                match found {
                    Ok(sorted) if len == whole.len() => assert_eq!(sorted, b"a\nb\nc\nd\n"),
                    Ok(sorted) if len == parts[0].len() => assert_eq!(sorted, b"c\nd\n"),
                    // Too short for a magic: a text of these bytes.
                    Ok(sorted) => assert!(
                        len < 10 && sorted.len() <= len + 1 && !sorted.ends_with(text),
                        "{how:?} {len}"
                    ),
                    Err(error) => {
                        let told = error.to_string();
                        assert!(told.contains("damaged or cut"), "{how:?} {len}: {told}");
                    }
                }
                assert_eq!(budget.free_bytes(), 16 << 20);
            }
        }
    }
}

/// A flipped bit is an error, or changes nothing.
#[test]
fn flipped_bits_never_give_other_records() {
    let text: Vec<u8> = (0..200).rev().flat_map(|n| format!("{n:03}\n").into_bytes()).collect();
    let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    let expected = lines.concat();
    for how in COMPRESSED {
        let good = pack(&text, how, 2);
        // Behind the magic, without which it is a text.
        for bit in 10 * 8..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let budget = Budget::new(64 << 20);
            let found = SortInput::Storage(MemoryStorage::from_bytes("in", &bad))
                .unpacked(ContentKind::Text, &budget)
                .and_then(|input| read(input, &budget));
            if let Ok(sorted) = found {
                assert!(sorted == expected, "{how:?}, bit {bit}");
            }
        }
    }
}

/// N19, E4: a file of another kind is refused at its first byte, plain or in a compressed file.
#[test]
fn known_files_of_other_kinds_are_refused() {
    let parquet = b"PAR1\x15\x04\x15\x10\n\n\n";
    let budget = Budget::new(16 << 20);
    let told = |bytes: &[u8]| {
        let stored = SortInput::Storage(MemoryStorage::from_bytes("in.gz", bytes));
        let found = stored.unpacked(ContentKind::Text, &budget);
        let stored = found.and_then(|input| read(input, &budget)).expect_err("refused");
        let piped = read(piped(bytes, &budget), &budget).expect_err("refused");
        assert_eq!(stored.to_string(), piped.to_string());
        stored.to_string()
    };
    assert_eq!(
        told(parquet),
        "in.gz: is a Parquet file, which is not read here; write it as csv first, for example with DuckDB"
    );
    for how in COMPRESSED {
        assert!(told(&pack(b"BAM\x01\0\0", how, 1)).starts_with("in.gz: holds a BAM file, "));
        let twice = pack(&pack(b"a\n", How::Xz, 1), how, 1);
        assert_eq!(
            told(&twice),
            "in.gz: holds an xz file, which is not read here; decompress it once before"
        );
    }
    let mut tar = vec![0; 512];
    tar[..5].copy_from_slice(b"a.txt");
    tar[257..262].copy_from_slice(b"ustar");
    assert!(told(&tar).starts_with("in.gz: is a tar archive, "));
    assert!(told(&pack(&tar, How::Gzip, 1)).starts_with("in.gz: holds a tar archive, "));
}

/// c17
#[test]
fn a_frame_that_needs_a_dictionary_says_so() {
    // A frame of two bytes as they are, with the number 7 of a dictionary.
    let head = [0x28, 0xb5, 0x2f, 0xfd, 0x21, 7, 2];
    let needs = [&head[..], &[2 << 3 | 1, 0, 0], b"a\n"].concat();
    let budget = Budget::new(16 << 20);
    let told = |bytes: &[u8]| read(piped(bytes, &budget), &budget).expect_err("no dictionary");
    assert!(told(&needs).to_string().contains("is a Zstandard file that needs a dictionary"));
    let later = [pack(b"a\n", How::Zstd, 1), needs].concat();
    let said = told(&later).to_string();
    assert!(said.contains("this part needs a dictionary") && !said.contains("damaged"), "{said}");
}

/// A part that needs more memory than the first part is an error that says so, and takes no more.
#[test]
fn later_parts_with_more_memory_are_errors() {
    let xz = |dictionary: u32, bytes: &[u8]| {
        let mut of = liblzma::stream::LzmaOptions::new_preset(0).expect("a preset");
        of.dict_size(dictionary);
        let mut filters = liblzma::stream::Filters::new();
        filters.lzma2(&of);
        let check = liblzma::stream::Check::Crc32;
        let stream = liblzma::stream::Stream::new_stream_encoder(&filters, check).expect("fits");
        let mut packed = XzEncoder::new_stream(Vec::new(), stream);
        packed.write_all(bytes).expect("packs");
        packed.finish().expect("packs")
    };
    let lz4 = |size: BlockSize, bytes: &[u8]| {
        let info = FrameInfo::new().block_size(size);
        let mut packed = FrameEncoder::with_frame_info(info, Vec::new());
        packed.write_all(bytes).expect("packs");
        packed.finish().expect("packs")
    };
    let small = Budget::new(24 << 20);
    for bytes in [
        [xz(1 << 16, b"a\n"), xz(12 << 20, b"b\n")].concat(),
        [lz4(BlockSize::Max64KB, b"a\n"), lz4(BlockSize::Max4MB, b"b\n")].concat(),
    ] {
        let told = read(stored(&bytes, &small), &small).expect_err("more").to_string();
        assert!(
            told.contains("this part needs more memory than the first part; decompress"),
            "{told}"
        );
        assert!(small.peak_bytes() <= 24 << 20);
    }
    let both = [xz(12 << 20, b"b\n"), xz(1 << 16, b"a\n")].concat();
    let budget = Budget::new(64 << 20);
    assert_eq!(read(stored(&both, &budget), &budget).expect("sorts"), b"a\nb\n");
    let options = options(&OrderSpec::new(LINES), 8 << 20, 2, Strategy::Auto);
    let error = sorted(&[xz(64 << 20, b"a\n")], stored, &options).expect_err("too little");
    assert!(matches!(error, Error::Memory { owner: "decompressing", .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_mixture_of_inputs_is_sorted_as_what_it_holds(
        inputs in prop::collection::vec((0..1000_u64, 0..300_000_usize, 0..6_usize, 1..4_usize), 0..9),
        threads in 0..4_usize,
        memory_mib in prop::sample::select(vec![6_u64, 16, 200]),
        distribute: bool,
    ) {
        let order = OrderSpec::new(Format::Fasta);
        let plain: Vec<Vec<u8>> =
            inputs.iter().map(|(seed, bytes, ..)| data(Format::Fasta, *seed, *bytes)).collect();
        let forms = [How::Plain, How::Gzip, How::Zstd, How::Bzip2, How::Xz, How::Lz4];
        let packed: Vec<Vec<u8>> = plain
            .iter()
            .zip(&inputs)
            .map(|(bytes, (_, _, how, parts))| pack(bytes, forms[*how], *parts))
            .collect();
        // A bzip2 decoder alone has 4 MiB.
        let has_bzip2 = inputs.iter().any(|(_, _, how, _)| forms[*how] == How::Bzip2);
        let memory_mib = if has_bzip2 { memory_mib.max(12) } else { memory_mib };
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
