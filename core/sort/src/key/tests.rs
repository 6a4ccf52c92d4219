//! Every encoding by example, on all tiny inputs, and at random against a naive comparison.

use std::cmp::Ordering;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const LINES: Format = Format::Lines { delimiter: 0xff };
const CSV: Format = Format::csv_rows(b',', true);

fn lines(keys: &[&str], options: &str) -> Order {
    let keys = keys.iter().map(|&key| key.to_owned()).collect();
    OrderSpec { keys, options: options.to_owned(), ..OrderSpec::new(LINES) }.compile(None).unwrap()
}

fn error(spec: &OrderSpec) -> String {
    spec.compile(None).unwrap_err().to_string()
}

fn with_keys(format: Format, keys: &[&str]) -> OrderSpec {
    OrderSpec { keys: keys.iter().map(|&key| key.to_owned()).collect(), ..OrderSpec::new(format) }
}

fn encoded(order: &Order, record: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    order.encode(record, &mut key);
    key
}

/// `text` as a record of [`LINES`].
fn line(text: &[u8]) -> Vec<u8> {
    [text, b"\xff"].concat()
}

/// Keys compare as `expected`, neither is the beginning of the other, and whole keys compare as
/// the records do.
fn check_pair(order: &Order, a: &[u8], b: &[u8], expected: Ordering) {
    let (x, y) = (encoded(order, a), encoded(order, b));
    let context = || format!("{:?}: {} and {}", order.spec(), a.escape_ascii(), b.escape_ascii());
    assert_eq!(x.cmp(&y), expected, "{}", context());
    if order.direct().is_none() {
        assert!(x == y || !x.starts_with(&y) && !y.starts_with(&x), "{}", context());
    }
    let (mut x, mut y) = (Vec::new(), Vec::new());
    order.encode_full(a, &mut x);
    order.encode_full(b, &mut y);
    assert_eq!(x.cmp(&y), order.compare(a, b), "{}", context());
    assert_eq!(order.compare(a, b), order.compare(b, a).reverse(), "{}", context());
}

/// Lines under one letter compare as `naive` says, and in the other direction with `r` too.
fn check_letter(letter: &str, a: &[u8], b: &[u8], naive: fn(&[u8], &[u8]) -> Ordering) {
    let expected = naive(a, b);
    let (a, b) = (line(a), line(b));
    check_pair(&lines(&["1"], letter), &a, &b, expected);
    check_pair(&lines(&["1"], &format!("{letter}r")), &a, &b, expected.reverse());
}

/// All texts of up to `longest` of these words.
fn tiny(words: &[&[u8]], longest: u32) -> Vec<Vec<u8>> {
    let mut texts = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..longest {
        let end = texts.len();
        for at in from..end {
            let longer = words.iter().map(|word| [&texts[at], *word].concat());
            let longer: Vec<_> = longer.collect();
            texts.extend(longer);
        }
        from = end;
    }
    texts
}

fn check_tiny(letter: &str, words: &[&[u8]], longest: u32, naive: fn(&[u8], &[u8]) -> Ordering) {
    let texts = tiny(words, longest);
    for a in &texts {
        for b in &texts {
            check_letter(letter, a, b, naive);
        }
    }
}

/// Any text made of a letter's own words.
fn text_of(words: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(select(words), 0..8).prop_map(|words| words.concat().into_bytes())
}

// Naive comparisons, one for each letter.

fn folded(a: &[u8], b: &[u8]) -> Ordering {
    a.to_ascii_uppercase().cmp(&b.to_ascii_uppercase())
}

/// Sign, digits before and behind the point, the shorter ones filled up with zeros.
fn numeric(a: &[u8], b: &[u8]) -> Ordering {
    let parse = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).into_owned();
        let text = text.trim_start_matches([' ', '\t', '\n']);
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let digits =
            |text: &str| -> String { text.chars().take_while(char::is_ascii_digit).collect() };
        let whole = digits(unsigned);
        let fraction = unsigned[whole.len()..].strip_prefix('.').map(digits).unwrap_or_default();
        let digits = format!("{whole:0>40}{fraction:0<40}");
        let negative = unsigned.len() < text.len() && digits.contains(|digit| digit != '0');
        (negative, digits)
    };
    match (parse(a), parse(b)) {
        ((false, a), (false, b)) => a.cmp(&b),
        ((true, a), (true, b)) => b.cmp(&a),
        ((a, _), (b, _)) => b.cmp(&a),
    }
}

