//! Traces with hashes that were recorded for this project, as the dissertation recorded its own.
//! `traces/README.md` says what they are and how they were made.

use std::collections::HashSet;
use std::io::{BufReader, Cursor};

use merganser_device::request::{CONTENT_BYTES, DeviceRequest, RequestHashes, RequestKind};
use merganser_device::trace::{self, TraceError, TraceOptions};
use merganser_map::MapInput;
use merganser_sort::Budget;
use merganser_sort::run::magic::ContentKind;

use crate::error::ExperimentError;

/// Memory to decompress a trace.
const MEMORY_BYTES: u64 = 64 << 20;
/// The number of the page of zeros in these traces, whose contents are numbered.
const ZEROS: u128 = 0;

/// A recorded trace.
pub(super) struct RecordedTrace {
    /// Its subject.
    pub name: &'static str,
    /// The dissertation's trace of the same kind.
    pub paper: &'static str,
    /// Duplicates among the writes of that one, in percent (Figure 5.10, by its numbers).
    pub paper_percent: f64,
    packed: &'static [u8],
}

/// How they differ from the dissertation's.
pub(super) const DIFFERS: &str = "\"Recorded here\" are a compile of zstd and a word count of Merganser, on ext4 on an emulated disk, with a hash of each written page (traces/README.md). The dissertation compiled a kernel and ran Phoenix in little memory: programs, sizes and memory are others, and so are the rates.";

/// All of them.
pub(super) fn all() -> [RecordedTrace; 2] {
    [
        RecordedTrace {
            name: "compile",
            paper: "traceKernel",
            paper_percent: 29.51,
            packed: include_bytes!("../../traces/compile.trace.zst"),
        },
        RecordedTrace {
            name: "word count",
            paper: "tracePhoenix",
            paper_percent: 46.93,
            packed: include_bytes!("../../traces/wordcount.trace.zst"),
        },
    ]
}

impl RecordedTrace {
    /// Its first requests, `most` at most.
    pub(super) fn requests(&self, most: u64) -> Result<Vec<DeviceRequest>, ExperimentError> {
        let failed = |error: TraceError| ExperimentError::Model(format!("{}: {error}", self.name));
        let packed = Box::new(Cursor::new(self.packed));
        let budget = Budget::new(MEMORY_BYTES);
        let MapInput::Stream { reader, .. } =
            MapInput::detect_stream(self.name.to_owned(), packed, ContentKind::Text, &budget)
        else {
            unreachable!("a stream stays one");
        };
        let trace =
            trace::read(BufReader::new(reader), &TraceOptions::default()).map_err(failed)?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        trace.take(most).collect::<Result<_, _>>().map_err(failed)
    }
}

/// The writes of a trace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WriteCounts {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Pages with a hash.
    pub pages: u64,
    /// Those whose content was written before.
    pub again: u64,
    /// Those of them that are zeros.
    pub zeros: u64,
}

/// Counts the writes.
pub(super) fn written(requests: &[DeviceRequest]) -> WriteCounts {
    let mut found = WriteCounts::default();
    let mut seen = HashSet::new();
    for request in requests {
        match request.kind {
            RequestKind::Read => found.reads += 1,
            RequestKind::Write => found.writes += 1,
            RequestKind::Trim | RequestKind::Flush => continue,
        }
        let hashes = match &request.content {
            Some(RequestHashes::Whole(hash)) if request.len <= CONTENT_BYTES => {
                std::slice::from_ref(hash)
            }
            Some(RequestHashes::Pages(hashes)) => &hashes[..],
            _ => continue,
        };
        for hash in hashes {
            let is_again = !seen.insert(*hash);
            found.pages += 1;
            found.again += u64::from(is_again);
            found.zeros += u64::from(is_again && *hash == ZEROS);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_device::request::SimTime;

    #[test]
    fn pages_that_were_written_before_are_counted() {
        let (arrival, offset) = (SimTime(0), 0);
        let of = |kind, len, content| DeviceRequest { arrival, kind, offset, len, content };
        let requests = [
            of(RequestKind::Write, 12_288, Some(RequestHashes::Pages([5, 0, 5].into()))),
            of(RequestKind::Write, 4096, Some(RequestHashes::Whole(0))),
            // A hash of several pages together says nothing about each.
            of(RequestKind::Write, 8192, Some(RequestHashes::Whole(5))),
            of(RequestKind::Read, 4096, None),
            of(RequestKind::Flush, 0, None),
        ];
        let expected = WriteCounts { reads: 1, writes: 3, pages: 4, again: 2, zeros: 1 };
        assert_eq!(written(&requests), expected);
    }

    /// traces/README.md has these numbers.
    #[test]
    fn the_recorded_traces_are_what_their_page_says() {
        let page = include_str!("../../traces/README.md");
        for trace in all() {
            let requests = trace.requests(u64::MAX).unwrap_or_default();
            assert!(requests.is_sorted_by_key(|request| request.arrival));
            let WriteCounts { reads, writes, pages, again, zeros } = written(&requests);
            let row =
                format!("| {} | {reads} | {writes} | {pages} | {again} | {zeros} |", trace.name);
            assert!(page.contains(&row), "{row}");
        }
    }
}
