//! The bytes of runs and manifests: pinned by golden dumps, and damaged one by one.
//!
//! A dump that differs shows a change of format: review it, raise the version, and bless it with
//! `MERGANSER_BLESS=1 cargo test -p merganser-sort --test it formats`.

use std::fmt::Write;
use std::sync::Arc;

use merganser_sort::key::OrderSpec;
use merganser_sort::record::{CsvQuotes, Format};
use merganser_sort::run::builder::RunBuilder;
use merganser_sort::run::{Compression, Run, RunWriter, SortInput};
use merganser_sort::view::{Bucket, KeyBytes, MANIFEST_NAME, Manifest, MapResult, Segment, View};
use merganser_sort::{Budget, CompressionChoice, Error, Silent, SortOptions, SortOutput, Strategy};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, Operation, Storage, StorageExt};
use merganser_testkit::Random;

const LINES: Format = Format::Lines { delimiter: b'\n' };
const PAGE: usize = 4096;
const FOOTER: usize = 64;
const ENTRY: usize = 32;

/// Sorted lines of `key`s that share a stem; long ones cross blocks and have cut fences.
fn sorted_lines(stem: &str, count: usize, len: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|i| {
            let mut line = format!("{stem}{i:04} ").into_bytes();
            line.extend((0..len).map(|j| b'a' + ((i * 7 + j) % 26) as u8));
            line.push(b'\n');
            line
        })
        .collect()
}

fn write_run(storage: Arc<dyn Storage>, records: &[Vec<u8>], compression: Compression) -> Run {
    let spec = OrderSpec::new(LINES);
    let order = spec.compile(None).expect("compiles");
    let memory = Budget::new(1 << 30).reserve(0, "fences").expect("fits");
    let writer = RunWriter::new(storage, PAGE as u32, compression, None, memory).expect("begins");
    let mut builder = RunBuilder::new(writer, order).expect("there is memory");
    builder.append(&records.concat()).expect("appends");
    builder.finish(&serde_json::to_string(&spec).expect("plain data"), true).expect("finishes")
}

fn segment(name: &str, run: &Run) -> Segment {
    Segment {
        run: name.to_owned(),
        bytes: run.data_bytes(),
        records: run.records(),
        index_crc: run.footer().index_crc,
        bucket: None,
    }
}

/// A view of three runs, stored in the three ways, and the bytes that it reads like.
fn small_view() -> (Arc<dyn Directory>, Vec<u8>) {
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let mut all = Vec::new();
    let mut segments = Vec::new();
    let kinds = [Compression::Off, Compression::Lz4, Compression::Zstd];
    for (i, compression) in kinds.into_iter().enumerate() {
        let name = format!("{i:06}.run");
        let mut records = sorted_lines("", 12 + i, 290 + i);
        records.extend(sorted_lines("x", 5, 900));
        let run = write_run(folder.create(&name).expect("new"), &records, compression);
        segments.push(segment(&name, &run));
        all.extend(records);
    }
    all.sort();
    let manifest =
        Manifest::new("sorted".to_owned(), OrderSpec::new(LINES), Vec::new(), 7, segments);
    manifest.write(&folder).expect("writes");
    (folder, all.concat())
}

/// A view of buckets, one of them of one key.
fn small_bucket_view() -> (Arc<dyn Directory>, Vec<u8>) {
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let mut records: Vec<Vec<u8>> = (0..60)
        .map(|i| format!("{:02} {}\n", i * 37 % 60, "x".repeat(i * 40)).into_bytes())
        .collect();
    records.extend((0..40).map(|_| [&[b'3'; 300][..], b"\n"].concat()));
    let options = SortOptions::new(OrderSpec::new(LINES))
        .memory(4 << 20)
        .threads(1)
        .temp(Vec::new())
        .compression(CompressionChoice::Fixed(Compression::Off))
        .strategy(Strategy::Distribute { uniform: false });
    let input = SortInput::Storage(MemoryStorage::from_bytes("in", &records.concat()));
    let output = SortOutput::View { folder: Arc::clone(&folder), name: "sorted".to_owned() };
    merganser_sort::sort(vec![input], output, &options, &Silent).expect("sorts");
    records.sort();
    (folder, records.concat())
}