fn human(a: &[u8], b: &[u8]) -> Ordering {
    let rank = |text: &[u8]| {
        let text = text.trim_ascii_start();
        let unsigned = text.strip_prefix(b"-").unwrap_or(text);
        let end = unsigned.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(unsigned.len());
        let (mut number, mut rest) = unsigned.split_at(end);
        if rest.first() == Some(&b'.') {
            let behind = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            (number, rest) = unsigned.split_at(end + 1 + behind);
        }
        let suffixes = [&b"Kk"[..], b"M", b"G", b"T", b"P", b"E", b"Z", b"Y", b"R", b"Q"];
        let rank = rest.first().and_then(|byte| suffixes.iter().position(|s| s.contains(byte)));
        let is_zero = !number.iter().any(|byte| (b'1'..=b'9').contains(byte));
        let rank = if is_zero { 0 } else { rank.map_or(0, |rank| rank as i32 + 1) };
        if unsigned.len() < text.len() { -rank } else { rank }
    };
    rank(a).cmp(&rank(b)).then_with(|| numeric(a, b))
}

/// The walk that the documentation of `version` describes, step by step.
fn version(a: &[u8], b: &[u8]) -> Ordering {
    fn walk(mut a: &[u8], mut b: &[u8]) -> Ordering {
        let rank = |text: &[u8]| match text.first() {
            Some(b'~') => -2,
            None => -1,
            Some(digit) if digit.is_ascii_digit() => 0,
            Some(letter) if letter.is_ascii_alphabetic() => i32::from(*letter),
            Some(other) => 256 + i32::from(*other),
        };
        let number = |text: &mut &[u8]| {
            let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
            let (digits, rest) = text.split_at(end);
            *text = rest;
            format!("{:0>40}", str::from_utf8(digits).unwrap())
        };
        while !a.is_empty() || !b.is_empty() {
            while !matches!(rank(a), -1 | 0) || !matches!(rank(b), -1 | 0) {
                if rank(a) != rank(b) {
                    return rank(a).cmp(&rank(b));
                }
                (a, b) = (&a[1..], &b[1..]);
            }
            let order = number(&mut a).cmp(&number(&mut b));
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }
    fn stem(text: &[u8]) -> &[u8] {
        let is_suffix = |suffix: &[u8]| {
            suffix.is_empty()
                || suffix[0] == b'.'
                    && suffix[1..].split(|&byte| byte == b'.').all(|part| {
                        part.iter().all(|&byte| byte == b'~' || byte.is_ascii_alphanumeric())
                            && part.first().is_some_and(|byte| !byte.is_ascii_digit())
                    })
        };
        let at = (0..=text.len()).find(|&at| is_suffix(&text[at..])).unwrap();
        &text[..at]
    }
    let class = |text: &[u8]| match text {
        b"" => 0,
        b"." => 1,
        b".." => 2,
        _ if text[0] == b'.' => 3,
        _ => 4,
    };
    class(a).cmp(&class(b)).then_with(|| walk(stem(a), stem(b))).then_with(|| walk(a, b))
}

#[test]
fn tiny_texts() {
    let words: &[&[u8]] = &[b"\0", b"\x01", b"\x02", b"a", b"B"];
    let texts = tiny(words, 3);
    for a in &texts {
        for b in &texts {
            // "1,1" with a separator that is nowhere: the whole line, but not a direct key.
            for (key, reversed) in [("1,1", false), ("1,1r", true)] {
                let order = OrderSpec { separator: Some(b'\n'), ..with_keys(LINES, &[key]) };
                let order = order.compile(None).unwrap();
                let expected = if reversed { b.cmp(a) } else { a.cmp(b) };
                check_pair(&order, &line(a), &line(b), expected);
            }
            check_pair(&lines(&[], ""), &line(a), &line(b), a.cmp(b));
            check_pair(&lines(&[], "r"), &line(a), &line(b), b.cmp(a));
        }
    }
    check_tiny("f", words, 3, folded);
}

#[test]
fn tiny_numbers() {
    check_tiny("n", &[b"0", b"1", b"9", b".", b"-", b" "], 3, numeric);
}

#[test]
fn tiny_sizes() {
    check_tiny("h", &[b"0", b"2", b"k", b"M", b".", b"-"], 3, human);
}

#[test]
fn tiny_versions() {
    check_tiny("V", &[b"0", b"1", b"a", b"~", b"."], 4, version);
}

#[test]
fn numbers_of_any_length_are_exact() {
    let order = lines(&[], "n");
    let long = "9".repeat(2000);
    let ascending = [
        "-1.01",
        "-1",
        "-0.5",
        "-.25",
        "-0.001",
        "0",
        "1e9",
        "1.0000000000000000000000001",
        "9.99",
        "10",
        "11",
        "100",
        "1000000000000000000000000000000000000000",
        &long,
        &format!("1{}", "0".repeat(2000)),
        &format!("1{}.1", "0".repeat(2000)),
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            check_pair(&order, &line(a.as_bytes()), &line(b.as_bytes()), i.cmp(&j));
        }
    }
    for equal in [["0", "-0"], ["", "x"], ["1", "1."], ["1.50", "001.5"], [" \t7", "7x"]] {
        let [a, b] = equal.map(|text| line(text.as_bytes()));
        check_pair(&order, &a, &b, Ordering::Equal);
    }
}

