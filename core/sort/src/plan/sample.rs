//! A look at the data before sizes are decided.

use std::cmp::Ordering;

use merganser_storage::StorageExt;

use crate::key::Order;
use crate::record::{Format, Framing, with_framing};
use crate::run::SortInput;
use crate::run::format::FENCE_KEY_BYTES_MAX;
use crate::run::header_lines::HeaderRule;
use crate::{Error, Result};

/// Properties of all records, estimated from the first ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordSample {
    /// Mean record length, in bytes.
    pub record_bytes: f64,
    /// Mean length of encoded keys, in bytes; 0 when keys are used as they are in the records.
    pub key_bytes: f64,
    /// Mean length of full keys as fences hold them, in bytes.
    pub fence_key_bytes: f64,
    /// Whether the records are in order already, most of them with a key of their own, as far as was
    /// seen.
    pub in_order: bool,
}

/// Fewer records may be in order by chance.
const IN_ORDER_MIN: u64 = 100;

impl RecordSample {
    /// Looks at the whole records at the front of `bytes`.
    #[must_use]
    pub fn of_bytes(order: &Order, bytes: &[u8]) -> Self {
        let (mut records, mut record_bytes, mut key_bytes) = (0u64, 0, 0);
        let mut fence_key_bytes = 0;
        let (mut falls, mut rises) = (false, 0);
        let mut last: Option<&[u8]> = None;
        let (mut key, mut last_key) = (Vec::new(), Vec::new());
        with_framing!(order.format(), framing => {
            while let Some(len) = framing.next(&bytes[record_bytes..]) {
                let record = &bytes[record_bytes..record_bytes + len];
                let (own, compared) = match order.direct() {
                    Some(direct) => (
                        direct.place.of_record(record).len(),
                        last.filter(|_| !falls).map(|last| order.compare(last, record)),
                    ),
                    None => {
                        std::mem::swap(&mut key, &mut last_key);
                        key.clear();
                        order.encode(record, &mut key);
                        key_bytes += key.len();
                        (key.len(), last.map(|_| last_key.cmp(&key)))
                    }
                };
                falls |= compared.is_some_and(Ordering::is_gt);
                rises += u64::from(compared.is_some_and(Ordering::is_lt));
                last = Some(record);
                let full = if order.last_resort().is_some() { own + len } else { own };
                fence_key_bytes += full.min(FENCE_KEY_BYTES_MAX);
                record_bytes += len;
                records += 1;
            }
        });
        if records == 0 && order.format().sequences().is_some() && !bytes.is_empty() {
            // One long sequence: a key of it is often short.
            let (len, key) = match order.direct() {
                Some(direct) => (0, direct.place.of_record(bytes).len()),
                None => {
                    order.encode(bytes, &mut key);
                    (key.len(), key.len())
                }
            };
            return RecordSample {
                record_bytes: bytes.len().max(64) as f64,
                key_bytes: len as f64,
                fence_key_bytes: key.min(FENCE_KEY_BYTES_MAX) as f64,
                in_order: false,
            };
        }
        if records == 0 {
            // One record fills the sample: then tags are few.
            let len = bytes.len().max(64) as f64;
            let fence_key_bytes = FENCE_KEY_BYTES_MAX as f64;
            return RecordSample {
                record_bytes: len,
                key_bytes: len,
                fence_key_bytes,
                in_order: false,
            };
        }
        let mean = |sum: usize| sum as f64 / records as f64;
        RecordSample {
            record_bytes: mean(record_bytes),
            key_bytes: mean(key_bytes),
            fence_key_bytes: mean(fence_key_bytes),
            in_order: !falls && records >= IN_ORDER_MIN && 2 * rises >= records,
        }
    }
}

/// Most bytes looked at before sizes are decided.
const SAMPLE_BYTES: usize = 1 << 20;

/// Bytes that [`sample`] reads of storages.
pub(crate) fn sample_bytes(inputs: &[SortInput]) -> u64 {
    let sizes = inputs.iter().filter_map(SortInput::size);
    sizes.map(|size| size.min(SAMPLE_BYTES as u64)).find(|bytes| *bytes > 0).unwrap_or(0)
}

/// Looks at the front of the first input that has records: whole records of it, and what comes before them in
/// CSV. Header lines of `rule` are passed over. Bytes that are read from a stream are put back in front of it.
pub(crate) fn sample(
    inputs: &mut [SortInput],
    format: Format,
    rule: Option<&HeaderRule>,
) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
    let mut bytes = Vec::new();
    for input in inputs {
        let header = rule.map(|rule| rule.take(input)).transpose()?.unwrap_or_default();
        match input {
            SortInput::Storage(storage) => {
                let from = header.input_bytes;
                bytes = vec![0; (storage.size() - from).min(SAMPLE_BYTES as u64) as usize];
                let n = storage.read_at(from, &mut bytes)?;
                bytes.truncate(n);
            }
            SortInput::Packed(_) => unreachable!("a sort makes streams of them first"),
            SortInput::Stream { name, reader } => {
                bytes = vec![0; SAMPLE_BYTES];
                let mut n = 0;
                while n < bytes.len() {
                    match reader.read(&mut bytes[n..]) {
                        Ok(0) => break,
                        Ok(more) => n += more,
                        Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(Error::reading(name, e)),
                    }
                }
                bytes.truncate(n);
                let ended = n < SAMPLE_BYTES;
                let rest = std::mem::replace(reader, Box::new(std::io::empty()));
                let mut front = header.bytes;
                front.truncate(header.input_bytes as usize);
                front.extend_from_slice(&bytes);
                let front = std::io::Cursor::new(front);
                *reader = if ended {
                    Box::new(front)
                } else {
                    Box::new(std::io::Read::chain(front, rest))
                };
            }
        }
        if !bytes.is_empty() {
            break;
        }
    }
    bytes.drain(..format.leading_blanks(&bytes));
    let len = format.preamble_len(&bytes).unwrap_or(bytes.len());
    let preamble = bytes.drain(..len).collect::<Vec<u8>>();
    Ok((bytes, Some(preamble).filter(|preamble| !preamble.is_empty())))
}
