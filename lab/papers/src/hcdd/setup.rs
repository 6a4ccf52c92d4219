//! The devices of a node, and how they are arranged.

use merganser_array::outline::{Outline, Shape};
use merganser_array::{Hash, Migration, OpenOptions, Striping, VolumeSettings};
use merganser_device::device::Device;
use merganser_device::hdd::{Hdd, HddProfile};
use merganser_device::profile::{ProfileError, SsdProfile};
use merganser_device::ssd::Ssd;

/// Bytes before the log on each disk.
const LABEL_BYTES: u64 = 1 << 20;
/// Consecutive bytes on one member of an array without a volume.
const PLAIN_CHUNK_BYTES: u64 = 512 << 10;
/// The part of the SSDs that the volume may have; the rest holds its maps.
const VOLUME_SHARE: (u64, u64) = (15, 16);
/// SHA-1 of 4 KiB, in cycles (dissertation, 5.4.3).
const HASH_CYCLES: u64 = 47_548;
/// The processor of the node (dissertation, 5.4.3).
const PROCESSOR_HZ: u64 = 1_000_000_000;

/// How devices are arranged (dissertation, 5.4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// Disks as a write buffer, deduplication, SSDs.
    Hcdd,
    /// The same without deduplication: "Trad.Hybrid".
    Hybrid,
    /// SSDs alone.
    Ssds,
    /// Disks alone.
    Hdds,
}

impl Arrangement {
    /// All of them, in the dissertation's order.
    pub const ALL: [Arrangement; 4] =
        [Arrangement::Hcdd, Arrangement::Hybrid, Arrangement::Ssds, Arrangement::Hdds];

    /// Its name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Arrangement::Hcdd => "hcdd",
            Arrangement::Hybrid => "hybrid",
            Arrangement::Ssds => "ssds",
            Arrangement::Hdds => "hdds",
        }
    }

    /// Whether writes go to a buffer of disks first.
    #[must_use]
    pub fn has_buffer(self) -> bool {
        matches!(self, Arrangement::Hcdd | Arrangement::Hybrid)
    }
}

/// A node, not yet made.
#[derive(Debug, Clone)]
pub struct NodeSetup {
    /// How its devices are arranged.
    pub arrangement: Arrangement,
    /// Each SSD.
    pub ssd: SsdProfile,
    /// Each disk.
    pub hdd: HddProfile,
    /// Numbers of SSDs and of disks.
    pub members: (usize, usize),
    /// Bytes of the log on all disks together.
    pub buffer_bytes: u64,
    /// When pages move to the SSDs.
    pub migration: Migration,
    /// Share of the buffer, in percent, above which writes wait.
    pub high_water_percent: u32,
    /// Whether each record of the log is synced before its writes are answered. It matters if the disks
    /// have a write cache: without syncs, a write ends there. A flush of a trace does nothing then.
    pub log_syncs: bool,
    /// Nanoseconds to hash a page.
    pub hash_ns: u64,
    /// The seed of the SSDs.
    pub seed: u64,
}

impl NodeSetup {
    /// The dissertation's node (5.4.1): two SSDs of DiskSim, two Cheetah 15K.5, a processor of 1 GHz, and
    /// pages that move as soon as possible. Only HcDD has "enhanced" SSDs, with a buffer of 1 MiB and 8 pages for
    /// each package; the SSDs of the other arrangements have no buffer. The size of the buffer on the disks is not
    /// given; here it is 4 GiB.
    ///
    /// # Errors
    /// None, unless the presets are gone.
    pub fn paper(arrangement: Arrangement) -> Result<NodeSetup, ProfileError> {
        let plain = NodeSetup {
            arrangement,
            ssd: SsdProfile::preset("msr")?,
            hdd: HddProfile::preset("cheetah")?,
            members: (2, 2),
            buffer_bytes: 4 << 30,
            migration: Migration::Immediate,
            high_water_percent: 75,
            log_syncs: true,
            hash_ns: HASH_CYCLES * 1_000_000_000 / PROCESSOR_HZ,
            seed: 1,
        };
        if arrangement == Arrangement::Hcdd { plain.enhanced() } else { Ok(plain) }
    }

    /// The same node with the dissertation's write buffer in its SSDs.
    ///
    /// # Errors
    /// None, unless the parameters are gone.
    pub fn enhanced(mut self) -> Result<NodeSetup, ProfileError> {
        for change in ["cache_policy=parallel", "cache_bytes=1M", "cache_parallelism=8"] {
            self.ssd.set(change)?;
        }
        Ok(self)
    }

