//! The built-in SSDlets: examples, naive models, and any cut into chunks.

#![allow(clippy::needless_pass_by_value, reason = "tests write arguments where they pass them")]

use std::collections::BTreeMap;

use merganser_map::ssdlet::builtin::{ALL, open};
use merganser_map::ssdlet::{
    Chunk, CollectedOutput, Emitter, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type,
    i64_of_key,
};
use merganser_map::{MapInput, MapOptions, MapOutput, PartitionSize, RowSink, map};
use merganser_sort::key::decimal::OwnedDecimal;
use merganser_sort::record::Format;
use merganser_sort::{Budget, Silent};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, StorageExt};
use proptest::prelude::*;
use serde_json::{Value, json};

/// How inputs are handed to workers: chunks of this many records, and this many workers in turn.
#[derive(Debug, Clone, Copy)]
struct Cuts {
    records: usize,
    workers: usize,
}

const WHOLE: Cuts = Cuts { records: usize::MAX, workers: 1 };

fn opened(name: &str, args: &Value) -> Box<dyn Ssdlet> {
    open(name, args).unwrap_or_else(|error| panic!("{name} {args}: {error}"))
}

fn record_len(description: &SsdletDescription, bytes: &[u8]) -> usize {
    description.input.record_len(bytes).unwrap_or(bytes.len())
}

/// The output of an SSDlet for inputs whose last records have their terminators.
fn run_cut(
    name: &str,
    args: &Value,
    inputs: &[&[u8]],
    cuts: Cuts,
) -> Result<CollectedOutput, SsdletError> {
    let ssdlet = opened(name, args);
    let description = ssdlet.description();
    let mut collect = CollectedOutput::default();
    let ordered = matches!(description.output, SsdletOutput::Ordered { .. });
    let count = if ordered { 1 } else { cuts.workers };
    let mut workers = (0..count).map(|_| ssdlet.worker()).collect::<Result<Vec<_>, _>>()?;
    let has_header = matches!(description.input, Format::Csv { header: true, .. });
    if has_header {
        let row = &inputs[0][..record_len(description, inputs[0])];
        collect.ordered.extend(ssdlet.header(row)?);
        workers.iter_mut().try_for_each(|worker| worker.header(row))?;
    }
    let (mut turn, mut length) = (0, 0);
    for (number, input) in inputs.iter().enumerate() {
        let mut at = if has_header { record_len(description, input) } else { 0 };
        while at < input.len() {
            let start = at;
            for _ in 0..cuts.records {
                at += record_len(description, &input[at..]);
                if at == input.len() {
                    break;
                }
            }
            length += at - start;
            let chunk =
                Chunk { input: number as u32, offset: start as u64, bytes: &input[start..at] };
            let worker = &mut workers[turn % count];
            worker.chunk(chunk, &mut Emitter::collecting(&mut collect))?;
            turn += 1;
        }
    }
    let mut metered = 0;
    for worker in &mut workers {
        worker.close(&mut Emitter::collecting(&mut collect))?;
        metered += worker.meter();
    }
    assert_eq!(metered, length as u64, "each byte is metered once");
    Ok(collect)
}

fn run(name: &str, args: Value, inputs: &[&[u8]]) -> CollectedOutput {
    run_cut(name, &args, inputs, WHOLE).unwrap_or_else(|error| panic!("{name} {args}: {error}"))
}

/// The sums of all keys.
fn sums(collect: &CollectedOutput) -> BTreeMap<Vec<u8>, i64> {
    let number = |value: &Vec<u8>| i64::from_le_bytes(value[..].try_into().expect("8 bytes"));
    let sum = |values: &Vec<Vec<u8>>| values.iter().map(number).sum();
    collect.keyed.iter().map(|(key, values)| (key.clone(), sum(values))).collect()
}

/// Sums as lines `key=sum`.
fn shown(collect: &CollectedOutput) -> String {
    let lines: Vec<_> = sums(collect)
        .iter()
        .map(|(key, sum)| format!("{}={sum}", String::from_utf8_lossy(key)))
        .collect();
    lines.join(" ")
}

fn ordered(collect: &CollectedOutput) -> String {
    String::from_utf8(collect.ordered.clone()).expect("text")
}

fn refusal(name: &str, args: Value) -> String {
    open(name, &args).err().unwrap_or_else(|| panic!("{name} {args} opens")).to_string()
}

fn failure(name: &str, args: Value, input: &[u8]) -> String {
    run_cut(name, &args, &[input], WHOLE).expect_err("fails").to_string()
}

