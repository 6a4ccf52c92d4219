//! SSDlets in sessions over storage in memory and in a modelled SSD: every split maps each record once,
//! commands are refused, devices fail, hosts close early, results are PUT.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use merganser_device::device::{Device, IoCommand as DeviceCommand};
use merganser_device::profile::SsdProfile;
use merganser_device::request::{RequestKind, SimTime};
use merganser_device::ssd::Ssd;
use merganser_inside::isc::command::{ByteExtent, DeviceSplit, SessionCommand};
use merganser_inside::isc::host::{DeviceDoor, HostSession};
use merganser_inside::isc::split::cut;
use merganser_inside::isc::status::IscState;
use merganser_inside::isc::{Isc, IscSettings, SESSIONS_MAX};
use merganser_inside::run::Runner;
use merganser_map::ssdlet::{
    Chunk, Combine, Emitter, Installed, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type,
    Worker, builtin, rows,
};
use merganser_sort::record::Format;
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::near::HostRequest;
use merganser_storage::{Buffer, Storage, StorageExt};
use merganser_testkit::Random;
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};
use serde_json::{Value, json};

const CONTROL: u64 = 1 << 40;
const MEMORY: u64 = 8 << 20;
const SESSION: u64 = 2 << 20;
const SETTINGS: IscSettings =
    IscSettings { pages: 3, page_bytes: Some(4096), window_bytes: 2 << 20 };

/// Hands out each record with its place as key: shows what a worker sees.
struct Places(SsdletDescription);

impl Ssdlet for Places {
    fn description(&self) -> &SsdletDescription {
        &self.0
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        Ok(Box::new(PlacesWorker(self.0.input)))
    }
}

struct PlacesWorker(Format);

impl Worker for PlacesWorker {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        let mut at = 0;
        while at < chunk.bytes.len() {
            let len = self.0.record_len(&chunk.bytes[at..]).expect("whole records");
            let record = &chunk.bytes[at..at + len];
            if record == b"bad\n" {
                let detail = "a bad record".to_owned();
                return Err(SsdletError::Record { offset: chunk.offset + at as u64, detail });
            }
            let place = format!("{:02} {:08}", chunk.input, chunk.offset + at as u64);
            out.emit(place.as_bytes(), record);
            at += len;
        }
        Ok(())
    }

    /// Bytes would be charged without a meter; this is another number.
    fn meter(&mut self) -> u64 {
        7
    }
}

fn installed(format: Format) -> Installed {
    Arc::new(move |name: &str, args: &Value| {
        if name != "places" {
            return builtin::open(name, args);
        }
        let output =
            SsdletOutput::Keyed { key: Type::Text, value: Type::Bytes, combine: Combine::None };
        let name = name.to_owned();
        Ok(Box::new(Places(SsdletDescription { name, input: format, output, worker_bytes: 100 }))
            as _)
    })
}

fn runner(storage: Arc<dyn Storage>, format: Format) -> Runner<Isc> {
    Runner::new(Isc::new(CONTROL, SETTINGS, installed(format)), storage, MEMORY)
}

fn open(door: &mut dyn DeviceDoor, nonce: u64, name: &str) -> io::Result<HostSession> {
    HostSession::open(door, CONTROL, nonce, name, &json!({}), SESSION)
}

/// Scatters `input` over the device from `base` on; where each of its bytes is.
fn scatter(storage: &dyn Storage, input: &[u8], base: u64, random: &mut Random) -> Vec<ByteExtent> {
    let mut extents = Vec::new();
    let (mut at, mut next) = (0, base);
    while at < input.len() {
        let bytes = 512 * (1 + random.below(20));
        let end = (at + bytes as usize).min(input.len());
        storage.write_at(next, &input[at..end]).expect("written");
        extents.push(ByteExtent { offset: next, bytes });
        next += bytes + 512 * random.below(3);
        at = end;
    }
    // The rest of the last sector, behind the input, is never seen.
    storage.write_at(next, &[b'#'; 512]).expect("written");
    extents
}

