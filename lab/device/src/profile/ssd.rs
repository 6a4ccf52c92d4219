//! The table of an SSD's parameters.

use super::error::ProfileError;
use super::unit::ParameterUnit;

/// How the write buffer evicts pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// There is no buffer: a write ends when flash has programmed it.
    None,
    /// A full buffer evicts the pages that were written longest ago, as many together as `Parallel` does.
    Lru,
    /// A full buffer evicts the oldest pages of every package's list together.
    Parallel,
    /// Data are written as soon as they fill a flash page; the buffer holds the pages in flight.
    Behind,
    /// A full buffer evicts the page that was written longest ago: one for each page that waits.
    LruPage,
}

/// The choice of the block to collect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcPolicy {
    /// The block with the fewest valid pages.
    Greedy,
    /// The block with the best ratio of the space won, times its age, to the pages to move.
    CostBenefit,
    /// The block with the fewest valid pages among some random blocks.
    Choices,
}

/// The choice of the die for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiePlacement {
    /// The die is given by the page's number.
    Fixed,
    /// The dies take turns.
    Rotating,
}

/// One line of the table of parameters.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name in overrides.
    pub name: &'static str,
    /// The unit of its value.
    pub unit: ParameterUnit,
    /// The least value.
    pub least: u64,
    /// The greatest value.
    pub most: u64,
    /// The value if a preset has none.
    pub default: u64,
    /// Its meaning.
    pub meaning: &'static str,
    get: fn(&SsdSettings) -> u64,
    set: fn(&mut SsdSettings, u64),
}

impl Parameter {
    /// The value in `settings`.
    #[must_use]
    pub fn value(&self, settings: &SsdSettings) -> u64 {
        (self.get)(settings)
    }

    /// Sets the value.
    ///
    /// # Errors
    /// A value outside the range.
    pub fn assign(&self, settings: &mut SsdSettings, value: u64) -> Result<(), ProfileError> {
        if !(self.least..=self.most).contains(&value) {
            return Err(self.refuse(value.to_string()));
        }
        (self.set)(settings, value);
        Ok(())
    }

    pub(super) fn refuse(&self, value: String) -> ProfileError {
        let Parameter { name, unit, least, most, .. } = *self;
        ProfileError::Value { name, unit, least, most, value }
    }
}

macro_rules! parameters {
    ($($name:ident: $unit:expr, $least:expr, $most:expr, $default:expr, $meaning:literal;)*) => {
        /// All values of a modelled SSD; [`ssd_parameters`] returns the table of meanings, units
        /// and ranges.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct SsdSettings {
            $(#[doc = $meaning] pub $name: u64,)*
        }

        impl Default for SsdSettings {
            fn default() -> Self {
                SsdSettings { $($name: $default,)* }
            }
        }

        const TABLE: &[Parameter] = &[$(Parameter {
            name: stringify!($name),
            unit: $unit,
            least: $least,
            most: $most,
            default: $default,
            meaning: $meaning,
            get: |settings| settings.$name,
            set: |settings, value| settings.$name = value,
        },)*];
    };
}

use ParameterUnit::{
    Bytes, BytesPerSecond, Choice, Count, Cycles, Hertz, Nanoseconds, Permille, Switch,
};

/// The most blocks of a device: with blocks of 1 MiB, 16 TiB of flash. Each takes some 60 bytes of
/// tables.
const BLOCKS_MAX: u64 = 1 << 24;

const SECOND: u64 = 1_000_000_000;
const TIB: u64 = 1 << 40;

