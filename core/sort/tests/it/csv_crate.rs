//! Our reader of csv rows against that of the crate `csv`, where both dialects mean the same.
//!
//! They differ on purpose in these things, which the generator of texts leaves out or the test names:
//! - Only a newline ends our rows. There, a carriage return alone ends one, too.
//! - Empty rows are rows here; that crate drops them.
//! - A quote that is never closed is an error here; that crate closes it at the end.
//!
//! Stray quotes and text behind a closing quote are read alike.

use merganser_sort::record::{CsvFields, CsvFraming, CsvQuotes, Format, InputRecords, Tail};
use proptest::prelude::*;
use proptest::sample::select;

const FRAMING: CsvFraming = CsvFraming { separator: b',', quotes: CsvQuotes::Lazy };

/// Rows of values, or `None` if a quote is never closed.
fn ours(bytes: &[u8]) -> Option<Vec<Vec<Vec<u8>>>> {
    let format = Format::csv_rows(b',', false);
    let (mut rows, mut at) = (Vec::new(), 0);
    let fields = |row: &[u8]| {
        CsvFields::of_row(row, FRAMING).map(|field| field.value().into_owned()).collect()
    };
    while let Some(len) = format.record_len(&bytes[at..]) {
        rows.push(fields(&bytes[at..at + len]));
        at += len;
    }
    if at < bytes.len() {
        match InputRecords::within(format).tail(&bytes[at..]) {
            Tail::Damaged(_) => return None,
            _ => rows.push(fields(&bytes[at..])),
        }
    }
    Some(rows)
}

fn theirs(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let rows = reader.byte_records().map(|row| row.expect("it refuses no bytes"));
    rows.map(|row| row.iter().map(<[u8]>::to_vec).collect()).collect()
}

/// Whether these bytes have a carriage return that ends no row of ours and may end one of theirs.
fn has_return_alone(bytes: &[u8]) -> bool {
    let alone = |(at, byte): (usize, &u8)| *byte == b'\r' && bytes.get(at + 1) != Some(&b'\n');
    bytes.iter().enumerate().any(alone)
}

fn compare(bytes: &[u8]) {
    if has_return_alone(bytes) || bytes.starts_with(b"\xef\xbb\xbf") {
        return;
    }
    let Some(rows) = ours(bytes) else { return };
    let is_empty = |row: &Vec<Vec<u8>>| row.len() == 1 && row[0].is_empty();
    let rows: Vec<_> = rows.into_iter().filter(|row| !is_empty(row)).collect();
    let theirs: Vec<_> = theirs(bytes).into_iter().filter(|row| !is_empty(row)).collect();
    assert_eq!(rows, theirs, "{}", bytes.escape_ascii());
}

#[test]
fn every_tiny_text_is_read_alike() {
    for before in [0, 61] {
        for len in 0..=6_u32 {
            for code in 0..5_usize.pow(len) {
                let tail = (0..len).map(|i| b"\n\",a\r"[code / 5_usize.pow(i) % 5]);
                compare(&std::iter::repeat_n(b'x', before).chain(tail).collect::<Vec<_>>());
            }
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_are_read_alike(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        compare(&bytes);
    }

    #[test]
    fn random_csv_is_read_alike(
        parts in prop::collection::vec(select(vec![
            &b"\""[..], b"\"", b"\"\"", b",", b",", b"\n", b"\r\n", b"a", b"bc", b"\0", b"\xff", b" ",
        ]), 0..300),
    ) {
        compare(&parts.concat());
    }
}

#[test]
fn where_they_differ_on_purpose() {
    let value = |rows: &[&[&str]]| -> Vec<Vec<Vec<u8>>> {
        rows.iter().map(|row| row.iter().map(|field| field.as_bytes().to_vec()).collect()).collect()
    };
    assert_eq!(ours(b"a\rb\n"), Some(value(&[&["a\rb"]])));
    assert_eq!(theirs(b"a\rb\n"), value(&[&["a"], &["b"]]));
    assert_eq!(ours(b"a\n\nb\n"), Some(value(&[&["a"], &[""], &["b"]])));
    assert_eq!(theirs(b"a\n\nb\n"), value(&[&["a"], &["b"]]));
    assert_eq!(ours(b"a,\"b\n"), None);
    assert_eq!(theirs(b"a,\"b\n"), value(&[&["a", "b\n"]]));
}
