//! ActiveSort over storage in memory: every format and key, any shape of chunks, reads of any size
//! in any order, devices that fail, several merges at once, refusals.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use merganser_inside::active_sort::descriptor::{
    Descriptor, MergeCommand, MergeId, SectorExtent, SortedChunk,
};
use merganser_inside::active_sort::{ActiveSort, ActiveSortSettings, Asking, ReadPolicy};
use merganser_inside::run::Runner;
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::near::HostRequest;
use merganser_storage::{Clock, Completions, Directory, Geometry, Operation, Storage, StorageExt};
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};
use merganser_testkit::oracle;
use merganser_testkit::patterns::{Pattern, RecordLayout, SampleInput};
use merganser_testkit::{Random, within};
use proptest::prelude::*;

const SECTOR: u64 = 512;
const CONTROL: u64 = 1 << 40;
/// Where results are read: beyond what the device stores, so that reading it by mistake is noticed.
const INTERFACE: u64 = 1 << 32;
const MEMORY: u64 = 64 << 20;

/// A storage with channels, so that the scheduler has something to choose.
struct Striped {
    inner: Arc<dyn Storage>,
}

impl Storage for Striped {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn geometry(&self) -> Geometry {
        Geometry { page_bytes: 512, channels: 4, stripe_bytes: 1024, ..Geometry::default() }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        self.inner.submit(token, operation, completions);
    }
}

fn memory() -> Arc<dyn Storage> {
    Arc::new(Striped { inner: MemoryStorage::new("device") })
}

/// The orders that samples of a layout are sorted by here: all plain keys, and some that must be
/// encoded.
fn orders(layout: RecordLayout) -> Vec<OrderSpec> {
    let with = |format: Format, keys: &[&str], options: &str, separator: Option<u8>| OrderSpec {
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        options: options.to_owned(),
        separator,
        stable: true,
        ..OrderSpec::new(format)
    };
    match layout {
        RecordLayout::Lines { delimiter } | RecordLayout::Numbered { delimiter } => {
            let lines = Format::Lines { delimiter };
            vec![
                with(lines, &[], "", None),
                with(lines, &["1,1"], "", Some(b'\t')),
                with(lines, &["1,1fr"], "", Some(b'\t')),
                with(lines, &["1,1n", "2,2nr"], "", Some(b'\t')),
                with(lines, &["1V"], "", None),
                OrderSpec { stable: false, ..with(lines, &["1,1g"], "r", Some(b'\t')) },
            ]
        }
        RecordLayout::Csv => {
            let csv = Format::csv_rows(b',', false);
            vec![
                with(csv, &[], "", None),
                with(csv, &["1"], "", None),
                with(csv, &["1:r", "2:n"], "", None),
            ]
        }
        RecordLayout::Fixed { bytes, key_bytes } => {
            let fixed = Format::Fixed { bytes };
            let key = format!("0:{key_bytes}");
            let serial = format!("{key_bytes}:8:u64be:r");
            vec![
                with(fixed, &[], "", None),
                with(fixed, &[&key], "", None),
                with(fixed, &[&format!("{key}:r")], "", None),
                with(fixed, &["0:4:i32le", &serial], "", None),
            ]
        }
        RecordLayout::Keyed => {
            vec![with(Format::Keyed, &[], "", None), with(Format::Keyed, &[":r"], "", None)]
        }
    }
}

const LAYOUTS: [RecordLayout; 6] = [
    RecordLayout::Lines { delimiter: b'\n' },
    RecordLayout::Numbered { delimiter: 0 },
    RecordLayout::Csv,
    RecordLayout::Fixed { bytes: 64, key_bytes: 10 },
    RecordLayout::Fixed { bytes: 37, key_bytes: 20 },
    RecordLayout::Keyed,
];

/// Records split into chunks, each sorted, and the bytes that their merge must give.
struct Work {
    descriptor: Descriptor,
    chunks: Vec<Vec<u8>>,
    expected: Vec<u8>,
}

