//! The meaning of the options for reading a trace.

use merganser_device::trace::{AddressConversion, BlkparseEvent, Disks, TraceFormat, TraceOptions};
use merganser_shell::args::TypedSize;
use merganser_shell::failure::Failure;

use crate::args::{EventName, TraceArgs, TraceFormatName};

/// How a trace is read.
#[derive(Debug)]
pub(crate) struct TraceReading {
    /// All that does not need the device.
    pub options: TraceOptions,
    /// Addresses beyond the device begin again.
    pub wrap: bool,
}

/// Reads what was typed.
pub(super) fn reading(typed: &TraceArgs) -> Result<TraceReading, Failure> {
    if !(typed.time_scale.is_finite() && typed.time_scale >= 0.0) {
        return Err(format!("--time-scale: {}, expected 0 or more", typed.time_scale).into());
    }
    let address = match typed.address_scale {
        None => AddressConversion::Same,
        Some(by) if by.is_finite() && by >= 0.0 => AddressConversion::Scaled(by),
        Some(by) => return Err(format!("--address-scale: {by}, expected 0 or more").into()),
    };
    let disks = match (&typed.unit, typed.units_together, typed.units_apart) {
        (Some(unit), ..) => {
            Disks::Only(unit.parse().map_err(|why| Failure::from(format!("--unit: {why}")))?)
        }
        (None, true, _) => Disks::Together,
        (None, false, Some(TypedSize(0))) => {
            return Err("--units-apart: at least 1 byte".to_owned().into());
        }
        (None, false, Some(size)) => Disks::Apart(size.0),
        (None, false, None) => Disks::Single,
    };
    let format = match typed.format {
        TraceFormatName::Auto => None,
        TraceFormatName::Merganser => Some(TraceFormat::Merganser),
        TraceFormatName::Disksim => Some(TraceFormat::DiskSim),
        TraceFormatName::Spc => Some(TraceFormat::Spc),
        TraceFormatName::Msr => Some(TraceFormat::Msr),
        TraceFormatName::Mqsim => Some(TraceFormat::Mqsim),
        TraceFormatName::Blkparse => Some(TraceFormat::Blkparse),
        TraceFormatName::Fiu => Some(TraceFormat::Fiu),
    };
    let event = match typed.event {
        EventName::Issued => BlkparseEvent::Issued,
        EventName::Queued => BlkparseEvent::Queued,
    };
    let time_scale = typed.time_scale;
    let skip_bad = typed.skip_bad;
    let options =
        TraceOptions { format, event, disks, time_scale, address, limit_bytes: None, skip_bad };
    Ok(TraceReading { options, wrap: typed.wrap })
}