#[test]
fn wordcount_counts_words() {
    let text = b"to be, or not to be\nTo be\n";
    assert_eq!(shown(&run("wordcount", Value::Null, &[text])), "To=1 be=2 be,=1 not=1 or=1 to=2");
    let letters = run("wordcount", json!({"words": "letters"}), &[text]);
    assert_eq!(shown(&letters), "BE=3 NOT=1 OR=1 TO=3");
    let records = run("wordcount", json!({"delimiter": "\u{0}"}), &[b"a\0a b\0"]);
    assert_eq!(shown(&records), "a=2 b=1");
}

#[test]
fn match_gives_records_or_counts_of_keys() {
    let log = b"GET /a 200\nPUT /b 500\r\nGET /b 404\n\n";
    let of = |args| ordered(&run("match", args, &[log]));
    assert_eq!(of(json!({"keys": ["GET"]})), "GET /a 200\nGET /b 404\n");
    assert_eq!(of(json!({"keys": ["500", "/b 4"]})), "PUT /b 500\r\nGET /b 404\n");
    assert_eq!(of(json!({"keys": ["get", "x"], "ignore_case": true})), "GET /a 200\nGET /b 404\n");
    assert_eq!(of(json!({"regex": "[45]\\d\\d$"})), "PUT /b 500\r\nGET /b 404\n");
    assert_eq!(of(json!({"regex": "^put", "ignore_case": true})), "PUT /b 500\r\n");
    assert_eq!(of(json!({"keys": ["GET"], "invert": true})), "PUT /b 500\r\n\n");
    assert_eq!(of(json!({"regex": "^$"})), "\n");
    let counts = run("match", json!({"keys": ["GET", "ET /b", "b", "y"], "count": true}), &[log]);
    assert_eq!(shown(&counts), "ET /b=1 GET=2 b=2");
    let counts = run("match", json!({"regex": "/.", "count": true}), &[log]);
    assert_eq!(shown(&counts), "/.=3");
    let one = run("match", json!({"keys": ["/b"], "count": true}), &[log]);
    assert_eq!(shown(&one), "/b=2");
}

#[test]
fn match_knows_quoted_newlines_and_fixed_records() {
    let rows = b"id,text\n1,\"a\nkey b\"\n2,key\n3,\"k\ney\"\n";
    let args = json!({"keys": ["key"], "format": "csv", "header": true});
    assert_eq!(ordered(&run("match", args, &[rows])), "id,text\n1,\"a\nkey b\"\n2,key\n");
    let args = json!({"keys": ["y\"\n"], "format": "csv"});
    assert_eq!(ordered(&run("match", args, &[rows])), "");
    let args = json!({"keys": ["bc", "fa"], "format": "fixed:3"});
    assert_eq!(ordered(&run("match", args, &[b"abcdefabc"])), "abcabc");
}

#[test]
fn histogram_is_in_the_order_of_numbers() {
    let rows = |collect: &CollectedOutput| {
        let key = |key: &Vec<u8>| OwnedDecimal::of_key(key).expect("a number").get().to_string();
        sums(collect).iter().map(|(k, sum)| (key(k), *sum)).collect::<Vec<_>>()
    };
    let lines = b"5\n-3\n10.0\n 5 \n1e1\n";
    assert_eq!(
        rows(&run("histogram", json!({}), &[lines])),
        [("-3".to_owned(), 1), ("5".to_owned(), 2), ("10".to_owned(), 2)]
    );
    let wide = run("histogram", json!({"width": 10}), &[lines]);
    assert_eq!(rows(&wide), [("-10".to_owned(), 1), ("0".to_owned(), 2), ("10".to_owned(), 2)]);
    let csv = b"name,n\n\"a,b\",\"7\"\r\nc,\nd,7\n";
    let args = json!({"format": "csv", "header": true, "column": "n", "invalid": "skip"});
    assert_eq!(rows(&run("histogram", args, &[csv])), [("7".to_owned(), 2)]);
    let args = json!({"format": "csv", "header": true, "column": 2});
    let error = failure("histogram", args, csv);
    assert_eq!(
        error,
        "at byte 18: \"\" is not a number; choose another column, or set invalid to skip"
    );
    // Each digit counts, in values and in the edges of ranges.
    let ids = b"1234567890123456789\n1234567890123456788\n0.1\n0.10\n1e400\n";
    let exact = [("0.1", 2), ("1234567890123456788", 1), ("1234567890123456789", 1), ("1e400", 1)];
    assert_eq!(rows(&run("histogram", json!({}), &[ids])), exact.map(|(k, n)| (k.to_owned(), n)));
    let tenths = run("histogram", json!({"width": 0.1}), &[b"0.1\n0.2\n0.3\n0.7\n-0.05\n"]);
    let edges = ["-0.1", "0.1", "0.2", "0.3", "0.7"].map(|edge| (edge.to_owned(), 1));
    assert_eq!(rows(&tenths), edges);
    let error = failure("histogram", json!({"width": 0.1}), b"1\n1e36\n");
    assert!(error.contains("1e36 is too large for ranges of this width"), "{error}");
    let words = run("histogram", json!({"column": 2}), &[b"x  4 y\nz\t4\n"]);
    assert_eq!(rows(&words), [("4".to_owned(), 2)]);
    let bytes = run("histogram", json!({"of": "bytes"}), &[b"ab\xffa\n"]);
    let key = |key: &Vec<u8>| i64_of_key(key).expect("a number");
    let found: Vec<_> = sums(&bytes).iter().map(|(k, sum)| (key(k), *sum)).collect();
    assert_eq!(found, [(10, 1), (97, 2), (98, 1), (255, 1)]);
}

