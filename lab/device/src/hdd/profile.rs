//! Profiles of disks: parameters with unit, range, source and meaning, as for SSDs.

use crate::profile::{ParameterUnit, ProfileError, nearest_of};

/// The choice of the next request for the arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArmPolicy {
    /// The request that arrived first.
    Fifo,
    /// The request on the nearest cylinder.
    Seek,
    /// The request whose first sector is under the heads first: the least seek and turn together.
    Position,
}

const POLICIES: &[&str] = &["fifo", "sstf", "sptf"];

/// One line of the table of parameters.
#[derive(Debug, Clone, Copy)]
pub struct HddParameter {
    /// Its name in overrides.
    pub name: &'static str,
    /// The unit of its value.
    pub unit: ParameterUnit,
    /// The least value.
    pub least: u64,
    /// The greatest value.
    pub most: u64,
    /// Its meaning.
    pub meaning: &'static str,
    get: fn(&HddSettings) -> u64,
    set: fn(&mut HddSettings, u64),
}

impl HddParameter {
    /// The value in `settings`.
    #[must_use]
    pub fn value(&self, settings: &HddSettings) -> u64 {
        (self.get)(settings)
    }

    #[cfg(test)]
    pub(super) fn assign(&self, settings: &mut HddSettings, value: u64) {
        (self.set)(settings, value);
    }
}

macro_rules! parameters {
    ($($name:ident: $unit:expr, $least:expr, $most:expr, $meaning:literal;)*) => {
        /// All values of a modelled disk; [`hdd_parameters`] returns the table of meanings, units
        /// and ranges.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct HddSettings {
            $(#[doc = $meaning] pub $name: u64,)*
        }

        const TABLE: &[HddParameter] = &[$(HddParameter {
            name: stringify!($name),
            unit: $unit,
            least: $least,
            most: $most,
            meaning: $meaning,
            get: |settings| settings.$name,
            set: |settings, value| settings.$name = value,
        },)*];
    };
}

use ParameterUnit::{Bytes, BytesPerSecond, Choice, Count, Nanoseconds, Switch};

const SECOND: u64 = 1_000_000_000;

parameters! {
    link_bytes_per_second: BytesPerSecond, 1 << 20, 1 << 40, "Payload rate of the link to the host.";
    command_ns: Nanoseconds, 0, SECOND, "Firmware's time for a command; commands overlap.";
    queue_depth: Count, 1, 65_536, "Requests that the disk accepts at once; further ones wait.";
    queue_policy: Choice(POLICIES), 0, 2, "How the next request for the arm is chosen.";
    queue_patience_ns: Nanoseconds, 0, 3600 * SECOND, "A request that has waited longer is served first.";
    buffer_bytes: Bytes, 1 << 16, 1 << 32, "Memory for read-ahead, and as much again for the write cache.";
    buffer_segments: Count, 1, 1024, "Sequential readers that the buffer can follow at once.";
    read_ahead: Switch, 0, 1, "Whether the heads continue to read until the arm is needed elsewhere.";
    write_cache: Switch, 0, 1, "Whether a write ends when the buffer holds it.";
    rpm: Count, 1000, 100_000, "Revolutions per minute.";
    cylinders: Count, 2, 10_000_000, "Tracks per surface.";
    heads: Count, 1, 64, "Surfaces.";
    zones: Count, 1, 1000, "Groups of cylinders with the same number of sectors per track.";
    sectors_outer: Count, 1, 100_000, "Sectors of 512 bytes on a track of the outermost zone.";
    sectors_inner: Count, 1, 100_000, "Sectors of 512 bytes on a track of the innermost zone.";
    head_switch_ns: Nanoseconds, 0, SECOND, "Time of a switch to another head of the cylinder.";
    skew_ns: Nanoseconds, 0, SECOND, "Delay of the start of the next track, so that a switch to it loses no turn.";
    seek_track_read_ns: Nanoseconds, 1, SECOND, "Seek to the next cylinder, to read.";
    seek_mean_read_ns: Nanoseconds, 1, SECOND, "Mean seek of two random cylinders, to read.";
    seek_full_read_ns: Nanoseconds, 1, SECOND, "Seek over all cylinders, to read.";
    seek_track_write_ns: Nanoseconds, 1, SECOND, "Seek to the next cylinder, to write.";
    seek_mean_write_ns: Nanoseconds, 1, SECOND, "Mean seek of two random cylinders, to write.";
    seek_full_write_ns: Nanoseconds, 1, SECOND, "Seek over all cylinders, to write.";
}