#[test]
fn general_numbers_are_those_of_strtold() {
    let order = lines(&[], "g");
    let ascending = [
        "x",
        "-nan",
        "nan",
        "-inf",
        "-1e4932",
        "-2",
        "-0x1p-3",
        "-1e-4950",
        "0",
        "3.7e-4951",
        "1e-4950",
        "1e-4940",
        ".5",
        "0x.9",
        "1",
        "1.0000000000000000002",
        "0x1.8p0",
        "2",
        "1e3",
        "0x1000",
        "1e27",
        "1e28",
        "1.1e28",
        "1.1897e4932",
        "inf",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            check_pair(&order, &line(a.as_bytes()), &line(b.as_bytes()), i.cmp(&j));
        }
    }
    let long_one = format!("1{}e-30000", "0".repeat(30_000));
    let equal = [
        ["", "e1"],
        ["0", "-0"],
        ["0x", "0"],
        ["0x.p1", "-0"],
        ["1e", "1"],
        ["1e+", "+1"],
        ["INFINITY", "inf"],
        ["1e99999999999999999999", "inf"],
        ["nan(7)", "NaN"],
        ["1e5", "100000"],
        ["0x10", "16"],
        ["0x1.8p1", "3"],
        ["1e-99999999999999999999", "0"],
        [&long_one, "1"],
        ["1.2e4932", "inf"],
        ["1.00000000000000000000001", "1"],
        [" \x0b\r1", "1"],
        ["- 1", "x"],
        // Exactly between two floats, and a little above: ties go to the even one.
        ["18446744073709551616", "18446744073709551617"],
        ["18446744073709551619.0000000000000000000000001", "18446744073709551620"],
        ["1e-4951", "0"],
    ];
    for equal in equal {
        let [a, b] = equal.map(|text| line(text.as_bytes()));
        check_pair(&order, &a, &b, Ordering::Equal);
    }
}

#[test]
fn months_by_their_first_letters() {
    let order = lines(&[], "M");
    let ascending = [
        "13",
        "jan",
        "  FEBRUARY",
        "March",
        "apr",
        "May",
        "jun",
        "jul",
        "aug",
        "sep",
        "oct",
        "nov",
        "dec",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            check_pair(&order, &line(a.as_bytes()), &line(b.as_bytes()), i.cmp(&j));
        }
    }
    check_pair(&order, &line(b"ja"), &line(b"x"), Ordering::Equal);
}

