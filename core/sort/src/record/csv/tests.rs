//! The reader against a model that goes from byte to byte.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::record::{Format, InputRecords, Tail};

/// A row as the model reads it: its end, and the values of its fields.
#[derive(Debug, Default, PartialEq, Eq)]
struct ModelRow {
    end: usize,
    values: Vec<Vec<u8>>,
    strays: Vec<(usize, bool)>,
}

/// Reads rows as the dialect says it, one byte after the other. The rest is what follows the last row: its values, and
/// whether it ends in quotes.
fn model(bytes: &[u8]) -> (Vec<ModelRow>, bool) {
    #[derive(Clone, Copy, PartialEq)]
    enum At {
        FieldStart,
        Unquoted,
        Quoted,
        QuoteInQuoted,
    }
    let (mut rows, mut row, mut value, mut at) =
        (vec![], ModelRow::default(), vec![], At::FieldStart);
    for (place, &byte) in bytes.iter().enumerate() {
        if at == At::QuoteInQuoted && !matches!(byte, b'"' | b',' | b'\n') {
            let ends_row = byte == b'\r' && matches!(bytes.get(place + 1), None | Some(b'\n'));
            if !ends_row {
                row.strays.push((place - 1, true));
            }
        }
        match (at, byte) {
            (At::FieldStart, b'"') => at = At::Quoted,
            (At::Quoted, b'"') => at = At::QuoteInQuoted,
            (At::QuoteInQuoted, b'"') => {
                at = At::Quoted;
                value.push(b'"');
            }
            (At::Quoted, _) => value.push(byte),
            (_, b',') => {
                row.values.push(std::mem::take(&mut value));
                at = At::FieldStart;
            }
            (_, b'\n') => {
                if place > 0 && bytes[place - 1] == b'\r' {
                    value.pop_if(|last| *last == b'\r');
                }
                row.values.push(std::mem::take(&mut value));
                row.end = place + 1;
                rows.push(std::mem::take(&mut row));
                at = At::FieldStart;
            }
            (_, b'"') => {
                row.strays.push((place, false));
                value.push(byte);
                at = At::Unquoted;
            }
            _ => {
                value.push(byte);
                at = At::Unquoted;
            }
        }
    }
    (rows, at == At::Quoted)
}

const CSV: Format = Format::csv_rows(b',', false);
const FRAMING: CsvFraming = CsvFraming { separator: b',', quotes: CsvQuotes::Lazy };

fn check(bytes: &[u8]) {
    let shown = bytes.escape_ascii().to_string();
    let (rows, is_open) = model(bytes);
    let mut at = 0;
    for row in &rows {
        let len = CSV.record_len(&bytes[at..]);
        assert_eq!(len, Some(row.end - at), "{shown}");
        let fields = CsvFields::of_row(&bytes[at..row.end], FRAMING);
        let values: Vec<Vec<u8>> = fields.map(|field| field.value().into_owned()).collect();
        assert_eq!(values, row.values, "{shown}");
        let pieces: Vec<Vec<u8>> =
            fields.map(|field| field.pieces().collect::<Vec<_>>().concat()).collect();
        assert_eq!(pieces, row.values, "{shown}");
        // The key of a column, and of the next one.
        for n in 0..=row.values.len() {
            let mut rest = fields;
            let mut value = |skipped| rest.nth(skipped).map(|field| field.value().into_owned());
            assert_eq!(value(n).as_ref(), row.values.get(n), "{shown}: {n}");
            assert_eq!(value(1).as_ref(), row.values.get(n + 2), "{shown}: {n}");
        }
        at = row.end;
    }
    assert_eq!(CSV.record_len(&bytes[at..]), None, "{shown}");
    assert_eq!(FRAMING.ends_quoted(&bytes[at..]), is_open, "{shown}");
    for piece in [1, 7, 64, 100, 1 << 20] {
        let mut cuts = Vec::new();
        CSV.cut(bytes, piece, &mut cuts);
        assert_eq!(cuts.last(), rows.last().map(|row| &row.end), "{shown} by {piece}");
        assert!(
            cuts.iter().all(|cut| rows.iter().any(|row| row.end == *cut)),
            "{shown} by {piece}"
        );
    }
    let first = rows.iter().enumerate().find_map(|(n, row)| {
        row.strays.first().map(|(at, closed)| (Some(n as u64 + 1), *at, *closed))
    });
    let told = CsvCheck::new(b',', true).rows(&bytes[..at]);
    let told = told.err().map(|StrayQuote { row, at, closed }| (row, at, closed));
    assert_eq!(told, first, "{shown}");
}

