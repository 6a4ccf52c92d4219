//! ActiveSort 5.3, Figure 9 and Table 3: ActiveSort, merge sort and quicksort of 2 GB on one SSD, with
//! 1 to 8 GB of memory, direct and through the page cache.
//!
//! ```text
//!   ActiveSort   make, sort, write 4 chunks ─────────────────────────────► read merged by the device
//!   merge sort   make, sort, write 4 chunks ─► read, merge, write output ─► read output
//!   quicksort    make and sort in memory, perhaps swapped ─► write output ─► read output
//!                └────────────────── "sorting" ──────────────────────────┘ └──── "reading" ─────────
//! ```

use merganser_device::profile::SsdProfile;
use merganser_device::ssd::Ssd;

use super::aim::{Aim, Judged};
use super::data::{CHUNKS, Data, program, read_merged};
use super::host::{CacheSize, FillContent, ModelledHost, nanoseconds};
use super::swap::Swap;
use super::throughput::{firmware, merging};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

/// The paper's data set; a smaller one gets less memory in proportion.
const DATA_BYTES: u64 = 2 << 30;
const MEMORY: [u64; 4] = [1 << 30, 2 << 30, 4 << 30, 8 << 30];
const RECORD_BYTES: u64 = 4096;
const KEY_BYTES: u64 = 10;
/// What programs read and write at once.
const CALL_BYTES: u64 = 1 << 20;

// The host, a Xeon E5 of 2.4 GHz. None of these is fitted; none is in the paper.

/// Making records: random keys, the rest copied.
const MAKE_BYTES_PER_SECOND: u64 = 1_000_000_000;
/// Copies in memory.
const COPY_BYTES_PER_SECOND: u64 = 4_000_000_000;
/// A comparison of two records through pointers: about a miss of the last cache.
const COMPARE_NS: u64 = 60;
/// Memory that neither page cache nor the sort has.
const SYSTEM_BYTES: u64 = 200 << 20;

/// Table 3, MB, with 1 GB of memory and the page cache: ActiveSort, merge sort; read, written.
const TABLE_3: [(f64, f64); 2] = [(2048.3, 2048.4), (4085.9, 4096.7)];
/// How much less time ActiveSort takes than merge sort with 1 GB, percent (5.3).
const LESS_TIME: f64 = 53.1;
/// What quicksort swaps with 1 GB, MB: out, in (5.3).
const SWAPPED: (f64, f64) = (3.5 * 1024., 514.);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    ActiveSort,
    MergeSort,
    Quicksort,
}

const WAYS: [(Way, &str); 3] = [
    (Way::ActiveSort, "ActiveSort"),
    (Way::MergeSort, "merge sort"),
    (Way::Quicksort, "quicksort"),
];
const MODES: [(bool, &str); 2] = [(true, "buffered"), (false, "direct")];

/// One bar of Figure 9.
struct FigureBar {
    memory: u64,
    buffered: bool,
    way: Way,
    /// Seconds.
    sorting: f64,
    reading: f64,
    /// MiB that the SSD has read and written for the host.
    read: f64,
    written: f64,
    /// MiB swapped out and in.
    swapped: (f64, f64),
}

impl FigureBar {
    fn total(&self) -> f64 {
        self.sorting + self.reading
    }
}

/// Runs all bars of the figure.
pub(crate) fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let bytes = lab.setup.size_bytes.unwrap_or(DATA_BYTES);
    let data = Data::new(bytes, RECORD_BYTES, KEY_BYTES);
    let profile = merging(lab.setup)?;
    let count = MEMORY.len() * MODES.len() * WAYS.len();
    lab.progress.phase("sorting", Some(data.bytes() * count as u64));
    let mut bars = Vec::new();
    for memory in MEMORY {
        for (buffered, _) in MODES {
            for (way, _) in WAYS {
                lab.check_cancelled()?;
                bars.push(Case::new(data, memory, buffered, &profile).run(way)?);
                lab.progress.advance(data.bytes());
            }
        }
    }
    let mut outcome = outcome(profile.name, &bars, data.bytes());
    outcome.differs.extend(lab.setup.changes());
    Ok(outcome)
}

