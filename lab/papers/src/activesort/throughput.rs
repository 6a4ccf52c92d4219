//! ActiveSort 5.2, Figure 8: the speed of reading a merged result, by the size of records, and
//! plain reads and writes.

use merganser_device::device::{Component, Device};
use merganser_device::profile::SsdProfile;
use merganser_device::ssd::Ssd;
use merganser_inside::active_sort::{ActiveSortSettings, Asking};

use super::aim::{Aim, Judged};
use super::data::{CHUNKS, CONTROL, Data, program, read_merged};
use super::host::{FillContent, ModelledHost};
use crate::lab::{ExperimentSetup, Lab};
use crate::outcome::{Outcome, OutcomeSection};
use crate::statistics::mean;
use merganser_pages::{Chart, ChartSeries};

/// The profile of the device.
pub(crate) const JASMINE: &str = "jasmine";
use crate::error::ExperimentError;

/// Bytes merged at each point, unless asked for.
const BYTES: u64 = 128 << 20;
/// Room for commands at the control address; the host's other places are before it.
const CONTROL_BYTES: u64 = 1 << 20;
/// What the reader asks for at once.
pub(crate) const CALL_BYTES: u64 = 4 << 20;
const RECORDS: [u64; 9] = [128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768];
const KEYS: [u64; 2] = [4, 10];

/// Figures of the paper's text, MB/s and percent (5.2, 3.2.3).
pub(crate) const PAPER_RAW_READ: f64 = 140.8;
const PAPER_RAW_WRITE: f64 = 65.1;
const PAPER_MERGED: f64 = 125.9;
const PAPER_FALL: f64 = 84.9;

/// What one data set gave.
pub(crate) struct DataSetSpeeds {
    /// MB/s of writing the chunks.
    pub write: f64,
    /// MB/s of reading them as they lie.
    pub read: f64,
    /// MB/s of reading the result.
    pub merged: f64,
    /// Part of the merge's time in which a channel, on average, the processor, and the memory's bus were busy.
    pub channels_busy: f64,
    pub processor_busy: f64,
    pub memory_busy: f64,
}

/// Writes the chunks of `data` to a device, reads them back, and reads the merged result.
pub(crate) fn measure(
    profile: &SsdProfile,
    settings: ActiveSortSettings,
    data: Data,
) -> Result<DataSetSpeeds, ExperimentError> {
    let mut ssd = Ssd::new(profile, 1).map_err(ExperimentError::device(profile.name))?;
    ssd.attach(program(settings));
    let sorted = data.sorted();
    let content: FillContent = Box::new(move |offset, out| sorted.fill(offset, out));
    let mut host = ModelledHost::new(ssd, Some(content), None, u64::MAX);
    let rate = |bytes: u64, ns: u64| bytes as f64 * 1000. / ns as f64;

    for chunk in 0..CHUNKS {
        let place = data.place(chunk);
        // Gaps are written too, so that what follows begins on another channel.
        calls(place.start..place.end + data.gap_bytes, |range| host.write(range))?;
    }
    let written = host.now();
    for chunk in 0..CHUNKS {
        calls(data.place(chunk), |range| host.read(range, 0, |_, _| {}))?;
    }
    let (read, before) = (host.now(), busy(&host));
    read_merged(&mut host, &data, CALL_BYTES)?;
    let (merged, after) = (host.now() - read, busy(&host));
    Ok(DataSetSpeeds {
        write: rate(data.bytes() + CHUNKS * data.gap_bytes, written),
        read: rate(data.bytes(), read - written),
        merged: rate(data.bytes(), merged),
        channels_busy: (after[0] - before[0]) / merged as f64,
        processor_busy: (after[1] - before[1]) / merged as f64,
        memory_busy: (after[2] - before[2]) / merged as f64,
    })
}

fn calls(
    range: std::ops::Range<u64>,
    mut call: impl FnMut(std::ops::Range<u64>) -> Result<(), ExperimentError>,
) -> Result<(), ExperimentError> {
    let mut at = range.start;
    while at < range.end {
        let end = (at + CALL_BYTES).min(range.end);
        call(at..end)?;
        at = end;
    }
    Ok(())
}

/// Nanoseconds that dies (their mean), the processor and the memory's bus were busy so far.
fn busy(host: &ModelledHost) -> [f64; 3] {
    let uses = host.ssd().statistics().uses;
    let of = |part: Component| {
        let found: Vec<f64> =
            uses.iter().filter(|u| u.part == part).map(|u| u.busy.0 as f64).collect();
        mean(&found)
    };
    [Component::Die, Component::Processor, Component::Memory].map(of)
}

/// A firmware that merges in its read path and asks for pages afterwards.
pub(crate) fn firmware() -> ActiveSortSettings {
    ActiveSortSettings { asking: Asking::AfterStep, ..ActiveSortSettings::default() }
}

/// The prototype, or the device and with the changes that were asked for.
pub(crate) fn merging(setup: &ExperimentSetup) -> Result<SsdProfile, ExperimentError> {
    let profile = setup.device(JASMINE)?;
    let (found, needed) = (profile.settings.capacity_bytes(), CONTROL + CONTROL_BYTES);
    if found < needed {
        let why = format!("the device holds {found} bytes, and the experiment addresses {needed}");
        return Err(setup.refused(&why));
    }
    Ok(profile)
}