#[test]
fn versions_as_release_lists_have_them() {
    let order = lines(&[], "V");
    let ascending = [
        "",
        ".",
        "..",
        ".a",
        "1.0~rc1",
        "1.0",
        "1.0.1",
        "1.1",
        "1.9",
        "1.10",
        "a.tar.gz",
        "a1.tar",
        "a1b.tar",
        "a2.tar",
        "a10.tar.gz",
        "b",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            check_pair(&order, &line(a.as_bytes()), &line(b.as_bytes()), i.cmp(&j));
        }
    }
    check_pair(&order, &line(b"x01"), &line(b"x1"), Ordering::Equal);
    check_pair(&order, &line(b"x0"), &line(b"x"), Ordering::Equal);
}

#[test]
fn random_order_keeps_equal_keys_together() {
    let with_salt = |salt| {
        let spec = OrderSpec { options: "R".to_owned(), salt, ..with_keys(LINES, &["1,1"]) };
        spec.compile(None).unwrap()
    };
    let permutation = |salt| {
        let order = with_salt(salt);
        let mut records: Vec<_> =
            (0..100).map(|i| line(format!("{} {i}", i % 10).as_bytes())).collect();
        records.sort_by(|a, b| order.compare(a, b));
        let mut keys: Vec<_> = records.iter().map(|record| record[0]).collect();
        keys.dedup();
        keys
    };
    let first = permutation(1);
    assert_eq!(first.len(), 10, "{first:?}");
    assert_eq!(first, permutation(1));
    assert_ne!(first, permutation(salt_from(b"another source!!")));
    check_pair(&with_salt(3), &line(b"a"), &line(b"a b"), Ordering::Equal);
}

#[test]
fn binary_keys_by_value() {
    let format = Format::Fixed { bytes: 10 };
    let order = |key: &str| with_keys(format, &[key]).compile(None).unwrap();
    let record = |bytes: &[u8]| {
        let mut record = vec![7; 10];
        record[1..=bytes.len()].copy_from_slice(bytes);
        record
    };
    macro_rules! check {
        ($name:literal, $type:ty, $to:ident, $cmp:ident, $values:expr) => {{
            let width = size_of::<$type>();
            let ascending = order(&format!("1:{width}:{}", $name));
            let descending = order(&format!("1:{width}:{}:r", $name));
            let values: Vec<$type> = $values.into_iter().collect();
            for a in &values {
                for b in &values {
                    let (x, y) = (record(&a.$to()), record(&b.$to()));
                    check_pair(&ascending, &x, &y, a.$cmp(b));
                    check_pair(&descending, &x, &y, b.$cmp(a));
                }
            }
        }};
    }
    check!("u8", u8, to_le_bytes, cmp, [0, 1, 127, 128, 255]);
    check!("i8", i8, to_le_bytes, cmp, [0, 1, -1, i8::MIN, i8::MAX]);
    check!("u16le", u16, to_le_bytes, cmp, [0, 1, 255, 256, u16::MAX]);
    check!("u32be", u32, to_be_bytes, cmp, [0, 1, 255, 256, u32::MAX]);
    check!("u64le", u64, to_le_bytes, cmp, [0, 1, 255, 256, u64::MAX]);
    check!("i16be", i16, to_be_bytes, cmp, [0, 1, -1, 256, i16::MIN, i16::MAX]);
    check!("i32le", i32, to_le_bytes, cmp, [0, 1, -1, 256, i32::MIN, i32::MAX]);
    check!("i64be", i64, to_be_bytes, cmp, [0, 1, -1, 256, i64::MIN, i64::MAX]);
    let floats = [-f64::NAN, f64::NEG_INFINITY, -1.5, -0.0, 0.0, f64::MIN_POSITIVE, 1.5, f64::NAN];
    check!("f64le", f64, to_le_bytes, total_cmp, floats);
    check!("f32be", f32, to_be_bytes, total_cmp, floats.map(|float| float as f32));
}