/// The part `range` of scattered extents as a split.
fn part(
    extents: &[ByteExtent],
    range: std::ops::Range<u64>,
    offsets: (u64, u64),
    place: u64,
) -> DeviceSplit {
    let mut at = 0;
    let (mut before, mut found) = (None, Vec::new());
    for extent in extents {
        let (from, to) = (range.start.max(at), range.end.min(at + extent.bytes));
        if from < to {
            let first = (from - at) / 512 * 512;
            before.get_or_insert(from - at - first);
            let bytes = (to - at).next_multiple_of(512) - first;
            found.push(ByteExtent { offset: extent.offset + first, bytes });
        }
        at += extent.bytes;
    }
    let before = before.unwrap_or(0);
    DeviceSplit {
        input: 0,
        place,
        bytes: before + (range.end - range.start),
        start_offset: before + offsets.0,
        end_offset: offsets.1,
        extents: found,
    }
}

/// The splits of `input` and its split records, as the host gives them to the device.
fn splits(
    input: &dyn Storage,
    extents: &[ByteExtent],
    split_bytes: u64,
    format: Format,
) -> Vec<DeviceSplit> {
    let cuts = cut(input, split_bytes, format).expect("read");
    let mut all: Vec<DeviceSplit> = Vec::new();
    for cut in &cuts.splits {
        let mapped = cut.mapped();
        if !mapped.is_empty() {
            let offsets = (cut.start_offset, cut.end_offset);
            all.push(part(extents, cut.range.clone(), offsets, mapped.start));
        }
    }
    for record in &cuts.records {
        all.push(part(extents, record.clone(), (0, 0), record.start));
    }
    all.sort_by_key(|split| split.place);
    all
}

/// Maps `splits` in one session, and gives its rows.
fn map(
    door: &mut dyn DeviceDoor,
    control: u64,
    name: &str,
    splits: Vec<DeviceSplit>,
) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    // A worker of the built-in SSDlets may take a megabyte for itself.
    let session = HostSession::open(door, control, 77, name, &json!({}), 2 * SESSION)?;
    let count = splits.len();
    for (number, split) in splits.into_iter().enumerate() {
        session.set(door, split, number + 1 < count)?;
    }
    let result = session.wait(door).and_then(|status| {
        assert_eq!((status.splits, status.state), (count as u64, IscState::Done));
        assert_eq!(status.runs.len(), 1);
        session.result(door, &status)
    });
    session.close(door)?;
    rows(&result?)
}

fn text(random: &mut Random, lines: u64) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..lines {
        let len = if random.one_in(40) { random.below(30_000) } else { random.below(60) };
        text.extend((0..len).map(|_| b"abc d\xE9 "[random.index(7)]));
        text.push(b'\n');
    }
    text
}

/// What [`Places`] gives for `input` as one piece.
fn expected(input: &[u8], format: Format) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let rest = &input[at..];
        let len = format.record_len(rest);
        let record = len.map_or_else(|| [rest, b"\n"].concat(), |len| rest[..len].to_vec());
        all.push((format!("00 {at:08}").into_bytes(), record));
        at += len.unwrap_or(rest.len());
    }
    all
}