/// Measures every size of record and key.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let bytes = lab.setup.size_bytes.unwrap_or(BYTES);
    let profile = merging(lab.setup)?;
    lab.progress.phase("merging", Some(bytes * (KEYS.len() * RECORDS.len()) as u64));
    let mut measured = Vec::new();
    for key_bytes in KEYS {
        for record_bytes in RECORDS {
            lab.check_cancelled()?;
            let data = Data::new(bytes, record_bytes, key_bytes);
            measured.push((key_bytes, record_bytes, measure(&profile, firmware(), data)?));
            lab.progress.advance(bytes);
        }
    }
    let data = Data::new(bytes, 32_768, 4);
    let asked_first = measure(&profile, ActiveSortSettings::default(), data)?.merged;
    let mut outcome = outcome(profile.name, &measured, asked_first);
    outcome.differs.extend(lab.setup.changes());
    Ok(outcome)
}

fn outcome(device: &str, measured: &[(u64, u64, DataSetSpeeds)], asked_first: f64) -> Outcome {
    let of = |key: u64, record: u64| {
        let found = measured.iter().find(|(k, r, _)| (*k, *r) == (key, record));
        &found.expect("all were measured").2
    };
    let (large, small) = (of(4, 32_768), of(4, 128));
    let fall = |from: f64, to: f64| 100. * (1. - to / from);

    let mut judged = Judged::default();
    let mut fitted = OutcomeSection::new("fitted: each to this very figure by one parameter");
    let read = (PAPER_RAW_READ, large.read);
    judged.both(&mut fitted, "plain read, MB/s", read, Aim::Percent(3.));
    let falls = (PAPER_FALL, fall(large.merged, small.merged));
    let what = "fall from 32 KB to 128-byte records, percent";
    judged.both(&mut fitted, what, falls, Aim::Points(0.5));
    let mut plain = OutcomeSection::new("predicted: MB/s of plain writes");
    let write = (PAPER_RAW_WRITE, large.write);
    judged.both(&mut plain, "plain write, MB/s", write, Aim::Percent(3.));
    let mut predicted = OutcomeSection::new("predicted: MB/s of reading a merged result");
    let merged = (PAPER_MERGED, large.merged);
    judged.both(&mut predicted, "32 KB records, 4-byte key", merged, Aim::Percent(5.));
    let what = "32 KB records, 4-byte key, pages asked for first";
    judged.both(&mut predicted, what, (PAPER_MERGED, asked_first), Aim::Percent(5.));
    for key in KEYS {
        for record in RECORDS.into_iter().rev() {
            if (key, record) != (4, 32_768) {
                predicted
                    .ours(format!("{record}-byte records, {key}-byte key"), of(key, record).merged);
            }
        }
    }
    let mut ratio = OutcomeSection::new("predicted: what merging costs");
    for (what, paper, ours) in [
        ("merged over plain read, 32 KB records", PAPER_RAW_READ, large.read),
        ("merged over plain write, 32 KB records", PAPER_RAW_WRITE, large.write),
    ] {
        let ratios = (PAPER_MERGED / paper, large.merged / ours);
        judged.both(&mut ratio, what, ratios, Aim::Percent(5.));
    }
    for (records, of) in [("32 KB", large), ("128 bytes", small)] {
        ratio.ours(format!("busy part of the time, dies, {records}"), of.channels_busy);
        ratio.ours(format!("busy part of the time, processor, {records}"), of.processor_busy);
        ratio.ours(format!("busy part of the time, memory, {records}"), of.memory_busy);
    }

    let points =
        |key: u64| RECORDS.iter().map(|record| (*record as f64, of(key, *record).merged)).collect();
    let flat = |rate: f64| vec![(128., rate), (32_768., rate)];
    let line = |name: &str, paper: bool, points: Vec<(f64, f64)>| ChartSeries {
        name: name.to_owned(),
        paper,
        points,
    };
    let mut differs = judged.missed();
    differs.extend([
            format!(
                "Theirs: a Jasmine OpenSSD board; ours: the profile {device} of lab/device, with the \
                 engine's own merge running inside it on real records. Every merged record is checked."
            ),
            "Fitted: the channel's overhead to plain reads; the processor's cycles a record to the \
             fall. All else is predicted, plain writes too."
                .into(),
            format!(
                "The paper gives no size of its reads; ours are calls of {} MiB without a cache, \
                 which a block layer splits into requests of 512 KiB.",
                CALL_BYTES >> 20
            ),
            "The paper does not say whether its firmware asks for pages before it merges on or after; \
             all rows but the one that says so are of the latter. It also asks whenever a channel has \
             become idle, so that this hardly matters."
                .into(),
            "A comparison of two keys is charged a word of four bytes at a time; the paper says \
             only that longer keys cost more."
                .into(),
            "Programs share the bus of the device's memory with flash and link. A merged byte crosses it four \
             times (into the memory, twice as it is copied, and out); the bus has 700 MB/s, assumed."
                .into(),
            "Figure 8's other points are not in the paper's text, so they stand without ratio.".into(),
    ]);
    Outcome {
        sections: vec![fitted, plain, predicted, ratio],
        differs,
        chart: Chart::Lines {
            title: "Reading a merged result inside the SSD".into(),
            axes: ["record, bytes".into(), "MB/s".into()],
            series: vec![
                line("4-byte key", false, points(4)),
                line("10-byte key", false, points(10)),
                line("plain read", false, flat(large.read)),
                line("plain write", false, flat(large.write)),
                line(
                    "the paper's, 4-byte key",
                    true,
                    vec![(128., PAPER_MERGED * (1. - PAPER_FALL / 100.)), (32_768., PAPER_MERGED)],
                ),
                line("the paper's plain read", true, flat(PAPER_RAW_READ)),
                line("the paper's plain write", true, flat(PAPER_RAW_WRITE)),
            ],
        },
    }
}