/// All parameters of a modelled disk, from the host down to the platters.
#[must_use]
pub fn hdd_parameters() -> &'static [HddParameter] {
    TABLE
}

impl HddSettings {
    /// The choice of the next request for the arm.
    #[must_use]
    pub fn policy(&self) -> ArmPolicy {
        [ArmPolicy::Fifo, ArmPolicy::Seek, ArmPolicy::Position][self.queue_policy as usize]
    }

    /// Nanoseconds of a revolution.
    #[must_use]
    pub fn turn_ns(&self) -> u64 {
        60 * SECOND / self.rpm
    }

    /// Bytes per second of a sequential transfer over tracks with this many sectors: one track per
    /// turn and skew.
    #[must_use]
    pub fn sequential_rate(&self, track_sectors: u64) -> f64 {
        (track_sectors * 512) as f64 * 1e9 / (self.turn_ns() + self.skew_ns) as f64
    }

    /// Whether the values fit together.
    ///
    /// # Errors
    /// Which do not, and what would.
    pub fn check(&self) -> Result<(), ProfileError> {
        let refuse = |why: String| Err(ProfileError::Together(why));
        if self.sectors_inner > self.sectors_outer {
            return refuse(format!(
                "sectors_inner={} is at most sectors_outer={}",
                self.sectors_inner, self.sectors_outer
            ));
        }
        if self.zones > self.cylinders {
            return refuse(format!("zones={} is at most cylinders={}", self.zones, self.cylinders));
        }
        if self.buffer_bytes / self.buffer_segments < 512 {
            return refuse(format!(
                "buffer_bytes={} in {} buffer_segments is less than a sector each",
                self.buffer_bytes, self.buffer_segments
            ));
        }
        let switch = self.head_switch_ns.max(self.seek_track_read_ns).max(self.seek_track_write_ns);
        if self.skew_ns < switch {
            return refuse(format!(
                "skew_ns={} is at least {switch}, the longest of head_switch_ns, \
                 seek_track_read_ns and seek_track_write_ns",
                self.skew_ns
            ));
        }
        for (kind, track, mean, full) in [
            ("read", self.seek_track_read_ns, self.seek_mean_read_ns, self.seek_full_read_ns),
            ("write", self.seek_track_write_ns, self.seek_mean_write_ns, self.seek_full_write_ns),
        ] {
            if full < track {
                return refuse(format!(
                    "seek_full_{kind}_ns={full} is at least seek_track_{kind}_ns={track}"
                ));
            }
            // Both terms of the curve rise, so a longer seek never takes less time.
            let least = (2 * track + full).div_ceil(3);
            let most = (7 * track + 8 * full) / 15;
            if !(least..=most).contains(&mean) {
                return refuse(format!(
                    "seek_mean_{kind}_ns={mean} is not from {least} to {most}, as \
                     seek_track_{kind}_ns={track} and seek_full_{kind}_ns={full} need it"
                ));
            }
        }
        Ok(())
    }
}

/// The profile of a disk: all settings, each with the source of its value.
#[derive(Debug, Clone)]
pub struct HddProfile {
    /// Its name.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// All values.
    pub settings: HddSettings,
    sources: Vec<(&'static str, &'static str)>,
}

type PresetValues = &'static [(&'static str, u64, &'static str)];

const PRESETS: [(&str, &str, PresetValues); 3] = [
    ("cheetah", "Seagate Cheetah 15K.5, 146 GB, 15,000 rpm, SAS", CHEETAH),
    ("barracuda", "Seagate Barracuda 7200.12, 500 GB, 7,200 rpm, SATA", BARRACUDA),
    ("wd5000aakx", "Western Digital Caviar Blue WD5000AAKX, 500 GB, 7,200 rpm, SATA", WD5000AAKX),
];