#[test]
fn each_record_is_mapped_once_for_every_split() {
    let lines = Format::Lines { delimiter: b'\n' };
    let csv = Format::csv_rows(b',', false);
    for round in 0..60 {
        let mut random = Random::new(round);
        let format = [lines, Format::Fixed { bytes: 37 }, csv][random.index(3)];
        let input = match format {
            Format::Fixed { bytes } => {
                let count = random.index(2000);
                random.bytes(bytes * count)
            }
            Format::Csv { .. } => b"1,\"two\nlines\"\n2,x\n".repeat(random.index(900)),
            _ => {
                let lines = random.below(200);
                let mut text = text(&mut random, lines);
                if random.one_in(2) {
                    text.pop();
                }
                text
            }
        };
        let device = MemoryStorage::new("device");
        let extents = scatter(&*device, &input, 1 << 20, &mut random);
        let source = MemoryStorage::from_bytes("input", &input);
        let split_bytes = 1 + random.below(40_000);
        let splits = splits(&*source, &extents, split_bytes, format);
        let mut runner = runner(device, format);
        let found = if splits.is_empty() {
            Vec::new()
        } else {
            map(&mut runner, CONTROL, "places", splits).expect("mapped")
        };
        assert!(found == expected(&input, format), "seed {round}, {format:?}, {split_bytes}");
        assert_eq!((runner.program().open_sessions(), runner.claimed_bytes()), (0, 0));
    }
}

/// Lines of this text are longer than pages: a page without the end of a record is charged once, too.
#[test]
fn a_word_count_in_the_device_waits_for_its_processor() {
    let (took, work) = count_words_in_a_modelled_device();
    assert!((1.0..1.1).contains(&(took / work)), "{took} s, {work} s of work");
}

/// Seconds that it took, and seconds of work at the given cycles per byte.
fn count_words_in_a_modelled_device() -> (f64, f64) {
    let mut random = Random::new(3);
    let mut input = text(&mut random, 2000);
    input.retain(u8::is_ascii);
    let mut counts: BTreeMap<&[u8], i64> = BTreeMap::new();
    for word in input.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        *counts.entry(word).or_default() += 1;
    }
    let profile = SsdProfile::preset("isc").expect("a preset");
    let mut ssd = Ssd::new(&profile, 1).expect("a device");
    let control = 1 << 32;
    let settings = IscSettings { page_bytes: None, pages: 64, ..SETTINGS };
    ssd.attach(Box::new(Isc::new(control, settings, installed(Format::Keyed))));
    let mut door = Modelled { ssd, now: SimTime(0) };
    let bytes = input.len() as u64;
    let mut stored = input.clone();
    stored.resize(input.len().next_multiple_of(512), 0);
    door.write(0, &stored).expect("written");
    let extents = vec![ByteExtent { offset: 0, bytes: stored.len() as u64 }];
    let split = DeviceSplit { input: 0, place: 0, bytes, start_offset: 0, end_offset: 0, extents };
    let before = door.now;
    let found = map(&mut door, control, "wordcount", vec![split]).expect("mapped");
    let counted: Vec<(&[u8], i64)> = found
        .iter()
        .map(|(key, value)| (&key[..], i64::from_le_bytes(value[..].try_into().expect("a number"))))
        .collect();
    assert_eq!(counted, counts.into_iter().collect::<Vec<_>>());
    let cycles = profile.settings.meter_cycles_per_1024 as f64 / 1024.0;
    let work = bytes as f64 * cycles / profile.settings.processor_hz as f64;
    let took = (door.now.0 - before.0) as f64 / 1e9;
    (took, work)
}

/// A modelled device, polled every tenth of a millisecond.
struct Modelled {
    ssd: Ssd,
    now: SimTime,
}

impl Modelled {
    fn run(&mut self, kind: RequestKind, offset: u64, buffer: Buffer) -> io::Result<Buffer> {
        let len = buffer.len() as u64;
        let command = DeviceCommand { id: 1, kind, offset, len, buffer: Some(buffer) };
        self.now = self.now.max(self.ssd.now());
        self.ssd.submit(self.now, command);
        loop {
            if let Some(done) = self.ssd.completed() {
                self.now = self.now.max(done.at);
                return done.result.map(|_| done.buffer.expect("it comes back"));
            }
            assert!(self.ssd.advance(), "the device has lost a request");
        }
    }
}