/// Parts `sample` into `count` chunks whose extents of a few sectors are scattered, in pieces drawn
/// from `random`, over a device from `base` on.
fn work(
    sample: &SampleInput,
    order: &OrderSpec,
    count: usize,
    base: u64,
    random: &mut Random,
) -> Work {
    let compiled = order.compile(None).expect("an order");
    let mut parts: Vec<Vec<&Vec<u8>>> = vec![Vec::new(); count];
    let skewed = random.one_in(3);
    for (at, record) in sample.records.iter().enumerate() {
        let part = if skewed { at * count / sample.records.len() } else { random.index(count) };
        parts[part].push(record);
    }
    let mut all: Vec<&Vec<u8>> = parts.concat();
    all.sort_by(|a, b| compiled.compare(a, b));
    let expected: Vec<u8> = all.into_iter().flatten().copied().collect();
    let mut chunks = Vec::new();
    for part in &mut parts {
        part.sort_by(|a, b| compiled.compare(a, b));
        chunks.push(part.iter().flat_map(|record| record.iter().copied()).collect::<Vec<u8>>());
    }
    let mut next = base / SECTOR;
    let mut left: Vec<u64> =
        chunks.iter().map(|chunk| (chunk.len() as u64).div_ceil(SECTOR)).collect();
    let mut places: Vec<Vec<SectorExtent>> = vec![Vec::new(); count];
    while left.iter().any(|sectors| *sectors > 0) {
        let part = random.index(count);
        let sectors = left[part].min(1 + random.below(9));
        if sectors > 0 {
            places[part].push(SectorExtent { first: next, sectors });
            left[part] -= sectors;
            next += sectors + random.below(3);
        }
    }
    let sizes = chunks.iter().map(|chunk| chunk.len() as u64);
    let described =
        sizes.zip(places).map(|(bytes, extents)| SortedChunk { bytes, extents }).collect();
    let first = INTERFACE / SECTOR + base / SECTOR;
    let sectors = (expected.len() as u64).div_ceil(SECTOR) + 1;
    let descriptor = Descriptor {
        merge: MergeId(base),
        order: order.clone(),
        chunks: described,
        interface: SectorExtent { first, sectors },
    };
    Work { descriptor, chunks, expected }
}

impl Work {
    fn store(&self, device: &dyn Storage) {
        for (chunk, bytes) in self.descriptor.chunks.iter().zip(&self.chunks) {
            let mut at = 0;
            for extent in &chunk.extents {
                let n = ((extent.sectors * SECTOR) as usize).min(bytes.len() - at);
                device.write_at(extent.first * SECTOR, &bytes[at..at + n]).expect("written");
                at += n;
            }
        }
    }

    fn interface(&self) -> u64 {
        self.descriptor.interface.bytes().start
    }

    fn open(&self) -> Vec<u8> {
        MergeCommand::Open(self.descriptor.clone()).encode().expect("a good descriptor")
    }

    fn close(&self) -> Vec<u8> {
        MergeCommand::Close(self.descriptor.merge).encode().expect("short")
    }
}

fn settings(policy: ReadPolicy) -> ActiveSortSettings {
    let asking = Asking::BeforeStep;
    ActiveSortSettings { chunk_pages: 3, output_pages: 2, page_bytes: Some(1024), policy, asking }
}

fn runner(device: &Arc<dyn Storage>, settings: ActiveSortSettings) -> Runner<ActiveSort> {
    Runner::new(ActiveSort::new(CONTROL, settings), Arc::clone(device), MEMORY)
}

/// Reads all of a result in reads of `bytes`.
fn read_all(runner: &mut Runner<ActiveSort>, work: &Work, bytes: usize) -> io::Result<Vec<u8>> {
    let mut result = Vec::new();
    while result.len() < work.expected.len() {
        let len = bytes.min(work.expected.len() - result.len());
        result.extend_from_slice(&runner.read(work.interface() + result.len() as u64, len)?);
    }
    Ok(result)
}

