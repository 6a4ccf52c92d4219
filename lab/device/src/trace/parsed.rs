//! One line of a trace, parsed.

use std::fmt;
use std::str::FromStr;

use crate::request::{DeviceRequest, RequestHashes, RequestKind, SimTime};

/// A disk of the traced system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceDisk {
    /// The major device number; 0 if the trace has only one number.
    pub major: u32,
    /// The minor device number, or the only number of the trace.
    pub minor: u32,
}

impl TraceDisk {
    pub(super) fn plain(number: u32) -> Self {
        TraceDisk { major: 0, minor: number }
    }
}

impl fmt::Display for TraceDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.major {
            0 => write!(f, "{}", self.minor),
            major => write!(f, "{major},{}", self.minor),
        }
    }
}

impl FromStr for TraceDisk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (major, minor) = text.split_once(',').unwrap_or(("0", text));
        match (major.parse(), minor.parse()) {
            (Ok(major), Ok(minor)) => Ok(TraceDisk { major, minor }),
            _ => Err(format!("'{text}' is neither a number nor major,minor")),
        }
    }
}

/// The content of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parsed {
    /// A request to a disk of the traced system, with the time of the trace.
    Request(TraceDisk, DeviceRequest),
    /// Another line of the format.
    Other,
    /// The end of the trace; a summary follows.
    End,
}

/// A request before its disk, time and address are converted.
pub(super) fn request(
    arrival_ns: u64,
    kind: RequestKind,
    offset: u64,
    len: u64,
    content: Option<RequestHashes>,
) -> DeviceRequest {
    DeviceRequest { arrival: SimTime(arrival_ns), kind, offset, len, content }
}
