//! Figure 5.10: writes that deduplication removes, and what that saves.

use std::collections::HashMap;

use merganser_array::Migration;
use merganser_device::request::{DeviceRequest, RequestHashes, RequestKind};

use super::load::Contents;
use super::measured::ResponseTimes;
use super::recorded;
use super::runs::{differs, drawn, enhanced, most, paper, play, play_paper, table_5_2, traces};
use super::setup::{Arrangement, NodeSetup};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::{Chart, ChartSeries};

/// Duplicates in percent of the sweep.
const SWEEP: [u32; 7] = [0, 15, 30, 45, 60, 75, 90];
/// Requests of each point of the sweep.
const SWEEP_REQUESTS: u64 = 150_000;

/// Bytes that reach the SSDs, of each byte that was written.
fn bytes_written(measured: &ResponseTimes) -> f64 {
    let counters = measured.counters.unwrap_or_default();
    measured.flash.host_bytes as f64 / (4096 * counters.pages_written).max(1) as f64
}

fn removed(measured: &ResponseTimes) -> f64 {
    let counters = measured.counters.unwrap_or_default();
    (counters.pages_duplicate + counters.pages_absorbed) as f64
}

/// The traces that were recorded here: their own duplicates, not drawn ones.
fn own(lab: &Lab<'_>) -> Result<OutcomeSection, ExperimentError> {
    let mut section =
        OutcomeSection::new("recorded here: pages written again, percent; paper: its trace");
    for trace in recorded::all() {
        let requests = trace.requests(most(lab))?;
        let written = recorded::written(&requests);
        let name = trace.name;
        let percent = |count: u64| count as f64 / written.pages.max(1) as f64 * 100.;
        section.ours(format!("{name}, read requests"), written.reads as f64);
        section.ours(format!("{name}, write requests"), written.writes as f64);
        section.ours(format!("{name}, pages written"), written.pages as f64);
        let same = format!("{name}, content was written before ({})", trace.paper);
        section.both(same, trace.paper_percent, percent(written.again));
        section.ours(format!("{name}, zeros among these"), percent(written.zeros));
        let hcdd = play_paper(lab, Arrangement::Hcdd, &requests, Contents::Trace)?;
        let counters = hcdd.counters.unwrap_or_default();
        section.ours(format!("{name}, shared by HcDD"), percent(counters.pages_duplicate));
        section
            .ours(format!("{name}, overwritten in the buffer"), percent(counters.pages_absorbed));
    }
    Ok(section)
}

/// Writes of one page whose content is not new, without any device.
#[derive(Debug, Default)]
pub(crate) struct Again {
    pub writes: u64,
    /// It was written before.
    pub drawn: u64,
    /// It was written before, and a page has it still. An engine that releases pages which are overwritten
    /// can share no others.
    pub stored: u64,
}

impl Again {
    pub(crate) fn count(requests: &[DeviceRequest], mut contents: Contents) -> Again {
        let mut found = Again::default();
        let mut pages: HashMap<u64, u128> = HashMap::new();
        // Pages that have a content; none for one that was overwritten everywhere.
        let mut holders: HashMap<u128, u64> = HashMap::new();
        for request in requests.iter().filter(|it| it.kind == RequestKind::Write) {
            let given = contents.give(request.clone());
            let Some(RequestHashes::Whole(content)) = given.content else { continue };
            found.writes += 1;
            let held = holders.get(&content).copied();
            found.drawn += u64::from(held.is_some());
            found.stored += u64::from(held.is_some_and(|pages| pages > 0));
            *holders.entry(content).or_default() += 1;
            if let Some(before) = pages.insert(given.offset, content) {
                *holders.get_mut(&before).expect("a page had it") -= 1;
            }
        }
        found
    }
}

/// Adds the work of HcDD's flash over the hybrid's.
fn spared(section: &mut OutcomeSection, name: &str, hcdd: &ResponseTimes, hybrid: &ResponseTimes) {
    let ratio = |of: &dyn Fn(&ResponseTimes) -> u64| of(hcdd) as f64 / of(hybrid).max(1) as f64;
    section.ours(format!("{name}, bytes written"), ratio(&|it| it.flash.host_bytes));
    section.ours(format!("{name}, pages programmed"), ratio(&|it| it.flash.page_programs));
    section.ours(format!("{name}, blocks erased"), ratio(&|it| it.flash.erases));
    section.ours(format!("{name}, blocks erased, hybrid"), hybrid.flash.erases as f64);
}

