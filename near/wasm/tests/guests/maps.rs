//! Guests as map tasks of Hadoop: which ones may map what, and what they do to a map.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_hadoop_node::hdfs::meta::{Checksum, MetaHeader};
use merganser_hadoop_node::hdfs::{
    BlockRange, Codec, CombineKind, DataDirs, HdfsBlock, HdfsError, HdfsResult, MapCounters,
    MapRequest, MapTask, Modules, Order, Partitioner, SegmentIndex, Sink, SsdletName, Writable,
};
use merganser_map::ssdlet::MapperModule;
use merganser_map::ssdlet::{Alone, MemoryLender};
use merganser_sort::record::ifile::{header, vlong};
use merganser_wasm::{WasmLimits, WasmModule};
use proptest::prelude::*;

use super::{ABI, BUFFER, IMPORTS, KEYED, MEMORY, ORDERED, chunk, guest, section, wat};

const MAP_BYTES: u64 = 16 << 20;
const BLOCK: HdfsBlock = HdfsBlock { id: 1_073_741_825, generation: 1001 };

/// A DataNode's folder with one block.
struct Replica {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
}

impl Replica {
    fn new(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("current/BP-1/current/finalized/subdir0/subdir0");
        fs::create_dir_all(&below).expect("made");
        fs::write(below.join("blk_1073741825"), bytes).expect("written");
        let header = MetaHeader { checksum: Checksum::Crc32c, bytes_per_checksum: 512 };
        let sums =
            bytes.chunks(512).flat_map(|piece| header.checksum.of_bytes(piece).to_be_bytes());
        let meta = [&header.encode()[..], &sums.collect::<Vec<_>>()].concat();
        fs::write(below.join("blk_1073741825_1001.meta"), meta).expect("written");
        Replica { folder, bytes: bytes.to_vec() }
    }

    /// The split `start..end`, whose tail is the rest of the file.
    fn split(&self, module: &dyn MapperModule, start: usize, end: usize) -> MapRequest {
        let range = BlockRange {
            block: BLOCK,
            block_length: self.bytes.len() as u64,
            offset: start as u64,
            length: (end - start) as u64,
        };
        MapRequest {
            attempt: "attempt_1".to_owned(),
            ssdlet: SsdletName::Module(module.sha256()),
            arguments: String::new(),
            pool: "BP-1".to_owned(),
            ranges: if start < end { vec![range] } else { Vec::new() },
            start: start as u64,
            end: end as u64,
            tail: self.bytes[end..].to_vec(),
            tail_at_eof: true,
            delimiter: Vec::new(),
            record_bytes_max: i32::MAX as u32,
            partitions: 1,
            partitioner: Partitioner::Hash,
            order: Order::Text,
            key: Writable::Text,
            value: Writable::Long,
            combine: CombineKind::None,
            codec: Codec::None,
            memory_bytes: MAP_BYTES,
            patience_ms: 0,
        }
    }

    fn whole(&self, module: &dyn MapperModule) -> MapRequest {
        self.split(module, 0, self.bytes.len())
    }

    fn map(&self, modules: &Modules, request: &MapRequest) -> HdfsResult<(Vec<Row>, MapCounters)> {
        let dirs = DataDirs::new(vec![self.folder.path().to_owned()]);
        let mut rows = Rows::default();
        let counters = MapTask::open(request, &dirs, modules, MAP_BYTES)?.run(&mut rows)?;
        rows.all.sort_unstable();
        Ok((rows.all, counters))
    }
}

/// A key, and a number or the bytes of a text.
type Row = (Vec<u8>, Vec<u8>);

/// Takes spills of one partition.
#[derive(Default)]
struct Rows {
    current: Vec<u8>,
    all: Vec<Row>,
}

impl Sink for Rows {
    fn data(&mut self, bytes: &[u8]) -> HdfsResult<()> {
        self.current.extend(bytes);
        Ok(())
    }

    fn spill(&mut self, _: u32, records: u64, _: Vec<SegmentIndex>) -> HdfsResult<()> {
        let spill = std::mem::take(&mut self.current);
        let mut rest = &spill[..spill.len() - 6];
        let before = self.all.len();
        while !rest.is_empty() {
            let head = header(rest).expect("a record").expect("whole");
            let (key, after) = rest[head.bytes..].split_at(head.key);
            let (value, after) = after.split_at(head.value);
            let (_, at) = vlong(key).expect("a length");
            self.all.push((key[at..].to_vec(), value.to_vec()));
            rest = after;
        }
        assert_eq!(self.all.len() - before, records as usize);
        Ok(())
    }

    fn progress(&mut self, _: u64, _: u64) -> HdfsResult<()> {
        Ok(())
    }
}

const ALONE: Alone = Alone { memory_bytes: 256 << 20 };