#[test]
fn the_dialect_by_example() {
    let values = |row: &[u8]| {
        let fields = CsvFields::of_row(row, FRAMING);
        fields.map(|field| String::from_utf8_lossy(&field.value()).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(values(b"3,3.5\" disk\r\n"), ["3", "3.5\" disk"]);
    assert_eq!(values(b"\"a,\"\"b\"\"\nc\",\"\"\n"), ["a,\"b\"\nc", ""]);
    assert_eq!(values(b"\"a\"b\"c,\"d\"\n"), ["ab\"c", "d"]);
    assert_eq!(values(b" \"a\",b\n"), [" \"a\"", "b"]);
}

#[test]
fn every_tiny_text_is_read_as_the_model_reads_it() {
    for before in [0, 60, 63] {
        for len in 0..=6_u32 {
            for code in 0..5_usize.pow(len) {
                let tail = (0..len).map(|i| b"\n\",a\r"[code / 5_usize.pow(i) % 5]);
                let bytes: Vec<u8> = std::iter::repeat_n(b'x', before).chain(tail).collect();
                check(&bytes);
            }
        }
    }
}

proptest! {
    #[test]
    fn random_texts_are_read_as_the_model_reads_them(
        bytes in prop::collection::vec(select(b"\"\"\"\n,,a\r\0b".to_vec()), 0..400),
    ) {
        check(&bytes);
    }

    #[test]
    fn fields_with_stray_quotes_far_apart(
        fields in prop::collection::vec((select(vec![
            &b"\"quoted, text\""[..], b"3.5\" disk", b"plain", b"", b"\"a\"\"b\"", b"\"a\"b\"", b"\"\n\"",
        ]), select(vec![&b","[..], b",", b",", b"\n", b"\r\n"])), 0..200),
    ) {
        check(&fields.iter().flat_map(|(field, end)| [*field, *end].concat()).collect::<Vec<_>>());
    }
}

#[test]
fn every_quote_of_a_toggled_view_opens_or_closes() {
    let toggled = Format::Csv { separator: b',', header: false, quotes: CsvQuotes::Toggled };
    let glued = b"3,3.5\" disk\n1,plain\n2,5.25\" disk\n0,last\n";
    assert_eq!(toggled.record_len(glued), Some(glued.len() - 7));
    assert_eq!(CSV.record_len(glued), Some(12));
    let framing = toggled.csv().expect("csv");
    let values: Vec<_> =
        CsvFields::of_row(b"a\"b,c\"d,e\n", framing).map(|f| f.value().into_owned()).collect();
    assert_eq!(values, [&b"ab,cd"[..], b"e"]);
}

#[test]
fn the_three_meanings_of_quotes_have_names_of_their_own_in_files() {
    for (quotes, json) in [
        (CsvQuotes::Toggled, r#"{"csv":{"separator":44,"header":true}}"#),
        (CsvQuotes::Lazy, r#"{"csv-lazy":{"separator":44,"header":true}}"#),
        (CsvQuotes::Strict, r#"{"csv-strict":{"separator":44,"header":true}}"#),
    ] {
        let format = Format::Csv { separator: b',', header: true, quotes };
        assert_eq!(serde_json::to_string(&format).expect("plain data"), json);
        assert_eq!(serde_json::from_str::<Format>(json).expect("known"), format);
    }
}

#[test]
fn a_preamble_is_a_mark_and_a_header() {
    let with_header = Format::csv_rows(b',', true);
    for (format, bytes, len) in [
        (CSV, &b"\xef\xbb\xbf5,a\n"[..], Some(3)),
        (CSV, b"5,a\n", Some(0)),
        (CSV, b"\xef\xbb", None),
        (with_header, b"\xef\xbb\xbf\"a\nb\",c\n1,2\n", Some(11)),
        (with_header, b"a,b", None),
    ] {
        assert_eq!(
            InputRecords::of_input(format).preamble_len(bytes),
            Ok(len),
            "{}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn the_last_row_ends_as_the_one_before_it() {
    let mut input = InputRecords::of_input(CSV);
    assert_eq!(input.preamble_len(b"2,b\r\n1,a"), Ok(Some(0)));
    assert_eq!(input.tail(b"2,b"), Tail::Complete(b"\n"), "it is the only one");
    input.records(b"2,b\r\n").expect("lazy");
    assert_eq!(input.tail(b"1,a"), Tail::Complete(b"\r\n"));
    assert_eq!(input.tail(b"1,a\r"), Tail::Complete(b"\n"));
    assert_eq!(
        input.tail(b"1,\"a\r"),
        Tail::Damaged("its last row has a quote that is never closed")
    );
}

#[test]
fn rows_that_end_with_returns_alone_are_refused() {
    let input = InputRecords::of_input(CSV);
    assert!(
        matches!(input.tail(b"id,name\r2,b\r1,a\r"), Tail::Damaged(why) if why.contains("carriage return"))
    );
    for fine in [&b"id,name\r"[..], b"id,\"a\rb\"", b"id"] {
        assert!(matches!(input.tail(fine), Tail::Complete(_)), "{}", fine.escape_ascii());
    }
}

#[test]
fn columns_are_found_by_name_then_by_number() {
    let header = CsvHeader::of_row(b"\xef\xbb\xbf\"id\",time:n,2019,x,x\r\n", FRAMING);
    assert_eq!(header.column("id"), Ok(0));
    assert_eq!(header.column("2019"), Ok(2));
    assert_eq!(header.column("5"), Ok(4));
    for (column, told) in [
        ("0", "columns are counted from 1"),
        ("6", "there is no column 6; there are 5: id, time:n, 2019, x, x"),
        ("y", "there is no column 'y'; there are 5: id, time:n, 2019, x, x"),
        ("x", "2 columns are called 'x'; give a number"),
    ] {
        assert_eq!(header.column(column).expect_err(column).to_string(), told);
    }
    for (header, column, told) in [
        (
            &b"1,1\n"[..],
            "1",
            "2 columns are called '1'; rename them, because a name counts before a number",
        ),
        (b"\n", "a", "there is no column 'a'; the only one is ''"),
    ] {
        let header = CsvHeader::of_row(header, FRAMING);
        assert_eq!(header.column(column).expect_err(column).to_string(), told);
    }
    let wide = (0..100_000).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",");
    let told =
        CsvHeader::of_row(wide.as_bytes(), FRAMING).column("no").expect_err("missing").to_string();
    assert!(told.len() < 600 && told.contains("there are 100000: c0, c1"), "{told}");
}

#[test]
fn headers_are_compared_as_names() {
    let format = Format::csv_rows(b',', true);
    let difference = |first: &[u8], other: &[u8]| {
        CsvHeader::difference_of(format, first, other).map(|difference| difference.to_string())
    };
    assert_eq!(difference(b"id,n\n", b"\xef\xbb\xbf\"id\",n\r\n"), None);
    let told = difference(b"id,n\n", b"id,m\n").expect("another name");
    assert_eq!(told, "its column 2 is called 'm', and 'n' in the first input");
    let told = difference(b"id,n\n", b"id\n").expect("fewer");
    assert_eq!(told, "its header has 1 column, and that of the first input has 2");
}