const CHEETAH_SHEET: &str = "Seagate Cheetah 15K.5 data sheet";
const CHEETAH_RATE: &str = "from the data sheet's 73 to 125 MB/s, with turn and skew";
const BARRACUDA_SHEET: &str = "Seagate Barracuda 7200.12 data sheet";
const ASSUMED: &str = "assumed, as other disks of its class; no public figure was at hand";

const CHEETAH: PresetValues = &[
    ("link_bytes_per_second", 300_000_000, "SAS, 3 Gb/s with 8b/10b coding"),
    ("command_ns", 100_000, ASSUMED),
    ("queue_depth", 64, "SCSI tagged command queueing; the depth is assumed"),
    ("queue_policy", 2, "SCSI simple tags: the disk chooses"),
    ("queue_patience_ns", 500_000_000, ASSUMED),
    ("buffer_bytes", 16 << 20, CHEETAH_SHEET),
    ("buffer_segments", 32, ASSUMED),
    ("read_ahead", 1, "SCSI caching page, DRA 0, as shipped"),
    ("write_cache", 0, "assumed, as servers run it: a write that ended is on the platter"),
    ("rpm", 15_000, CHEETAH_SHEET),
    ("cylinders", 81_186, "from 146.8 GB with the sectors below; DiskSim's model has 72,170"),
    ("heads", 4, "DiskSim 4.0, Cheetah 15K.5 of 146 GB"),
    ("zones", 14, "DiskSim 4.0, Cheetah 15K.5 of 146 GB"),
    ("sectors_outer", 1115, CHEETAH_RATE),
    ("sectors_inner", 651, CHEETAH_RATE),
    ("head_switch_ns", 400_000, ASSUMED),
    ("skew_ns", 566_676, "DiskSim 4.0, Cheetah 15K.5: 0.141669 of a turn"),
    ("seek_track_read_ns", 200_000, CHEETAH_SHEET),
    ("seek_mean_read_ns", 3_500_000, CHEETAH_SHEET),
    ("seek_full_read_ns", 7_400_000, ASSUMED),
    ("seek_track_write_ns", 400_000, CHEETAH_SHEET),
    ("seek_mean_write_ns", 4_000_000, CHEETAH_SHEET),
    ("seek_full_write_ns", 7_900_000, ASSUMED),
];

const BARRACUDA: PresetValues = &[
    ("link_bytes_per_second", 300_000_000, "SATA, 3 Gb/s with 8b/10b coding"),
    ("command_ns", 150_000, ASSUMED),
    ("queue_depth", 32, "SATA native command queueing"),
    ("queue_policy", 2, "SATA native command queueing: the disk chooses"),
    ("queue_patience_ns", 1_000_000_000, ASSUMED),
    ("buffer_bytes", 16 << 20, BARRACUDA_SHEET),
    ("buffer_segments", 16, ASSUMED),
    ("read_ahead", 1, "assumed, as shipped"),
    ("write_cache", 1, "assumed, as shipped"),
    ("rpm", 7200, BARRACUDA_SHEET),
    ("cylinders", 289_672, "computed from the data sheet's 500.1 GB with the sectors below"),
    ("heads", 2, BARRACUDA_SHEET),
    ("zones", 24, ASSUMED),
    ("sectors_outer", 2278, "from the data sheet's 125 MB/s, with turn and skew"),
    ("sectors_inner", 1094, "60 MB/s at the inner edge, assumed, with turn and skew"),
    ("head_switch_ns", 1_000_000, ASSUMED),
    ("skew_ns", 1_000_000, "assumed, as long as a switch"),
    ("seek_track_read_ns", 1_000_000, BARRACUDA_SHEET),
    ("seek_mean_read_ns", 8_500_000, BARRACUDA_SHEET),
    ("seek_full_read_ns", 18_000_000, ASSUMED),
    ("seek_track_write_ns", 1_000_000, "as to read; the data sheet says 1.2 ms"),
    ("seek_mean_write_ns", 9_500_000, BARRACUDA_SHEET),
    ("seek_full_write_ns", 19_000_000, ASSUMED),
];

const WD_MANUAL: &str = "WD technical reference manual 2679-701211, XL500S (WD5000AAKX)";
const WD_RATE: &str =
    "fitted to the 126 MB/s that WD gives its Blue disks of 500 GB per platter, with turn and skew";
