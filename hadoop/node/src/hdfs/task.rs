//! One map: a split in, sorted spills out.
//!
//! ```text
//!   granted memory  ┌ an eighth: the longest ┬ up to a quarter:  ┬ blocks, checksums,   ┬ the rest: ┐
//!                   │ record                 │ the SSDlet        │ tail, spill, copies  │ table     │
//! ```

use std::fmt;
use std::time::Duration;

use merganser_sort::Budget;
use merganser_sort::budget::Reservation;
use rustix::time::{ClockId, clock_gettime};

use super::block::{BlockRanges, RANGES_BYTES};
use super::delimiter::Delimiter;
use super::ifile::{Sink, WRITER_BYTES};
use super::mapper::{self, RequestedProgram, SsdletMapper};
use super::module::Modules;
use super::output::{MappedRows, RowCounts, RowShape, SPARE_BYTES};
use super::replica::DataDirs;
use super::request::{CombineKind, MapRequest};
use super::split::{SplitReader, SplitSpec};
use super::{HdfsError, HdfsResult};
use crate::message::{BadMessage, BodyReader};

/// The least memory of a table, in bytes.
const TABLE_BYTES_MIN: u64 = 1 << 20;
/// The part of the memory for the longest record.
const RECORD_PART: u64 = 8;
/// The part of the memory, beyond the least, that an SSDlet may have for itself.
const SSDLET_PART: u64 = 4;
/// Bytes of a partition in an index, and in the frame that it is sent in.
const INDEX_BYTES: u64 = 2 * 24;

/// A map that can be done here.
pub struct MapTask<'a> {
    request: &'a MapRequest,
    delimiter: Delimiter,
    mapper: SsdletMapper,
    only_ones: bool,
    /// The memory of the SSDlet.
    _own: Reservation,
    ranges: BlockRanges,
    budget: Budget,
    record_bytes_max: u64,
    table_bytes_max: u64,
}

/// The counters of a map.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MapCounters {
    /// Records of the split (`MAP_INPUT_RECORDS`).
    pub input_records: u64,
    /// Bytes of them, with what ends them.
    pub input_bytes: u64,
    /// Rows that the mapper handed out (`MAP_OUTPUT_RECORDS`).
    pub output_records: u64,
    /// Bytes of their keys and values (`MAP_OUTPUT_BYTES`).
    pub output_bytes: u64,
    /// Rows of all spills (`SPILLED_RECORDS`).
    pub spilled_records: u64,
    /// Rows before they were combined; 0 where none are.
    pub combine_input_records: u64,
    /// Rows after that.
    pub combine_output_records: u64,
    /// Spills.
    pub spills: u64,
    /// Bytes of spills.
    pub spill_bytes: u64,
    /// Bytes that were read, checksums included.
    pub read_bytes: u64,
    /// Bytes that were compared with their checksums.
    pub verified_bytes: u64,
    /// Processor time, in nanoseconds.
    pub cpu_ns: u64,
}

impl MapCounters {
    pub(super) fn fields(&self) -> [u64; 12] {
        [
            self.input_records,
            self.input_bytes,
            self.output_records,
            self.output_bytes,
            self.spilled_records,
            self.combine_input_records,
            self.combine_output_records,
            self.spills,
            self.spill_bytes,
            self.read_bytes,
            self.verified_bytes,
            self.cpu_ns,
        ]
    }

    pub(super) fn decode(rest: &mut BodyReader<'_>) -> HdfsResult<Self, BadMessage> {
        Ok(MapCounters {
            input_records: rest.u64()?,
            input_bytes: rest.u64()?,
            output_records: rest.u64()?,
            output_bytes: rest.u64()?,
            spilled_records: rest.u64()?,
            combine_input_records: rest.u64()?,
            combine_output_records: rest.u64()?,
            spills: rest.u64()?,
            spill_bytes: rest.u64()?,
            read_bytes: rest.u64()?,
            verified_bytes: rest.u64()?,
            cpu_ns: rest.u64()?,
        })
    }
}

/// Memory of a map, in bytes, as the request decides it: checksums of blocks come on top.
fn needed_bytes(request: &MapRequest, record_bytes_max: u64) -> u64 {
    let tail = request.tail.len() as u64;
    let index = u64::from(request.partitions) * INDEX_BYTES;
    // The tail is in the request and, at the end, in the reader's buffer.
    RANGES_BYTES + WRITER_BYTES + SPARE_BYTES + index + 2 * tail + record_bytes_max
}

