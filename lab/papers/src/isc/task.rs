//! One map task of a word count, in three places: inside the modelled device, in Hadoop's mapper behind
//! its link, and, which the paper leaves out, as the same SSDlet on the host.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use merganser_device::device::{Component, Device, DeviceStatistics};
use merganser_device::profile::{SsdProfile, SsdSettings};
use merganser_device::results::DevicePower;
use merganser_device::ssd::Ssd;
use merganser_generate::{Generator, RandomLines};
use merganser_inside::isc::command::{ByteExtent, DeviceSplit};
use merganser_inside::isc::host::{DeviceDoor, HostSession};
use merganser_inside::isc::{Isc, IscSettings};
use merganser_map::ssdlet::{SsdletError, builtin, rows};
use merganser_map::{MapInput, MapOptions, MapOutput, PartitionSize, RowSink, map};
use merganser_sort::{Budget, Silent};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use serde_json::json;

use super::paper::{PROFILE, PURE_BASELINE, SPLIT_BYTES};
use crate::activesort::host::{FillContent, ModelledHost};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::statistics::median;

/// Where commands are written, and where the ranges of the split begin.
const CONTROL: u64 = 256 << 30;
const PLACES: [u64; 3] = [0, 1 << 30, (2 << 30) + 4096];
const RECORD_PLACE: u64 = 3 << 30;
/// Bytes that the split begins before a record.
const CUT_BYTES: usize = 50;
/// Memory of a session.
const MEMORY: u64 = 64 << 20;
/// Between two looks at the status; shorter for a smaller split, so that there are as many.
const POLL_NS: u64 = 50_000_000;
/// The host's processor for one of them: a request past the page cache.
const POLL_PROCESSOR_SECONDS: f64 = 20e-6;
/// The clock of the paper's host, MHz.
const PAPER_MHZ: f64 = 3400.;
/// Text on which the SSDlet's own speed is measured here, and how often.
const NATIVE_BYTES: usize = 8 << 20;
const NATIVE_ROUNDS: usize = 3;

/// A map task in one place. Times are for a split of [`SPLIT_BYTES`].
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskPlace {
    /// Seconds without setup and cleanup.
    pub pure: f64,
    /// Seconds of it in which the host's processor works.
    pub processor: f64,
    /// Bytes that cross the link to the host.
    pub read_bytes: f64,
    /// Energy of the device beyond its idle power, in joules.
    pub device_joules: f64,
}

/// A map task in all places.
pub(super) struct SplitTask {
    /// Inside the device.
    pub isc: TaskPlace,
    /// Hadoop's mapper on the host.
    pub hadoop: TaskPlace,
    /// The same SSDlet on the host.
    pub native: TaskPlace,
    /// Seconds in which the link carries the split.
    pub link: f64,
    /// The same as one session a range, over one session for all.
    pub sessions: f64,
    /// Part of the time in which the device's processor, its memory and a die (their mean) are busy.
    pub busy: [f64; 3],
    /// Bandwidth inside over the link's: by the parts, and with the overhead of a page.
    pub ratios: [f64; 2],
    /// Sentences that say which data was mapped, and what differs from the paper.
    pub differs: Vec<String>,
}

/// A split that begins and ends within records, and the record that crosses its end.
struct SplitInput {
    text: Arc<Vec<u8>>,
    start_offset: u64,
    end_offset: u64,
    record: Arc<Vec<u8>>,
}

fn model(error: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::Model(format!("the modelled device: {error}"))
}

impl SplitInput {
    fn new(bytes: usize) -> SplitInput {
        let lines = RandomLines::new(1);
        let mut text = Vec::with_capacity(bytes + (64 << 10));
        let mut number = 0;
        while text.len() < bytes + CUT_BYTES + 1024 {
            lines.records(number..number + 100, &mut text);
            number += 100;
        }
        let after = |at: usize| at + memchr(&text[at..]) + 1;
        let end = CUT_BYTES + bytes;
        let last = text[..end].iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
        SplitInput {
            start_offset: (after(CUT_BYTES) - CUT_BYTES) as u64,
            end_offset: (end - last) as u64,
            record: Arc::new(text[last..after(end)].to_vec()),
            text: Arc::new(text[CUT_BYTES..end].to_vec()),
        }
    }