#[test]
fn terms_are_an_inverted_index_or_term_vectors() {
    let (a, b): (&[u8], &[u8]) = (b"x y\nx\n", b"y\n");
    assert_eq!(shown(&run("terms", json!({}), &[a, b])), "x\t0=2 y\t0=1 y\t1=1");
    let args = json!({"names": ["a.txt", "b.txt"], "first": "document"});
    assert_eq!(shown(&run("terms", args, &[a, b])), "a.txt\tx=2 a.txt\ty=1 b.txt\ty=1");
    let records = b"doc1\tx y x\ndoc2\ty\ndoc1\tz\n";
    let by_word = run("terms", json!({"document": "field"}), &[records]);
    assert_eq!(shown(&by_word), "x\tdoc1=2 y\tdoc1=1 y\tdoc2=1 z\tdoc1=1");
    let error = failure("terms", json!({"document": "field"}), b"doc1\tx\nno tab\n");
    assert!(error.starts_with("at byte 7: no tab ends the name of its document"), "{error}");
    let error = failure("terms", json!({"names": []}), b"x\n");
    assert!(error.contains("input 0 has none among 0"), "{error}");
}

#[test]
fn sequences_stay_within_records() {
    let text = b"a b c d\ne f\na  b c\n";
    assert_eq!(shown(&run("sequence-count", json!({}), &[text])), "a b c=2 b c d=1");
    let pairs = run("sequence-count", json!({"n": 2, "words": "letters"}), &[b"it's a.b\nc\n"]);
    assert_eq!(shown(&pairs), "A B=1 IT'S A=1");
    assert_eq!(shown(&run("sequence-count", json!({"n": 1}), &[b"a a\n"])), "a=2");
    let named = b"D1\ta b a b\nno words\nD2\ta b\nD3\t\n\tx y z\n";
    let of_documents = run("sequence-count", json!({"n": 2, "document": "field"}), &[named]);
    assert_eq!(shown(&of_documents), "a|b|D1=2 a|b|D2=1 b|a|D1=1 x|y|=1 y|z|=1");
}

#[test]
fn a_record_ends_with_any_byte() {
    let words = |delimiter: Value, text: &[u8]| {
        shown(&run("sequence-count", json!({"n": 2, "delimiter": delimiter}), &[text]))
    };
    assert_eq!(words(json!("\u{0}"), b"a b\0c d\0"), "a b=1 c d=1");
    assert_eq!(words(json!(255), b"a b\xffc d\xff"), "a b=1 c d=1");
    let refused = refusal("wordcount", json!({"delimiter": 256}));
    assert!(refused.contains("from 0 to 255"), "{refused}");
}

#[test]
fn occurrences_do_not_overlap() {
    let found = run("occurrences", json!({"text": "aa"}), &[b"aaaaa b\nxaa\na\na"]);
    assert_eq!(shown(&found), "aa=3");
    assert_eq!(shown(&run("occurrences", json!({"text": "aa"}), &[b"b\n"])), "");
}

#[test]
fn ratings_are_counted_and_their_means() {
    let lines = b"7:1_5,2_5,3_4\n8:1_1_2009,x_6,y_,_3,4_33,5_\n9:\nnone\n:a_2:b_3,c_2\n";
    assert_eq!(shown(&run("histogram-ratings", json!({}), &[lines])), "1=1 2=1 3=1 4=1 5=2");
    // 14 / 3 is in 4.5 to 5, 4 / 2 in 2 to 2.5, and 2 alone as well: a_2:b is no rating.
    assert_eq!(shown(&run("histogram-movies", json!({}), &[lines])), "2.5=2 5.0=1");
    assert_eq!(shown(&run("histogram-movies", json!({}), &[b"1:a_5"])), "5.5=1");
}

