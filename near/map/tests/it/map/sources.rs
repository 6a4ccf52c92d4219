//! Every record once, whatever cuts the input.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use merganser_map::MapInput;
use merganser_map::ssdlet::{Combine, Emitter, SsdletError, Type};
use merganser_sort::record::{Format, InputRecords};
use merganser_sort::run::magic::ContentKind;
use merganser_sort::{Budget, Error};
use merganser_storage::memory::MemoryStorage;
use proptest::prelude::*;

use super::support::{How, LINES, Plain, Rows, storage, text};

const CSV: Format = Format::csv_rows(b',', true);

/// Hands out each record with its place.
fn records(record: &[u8], offset: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    out.records(format!("{offset} {}\n", record.escape_ascii()).as_bytes());
    Ok(())
}

/// Records and places by the drawing in docs: cut one after the other.
fn cut(format: Format, bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut bytes = bytes.to_vec();
    let mut cuts = Vec::new();
    format.cut(&bytes, 1, &mut cuts);
    let whole = cuts.last().copied().unwrap_or(0);
    if whole < bytes.len() {
        let tail = InputRecords::within(format).tail(&bytes[whole..]);
        let merganser_sort::record::Tail::Complete(end) = tail else {
            panic!("damaged");
        };
        bytes.extend_from_slice(end);
    }
    let (mut at, mut records) = (0, Vec::new());
    while at < bytes.len() {
        let len = format.record_len(&bytes[at..]).expect("whole");
        records.push((at as u64, bytes[at..at + len].to_vec()));
        at += len;
    }
    if matches!(format, Format::Csv { header: true, .. }) && !records.is_empty() {
        records.remove(0);
    }
    records
}

fn shown<'a>(records: impl Iterator<Item = &'a (u64, Vec<u8>)>) -> Vec<u8> {
    let shown = records.map(|(at, record)| format!("{at} {}\n", record.escape_ascii()));
    shown.collect::<String>().into_bytes()
}

fn input(bytes: &[u8], range: Option<Range<u64>>) -> MapInput {
    MapInput::Storage { storage: storage(bytes), range }
}

/// All tiny inputs of two letters and the delimiter, all chunk sizes, all ranges.
#[test]
fn every_line_once_in_all_tiny_inputs() {
    let ssdlet = Plain::ordered(LINES, records);
    for len in 0..=5u32 {
        for number in 0..2u32.pow(len) {
            let bytes: Vec<u8> =
                (0..len).map(|i| if number >> i & 1 == 1 { b'\n' } else { b'a' }).collect();
            let all = cut(LINES, &bytes);
            for chunk in 1..=u64::from(len) + 1 {
                let how = How::chunks(chunk, 1 + (number % 2) as usize);
                let (rows, _) = how.map(&ssdlet, vec![input(&bytes, None)]).expect("maps");
                assert_eq!(rows.ordered, shown(all.iter()), "{bytes:?} {chunk}");
                let (rows, _) = How { streams: true, ..how }
                    .map(&ssdlet, how.inputs(std::slice::from_ref(&bytes)))
                    .expect("maps");
                assert_eq!(rows.ordered, shown(all.iter()), "{bytes:?} {chunk}");
            }
            for start in 0..=u64::from(len) {
                for end in start..=u64::from(len) {
                    let how = How::chunks(2, 1);
                    let (rows, _) =
                        how.map(&ssdlet, vec![input(&bytes, Some(start..end))]).expect("maps");
                    let owned = all.iter().filter(|(at, _)| (start..end).contains(at));
                    assert_eq!(rows.ordered, shown(owned), "{bytes:?} {start}..{end}");
                }
            }
        }
    }
}

#[test]
fn other_delimiters_and_carriage_returns_stay_what_they_are() {
    let bytes = b"one\r\ntwo\0three\n\0\0four\r\n";
    for delimiter in [b'\n', 0, b'\r', b'e', 0xff] {
        let format = Format::Lines { delimiter };
        let ssdlet = Plain::ordered(format, records);
        for chunk in 1..30 {
            let (rows, _) =
                How::chunks(chunk, 2).map(&ssdlet, vec![input(bytes, None)]).expect("maps");
            assert_eq!(rows.ordered, shown(cut(format, bytes).iter()));
        }
    }
}