    /// The ranges of the split on the device, and their bytes in the text.
    fn pieces(&self) -> Vec<(u64, std::ops::Range<usize>)> {
        let len = self.text.len();
        let each = (len / PLACES.len()).next_multiple_of(4096);
        let range = |number: usize| (number * each).min(len)..((number + 1) * each).min(len);
        let pieces = PLACES.iter().enumerate().map(|(number, place)| (*place, range(number)));
        pieces.filter(|(_, range)| !range.is_empty()).collect()
    }

    /// The records that the task maps.
    fn mapped(&self) -> [&[u8]; 2] {
        let end = self.text.len() - self.end_offset as usize;
        [&self.text[self.start_offset as usize..end], &self.record]
    }

    fn words(&self) -> HashMap<&[u8], i64> {
        let mut words = HashMap::new();
        for text in self.mapped() {
            for word in text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
                *words.entry(word).or_insert(0) += 1;
            }
        }
        words
    }

    /// The whole split, and the record as a split of its own.
    fn splits(&self) -> [DeviceSplit; 2] {
        let extent = |offset, bytes: usize| ByteExtent {
            offset,
            bytes: (bytes as u64).next_multiple_of(512),
        };
        let extents = self.pieces().iter().map(|(at, range)| extent(*at, range.len())).collect();
        let bytes = self.text.len() as u64;
        let (start_offset, end_offset) = (self.start_offset, self.end_offset);
        let split =
            DeviceSplit { input: 0, place: start_offset, bytes, start_offset, end_offset, extents };
        let bytes = self.record.len();
        let record = DeviceSplit {
            input: 0,
            place: split.mapped().end,
            bytes: bytes as u64,
            start_offset: 0,
            end_offset: 0,
            extents: vec![extent(RECORD_PLACE, bytes)],
        };
        [split, record]
    }
}

fn memchr(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').expect("lines")
}

/// A modelled host is a door of its device.
struct HostLink<'a> {
    host: &'a mut ModelledHost,
    poll_ns: u64,
    polls: u64,
}

impl DeviceDoor for HostLink<'_> {
    fn read(&mut self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len);
        let range = offset..offset + len as u64;
        let read = self.host.read(range, 0, |_, part| bytes.extend_from_slice(part));
        read.map_err(|e| io::Error::other(e.to_string()))?;
        Ok(bytes)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.host.command(offset, bytes).map_err(|e| io::Error::other(e.to_string()))
    }

    fn pause(&mut self) -> io::Result<()> {
        self.polls += 1;
        self.host.work(self.poll_ns);
        Ok(())
    }
}