/// Keys and values of texts, as `KEY=VALUE`, in order.
fn texts(name: &str, input: &[u8]) -> Vec<String> {
    let row = |key: &[u8], value: &[u8]| {
        [String::from_utf8_lossy(key), String::from_utf8_lossy(value)].join("=")
    };
    let rows = in_order(run(name, json!({}), &[input]));
    rows.iter().flat_map(|(key, values)| values.iter().map(|value| row(key, value))).collect()
}

#[test]
fn documents_have_words() {
    let lines = b"D1\tb a b  c\nno words\nD2\ta\nD3\t\n\tx y\n";
    assert_eq!(texts("inverted-index", lines), ["a=D1", "a=D2", "b=D1", "c=D1", "x=", "y="]);
    assert_eq!(texts("term-vector", lines), ["=x:1 y:1", "D1=a:1 b:2 c:1", "D2=a:1"]);
    let counted = b"a|b|c|D1\t12\na|b|c|D2\t3\nx\t1\ny\n|\t\t5\n";
    let ranked = ["=\t5|", "a|b|c=12|D1", "a|b|c=3|D2"];
    assert_eq!(texts("ranked-inverted-index", counted), ranked);
    let long = [b"D\t".as_slice(), &b"a ".repeat(1 << 19), b"a\n"].concat();
    let error = failure("inverted-index", json!({}), &long);
    assert!(error.starts_with("at byte 0: a record of 1048577 bytes"), "{error}");
}

#[test]
fn samples_depend_on_places_alone() {
    let lines: String = (0..10_000).map(|n| format!("{n}\n")).collect();
    let of = |args| ordered(&run("sample", args, &[lines.as_bytes()]));
    assert_eq!(of(json!({"fraction": 1})), lines);
    assert_eq!(of(json!({"fraction": 0})), "");
    let tenth = of(json!({"fraction": 0.1}));
    let count = tenth.lines().count();
    assert!((900..1100).contains(&count), "{count}");
    let fifth = of(json!({"fraction": 0.2}));
    assert!(tenth.lines().all(|line| fifth.lines().any(|other| other == line)));
    assert_ne!(tenth, of(json!({"fraction": 0.1, "seed": 1})));
}

/// The first rows of a keyed result: key and first value.
fn first_rows(collect: &CollectedOutput, count: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rows = collect.keyed.iter().map(|(key, values)| (key.clone(), values[0].clone()));
    rows.take(count as usize).collect()
}

#[test]
fn a_sample_by_count_has_exactly_so_many_for_any_workers() {
    let lines: String = (0..5_000).map(|n| format!("{n}\n")).collect();
    let args = json!({"count": 100, "seed": 7});
    let most = opened("sample", &args).rows_most().expect("as many rows");
    let wanted = first_rows(&run("sample", args.clone(), &[lines.as_bytes()]), most);
    assert_eq!(wanted.len(), 100);
    for (records, workers) in [(1, 3), (77, 2), (5000, 4)] {
        let cuts = Cuts { records, workers };
        let found = run_cut("sample", &args, &[lines.as_bytes()], cuts).expect("samples");
        assert_eq!(first_rows(&found, most), wanted);
        assert!(found.keyed.len() < 2500, "{} of 5000 were handed out", found.keyed.len());
    }
    let few = run("sample", json!({"count": 9}), &[b"a\nb\n"]);
    assert_eq!(few.keyed.len(), 2);
}

#[test]
fn project_keeps_quotes_and_line_ends() {
    let rows = b"\xef\xbb\xbfid,\"full \"\"name\"\"\",age\n1,\"a,\"\"x\"\"\nb\",30\r\n2,,\n";
    let args = json!({"columns": ["age", "full \"name\"", 1], "header": true});
    assert_eq!(
        ordered(&run("project", args, &[rows])),
        "age,\"full \"\"name\"\"\",id\n30,\"a,\"\"x\"\"\nb\",1\r\n,,2\n"
    );
    let args = json!({"columns": [2, 2], "separator": ";"});
    assert_eq!(ordered(&run("project", args, &[b"a;b,c;d\n"])), "b,c;b,c\n");
    let error = failure("project", json!({"columns": [3]}), b"a,b,c\na,b\n");
    assert_eq!(
        error,
        "at byte 6: argument columns: column 3 is asked for, and the row has 2; choose another column, or repair the row"
    );
    let args = json!({"columns": ["x"], "header": true});
    assert_eq!(
        failure("project", args, b"a,b\n1,2\n"),
        "project: argument columns: there is no column 'x'; there are 2: a, b"
    );
}