/// A machine with so much memory.
struct Case<'a> {
    profile: &'a SsdProfile,
    data: Data,
    /// As the paper counts it; `scale` of it for the data at hand.
    memory: u64,
    scale: f64,
    buffered: bool,
}

impl<'a> Case<'a> {
    fn new(data: Data, memory: u64, buffered: bool, profile: &'a SsdProfile) -> Self {
        let scale = data.bytes() as f64 / DATA_BYTES as f64;
        Case { profile, data, memory, scale, buffered }
    }

    fn scaled(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.scale) as u64
    }

    /// The host of a program that has `heap` bytes of its own, before an SSD that is used up to
    /// what it writes.
    fn host(
        &self,
        heap: u64,
        content: Option<FillContent>,
    ) -> Result<ModelledHost, ExperimentError> {
        let mut ssd =
            Ssd::new(self.profile, 1).map_err(ExperimentError::device(self.profile.name))?;
        ssd.attach(program(firmware()));
        let memory_bytes = self.scaled(self.memory);
        let free = memory_bytes.saturating_sub(self.scaled(SYSTEM_BYTES) + heap);
        let cache = CacheSize { bytes: free.max(memory_bytes / 20), memory_bytes };
        Ok(ModelledHost::new(ssd, content, self.buffered.then_some(cache), COPY_BYTES_PER_SECOND))
    }

    fn run(&self, way: Way) -> Result<FigureBar, ExperimentError> {
        match way {
            Way::ActiveSort => self.active_sort(),
            Way::MergeSort => self.merge_sort(),
            Way::Quicksort => self.quicksort(),
        }
    }

    fn bar(&self, way: Way, host: &ModelledHost, sorted_at: u64, swapped: (u64, u64)) -> FigureBar {
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let (read, written) = host.traffic();
        FigureBar {
            memory: self.memory,
            buffered: self.buffered,
            way,
            sorting: sorted_at as f64 / 1e9,
            reading: (host.now() - sorted_at) as f64 / 1e9,
            read: mebibytes(read),
            written: mebibytes(written),
            swapped: (mebibytes(swapped.0), mebibytes(swapped.1)),
        }
    }

    fn active_sort(&self) -> Result<FigureBar, ExperimentError> {
        let sorted = self.data.sorted();
        let content: FillContent = Box::new(move |offset, out| sorted.fill(offset, out));
        let mut host = self.host(self.data.chunk_bytes(), Some(content))?;
        self.write_chunks(&mut host)?;
        // The device merges what it has, so it must have all (3.2.3).
        host.sync()?;
        let sorted_at = host.now();
        read_merged(&mut host, &self.data, CALL_BYTES)?;
        Ok(self.bar(Way::ActiveSort, &host, sorted_at, (0, 0)))
    }

    /// Makes, sorts and writes each chunk.
    fn write_chunks(&self, host: &mut ModelledHost) -> Result<(), ExperimentError> {
        for chunk in 0..CHUNKS {
            host.work(nanoseconds(self.data.chunk_bytes(), MAKE_BYTES_PER_SECOND));
            host.work(compares(self.data.chunk_records) * COMPARE_NS);
            let place = self.data.place(chunk);
            for at in place.clone().step_by(CALL_BYTES as usize) {
                let part = at..(at + CALL_BYTES).min(place.end);
                // The records of a call are gathered through pointers.
                host.work(nanoseconds(part.end - part.start, COPY_BYTES_PER_SECOND));
                host.write(part)?;
            }
        }
        Ok(())
    }

    fn merge_sort(&self) -> Result<FigureBar, ExperimentError> {
        let mut host = self.host(self.data.chunk_bytes(), None)?;
        self.write_chunks(&mut host)?;
        let (output, end) = (self.data.bytes(), 2 * self.data.bytes());
        let chunk_bytes = self.data.chunk_bytes();
        let mut at = output;
        // Keys are random, so chunks are used up alike.
        for from in (0..chunk_bytes).step_by(CALL_BYTES as usize) {
            let to = (from + CALL_BYTES).min(chunk_bytes);
            for chunk in 0..CHUNKS {
                let place = self.data.place(chunk);
                host.read(place.start + from..place.start + to, chunk_bytes - to, |_, _| {})?;
            }
            for _ in 0..CHUNKS {
                let part = at..at + (to - from);
                let records = (to - from) / RECORD_BYTES;
                // Two matches of a tree of four, and a copy into the output.
                host.work(2 * records * COMPARE_NS);
                host.work(nanoseconds(to - from, COPY_BYTES_PER_SECOND));
                host.write(part.clone())?;
                at = part.end;
            }
        }
        host.sync()?;
        let sorted_at = host.now();
        read_output(&mut host, output..end)?;
        Ok(self.bar(Way::MergeSort, &host, sorted_at, (0, 0)))
    }

    fn quicksort(&self) -> Result<FigureBar, ExperimentError> {
        let bytes = self.data.bytes();
        let mut host = self.host(bytes, None)?;
        let memory = self.scaled(self.memory).saturating_sub(self.scaled(SYSTEM_BYTES));
        let mut swap = Swap::new(bytes, memory);
        let records = bytes / RECORD_BYTES;
        host.work(nanoseconds(bytes, MAKE_BYTES_PER_SECOND) + swap.fill());
        // A quicksort exchanges about a sixth of what it compares; an exchange is three copies.
        let copied = compares(records) / 6 * 3 * RECORD_BYTES;
        host.work(compares(records) * COMPARE_NS + nanoseconds(copied, COPY_BYTES_PER_SECOND));
        host.work(swap.quicksort());
        for from in (0..bytes).step_by(CALL_BYTES as usize) {
            let to = (from + CALL_BYTES).min(bytes);
            host.work(swap.read(from..to));
            host.write(from..to)?;
        }
        host.sync()?;
        let sorted_at = host.now();
        read_output(&mut host, 0..bytes)?;
        Ok(self.bar(Way::Quicksort, &host, sorted_at, swap.swapped()))
    }
}