impl SplitTask {
    /// Runs a task of [`SPLIT_BYTES`], or of fewer, whose times are then scaled.
    pub(super) fn measure(lab: &Lab<'_>) -> Result<SplitTask, ExperimentError> {
        let bytes = lab.setup.size_bytes.unwrap_or(SPLIT_BYTES).clamp(64 << 10, SPLIT_BYTES);
        lab.progress.phase("mapping in the device", Some(3 * bytes));
        let input = SplitInput::new(bytes as usize);
        let scale = SPLIT_BYTES as f64 / bytes as f64;
        let profile = SsdProfile::preset(PROFILE).map_err(ExperimentError::device(PROFILE))?;
        let profile = lab.setup.changed(profile)?;

        let mut host = filled(&profile, &input)?;
        let (start, before) = (host.now(), host.traffic().0);
        for (place, range) in input.pieces() {
            let end = place + range.len() as u64;
            host.read(place..end.next_multiple_of(512), 0, |_, _| {})?;
        }
        let link = (host.now() - start) as f64 / 1e9 * scale;
        let read_bytes = (host.traffic().0 - before) as f64 * scale;
        lab.progress.advance(bytes);
        lab.check_cancelled()?;

        let (start, before) = (host.now(), host.ssd().statistics());
        let poll_ns = (POLL_NS as f64 / scale) as u64;
        let mut door = HostLink { host: &mut host, poll_ns, polls: 0 };
        let result = in_device(&mut door, &input)?;
        let polls = door.polls as f64;
        let took = (host.now() - start) as f64;
        let after = host.ssd().statistics();
        check(&input, &result)?;
        lab.progress.advance(bytes);
        lab.check_cancelled()?;

        let mut host = filled(&profile, &input)?;
        let start = host.now();
        one_session_a_range(&mut HostLink { host: &mut host, poll_ns, polls: 0 }, &input)?;
        let sessions = (host.now() - start) as f64 / took;
        lab.progress.advance(bytes);
        lab.check_cancelled()?;

        let native = Native::measure(&input.text)?;
        let power = DevicePower::ssd(0., "");
        let statistics = DeviceStatistics::default();
        let carried = joules(&power, &statistics, &carrying(&profile.settings, SPLIT_BYTES));
        let pure = took / 1e9 * scale;
        let isc = TaskPlace {
            pure,
            processor: polls * POLL_PROCESSOR_SECONDS,
            // As many polls as for a whole split, and the result. It grows with the vocabulary, which
            // is all there after a few MB.
            read_bytes: (after.read_bytes - before.read_bytes) as f64,
            device_joules: joules(&power, &before, &after) * scale,
        };
        let hadoop = TaskPlace {
            pure: PURE_BASELINE.max(link),
            processor: PURE_BASELINE,
            read_bytes,
            device_joules: carried,
        };
        let own = SPLIT_BYTES as f64 / native.bytes_per_second;
        let native_place = TaskPlace { pure: own.max(link), processor: own, ..hadoop };
        let of = |part: Component| {
            let uses = after.uses.iter().zip(&before.uses).filter(|(now, _)| now.part == part);
            let busy: Vec<f64> =
                uses.map(|(now, then)| (now.busy.0 - then.busy.0) as f64 / took).collect();
            crate::statistics::mean(&busy)
        };
        Ok(SplitTask {
            isc,
            hadoop,
            native: native_place,
            link,
            sessions,
            busy: [of(Component::Processor), of(Component::Memory), of(Component::Die)],
            ratios: ratios(&profile.settings),
            differs: differs(&profile.settings, bytes, native)
                .into_iter()
                .chain(lab.setup.changes())
                .collect(),
        })
    }
}

/// A host before a device that holds the input.
fn filled(profile: &SsdProfile, input: &SplitInput) -> Result<ModelledHost, ExperimentError> {
    let mut ssd = Ssd::new(profile, 1).map_err(ExperimentError::device(PROFILE))?;
    ssd.attach(Box::new(Isc::new(CONTROL, IscSettings::default(), Arc::new(builtin::open))));
    let pieces = input.pieces();
    let stored: Vec<(u64, std::ops::Range<usize>, Arc<Vec<u8>>)> = pieces
        .iter()
        .map(|(at, range)| (*at, range.clone(), Arc::clone(&input.text)))
        .chain([(RECORD_PLACE, 0..input.record.len(), Arc::clone(&input.record))])
        .collect();
    let written = stored.clone();
    let content: FillContent = Box::new(move |offset, out| {
        let of = |(at, range, _): &&(u64, std::ops::Range<usize>, Arc<Vec<u8>>)| {
            (*at..*at + range.len() as u64).contains(&offset)
        };
        if let Some((at, range, text)) = stored.iter().find(of) {
            let from = range.start + (offset - at) as usize;
            let len = out.len().min(range.end - from);
            out[..len].copy_from_slice(&text[from..from + len]);
        }
    });
    let mut host = ModelledHost::new(ssd, Some(content), None, u64::MAX);
    for (at, range, _) in written {
        host.write(at..(at + range.len() as u64).next_multiple_of(512))?;
    }
    Ok(host)
}

/// OPEN, a SET of the split and one of its split record, GET, CLOSE.
fn in_device(door: &mut HostLink<'_>, input: &SplitInput) -> Result<Vec<u8>, ExperimentError> {
    let session =
        HostSession::open(door, CONTROL, 1, "wordcount", &json!({}), MEMORY).map_err(model)?;
    let [split, record] = input.splits();
    session.set(door, split, true).map_err(model)?;
    session.set(door, record, false).map_err(model)?;
    let status = session.wait(door).map_err(model)?;
    let result = session.result(door, &status).map_err(model)?;
    session.close(door).map_err(model)?;
    Ok(result)
}