    /// The devices: data members first, then buffer members. Everything that the volume has was
    /// written before.
    pub(super) fn make(&self) -> Result<NodeDevices, String> {
        let (ssds, hdds) = self.members;
        let ssd_bytes = self.ssd.settings.capacity_bytes();
        let striped = |members, chunk_bytes| Striping { members, chunk_bytes, base_bytes: 0 };
        // All arrangements have a volume of the same size, so that traces are placed alike.
        let volume_bytes = self.volume_bytes()?;
        let (outline, striping, filled_bytes) = match self.arrangement {
            Arrangement::Ssds => {
                (None, striped(ssds, PLAIN_CHUNK_BYTES), volume_bytes / ssds.max(1) as u64)
            }
            Arrangement::Hdds => (None, striped(hdds, PLAIN_CHUNK_BYTES), 0),
            Arrangement::Hcdd | Arrangement::Hybrid => {
                let dedup = self.arrangement == Arrangement::Hcdd;
                let settings = VolumeSettings {
                    dedup: dedup.then_some(Hash::Sha1),
                    // The dissertation trusts equal fingerprints.
                    compare: false,
                    ..VolumeSettings::new(volume_bytes)
                };
                let options = OpenOptions {
                    // The node of the dissertation holds its tables in memory.
                    memory_bytes: 4 << 30,
                    high_water_percent: self.high_water_percent,
                    migration: self.migration,
                    durable_writes: self.log_syncs,
                };
                // A label comes before the log on each disk.
                let buffer_bytes = self.buffer_bytes / hdds.max(1) as u64 + LABEL_BYTES;
                let shape =
                    Shape { data: (ssds, ssd_bytes), buffer: (hdds, buffer_bytes), filled: true };
                let outline = Outline::new(&settings, &options, &shape);
                let outline = outline.map_err(|error| error.to_string())?;
                let filled = outline.filled_bytes() / ssds.max(1) as u64 + PLAIN_CHUNK_BYTES;
                (Some(outline), striped(ssds, PLAIN_CHUNK_BYTES), filled)
            }
        };
        let mut devices: Vec<Box<dyn Device>> = Vec::new();
        if self.arrangement != Arrangement::Hdds {
            for number in 0..ssds as u64 {
                let ssd = Ssd::new(&self.ssd, self.seed + number);
                let mut ssd = ssd.map_err(|error| error.to_string())?;
                ssd.precondition(filled_bytes.min(ssd.capacity_bytes()));
                devices.push(Box::new(ssd));
            }
        }
        if self.arrangement != Arrangement::Ssds {
            for _ in 0..hdds {
                devices.push(Box::new(Hdd::new(&self.hdd).map_err(|error| error.to_string())?));
            }
        }
        let log_bytes = self.buffer_bytes / hdds.max(1) as u64 + LABEL_BYTES;
        if outline.is_some() && devices.iter().skip(ssds).any(|it| it.capacity_bytes() < log_bytes)
        {
            return Err(format!(
                "the buffer has {} bytes, more than {hdds} x {} hold",
                self.buffer_bytes, self.hdd.name
            ));
        }
        let smallest = devices.iter().map(|device| device.capacity_bytes()).min().unwrap_or(0);
        if outline.is_none() && striping.size(smallest) < volume_bytes {
            return Err(format!(
                "{}: the volume has {volume_bytes} bytes, and the members have room for {}",
                self.arrangement.name(),
                striping.size(smallest)
            ));
        }
        Ok(NodeDevices { devices, outline, striping, volume_bytes })
    }

    /// Bytes of the volume.
    ///
    /// # Errors
    /// When there is no member of a kind.
    pub fn volume_bytes(&self) -> Result<u64, String> {
        let (ssds, hdds) = self.members;
        if ssds == 0 || hdds == 0 {
            return Err("a node needs an SSD and a disk".to_owned());
        }
        let all = self.ssd.settings.capacity_bytes() * ssds as u64;
        let (part, whole) = VOLUME_SHARE;
        let bytes = (all / whole * part).saturating_sub(128 << 20);
        let unit = PLAIN_CHUNK_BYTES * ssds as u64;
        match bytes / unit * unit {
            0 => Err(format!("the SSDs have {all} bytes together, too little for a volume")),
            bytes => Ok(bytes),
        }
    }
}

/// Devices and the volume on them.
pub(super) struct NodeDevices {
    pub devices: Vec<Box<dyn Device>>,
    pub outline: Option<Outline>,
    /// Of an array without a volume.
    pub striping: Striping,
    pub volume_bytes: u64,
}