#[test]
fn fixed_records_have_borders_too() {
    for record in [1, 3, 7] {
        let format = Format::Fixed { bytes: record };
        let ssdlet = Plain::ordered(format, records);
        let bytes: Vec<u8> = (0..21).collect();
        let all = cut(format, &bytes);
        for chunk in 1..25 {
            let how = How::chunks(chunk, 2);
            let (rows, _) = how.map(&ssdlet, vec![input(&bytes, None)]).expect("maps");
            assert_eq!(rows.ordered, shown(all.iter()));
        }
        for start in 0..21 {
            for end in start..=21 {
                let range = Some(start..end);
                let how = How::chunks(4, 1);
                let (rows, _) = how.map(&ssdlet, vec![input(&bytes, range)]).expect("maps");
                let owned = all.iter().filter(|(at, _)| (start..end).contains(at));
                assert_eq!(rows.ordered, shown(owned), "{start}..{end}");
            }
        }
    }
    let ssdlet = Plain::ordered(Format::Fixed { bytes: 4 }, records);
    for streams in [false, true] {
        let how = How { streams, ..How::chunks(4, 2) };
        let mut rows = Rows::default();
        let error = how.map_to(&ssdlet, how.inputs(&[vec![b'x'; 9]]), &mut rows).expect_err("cut");
        assert!(
            matches!(&error, SsdletError::Engine(Error::LastRecord { offset: 8, .. })),
            "{error}"
        );
        assert_eq!(rows.ordered, b"0 xxxx\n4 xxxx\n", "what came before it");
    }
}

#[test]
fn quotes_and_headers_of_csv() {
    let one = b"id,name\n1,\"two\nlines\"\n2,\"a \"\"quote\"\"\"\n3,x".to_vec();
    let two = b"id,name\n4,y\r\n".to_vec();
    let ssdlet = Plain::ordered(CSV, records);
    let expected = [shown(cut(CSV, &one).iter()), shown(cut(CSV, &two).iter())].concat();
    for streams in [false, true] {
        for chunk in 1..50 {
            let how = How { streams, ..How::chunks(chunk, 2) };
            let inputs = [one.clone(), two.clone(), Vec::new(), b"id,name".to_vec()];
            // The last one is a header without its end.
            let inputs = if chunk % 2 == 0 { &inputs[..3] } else { &inputs[..2] };
            let (rows, report) = how.map(&ssdlet, how.inputs(inputs)).expect("maps");
            assert_eq!(rows.ordered, expected, "{chunk}");
            assert_eq!(report.header.as_deref(), Some(&b"id,name\n"[..]));
        }
    }
    let how = How::chunks(10, 2);
    let error = how.map(&ssdlet, how.inputs(&[one.clone(), b"id,other\n5,z\n".to_vec()]));
    let error = error.expect_err("another header").to_string();
    assert!(error.contains("'other', and 'name' in the first input"), "{error}");
    let error = how.map(&ssdlet, vec![input(&one, Some(8..30))]);
    assert!(error.expect_err("no border there").to_string().contains("range"));
    let all = cut(CSV, &one);
    for end in 0..=one.len() as u64 {
        let (rows, _) = how.map(&ssdlet, vec![input(&one, Some(0..end))]).expect("maps");
        assert_eq!(rows.ordered, shown(all.iter().filter(|(at, _)| *at < end)));
    }
    let error = how.map(&ssdlet, how.inputs(&[b"id\n1,\"open\n2\n".to_vec()]));
    let error = error.expect_err("an open quote");
    assert!(matches!(error, SsdletError::Engine(Error::LastRecord { .. })), "{error}");
}

#[test]
fn keyed_records_are_cut_where_their_lengths_say() {
    let mut bytes = Vec::new();
    for n in 0..20u32 {
        bytes.extend_from_slice(&n.to_le_bytes());
        bytes.extend_from_slice(&(20 - n).to_le_bytes());
        bytes.extend(std::iter::repeat_n(n as u8, 20));
    }
    let ssdlet = Plain::ordered(Format::Keyed, records);
    for chunk in [1, 5, 28, 100, 1000] {
        for streams in [false, true] {
            let how = How { streams, ..How::chunks(chunk, 2) };
            let (rows, _) =
                how.map(&ssdlet, how.inputs(std::slice::from_ref(&bytes))).expect("maps");
            assert_eq!(rows.ordered, shown(cut(Format::Keyed, &bytes).iter()));
        }
    }
    let how = How::chunks(50, 2);
    let error = how.map(&ssdlet, how.inputs(&[bytes[..100].to_vec()])).expect_err("cut");
    assert!(matches!(error, SsdletError::Engine(Error::LastRecord { .. })), "{error}");
}