fn read_output(
    host: &mut ModelledHost,
    range: std::ops::Range<u64>,
) -> Result<(), ExperimentError> {
    for at in range.clone().step_by(CALL_BYTES as usize) {
        let to = (at + CALL_BYTES).min(range.end);
        host.read(at..to, range.end - to, |_, _| {})?;
    }
    Ok(())
}

/// Comparisons of sorting `records`.
fn compares(records: u64) -> u64 {
    (records as f64 * (records.max(2) as f64).log2()) as u64
}

fn outcome(device: &str, bars: &[FigureBar], bytes: u64) -> Outcome {
    let of = |memory: u64, buffered: bool, way: Way| {
        bars.iter()
            .find(|bar| (bar.memory, bar.buffered, bar.way) == (memory << 30, buffered, way))
            .expect("all were run")
    };
    let scale = bytes as f64 / DATA_BYTES as f64;
    let mut table = OutcomeSection::new("MB through the SSD, 1 GB, buffered (Table 3)");
    let mut judged = Judged::default();
    for ((way, name), (read, written)) in WAYS.into_iter().zip(TABLE_3) {
        let bar = of(1, true, way);
        for (what, paper, ours) in [("read", read, bar.read), ("written", written, bar.written)] {
            let what = format!("{name}, {what}");
            judged.both(&mut table, &what, (paper * scale, ours), Aim::Percent(1.));
        }
    }
    let mut less = OutcomeSection::new("ActiveSort takes less time than merge sort by, percent");
    for (buffered, mode) in MODES {
        for memory in [1, 2, 4, 8] {
            let quotient = of(memory, buffered, Way::ActiveSort).total()
                / of(memory, buffered, Way::MergeSort).total();
            let what = format!("{memory} GB, {mode}");
            match memory {
                1 => {
                    let times = (LESS_TIME, 100. * (1. - quotient));
                    judged.both(&mut less, &what, times, Aim::Points(5.));
                }
                _ => less.ours(what, 100. * (1. - quotient)),
            }
        }
    }
    let mut swapped = OutcomeSection::new("MB that quicksort swaps, 1 GB");
    let quick = of(1, true, Way::Quicksort);
    swapped.both("out", SWAPPED.0 * scale, quick.swapped.0);
    swapped.both("in", SWAPPED.1 * scale, quick.swapped.1);

    let mut seconds = OutcomeSection::new("seconds (Figure 9)");
    let mut picture = Vec::new();
    for (buffered, mode) in MODES {
        for memory in [1, 2, 4, 8] {
            for (way, name) in WAYS {
                let bar = of(memory, buffered, way);
                let what = format!("{memory} GB, {mode}, {name}");
                seconds.ours(format!("{what}, sorting"), bar.sorting);
                seconds.ours(format!("{what}, reading"), bar.reading);
                picture.push((what, bar.total(), false));
            }
        }
    }
    let mut differs = judged.missed();
    differs.extend([
            format!(
                "Theirs: a server with a Jasmine board; ours: the profile {device} with a modelled host. \
                 ActiveSort's records are real and checked when they are read; those of the other two \
                 only take time."
            ),
            "Nothing here is fitted to Figure 9 or Table 3. Assumed, for want of a figure in the \
             paper: making records at 1 GB/s, copies at 4 GB/s, 60 ns a comparison, 200 MB for the \
             system; Linux's dirty_ratio 20 and 10, read-ahead of 128 KB, requests of 512 KB; \
             write-back of two requests at a time."
                .into(),
            "The paper does not say whether its 53.1 % is buffered or direct; ours are compared with it, both ways."
                .into(),
            "Quicksort is a textbook one that exchanges records in place, with pages swapped in \
             clusters of 32 KB to an SSD with a Samsung 840 Pro's sequential rates. The paper's, \
             from the C library, swaps less in and more out than any order of its accesses that we \
             know of explains."
                .into(),
            format!("The data set is {} MiB; memory is in proportion.", bytes >> 20),
    ]);
    Outcome {
        sections: vec![table, less, statements(&of), swapped, seconds],
        differs,
        chart: Chart::Bars {
            title: "Sorting and reading 2 GB".into(),
            unit: "seconds".into(),
            bars: picture,
        },
    }
}