/// A session for each range, which shows what SET saves. Records are cut at the ends of ranges, which is
/// of no importance for the time.
fn one_session_a_range(door: &mut HostLink<'_>, input: &SplitInput) -> Result<(), ExperimentError> {
    let [split, record] = input.splits();
    let ranges = split.extents.iter().map(|extent| DeviceSplit {
        input: 0,
        place: 0,
        bytes: extent.bytes,
        start_offset: 0,
        end_offset: 0,
        extents: vec![*extent],
    });
    for split in ranges.chain([record]) {
        let session =
            HostSession::open(door, CONTROL, 1, "wordcount", &json!({}), MEMORY).map_err(model)?;
        session.set(door, split, false).map_err(model)?;
        let status = session.wait(door).map_err(model)?;
        session.result(door, &status).map_err(model)?;
        session.close(door).map_err(model)?;
    }
    Ok(())
}

/// That the device counted every word.
fn check(input: &SplitInput, result: &[u8]) -> Result<(), ExperimentError> {
    let expected = input.words();
    let found = rows(result).map_err(model)?;
    let same = |(key, value): &(Vec<u8>, Vec<u8>)| {
        let count = value[..].try_into().map(i64::from_le_bytes);
        expected.get(&key[..]).copied() == count.ok()
    };
    if found.len() != expected.len() || !found.iter().all(same) {
        return Err(ExperimentError::Model("the modelled device counted other words".to_owned()));
    }
    Ok(())
}

/// The time of the device's parts to carry `bytes` to the host.
fn carrying(settings: &SsdSettings, bytes: u64) -> DeviceStatistics {
    use merganser_device::device::Use;
    use merganser_device::request::SimTime;
    let ns = |amount: f64, rate: u64| SimTime((amount * 1e9 / rate as f64) as u64);
    let bytes = bytes as f64;
    let busy = |part, busy| Use { part, index: 0, busy, services: 1 };
    let pages = bytes / settings.page_bytes as f64;
    let channel = ns(bytes, settings.channel_bytes_per_second).0
        + (pages * settings.channel_overhead_ns as f64) as u64;
    let die = channel + (pages * settings.read_ns as f64) as u64;
    DeviceStatistics {
        uses: vec![
            busy(Component::Link, ns(bytes, settings.link_bytes_per_second)),
            busy(Component::Memory, ns(2. * bytes, settings.dram_bytes_per_second)),
            busy(Component::Channel, SimTime(channel)),
            busy(Component::Die, SimTime(die)),
        ],
        ..DeviceStatistics::default()
    }
}

/// The energy of the parts between two counts.
fn joules(power: &DevicePower, before: &DeviceStatistics, after: &DeviceStatistics) -> f64 {
    let watts = |part: Component| match part {
        Component::Link => power.link_watts,
        Component::Processor => power.processor_watts,
        Component::Memory => power.memory_watts,
        Component::Channel => power.channel_watts,
        Component::Die => power.die_watts,
        Component::Spindle => power.spindle_watts,
    };
    let busy = |at: usize| {
        let then = before.uses.get(at).map_or(0, |used| used.busy.0);
        (after.uses[at].busy.0 - then) as f64 / 1e9
    };
    (0..after.uses.len()).map(|at| busy(at) * watts(after.uses[at].part)).sum()
}

/// Bandwidth of the channels over that of the link: their rate alone, and with the overhead of a page.
fn ratios(settings: &SsdSettings) -> [f64; 2] {
    let SsdSettings { channels, channel_bytes_per_second: rate, page_bytes, .. } = *settings;
    let link = settings.link_bytes_per_second as f64;
    let page_seconds = page_bytes as f64 / rate as f64 + settings.channel_overhead_ns as f64 / 1e9;
    let channels = channels as f64;
    [channels * rate as f64 / link, channels * page_bytes as f64 / page_seconds / link]
}