/// A bucket file, read by the drawing in docs/formats.md and by nothing else.
fn dump_buckets(bytes: &[u8]) -> String {
    let mut dump = Dump::new(bytes);
    let footer = bytes.len() - FOOTER;
    let index = u64_of(&bytes[footer..footer + 8]) as usize;
    let buckets = u64_of(&bytes[footer + 16..footer + 24]);
    let block_bytes = u64::from(u32_of(&bytes[footer + 44..footer + 48]));
    dump.part("header");
    dump.field(8, |b| format!("magic '{}'", b.escape_ascii()));
    dump.u32("version");
    dump.u32("block bytes");
    dump.zeros(PAGE - 4);
    dump.crc("CRC32C of the header before it");

    let mut extents = Vec::new();
    let mut at = index + 4 + u32_of(&bytes[index..index + 4]) as usize;
    for bucket in 0..buckets {
        let count = u32_of(&bytes[at + 24..at + 28]);
        let blocks = u64_of(&bytes[at..at + 8]).div_ceil(block_bytes);
        at += 28;
        for sequence in 0..count {
            let (place, len) = (u64_of(&bytes[at..at + 8]), u64_of(&bytes[at + 8..at + 16]));
            extents.push((place as usize, len as usize, bucket, sequence));
            at += 16;
        }
        at += blocks as usize * 4;
    }
    extents.sort_unstable();
    dump.part("data");
    for (place, len, bucket, sequence) in extents {
        dump.zeros(place);
        dump.bulk(len, &format!("bucket {bucket}, extent {sequence}"));
    }
    dump.zeros(index);

    dump.part("index");
    let len = dump.u32("specification bytes") as usize;
    dump.field(len, |b| String::from_utf8_lossy(b).into_owned());
    for bucket in 0..buckets {
        dump.part(&format!("index, bucket {bucket}"));
        let blocks = dump.u64("bytes").div_ceil(block_bytes);
        dump.u64("records");
        dump.u64("bytes of encoded keys");
        for _ in 0..dump.u32("extents") {
            dump.u64("place");
            dump.u64("bytes");
        }
        for _ in 0..blocks {
            dump.crc("CRC32C of a block");
        }
    }
    dump.part("footer");
    assert_eq!(dump.at, footer);
    dump.u64("index offset");
    dump.u64("index bytes");
    dump.u64("buckets");
    dump.u64("records");
    dump.u64("data bytes");
    dump.crc("CRC32C of the index");
    dump.u32("block bytes");
    dump.u32("zero");
    dump.crc("CRC32C of the footer before it");
    dump.field(8, |b| format!("magic '{}'", b.escape_ascii()));
    assert_eq!(dump.at, bytes.len());
    dump.out
}

#[test]
fn a_bucket_file_is_these_bytes() {
    let (folder, _) = small_bucket_view();
    let file = folder.open("000000.buckets", false).expect("opens");
    check_golden("plain.buckets.txt", &dump_buckets(&bytes_of(&file)));
    let manifest = Manifest::read(&folder).expect("reads");
    let text = serde_json::to_string_pretty(&manifest.buckets).expect("plain data");
    check_golden("buckets.txt", &format!("{text}\n"));
}

#[test]
fn a_manifest_of_buckets_of_both_kinds_is_these_bytes() {
    let segment = |run: &str, bytes, bucket| Segment {
        run: run.to_owned(),
        bytes,
        records: bytes / 10,
        index_crc: 0x0123_4567,
        bucket,
    };
    let bucket = |from: &[u8], segments, one_key| Bucket {
        segments,
        from: Some(KeyBytes(from.to_vec())),
        one_key,
    };
    let buckets = vec![
        bucket(
            b"",
            vec![segment("000000.run", 500, None), segment("000001.run", 300, None)],
            false,
        ),
        bucket(b"k", vec![segment("000000.buckets", 900, Some(0))], false),
        bucket(b"x", vec![segment("000000.buckets", 100, Some(2))], true),
    ];
    let (name, order) = ("sorted".to_owned(), OrderSpec::new(LINES));
    let manifest = Manifest::of_buckets(name, order, b"head\n".to_vec(), 7, buckets);
    let bytes = manifest.encode();
    check_golden("mixed.manifest.txt", &String::from_utf8_lossy(&bytes));
    assert_eq!(Manifest::decode("manifest", &bytes).expect("reads"), manifest);
}

