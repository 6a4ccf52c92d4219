//! What each mapper makes of lines.

use super::super::batch::SplitBatch;
use super::super::ifile::{SegmentIndex, Sink};
use super::super::output::{MappedRows, RowShape};
use super::super::request::{Codec, Order, Partitioner};
use super::*;
use merganser_sort::Budget;
use merganser_sort::record::ifile::{header, vlong};

fn open(request: &MapRequest) -> HdfsResult<SsdletMapper> {
    find(request, &Modules::new(None))?.open(request, 0)
}

fn request(ssdlet: &str, arguments: &str, value: Writable, combine: CombineKind) -> MapRequest {
    MapRequest {
        attempt: "a".to_owned(),
        ssdlet: SsdletName::BuiltIn(ssdlet.to_owned()),
        arguments: arguments.to_owned(),
        pool: "BP-1".to_owned(),
        ranges: Vec::new(),
        start: 0,
        end: 0,
        tail: Vec::new(),
        tail_at_eof: true,
        delimiter: Vec::new(),
        record_bytes_max: i32::MAX as u32,
        partitions: 1,
        partitioner: Partitioner::Hash,
        order: Order::Text,
        key: Writable::Text,
        value,
        combine,
        codec: Codec::None,
        memory_bytes: 16 << 20,
        patience_ms: 0,
    }
}

/// Bytes of all spills of one partition.
#[derive(Default)]
struct Collected(Vec<u8>);

impl Sink for Collected {
    fn data(&mut self, bytes: &[u8]) -> HdfsResult<()> {
        self.0.extend(bytes);
        Ok(())
    }

    fn spill(&mut self, _: u32, _: u64, _: Vec<SegmentIndex>) -> HdfsResult<()> {
        Ok(())
    }

    fn progress(&mut self, _: u64, _: u64) -> HdfsResult<()> {
        Ok(())
    }
}

/// A `Text` at the start of `bytes`, as it is shown.
fn text(bytes: &[u8]) -> String {
    let (len, at) = vlong(bytes).expect("a length");
    assert_eq!(bytes.len(), at + len as usize);
    String::from_utf8(bytes[at..].to_vec()).expect("UTF-8")
}

/// Rows as `KEY=VALUE`, in order.
fn rows(request: &MapRequest, lines: &[u8]) -> Vec<String> {
    let mut sink = Collected::default();
    let (value, combine) = (request.value, request.combine);
    let shape = RowShape { value, only_ones: true, combine, partitions: 1 };
    let budget = Budget::new(16 << 20);
    let mut out = MappedRows::new(shape, &budget, 8 << 20, &mut sink).expect("memory");
    let mut mapper = open(request).expect("opened");
    for line in lines.split_inclusive(|b| *b == b'\n') {
        let record = line.strip_suffix(b"\n").unwrap_or(line);
        assert_eq!(mapper.map(&SplitBatch::single(record, 0), &mut out).expect("mapped"), 1);
    }
    let counts = out.finish().expect("spilled");
    let (mut rest, mut rows, mut bytes) = (&sink.0[..sink.0.len() - 6], Vec::new(), 0);
    while !rest.is_empty() {
        let head = header(rest).expect("a record").expect("whole");
        let (key, after) = rest[head.bytes..].split_at(head.key);
        let (value, after) = after.split_at(head.value);
        let shown = match *value {
            [a, b, c, d] if request.value == Writable::Int => {
                i32::from_be_bytes([a, b, c, d]).to_string()
            }
            _ if request.value == Writable::Long => {
                i64::from_be_bytes(value.try_into().expect("8 bytes")).to_string()
            }
            _ => text(value),
        };
        rows.push(format!("{}={shown}", text(key)));
        bytes += (key.len() + value.len()) as u64;
        rest = after;
    }
    if combine == CombineKind::None {
        assert_eq!((counts.records, counts.bytes), (rows.len() as u64, bytes));
    }
    assert_eq!(counts.spilled, rows.len() as u64);
    rows
}

fn sums(ssdlet: &str, lines: &[u8]) -> Vec<String> {
    rows(&request(ssdlet, "", Writable::Int, CombineKind::Sum), lines)
}

fn texts(ssdlet: &str, lines: &[u8]) -> Vec<String> {
    rows(&request(ssdlet, "", Writable::Text, CombineKind::None), lines)
}

