//! Against a naive model: all records at once, sorted or not.

use crate::record::Format;
use std::io::{self, Read};

use proptest::prelude::*;

use super::*;
use crate::key::{DirectKey, OrderSpec, Place};
use crate::{Progress, Silent};

const LINES: Format = Format::Lines { delimiter: b'\n' };
const LIMITS: Limits = Limits { record_bytes_max: 1 << 20, stop_at_disorder: false };

fn order(format: Format, place: Place, descending: bool) -> Order {
    Order::by_bytes(format, DirectKey { place, descending })
}

fn line_order() -> Order {
    order(LINES, Place::Line, false)
}

/// Lines by all their bytes, each only once.
fn unique_lines(descending: bool) -> Order {
    let options = if descending { "r" } else { "" };
    let spec = OrderSpec { unique: true, options: options.to_owned(), ..OrderSpec::new(LINES) };
    spec.compile(None).expect("an order")
}

fn streamed(name: &str, reader: &mut (dyn Read + Send), spec: &OrderSpec) -> Result<Summary> {
    stream(name, reader, spec, LIMITS, &Silent)
}

fn found(bytes: &[u8], order: &Order, limits: Limits) -> Result<Summary> {
    let mut verifier = Verifier::new("input", order, limits);
    verifier.feed(bytes)?;
    verifier.finish()
}

/// CRC32 (IEEE), bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// The summary that the definitions give for these whole records, whose keys need no encoding.
fn model(records: &[&[u8]], order: &Order, unique: bool) -> Summary {
    let DirectKey { place, descending } = order.direct().expect("a direct key");
    let compare = |pair: &[&[u8]]| {
        let order = place.of_record(pair[0]).cmp(place.of_record(pair[1]));
        if descending { order.reverse() } else { order }
    };
    let bad = |pair: &[&[u8]]| compare(pair).is_gt() || (unique && compare(pair).is_eq());
    let first = records.windows(2).position(bad).map(|at| at + 1);
    Summary {
        records: records.len() as u64,
        bytes: records.iter().map(|record| record.len() as u64).sum(),
        header_lines: 0,
        duplicates: records.windows(2).filter(|pair| compare(pair).is_eq()).count() as u64,
        checksum: records.iter().map(|record| u128::from(crc32(record))).sum(),
        disorders: records.windows(2).filter(|pair| bad(pair)).count() as u64,
        first_disorder: first.map(|at| Disorder {
            record: at as u64,
            offset: records[..at].iter().map(|record| record.len() as u64).sum(),
            text: match order.format() {
                Format::Lines { .. } => records[at][..records[at].len() - 1].to_vec(),
                _ => records[at].to_vec(),
            },
        }),
    }
}

#[test]
fn the_crc_has_the_standard_check_value() {
    assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    assert_eq!(
        found(
            b"123456789",
            &order(Format::Fixed { bytes: 9 }, Place::Range { offset: 0, len: 1 }, false),
            LIMITS
        )
        .expect("whole")
        .checksum,
        0xCBF4_3926
    );
}

#[test]
fn the_first_disorder_is_named() {
    let found = found(b"b\nc\na\nd\nc\n", &line_order(), LIMITS).expect("whole");
    assert_eq!((found.records, found.bytes, found.disorders), (5, 10, 2));
    assert_eq!(found.first_disorder, Some(Disorder { record: 2, offset: 4, text: b"a".to_vec() }));
}

#[test]
fn nothing_is_sorted() {
    for bytes in [&b""[..], b"\n", b"a"] {
        let found = found(bytes, &line_order(), LIMITS).expect("whole");
        assert_eq!((found.records, found.disorders), (u64::from(!bytes.is_empty()), 0));
    }
}

#[test]
fn a_last_line_counts_as_if_it_were_ended() {
    let whole = found(b"a\nb\n", &line_order(), LIMITS).expect("whole");
    assert_eq!(found(b"a\nb", &line_order(), LIMITS).expect("whole"), whole);
}

#[test]
fn checking_may_stop_at_the_first_disorder() {
    let limits = Limits { stop_at_disorder: true, ..LIMITS };
    let found = found(b"b\na\nc\na\n", &line_order(), limits).expect("whole");
    assert_eq!((found.records, found.disorders), (2, 1));
}