#[test]
fn numbers_of_bucket_files_that_cannot_be_are_errors() {
    let (folder, expected) = small_bucket_view();
    let file = folder.open("000000.buckets", true).expect("opens");
    let manifest = Manifest::read(&folder).expect("reads");
    let whole = bytes_of(&file);
    let footer = whole.len() - FOOTER;
    let index = u64_of(&whole[footer..footer + 8]) as usize;
    let mut refused = 0;
    for at in (index..footer + 52).step_by(4) {
        for value in [0, 1, 4095, 4096, 1 << 20, 1 << 31, u32::MAX - 1, u32::MAX] {
            let mut bytes = whole.clone();
            bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
            seal(&mut bytes);
            file.write_at(0, &bytes).expect("writes");
            // An attacker who forges an index forges the manifest too.
            let mut forged = manifest.clone();
            let crc = u32_of(&bytes[footer + 40..footer + 44]);
            let segments = forged.buckets.iter_mut().flat_map(|bucket| &mut bucket.segments);
            segments.for_each(|segment| segment.index_crc = crc);
            folder.remove(MANIFEST_NAME).expect("removes");
            forged.write(&folder).expect("writes");
            match read_all(&folder) {
                Err(Error::Corrupt { .. } | Error::Memory { .. }) => refused += 1,
                Err(other) => panic!("{value} at {at}: {other:?}"),
                Ok(read) => assert!(read == expected, "{value} at {at}"),
            }
        }
    }
    assert!(refused > 200, "{refused} were refused");
}

fn read_all(folder: &Arc<dyn Directory>) -> Result<Vec<u8>, Error> {
    let view = View::open(folder, &Budget::new(8 << 20), 1)?;
    let mut stream = view.stream(0..u64::MAX)?;
    let mut out = Vec::new();
    while let Some(bytes) = stream.next_bytes()? {
        out.extend_from_slice(bytes);
    }
    Ok(out)
}

fn bytes_of(storage: &Arc<dyn Storage>) -> Vec<u8> {
    storage.read_vec(0, storage.size() as usize).expect("reads")
}

/// Walks over bytes and prints the meaning of each.
struct Dump<'a> {
    bytes: &'a [u8],
    at: usize,
    out: String,
}

impl<'a> Dump<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Dump { bytes, at: 0, out: String::new() }
    }

    fn part(&mut self, title: &str) {
        writeln!(self.out, "{title}").expect("to a string");
    }

    fn rows(&mut self, bytes: &[u8], mut at: usize, meaning: &str) {
        let mut meaning = meaning;
        for row in bytes.chunks(16) {
            let hex: Vec<String> = row.iter().map(|b| format!("{b:02x}")).collect();
            writeln!(self.out, "  {at:08x}  {:47}  {meaning}", hex.join(" ")).expect("to a string");
            meaning = "";
            at += row.len();
        }
    }

    /// The next `len` bytes, in full.
    fn field(&mut self, len: usize, meaning: impl FnOnce(&[u8]) -> String) -> &'a [u8] {
        let bytes = &self.bytes[self.at..self.at + len];
        self.rows(bytes, self.at, meaning(bytes).trim_end());
        self.at += len;
        bytes
    }

    fn u32(&mut self, meaning: &str) -> u32 {
        let bytes = self.field(4, |b| format!("{meaning} {}", u32_of(b)));
        u32_of(bytes)
    }

    fn u64(&mut self, meaning: &str) -> u64 {
        let bytes = self.field(8, |b| format!("{meaning} {}", u64_of(b)));
        u64_of(bytes)
    }

    fn crc(&mut self, meaning: &str) {
        self.field(4, |b| format!("{meaning} {:08x}", u32_of(b)));
    }

    /// The next `len` bytes: their ends, and a checksum of them all.
    fn bulk(&mut self, len: usize, meaning: &str) {
        let bytes = &self.bytes[self.at..self.at + len];
        if len <= 64 {
            self.field(len, |_| meaning.to_owned());
            return;
        }
        let sum = crc32c::crc32c(bytes);
        self.rows(&bytes[..32], self.at, &format!("{meaning}: {len} bytes, CRC32C {sum:08x}"));
        writeln!(self.out, "  ...").expect("to a string");
        self.rows(&bytes[len - 16..], self.at + len - 16, "");
        self.at += len;
    }

    fn zeros(&mut self, to: usize) {
        assert!(self.bytes[self.at..to].iter().all(|b| *b == 0), "zeros before {to:#x}");
        writeln!(self.out, "  {:08x}  {} bytes of zero", self.at, to - self.at)
            .expect("to a string");
        self.at = to;
    }
}

fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

fn u64_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

/// A run file, read by the drawing in docs/formats.md and by nothing else.
fn dump_run(bytes: &[u8]) -> String {
    let mut dump = Dump::new(bytes);
    let footer = bytes.len() - FOOTER;
    let index = u64_of(&bytes[footer..footer + 8]) as usize;
    let blocks = u64_of(&bytes[footer + 16..footer + 24]);
    dump.part("header");
    dump.field(8, |b| format!("magic '{}'", b.escape_ascii()));
    dump.u32("version");
    dump.u32("block bytes");
    dump.zeros(PAGE - 4);
    dump.crc("CRC32C of the header before it");

    let mut places = Vec::new();
    let mut at = index + 4 + u32_of(&bytes[index..index + 4]) as usize;
    for block in 0..blocks {
        let len = u32_of(&bytes[at + 8..at + 12]) as usize;
        places.push((u64_of(&bytes[at..at + 8]) as usize, len, block));
        at += ENTRY + (u32_of(&bytes[at + 28..at + 32]) & 0x7fff_ffff) as usize;
    }
    places.sort_unstable();
    dump.part("data");
    for (place, len, block) in places {
        if place > dump.at {
            dump.zeros(place);
        }
        dump.bulk(len, &format!("block {block}"));
    }
    dump.zeros(index);

    dump.part("index");
    let len = dump.u32("specification bytes") as usize;
    dump.field(len, |b| String::from_utf8_lossy(b).into_owned());
    for block in 0..blocks {
        dump.part(&format!("index, block {block}"));
        dump.u64("place");
        dump.u32("stored bytes");
        dump.crc("CRC32C of the stored bytes");
        dump.u64("first record:");
        dump.field(4, |b| match u32_of(b) {
            u32::MAX => "no record starts in it".to_owned(),
            start => format!("the first record that starts in it: at {start}"),
        });
        let key = dump.field(4, |b| {
            let cut = if u32_of(b) >> 31 == 1 { ", cut" } else { "" };
            format!("key bytes {}{cut}", u32_of(b) & 0x7fff_ffff)
        });
        let len = (u32_of(key) & 0x7fff_ffff) as usize;
        if len > 0 {
            dump.bulk(len, "key");
        }
    }
    dump.part("footer");
    assert_eq!(dump.at, footer);
    dump.u64("index offset");
    dump.u64("index bytes");
    dump.u64("blocks");
    dump.u64("records");
    dump.u64("data bytes");
    dump.crc("CRC32C of the index");
    dump.u32("block bytes");
    dump.u32("compression");
    dump.crc("CRC32C of the footer before it");
    dump.field(8, |b| format!("magic '{}'", b.escape_ascii()));
    assert_eq!(dump.at, bytes.len());
    dump.out
}

fn check_golden(name: &str, found: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("MERGANSER_BLESS").is_some() {
        std::fs::write(&path, found).expect("writes the dump");
    }
    let expected = std::fs::read_to_string(&path).expect("the dump is there");
    let line = found.lines().zip(expected.lines()).position(|(a, b)| a != b);
    assert!(found == expected, "{name} differs from line {line:?} on:\n{found}");
}