/// What the paper's text says of Figure 9: 1 where it holds.
fn statements<'a>(of: &impl Fn(u64, bool, Way) -> &'a FigureBar) -> OutcomeSection {
    use Way::{ActiveSort, MergeSort, Quicksort};
    let all = || [1, 2, 4, 8].into_iter().flat_map(|memory| [(memory, true), (memory, false)]);
    let total = |memory, buffered, way| of(memory, buffered, way).total();
    let mut section = OutcomeSection::new("what the text says of Figure 9: 1 holds, 0 does not");
    let mut says = |what: &str, holds: bool| section.both(what, 1., f64::from(u8::from(holds)));
    says(
        "ActiveSort is the fastest with 1 GB",
        [true, false].into_iter().all(|buffered| {
            let own = total(1, buffered, ActiveSort);
            own < total(1, buffered, MergeSort) && own < total(1, buffered, Quicksort)
        }),
    );
    says(
        "ActiveSort is faster than merge sort with any memory",
        all().all(|(m, b)| total(m, b, ActiveSort) < total(m, b, MergeSort)),
    );
    let steady: Vec<f64> = all().map(|(m, b)| total(m, b, ActiveSort)).collect();
    let most = steady.iter().copied().fold(0., f64::max);
    let least = steady.iter().copied().fold(f64::MAX, f64::min);
    says("ActiveSort is steady: its slowest bar within a fifth of its fastest", most < 1.2 * least);
    says(
        "ActiveSort's result takes slightly longer to read, direct",
        (1.0..1.3).contains(&(of(1, false, ActiveSort).reading / of(1, false, MergeSort).reading)),
    );
    says(
        "with 8 GB and the page cache the others' reading is very short",
        [MergeSort, Quicksort]
            .into_iter()
            .all(|way| of(8, true, way).reading < 0.2 * of(8, true, ActiveSort).reading),
    );
    says(
        "quicksort suffers from too little memory",
        [true, false]
            .into_iter()
            .all(|buffered| total(1, buffered, Quicksort) > 1.2 * total(8, buffered, Quicksort)),
    );
    section
}
