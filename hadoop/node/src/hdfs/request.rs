//! A map as a task asks for it, and its bytes in a request (docs/formats.md has the table).

use super::delimiter::{DELIMITER_BYTES_MAX, Delimiter, NO_LIMIT};
use super::replica::is_pool;
use super::split::RECORD_BYTES_MAX_MIN;
use merganser_map::ssdlet::Sha256;

use super::{HdfsBlock, HdfsError};
use crate::message::{BadMessage, BodyReader, push_text};

/// The most ranges of a split: two open files each.
pub(super) const RANGES_MAX: usize = 256;
/// The most bytes of a split. Hadoop's reader counts in `int`.
pub(super) const SPLIT_BYTES_MAX: u64 = (1 << 31) - (8 << 20);
/// The most bytes behind a split.
pub(super) const TAIL_BYTES_MAX: usize = 4 << 20;
/// The most partitions: their index fits into one frame.
pub(super) const PARTITIONS_MAX: u32 = 32_768;
/// The most memory that a task may want, in bytes.
pub(super) const MEMORY_BYTES_MAX: u64 = 4 << 30;
/// The longest that a task may want to wait for its turn, in milliseconds.
pub(super) const PATIENCE_MS_MAX: u32 = 30_000;

const ATTEMPT_BYTES_MAX: usize = 256;
const RANGE_BYTES: usize = 5 * 8;

/// A map, as a task asks for it. One that came in a request is within all limits, and its ranges are as long
/// as the split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapRequest {
    /// The attempt's name, for lines of a log.
    pub attempt: String,
    /// The program.
    pub ssdlet: SsdletName,
    /// Its arguments, as JSON; empty for none. One that the job brings may take any text.
    pub arguments: String,
    /// The block pool.
    pub pool: String,
    /// Where the bytes of the split are, in order.
    pub ranges: Vec<BlockRange>,
    /// The split's first byte in the file.
    pub start: u64,
    /// The byte behind its last.
    pub end: u64,
    /// The bytes of the file from `end` on, with the end of the last record.
    pub tail: Vec<u8>,
    /// Whether the file ends with the tail.
    pub tail_at_eof: bool,
    /// What ends a record (`textinputformat.record.delimiter`); empty for the end of a line.
    pub delimiter: Vec<u8>,
    /// Records of this size are too long (`mapreduce.input.linerecordreader.line.maxlength`), in bytes.
    pub record_bytes_max: u32,
    /// Partitions of the output.
    pub partitions: u32,
    /// How keys are divided among them.
    pub partitioner: Partitioner,
    /// How keys are compared.
    pub order: Order,
    /// The class of keys.
    pub key: Writable,
    /// The class of values.
    pub value: Writable,
    /// How values of one key may become one.
    pub combine: CombineKind,
    /// How the output is compressed.
    pub codec: Codec,
    /// Memory for the map, in bytes.
    pub memory_bytes: u64,
    /// How long to wait for its turn, in milliseconds.
    pub patience_ms: u32,
}

/// A part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRange {
    /// The block.
    pub block: HdfsBlock,
    /// Bytes of the whole block, as the NameNode knows it.
    pub block_length: u64,
    /// The first byte in the block.
    pub offset: u64,
    /// Bytes, at least one.
    pub length: u64,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SsdletName {
    /// One that is part of this program.
    BuiltIn(String),
    /// One that the job brings, by the SHA-256 of its module.
    Module(Sha256),
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$of:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$of])* $variant = $number,)* }

        impl $name {
            fn of_number(number: u8) -> Result<Self, BadMessage> {
                match number {
                    $($number => Ok($name::$variant),)*
                    _ => Err(BadMessage(format!("there is no {} {number}", $what))),
                }
            }
        }
    };
}

numbered! {
    /// How keys are divided among partitions.
    Partitioner, "partitioner" {
        /// `HashPartitioner`: the hash code of the key modulo the partitions.
        Hash = 1,
    }
}

