//! The facts about a volume that its members tell.

use merganser_array::{Volume, VolumeDescription, VolumeUsage};
use merganser_shell::failure::Failure;
use serde_json::{Value, json};

use super::file::{MemberHold, VolumeFile};
use crate::sentences::told;

/// A page, in bytes.
const PAGE: u64 = 4096;

/// The facts that are known about a volume.
pub(super) struct VolumeFacts {
    /// Its nature, and its counts.
    pub found: VolumeDescription,
    /// How full it is.
    pub usage: VolumeUsage,
}

impl VolumeFacts {
    /// Pages of the data members without data.
    pub(super) fn pages_free(&self) -> u64 {
        self.found.pages.saturating_sub(self.usage.pages_used)
    }

    /// Bytes of the volume that have content on the data members.
    pub(super) fn mapped_bytes(&self) -> u64 {
        PAGE * self.usage.pages_mapped
    }

    /// Pages that were read from members for users, per page that users read. Pages of zeros are read from no member;
    /// reads of maps, of the index and of moves aren't counted.
    pub(super) fn read_amplification(&self) -> f64 {
        let counters = &self.found.counters;
        let read = counters.data_pages_read + counters.buffer_pages_read;
        read as f64 / counters.pages_read.max(1) as f64
    }

    /// Bytes that did not reach the data members, as a share of the bytes that users wrote. Below 0 when the data members
    /// got more.
    pub(super) fn pe_cycles_saved(&self) -> f64 {
        match self.found.counters.pages_written {
            0 => 0.0,
            _ => 1.0 - self.found.counters.write_amplification(),
        }
    }

    /// How full it is, as `info` and `report` print it.
    pub(super) fn space(&self) -> [(&'static str, Value); 4] {
        [
            ("pages_used", json!(self.usage.pages_used)),
            ("pages_free", json!(self.pages_free())),
            ("mapped_bytes", json!(self.mapped_bytes())),
            ("buffer_bytes_used", json!(self.usage.buffer_bytes_used)),
        ]
    }
}

/// The name of a volume, and what is known about it.
pub(super) fn describe(description: &VolumeFile) -> Result<(String, VolumeFacts), Failure> {
    let (name, members) = (description.name(), description.open(MemberHold::Nothing)?);
    let found = Volume::describe(&name, &members).map_err(told)?;
    let usage = Volume::usage(&name, &members).map_err(told)?;
    Ok((name, VolumeFacts { found, usage }))
}