fn modules() -> Modules {
    Modules::new(Some(Box::new(|bytes: &[u8], lender: &dyn MemoryLender| {
        let limits = WasmLimits { fuel_per_byte: 1000, ..WasmLimits::default() };
        Ok(Arc::new(WasmModule::new(bytes, limits, lender)?) as Arc<dyn MapperModule>)
    })))
}

fn resource(name: &str) -> PathBuf {
    let folder = "../../hadoop/java/cluster-tests/src/test/resources";
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name)
}

/// The text of the guest of a job on a small cluster, in `hadoop/java/cluster-tests`.
fn first_words_text() -> String {
    fs::read_to_string(resource("first-words.wat")).expect("it is there")
}

fn first_words() -> Vec<u8> {
    wat(&first_words_text())
}

/// Java has the guest in binary. With the variable `MERGANSER_BLESS`, it is written again.
#[test]
fn the_guest_of_the_cluster_tests_is_what_its_text_says() {
    let (path, module) = (resource("first-words.wasm"), first_words());
    if std::env::var_os("MERGANSER_BLESS").is_some() {
        fs::write(&path, &module).expect("written");
    }
    assert_eq!(fs::read(path).expect("it is there"), module);
}

/// The rows that the job's Java mapper hands out for these records.
fn expected<'a>(records: impl Iterator<Item = &'a [u8]>) -> Vec<Row> {
    let row = |record: &[u8]| {
        let word = record.split(|b| *b == b' ').next().expect("at least one piece");
        (word.to_vec(), (record.len() as i64).to_be_bytes().to_vec())
    };
    let mut rows: Vec<Row> = records.map(row).collect();
    rows.sort_unstable();
    rows
}

/// Records as Hadoop's reader has them, of a file without CR.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|b| *b == b'\n')
}

#[test]
fn a_guest_maps_the_records_of_hadoop() {
    let modules = modules();
    let module = modules.add(&first_words(), &ALONE).expect("a guest");
    let cases: [(&[u8], &[&[u8]]); 5] = [
        (b"one line\ntwo\n", &[b"one line", b"two"]),
        (b"one\r\ntwo words\rthree", &[b"one", b"two words", b"three"]),
        (b"\xef\xbb\xbfmark\n\n", &[b"mark", b""]),
        (b"no end", &[b"no end"]),
        (b"\xff \xfe\n", &[b"\xff \xfe"]),
    ];
    for (text, records) in cases {
        let replica = Replica::new(text);
        let (rows, counters) = replica.map(&modules, &replica.whole(&*module)).expect("mapped");
        assert_eq!(rows, expected(records.iter().copied()), "{}", text.escape_ascii());
        assert_eq!(counters.input_records, records.len() as u64);
        assert_eq!(counters.output_records, records.len() as u64);
        let bytes = records.iter().map(|r| r.split(|b| *b == b' ').next().unwrap().len() + 9);
        assert_eq!(counters.output_bytes, bytes.sum::<usize>() as u64);
    }
}

#[test]
fn a_delimiter_of_one_byte_is_the_guest_s_own() {
    let json = r#"{\"abi\": 1, \"name\": \"bars\", \"input\": {\"lines\": {\"delimiter\": 124}}, \"memory\": 1048576, \"output\": {\"keyed\": {\"key\": \"text\", \"value\": \"i64\", \"combine\": \"sum\"}}}"#;
    let text = first_words_text();
    let begin = text.find("(@custom").expect("a section");
    let text = format!("{}(@custom \"merganser.ssdlet\" \"{json}\"))", &text[..begin]);
    let bars = wat(&text.replace("(i32.const 10)", "(i32.const 124)"));
    let modules = modules();
    let (bars, lines) = (
        modules.add(&bars, &ALONE).expect("a guest"),
        modules.add(&first_words(), &ALONE).expect("a guest"),
    );
    let replica = Replica::new(b"a b|c\nd|\r|last");
    let whole = MapRequest { delimiter: b"|".to_vec(), ..replica.whole(&*bars) };
    let (rows, _) = replica.map(&modules, &whole).expect("mapped");
    let records: [&[u8]; 4] = [b"a b", b"c\nd", b"\r", b"last"];
    assert_eq!(rows, expected(records.into_iter()));
    let told = |request: &MapRequest| {
        let Err(HdfsError::Types { detail, .. }) = replica.map(&modules, request) else {
            panic!("it is refused")
        };
        detail
    };
    assert!(told(&replica.whole(&*bars)).contains("lines that end with byte 10"));
    let other = MapRequest { ssdlet: SsdletName::Module(lines.sha256()), ..whole.clone() };
    assert!(told(&other).contains("lines that end with byte 124"));
    let two = MapRequest { delimiter: b"||".to_vec(), ..whole };
    assert!(told(&two).contains("the job's delimiter has more"));
}

