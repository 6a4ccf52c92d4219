//! Converts the disks, times and addresses of a trace to those of the device that serves it.

use super::error::LineFault;
use super::event::BlkparseEvent;
use super::format::TraceFormat;
use super::parsed::TraceDisk;
use super::tally::Tally;
use crate::request::{DeviceRequest, RequestKind, SimTime};

/// How the disks of a trace are mapped to the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Disks {
    /// The trace has one disk; a second one is an error.
    #[default]
    Single,
    /// Only the requests of this disk.
    Only(TraceDisk),
    /// All disks address the same bytes.
    Together,
    /// The disks follow one another in the order in which they first appear, each with this many
    /// bytes.
    Apart(u64),
}

/// How addresses are converted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum AddressConversion {
    /// They stay as they are.
    #[default]
    Same,
    /// They are multiplied by this and rounded down to a multiple of 512; sizes stay as they are.
    Scaled(f64),
    /// A request that does not end within this many bytes is moved down by a multiple of 512, so
    /// that it begins again from 0.
    Wrapped(u64),
}

/// How a trace is read.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceOptions {
    /// The format; `None` detects it.
    pub format: Option<TraceFormat>,
    /// The event of blkparse that counts as a request.
    pub event: BlkparseEvent,
    /// How the disks of the trace are mapped to the device.
    pub disks: Disks,
    /// Times are multiplied by this: 0.5 is twice as fast. More than 0, or 0 for all at once.
    pub time_scale: f64,
    /// How addresses are converted.
    pub address: AddressConversion,
    /// The device's size in bytes; a request that ends above it is an error.
    pub limit_bytes: Option<u64>,
    /// Lines that can't be parsed, or whose request is not possible, are skipped and counted, as long as
    /// there are no more than this; the next one ends the trace.
    pub skip_bad: u64,
}

impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions {
            format: None,
            event: BlkparseEvent::default(),
            disks: Disks::default(),
            time_scale: 1.0,
            address: AddressConversion::default(),
            limit_bytes: None,
            skip_bad: 0,
        }
    }
}

/// Scaled and wrapped addresses stay aligned to this.
const SECTOR: u64 = 512;

/// Applies [`TraceOptions`] to one request after the other.
pub(super) struct Adjuster {
    disks: Disks,
    seen: Vec<TraceDisk>,
    time_scale: f64,
    address: AddressConversion,
    limit_bytes: Option<u64>,
    start_ns: Option<u64>,
    last_ns: u64,
    pub tally: Tally,
}

impl Adjuster {
    pub(super) fn new(options: &TraceOptions) -> Self {
        Adjuster {
            disks: options.disks,
            seen: Vec::new(),
            time_scale: options.time_scale,
            address: options.address,
            limit_bytes: options.limit_bytes,
            start_ns: None,
            last_ns: 0,
            tally: Tally::default(),
        }
    }

    /// The request for the device; `None` for a request of another disk. `absolute` times count
    /// from the first request.
    pub(super) fn adjust(
        &mut self,
        unit: TraceDisk,
        mut request: DeviceRequest,
        absolute: bool,
    ) -> Result<Option<DeviceRequest>, LineFault> {
        let Some(base) = self.base(unit, &request)? else {
            self.tally.other_disks += 1;
            return Ok(None);
        };
        if request.kind != RequestKind::Flush {
            let placed = base.checked_add(request.offset);
            let place =
                placed.ok_or_else(|| impossible(&request, "an address below 2^64 bytes"))?;
            request.offset = self.place(place, request.len).ok_or_else(|| {
                impossible(&request, &format!("at most {} bytes", self.address.limit()))
            })?;
            let end = request.offset.checked_add(request.len);
            let end = end.ok_or_else(|| impossible(&request, "an address below 2^64 bytes"))?;
            if let Some(limit) = self.limit_bytes
                && end > limit
            {
                let expected = format!("requests within {limit} bytes (scale or wrap addresses)");
                return Err(impossible(&request, &expected));
            }
        }
        // Last, so that a line that is skipped moves no time.
        request.arrival = self.time(request.arrival.0, absolute)?;
        self.tally.requests += 1;
        Ok(Some(request))
    }

    /// The first byte of the disk.
    fn base(&mut self, unit: TraceDisk, request: &DeviceRequest) -> Result<Option<u64>, LineFault> {
        let index = match self.seen.iter().position(|seen| *seen == unit) {
            Some(index) => index,
            None => {
                self.seen.push(unit);
                self.seen.len() - 1
            }
        };
        match self.disks {
            Disks::Single if index > 0 => {
                let expected =
                    format!("unit {} alone (choose one, or how to place them)", self.seen[0]);
                Err(LineFault::new(1, &format!("unit {unit}"), expected))
            }
            Disks::Only(wanted) if wanted != unit => Ok(None),
            Disks::Single | Disks::Only(_) | Disks::Together => Ok(Some(0)),
            Disks::Apart(each) => {
                let inside = request.offset.checked_add(request.len).is_some_and(|end| end <= each);
                if !inside {
                    let expected = format!("requests within a unit's {each} bytes");
                    return Err(impossible(request, &expected));
                }
                let base = (index as u64).checked_mul(each);
                base.map(Some).ok_or_else(|| impossible(request, "an address below 2^64 bytes"))
            }
        }
    }

    fn time(&mut self, found_ns: u64, absolute: bool) -> Result<SimTime, LineFault> {
        let start_ns = if absolute { *self.start_ns.get_or_insert(found_ns) } else { 0 };
        let scaled_ns = {
            let since_ns = found_ns.saturating_sub(start_ns);
            if self.time_scale == 1.0 {
                since_ns
            } else {
                let scaled = since_ns as f64 * self.time_scale;
                if scaled >= u64::MAX as f64 {
                    let expected = "a time that fits in 64 bits when it is scaled";
                    return Err(LineFault::new(1, &found_ns.to_string(), expected));
                }
                scaled.round() as u64
            }
        };
        if scaled_ns < self.last_ns || found_ns < start_ns {
            self.tally.late += 1;
        }
        self.last_ns = self.last_ns.max(scaled_ns);
        Ok(SimTime(self.last_ns))
    }

    fn place(&mut self, offset: u64, len: u64) -> Option<u64> {
        match self.address {
            AddressConversion::Same => Some(offset),
            AddressConversion::Scaled(by) => {
                let scaled = offset as f64 * by;
                (scaled < u64::MAX as f64).then_some(scaled as u64 / SECTOR * SECTOR)
            }
            AddressConversion::Wrapped(limit) => {
                if offset.checked_add(len).is_some_and(|end| end <= limit) {
                    return Some(offset);
                }
                // The room for the request's first byte, in whole sectors. Its position within the
                // sector does not change.
                let within = offset % SECTOR;
                let room = limit.checked_sub(len.checked_add(within)?)? / SECTOR + 1;
                self.tally.wrapped += 1;
                Some(offset / SECTOR % room * SECTOR + within)
            }
        }
    }
}

impl AddressConversion {
    fn limit(self) -> u64 {
        if let AddressConversion::Wrapped(limit) = self { limit } else { u64::MAX }
    }
}

fn impossible(request: &DeviceRequest, expected: &str) -> LineFault {
    let found = format!("{} bytes at byte {}", request.len, request.offset);
    LineFault::new(1, &found, expected)
}