numbered! {
    /// How keys are compared.
    Order, "order of keys" {
        /// Byte by byte, as `Text.Comparator` does.
        Text = 1,
    }
}

numbered! {
    /// The class of a key or value.
    Writable, "class of keys or values" {
        /// `Text`: its length as a VInt, its bytes.
        Text = 1,
        /// `IntWritable`: 4 bytes, big-endian.
        Int = 2,
        /// `LongWritable`: 8 bytes, big-endian.
        Long = 3,
    }
}

numbered! {
    /// How values of one key may become one before they leave.
    CombineKind, "way to combine" {
        /// Not at all.
        None = 0,
        /// Their sum, which wraps.
        Sum = 1,
        /// One of equal values.
        Distinct = 2,
    }
}

numbered! {
    /// How the output is compressed.
    Codec, "codec" {
        /// Not at all.
        None = 0,
    }
}

fn bad(detail: impl Into<String>) -> BadMessage {
    BadMessage(detail.into())
}

/// That `n` is one of `allowed`.
fn within<T: PartialOrd + std::fmt::Display + Copy>(
    what: &str,
    n: T,
    allowed: std::ops::RangeInclusive<T>,
) -> Result<T, BadMessage> {
    if allowed.contains(&n) {
        return Ok(n);
    }
    let (least, most) = allowed.into_inner();
    Err(bad(format!("{what}: {n} is not from {least} to {most}")))
}

fn flag(rest: &mut BodyReader<'_>) -> Result<bool, BadMessage> {
    Ok(within("the end of the file", rest.u8()?, 0..=1)? == 1)
}

impl MapRequest {
    /// The delimiter of records.
    ///
    /// # Errors
    /// [`HdfsError::Delimiter`].
    pub(super) fn delimiter(&self) -> Result<Delimiter, HdfsError> {
        let has_limit = self.record_bytes_max != NO_LIMIT;
        Delimiter::new(&self.delimiter, has_limit).map_err(|_| HdfsError::Delimiter)
    }

    pub(super) fn decode(rest: &mut BodyReader<'_>) -> Result<Self, BadMessage> {
        let attempt = rest.text()?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        within("bytes of the attempt", attempt.len(), 1..=ATTEMPT_BYTES_MAX)?;
        if !attempt.bytes().all(plain) {
            return Err(bad("an attempt is called by letters, digits, _ and -"));
        }
        let ssdlet = SsdletName::decode(rest)?;
        let arguments = rest.text()?;
        let pool = rest.text()?;
        if !is_pool(&pool) {
            return Err(bad("a pool is called by letters, digits, -, _ and dots"));
        }
        let ranges = BlockRange::decode_all(rest)?;
        let (start, end) = (rest.u64()?, rest.u64()?);
        let length = end.checked_sub(start).filter(|_| end <= i64::MAX as u64);
        let length = length.ok_or_else(|| bad(format!("a split from {start} to {end}")))?;
        within("bytes of the split", length, 0..=SPLIT_BYTES_MAX)?;
        // Each is at most as long as a block, and there are few: no sum of them leaves 64 bits.
        let sum = ranges.iter().try_fold(0_u64, |sum, range| sum.checked_add(range.length));
        if sum != Some(length) {
            return Err(bad(format!("the ranges are not as long as the split of {length} bytes")));
        }
        let tail_bytes =
            within("bytes behind the split", rest.u32()? as usize, 0..=TAIL_BYTES_MAX)?;
        let tail = rest.take(tail_bytes)?.to_vec();
        let tail_at_eof = flag(rest)?;
        let delimiter_bytes = usize::from(rest.u16()?);
        within("bytes of the delimiter", delimiter_bytes, 0..=DELIMITER_BYTES_MAX)?;
        let delimiter = rest.take(delimiter_bytes)?.to_vec();
        Ok(MapRequest {
            attempt,
            ssdlet,
            arguments,
            pool,
            ranges,
            start,
            end,
            tail,
            tail_at_eof,
            delimiter,
            record_bytes_max: within(
                "the longest record",
                rest.u32()?,
                RECORD_BYTES_MAX_MIN..=NO_LIMIT,
            )?,
            partitions: within("partitions", rest.u32()?, 1..=PARTITIONS_MAX)?,
            partitioner: Partitioner::of_number(rest.u8()?)?,
            order: Order::of_number(rest.u8()?)?,
            key: Writable::of_number(rest.u8()?)?,
            value: Writable::of_number(rest.u8()?)?,
            combine: CombineKind::of_number(rest.u8()?)?,
            codec: Codec::of_number(rest.u8()?)?,
            memory_bytes: within("bytes of memory", rest.u64()?, 0..=MEMORY_BYTES_MAX)?,
            patience_ms: within("milliseconds of patience", rest.u32()?, 0..=PATIENCE_MS_MAX)?,
        })
    }