#[test]
fn keys_that_need_no_encoding_are_direct() {
    let direct = |order: &Order| order.direct().map(|key| (key.place, key.descending));
    let range = |offset, len| Place::Range { offset, len };
    let fixed = |keys: &[&str]| with_keys(Format::Fixed { bytes: 9 }, keys).compile(None).unwrap();
    assert_eq!(direct(&lines(&[], "")), Some((Place::Line, false)));
    assert_eq!(direct(&lines(&[], "r")), Some((Place::Line, true)));
    assert_eq!(direct(&lines(&["1"], "")), Some((Place::Line, false)));
    assert_eq!(direct(&lines(&["1,1"], "")), None);
    assert_eq!(direct(&lines(&[], "f")), None);
    assert_eq!(direct(&fixed(&[])), Some((range(0, 9), false)));
    assert_eq!(direct(&fixed(&["2:3:r"])), Some((range(2, 3), true)));
    assert_eq!(direct(&fixed(&["2:4:u32be"])), Some((range(2, 4), false)));
    assert_eq!(direct(&fixed(&["2:4:u32le"])), None);
    assert_eq!(direct(&fixed(&["2:3", "0:1"])), None);
    let keyed = with_keys(Format::Keyed, &[":r"]).compile(None).unwrap();
    assert_eq!(direct(&keyed), Some((Place::Prefixed, true)));
    let fasta = |keys: &[&str]| with_keys(Format::Fasta, keys).compile(None).unwrap();
    assert_eq!(direct(&fasta(&[])), Some((Place::Line, false)));
    assert_eq!(direct(&fasta(&["id"])), Some((Place::Id, false)));
    assert_eq!(direct(&fasta(&["header:r"])), Some((Place::Header, true)));
    for keys in [&["id:V"][..], &["length"], &["sequence"], &["id", "header"]] {
        assert_eq!(direct(&fasta(keys)), None, "{keys:?}");
    }
    for place in [Place::Header, Place::Id] {
        let key = DirectKey { place, descending: true };
        assert_eq!(Order::by_bytes(Format::Fastq, key).direct(), Some(key));
    }
    let key = DirectKey { place: range(1, 2), descending: true };
    assert_eq!(Order::by_bytes(Format::Fixed { bytes: 3 }, key).direct(), Some(key));
}

#[test]
fn sequences_by_their_parts() {
    let wrapped = b">s10 first\nAC\nGT\n";
    let blank = b">s9\tsecond\r\nAC G\r\n\r\n";
    let lower = b">s9 third\nacgt";
    let by = |keys: &[&str], options: &str, a: &[u8], b: &[u8]| {
        let spec = OrderSpec { options: options.to_owned(), ..with_keys(Format::Fasta, keys) };
        spec.compile(None).unwrap().compare(a, b)
    };
    for (keys, options, expected) in [
        (&["id"][..], "", [Ordering::Less, Ordering::Less, Ordering::Equal]),
        (&["id:V"], "", [Ordering::Greater, Ordering::Greater, Ordering::Equal]),
        (&["id"], "r", [Ordering::Greater, Ordering::Greater, Ordering::Equal]),
        (&["header"], "", [Ordering::Less, Ordering::Less, Ordering::Less]),
        (&["length"], "", [Ordering::Greater, Ordering::Equal, Ordering::Less]),
        (&["length:r"], "", [Ordering::Less, Ordering::Equal, Ordering::Greater]),
        (&["length"], "rf", [Ordering::Less, Ordering::Equal, Ordering::Greater]),
        (&["sequence"], "", [Ordering::Greater, Ordering::Less, Ordering::Less]),
        (&["sequence:f"], "", [Ordering::Greater, Ordering::Equal, Ordering::Less]),
        (&["sequence"], "f", [Ordering::Greater, Ordering::Equal, Ordering::Less]),
        (&["length", "id:r"], "", [Ordering::Greater, Ordering::Greater, Ordering::Less]),
        (&[], "", [Ordering::Less, Ordering::Less, Ordering::Less]),
    ] {
        let found = [(&wrapped[..], &blank[..]), (wrapped, lower), (blank, lower)]
            .map(|(a, b)| by(keys, options, a, b));
        assert_eq!(found, expected, "{keys:?} {options}");
    }
    // Quality is not looked at.
    let order = with_keys(Format::Fastq, &["sequence"]).compile(None).unwrap();
    check_pair(&order, b"@a\nAC\n+\nII\n", b"@b\nA\nC\n+\n+@\n", Ordering::Equal);
    check_pair(&order, b"@a\nA\n+\nI\n", b"@b\nAA\n+\nII\n", Ordering::Less);
}