/// The least memory that the map of `request` by `program` may work in, in bytes. A block with very small pieces needs
/// more.
pub(super) fn memory_bytes_min(request: &MapRequest, program: &RequestedProgram) -> u64 {
    let record_bytes_max = 2 * RANGES_BYTES;
    let own = program.own_bytes(request, 0) + program.copy_bytes(record_bytes_max);
    needed_bytes(request, record_bytes_max) + TABLE_BYTES_MIN + own
}

impl<'a> MapTask<'a> {
    /// Checks everything that can be checked before the first byte is mapped: `memory_bytes` are for all of it.
    ///
    /// # Errors
    /// A map that is refused: it would not be as Hadoop's, or the block is not here.
    pub fn open(
        request: &'a MapRequest,
        dirs: &DataDirs,
        modules: &Modules,
        memory_bytes: u64,
    ) -> HdfsResult<Self> {
        MapTask::with(&mapper::find(request, modules)?, request, dirs, memory_bytes)
    }

    /// As [`MapTask::open`], by `program`.
    pub(super) fn with(
        program: &RequestedProgram,
        request: &'a MapRequest,
        dirs: &DataDirs,
        memory_bytes: u64,
    ) -> HdfsResult<Self> {
        let delimiter = request.delimiter()?;
        let needed = memory_bytes_min(request, program);
        if memory_bytes < needed {
            return Err(HdfsError::Memory { needed, given: memory_bytes });
        }
        let budget = Budget::new(memory_bytes);
        let lent = (memory_bytes - needed) / SSDLET_PART;
        let own = budget.reserve(program.own_bytes(request, lent), "an SSDlet")?;
        let mapper = program.open(request, lent)?;
        let ranges = BlockRanges::open(dirs, &request.pool, &request.ranges, &budget)?;
        let record_bytes_max = (memory_bytes / RECORD_PART).max(2 * RANGES_BYTES);
        let sums = budget.limit_bytes() - budget.free_bytes() - RANGES_BYTES - own.bytes();
        let copies = program.copy_bytes(record_bytes_max);
        let taken = needed_bytes(request, record_bytes_max) + copies + sums + own.bytes();
        let table_bytes_max = memory_bytes.saturating_sub(taken);
        if table_bytes_max < TABLE_BYTES_MIN {
            let needed = (taken + TABLE_BYTES_MIN).max(needed + sums);
            return Err(HdfsError::Memory { needed, given: memory_bytes });
        }
        Ok(MapTask {
            request,
            delimiter,
            mapper,
            only_ones: program.only_ones(),
            _own: own,
            ranges,
            budget,
            record_bytes_max,
            table_bytes_max,
        })
    }

    /// Maps the split.
    ///
    /// # Errors
    /// Damaged or unreadable blocks, records longer than the memory, a client that is gone.
    pub fn run(mut self, sink: &mut dyn Sink) -> HdfsResult<MapCounters> {
        let began = cpu_time();
        let MapRequest { start, end, value, combine, partitions, .. } = *self.request;
        let spec = SplitSpec {
            start,
            end,
            tail: &self.request.tail,
            tail_at_eof: self.request.tail_at_eof,
            delimiter: &self.delimiter,
            record_bytes_max: self.request.record_bytes_max,
        };
        let record_bytes_max = self.record_bytes_max as usize;
        let mut reader = SplitReader::new(spec, self.ranges, &self.budget, record_bytes_max)?;
        let shape = RowShape { value, only_ones: self.only_ones, combine, partitions };
        let mut output = MappedRows::new(shape, &self.budget, self.table_bytes_max, sink)?;
        let mut records = 0;
        while let Some(batch) = reader.next_batch()? {
            let offset = batch.offset;
            records += self.mapper.map(&batch, &mut output)?;
            output.check(offset)?;
            let done = reader.pos().min(end) - start;
            output.progress(done, records)?;
        }
        self.mapper.finish(&mut output)?;
        output.check(reader.pos())?;
        let RowCounts { records: mapped, bytes, spilled, spills, spill_bytes } = output.finish()?;
        let combined = |n| if combine == CombineKind::None { 0 } else { n };
        let (read_bytes, verified_bytes) = (reader.body().read_bytes, reader.body().verified_bytes);
        Ok(MapCounters {
            input_records: records,
            input_bytes: reader.consumed_bytes(),
            output_records: mapped,
            output_bytes: bytes,
            spilled_records: spilled,
            combine_input_records: combined(mapped),
            combine_output_records: combined(spilled),
            spills: spills.into(),
            spill_bytes,
            read_bytes,
            verified_bytes,
            cpu_ns: cpu_time().saturating_sub(began).as_nanos() as u64,
        })
    }
}

impl fmt::Debug for MapTask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapTask").field("request", &self.request).finish_non_exhaustive()
    }
}

/// Processor time of this thread.
fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32)
}