#[test]
fn a_run_of_plain_blocks_is_these_bytes() {
    let storage: Arc<dyn Storage> = MemoryStorage::new("run");
    let mut records = sorted_lines("", 9, 300);
    records.push([&[b'x'; 5000][..], b"\n"].concat());
    records.push(b"y\n".to_vec());
    write_run(Arc::clone(&storage), &records, Compression::Off);
    check_golden("plain.run.txt", &dump_run(&bytes_of(&storage)));
}

#[test]
fn a_run_of_lz4_blocks_is_these_bytes() {
    let storage: Arc<dyn Storage> = MemoryStorage::new("run");
    let mut records = sorted_lines("", 12, 500);
    // Nothing to pack here: the block is kept as it is.
    let mut random = Random::new(1);
    let noise = std::iter::repeat_with(|| 0x80 | random.bits() as u8);
    records.push(b"z".iter().copied().chain(noise.take(7000)).chain([b'\n']).collect());
    write_run(Arc::clone(&storage), &records, Compression::Lz4);
    check_golden("lz4.run.txt", &dump_run(&bytes_of(&storage)));
}

#[test]
fn a_manifest_is_these_bytes() {
    let order = OrderSpec {
        keys: vec!["name:r".to_owned()],
        ..OrderSpec::new(Format::csv_rows(b';', true))
    };
    let segment = |run: &str, bytes| Segment {
        run: run.to_owned(),
        bytes,
        records: 3,
        index_crc: 9,
        bucket: None,
    };
    let segments = vec![segment("000000.run", 40), segment("000001.run", 50)];
    let made = 1_700_000_000_123_456_789;
    let manifest = Manifest::new(
        "people.csv".to_owned(),
        order,
        b"name;\"\xff\"\r\n".to_vec(),
        made,
        segments,
    );
    let bytes = manifest.encode();
    check_golden("manifest.txt", std::str::from_utf8(&bytes).expect("text"));
    assert_eq!(Manifest::decode("manifest", &bytes).expect("decodes"), manifest);
}