/// Whatever bytes are taken for a record, each part is something and nothing panics.
#[test]
fn any_bytes_have_the_parts_of_a_sequence() {
    let keys = ["id", "header", "length", "sequence", "id:V"];
    for format in [Format::Fasta, Format::Fastq] {
        for record in tiny(&[b">", b"@", b"\n", b"\r", b"+", b" ", b"A"], 4) {
            if record.is_empty() {
                continue;
            }
            for key in keys {
                let order = with_keys(format, &[key]).compile(None).unwrap();
                order.encode_full(&record, &mut Vec::new());
            }
        }
    }
}

#[test]
fn keyed_records_by_their_key() {
    let record = |key: &[u8], value: &[u8]| {
        let lens = [key, value].map(|bytes| (bytes.len() as u32).to_le_bytes());
        [&lens[0], &lens[1], key, value].concat()
    };
    for options in ["", "r"] {
        let spec = OrderSpec { options: options.to_owned(), ..OrderSpec::new(Format::Keyed) };
        let order = spec.compile(None).unwrap();
        let keys = tiny(&[b"\0", b"a", b"\xff"], 2);
        for a in &keys {
            for b in &keys {
                let expected = if options == "r" { b.cmp(a) } else { a.cmp(b) };
                check_pair(&order, &record(a, b"x"), &record(b, b""), expected);
            }
        }
    }
}

#[test]
fn csv_fields_are_compared_unquoted() {
    let order =
        with_keys(CSV, &["name", "price:n:r"]).compile(Some(b"\xef\xbb\xbfid,name,\"price\"\r\n"));
    let order = order.unwrap();
    let rows: [&[u8]; 8] = [
        b"9\n",
        b"1,,5\r\n",
        b"8,\"\",\"3\"\r\n",
        b"2,a,10\n",
        b"4,\"a\",\"9\"\n",
        b"3,\"a \"\"q\"\"\",1\n",
        b"5,\"b,\n\",\"1\"\"\"\n",
        b"5,c\n",
    ];
    let ranks = [2, 0, 1, 3, 4, 5, 6, 7];
    for (a, i) in rows.iter().zip(ranks) {
        for (b, j) in rows.iter().zip(ranks) {
            check_pair(&order, a, b, i.cmp(&j));
        }
    }
    let words = with_keys(CSV, &["b:numeric:r", "a:b:text"]).compile(Some(b"a:b,b\n")).unwrap();
    check_pair(&words, b"x,9\n", b"x,10\n", Ordering::Greater);
    check_pair(&words, b"x,9\n", b"y,9.0\n", Ordering::Less);
    let by_number = with_keys(CSV, &["2", "1"]).compile(Some(b"2,1\n")).unwrap();
    check_pair(&by_number, b"a,z\n", b"b,a\n", Ordering::Less);
    let back = with_keys(CSV, &["3", "1:Vr"]).compile(Some(b"a,b,c\n")).unwrap();
    check_pair(&back, b"v9,,x\n", b"v10,,\"x\"\n", Ordering::Greater);
}