const WD_SEEK: &str = "assumed: WD's figure for the WD5000AAKS; the manual's was not at hand";

const WD5000AAKX: PresetValues = &[
    ("link_bytes_per_second", 600_000_000, "SATA, 6 Gb/s with 8b/10b coding"),
    ("command_ns", 150_000, ASSUMED),
    ("queue_depth", 32, "SATA native command queueing"),
    ("queue_policy", 2, "SATA native command queueing: the disk chooses"),
    ("queue_patience_ns", 1_000_000_000, ASSUMED),
    ("buffer_bytes", 16 << 20, WD_MANUAL),
    ("buffer_segments", 16, ASSUMED),
    ("read_ahead", 1, "assumed, as shipped"),
    ("write_cache", 1, "assumed, as shipped"),
    ("rpm", 7200, WD_MANUAL),
    (
        "cylinders",
        287_972,
        "computed from IDEMA's 976,773,168 sectors of a 500 GB disk with those below",
    ),
    ("heads", 2, "assumed: one platter of 500 GB"),
    ("zones", 24, ASSUMED),
    ("sectors_outer", 2297, WD_RATE),
    ("sectors_inner", 1094, "60 MB/s at the inner edge, assumed, with turn and skew"),
    ("head_switch_ns", 1_000_000, ASSUMED),
    ("skew_ns", 1_000_000, "assumed, as long as a switch"),
    ("seek_track_read_ns", 1_000_000, ASSUMED),
    ("seek_mean_read_ns", 8_900_000, WD_SEEK),
    ("seek_full_read_ns", 19_000_000, ASSUMED),
    ("seek_track_write_ns", 1_000_000, "assumed, as to read"),
    ("seek_mean_write_ns", 10_900_000, WD_SEEK),
    ("seek_full_write_ns", 23_000_000, ASSUMED),
];

impl HddProfile {
    /// The preset of that name.
    ///
    /// # Errors
    /// No such preset; the error names those that there are.
    pub fn preset(name: &str) -> Result<HddProfile, ProfileError> {
        let Some((name, about, values)) = PRESETS.iter().find(|preset| preset.0 == name) else {
            let known = Self::names().collect::<Vec<_>>().join(", ");
            return Err(ProfileError::Preset { name: name.to_owned(), known });
        };
        let mut settings = HddSettings::default();
        let mut sources = Vec::new();
        for (name, value, source) in *values {
            let parameter = find(name).expect("a preset names parameters");
            (parameter.set)(&mut settings, *value);
            sources.push((*name, *source));
        }
        Ok(HddProfile { name, about, settings, sources })
    }

    /// The names of all presets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|preset| preset.0)
    }

    /// The source of a parameter's value.
    #[must_use]
    pub fn source(&self, name: &str) -> &'static str {
        let found = self.sources.iter().rev().find(|(known, _)| *known == name);
        found.map_or("default", |(_, source)| source)
    }

    /// Applies one `name=value`.
    ///
    /// # Errors
    /// A text of another form, an unknown name, or a value out of range. [`HddSettings::check`]
    /// checks whether the values fit together.
    pub fn set(&mut self, text: &str) -> Result<(), ProfileError> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| ProfileError::Form { text: text.to_owned() })?;
        let (name, value) = (name.trim(), value.trim());
        let unknown = || ProfileError::Unknown { name: name.to_owned(), near: nearest(name) };
        let parameter = find(name).ok_or_else(unknown)?;
        let HddParameter { name, unit, least, most, .. } = *parameter;
        let number = unit.parse(value).filter(|number| (least..=most).contains(number));
        let refuse = || ProfileError::Value { name, unit, least, most, value: value.to_owned() };
        (parameter.set)(&mut self.settings, number.ok_or_else(refuse)?);
        self.sources.push((name, "set by the user"));
        Ok(())
    }
}

fn find(name: &str) -> Option<&'static HddParameter> {
    TABLE.iter().find(|parameter| parameter.name == name)
}

/// The parameter that a user probably meant.
fn nearest(name: &str) -> Option<&'static str> {
    nearest_of(name, TABLE.iter().map(|parameter| parameter.name))
}