#[test]
fn an_equal_key_is_a_disorder_only_where_keys_are_unique() {
    let text = b"a\na\nb\n";
    assert_eq!(found(text, &line_order(), LIMITS).expect("whole").disorders, 0);
    let found = found(text, &unique_lines(false), LIMITS).expect("whole");
    assert_eq!((found.disorders, found.duplicates), (1, 1));
}

#[test]
fn damaged_records_are_errors_with_their_offset() {
    let fixed = order(Format::Fixed { bytes: 4 }, Place::Range { offset: 0, len: 4 }, false);
    let keyed = order(Format::Keyed, Place::Prefixed, false);
    let csv = order(Format::csv_rows(b',', false), Place::Line, false);
    for (bytes, order, offset) in [
        (&b"aaaabbbbcc"[..], &fixed, 8),
        (b"\x01\0\0\0\0\0\0\0k\x05\0\0", &keyed, 9),
        (b"a,b\n\"open", &csv, 4),
    ] {
        match found(bytes, order, LIMITS) {
            Err(Error::Input { file, offset: at, .. }) => {
                assert_eq!((&*file, at), ("input", offset));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_record_longer_than_memory_is_an_error_with_its_offset() {
    let limits = Limits { record_bytes_max: 100, ..LIMITS };
    let order = line_order();
    let mut verifier = Verifier::new("input", &order, limits);
    verifier.feed(b"short\n").expect("fits");
    verifier.feed(&[b'x'; 60]).expect("fits");
    match verifier.feed(&[b'x'; 60]) {
        Err(error @ Error::RecordTooLong { offset: 6, factor: None, .. }) => {
            let detail = error.to_string();
            assert!(detail.contains("100 bytes"), "{detail}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_csv_header_is_no_record_but_has_bytes() {
    let order = order(Format::csv_rows(b',', true), Place::Line, false);
    let found = found(b"name,id\n\"b\nb\",2\na,1\n", &order, LIMITS).expect("whole");
    assert_eq!((found.records, found.bytes, found.disorders), (2, 20, 0));
    assert_eq!(found.checksum, u128::from(crc32(b"a,1\n")) + u128::from(crc32(b"\"b\nb\",2\n")));
}

/// All texts of up to 6 bytes out of three, cut at every place.
#[test]
fn every_tiny_text_in_every_two_pieces() {
    let order = line_order();
    for len in 0..=6u32 {
        for number in 0..3u32.pow(len) {
            let text: Vec<u8> =
                (0..len).map(|at| b"\nab"[(number / 3u32.pow(at) % 3) as usize]).collect();
            let mut whole = text.clone();
            if whole.last().is_some_and(|byte| *byte != b'\n') {
                whole.push(b'\n');
            }
            let records: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
            let expected = model(&records, &order, false);
            for cut in 0..=text.len() {
                let mut verifier = Verifier::new("input", &order, LIMITS);
                verifier.feed(&text[..cut]).expect("short");
                verifier.feed(&text[cut..]).expect("short");
                assert_eq!(verifier.finish().expect("whole"), expected, "{text:?} cut at {cut}");
            }
        }
    }
}

/// Gives at most `step` bytes a read, and then fails if it is to.
struct Trickle<'a> {
    bytes: &'a [u8],
    step: usize,
    fails: bool,
}

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() && self.fails {
            return Err(io::Error::other("the disk is gone"));
        }
        let step = self.step.min(self.bytes.len()).min(out.len());
        self.bytes.read(&mut out[..step])
    }
}

#[test]
fn errors_of_reads_name_the_input() {
    let mut reader = Trickle { bytes: b"a\nb\n", step: 3, fails: true };
    let error = streamed("tape", &mut reader, &OrderSpec::new(LINES)).expect_err("it fails");
    assert_eq!(error.to_string(), "tape: the disk is gone");
}

#[test]
fn a_cancelled_check_ends() {
    struct Cancelled;
    impl Progress for Cancelled {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let endless = &mut io::repeat(b'\n');
    let error = stream("endless", endless, &OrderSpec::new(LINES), LIMITS, &Cancelled)
        .expect_err("cancelled");
    assert!(matches!(error, Error::Cancelled));
}

#[test]
fn a_disorder_ends_an_endless_input() {
    let limits = Limits { stop_at_disorder: true, ..LIMITS };
    let mut endless = (&b"b\na\n"[..]).chain(io::repeat(b'\n'));
    let found =
        stream("endless", &mut endless, &OrderSpec::new(LINES), limits, &Silent).expect("it stops");
    assert_eq!(found.disorders, 1);
}

#[test]
fn an_input_of_many_pieces_is_checked_whole() {
    let text: Vec<u8> = (0..400_000u32).flat_map(|n| format!("{n:08}\n").into_bytes()).collect();
    let records: Vec<&[u8]> = text.chunks(9).collect();
    let expected = model(&records, &line_order(), false);
    for step in [100_000, 1 << 21] {
        let mut reader = Trickle { bytes: &text, step, fails: false };
        let found = streamed("numbers", &mut reader, &OrderSpec::new(LINES)).expect("read");
        assert_eq!(found, expected);
    }
}

#[test]
fn encoded_keys_and_the_last_resort_are_told_apart() {
    let spec = OrderSpec { keys: vec!["2n".to_owned()], ..OrderSpec::new(LINES) };
    let mut text = &b"b 1\na 01\nc 2\n"[..];
    let found = streamed("numbers", &mut text, &spec).expect("whole");
    assert_eq!((found.duplicates, found.disorders), (1, 1), "1 = 01, but b > a");
    let stable = OrderSpec { stable: true, ..spec };
    let mut text = &b"b 1\na 01\nc 2\n"[..];
    let found = streamed("numbers", &mut text, &stable).expect("whole");
    assert_eq!((found.duplicates, found.disorders), (1, 0), "input order is fine");
}

#[test]
fn columns_are_found_by_the_header_that_comes_first() {
    let format = Format::csv_rows(b',', true);
    let spec = OrderSpec { keys: vec!["id:n".to_owned()], ..OrderSpec::new(format) };
    for step in [1, 100] {
        let text = b"name,id\nzoe,9\n\"ann, b\",10\nbob,2\n";
        let mut reader = Trickle { bytes: text, step, fails: false };
        let found = streamed("people", &mut reader, &spec).expect("whole");
        assert_eq!((found.records, found.disorders), (3, 1));
        let first = found.first_disorder.expect("one");
        assert_eq!((first.record, &first.text[..]), (2, &b"bob,2"[..]));
    }
    let error =
        streamed("people", &mut &b"name,age\na,1\n"[..], &spec).expect_err("no such column");
    assert!(error.to_string().contains("id"), "{error}");
}

fn record() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(prop::sample::select(b"ab".to_vec()), 0..3),
        proptest::collection::vec(prop::sample::select(b"abc".to_vec()), 0..40),
    ]
}

proptest! {
    #[test]
    fn random_lines_in_random_pieces(
        mut lines in proptest::collection::vec(record(), 0..30),
        sorted: bool,
        descending: bool,
        unique: bool,
        cuts in proptest::collection::vec(1usize..20, 1..50),
    ) {
        let order =
            if unique { unique_lines(descending) } else { order(LINES, Place::Line, descending) };
        for line in &mut lines {
            line.push(b'\n');
        }
        if sorted {
            lines.sort();
            if descending {
                lines.reverse();
            }
        }
        let records: Vec<&[u8]> = lines.iter().map(|line| &line[..]).collect();
        let text = lines.concat();
        let mut verifier = Verifier::new("input", &order, LIMITS);
        let (mut rest, mut cuts) = (&text[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((*cuts.next().expect("cycles")).min(rest.len()));
            verifier.feed(piece).expect("short");
            rest = after;
        }
        let found = verifier.finish().expect("whole");
        if sorted && !unique {
            prop_assert_eq!(found.disorders, 0);
        }
        prop_assert_eq!(found, model(&records, &order, unique));
    }

    #[test]
    fn the_checksum_knows_no_order(mut lines in proptest::collection::vec(record(), 0..30), seed: u64) {
        let text = |lines: &[Vec<u8>]| lines.iter().flat_map(|line| [&line[..], b"\n"].concat()).collect::<Vec<u8>>();
        let before = found(&text(&lines), &line_order(), LIMITS).expect("whole");
        let len = lines.len().max(1);
        lines.rotate_left(usize::try_from(seed % len as u64).expect("small"));
        let after = found(&text(&lines), &line_order(), LIMITS).expect("whole");
        prop_assert_eq!((before.checksum, before.records), (after.checksum, after.records));
    }
}