#[test]
fn chunks_end_with_records_and_long_records_are_whole() {
    let modules = modules();
    let module = modules.add(&first_words(), &ALONE).expect("a guest");
    // A file with several chunks; one with a record that is longer than a chunk, by LF and by CRLF.
    let many: Vec<u8> =
        (0..200_000).flat_map(|n| format!("w{} x{n}\n", n % 7).into_bytes()).collect();
    assert!(many.len() > 3 * (512 << 10));
    let long = [&b"short\n"[..], &b"y".repeat(900_000), b"\nlast one\n"].concat();
    for text in [&many, &long] {
        let replica = Replica::new(text);
        let (rows, counters) = replica.map(&modules, &replica.whole(&*module)).expect("mapped");
        assert_eq!(rows, expected(lines(text)));
        let crlf: Vec<u8> = lines(text).flat_map(|line| [line, b"\r\n"].concat()).collect();
        let replica = Replica::new(&crlf);
        let (copied, of_copies) = replica.map(&modules, &replica.whole(&*module)).expect("mapped");
        assert_eq!(copied, rows);
        assert_eq!(of_copies.output_records, counters.output_records);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// All splits of a file together have each record once.
    #[test]
    fn splits_of_a_file_have_its_records(
        text in prop::collection::vec(prop::sample::select(&b"ab \n\n\r"[..]), 0..60),
        cuts in prop::collection::vec(0_usize..60, 0..4),
    ) {
        let modules = modules();
        let module = modules.add(&first_words(), &ALONE).expect("a guest");
        let replica = Replica::new(&text);
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut all = Vec::new();
        for pair in cuts.windows(2) {
            let split = replica.split(&*module, pair[0], pair[1]);
            all.extend(replica.map(&modules, &split).expect("mapped").0);
        }
        all.sort_unstable();
        let text = String::from_utf8(text).expect("ASCII").replace("\r\n", "\n").replace('\r', "\n");
        let records = if text.is_empty() { Vec::new() } else { lines(text.as_bytes()).collect() };
        prop_assert_eq!(all, expected(records.into_iter()));
    }
}

#[test]
fn numbers_are_added_up_if_the_job_combines() {
    let modules = modules();
    let module = modules.add(&first_words(), &ALONE).expect("a guest");
    let replica = Replica::new(b"a 1\na 22\nb\na 1\n");
    for (value, bytes) in [(Writable::Int, 4), (Writable::Long, 8)] {
        let sum = MapRequest { value, combine: CombineKind::Sum, ..replica.whole(&*module) };
        let (rows, counters) = replica.map(&modules, &sum).expect("mapped");
        let number = |n: i64| n.to_be_bytes()[8 - bytes..].to_vec();
        assert_eq!(rows, [(b"a".to_vec(), number(10)), (b"b".to_vec(), number(1))]);
        assert_eq!((counters.combine_input_records, counters.combine_output_records), (4, 2));
    }
}

/// Why a map by this guest is refused or fails.
fn failure(module: &[u8], change: impl FnOnce(&mut MapRequest)) -> HdfsError {
    let modules = modules();
    let module = modules.add(module, &ALONE).unwrap_or_else(|error| panic!("{error}"));
    let replica = Replica::new(b"a line\nanother\n");
    let mut request = replica.whole(&*module);
    change(&mut request);
    replica.map(&modules, &request).expect_err("no map")
}

#[test]
fn only_guests_that_fit_the_job_are_opened() {
    type Change = fn(&mut MapRequest);
    let keyed = |key, value, combine| {
        let output = format!(
            r#"{{"keyed": {{"key": "{key}", "value": "{value}", "combine": "{combine}"}}}}"#
        );
        own(&output, "")
    };
    let sum: Change = |request| request.combine = CombineKind::Sum;
    let distinct: Change = |request| request.combine = CombineKind::Distinct;
    let text: Change = |request| request.value = Writable::Text;
    let as_is: Change = |_| ();
    for (module, change, told) in [
        (own(ORDERED, ""), as_is, "it hands out records in order"),
        (own(KEYED, ""), text, "it hands out (Text, I64) and the job expects (Text, Text)"),
        (keyed("i64", "i64", "sum"), as_is, "it hands out (I64, I64)"),
        (keyed("text", "f64", "none"), as_is, "it hands out (Text, F64)"),
        (keyed("text", "text", "none"), as_is, "the job expects (Text, Long)"),
        (keyed("text", "i64", "none"), sum, "combined by None and those of the job by Sum"),
        (keyed("text", "i64", "max"), sum, "combined by Max"),
        (keyed("text", "i64", "count"), as_is, "combined by Count"),
        (own(KEYED, ""), distinct, "combined by Sum and those of the job by Distinct"),
        // The linker of a language leaves out what is not called; this guest imports all.
        (guest(KEYED, "", ""), as_is, "it asks for the place of its records"),
    ] {
        match failure(&module, change) {
            HdfsError::Types { ssdlet, detail } => {
                assert!(ssdlet == "guest" && detail.contains(told), "{detail}, not {told}");
            }
            other => panic!("{other:?}, not {told}"),
        }
    }
}

#[test]
fn a_guest_that_fails_ends_its_map_and_nothing_else() {
    let row = |value: i64| {
        format!(
            "(i32.store (i32.const 4) (i32.const 1)) (i64.store (i32.const 8) (i64.const {value})) \
             (call $values (i32.const 0) (i32.const 1))"
        )
    };
    let int = |request: &mut MapRequest| request.value = Writable::Int;
    for (body, told) in [
        ("unreachable".to_owned(), "guest: mgs_chunk gave up"),
        ("(loop $ever (br $ever))".to_owned(), "guest: mgs_chunk used up its fuel, 1000 units"),
        ("(call $spans (i32.const -8) (i32.const 9))".to_owned(), "outside of its memory"),
        ("(call $error (i32.const 0) (i32.const 0))".to_owned(), "guest: "),
        ("(drop (memory.grow (i32.const 100)))".to_owned(), "it wants"),
        (row(1 << 31), "guest: it handed out a number that no IntWritable has"),
        (row(-(1 << 31) - 1), "guest: it handed out a number that no IntWritable has"),
    ] {
        match failure(&own(KEYED, &body), int) {
            HdfsError::Program { detail } => assert!(detail.contains(told), "{detail}, not {told}"),
            other => panic!("{other:?}, not {told}"),
        }
    }
    // One that refuses its arguments, and one that takes none.
    let args = |request: &mut MapRequest| request.arguments = "{}".to_owned();
    assert!(matches!(failure(&own(KEYED, ""), args), HdfsError::Arguments { .. }));
    // A guest that wants more memory than the map has.
    let hungry = wat(&text(KEYED, "").replace("1048576", "16777216"));
    assert!(matches!(failure(&hungry, |_| ()), HdfsError::Memory { .. }));
    // The largest number that fits does.
    let modules = modules();
    let module = modules.add(&own(KEYED, &row(i32::MIN.into())), &ALONE).expect("a guest");
    let replica = Replica::new(b"a line\n");
    let request = MapRequest { value: Writable::Int, ..replica.whole(&*module) };
    let (rows, _) = replica.map(&modules, &request).expect("mapped");
    assert_eq!(rows, [(b"a".to_vec(), i32::MIN.to_be_bytes().to_vec())]);
}

#[test]
fn texts_come_one_by_one_or_once_and_at_the_end() {
    // It hands out the row (k, v) at the beginning of its memory, for each chunk and at its end.
    let output = r#"{"keyed": {"key": "bytes", "value": "text", "combine": "none"}}"#;
    let emit = "(call $emit (i32.const 0) (i32.const 10))";
    let close = format!(r#"(func (export "mgs_close") (result i32) {emit} i32.const 0)"#);
    let data = r#"(data (i32.const 0) "\01\00\00\00\01\00\00\00kv")"#;
    let module = wat(&text(output, emit).replace("(memory", &format!("{close} {data} (memory")));
    let modules = modules();
    let module = modules.add(&module, &ALONE).expect("a guest");
    let replica = Replica::new(b"a line\n");
    let none = MapRequest { value: Writable::Text, ..replica.whole(&*module) };
    let row = (b"k".to_vec(), b"\x01v".to_vec());
    assert_eq!(replica.map(&modules, &none).expect("mapped").0, [row.clone(), row.clone()]);
    let once = MapRequest { combine: CombineKind::Distinct, ..none };
    assert_eq!(replica.map(&modules, &once).expect("mapped").0, [row]);
}

#[test]
fn what_is_no_guest_is_refused_when_it_is_uploaded() {
    let cases: [(&[u8], &str); 2] =
        [(b"#!/bin/sh", "no WebAssembly"), (b"\0asm\x01\0\0\0", "no section")];
    for (bytes, told) in cases {
        match modules().add(bytes, &ALONE) {
            Err(HdfsError::Module { detail }) => assert!(detail.contains(told), "{detail}"),
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("it is taken"),
        }
    }
}

/// The text of a guest that can't ask for places, with this body of `mgs_chunk`.
fn text(output: &str, body: &str) -> String {
    let imports: Vec<_> = IMPORTS
        .lines()
        .filter(|line| !line.contains("\"input\"") && !line.contains("\"offset\""))
        .collect();
    let (imports, chunk, section) = (imports.join("\n"), chunk(body), section(output));
    format!("(module {imports} {MEMORY} {ABI} {BUFFER} {chunk} {section})")
}

/// A guest that can't ask for places, with this body of `mgs_chunk`.
fn own(output: &str, body: &str) -> Vec<u8> {
    wat(&text(output, body))
}