/// A view of a program that took every quote of csv for one that opens or closes.
#[test]
fn an_older_manifest_of_csv_keeps_its_meaning() {
    let path = format!("{}/tests/golden/csv-toggled.manifest.txt", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(path).expect("the manifest is there");
    let manifest = Manifest::decode("manifest", &bytes).expect("decodes");
    let toggled = Format::Csv { separator: b';', header: true, quotes: CsvQuotes::Toggled };
    assert_eq!(manifest.order.format, toggled);
    assert_eq!(manifest.encode(), bytes);
    let order = OrderSpec { keys: vec!["9".to_owned()], ..OrderSpec::new(toggled) };
    order.compile(Some(b"a;a\n")).expect("it was no error then");
}

/// The result of a map whose records are combined when they are read.
#[test]
fn a_manifest_of_a_result_is_these_bytes_and_no_ordinary_reader_takes_it() {
    let segment =
        Segment { run: "000000.run".to_owned(), bytes: 40, records: 3, index_crc: 9, bucket: None };
    let result = |unreduced| MapResult {
        ssdlet: "wordcount".to_owned(),
        key: "text".to_owned(),
        value: "i64".to_owned(),
        combine: "sum".to_owned(),
        unreduced,
    };
    let manifest = |segments| {
        let order = OrderSpec::new(Format::Keyed);
        Manifest::new("counts".to_owned(), order, Vec::new(), 7, segments)
    };
    let unreduced = manifest(vec![segment]).of_map(result(true));
    let bytes = unreduced.encode();
    check_golden("unreduced.manifest.txt", std::str::from_utf8(&bytes).expect("text"));
    assert_eq!(Manifest::decode("manifest", &bytes).expect("decodes"), unreduced);
    let reduced = manifest(Vec::new()).of_map(result(false));
    assert_eq!(Manifest::decode("manifest", &reduced.encode()).expect("decodes"), reduced);

    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    manifest(Vec::new()).of_map(result(true)).write(&folder).expect("writes");
    let budget = Budget::new(4 << 20);
    let refused = View::open(&folder, &budget, 1).map(|_| ());
    assert!(matches!(refused, Err(Error::Unreduced { .. })));
    View::open_to_reduce(&folder, &budget, 1).expect("opens");
    reduced.write(&folder).expect("writes");
    View::open(&folder, &budget, 1).expect("reads like any view");

    // The version says the same as the field: an older program looks at the version only.
    let text = String::from_utf8(unreduced.encode()).expect("text");
    for (from, to) in [("\"version\": 4", "\"version\": 1"), ("true", "false")] {
        let body = text.replace(from, to);
        let body = &body[..body.rfind("crc32c").expect("there")];
        let sealed = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
        let decoded = Manifest::decode("manifest", sealed.as_bytes());
        assert!(matches!(decoded, Err(Error::Corrupt { .. })), "{to}");
    }
}

/// A table whose rows stay in files of their own. A program that knows only versions up to 4 says that it does not know it.
#[test]
fn a_manifest_of_a_table_in_files_is_these_bytes_and_the_engine_does_not_open_it() {
    let columns =
        serde_json::json!({ "files": ["in the words of the program that made the view"] });
    let manifest = Manifest::of_table_in_files("all".to_owned(), 7, 9, columns);
    let bytes = manifest.encode();
    check_golden("in-files.manifest.txt", std::str::from_utf8(&bytes).expect("text"));
    assert_eq!(Manifest::decode("manifest", &bytes).expect("decodes"), manifest);
    assert!(manifest.is_in_files());

    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    manifest.write(&folder).expect("writes");
    let budget = Budget::new(4 << 20);
    for opened in [View::open, View::open_to_reduce, View::open_unfinished] {
        let refused = opened(&folder, &budget, 1).map(|_| ());
        assert!(matches!(refused, Err(Error::RowsInFiles { .. })));
    }

    // It has no runs and no bytes, and it is of a table.
    let text = String::from_utf8(bytes).expect("text");
    let changes = [
        ("\"version\": 5", "\"version\": 1"),
        ("\"size_bytes\": 0", "\"size_bytes\": 1"),
        ("\"table\"", "\"tables\""),
        ("\"buckets\": []", "\"buckets\": [{\"segments\": []}]"),
    ];
    for (from, to) in changes {
        let body = text.replace(from, to);
        assert_ne!(body, text, "{from}");
        let body = &body[..body.rfind("crc32c").expect("there")];
        let sealed = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
        let decoded = Manifest::decode("manifest", sealed.as_bytes());
        assert!(matches!(decoded, Err(Error::Corrupt { .. })), "{to}");
    }
}

/// Damage is found, or makes no difference.
fn check_damaged(what: &str, folder: &Arc<dyn Directory>, expected: &[u8]) {
    match read_all(folder) {
        Ok(bytes) => assert!(bytes == expected, "{what}: wrong bytes were read"),
        Err(Error::Corrupt { .. } | Error::UnknownVersion { .. }) => {}
        Err(other) => panic!("{what}: {other:?}"),
    }
}

/// Places of `bytes` to damage: all except bulk data, and samples of that.
fn places(name: &str, bytes: &[u8]) -> Vec<usize> {
    if name == MANIFEST_NAME {
        return (0..bytes.len()).collect();
    }
    let footer = bytes.len() - FOOTER;
    let index = u64_of(&bytes[footer..footer + 8]) as usize;
    let header = (0..20).chain((20..PAGE - 8).step_by(61)).chain(PAGE - 8..PAGE);
    header.chain((PAGE..index).step_by(37)).chain(index..bytes.len()).collect()
}

#[test]
fn no_flipped_bit_is_read_as_data() {
    for (folder, expected) in [small_view(), small_bucket_view()] {
        assert!(read_all(&folder).expect("reads") == expected);
        for name in folder.list().expect("lists") {
            let file = folder.open(&name, true).expect("opens");
            let bytes = bytes_of(&file);
            for at in places(&name, &bytes) {
                let flipped = bytes[at] ^ 1 << (at % 8);
                file.write_at(at as u64, &[flipped]).expect("writes");
                check_damaged(&format!("{name}: bit flipped at {at}"), &folder, &expected);
                file.write_at(at as u64, &bytes[at..=at]).expect("writes");
            }
        }
        assert!(read_all(&folder).expect("reads") == expected);
    }
}

/// The memory of indexes is reserved before any index is read: if a budget is too small for them,
/// the footers already tell, and opening fails.
#[test]
fn too_little_memory_is_an_error_before_an_index_is_read() {
    for (folder, expected) in [small_view(), small_bucket_view()] {
        let names = folder.list().expect("lists");
        let name = names.iter().find(|name| *name != MANIFEST_NAME).expect("a run");
        let file = folder.open(name, true).expect("opens");
        let bytes = bytes_of(&file);
        let footer = bytes.len() - FOOTER;
        let index = u64_of(&bytes[footer..footer + 8]) as usize;
        file.write_at(index as u64, &[!bytes[index]]).expect("writes");
        assert!(matches!(read_all(&folder), Err(Error::Corrupt { .. })), "{name}");
        let budget = Budget::new(100);
        let Err(Error::Memory { least_bytes, limit_bytes: 100, .. }) =
            View::open(&folder, &budget, 1).map(|_| ())
        else {
            panic!("{name}: its index was read")
        };
        assert!(least_bytes > (footer - index) as u64 && budget.peak_bytes() <= 100, "{name}");
        file.write_at(index as u64, &bytes[index..=index]).expect("writes");
        assert!(read_all(&folder).expect("reads") == expected);
        let roomy = Budget::new(8 << 20);
        drop(View::open(&folder, &roomy, 1).expect("opens"));
        assert_eq!(roomy.free_bytes(), 8 << 20, "all memory was given back");
    }
}

#[test]
fn every_byte_of_a_header_counts() {
    let storage: Arc<dyn Storage> = MemoryStorage::new("run");
    write_run(Arc::clone(&storage), &sorted_lines("", 3, 10), Compression::Off);
    let header = storage.read_vec(0, PAGE).expect("reads");
    for at in 0..PAGE {
        storage.write_at(at as u64, &[header[at] ^ 0x10]).expect("writes");
        let opened = Run::open(Arc::clone(&storage));
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "flipped at {at}");
        storage.write_at(at as u64, &header[at..=at]).expect("writes");
    }
    Run::open(storage).expect("opens");
}