#[test]
fn filter_compares_numbers_and_texts() {
    let rows = b"name,n\nann,9\n\"b\"\"o\"\"b\",10\ncy,x\ndi,\"-1\"\r\n";
    let of = |condition: Value| {
        let args = json!({"where": condition, "header": true});
        let found = ordered(&run("filter", args, &[rows]));
        found.strip_prefix("name,n\n").expect("the header").to_owned()
    };
    let by =
        |column: &str, op: &str, value: Value| json!({"column": column, "op": op, "value": value});
    assert_eq!(of(by("n", ">", json!(9))), "\"b\"\"o\"\"b\",10\n");
    assert_eq!(of(by("n", ">", json!("9"))), "cy,x\n");
    assert_eq!(of(by("n", "!=", json!(9))), "\"b\"\"o\"\"b\",10\ndi,\"-1\"\r\n");
    assert_eq!(of(by("name", "=", json!("b\"o\"b"))), "\"b\"\"o\"\"b\",10\n");
    assert_eq!(of(by("name", "contains", json!("n"))), "ann,9\n");
    assert_eq!(of(by("name", "starts", json!("c"))), "cy,x\n");
    assert_eq!(of(by("name", "ends", json!("i"))), "di,\"-1\"\r\n");
    let both = json!({"all": [by("n", "<=", json!(9)), by("name", "<", json!("b"))]});
    assert_eq!(of(both), "ann,9\n");
    let either = json!({"any": [by("n", "=", json!("x")), by("n", "<", json!(0))]});
    assert_eq!(of(either.clone()), "cy,x\ndi,\"-1\"\r\n");
    assert_eq!(of(json!({"not": either})), "ann,9\n\"b\"\"o\"\"b\",10\n");
    assert_eq!(of(json!({"any": []})), "");
}

/// Ids of 17 and more digits, and decimals, are compared as they are written.
#[test]
fn filter_compares_each_digit() {
    let rows = b"1234567890123456789,a\n1234567890123456788,b\n2,c\n1e18,d\n0.30,e\ninf,f\nnan,g\n";
    let of = |op: &str, value: Value| {
        let args = json!({"where": {"column": 1, "op": op, "value": value}});
        let found = ordered(&run("filter", args, &[rows]));
        found.lines().map(|line| line.split_once(',').expect("two").1).collect::<String>()
    };
    assert_eq!(of("=", json!(1_234_567_890_123_456_789_u64)), "a");
    assert_eq!(of("<", json!(1_234_567_890_123_456_789_u64)), "bcde");
    assert_eq!(of(">=", json!(1_234_567_890_123_456_788_u64)), "abf");
    assert_eq!(of("=", json!({"number": "1000000000000000000.0"})), "d");
    assert_eq!(of(">", json!({"number": "1234567890123456788.99999999999999999999"})), "af");
    assert_eq!(of("=", json!(0.3)), "e");
    assert_eq!(of("=", json!({"number": "infinity"})), "f");
    assert_eq!(of("!=", json!(2)), "abdef");
    assert_eq!(of("=", json!("nan")), "g");
}

/// A sample has the records as they are, whatever ends their lines.
#[test]
fn samples_keep_carriage_returns() {
    for (args, input) in [
        (json!({}), &b"a\r\nb\nc\r\r\n\r\n"[..]),
        (json!({"format": "csv"}), b"\"a\nb\",1\r\nc,2\r\n"),
        (json!({"delimiter": "\0"}), b"a\r\0b\0"),
        (json!({"format": "fixed:2"}), b"a\n\r\n"),
    ] {
        let mut args = args;
        args["count"] = json!(100);
        let found = run("sample", args.clone(), &[input]);
        let format = opened("sample", &args).description().input;
        let mut records: Vec<Vec<u8>> = found.keyed.into_values().flatten().collect();
        let mut rest = input;
        let mut expected = Vec::new();
        while let Some(len) = format.record_len(rest) {
            let (record, behind) = rest.split_at(len);
            let delimiter = match format {
                Format::Lines { delimiter } => Some(delimiter),
                Format::Csv { .. } => Some(b'\n'),
                _ => None,
            };
            let text = match delimiter {
                Some(delimiter) => record.strip_suffix(&[delimiter]).expect("its end"),
                None => record,
            };
            expected.push(text.to_vec());
            rest = behind;
        }
        records.sort();
        expected.sort();
        assert_eq!(records, expected, "{args}");
    }
}

