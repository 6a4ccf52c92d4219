//! Keys drawn at random places of inputs, for the splitters between buckets.

use std::sync::Arc;

use merganser_random::Random;
use merganser_storage::{Buffer, Completions, Operation, Storage};

use super::partition::SampleKey;
use crate::Result;
use crate::access::with_access;
use crate::key::Order;
use crate::record::{Format, Framing, SplitRule};
use crate::run::SortInput;
use crate::run::chunk::Chunk;

/// Places looked at for each bucket.
const PLACES_PER_BUCKET: u64 = 24;
/// Most places looked at.
const PLACES_MAX: u64 = 8192;
/// Most bytes read for a sample.
const READ_BYTES_MAX: u64 = 64 << 20;
/// Bytes read at one place.
const WINDOW_BYTES: std::ops::RangeInclusive<u64> = 4096..=(1 << 20);
/// Records taken at one place: neighbours tell less than strangers.
pub(super) const RECORDS_PER_PLACE: usize = 4;
/// Reads in flight.
const DEPTH: usize = 32;
/// All keys of a sample take at most this, in bytes.
const KEY_BYTES_MAX: usize = 2 << 20;

/// Keys at random places of `inputs`. `None` where records cannot be found from the middle of an
/// input: in a stream, or where records have no mark at their beginning.
pub(super) fn at_random_places(
    inputs: &[SortInput],
    order: &Order,
    record_bytes: f64,
    buckets: u64,
) -> Result<Option<Vec<SampleKey>>> {
    let mut sample = Vec::new();
    let Some(places) = places(inputs, order.format(), record_bytes, buckets) else {
        return Ok(None);
    };
    records_at(places, inputs, order.format(), |bytes| keys_in(bytes, order, &mut sample))?;
    Ok(Some(sample))
}

/// The places that [`at_random_places`] looks at.
pub(super) fn places(
    inputs: &[SortInput],
    format: Format,
    record_bytes: f64,
    buckets: u64,
) -> Option<SamplePlaces> {
    SamplePlaces::new(inputs, format, record_bytes, PLACES_PER_BUCKET * buckets)
}

/// How many random places are looked at, and how much of each is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct SamplePlaces {
    count: u64,
    window_bytes: u64,
}

impl SamplePlaces {
    /// About `count` places of `inputs`. `None` where records cannot be found from the middle of an
    /// input.
    pub(super) fn new(
        inputs: &[SortInput],
        format: Format,
        record_bytes: f64,
        count: u64,
    ) -> Option<Self> {
        let seekable = inputs.iter().all(|input| matches!(input, SortInput::Storage(_)));
        if !format.has_probable_starts() || !seekable {
            return None;
        }
        let window = (2.0 * record_bytes) as u64 + 512;
        let window_bytes =
            window.clamp(*WINDOW_BYTES.start(), *WINDOW_BYTES.end()).next_multiple_of(4096);
        let count = count.min(PLACES_MAX).min(READ_BYTES_MAX / window_bytes).max(16);
        Some(SamplePlaces { count, window_bytes })
    }

    /// Bytes that are read, without those past an input's end. Fewer are read where places are left
    /// out because keys are long.
    pub(super) fn bytes(self) -> u64 {
        self.count * self.window_bytes
    }
}

/// Hands the records at random `places` of `inputs` to `take`, some neighbours at a time. `take`
/// returns how many bytes it keeps; reading stops when they are many.
pub(super) fn records_at(
    places: SamplePlaces,
    inputs: &[SortInput],
    format: Format,
    mut take: impl FnMut(&[u8]) -> usize,
) -> Result<()> {
    let mut storages: Vec<(u64, &Arc<dyn Storage>)> = Vec::new();
    let mut total = 0;
    for input in inputs {
        let SortInput::Storage(storage) = input else { continue };
        storages.push((total, storage));
        total += storage.size();
    }
    if total == 0 {
        return Ok(());
    }
    let mut random = Random::new(total);
    let completions = Completions::new();
    let clock = storages[0].1.clock();
    let window = places.window_bytes;
    let mut places: Vec<(usize, u64)> = (0..places.count)
        .map(|_| {
            let at = random.below(total);
            let number = storages.partition_point(|(start, _)| *start <= at) - 1;
            (number, at - storages[number].0)
        })
        .collect();
    let mut wanted: Vec<(usize, u64)> = Vec::new();
    let mut in_flight = 0;
    let (mut key_bytes, mut failed) = (0, Ok(()));
    while in_flight > 0 || !places.is_empty() {
        if in_flight < DEPTH
            && failed.is_ok()
            && let Some((number, at)) = places.pop()
        {
            let from = match format.split_rule() {
                SplitRule::Multiples { bytes } => at / bytes as u64 * bytes as u64,
                SplitRule::Behind { .. } | SplitRule::FromTheFront => at,
            };
            let token = wanted.len() as u64;
            wanted.push((number, from));
            let buffer = match Buffer::try_new(window as usize) {
                Ok(buffer) => buffer,
                Err(e) => {
                    failed = Err(e.into());
                    continue;
                }
            };
            let operation = Operation::Read { offset: from / 4096 * 4096, buffer };
            storages[number].1.submit(token, operation, &completions);
            in_flight += 1;
            continue;
        }
        if in_flight == 0 {
            break;
        }
        let done = completions.wait(&*clock);
        in_flight -= 1;
        match done.result {
            Err(e) => failed = Err(e.into()),
            Ok(n) if key_bytes < KEY_BYTES_MAX => {
                let buffer = done.buffer.expect("a read returns its buffer");
                let from = (wanted[done.token as usize].1 % 4096) as usize;
                let bytes = &buffer[from.min(n)..n];
                key_bytes += take(&bytes[format.probable_start(bytes)..]);
            }
            Ok(_) => places.clear(),
        }
    }
    failed
}

/// Takes the keys of some whole records at the front of `bytes`. Returns the bytes of the keys.
fn keys_in(bytes: &[u8], order: &Order, sample: &mut Vec<SampleKey>) -> usize {
    let first = sample.len();
    let mut rest = bytes;
    with_access!(order, framing, access => {
        for _ in 0..RECORDS_PER_PLACE {
            let Some(len) = framing.next(rest) else { break };
            sample.push(SampleKey::of_record(access, order, &rest[..len]));
            rest = &rest[len..];
        }
    });
    sample[first..].iter().map(|key| key.key.len() + size_of::<SampleKey>()).sum()
}

/// Keys of records all over a chunk.
pub(super) fn of_chunk(chunk: &Chunk, order: &Order, buckets: u64) -> Vec<SampleKey> {
    let mut sample = Vec::new();
    let wanted = (PLACES_PER_BUCKET * buckets).min(PLACES_MAX);
    let step = (chunk.data_bytes() as u64 / wanted.max(1)).max(1) as usize;
    let mut key_bytes = 0;
    with_access!(order, framing, access => {
        let mut until = 0;
        for span in &chunk.spans {
            let mut rest = &chunk.bytes()[span.clone()];
            while let Some(len) = framing.first(rest) {
                if until < len && key_bytes < KEY_BYTES_MAX {
                    let key = SampleKey::of_record(access, order, &rest[..len]);
                    key_bytes += key.key.len() + size_of::<SampleKey>();
                    sample.push(key);
                    until += step;
                }
                until = until.saturating_sub(len);
                rest = &rest[len..];
            }
        }
    });
    sample
}