#[test]
fn verifying_finds_the_damaged_block_and_names_it() {
    let (folder, _) = small_view();
    let budget = Budget::new(8 << 20);
    let mut checked = 0;
    for name in folder.list().expect("lists").iter().filter(|n| *n != MANIFEST_NAME) {
        let file = folder.open(name, true).expect("opens");
        let bytes = bytes_of(&file);
        let footer = bytes.len() - FOOTER;
        let index = u64_of(&bytes[footer..footer + 8]) as usize;
        // The zeros between the last block and the index are not checked.
        let end = index - bytes[..index].iter().rev().take_while(|b| **b == 0).count();
        for at in (PAGE..end).step_by(211) {
            file.write_at(at as u64, &[!bytes[at]]).expect("writes");
            let view = View::open(&folder, &budget, 1).expect("blocks are not looked at");
            match view.verify_all(|_| Ok(())) {
                Err(Error::Corrupt { file, offset, detail }) => {
                    assert!(file.ends_with(name.as_str()), "{file}");
                    assert!(
                        offset <= at as u64 && at as u64 - offset < PAGE as u64,
                        "{offset} {at}"
                    );
                    assert!(detail.contains("found") && detail.contains("expected"), "{detail}");
                }
                other => panic!("{name}: damage at {at} gave {other:?}"),
            }
            file.write_at(at as u64, &bytes[at..=at]).expect("writes");
            checked += 1;
        }
    }
    assert!(checked > 30);
    View::open(&folder, &budget, 1)
        .expect("opens")
        .verify_all(|_| Ok(()))
        .expect("all is well again");
}