    pub(super) fn encode(&self, body: &mut Vec<u8>) -> Result<(), BadMessage> {
        push_text(&self.attempt, body)?;
        match &self.ssdlet {
            SsdletName::BuiltIn(name) => {
                body.push(BUILT_IN);
                push_text(name, body)?;
            }
            SsdletName::Module(sha256) => {
                body.push(MODULE);
                body.extend(sha256);
            }
        }
        push_text(&self.arguments, body)?;
        push_text(&self.pool, body)?;
        body.extend((self.ranges.len() as u32).to_be_bytes());
        self.ranges.iter().for_each(|range| range.encode(body));
        body.extend(self.start.to_be_bytes());
        body.extend(self.end.to_be_bytes());
        body.extend((self.tail.len() as u32).to_be_bytes());
        body.extend(&self.tail);
        body.push(self.tail_at_eof.into());
        body.extend((self.delimiter.len() as u16).to_be_bytes());
        body.extend(&self.delimiter);
        body.extend(self.record_bytes_max.to_be_bytes());
        body.extend(self.partitions.to_be_bytes());
        body.extend([self.partitioner as u8, self.order as u8]);
        body.extend([self.key as u8, self.value as u8, self.combine as u8, self.codec as u8]);
        body.extend(self.memory_bytes.to_be_bytes());
        body.extend(self.patience_ms.to_be_bytes());
        Ok(())
    }
}

const BUILT_IN: u8 = 1;
const MODULE: u8 = 2;

impl SsdletName {
    fn decode(rest: &mut BodyReader<'_>) -> Result<Self, BadMessage> {
        match rest.u8()? {
            BUILT_IN => Ok(SsdletName::BuiltIn(rest.text()?)),
            MODULE => Ok(SsdletName::Module(rest.array()?)),
            kind => Err(bad(format!("there is no kind {kind} of SSDlets"))),
        }
    }
}

impl BlockRange {
    fn decode_all(rest: &mut BodyReader<'_>) -> Result<Vec<Self>, BadMessage> {
        let count = rest.u32()? as usize;
        if count > RANGES_MAX || count > rest.0.len() / RANGE_BYTES {
            return Err(bad(format!(
                "{count} ranges are more than {RANGES_MAX}, or than the request has bytes for"
            )));
        }
        (0..count).map(|_| BlockRange::decode(rest)).collect()
    }

    fn decode(rest: &mut BodyReader<'_>) -> Result<Self, BadMessage> {
        let block = HdfsBlock { id: rest.i64()?, generation: rest.i64()? };
        let [block_length, offset, length] = [rest.u64()?, rest.u64()?, rest.u64()?];
        let end = offset.checked_add(length).filter(|end| *end <= block_length);
        if length == 0 || end.is_none() || block_length > i64::MAX as u64 {
            return Err(bad(format!(
                "{length} bytes from byte {offset} on of a block of {block_length} bytes"
            )));
        }
        Ok(BlockRange { block, block_length, offset, length })
    }

    fn encode(&self, body: &mut Vec<u8>) {
        body.extend(self.block.id.to_be_bytes());
        body.extend(self.block.generation.to_be_bytes());
        for number in [self.block_length, self.offset, self.length] {
            body.extend(number.to_be_bytes());
        }
    }
}