impl DeviceDoor for Modelled {
    fn read(&mut self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.run(RequestKind::Read, offset, Buffer::new(len)).map(|buffer| buffer.to_vec())
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut buffer = Buffer::new(bytes.len());
        buffer.copy_from_slice(bytes);
        self.run(RequestKind::Write, offset, buffer).map(|_| ())
    }

    fn pause(&mut self) -> io::Result<()> {
        self.now.0 += 100_000;
        while self.ssd.next_at().is_some_and(|at| at <= self.now) {
            self.ssd.advance();
        }
        Ok(())
    }
}

fn whole(bytes: u64) -> DeviceSplit {
    let extents = vec![ByteExtent { offset: 0, bytes: bytes.next_multiple_of(512) }];
    DeviceSplit { input: 0, place: 0, bytes, start_offset: 0, end_offset: 0, extents }
}

const LINES: Format = Format::Lines { delimiter: b'\n' };

#[test]
fn a_session_maps_several_runs() {
    let device = MemoryStorage::from_bytes("device", &b"a b a\nc\n".repeat(64));
    let mut runner = runner(device, LINES);
    let door: &mut dyn DeviceDoor = &mut runner;
    let session = open(door, 1, "wordcount").expect("opened");
    let status = session.status(door).expect("read");
    assert_eq!(status.state, IscState::Waiting);
    for bytes in [8, 512] {
        session.set(door, whole(bytes), true).expect("taken");
        // It waits for the last one.
        while door.pause().is_ok() {}
        assert_eq!(session.status(door).expect("read").state, IscState::Waiting);
        session.set(door, whole(8), false).expect("taken");
        let status = session.wait(door).expect("done");
        assert_eq!((status.splits, status.mapped_bytes), (2, bytes + 8));
        assert_eq!(status.metered, bytes + 8, "an SSDlet's bytes");
        let found = rows(&session.result(door, &status).expect("read")).expect("rows");
        let lines = (bytes / 8 + 1) as i64;
        let number = |n: i64| n.to_le_bytes().to_vec();
        let counts = [(b"a", 2 * lines), (b"b", lines), (b"c", lines)];
        assert_eq!(found, counts.map(|(key, n)| (key.to_vec(), number(n))));
        // Reads repeat.
        assert_eq!(rows(&session.result(door, &status).expect("read")).expect("rows"), found);
    }
    session.close(door).expect("closed");
    assert_eq!(runner.claimed_bytes(), 0);
}