#[test]
fn errors_name_the_flag_and_the_value() {
    let fixed = Format::Fixed { bytes: 10 };
    let option =
        |format, options: &str| OrderSpec { options: options.to_owned(), ..OrderSpec::new(format) };
    let without_header = Format::csv_rows(b';', false);
    for (spec, expected) in [
        (with_keys(LINES, &["0"]), "key '0': fields are counted from 1"),
        (with_keys(LINES, &["x"]), "key 'x': it must begin with a field number"),
        (with_keys(LINES, &["1.0"]), "key '1.0': characters are counted from 1"),
        (
            with_keys(LINES, &["1q"]),
            "key '1q': positions are F[.C] and options are letters of bdfghiMnRrV",
        ),
        (option(LINES, "ng"), "options '-gn' are incompatible"),
        (option(LINES, "rdinb"), "options '-dn' are incompatible"),
        (
            with_keys(fixed, &["9:2"]),
            "key '9:2': the key ends outside the record, which has 10 bytes",
        ),
        (with_keys(fixed, &["1:2:u32le"]), "key '1:2:u32le': u32le is 4 bytes long, not 2"),
        (with_keys(fixed, &["1:0"]), "key '1:0': a key is at least 1 byte long"),
        (
            with_keys(fixed, &["1"]),
            "key '1': it must begin with OFFSET:LENGTH, two numbers of bytes",
        ),
        (
            with_keys(fixed, &["1:2:r:n"]),
            "key '1:2:r:n': 'n' is out of place; only r follows the type",
        ),
        (option(fixed, "n"), "option n has no meaning for fixed-length records"),
        (
            with_keys(Format::Keyed, &["x"]),
            "key 'x': a length-prefixed record has one key, and only :r can be given",
        ),
        (
            with_keys(Format::Fasta, &["name"]),
            "key 'name': a key is id, header, length or sequence",
        ),
        (
            with_keys(Format::Fasta, &["length:n"]),
            "key 'length:n': 'n' is out of place; this key takes :r",
        ),
        (
            with_keys(Format::Fastq, &["sequence:f:V"]),
            "key 'sequence:f:V': 'V' is out of place; this key takes :f :r",
        ),
        (with_keys(Format::Fastq, &["id:nV"]), "options '-nV' are incompatible"),
        (option(Format::Fasta, "n"), "option n has no meaning for sequences without keys"),
        (option(without_header, "n"), "option n has no meaning for csv rows without keys"),
        (
            OrderSpec::new(Format::csv_rows(b'\n', false)),
            "separator '\\n': quotes and line ends cannot separate the fields of csv rows",
        ),
        (with_keys(without_header, &["0"]), "key '0': columns are counted from 1"),
        (
            with_keys(without_header, &["x:n"]),
            "key 'x:n': a column is a number from 1 where there is no header",
        ),
        (
            OrderSpec { separator: Some(b';'), ..OrderSpec::new(fixed) },
            "a separator has no meaning for fixed-length records",
        ),
    ] {
        assert_eq!(error(&spec), expected);
    }
    let no_column = with_keys(CSV, &["c"]).compile(Some(b"a,b\n")).unwrap_err();
    assert_eq!(no_column.to_string(), "key 'c': there is no column 'c'; there are 2: a, b");
    let error = parse_separator(b"ab").unwrap_err();
    assert_eq!(error.to_string(), "separator 'ab': a separator is one byte, such as ; or \\t");
    assert_eq!(parse_separator(b"\\0"), Ok(0));
    assert_eq!(parse_separator(b"\\t"), Ok(b'\t'));
    assert_eq!(parse_separator(b"\\"), Ok(b'\\'));
}

#[test]
fn a_specification_survives_being_stored() {
    let spec = OrderSpec {
        separator: Some(0),
        stable: true,
        salt: u64::MAX,
        options: "r".to_owned(),
        ..with_keys(LINES, &["2,2n", "1"])
    };
    let stored = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<OrderSpec>(&stored).unwrap(), spec);
    let least: OrderSpec = serde_json::from_str(r#"{"format":"keyed"}"#).unwrap();
    assert_eq!(least, OrderSpec::new(Format::Keyed));
}

/// The fields of a row, one byte at a time.
fn naive_fields(row: &[u8]) -> Vec<Vec<u8>> {
    let row = row.strip_suffix(b"\n").unwrap();
    let row = row.strip_suffix(b"\r").unwrap_or(row);
    let mut fields = vec![Vec::new()];
    let (mut quoted, mut begins, mut at) = (false, true, 0);
    while at < row.len() {
        let first = std::mem::replace(&mut begins, false);
        match row[at] {
            b'"' if quoted && row.get(at + 1) == Some(&b'"') => {
                fields.last_mut().unwrap().push(b'"');
                at += 1;
            }
            b'"' if quoted || first => quoted = !quoted,
            b',' if !quoted => {
                fields.push(Vec::new());
                begins = true;
            }
            byte => fields.last_mut().unwrap().push(byte),
        }
        at += 1;
    }
    fields
}