#[test]
fn words_are_counted() {
    assert_eq!(sums("wordcount", b"b a\tb\n\x0cc\x0b b\r\n"), ["a=1", "b=3", "c\u{b}=1"]);
    let each = request("wordcount", "", Writable::Int, CombineKind::None);
    assert_eq!(rows(&each, b"b a b"), ["a=1", "b=1", "b=1"]);
    // Words that are not UTF-8 and differ only there are one word to Java.
    assert_eq!(sums("wordcount", b"\xff \xfe x\x80"), ["x\u{fffd}=1", "\u{fffd}=2"]);
    assert_eq!(sums("wordcount", b" \n\n"), [""; 0]);
}

#[test]
fn places_of_a_text_are_counted() {
    let grep = request("grep", r#"{"text": "aa"}"#, Writable::Long, CombineKind::Sum);
    assert_eq!(rows(&grep, b"aaaaa b\nxaa\na\na"), ["aa=3"]);
    assert_eq!(rows(&grep, b"b"), [""; 0]);
    // Bytes that are not UTF-8 are U+FFFD to Java.
    let grep = request("grep", "{\"text\": \"\u{fffd}b\"}", Writable::Long, CombineKind::Sum);
    assert_eq!(rows(&grep, b"a\xffb\xfeb"), ["\u{fffd}b=2"]);
}

#[test]
fn ratings_are_counted_and_their_means() {
    let lines = b"7:1_5,2_5,3_4\n8:1_1_2009,x_6,y_,_3,4_33,5_\n9:\nnone\n:a_2:b_3,c_2\n";
    assert_eq!(sums("histogram-ratings", lines), ["1=1", "2=1", "3=1", "4=1", "5=2"]);
    // 14 / 3 is in 4.5 to 5, 4 / 2 in 2 to 2.5, and 2 alone as well: a_2:b is no rating.
    assert_eq!(sums("histogram-movies", lines), ["2.5=2", "5.0=1"]);
    assert_eq!(sums("histogram-movies", b"1:a_5"), ["5.5=1"]);
}

#[test]
fn documents_have_words() {
    let lines = b"D1\tb a b  c\nno words\nD2\ta\nD3\t\n\tx y z\n";
    assert_eq!(sums("sequence-count", lines), ["a|b|c|D1=1", "b|a|b|D1=1", "x|y|z|=1"]);
    let index = ["a=D1", "a=D2", "b=D1", "c=D1", "x=", "y=", "z="];
    assert_eq!(texts("inverted-index", lines), index);
    assert_eq!(texts("term-vector", lines), ["=x:1 y:1 z:1", "D1=a:1 b:2 c:1", "D2=a:1"]);
    let counted = b"a|b|c|D1\t12\na|b|c|D2\t3\nx\t1\ny\n|\t\t5\n";
    let ranked = ["=\t5|", "a|b|c=12|D1", "a|b|c=3|D2"];
    assert_eq!(texts("ranked-inverted-index", counted), ranked);
}

/// A record that can't be taken apart is an error of that record, and the task maps it in Java.
#[test]
fn lines_that_take_too_much_memory_are_errors() {
    let (words, decoded) = (64 << 10, 256 << 10);
    for (name, line, fits) in [
        ("inverted-index", [b"D\t".as_slice(), &b"a ".repeat(words / 2)].concat(), true),
        ("inverted-index", [b"D\t".as_slice(), &b"a ".repeat(words / 2 + 1)].concat(), false),
        ("inverted-index", [b"D\t".as_slice(), &b"\xff ".repeat(words / 4)].concat(), true),
        ("inverted-index", [b"D\t".as_slice(), &b"\xff ".repeat(words / 4 + 1)].concat(), false),
        ("wordcount", b"\xff".repeat(decoded / 3), true),
        ("wordcount", b"\xff".repeat(decoded / 3 + 1), false),
        ("wordcount", b"x".repeat(2 * decoded), true),
        ("histogram-ratings", [b"1:".as_slice(), &b"a_5,".repeat(decoded)].concat(), true),
    ] {
        let value = if name == "inverted-index" { Writable::Text } else { Writable::Int };
        let mut sink = Collected::default();
        let combine = CombineKind::None;
        let shape = RowShape { value, only_ones: true, combine, partitions: 1 };
        let budget = Budget::new(16 << 20);
        let mut out = MappedRows::new(shape, &budget, 8 << 20, &mut sink).expect("memory");
        let mut mapper = open(&request(name, "", value, CombineKind::None)).expect("opened");
        match mapper.map(&SplitBatch::single(&line, 77), &mut out) {
            Ok(count) => assert!(fits && count == 1, "{name} of {} bytes", line.len()),
            Err(HdfsError::Record { offset: 77, .. }) => assert!(!fits, "{name}"),
            Err(other) => panic!("{other}"),
        }
    }
}

/// All built-in SSDlets that hand out keys for lines are programs of map tasks.
#[test]
fn any_ssdlet_of_lines_is_a_program() {
    let of_field = r#"{"document": "field"}"#;
    for combine in [CombineKind::Sum, CombineKind::None] {
        let terms = request("terms", of_field, Writable::Int, combine);
        let found = rows(&terms, b"D1\tb a b\nD2\t\xff\n");
        let repeated = if combine == CombineKind::None {
            vec!["a\tD1=1", "b\tD1=1", "b\tD1=1", "\u{fffd}\tD2=1"]
        } else {
            vec!["a\tD1=1", "b\tD1=2", "\u{fffd}\tD2=1"]
        };
        assert_eq!(found, repeated);
    }
    let told = |name, arguments, value| {
        let refused = open(&request(name, arguments, value, CombineKind::Sum));
        refused.err().expect("refused").to_string()
    };
    let int = Writable::Int;
    assert!(told("terms", "", int).contains("place of its records"));
    assert!(told("terms", of_field, Writable::Text).contains("(Text, I64)"));
    assert!(told("sample", r#"{"fraction": 0.5}"#, int).contains("place of its records"));
    assert!(told("project", r#"{"columns": [1]}"#, int).contains("its input is Csv"));
    assert!(told("match", r#"{"keys": ["a"]}"#, int).contains("records in order"));
    let ended = told("occurrences", r#"{"text": "a", "delimiter": " "}"#, int);
    assert!(ended.contains("the job says what ends a record"), "{ended}");
}

/// Where the job's delimiter has several bytes, the SSDlet's has one, which no text has.
#[test]
fn records_may_end_with_several_bytes() {
    let mut index = request("inverted-index", "", Writable::Text, CombineKind::None);
    index.delimiter = b"##".to_vec();
    let mut mapper = open(&index).expect("opened");
    let mut sink = Collected::default();
    let (value, combine) = (index.value, index.combine);
    let shape = RowShape { value, only_ones: true, combine, partitions: 1 };
    let budget = Budget::new(16 << 20);
    let mut out = MappedRows::new(shape, &budget, 8 << 20, &mut sink).expect("memory");
    // A line end is white space then, as in Java.
    let lines = SplitBatch::single(b"D\ta\nb", 5);
    assert_eq!(mapper.map(&lines, &mut out).expect("mapped"), 1);
    let odd = SplitBatch::single(b"D\t\xff a\0b", 5);
    assert_eq!(mapper.map(&odd, &mut out).expect("mapped"), 1);
    assert_eq!(out.finish().expect("spilled").records, 4);
}

#[test]
fn equal_rows_of_an_index_become_one() {
    let lines = b"D\ta b\nD\ta\nE\ta\nD\ta\n";
    let distinct = request("inverted-index", "", Writable::Text, CombineKind::Distinct);
    assert_eq!(rows(&distinct, lines), ["a=D", "a=E", "b=D"]);
    assert_eq!(texts("inverted-index", lines), ["a=D", "a=D", "a=D", "a=E", "b=D"]);
}

#[test]
fn only_programs_that_fit_are_opened() {
    let told = |request: &MapRequest| open(request).err().expect("refused").to_string();
    let sum = |name, arguments, value| request(name, arguments, value, CombineKind::Sum);
    let int = Writable::Int;
    assert_eq!(told(&sum("sort", "", int)), "there is no SSDlet sort for map tasks");
    assert!(told(&sum("wordcount", "", Writable::Long)).contains("hands out (Text, Int)"));
    assert!(told(&sum("wordcount", "[]", int)).contains("members of a JSON object"));
    assert!(told(&sum("wordcount", "{", int)).contains("no JSON"));
    assert!(told(&sum("wordcount", r#"{"words":1}"#, int)).contains("argument words"));
    let document = told(&sum("sequence-count", r#"{"document":"none"}"#, int));
    assert!(document.contains("argument document is \"field\" in any case"), "{document}");
    for (arguments, why) in [
        ("", "missing"),
        (r#"{"text":1}"#, "argument text: invalid type"),
        (r#"{"text":""}"#, "everywhere"),
        (r#"{"text":"a","case":true}"#, "no argument \"case\""),
    ] {
        let sentence = told(&sum("grep", arguments, Writable::Long));
        assert!(sentence.starts_with("grep: ") && sentence.contains(why), "{sentence}");
    }
    let distinct = request("wordcount", "", int, CombineKind::Distinct);
    assert!(told(&distinct).contains("those of the job by Distinct"));
    let mut other = request("wordcount", "", int, CombineKind::Sum);
    other.key = Writable::Long;
    assert!(matches!(open(&other), Err(HdfsError::Types { .. })));
    assert!(KNOWN.is_sorted_by_key(|program| program.name));
    assert!(names().is_sorted());
}