#[test]
fn a_large_result_is_put_in_sorted_runs() {
    let mut random = Random::new(9);
    let words: Vec<String> = (0..60_000).map(|_| format!("w{}", random.below(50_000))).collect();
    let input = words.join("\n") + "\n";
    let device = MemoryStorage::from_bytes("device", input.as_bytes());
    device.write_at(1 << 25, b"end").expect("written");
    let mut runner = Runner::new(
        Isc::new(CONTROL, SETTINGS, installed(LINES)),
        Arc::clone(&device) as Arc<dyn Storage>,
        16 << 20,
    );
    let door: &mut dyn DeviceDoor = &mut runner;
    let memory = 2 << 20;
    let open = |door: &mut dyn DeviceDoor| {
        HostSession::open(door, CONTROL, 1, "wordcount", &json!({}), memory).expect("opened")
    };
    // Without PUT it is too large.
    let session = open(door);
    session.set(door, whole(input.len() as u64), false).expect("taken");
    let said = session.wait(door).expect_err("too large").to_string();
    assert!(said.contains("PUT the result on the device"), "{said}");
    let refused = session.set(door, whole(8), false).expect_err("failed").to_string();
    assert!(refused.contains("the session has failed: the result takes more"), "{refused}");
    session.close(door).expect("closed");

    let session = open(door);
    let page = u64::from(device.geometry().page_bytes);
    let area = [(1 << 24, page * 100), (1 << 23, page * 5000)];
    let area = area.map(|(offset, bytes)| ByteExtent { offset, bytes });
    session.put(door, area.to_vec()).expect("taken");
    session.set(door, whole(input.len() as u64), false).expect("taken");
    let late = session.put(door, area.to_vec()).expect_err("late").to_string();
    assert_eq!(late, "PUT: a split of this run was given; PUT comes before the first");
    let status = session.wait(door).expect("done");
    assert!(status.put && status.runs.len() > 1, "{status:?}");
    let said = session.result(door, &status).expect_err("elsewhere").to_string();
    assert_eq!(said, "the result was written where PUT said");
    session.close(door).expect("closed");
    let mut stored = device.read_vec(area[0].offset, area[0].bytes as usize).expect("read");
    stored.extend(device.read_vec(area[1].offset, area[1].bytes as usize).expect("read"));
    let (mut counts, mut at) = (BTreeMap::new(), 0);
    for run in status.runs {
        let rows = rows(&stored[at..at + run as usize]).expect("rows");
        assert!(rows.is_sorted_by(|a, b| a.0 < b.0), "each run is sorted");
        for (key, value) in rows {
            *counts.entry(key).or_insert(0) +=
                i64::from_le_bytes(value.try_into().expect("a number"));
        }
        at += run as usize;
    }
    let mut expected = BTreeMap::new();
    words.iter().for_each(|word| *expected.entry(word.clone().into_bytes()).or_insert(0) += 1);
    assert!(counts == expected);

    // Too small an area is an error too.
    let session = open(&mut runner);
    let door: &mut dyn DeviceDoor = &mut runner;
    session.put(door, vec![ByteExtent { offset: 1 << 24, bytes: page }]).expect("taken");
    session.set(door, whole(input.len() as u64), false).expect("taken");
    let said = session.wait(door).expect_err("too small").to_string();
    assert!(said.starts_with("PUT: the result is longer than the"), "{said}");
    session.close(door).expect("closed");
    assert_eq!(runner.claimed_bytes(), 0);
}

#[test]
fn a_fault_ends_its_session_and_no_other() {
    let input = b"good\nbad\ngood\n";
    let device = MemoryStorage::from_bytes("device", &[&input[..], &[b'\n'; 4096]].concat());
    let mut runner = runner(device, LINES);
    let door: &mut dyn DeviceDoor = &mut runner;
    let bad = open(door, 1, "places").expect("opened");
    let good = open(door, 2, "wordcount").expect("opened");
    bad.set(door, whole(14), false).expect("taken");
    good.set(door, whole(14), false).expect("taken");
    let said = bad.wait(door).expect_err("bad").to_string();
    assert_eq!(said, "at byte 5: a bad record");
    let status = good.wait(door).expect("done");
    assert_eq!(rows(&good.result(door, &status).expect("read")).expect("rows").len(), 2);
    // A record cut short.
    let cut = open(door, 3, "places").expect("opened");
    bad.close(door).expect("closed");
    good.close(door).expect("closed");
    cut.close(door).expect("closed");
    assert_eq!(runner.claimed_bytes(), 0);
}

#[test]
fn a_page_that_can_not_be_read_is_named() {
    let device = MemoryStorage::from_bytes("device", &[b'\n'; 65_536]);
    let plan = FaultPlan { seed: 1, faults: vec![Fault::FailRead { nth: 1 }] };
    let faulty = Faulty::new(MemoryDirectory::new(), plan);
    let mut runner = runner(faulty.wrap(device), LINES);
    let session = open(&mut runner, 1, "wordcount").expect("opened");
    session.set(&mut runner, whole(65_536), false).expect("taken");
    let said = session.wait(&mut runner).expect_err("unread").to_string();
    assert!(said.starts_with("byte 0 of the device: read: "), "{said}");
    session.close(&mut runner).expect("closed");
    assert_eq!(runner.claimed_bytes(), 0);
}