/// The SSDlet's own speed on this machine, scaled to the clock of the paper's.
#[derive(Debug, Clone, Copy)]
struct Native {
    bytes_per_second: f64,
    measured: f64,
    mhz: Option<f64>,
}

struct RowCounter(u64);

impl RowSink for RowCounter {
    fn keyed(&mut self, _: &[u8], _: &[u8]) -> Result<bool, SsdletError> {
        self.0 += 1;
        Ok(true)
    }

    fn records(&mut self, _: &[u8]) -> Result<bool, SsdletError> {
        Ok(true)
    }
}

impl Native {
    /// Counts words of `text` in this process, in memory, with one thread.
    fn measure(text: &[u8]) -> Result<Native, ExperimentError> {
        let text = &text[..text.len().min(NATIVE_BYTES)];
        let failed =
            |e: SsdletError| ExperimentError::Model(format!("the SSDlet on the host: {e}"));
        let ssdlet = builtin::open("wordcount", &json!({})).map_err(failed)?;
        let storage = MemoryStorage::from_bytes("text", text);
        let mut rates = Vec::new();
        for _ in 0..NATIVE_ROUNDS {
            let options = MapOptions {
                budget: Budget::new(256 << 20),
                threads: 1,
                partition: PartitionSize::Auto,
                temp: vec![MemoryDirectory::new()],
            };
            let inputs =
                vec![MapInput::Storage { storage: Arc::clone(&storage) as _, range: None }];
            let started = Instant::now();
            let mut counted = RowCounter(0);
            map(&*ssdlet, inputs, MapOutput::Rows(&mut counted), &options, &Silent)
                .map_err(failed)?;
            rates.push(text.len() as f64 / started.elapsed().as_secs_f64());
        }
        let (measured, mhz) = (median(rates), clock_mhz());
        let scaled = mhz.map_or(measured, |mhz| measured * PAPER_MHZ / mhz);
        Ok(Native { bytes_per_second: scaled, measured, mhz })
    }
}

/// The clock of this machine's first processor.
fn clock_mhz() -> Option<f64> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
    line.split(':').nth(1)?.trim().parse().ok().filter(|mhz| *mhz > 0.)
}

fn differs(settings: &SsdSettings, bytes: u64, native: Native) -> Vec<String> {
    let cycles = settings.meter_cycles_per_1024 as f64 / 1024.;
    let megabytes = bytes as f64 / 1e6;
    let rate = native.measured / 1e6;
    let clock = match native.mhz {
        Some(mhz) => format!("times 3400 MHz over the {mhz:.0} MHz of this machine"),
        None => "not scaled, because this system does not tell its clock".to_owned(),
    };
    vec![
        format!(
            "Theirs: wordcount in the firmware of an SSD. Ours: the SSDlet wordcount on {megabytes:.1} MB \
             of text (8,192 words, Zipf) in three ranges of the modelled device `isc`, its split record in \
             a range of its own, scaled to a split of 67.1 MB. Every count is checked."
        ),
        format!(
            "Fitted: {cycles:.1} cycles of a 400 MHz processor per byte, to the pure map of Figure 10c; \
             and the overhead of a page on its channel, to the bandwidth ratio 3.8, which changes no \
             other figure: the processor is what limits the map."
        ),
        "Tables that begin with \"follows\" are arithmetic with the paper's constants and the fitted map: \
         a device whose channels are ten times as slow changes none of these figures by more than 2 %. Tables \
         that begin with \"predicted\" are decided by the modelled device."
            .to_owned(),
        "Hadoop's mapper on the host is not run: its pure map is the paper's. So the gain of Figure 10c \
         compares C in firmware with Java in Hadoop, and not the link with the channels: the baseline uses \
         less than a hundredth of the link."
            .to_owned(),
        format!(
            "The same SSDlet on the host is what the paper leaves out. {rate:.1} MB/s were measured in \
             this process with one thread, {clock}. This is the one figure here that depends on the \
             machine."
        ),
        "The paper repeats each experiment 30 times. Nothing in the model varies, so it runs once: \
         every run gives the same figures but for the SSDlet on the host."
            .to_owned(),
    ]
}