/// Measures everything.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let mut fitted =
        OutcomeSection::new("Figure 5.10, duplicate writes: drawn (input) and shared (predicted)");
    let mut saved = OutcomeSection::new("predicted: HcDD over the traditional hybrid, on the SSDs");
    let mut alike = OutcomeSection::new(
        "sensitivity: HcDD over a hybrid whose SSDs are enhanced, too, on the SSDs",
    );
    let mut sweep =
        OutcomeSection::new("predicted: bytes to the SSDs per byte written, by duplicates");
    let mut series = Vec::new();
    for trace in traces() {
        let name = trace.look.name;
        let requests = trace.requests(most(lab))?;
        let share = trace.duplicates();
        let hcdd = play_paper(lab, Arrangement::Hcdd, &requests, drawn(share))?;
        let hybrid = play_paper(lab, Arrangement::Hybrid, &requests, drawn(share))?;
        let counters = hcdd.counters.unwrap_or_default();
        let found = counters.pages_duplicate as f64;
        let writes = hcdd.writes.count() as f64;
        let again = Again::count(&requests, drawn(share));
        let percent = |count: f64| count / writes * 100.;
        fitted.paper(format!("{name}, percent (text)"), trace.text_percent);
        let (theirs, given) = (share * 100., percent(again.drawn as f64));
        fitted.both(format!("{name}, drawn, percent (by the numbers)"), theirs, given);
        let stored = percent(again.stored as f64);
        fitted.ours(format!("{name}, drawn, and a page has it still, percent"), stored);
        fitted.both(format!("{name}, shared by HcDD, percent"), theirs, percent(found));
        fitted.both(format!("{name}, shared by HcDD, number"), trace.removed, found);
        fitted.ours(format!("{name}, overwritten in the buffer"), removed(&hcdd) - found);
        spared(&mut saved, name, &hcdd, &hybrid);
        let setup = enhanced(lab, Arrangement::Hybrid)?;
        spared(&mut alike, name, &hcdd, &play(lab, &setup, &requests, drawn(share))?);
        let short = trace.requests(SWEEP_REQUESTS.min(most(lab)))?;
        let mut points = Vec::new();
        for percent in SWEEP {
            let share = f64::from(percent) / 100.;
            let measured = play_paper(lab, Arrangement::Hcdd, &short, drawn(share))?;
            let bytes = bytes_written(&measured);
            sweep.ours(format!("{name}, {percent} % duplicates"), bytes);
            let setup = paper(lab, Arrangement::Hcdd)?;
            let idle = NodeSetup { migration: Migration::Idle, ..setup };
            let bytes_idle = bytes_written(&play(lab, &idle, &short, drawn(share))?);
            sweep.ours(format!("{name}, {percent} % duplicates, moved when idle"), bytes_idle);
            points.push((f64::from(100 - percent), bytes));
        }
        points.reverse();
        series.push(ChartSeries { name: name.to_owned(), paper: false, points });
    }
    let mut differs = differs(lab);
    differs.push(recorded::DIFFERS.to_owned());
    differs.push("HcDD shares fewer writes than are drawn as duplicates: when the last page with a content is overwritten, the content is gone, and a write of it is stored again. The dissertation does not say what its table of fingerprints does then.".to_owned());
    differs.push("29.15 % for traceKernel is a slip of the text: 20,731 of 70,243 are 29.51 %. \"30 % to 46 % of the total requests\" in the summary is of the writes.".to_owned());
    differs.push(format!("The sweep plays look-alikes of {SWEEP_REQUESTS} requests at most. Bytes to the SSDs include journal, maps and index of the volume. A move \"as soon as possible\" takes one or a few pages and writes a block of the journal for them, so that it costs up to twice the bytes; moves when idle share that block."));
    Ok(Outcome {
        sections: vec![table_5_2(lab)?, fitted, own(lab)?, saved, alike, sweep],
        differs,
        chart: Chart::Lines {
            title: "HcDD: bytes that reach the SSDs".to_owned(),
            axes: [
                "writes that are no duplicates, percent (logarithmic)".to_owned(),
                "bytes written to the SSDs per byte".to_owned(),
            ],
            series,
        },
    })
}