#[test]
fn wrong_arguments_are_named() {
    let cases = [
        (
            "wordcount",
            json!({"word": 1}),
            "there is no argument \"word\"; there are words, delimiter",
        ),
        ("wordcount", json!([]), "not a JSON object"),
        ("wordcount", json!({"words": "lines"}), "argument words: unknown variant `lines`"),
        ("wordcount", json!({"delimiter": "ab"}), "argument delimiter: give one byte"),
        (
            "wordcount",
            json!({"delimiter": "a", "words": "letters"}),
            "argument delimiter: a letter",
        ),
        ("match", json!({}), "argument keys: give a list"),
        ("match", json!({"keys": []}), "argument keys: the list is empty"),
        ("match", json!({"keys": ["a", ""]}), "argument keys: a text is empty"),
        ("match", json!({"keys": ["a\nb"]}), "so it never matches"),
        ("match", json!({"keys": ["a"], "regex": "b"}), "argument regex: give this or keys"),
        ("match", json!({"regex": "("}), "argument regex: unclosed group"),
        ("match", json!({"regex": "a", "format": "xml"}), "\"xml\" is none of lines"),
        ("match", json!({"regex": "a", "format": "fixed:0"}), "is none of lines"),
        (
            "match",
            json!({"regex": "a", "header": true}),
            "argument header: records of format lines",
        ),
        ("match", json!({"regex": "a", "invert": true, "count": true}), "argument count"),
        ("match", json!({"regex": "a", "invert": 1}), "argument invert: invalid type"),
        ("histogram", json!({"format": "csv"}), "argument column: give the name"),
        ("histogram", json!({"column": "x"}), "words of lines have no names"),
        ("histogram", json!({"width": 0}), "argument width"),
        ("histogram", json!({"start": 1}), "argument start"),
        ("histogram", json!({"of": "bytes", "width": 1}), "argument width: bytes have none"),
        ("terms", json!({"names": ["a\tb"]}), "argument names"),
        ("terms", json!({"names": ["a"], "document": "field"}), "argument names"),
        ("sequence-count", json!({"n": 0}), "argument n: 0 is not from 1 to 16"),
        ("sequence-count", json!({"document": "x"}), "argument document: unknown variant"),
        ("occurrences", json!({}), "argument text: it is missing"),
        ("occurrences", json!({"text": ""}), "argument text: an empty text is everywhere"),
        ("term-vector", json!({"words": "letters"}), "no argument \"words\""),
        ("sample", json!({}), "give either this or count"),
        ("sample", json!({"fraction": 1.5}), "1.5 is not from 0 to 1"),
        ("sample", json!({"count": 0}), "argument count"),
        ("project", json!({}), "argument columns: give a list"),
        ("project", json!({"columns": [0]}), "0 is not from 1"),
        ("project", json!({"columns": ["a"]}), "set header to true"),
        ("project", json!({"columns": [true]}), "argument columns: a column is a number"),
        ("project", json!({"columns": [1], "separator": "\""}), "argument separator"),
        ("filter", json!({}), "argument where: give a condition"),
        ("filter", json!({"where": {"column": 1}}), "is not a condition"),
        ("filter", json!({"where": {"column": 1, "op": "~", "value": "x"}}), "\"~\" is none of"),
        ("filter", json!({"where": {"column": 1, "op": "starts", "value": 1}}), "can't be used"),
        ("filter", json!({"where": {"column": "a", "op": "=", "value": 1}}), "set header to true"),
    ];
    for (name, args, wanted) in cases {
        let found = refusal(name, args.clone());
        assert!(found.starts_with(name) && found.contains(wanted), "{name} {args}: {found}");
    }
    let unknown = open("word-count", &Value::Null).err().expect("unknown").to_string();
    assert_eq!(unknown, "there is no SSDlet named word-count");
}

#[test]
fn the_registry_is_in_order_and_complete() {
    assert!(ALL.is_sorted_by_key(|builtin| builtin.name));
    for builtin in ALL {
        assert!(!builtin.about.is_empty() && !builtin.arguments.is_empty());
        for argument in builtin.arguments {
            assert!(!argument.meaning.is_empty());
            // The argument is known: another one is refused with a list that has it.
            let refused = refusal(builtin.name, json!({"no such argument": 1}));
            assert!(refused.contains(argument.name), "{refused}");
        }
    }
}

/// What `grep` would do: one record after the other.
fn naive_match(
    description: &SsdletDescription,
    input: &[u8],
    is_match: impl Fn(&[u8]) -> bool,
) -> Vec<u8> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < input.len() {
        let record = &input[at..][..record_len(description, &input[at..])];
        at += record.len();
        let text = record.strip_suffix(b"\n").unwrap_or(record);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if is_match(text) {
            found.extend_from_slice(record);
        }
    }
    found
}

/// Patterns that look at ends, span lines, or match nothing.
const PATTERNS: &[&str] = &[
    "ab",
    "^a",
    "b$",
    "^$",
    "a.b",
    "a\\s+b",
    "(?s)a.*b",
    "a[^x]*b",
    "\\bab\\b",
    "\\Aa",
    "b\\z",
    "x*",
    "\\n",
    "\\r",
    "(?-m)^a$",
    "(?-m:^)b",
    "(?x) a b",
    "(?i)A",
    "a|\\s$",
    "[\\s\\S]{3}",
    "\\Ba",
    "(?R)^b",
];