parameters! {
    link_bytes_per_second: BytesPerSecond, 1 << 20, TIB, 300_000_000, "Payload rate of the link to the host.";
    link_latency_ns: Nanoseconds, 0, SECOND, 0, "Time of a command or a completion on the link, each.";
    link_duplex: Switch, 0, 1, 0, "Whether reads and writes each have a direction of the link to themselves.";
    whole_transfers: Switch, 0, 1, 0, "Whether the bytes of a request cross the link together, with no request between: before flash for a write, after it for a read.";
    command_ns: Nanoseconds, 0, SECOND, 0, "Time of the host interface per command; commands are served one after another.";
    queue_depth: Count, 1, 65_536, 32, "Requests that the device accepts at once; further ones wait.";

    cache_policy: Choice(&["none", "lru", "parallel", "behind", "lru-page"]), 0, 4, 0, "How the write buffer evicts pages.";
    cache_bytes: Bytes, 0, TIB, 0, "Size of the write buffer.";
    cache_parallelism: Count, 1, 4096, 8, "Pages per package that a full write buffer evicts at once (lru, parallel).";
    read_ahead_pages: Count, 0, 4096, 0, "Pages read ahead of a sequential reader.";

    processor_hz: Hertz, 1_000_000, 100 * SECOND, 500_000_000, "Clock of the processor inside the device.";
    firmware_request_cycles: Cycles, 0, SECOND, 0, "Firmware's work per request of the host.";
    firmware_read_cycles: Cycles, 0, SECOND, 0, "Firmware's work per page that is read from flash.";
    firmware_write_cycles: Cycles, 0, SECOND, 0, "Firmware's work per page that is written to flash.";
    compare_cycles: Cycles, 0, SECOND, 50, "A program's comparison of two keys.";
    record_cycles: Cycles, 0, SECOND, 100, "A program's other work per record.";
    meter_cycles_per_1024: Cycles, 0, SECOND, 10_240, "A program's work per 1,024 units of its own meter: fuel, or bytes looked at.";
    copy_cycles_per_kib: Cycles, 0, SECOND, 256, "A program's copy of 1,024 bytes.";
    copy_unit_bytes: Bytes, 1, 1 << 20, 1, "The least copy; a shorter copy or a remainder takes as long.";
    dram_bytes: Bytes, 1 << 10, TIB, 64 << 20, "Memory inside the device, for the write buffer and for programs.";
    dram_bytes_per_second: BytesPerSecond, 1 << 20, 16 * TIB, 1_600_000_000, "Bandwidth of that memory; data pass once in and once out.";
    programs_use_memory: Switch, 0, 1, 0, "Whether the pages, copies and work of programs use the bus of that memory.";

    map_unit_bytes: Bytes, 512, 1 << 20, 4096, "Unit of the page map: a flash page, or a fraction of it.";
    map_cache_bytes: Bytes, 0, TIB, 0, "Memory for entries of the page map, 8 bytes each, when the map is on flash; 0 for the whole map in memory.";
    over_provisioning_permille: Permille, 10, 900, 70, "Part of the flash that the host cannot address.";
    trim: Switch, 0, 1, 1, "Whether trimmed pages become free.";
    placement: Choice(&["fixed", "rotating"]), 0, 1, 1, "How a page's die is chosen: by the page number, or in turn.";
    stripe_pages: Count, 1, 4096, 1, "Consecutive pages on one die before the next die.";
    block_summary_bytes: Bytes, 0, 1 << 20, 0, "Summary in the last page of a full block, which then holds no data.";

    gc_policy: Choice(&["greedy", "cost-benefit", "choices"]), 0, 2, 0, "How the block to collect is chosen.";
    gc_choices: Count, 1, 4096, 10, "Random blocks among which `choices` takes the one with the fewest valid pages.";
    gc_free_permille: Permille, 0, 500, 20, "A plane with at most this part of its blocks free collects before it writes.";
    gc_own_block: Switch, 0, 1, 1, "Whether collection writes to an open block of its own, apart from the host's.";
    copy_back: Switch, 0, 1, 0, "Whether pages move inside a plane without crossing the channel.";
    wear_spread: Count, 0, 1_000_000, 0, "Difference in erases within a plane at which cold data are moved; 0 for never.";
    endurance_cycles: Count, 1, 1_000_000_000, 1_000_000, "Erases after which a block is retired.";

    channels: Count, 1, 64, 8, "Channels.";
    ways: Count, 1, 64, 1, "Dies per channel.";
    planes: Count, 1, 16, 1, "Planes per die.";
    blocks_per_plane: Count, 4, 1 << 20, 1024, "Blocks per plane.";
    pages_per_block: Count, 2, 1 << 16, 64, "Pages per block.";
    page_bytes: Bytes, 512, 1 << 20, 4096, "Data bytes of a flash page.";
    page_spare_bytes: Bytes, 0, 1 << 16, 0, "Bytes that cross the channel in addition to a page's data.";
    transfer_unit_bytes: Bytes, 1, 1 << 20, 512, "Least part of a page that is read over the channel.";
    read_ns: Nanoseconds, 0, SECOND, 25_000, "Sensing a page (tR).";
    program_ns: Nanoseconds, 0, SECOND, 200_000, "Programming a page (tPROG).";
    erase_ns: Nanoseconds, 0, SECOND, 1_500_000, "Erasing a block (tBERS).";
    cell_bits: Count, 1, 3, 1, "Bits of a cell: the pages of a block take turns at as many times to sense and to program.";
    read_2_ns: Nanoseconds, 0, SECOND, 0, "Sensing a page of the second bit, with cell_bits from 2 on.";
    read_3_ns: Nanoseconds, 0, SECOND, 0, "Sensing a page of the third bit, with cell_bits=3.";
    program_2_ns: Nanoseconds, 0, SECOND, 0, "Programming a page of the second bit, with cell_bits from 2 on.";
    program_3_ns: Nanoseconds, 0, SECOND, 0, "Programming a page of the third bit, with cell_bits=3.";
    reads_first: Count, 0, 1_000_000, 0, "Reads of the host in a row that a die serves before other work that waits; 0 for its order of arrival.";
    suspend_ns: Nanoseconds, 0, SECOND, 0, "Time to suspend a program or an erase for such reads, and to resume it, each; 0 for never.";
    channel_bytes_per_second: BytesPerSecond, 1 << 20, TIB, 40_000_000, "Rate of a channel.";
    channel_overhead_ns: Nanoseconds, 0, SECOND, 0, "Time for which a page holds its channel in addition to its bytes.";
    multi_plane: Switch, 0, 1, 0, "Whether the planes of a die work together.";
    interleaving: Switch, 0, 1, 1, "Whether the dies of a channel work at the same time.";
}