#[test]
fn no_truncated_file_is_read_as_data() {
    for (folder, expected) in [small_view(), small_bucket_view()] {
        for name in folder.list().expect("lists") {
            let file = folder.open(&name, true).expect("opens");
            let bytes = bytes_of(&file);
            let sampled = (0..bytes.len()).step_by(131);
            for len in sampled.chain(bytes.len().saturating_sub(150)..bytes.len()) {
                file.run(Operation::SetSize { size: len as u64 }).expect("cuts");
                let what = format!("{name}: cut to {len} of {} bytes", bytes.len());
                let read = read_all(&folder);
                assert!(matches!(read, Err(Error::Corrupt { .. })), "{what}: {:?}", read.err());
                file.write_at(0, &bytes).expect("writes");
            }
        }
        assert!(read_all(&folder).expect("reads") == expected);
    }
}

#[test]
fn runs_that_changed_places_are_noticed() {
    let (folder, _) = small_view();
    folder.rename("000000.run", "away").expect("renames");
    folder.rename("000001.run", "000000.run").expect("renames");
    folder.rename("away", "000001.run").expect("renames");
    let read = read_all(&folder);
    assert!(matches!(&read, Err(Error::Corrupt { .. })), "{read:?}");
    folder.remove("000000.run").expect("removes");
    let error = read_all(&folder).expect_err("a run is missing").to_string();
    assert!(error.contains("000000.run"), "{error}");
}

#[test]
fn later_versions_are_refused_by_name() {
    let (folder, _) = small_view();
    let manifest = folder.open(MANIFEST_NAME, true).expect("opens");
    let text = String::from_utf8(bytes_of(&manifest)).expect("text");
    let body = text.rsplit_once("crc32c").expect("a checksum").0;
    let body = body.replacen("\"version\": 1", "\"version\": 6", 1);
    let sealed = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
    manifest.write_at(0, sealed.as_bytes()).expect("writes");
    let Err(Error::UnknownVersion { version, .. }) = read_all(&folder) else {
        panic!("version 6 was read")
    };
    assert_eq!(version, 6);

    let run = folder.open("000000.run", true).expect("opens");
    let mut header = run.read_vec(0, PAGE).expect("reads");
    header[8] = 2;
    let crc = crc32c::crc32c(&header[..PAGE - 4]);
    header[PAGE - 4..].copy_from_slice(&crc.to_le_bytes());
    run.write_at(0, &header).expect("writes");
    let Err(refusal) = Run::open(run) else { panic!("version 2 was read") };
    assert!(matches!(refusal, Error::UnknownVersion { version: 2, .. }), "{refusal:?}");
    let refusal = refusal.to_string();
    assert!(refusal.contains("version 2"), "{refusal}");
}

/// Puts right the checksums of index and footer.
fn seal(bytes: &mut [u8]) {
    let footer = bytes.len() - FOOTER;
    let index = u64_of(&bytes[footer..footer + 8]);
    if let Some(index) = usize::try_from(index).ok().and_then(|at| bytes.get(at..footer)) {
        let crc = crc32c::crc32c(index);
        bytes[footer + 40..footer + 44].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = crc32c::crc32c(&bytes[footer..footer + 52]);
    bytes[footer + 52..footer + 56].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn numbers_that_cannot_be_are_errors_though_their_checksums_fit() {
    for compression in [Compression::Off, Compression::Lz4] {
        let storage: Arc<dyn Storage> = MemoryStorage::new("run");
        write_run(Arc::clone(&storage), &sorted_lines("", 40, 290), compression);
        let whole = bytes_of(&storage);
        let footer = whole.len() - FOOTER;
        let index = u64_of(&whole[footer..footer + 8]) as usize;
        let mut refused = 0;
        for at in (index..footer + 52).step_by(4) {
            for value in [0, 1, 4095, 4096, 1 << 20, 1 << 31, u32::MAX - 1, u32::MAX] {
                let mut bytes = whole.clone();
                bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
                seal(&mut bytes);
                match Run::open(MemoryStorage::from_bytes("run", &bytes)) {
                    Err(Error::Corrupt { .. }) => refused += 1,
                    Err(other) => panic!("{value} at {at}: {other:?}"),
                    // Errors that the numbers don't show are in the blocks; neither check may
                    // panic.
                    Ok(run) => drop(run.verify_all(|_| Ok(()))),
                }
            }
        }
        assert!(refused > 200, "{refused} were refused");
    }
}