#[test]
fn all_short_texts_match_as_record_by_record() {
    let alphabet = b"ab\n\r ";
    for code in 0..5_usize.pow(5) {
        let text: Vec<u8> = (0..5).map(|n| alphabet[code / 5_usize.pow(n) % 5]).collect();
        let text = [&text[..], b"\n"].concat();
        for keys in [&["ab"][..], &["a", "ba"]] {
            let args = json!({"keys": keys});
            let description = opened("match", &args).description().clone();
            let has = |text: &[u8]| {
                keys.iter().any(|key| text.windows(key.len()).any(|part| part == key.as_bytes()))
            };
            let wanted = naive_match(&description, &text, has);
            assert_eq!(run("match", args, &[&text]).ordered, wanted, "{keys:?} {text:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn patterns_match_as_record_by_record(
        pattern in proptest::sample::select(PATTERNS),
        csv: bool,
        text in "([ab\r \"\n]{0,8}\n){0,12}",
    ) {
        let text = if csv && text.matches('"').count() % 2 == 1 { format!("{text}\"\n") } else { text };
        let args = json!({"regex": pattern, "format": if csv { "csv" } else { "lines" }});
        let mut builder = regex::bytes::RegexBuilder::new(pattern);
        let regex = builder.multi_line(true).crlf(true).build().expect("a pattern");
        let description = opened("match", &args).description().clone();
        let wanted = naive_match(&description, text.as_bytes(), |text| regex.is_match(text));
        prop_assert_eq!(&run("match", args.clone(), &[text.as_bytes()]).ordered, &wanted);
        let mut inverted = args;
        inverted["invert"] = json!(true);
        let rest = naive_match(&description, text.as_bytes(), |text| !regex.is_match(text));
        prop_assert_eq!(run("match", inverted, &[text.as_bytes()]).ordered, rest);
    }

    #[test]
    fn texts_are_counted_as_record_by_record(text in "([abc ]{0,8}\n){0,12}") {
        let keys = ["a", "ab", "bab", "c c"];
        let found = run("match", json!({"keys": keys, "count": true}), &[text.as_bytes()]);
        let count = |key: &str| text.lines().filter(|line| line.contains(key)).count() as i64;
        let wanted: BTreeMap<_, _> = keys
            .iter()
            .map(|key| (key.as_bytes().to_vec(), count(key)))
            .filter(|(_, count)| *count > 0)
            .collect();
        prop_assert_eq!(sums(&found), wanted);
    }

    #[test]
    fn sequences_are_as_in_the_naive_model(text in "([ab] {0,2}){0,8}\n([abc ]{0,20}\n){0,6}", n in 1_usize..5) {
        let found = run("sequence-count", json!({"n": n}), &[text.as_bytes()]);
        let mut wanted = BTreeMap::new();
        for line in text.lines() {
            let words: Vec<_> = line.split_ascii_whitespace().collect();
            for sequence in words.windows(n) {
                *wanted.entry(sequence.join(" ").into_bytes()).or_insert(0) += 1;
            }
        }
        prop_assert_eq!(sums(&found), wanted);
    }
}

/// Arguments of each SSDlet, and whether its input is csv.
fn configurations() -> Vec<(&'static str, Value, bool)> {
    let condition = json!({"any": [
        {"column": 1, "op": "<", "value": 10}, {"column": 2, "op": "contains", "value": "b"}
    ]});
    let named = json!({"column": "n", "op": ">=", "value": 1});
    vec![
        ("wordcount", json!({}), false),
        ("wordcount", json!({"words": "letters"}), false),
        ("match", json!({"keys": ["a"]}), false),
        ("match", json!({"keys": ["ab", "1"], "invert": true}), false),
        ("match", json!({"keys": ["a", "ab"], "count": true}), false),
        ("match", json!({"regex": "a\\s+b"}), false),
        ("match", json!({"regex": "b", "format": "csv"}), true),
        ("histogram", json!({"of": "bytes"}), false),
        ("histogram", json!({"invalid": "skip", "column": 1}), false),
        (
            "histogram",
            json!({"invalid": "skip", "format": "csv", "column": "n", "header": true, "width": 3}),
            true,
        ),
        ("terms", json!({}), false),
        ("sequence-count", json!({"n": 2}), false),
        ("sequence-count", json!({"n": 2, "document": "field"}), false),
        ("inverted-index", json!({}), false),
        ("term-vector", json!({}), false),
        ("ranked-inverted-index", json!({}), false),
        ("histogram-movies", json!({}), false),
        ("histogram-ratings", json!({}), false),
        ("occurrences", json!({"text": "a"}), false),
        ("sample", json!({"fraction": 0.5}), false),
        ("sample", json!({"fraction": 0.5, "format": "csv"}), true),
        ("project", json!({"columns": [2, 1]}), true),
        ("project", json!({"columns": ["t"], "header": true}), true),
        ("filter", json!({"where": condition}), true),
        ("filter", json!({"where": named, "header": true}), true),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cuts_and_workers_change_nothing(
        lines in "([ab1' \t]{0,9}\r?\n){0,20}",
        rows in "(-?[0-9]{1,2},(\"[ab\n]{0,3}(\"\")?\"|[ab]{0,3})\r?\n){0,20}",
        records in 1_usize..6,
        workers in 1_usize..4,
    ) {
        let rows = format!("n,t\n{rows}");
        for (name, args, csv) in configurations() {
            let input = if csv { rows.as_bytes() } else { lines.as_bytes() };
            let whole = run_cut(name, &args, &[input, input], WHOLE).expect("runs");
            let cut = run_cut(name, &args, &[input, input], Cuts { records, workers }).expect("runs");
            prop_assert_eq!(&whole.ordered, &cut.ordered, "{} {}", name, args);
            let of_texts = matches!(
                opened(name, &args).description().output,
                SsdletOutput::Keyed { value: Type::Text, .. }
            );
            if of_texts {
                prop_assert_eq!(in_order(whole), in_order(cut), "{} {}", name, args);
            } else {
                prop_assert_eq!(sums(&whole), sums(&cut), "{} {}", name, args);
            }
        }
    }
}

/// Keys with their values, in order.
fn in_order(collect: CollectedOutput) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut keyed = collect.keyed;
    keyed.values_mut().for_each(|values| values.sort());
    keyed
}

/// Rows and records of a map, as they come.
#[derive(Default)]
struct Rows {
    keyed: Vec<(Vec<u8>, Vec<u8>)>,
    records: Vec<u8>,
}

impl RowSink for Rows {
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        self.keyed.push((key.to_vec(), value.to_vec()));
        Ok(true)
    }

    fn records(&mut self, records: &[u8]) -> Result<bool, SsdletError> {
        self.records.extend_from_slice(records);
        Ok(true)
    }
}

fn mapped(name: &str, args: Value, inputs: &[&[u8]], threads: usize) -> Result<Rows, SsdletError> {
    let folder = MemoryDirectory::new();
    let inputs = inputs.iter().enumerate().map(|(number, bytes)| {
        let storage = folder.create(&number.to_string()).expect("creates");
        storage.write_at(0, bytes).expect("writes");
        MapInput::Storage { storage, range: None }
    });
    let options = MapOptions {
        budget: Budget::new(64 << 20),
        threads,
        partition: PartitionSize::Auto,
        temp: Vec::new(),
    };
    let mut rows = Rows::default();
    let output = MapOutput::Rows(&mut rows);
    map(&*opened(name, &args), inputs.collect(), output, &options, &Silent)?;
    Ok(rows)
}

#[test]
fn a_map_tells_workers_the_header_and_writes_it_once() {
    let rows: String = (0..300_000).map(|n| format!("{n},{}\n", n % 7)).collect();
    let input = format!("id,rest\n{rows}");
    let inputs = [input.as_bytes(), b"id,rest\n", b"id,rest\n5,6\n"];
    for threads in [1, 3] {
        let args = json!({"columns": ["rest"], "header": true});
        let found = mapped("project", args, &inputs, threads).expect("maps").records;
        let mut wanted = "rest\n".to_owned();
        wanted.extend((0..300_000).map(|n| format!("{}\n", n % 7)));
        assert!(found == format!("{wanted}6\n").as_bytes());
        let args = json!({"column": "rest", "format": "csv", "header": true});
        assert_eq!(mapped("histogram", args, &inputs, threads).expect("maps").keyed.len(), 7);
    }
    let alone =
        mapped("match", json!({"keys": ["x"], "format": "csv", "header": true}), &inputs[1..2], 2);
    assert_eq!(alone.expect("maps").records, b"id,rest\n");
    let args = json!({"columns": ["no"], "header": true});
    let error = mapped("project", args, &inputs, 2).err().expect("no such column").to_string();
    assert_eq!(error, "project: argument columns: there is no column 'no'; there are 2: id, rest");
}

#[test]
fn a_map_gives_exactly_the_records_of_a_sample() {
    let lines: String = (0..200_000).map(|n| format!("{n}\n")).collect();
    let of = |threads| {
        let rows = mapped("sample", json!({"count": 50}), &[lines.as_bytes()], threads);
        rows.expect("maps").keyed
    };
    assert_eq!(of(1).len(), 50);
    assert_eq!(of(1), of(3));
}
