//! The position of a sector, and the time at which it passes under the heads.
//!
//! ```text
//!   sectors 0, 1, 2 …:  track 0 of cylinder 0 (outermost), its other heads, cylinder 1 …
//!   zones:              cylinders with equally many sectors a track; fewer in each further zone
//!   skew:               each next track begins later by the time of switching to it
//! ```
//!
//! The platters turn with time: at time t the angle is t modulo a revolution, in nanoseconds. All
//! times are whole numbers, so the end of a sector is exactly the beginning of the next one.

use super::profile::HddSettings;
use crate::request::SimTime;

/// Bytes of a sector.
pub(super) const SECTOR: u64 = 512;

/// The position of a sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SectorAddress {
    pub cylinder: u64,
    pub head: u64,
    /// The track, counted from the first track of the disk.
    pub track: u64,
    /// The sector on its track.
    pub sector: u64,
    /// The number of sectors of its track.
    pub track_sectors: u64,
}

/// The track of a sector, and where on it the sector begins: all that the way to it depends on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TrackPosition {
    pub cylinder: u64,
    pub head: u64,
    /// Nanoseconds of a turn, less than a whole one.
    pub angle_ns: u64,
}

#[derive(Debug)]
struct Zone {
    first_sector: u64,
    first_track: u64,
    track_sectors: u64,
}

/// The layout of a disk.
#[derive(Debug)]
pub(super) struct DiskLayout {
    zones: Vec<Zone>,
    heads: u64,
    cylinders: u64,
    sectors: u64,
    turn_ns: u64,
    skew_ns: u64,
}

impl DiskLayout {
    pub(super) fn new(settings: &HddSettings) -> Self {
        let HddSettings { cylinders, heads, zones: count, .. } = *settings;
        let mut zones = Vec::new();
        let (mut first_sector, mut first_track) = (0, 0);
        for zone in 0..count {
            let end_track = cylinders * (zone + 1) / count * heads;
            let less = settings.sectors_outer - settings.sectors_inner;
            let track_sectors =
                settings.sectors_outer - if count > 1 { less * zone / (count - 1) } else { 0 };
            zones.push(Zone { first_sector, first_track, track_sectors });
            first_sector += (end_track - first_track) * track_sectors;
            first_track = end_track;
        }
        let turn_ns = settings.turn_ns();
        DiskLayout {
            zones,
            heads,
            cylinders,
            sectors: first_sector,
            turn_ns,
            skew_ns: settings.skew_ns,
        }
    }

    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    pub(super) fn cylinders(&self) -> u64 {
        self.cylinders
    }

    pub(super) fn place(&self, sector: u64) -> SectorAddress {
        let at = self.zones.partition_point(|zone| zone.first_sector <= sector) - 1;
        let zone = &self.zones[at];
        let within = sector - zone.first_sector;
        let track = zone.first_track + within / zone.track_sectors;
        SectorAddress {
            cylinder: track / self.heads,
            head: track % self.heads,
            track,
            sector: within % zone.track_sectors,
            track_sectors: zone.track_sectors,
        }
    }

    /// The angle at which a sector begins, in nanoseconds of a turn, without its track's skew.
    fn begin_ns(&self, sector: u64, track_sectors: u64) -> u64 {
        sector * self.turn_ns / track_sectors
    }

    /// What the arm needs to know of a sector.
    pub(super) fn target(&self, sector: u64) -> TrackPosition {
        let SectorAddress { cylinder, head, track, sector, track_sectors } = self.place(sector);
        let skew = u128::from(track) * u128::from(self.skew_ns) % u128::from(self.turn_ns);
        let angle = self.begin_ns(sector, track_sectors) + skew as u64;
        TrackPosition { cylinder, head, angle_ns: angle % self.turn_ns }
    }

    /// The angle of the platters at `now`, in nanoseconds of a turn.
    pub(super) fn angle_ns(&self, now: SimTime) -> u64 {
        now.0 % self.turn_ns
    }

    /// The time until the sector begins under the heads. The platters are at `angle_ns`, which may be more than a turn.
    pub(super) fn wait_ns(&self, target: &TrackPosition, angle_ns: u64) -> u64 {
        // Mostly it is less than a turn, and the search for the nearest job spent a tenth of its time in the division.
        let behind = if angle_ns < self.turn_ns { angle_ns } else { angle_ns % self.turn_ns };
        let ahead = if target.angle_ns < behind { self.turn_ns } else { 0 };
        target.angle_ns + ahead - behind
    }

    /// The time from the beginning of sector `first` to the end of the sector before `end`, from
    /// track to track.
    pub(super) fn transfer_ns(&self, first: u64, end: u64) -> u64 {
        let mut at = first;
        let mut total = 0;
        while at < end {
            let place = self.place(at);
            let stop = (place.sector + (end - at)).min(place.track_sectors);
            total += self.begin_ns(stop, place.track_sectors)
                - self.begin_ns(place.sector, place.track_sectors);
            at += stop - place.sector;
            if at < end {
                total += self.skew_ns;
            }
        }
        total
    }

    /// The number of sectors from `first` on that have passed completely in `span_ns`, at most
    /// `most`.
    pub(super) fn passed(&self, first: u64, span_ns: u64, most: u64) -> u64 {
        let mut at = first;
        let mut left = span_ns;
        let limit = (first + most).min(self.sectors);
        while at < limit {
            let place = self.place(at);
            let from = self.begin_ns(place.sector, place.track_sectors);
            let to_end = self.turn_ns - from;
            if left < to_end {
                // The last sector that ends by that time.
                let reached = u128::from(from + left) * u128::from(place.track_sectors);
                let mut sector = (reached / u128::from(self.turn_ns)) as u64;
                while self.begin_ns(sector + 1, place.track_sectors) <= from + left {
                    sector += 1;
                }
                at += sector - place.sector;
                break;
            }
            at += place.track_sectors - place.sector;
            left -= to_end;
            match left.checked_sub(self.skew_ns) {
                Some(rest) => left = rest,
                None => break,
            }
        }
        at.min(limit) - first
    }
}