/// All parameters of a modelled SSD, from the host down to the flash.
#[must_use]
pub fn ssd_parameters() -> &'static [Parameter] {
    TABLE
}

impl SsdSettings {
    /// How the write buffer evicts pages.
    #[must_use]
    pub fn cache_policy(&self) -> CachePolicy {
        use CachePolicy::{Behind, Lru, LruPage, None, Parallel};
        [None, Lru, Parallel, Behind, LruPage][self.cache_policy as usize]
    }

    /// The choice of the block to collect.
    #[must_use]
    pub fn gc_policy(&self) -> GcPolicy {
        [GcPolicy::Greedy, GcPolicy::CostBenefit, GcPolicy::Choices][self.gc_policy as usize]
    }

    /// The choice of the die for a page.
    #[must_use]
    pub fn placement(&self) -> DiePlacement {
        [DiePlacement::Fixed, DiePlacement::Rotating][self.placement as usize]
    }

    /// The number of dies.
    #[must_use]
    pub fn dies(&self) -> u64 {
        self.channels * self.ways
    }

    /// The pages of a block that hold data.
    #[must_use]
    pub fn data_pages_per_block(&self) -> u64 {
        self.pages_per_block - u64::from(self.block_summary_bytes > 0)
    }

    /// Mapped units in a flash page.
    #[must_use]
    pub fn units_per_page(&self) -> u64 {
        self.page_bytes / self.map_unit_bytes
    }

    /// Blocks of a plane beyond those that the host can address: at least one free, one that gives space
    /// to collection, and what is unused in the open ones.
    #[must_use]
    pub fn reserved_blocks(&self) -> u64 {
        let least = 1 + 2 * self.open_blocks();
        (self.blocks_per_plane * self.over_provisioning_permille / 1000).max(least)
    }

    /// Blocks of a plane that are open at once.
    #[must_use]
    pub fn open_blocks(&self) -> u64 {
        1 + self.gc_own_block + u64::from(self.map_cache_bytes > 0)
    }

    /// Entries of the page map in one of its pages on flash: places of 4 bytes.
    #[must_use]
    pub fn entries_per_map_page(&self) -> u64 {
        self.page_bytes / 4
    }

    /// Pages that the page map takes on flash; 0 if all of it is in memory.
    #[must_use]
    pub fn map_pages(&self) -> u64 {
        if self.map_cache_bytes == 0 {
            return 0;
        }
        self.logical_units().div_ceil(self.entries_per_map_page())
    }

    /// Mapped units that the host can address.
    #[must_use]
    pub fn logical_units(&self) -> u64 {
        let reserved = self.reserved_blocks();
        let blocks = (self.blocks_per_plane.saturating_sub(reserved)) * self.planes * self.dies();
        // Whole stripes, so that fixed placement fills all dies equally.
        let stripe = self.stripe_pages * self.dies();
        let mut stripes = blocks * self.data_pages_per_block() / stripe;
        if self.map_cache_bytes > 0 {
            let units = stripes * stripe * self.units_per_page();
            let of_map = units.div_ceil(self.entries_per_map_page());
            stripes = stripes.saturating_sub(of_map.div_ceil(stripe));
        }
        stripes * stripe * self.units_per_page()
    }