#[test]
fn two_chunks_of_lines_are_read_as_one() {
    let device = MemoryStorage::new("ssd");
    device.write_at(0, b"ant\ncat\nfox\n").expect("written");
    device.write_at(4096, b"bee\ndog\n").expect("written");
    let chunk =
        |first, bytes| SortedChunk { bytes, extents: vec![SectorExtent { first, sectors: 1 }] };
    let descriptor = Descriptor {
        merge: MergeId(1),
        order: OrderSpec::new(Format::Lines { delimiter: b'\n' }),
        chunks: vec![chunk(0, 12), chunk(8, 8)],
        interface: SectorExtent { first: 1000, sectors: 1 },
    };
    let mut ssd =
        Runner::new(ActiveSort::new(1 << 30, ActiveSortSettings::default()), device, 64 << 20);
    ssd.write(1 << 30, &MergeCommand::Open(descriptor).encode().expect("good")).expect("opened");
    let sector = ssd.read(1000 * 512, 512).expect("merged");
    assert_eq!(&sector[..20], b"ant\nbee\ncat\ndog\nfox\n");
    assert!(sector[20..].iter().all(|byte| *byte == 0), "the rest of the sector");
    assert_eq!(ssd.claimed_bytes(), 0, "all is read");
}

#[test]
fn every_format_and_key() {
    within(&"every format and key", Duration::from_secs(60), || {
        for (layout, seed) in LAYOUTS.into_iter().zip(1..) {
            for pattern in Pattern::ALL {
                let sample = SampleInput::new(pattern, layout, 120, seed);
                for (at, order) in orders(layout).iter().enumerate() {
                    let mut random = Random::new(seed * 100 + at as u64);
                    let work = work(&sample, order, 1 + random.index(6), 0, &mut random);
                    let device = memory();
                    work.store(&*device);
                    let mut runner = runner(&device, settings(ReadPolicy::SkipBusy));
                    runner.write(CONTROL, &work.open()).expect("opened");
                    let result = read_all(&mut runner, &work, 1 + random.index(5000));
                    let result = result.unwrap_or_else(|e| panic!("{sample}, {order:?}: {e}"));
                    assert!(result == work.expected, "{sample}, {order:?}");
                    if order.keys.is_empty() && order.options.is_empty() {
                        continue;
                    }
                    let compiled = order.compile(None).expect("an order");
                    let what = format!("{sample}, {order:?}");
                    // Equal records stay in the order of chunks, which the split has mixed.
                    let input: Vec<&[u8]> =
                        work.chunks.iter().flat_map(|chunk| layout.split(chunk)).collect();
                    let output = layout.split(&result);
                    oracle::check_sorted(&what, &input, &output, |a, b| compiled.compare(a, b));
                }
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Several merges at once, read in pieces of any size at any place, with several reads under way,
    /// under every policy: every byte is that of the naive merge, and all memory is given back.
    #[test]
    fn any_reads_of_any_merges(
        seed in any::<u64>(),
        policy in prop::sample::select(vec![ReadPolicy::SkipBusy, ReadPolicy::Wait, ReadPolicy::Queue]),
        merges in 1_usize..4,
        sequential in any::<bool>(),
    ) {
        let mut random = Random::new(seed);
        let device = memory();
        let settings = ActiveSortSettings {
            chunk_pages: 1 + random.index(4),
            output_pages: 1 + random.index(3),
            page_bytes: Some(512 << random.index(3)),
            policy,
            asking: if random.one_in(2) { Asking::BeforeStep } else { Asking::AfterStep },
        };
        let mut runner = runner(&device, settings);
        let works: Vec<Work> = (0..merges as u64).map(|number| {
            let layout = LAYOUTS[random.index(LAYOUTS.len())];
            let pattern = Pattern::ALL[random.index(Pattern::ALL.len())];
            let sample = SampleInput::new(pattern, layout, random.index(200), seed);
            let orders = orders(layout);
            let order = &orders[random.index(orders.len())];
            let chunks = 1 + random.index(5);
            let work = work(&sample, order, chunks, number << 24, &mut random);
            work.store(&*device);
            work
        }).collect();
        for work in &works {
            runner.write(CONTROL, &work.open()).expect("opened");
        }
        let mut at = vec![0_u64; merges];
        let mut waiting = Vec::new();
        for _ in 0..60 {
            let number = random.index(merges);
            let interface = works[number].descriptor.interface.bytes();
            let size = interface.end - interface.start;
            let from = if sequential && !random.one_in(10) { at[number] } else { random.below(size) };
            let len = (random.below(5000)).min(size - from) as usize;
            at[number] = (from + len as u64) % size;
            let request = HostRequest::Read { offset: interface.start + from, len };
            waiting.push((number, from as usize, len, runner.start(request)));
            while waiting.len() > random.index(6) {
                let before = waiting.len();
                let mut wrong = None;
                waiting.retain(|&(number, from, len, id)| match runner.answer(id) {
                    None => true,
                    Some(answer) => {
                        let bytes = answer.expect("good").to_vec();
                        let mut expected = works[number].expected.clone();
                        expected.resize(size.max(from as u64 + len as u64) as usize + 8192, 0);
                        if bytes != expected[from..from + len] {
                            wrong = Some((number, from, len));
                        }
                        false
                    }
                });
                prop_assert_eq!(wrong, None);
                prop_assert!(waiting.len() < before || runner.turn(), "stuck");
            }
        }
        for work in &works {
            runner.write(CONTROL, &work.close()).expect("closed");
        }
        while runner.turn() {}
        prop_assert_eq!((runner.claimed_bytes(), runner.program().open_merges()), (0, 0));
        for (_, _, _, id) in waiting {
            prop_assert!(runner.answer(id).is_some(), "a read without an answer");
        }
    }
}

#[test]
fn a_record_longer_than_a_chunk_buffer_is_merged_and_its_memory_counted() {
    let sample = SampleInput::new(Pattern::Lengths, RecordLayout::Keyed, 60, 5);
    let order = OrderSpec::new(Format::Keyed);
    let work = work(&sample, &order, 3, 0, &mut Random::new(9));
    assert!(work.expected.len() > 20_000);
    let device = memory();
    work.store(&*device);
    let mut runner = runner(&device, settings(ReadPolicy::SkipBusy));
    runner.write(CONTROL, &work.open()).expect("opened");
    assert_eq!(runner.claimed_bytes(), (3 * 3 + 2) * 1024);
    let half = work.expected.len() / 2;
    let first = runner.read(work.interface(), half).expect("merged");
    assert!(first[..] == work.expected[..half]);
    assert!(runner.claimed_bytes() > (3 * 3 + 2) * 1024, "records that span pages take memory");
    assert!(read_all(&mut runner, &work, 700).expect("merged") == work.expected);
    assert_eq!(runner.claimed_bytes(), 0);
}

/// Every read of the device in turn fails, is cut short, or brings a flipped bit: whatever comes, no
/// read hangs, the memory comes back, and after the fault the result is right.
#[test]
fn a_page_that_cannot_be_read_is_the_hosts_error() {
    within(&"failing pages", Duration::from_secs(60), || {
        let sample = SampleInput::new(Pattern::Random, RecordLayout::Keyed, 600, 3);
        let order = OrderSpec::new(Format::Keyed);
        let reads = {
            let (device, faulty, work) = faulty(&sample, &order, FaultPlan::quiet(1));
            let before = faulty.counts().reads;
            let mut runner = runner(&device, settings(ReadPolicy::SkipBusy));
            runner.write(CONTROL, &work.open()).expect("opened");
            assert!(read_all(&mut runner, &work, 999).expect("good") == work.expected);
            faulty.counts().reads - before
        };
        assert!(reads > 10);
        let mut noticed = 0;
        for nth in 1..=reads {
            for fault in [Fault::FailRead { nth }, Fault::ShortRead { nth }] {
                let plan = FaultPlan { seed: nth, faults: vec![fault] };
                let (device, _faulty, work) = faulty(&sample, &order, plan);
                let mut runner = runner(&device, settings(ReadPolicy::SkipBusy));
                runner.write(CONTROL, &work.open()).expect("opened");
                let error = match read_all(&mut runner, &work, 999) {
                    Err(error) => error.to_string(),
                    // The next read reads again the bytes that a page read ahead lacks. And the last
                    // page of a chunk has bytes that are not needed.
                    Ok(result) => {
                        assert!(result == work.expected, "{fault:?}");
                        continue;
                    }
                };
                noticed += 1;
                assert!(error.starts_with("merge 0: chunk ") && error.contains("byte"), "{error}");
                while runner.turn() {}
                assert_eq!(runner.claimed_bytes(), 0, "{fault:?}");
                let again = read_all(&mut runner, &work, 4000).expect("the fault is over");
                assert!(again == work.expected, "{fault:?}");
                runner.write(CONTROL, &work.close()).expect("closed");
            }
        }
        assert!(noticed > reads / 2, "{noticed} of {reads}");
    });
}

fn faulty(
    sample: &SampleInput,
    order: &OrderSpec,
    plan: FaultPlan,
) -> (Arc<dyn Storage>, Arc<Faulty>, Work) {
    let work = work(sample, order, 4, 0, &mut Random::new(4));
    let directory: Arc<dyn Directory> = MemoryDirectory::new();
    work.store(&*directory.create("device").expect("new"));
    let faulty = Faulty::new(directory, plan);
    let inner = faulty.open("device", false).expect("it is there");
    (Arc::new(Striped { inner }), faulty, work)
}

#[test]
fn a_record_without_end_is_an_error_that_says_where() {
    let device = MemoryStorage::new("ssd");
    device.write_at(0, b"ant\ncat").expect("written");
    device.write_at(512, b"bee\ndog\n").expect("written");
    let chunk =
        |first, bytes| SortedChunk { bytes, extents: vec![SectorExtent { first, sectors: 1 }] };
    let descriptor = Descriptor {
        merge: MergeId(3),
        order: OrderSpec::new(Format::Lines { delimiter: b'\n' }),
        chunks: vec![chunk(1, 8), chunk(0, 7)],
        interface: SectorExtent { first: 1000, sectors: 1 },
    };
    let mut ssd =
        Runner::new(ActiveSort::new(CONTROL, ActiveSortSettings::default()), device, 64 << 20);
    ssd.write(CONTROL, &MergeCommand::Open(descriptor).encode().expect("good")).expect("opened");
    let error = ssd.read(512_000, 512).expect_err("cut short").to_string();
    let wanted = "merge 3: chunk 1: the record that begins at its byte 4 (byte 4 of the device) does \
                  not end in it";
    assert_eq!(error, wanted);
    assert_eq!(ssd.claimed_bytes(), 0);
}

/// A merge of `chunks` chunks of nothing, at a place of its own.
fn empty_merge(id: u64, chunks: usize) -> Descriptor {
    let extent = |at: u64| SectorExtent { first: 1000 * id + at, sectors: 1 };
    let chunk = |at: usize| SortedChunk { bytes: 4, extents: vec![extent(at as u64)] };
    Descriptor {
        merge: MergeId(id),
        order: OrderSpec::new(Format::Fixed { bytes: 4 }),
        chunks: (0..chunks).map(chunk).collect(),
        interface: SectorExtent { first: (1 << 30) + 1000 * id, sectors: 8 },
    }
}

#[test]
fn one_merge_of_four_chunks_takes_a_mebibyte_and_a_full_device_says_so() {
    let settings =
        ActiveSortSettings { page_bytes: Some(32 << 10), ..ActiveSortSettings::default() };
    let program = ActiveSort::new(CONTROL, settings);
    let mut ssd = Runner::new(program, MemoryStorage::new("ssd"), 5 << 20);
    let open = |ssd: &mut Runner<ActiveSort>, descriptor: Descriptor| {
        ssd.write(CONTROL, &MergeCommand::Open(descriptor).encode().expect("good"))
    };
    let one = (1 << 20) + (256 << 10);
    for id in 1..=4 {
        open(&mut ssd, empty_merge(id, 4)).expect("room");
        assert_eq!(ssd.claimed_bytes(), id * one);
    }
    let refused = open(&mut ssd, empty_merge(5, 4)).expect_err("full");
    assert_eq!(refused.kind(), io::ErrorKind::OutOfMemory);
    assert_eq!(
        refused.to_string(),
        "merge 5 needs 1310720 bytes of the device's memory (4 chunks of 8 pages, and 8 for the \
         result): 0 of 5242880 bytes are free; close another merge, or merge fewer chunks"
    );
    assert_eq!(ssd.program().open_merges(), 4);
    let close = MergeCommand::Close(MergeId(2)).encode().expect("short");
    ssd.write(CONTROL, &close).expect("closed");
    open(&mut ssd, empty_merge(5, 4)).expect("there is room again");
    let error = ssd.write(CONTROL, &close).expect_err("closed already");
    assert_eq!(error.to_string(), "merge 2 is not open");
}

#[test]
fn what_gets_in_the_way_is_refused() {
    let program = ActiveSort::new(CONTROL, ActiveSortSettings::default());
    let mut ssd = Runner::new(program, MemoryStorage::new("ssd"), 1 << 30);
    let mut open = |descriptor: Descriptor| {
        let bytes = MergeCommand::Open(descriptor).encode().expect("good");
        ssd.write(CONTROL, &bytes).map_err(|e| e.to_string())
    };
    assert_eq!(open(empty_merge(1, 2)), Ok(()));
    let refusals = [
        (empty_merge(1, 2), "merge 1 is open already; close it first"),
        (
            Descriptor { interface: empty_merge(1, 1).interface, ..empty_merge(2, 2) },
            "merge 2: its interface covers that of merge 1",
        ),
        (
            Descriptor {
                interface: SectorExtent { first: CONTROL / 512 - 1, sectors: 2 },
                ..empty_merge(2, 2)
            },
            "merge 2: its interface covers the control address",
        ),
        (
            Descriptor {
                chunks: vec![SortedChunk { bytes: 4, extents: vec![empty_merge(1, 1).interface] }],
                ..empty_merge(2, 2)
            },
            "merge 2: one of its chunks is the result of merge 1, which is not stored",
        ),
    ];
    for (descriptor, wanted) in refusals {
        assert_eq!(open(descriptor), Err(wanted.to_owned()));
    }
    let result = empty_merge(1, 1).interface.bytes();
    let refused = |answer: io::Result<()>| answer.expect_err("refused").to_string();
    assert_eq!(
        refused(ssd.write(result.start, &[0; 512])),
        "this range is the result of a merge; it cannot be written"
    );
    assert_eq!(
        refused(ssd.write(CONTROL + 512, &[0; 512])),
        "a command begins at the control address"
    );
    let outside = "it begins or ends outside the result of a merge";
    assert_eq!(refused(ssd.read(result.start - 512, 1024).map(|_| ())), outside);
    assert_eq!(refused(ssd.read(result.end - 512, 1024).map(|_| ())), outside);
    assert!(refused(ssd.write(CONTROL, b"MGNSR")).contains("this is no merge descriptor"));
}

#[test]
fn closing_while_the_host_reads_ends_its_reads() {
    let sample = SampleInput::new(Pattern::Random, RecordLayout::Keyed, 300, 8);
    let work = work(&sample, &OrderSpec::new(Format::Keyed), 4, 0, &mut Random::new(2));
    let device = memory();
    work.store(&*device);
    for turns in 0..20 {
        let mut runner = runner(&device, settings(ReadPolicy::SkipBusy));
        runner.write(CONTROL, &work.open()).expect("opened");
        let all = HostRequest::Read { offset: work.interface(), len: work.expected.len() };
        let read = runner.start(all);
        for _ in 0..turns {
            assert!(runner.turn());
        }
        runner.write(CONTROL, &work.close()).expect("closed");
        let error = runner.answer(read).expect("answered before the close").expect_err("ended");
        assert_eq!(error.to_string(), "merge 0: closed by the host");
        assert_eq!((runner.claimed_bytes(), runner.program().open_merges()), (0, 0));
        // Reads there now give what the device stores: nothing.
        assert!(runner.read(work.interface(), 512).expect("read").is_empty());
    }
}
