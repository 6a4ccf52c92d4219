use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const CSV: Format = Format::Csv { separator: b',', header: false };
const LINES: Format = Format::Lines { delimiter: b'\n' };

/// Record ends found one record after the other.
fn walk(format: Format, bytes: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while let Some(len) = format.record_len(&bytes[at..]) {
        at += len;
        ends.push(at);
    }
    ends
}

/// Every cut is a record end, the last cut is the last end, and no piece is longer than the wanted
/// size by more than a record.
fn check_cut(format: Format, bytes: &[u8], piece: usize) {
    let ends = walk(format, bytes);
    let mut cuts = Vec::new();
    format.cut(bytes, piece, &mut cuts);
    assert_eq!(cuts.last(), ends.last(), "{format:?} {bytes:?} by {piece}: {cuts:?} of {ends:?}");
    assert!(cuts.is_sorted_by(|a, b| a < b), "{cuts:?}");
    let mut from = 0;
    for &cut in &cuts {
        let inside = ends.iter().filter(|&&end| from + piece <= end && end < cut).count();
        assert!(ends.binary_search(&cut).is_ok(), "{format:?} {bytes:?}: {cut} not in {ends:?}");
        assert!(inside <= 1, "{format:?} {bytes:?} by {piece}: {from}..{cut} could be cut before");
        from = cut;
    }
}

#[test]
fn lines_end_with_their_delimiter() {
    assert_eq!(walk(LINES, b"a\n\nbc\nd"), [2, 3, 6]);
    assert_eq!(walk(Format::Lines { delimiter: 0 }, b"a\n\0\0b"), [3, 4]);
    assert_eq!(LINES.tail(b"d"), Tail::Complete(b'\n'));
}

#[test]
fn csv_rows_end_outside_quotes() {
    assert_eq!(walk(CSV, b"a,b\r\n\"x\ny\",z\n\"say \"\"hi\"\"\n\"\n"), [5, 13, 27]);
    assert_eq!(walk(CSV, b"\"open\n\n"), [0_usize; 0]);
    assert_eq!(CSV.tail(b"a,\"b\n\""), Tail::Complete(b'\n'));
    assert!(matches!(CSV.tail(b"a,\"b\n"), Tail::Damaged(_)));
}

#[test]
fn fixed_records_know_their_length() {
    let format = Format::Fixed { bytes: 3 };
    assert_eq!(walk(format, b"aaabbbcc"), [3, 6]);
    assert!(matches!(format.tail(b"cc"), Tail::Damaged(_)));
    let mut cuts = Vec::new();
    format.cut(b"aaabbbcccdddee", 7, &mut cuts);
    assert_eq!(cuts, [6, 12]);
}

#[test]
fn keyed_records_carry_their_lengths() {
    let record = b"\x02\0\0\0\x01\0\0\0kkv";
    assert_eq!(Format::Keyed.record_len(record), Some(11));
    assert_eq!(key_of(record), b"kk");
    for len in 0..record.len() {
        assert_eq!(Format::Keyed.record_len(&record[..len]), None, "{len}");
    }
    assert_eq!(Format::Keyed.record_len(&[0xff; 64]), None);
    assert!(matches!(Format::Keyed.tail(&[0]), Tail::Damaged(_)));
}

#[test]
fn every_tiny_buffer_is_cut_at_record_ends() {
    let mut bytes = Vec::new();
    for len in 0..=7_u32 {
        for code in 0..3_usize.pow(len) {
            bytes.clear();
            bytes.extend((0..len).map(|i| b"\n\"a"[code / 3_usize.pow(i) % 3]));
            for piece in 0..=len as usize + 1 {
                for format in [CSV, LINES, Format::Fixed { bytes: 2 }] {
                    check_cut(format, &bytes, piece);
                }
            }
        }
    }
}

/// A row's end as RFC 4180's grammar gives it, byte by byte.
fn naive_row(bytes: &[u8]) -> Option<usize> {
    let mut quoted = false;
    for (at, &byte) in bytes.iter().enumerate() {
        quoted ^= byte == b'"';
        if byte == b'\n' && !quoted {
            return Some(at + 1);
        }
    }
    None
}

#[test]
fn sanitized_bytes_outside_quotes() {
    let rows = b"a,\"b,c\"\n\"d\"\"e,\",f\n".repeat(7);
    for from in 0..20 {
        let bytes = &rows[from..];
        for quoted in [false, true] {
            let mut inside = quoted;
            let expected: Vec<usize> = (0..bytes.len())
                .filter(|at| {
                    inside ^= bytes[*at] == b'"';
                    bytes[*at] == b',' && !inside
                })
                .collect();
            assert_eq!(Outside::new(b',', bytes, quoted).collect::<Vec<_>>(), expected);
        }
    }
}

proptest! {
    #[test]
    fn bytes_outside_quotes_are_found(
        bytes in prop::collection::vec(select(b"\"\0,abcd".to_vec()), 0..300),
        wanted in select(b"\0,z".to_vec()),
        begins_quoted: bool,
    ) {
        let mut quoted = begins_quoted;
        let mut expected = Vec::new();
        for (at, &byte) in bytes.iter().enumerate() {
            quoted ^= byte == b'"';
            if byte == wanted && !quoted {
                expected.push(at);
            }
        }
        let found: Vec<_> = Outside::new(wanted, &bytes, begins_quoted).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn random_buffers_are_cut_at_record_ends(
        bytes in prop::collection::vec(select(b"\n\"ab,\0".to_vec()), 0..400),
        piece in 0..120_usize,
        size in 1..20_usize,
    ) {
        for format in [CSV, LINES, Format::Lines { delimiter: 0 }, Format::Fixed { bytes: size }] {
            check_cut(format, &bytes, piece);
        }
        prop_assert_eq!(CSV.record_len(&bytes), naive_row(&bytes));
    }

    #[test]
    fn keyed_records_are_cut_at_record_ends(
        sizes in prop::collection::vec((0..40_u32, 0..40_u32), 0..30),
        spare in 0..8_usize,
        piece in 0..200_usize,
    ) {
        let mut bytes = Vec::new();
        for &(key, value) in &sizes {
            bytes.extend(key.to_le_bytes());
            bytes.extend(value.to_le_bytes());
            bytes.resize(bytes.len() + (key + value) as usize, 0xaa);
        }
        let whole = bytes.len();
        bytes.resize(whole + spare, 0xff);
        check_cut(Format::Keyed, &bytes, piece);
        prop_assert_eq!(walk(Format::Keyed, &bytes).last().copied().unwrap_or(0), whole);
    }
}
