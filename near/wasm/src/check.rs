//! The whole of a guest, tried on a sample.
//!
//! ```text
//!   sample ──► long chunks, one worker ──────────────► result ─┐
//!         └──► short chunks, two workers in turn ────► result ─┴─► must be equal
//! ```
//!
//! The engine cuts inputs as it likes and runs as many workers as there are processors, so a guest whose
//! result depends on either is wrong, although every single call succeeds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use merganser_map::ssdlet::{
    Chunk, CollectedOutput, Combine, Emitter, Ssdlet, SsdletError, SsdletOutput,
};
use merganser_sort::error::stray_quote;
use merganser_sort::record::{Format, InputRecords, StrayQuote, Tail};

use crate::limits::WasmLimits;
use crate::section::Declared;
use crate::ssdlet::{WasmSsdlet, open};
use crate::{failed, plain};

/// The longest sample, in bytes: results are kept in memory.
const SAMPLE_BYTES_MAX: usize = 64 << 20;
/// Length of a made-up sample, in bytes.
const MADE_UP_BYTES: usize = 1 << 20;
/// About the length of the chunks, in bytes.
const LONG_CHUNK_BYTES: usize = 256 << 10;
const SHORT_CHUNK_BYTES: usize = 10_000;
/// How often a guest is started to measure it.
const STARTS: usize = 21;

/// The facts about a good guest.
#[derive(Debug, Clone)]
pub struct CheckedGuest {
    /// What it says about itself.
    pub declared: Declared,
    /// SHA-256 of the module.
    pub digest: [u8; 32],
    /// Length of the module in bytes.
    pub module_bytes: usize,
    /// Memory of one worker that a map reserves, in bytes.
    pub worker_bytes: u64,
    /// How long it takes to compile the module.
    pub compile_time: Duration,
    /// How long it takes to start a guest, its arguments included: the median of several.
    pub start_time: Duration,
    /// Length of the sample, in bytes.
    pub sample_bytes: usize,
    /// Fuel that the sample took, in long chunks.
    pub fuel: u64,
    /// How long that took.
    pub run_time: Duration,
    /// Rows of the result, combined.
    pub rows: u64,
}

/// Opens the module, and runs it over `sample` twice: the results must not depend on how it is cut.
/// Without a sample, one is made up for the guest's input format.
///
/// # Errors
/// As [`open`]; whatever the guest does wrong; a sample that is damaged or longer than 64 MiB.
pub fn check(
    bytes: &[u8],
    args: &[u8],
    limits: WasmLimits,
    sample: Option<&[u8]>,
) -> Result<CheckedGuest, SsdletError> {
    let ssdlet = open(bytes, args, limits)?;
    let description = ssdlet.description();
    let sample = match sample {
        Some(sample) => completed(sample, description.input)?,
        None => made_up(description.input),
    };
    let start_time = start_time(&ssdlet)?;
    let (long, fuel, run_time) = run(&ssdlet, &sample, LONG_CHUNK_BYTES, 1)?;
    let (short, ..) = run(&ssdlet, &sample, SHORT_CHUNK_BYTES, 2)?;
    let rows = match description.output {
        SsdletOutput::Keyed { value, combine, .. } => {
            let combined = |collect: CollectedOutput| {
                combined(collect, value, combine).map_err(|e| failed(&description.name, e))
            };
            let (long, short) = (combined(long)?, combined(short)?);
            differing(&long, &short)
                .map_err(|key| depends(&description.name, &format!(" (key '{key}')")))?;
            long.values().map(|values| values.len() as u64).sum()
        }
        SsdletOutput::Ordered { format } => {
            if long.ordered != short.ordered {
                return Err(depends(&description.name, ""));
            }
            count(format, &long.ordered)
        }
    };
    Ok(CheckedGuest {
        declared: ssdlet.declared().clone(),
        digest: ssdlet.digest(),
        module_bytes: ssdlet.module_bytes(),
        worker_bytes: description.worker_bytes,
        compile_time: ssdlet.compile_time(),
        start_time,
        sample_bytes: sample.len(),
        fuel,
        run_time,
        rows,
    })
}