    /// Collecting a block wins a page if it has fewer valid units than this.
    #[must_use]
    pub fn movable_units(&self) -> u64 {
        (self.data_pages_per_block() - 1) * self.units_per_page() + 1
    }

    /// Bytes that the host can address.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.logical_units() * self.map_unit_bytes
    }

    /// A plane with at most this many free blocks collects before it writes. One free block is
    /// needed to move pages to.
    #[must_use]
    pub fn gc_free_blocks(&self) -> u64 {
        (self.blocks_per_plane * self.gc_free_permille / 1000).max(1)
    }

    /// Whether the values fit together.
    ///
    /// # Errors
    /// Which do not, and what would.
    pub fn check(&self) -> Result<(), ProfileError> {
        let refuse = |why: String| Err(ProfileError::Together(why));
        let SsdSettings { page_bytes, map_unit_bytes, transfer_unit_bytes, .. } = *self;
        if !page_bytes.is_power_of_two() || !map_unit_bytes.is_power_of_two() {
            return refuse(format!(
                "page_bytes={page_bytes} and map_unit_bytes={map_unit_bytes} are powers of two"
            ));
        }
        if map_unit_bytes > page_bytes {
            return refuse(format!(
                "map_unit_bytes={map_unit_bytes} is at most page_bytes={page_bytes}"
            ));
        }
        if transfer_unit_bytes > page_bytes {
            return refuse(format!(
                "transfer_unit_bytes={transfer_unit_bytes} is at most page_bytes={page_bytes}"
            ));
        }
        if self.block_summary_bytes > page_bytes {
            return refuse(format!("block_summary_bytes is at most page_bytes={page_bytes}"));
        }
        if self.suspend_ns > 0 && (self.reads_first == 0 || self.interleaving == 0) {
            return refuse(format!(
                "suspend_ns={} needs reads_first=1 or more, and interleaving=on",
                self.suspend_ns
            ));
        }
        // The units that the host can address must fit into the blocks that are neither free nor
        // open, and leave a block that gives space to collection.
        let reserved = self.reserved_blocks();
        let shared = self.blocks_per_plane.saturating_sub(reserved);
        let units = shared * self.data_pages_per_block() * self.units_per_page();
        let kept = self.gc_free_blocks() + 1 + self.open_blocks();
        let left = self.blocks_per_plane.saturating_sub(kept);
        if shared == 0 || units > left * self.movable_units() {
            return refuse(format!(
                "over_provisioning_permille={} reserves {reserved} of {} blocks of a plane, too \
                 few (or all) for collection, which keeps {} free as gc_free_permille={} says",
                self.over_provisioning_permille,
                self.blocks_per_plane,
                self.gc_free_blocks(),
                self.gc_free_permille
            ));
        }
        if self.logical_units() == 0 {
            return refuse(format!(
                "stripe_pages={} is more than the pages that a die can give the host",
                self.stripe_pages
            ));
        }
        let blocks = self.dies() * self.planes * self.blocks_per_plane;
        if blocks > BLOCKS_MAX {
            return refuse(format!(
                "{blocks} blocks are more than the {BLOCKS_MAX} whose tables fit in memory; give \
                 fewer channels, ways, planes or blocks_per_plane"
            ));
        }
        let units = blocks * self.pages_per_block * self.units_per_page();
        if units >= u64::from(u32::MAX) {
            return refuse(format!(
                "{units} units of map_unit_bytes={map_unit_bytes} are more than the 2^32 that \
                 the page map holds"
            ));
        }
        if self.cache_policy() != CachePolicy::None && self.cache_bytes < page_bytes {
            return refuse(format!(
                "a write buffer of cache_bytes={} holds no page of {page_bytes} bytes",
                self.cache_bytes
            ));
        }
        if self.cache_bytes.saturating_add(self.map_cache_bytes) > self.dram_bytes {
            return refuse(format!(
                "cache_bytes={} and map_cache_bytes={} are together at most dram_bytes={}",
                self.cache_bytes, self.map_cache_bytes, self.dram_bytes
            ));
        }
        if (1..8).contains(&self.map_cache_bytes) {
            return refuse(format!(
                "map_cache_bytes={} holds no entry of 8 bytes",
                self.map_cache_bytes
            ));
        }
        Ok(())
    }
}