proptest! {
    #[test]
    fn random_numbers(
        a in text_of(&["0", "1", "7", "99", "000", ".", "-", " ", "x"]),
        b in text_of(&["0", "1", "7", "99", "000", ".", "-", " ", "x"]),
    ) {
        check_letter("n", &a, &b, numeric);
    }

    #[test]
    fn random_sizes(
        a in text_of(&["0", "1", "10", ".", "-", " ", "k", "K", "M", "G", "Q", "x"]),
        b in text_of(&["0", "1", "10", ".", "-", " ", "k", "K", "M", "G", "Q", "x"]),
    ) {
        check_letter("h", &a, &b, human);
    }

    #[test]
    fn random_versions(
        a in text_of(&["0", "1", "10", "00", "a", "Z", "~", ".", "-", ".a", ".0", "\0"]),
        b in text_of(&["0", "1", "10", "00", "a", "Z", "~", ".", "-", ".a", ".0", "\0"]),
    ) {
        check_letter("V", &a, &b, version);
    }

    #[test]
    fn random_floats(a in -1e15..1e15_f64, b in -1e15..1e15_f64, digits in 0..6_usize) {
        // With at most 15 digits before the point and 6 behind it, an 80-bit float tells any two
        // numbers apart; a 64-bit float may not.
        let [a, b] = [a, b].map(|float| format!("{float:.digits$e}"));
        let expected = a.parse::<f64>().unwrap().partial_cmp(&b.parse::<f64>().unwrap()).unwrap();
        check_pair(&lines(&[], "g"), &line(a.as_bytes()), &line(b.as_bytes()), expected);
    }

    #[test]
    fn random_rows(
        a in prop::collection::vec(select(b"a\"\",,\n\r\0".to_vec()), 0..150),
        b in prop::collection::vec(select(b"a\"\",,\n\r\0".to_vec()), 0..150),
    ) {
        let order = with_keys(CSV, &["2", "1:r"]).compile(Some(b"a,b\n")).unwrap();
        let [a, b] = [a, b].map(|mut row| {
            // Where a quote leaves the row open, close it.
            row.push(b'\n');
            if CSV.record_len(&row).is_none() {
                row.extend_from_slice(b"\"\n");
            }
            row.truncate(CSV.record_len(&row).unwrap());
            row
        });
        let (x, y) = (naive_fields(&a), naive_fields(&b));
        let field = |fields: &[Vec<u8>], at: usize| fields.get(at).cloned().unwrap_or_default();
        let expected = field(&x, 1).cmp(&field(&y, 1)).then_with(|| field(&y, 0).cmp(&field(&x, 0)));
        check_pair(&order, &a, &b, expected);
    }

    #[test]
    fn several_keys_count_one_after_the_other(
        a in ("[ab]{0,2}", -20..20_i32, "[a-c]{0,2}"),
        b in ("[ab]{0,2}", -20..20_i32, "[a-c]{0,2}"),
    ) {
        let spec = OrderSpec { separator: Some(b':'), ..with_keys(LINES, &["3r", "2n,2", "1,1"]) };
        let order = spec.compile(None).unwrap();
        let expected = b.2.cmp(&a.2).then(a.1.cmp(&b.1)).then(a.0.cmp(&b.0));
        let [a, b] = [a, b].map(|(x, y, z)| line(format!("{x}:{y}:{z}").as_bytes()));
        check_pair(&order, &a, &b, expected);
    }
}

#[test]
fn a_salt_that_no_key_uses_makes_no_other_order() {
    let with = |key, salt| OrderSpec { salt, ..with_keys(LINES, &[key]) };
    assert!(with("2r", 7).is_same_order(&with("2r", 0)));
    assert!(with("2r", 7).is_same_order(&with("2r", 8)));
    assert!(!with("2R", 7).is_same_order(&with("2R", 8)));
    assert!(with("2R", 7).is_same_order(&with("2R", 7)));
    assert!(!with("2r", 7).is_same_order(&with("2", 7)));
}