fn depends(name: &str, which: &str) -> SsdletError {
    failed(
        name,
        format_args!(
            "its result{which} depends on how the input is cut into chunks, or on the number of workers; it may keep nothing from one chunk to the next but what its combine makes good"
        ),
    )
}

fn start_time(ssdlet: &WasmSsdlet) -> Result<Duration, SsdletError> {
    let mut times = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let begun = Instant::now();
        let worker = ssdlet.worker()?;
        times.push(begun.elapsed());
        drop(worker);
    }
    times.sort();
    Ok(times[STARTS / 2])
}

/// The result of `sample` in chunks of about `piece` bytes, with its fuel and time.
fn run(
    ssdlet: &WasmSsdlet,
    sample: &[u8],
    piece: usize,
    workers: usize,
) -> Result<(CollectedOutput, u64, Duration), SsdletError> {
    let mut cuts = Vec::new();
    ssdlet.description().input.cut(sample, piece, &mut cuts);
    let mut workers: Vec<_> = (0..workers).map(|_| ssdlet.worker()).collect::<Result<_, _>>()?;
    // The start of a guest is not the sample's.
    for worker in &mut workers {
        worker.meter();
    }
    let mut found = CollectedOutput::default();
    // As in a map, no chunk has the row that names the columns.
    let mut from = header_bytes(ssdlet.description().input, sample);
    if let Some(first) = cuts.first_mut() {
        *first = from.max(*first);
    }
    let begun = Instant::now();
    let turns = workers.len();
    for (turn, to) in cuts.into_iter().enumerate() {
        if to == from {
            continue;
        }
        let chunk = Chunk { input: 0, offset: from as u64, bytes: &sample[from..to] };
        workers[turn % turns].chunk(chunk, &mut Emitter::collecting(&mut found))?;
        from = to;
    }
    let mut fuel = 0;
    for worker in &mut workers {
        worker.close(&mut Emitter::collecting(&mut found))?;
        fuel += worker.meter();
    }
    Ok((found, fuel, begun.elapsed()))
}

/// The length of what comes before the records: a byte order mark, and the row that names the columns.
fn header_bytes(format: Format, sample: &[u8]) -> usize {
    format.preamble_len(sample).unwrap_or(0)
}

/// Values of each key as a map's result has them.
fn combined(
    found: CollectedOutput,
    of: merganser_map::ssdlet::Type,
    combine: Combine,
) -> Result<BTreeMap<Vec<u8>, Vec<Vec<u8>>>, String> {
    let mut all = found.keyed;
    for values in all.values_mut() {
        match combine {
            Combine::None => values.sort(),
            Combine::Count => *values = vec![(values.len() as i64).to_le_bytes().to_vec()],
            Combine::Sum | Combine::Min | Combine::Max | Combine::First => {
                let mut rest = std::mem::take(values).into_iter();
                let mut kept = rest.next().unwrap_or_default();
                for value in rest {
                    combine.fold(of, &mut kept, &value).map_err(|error| error.to_string())?;
                }
                *values = vec![kept];
            }
        }
    }
    Ok(all)
}

/// Nothing if two results are equal, else the first key that is not, for a sentence.
fn differing<V: PartialEq>(
    a: &BTreeMap<Vec<u8>, V>,
    b: &BTreeMap<Vec<u8>, V>,
) -> Result<(), String> {
    let in_one = a.iter().find(|(key, value)| b.get(*key) != Some(value)).map(|(key, _)| key);
    let key = in_one.or_else(|| b.keys().find(|key| !a.contains_key(*key)));
    key.map_or(Ok(()), |key| Err(plain(key)))
}

fn count(format: Format, mut records: &[u8]) -> u64 {
    let mut count = 0;
    while let Some(len) = format.record_len(records).filter(|len| *len > 0) {
        count += 1;
        records = &records[len..];
    }
    count
}