/// The length of a line.
fn lengths(record: &[u8], _: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    out.add(&record[..record.len().min(2)], record.len() as i64);
    Ok(())
}

#[test]
fn a_record_may_be_longer_than_a_chunk_but_not_than_memory() {
    let mut bytes = b"a\n".to_vec();
    bytes.extend(std::iter::repeat_n(b'b', 3_000_000));
    bytes.extend_from_slice(b"\nc\n");
    let keyed = |format| Plain::keyed(format, Combine::Max, Type::I64, lengths);
    let csv = Format::csv_rows(b',', false);
    for (format, streams) in [(LINES, false), (LINES, true), (csv, false), (csv, true)] {
        let how = How { streams, memory: 24 << 20, ..How::default() };
        for chunk in [100_000, 1 << 20] {
            let how =
                How { temp: false, ..How { memory: how.memory, streams, ..How::chunks(chunk, 2) } };
            let (rows, _) =
                how.map(&keyed(format), how.inputs(std::slice::from_ref(&bytes))).expect("maps");
            let row = |key: &[u8], n: i64| (key.to_vec(), n.to_le_bytes().to_vec());
            assert_eq!(rows.keyed, [row(b"a\n", 2), row(b"bb", 3_000_001), row(b"c\n", 2)]);
        }
        let small = How { memory: 5 << 20, threads: 1, ..how };
        let error = small
            .map(&keyed(format), small.inputs(std::slice::from_ref(&bytes)))
            .expect_err("too long");
        assert!(
            matches!(&error, SsdletError::Engine(Error::RecordTooLong { offset: 2, .. })),
            "{format:?} {streams} {error}"
        );
    }
}

/// `text` as several members of gzip, or frames of Zstandard.
fn packed(text: &[u8], zstd: bool) -> Vec<u8> {
    let part = text.len() / 3 + 1;
    let pack = |part: &[u8]| {
        if zstd {
            return zstd::encode_all(part, 3).expect("packs");
        }
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(part).expect("packs");
        gz.finish().expect("packs")
    };
    text.chunks(part).flat_map(pack).collect()
}

#[test]
fn compressed_inputs_are_found_by_their_first_bytes() {
    let text = text(300_000, 1000, 5);
    let ssdlet = Plain::ordered(LINES, records);
    let expected = shown(cut(LINES, &text).iter());
    for (bytes, compressed) in
        [(text.clone(), false), (packed(&text, false), true), (packed(&text, true), true)]
    {
        for threads in [1, 3] {
            let how = How { threads, ..How::default() };
            let budget = Budget::new(16 << 20);
            let found =
                MapInput::detect(storage(&bytes), ContentKind::Text, &budget).expect("reads");
            assert_eq!(matches!(found, MapInput::Stream { .. }), compressed);
            let reader = Box::new(std::io::Cursor::new(bytes.clone()));
            let piped =
                MapInput::detect_stream("pipe".to_owned(), reader, ContentKind::Text, &budget);
            for input in [found, piped] {
                let (rows, _) = how.map(&ssdlet, vec![input]).expect("maps");
                assert!(rows.ordered == expected);
            }
        }
    }
    for bytes in [&b""[..], b"\x1f", b"\x1f\x8b", b"\x28\xb5\x2f"] {
        let found =
            MapInput::detect(storage(bytes), ContentKind::Text, &Budget::new(0)).expect("reads");
        assert!(matches!(found, MapInput::Storage { .. }), "too short to be compressed");
    }
}

#[test]
fn a_damaged_or_cut_compressed_input_is_an_error_that_names_it() {
    let text = text(300_000, 1000, 5);
    for zstd in [false, true] {
        let whole = packed(&text, zstd);
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 40].fill(0x55);
        for bytes in [whole[..whole.len() - 5].to_vec(), whole[..middle].to_vec(), damaged] {
            let storage = MemoryStorage::from_bytes("logs.gz", &bytes);
            let input = MapInput::detect(storage, ContentKind::Text, &Budget::new(16 << 20))
                .expect("its head is good");
            let how = How::default();
            let error = how.map(&Plain::ordered(LINES, records), vec![input]).expect_err("damaged");
            assert!(error.to_string().starts_with("logs.gz: "), "{error}");
        }
    }
}