#[test]
fn what_is_wrong_is_refused() {
    let device = MemoryStorage::from_bytes("device", &[b'\n'; 4096]);
    let mut runner = runner(device, LINES);
    let door: &mut dyn DeviceDoor = &mut runner;
    let said = open(door, 1, "nothing").expect_err("unknown").to_string();
    assert_eq!(said, "there is no SSDlet named nothing");
    let small = HostSession::open(door, CONTROL, 1, "wordcount", &json!({}), 100);
    let said = small.expect_err("too small").to_string();
    assert!(said.starts_with("wordcount needs at least"), "{said}");
    let large = HostSession::open(door, CONTROL, 1, "wordcount", &json!({}), MEMORY + 1);
    let said = large.expect_err("too large").to_string();
    assert!(said.contains("free; close another session"), "{said}");
    let session = open(door, 1, "wordcount").expect("opened");
    let said = open(door, 1, "wordcount").expect_err("the same").to_string();
    assert!(said.contains("is that of an open session"), "{said}");
    session.set(door, whole(8), false).expect("taken");
    let said = session.set(door, whole(8), false).expect_err("ended").to_string();
    assert_eq!(said, "SET: the last split of this run was given; read the result first");
    let said = door.write(CONTROL + 4096, &[0; 512]).expect_err("no command").to_string();
    assert!(said.starts_with("a command begins at the control address"), "{said}");
    let close = SessionCommand::Close.encode(99).expect("good");
    let said = door.write(CONTROL, &close).expect_err("not open").to_string();
    assert_eq!(said, "session 99 is not open");
    door.write(CONTROL, b"garbage").expect_err("no command");
    for (offset, len) in [
        (CONTROL + 4000, 200),
        (CONTROL - 512, 1024),
        (CONTROL + 33 * SETTINGS.window_bytes - 1, 2),
        (CONTROL + 5 * SETTINGS.window_bytes, 10),
        (CONTROL + 2 * SETTINGS.window_bytes - 10, 20),
    ] {
        door.read(offset, len).expect_err("outside");
    }
    session.close(door).expect("closed");
    assert_eq!(runner.claimed_bytes(), 0);
}

#[test]
fn sessions_are_limited_and_numbers_are_not_used_again() {
    let device = MemoryStorage::from_bytes("device", &[b'\n'; 4096]);
    let mut runner = Runner::new(Isc::new(CONTROL, SETTINGS, installed(LINES)), device, 1 << 30);
    let door: &mut dyn DeviceDoor = &mut runner;
    let mut sessions: Vec<HostSession> = (0..SESSIONS_MAX as u64)
        .map(|nonce| open(door, nonce, "wordcount").expect("open"))
        .collect();
    let said = open(door, 1000, "wordcount").expect_err("full").to_string();
    assert_eq!(said, "32 sessions are open; close one");
    let first = sessions.remove(0);
    first.close(door).expect("closed");
    let old = SessionCommand::Close.encode(1).expect("good");
    open(door, 1000, "wordcount").expect("there is a slot");
    door.write(CONTROL, &old).expect_err("its number is gone");
}

/// A host that closes while pages are on their way: everything is released, and the CLOSE is answered
/// when nothing is under way any more.
#[test]
fn closing_early_releases_everything() {
    for turns in 0..12 {
        let device = MemoryStorage::from_bytes("device", &b"some words\n".repeat(9000));
        let mut runner = runner(device, LINES);
        let session = open(&mut runner, 1, "wordcount").expect("opened");
        session.set(&mut runner, whole(90_000), false).expect("taken");
        for _ in 0..turns {
            runner.turn();
        }
        let close = SessionCommand::Close.encode(1).expect("good");
        let id = runner.start(HostRequest::Write { offset: CONTROL, bytes: &close });
        while runner.turn() {}
        assert!(runner.answer(id).expect("answered").is_ok());
        assert_eq!((runner.claimed_bytes(), runner.program().open_sessions()), (0, 0));
    }
}