/// `sample` with its last record complete.
fn completed(sample: &[u8], format: Format) -> Result<Vec<u8>, SsdletError> {
    if sample.len() > SAMPLE_BYTES_MAX {
        let len = sample.len();
        return Err(SsdletError::Failed(format!(
            "the sample has {len} bytes; {SAMPLE_BYTES_MAX} is the most"
        )));
    }
    let mut records = InputRecords::of_input(format);
    let failed = |quote: StrayQuote| stray_quote("the sample", 0, quote);
    let failed = |quote| SsdletError::Failed(failed(quote).to_string());
    let start = records.preamble_len(sample).map_err(failed)?.unwrap_or(0);
    let mut cuts = Vec::new();
    format.cut(&sample[start..], usize::MAX, &mut cuts);
    let end = start + cuts.last().copied().unwrap_or(0);
    records.records(&sample[start..end]).map_err(failed)?;
    let mut sample = sample.to_vec();
    if end < sample.len() {
        match records.tail(&sample[end..]) {
            Tail::Whole => {}
            Tail::Complete(terminator) => sample.extend_from_slice(terminator),
            Tail::Damaged(detail) => {
                let detail = format!("the sample: {detail}");
                return Err(SsdletError::Record { offset: end as u64, detail });
            }
        }
    }
    Ok(sample)
}

/// About a MiB of records, the same ones each time.
fn made_up(format: Format) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (state >> 33) % below
    };
    let mut bytes = Vec::with_capacity(MADE_UP_BYTES + 1024);
    let word = |next: &mut dyn FnMut(u64) -> u64| {
        // Few words are frequent and many are rare, as in a text.
        let rank = next(200) * next(200) / (1 + next(200));
        let letters = 1 + rank % 9;
        (0..letters).map(|i| b'a' + ((rank / 9 + i * rank) % 26) as u8).collect::<Vec<_>>()
    };
    if let Format::Csv { separator, header: true, .. } = format {
        bytes.extend([b"key", &[separator][..], b"value\n"].concat());
    }
    while bytes.len() < MADE_UP_BYTES {
        match format {
            Format::Lines { delimiter } => {
                for i in 0..1 + next(12) {
                    if i > 0 {
                        bytes.push(b' ');
                    }
                    bytes.extend(word(&mut next));
                }
                bytes.push(delimiter);
            }
            Format::Csv { separator, .. } => {
                bytes.extend(word(&mut next));
                bytes.push(separator);
                bytes.extend(next(100_000).to_string().bytes());
                bytes.push(b'\n');
            }
            Format::Fixed { bytes: len } => bytes.extend((0..len).map(|_| next(256) as u8)),
            Format::Keyed => {
                let (key, value) = (word(&mut next), next(1000).to_le_bytes());
                bytes.extend((key.len() as u32).to_le_bytes());
                bytes.extend((value.len() as u32).to_le_bytes());
                bytes.extend([&key[..], &value].concat());
            }
            other => unreachable!("no guest takes {}", other.name()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_samples_are_whole_records() {
        for format in [
            Format::Lines { delimiter: b'\n' },
            Format::Lines { delimiter: 0 },
            Format::csv_rows(b';', true),
            Format::Fixed { bytes: 100 },
            Format::Keyed,
        ] {
            let sample = made_up(format);
            assert!(sample.len() >= MADE_UP_BYTES);
            assert_eq!(completed(&sample, format).expect("whole"), sample, "{format:?}");
            assert!(count(format, &sample) > 1000);
        }
    }

    #[test]
    fn the_last_record_of_a_sample_is_completed_or_damaged() {
        let lines = Format::Lines { delimiter: b'\n' };
        assert_eq!(completed(b"a\nb", lines).expect("completed"), b"a\nb\n");
        assert_eq!(completed(b"", lines).expect("empty"), b"");
        let told = completed(b"abcd", Format::Fixed { bytes: 3 }).expect_err("cut").to_string();
        assert_eq!(told, "at byte 3: the sample: its last record is cut short");
    }
}
