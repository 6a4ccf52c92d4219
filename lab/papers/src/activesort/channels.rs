//! ActiveSort 4.1.3, Figure 7: skipping busy channels against waiting for them. The paper argues for
//! it and plots nothing; here it is measured.

use merganser_inside::active_sort::{ActiveSortSettings, ReadPolicy};

use super::data::{Data, Keys};
use super::throughput::{DataSetSpeeds, PAPER_RAW_READ, firmware, measure, merging};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

const BYTES: u64 = 128 << 20;
const RECORD_BYTES: u64 = 32 << 10;
const POLICIES: [(ReadPolicy, &str); 3] = [
    (ReadPolicy::SkipBusy, "skips busy channels"),
    (ReadPolicy::Wait, "waits for them"),
    (ReadPolicy::Queue, "queues at them"),
];
const LAYOUTS: [(Keys, &str); 4] = [
    (Keys::Random, "random keys"),
    (Keys::Turns, "chunks in turn"),
    (Keys::Bursts(16), "16 records of each in turn"),
    (Keys::Skewed, "skewed keys"),
];
const STARTS: [(u64, &str); 2] = [(0, "aligned chunks"), (32 << 10, "staggered chunks")];
const CHUNK_PAGES: [usize; 4] = [2, 4, 8, 16];

/// Measures every policy on every layout, and the size of the chunk buffers.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let bytes = lab.setup.size_bytes.unwrap_or(BYTES);
    let profile = merging(lab.setup)?;
    let points = POLICIES.len() * (LAYOUTS.len() * STARTS.len() + CHUNK_PAGES.len());
    lab.progress.phase("merging", Some(bytes * points as u64));
    let one = |policy, keys, gap_bytes, chunk_pages| -> Result<DataSetSpeeds, ExperimentError> {
        lab.check_cancelled()?;
        let data = Data { keys, gap_bytes, ..Data::new(bytes, RECORD_BYTES, 4) };
        let settings = ActiveSortSettings { policy, chunk_pages, ..firmware() };
        let measured = measure(&profile, settings, data)?;
        lab.progress.advance(bytes);
        Ok(measured)
    };
    let mut rates =
        OutcomeSection::new("MB/s of reading a merged result, 32 KB records, 8 pages a chunk");
    let mut gain = OutcomeSection::new("skipping, times as fast as waiting");
    let mut bars = Vec::new();
    for (keys, keys_name) in LAYOUTS {
        for (gap, start_name) in STARTS {
            let mut found = Vec::new();
            for (policy, policy_name) in POLICIES {
                let measured = one(policy, keys, gap, 8)?;
                let what = format!("{keys_name}, {start_name}, {policy_name}");
                if found.is_empty() && bars.is_empty() {
                    rates.both("plain read", PAPER_RAW_READ, measured.read);
                }
                rates.ours(&what, measured.merged);
                bars.push((what, measured.merged, false));
                found.push(measured.merged);
            }
            gain.ours(format!("{keys_name}, {start_name}"), found[0] / found[1]);
        }
    }
    let mut pages =
        OutcomeSection::new("MB/s against pages of a chunk buffer, random keys, aligned");
    for chunk_pages in CHUNK_PAGES {
        for (policy, policy_name) in POLICIES {
            let measured = one(policy, Keys::Random, 0, chunk_pages)?;
            pages.ours(format!("{chunk_pages} pages, {policy_name}"), measured.merged);
        }
    }
    let mut outcome = Outcome {
        sections: vec![rates, gain, pages],
        differs: vec![
            "The paper says why busy channels are skipped (4.1.3) and that more than 8 pages a \
             chunk are useless, and measures neither."
                .into(),
            "Waiting is modelled as reading pages in the order in which room for them came up, with \
             the processor free to merge meanwhile; a firmware that spins while it waits would be \
             slower."
                .into(),
            "Aligned chunks all begin on one channel; staggered ones begin on the next one each."
                .into(),
        ],
        chart: Chart::Bars {
            title: "Reading a merged result: busy channels".into(),
            unit: "MB/s".into(),
            bars,
        },
    };
    outcome.differs.extend(lab.setup.changes());
    Ok(outcome)
}