/// Inputs are decompressed one after another, so any number of them takes the memory of the largest, and that is known
/// before.
#[test]
fn the_memory_of_a_decompressor_is_of_the_budget_while_it_works() {
    let ssdlet = Plain::keyed(LINES, Combine::Count, Type::I64, lengths);
    let text = text(100_000, 1000, 5);
    let (gz, zst) = (packed(&text, false), zstd::encode_all(&text[..], 3).expect("packs"));
    let plain = How { threads: 1, ..How::default() };
    let inputs = |count: usize, budget: &Budget| -> Vec<MapInput> {
        let packed = [&gz, &zst].into_iter().cycle().take(count);
        packed
            .map(|bytes| {
                MapInput::detect(storage(bytes), ContentKind::Text, budget).expect("reads")
            })
            .collect()
    };
    let budget = Budget::new(1 << 20);
    let waiting = inputs(100, &budget);
    assert_eq!(budget.free_bytes(), 1 << 20, "nothing was read yet");
    drop(waiting);
    for count in [2, 30] {
        let attempt = |memory: u64| {
            let how = How { memory, ..plain };
            let options = how.options();
            let mut rows = Rows::default();
            let output = merganser_map::MapOutput::Rows(&mut rows);
            let inputs = inputs(count, &options.budget);
            let silent = merganser_sort::Silent;
            merganser_map::map(&ssdlet, inputs, output, &options, &silent)
        };
        let refused = attempt(0);
        let Err(SsdletError::Engine(Error::Memory { least_bytes, .. })) = refused else {
            panic!("{refused:?}")
        };
        assert!(least_bytes > 2 << 20, "the window is of it: {least_bytes}");
        let report = attempt(least_bytes).expect("the least works");
        assert_eq!(report.input_bytes, count as u64 * (text.len() as u64 + 1).max(100_000));
        assert!(attempt(least_bytes - 1).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// Adjoining ranges have every record once.
    #[test]
    fn adjoining_ranges_have_every_line_once(
        bytes in prop::collection::vec(prop::sample::select(&b"abc\n"[..]), 0..300),
        places in prop::collection::vec(0u64..320, 0..6),
        chunk in 1u64..100,
        threads in 1usize..4,
    ) {
        let ssdlet = Plain::ordered(LINES, records);
        let mut places = [vec![0], places, vec![bytes.len() as u64]].concat();
        places.sort_unstable();
        let storage = storage(&bytes);
        let ranges = places.windows(2).map(|pair| MapInput::Storage {
            storage: Arc::clone(&storage),
            range: Some(pair[0]..pair[1]),
        });
        let (rows, _) = How::chunks(chunk, threads).map(&ssdlet, ranges.collect()).expect("maps");
        prop_assert_eq!(rows.ordered, shown(cut(LINES, &bytes).iter()));
    }

    /// CSV with quotes anywhere.
    #[test]
    fn any_csv_is_cut_at_its_rows(
        bytes in prop::collection::vec(prop::sample::select(&b"a,\"\n"[..]), 0..200),
        chunk in 1u64..100,
        streams in any::<bool>(),
    ) {
        let format = Format::csv_rows(b',', false);
        let ssdlet = Plain::ordered(format, records);
        let how = How { streams, ..How::chunks(chunk, 2) };
        let mapped = how.map(&ssdlet, how.inputs(std::slice::from_ref(&bytes)));
        let mut cuts = Vec::new();
        format.cut(&bytes, 1, &mut cuts);
        let tail = &bytes[cuts.last().copied().unwrap_or(0)..];
        let damaged = !tail.is_empty()
            && matches!(
                InputRecords::within(format).tail(tail),
                merganser_sort::record::Tail::Damaged(_)
            );
        prop_assert_eq!(mapped.is_err(), damaged);
        if let Ok((rows, _)) = mapped {
            prop_assert_eq!(rows.ordered, shown(cut(format, &bytes).iter()));
        }
    }
}
