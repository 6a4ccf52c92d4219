//! The presets, each value with its source.

pub(super) struct Preset {
    pub name: &'static str,
    pub about: &'static str,
    pub values: &'static [(&'static str, u64, &'static str)],
}

pub(super) const ALL: &[Preset] = &[
    Preset {
        name: "jasmine",
        about: "ActiveSort's prototype: OpenSSD Jasmine, 87.5 MHz ARM7, 4 channels, SATA2",
        values: JASMINE,
    },
    Preset {
        name: "msr",
        about: "the SSD extension of DiskSim in its validation runs: 8 elements of SLC flash",
        values: MSR,
    },
    Preset { name: "nvme", about: "Samsung 970 Pro as NVMeVirt models it", values: NVME },
    Preset {
        name: "isc",
        about: "the in-storage computing prototype: a 400 GB SLC SSD on 6 Gb SAS",
        values: ISC,
    },
    Preset {
        name: "830",
        about: "Samsung SSD 830, 256 GB: 64 dies of MLC flash, SATA 6 Gb/s",
        values: SAMSUNG_830,
    },
    Preset {
        name: "tlc",
        about: "a drive of TLC flash on PCIe 3.0: times of each page type by SimpleSSD, as FEMU has them",
        values: TLC,
    },
];

const ACTIVESORT: &str = "ActiveSort 4.1.1";
const OPENSSD: &str = "measured, openssd-project.org/jasmine/devinfo";
const NAND: &str = "K9LCG08U1M as given in SKKU ICE3028, Tutorial FTL";
const ASSUMED: &str = "assumed; no public figure";

const JASMINE: &[(&str, u64, &str)] = &[
    ("link_bytes_per_second", 260_000_000, OPENSSD),
    ("link_duplex", 0, "SATA is half duplex"),
    ("queue_depth", 32, "SATA NCQ"),
    ("processor_hz", 87_500_000, ACTIVESORT),
    ("firmware_read_cycles", 500, ASSUMED),
    ("firmware_write_cycles", 500, ASSUMED),
    (
        "record_cycles",
        440,
        "fitted to ActiveSort 5.2: with records of 128 bytes 84.9 % less is read",
    ),
    ("copy_cycles_per_kib", 296, "mem_set_dram, 302.88 MB/s, openssd-project.org/jasmine/devinfo"),
    ("copy_unit_bytes", 128, "ActiveSort 5.2"),
    ("dram_bytes", 64 << 20, ACTIVESORT),
    ("dram_bytes_per_second", 700_000_000, ASSUMED),
    (
        "programs_use_memory",
        1,
        "ActiveSort 4.1: buffers are in the one DRAM, from and to which flash controllers move data",
    ),
    ("map_unit_bytes", 32 << 10, "ActiveSort 4.1.1: page-mapped FTL"),
    ("channels", 4, ACTIVESORT),
    ("ways", 1, "ActiveSort 4.1.1: one module a channel"),
    ("planes", 1, "ActiveSort 4.1.1: a page of 32 KB already spans planes and chips"),
    ("blocks_per_plane", 8192, "ActiveSort 4.1.1: modules of 32 GB"),
    ("pages_per_block", 128, "ActiveSort 4.1.1: blocks of 4 MB"),
    ("page_bytes", 32 << 10, ACTIVESORT),
    ("read_ns", 250_000, NAND),
    ("program_ns", 1_300_000, NAND),
    ("erase_ns", 1_500_000, NAND),
    ("channel_bytes_per_second", 66_700_000, "assumed: 16 bits every 30 ns"),
    (
        "channel_overhead_ns",
        190_000,
        "fitted to ActiveSort's raw read of 140.8 MB/s; OpenSSD measured 93,000 without FTL and link",
    ),
];

const DISKSIM: &str = "DiskSim SSD extension, ssdmodel/valid/ssd-*.parv";
const DISKSIM_CODE: &str = "DiskSim SSD extension, ssdmodel/ssd_timing.c with its outv";

const MSR: &[(&str, u64, &str)] = &[
    ("link_bytes_per_second", 2_147_651_007, "0.0002384 ms a sector, ssdmodel/valid/ssd-*.parv"),
    ("link_duplex", 0, DISKSIM),
    ("whole_transfers", 1, "DiskSim SSD extension, ssdmodel/ssd.c with Never disconnect = 1"),
    ("queue_depth", 20, DISKSIM),
    ("dram_bytes_per_second", 1 << 40, "DiskSim has none"),
    ("over_provisioning_permille", 150, DISKSIM),
    ("placement", 0, DISKSIM_CODE),
    ("block_summary_bytes", 528, "one sector of 528 bytes, inferred from ssd-sw250k.outv"),
    ("gc_policy", 0, DISKSIM),
    ("gc_free_permille", 50, DISKSIM),
    ("gc_own_block", 0, DISKSIM_CODE),
    ("copy_back", 1, DISKSIM),
    ("channels", 8, "DiskSim SSD extension: an element has its own pins"),
    ("ways", 1, DISKSIM),
    ("planes", 8, DISKSIM),
    ("blocks_per_plane", 2048, DISKSIM),
    ("pages_per_block", 64, DISKSIM),
    ("page_bytes", 4096, DISKSIM),
    ("map_unit_bytes", 4096, DISKSIM),
    ("page_spare_bytes", 128, "sectors of 528 bytes, inferred from ssd-sr250k.outv"),
    ("transfer_unit_bytes", 4096, DISKSIM_CODE),
    ("read_ns", 25_000, DISKSIM),
    ("program_ns", 200_000, DISKSIM),
    ("erase_ns", 1_500_000, DISKSIM),
    ("channel_bytes_per_second", 40_000_000, "25 ns a byte, ssdmodel/valid/ssd-*.parv"),
    ("multi_plane", 0, "one parallel unit, ssdmodel/valid/ssd-*.parv"),
];

const NVMEVIRT: &str = "NVMeVirt, ssd_config.h, SAMSUNG_970PRO";

const NVME: &[(&str, u64, &str)] = &[
    ("link_bytes_per_second", 3_360_000_000, NVMEVIRT),
    ("link_latency_ns", 4_250, "NVMeVirt, ssd_config.h: 8,500 ns of firmware for a 4 KiB read"),
    ("link_duplex", 1, "PCIe has a lane pair for each direction"),
    ("queue_depth", 1024, ASSUMED),
    ("cache_policy", 3, "NVMeVirt, conv_ftl.c: a page is programmed when it is full"),
    ("cache_bytes", 1 << 20, "NVMeVirt, ssd_config.h: two pages per die"),
    ("dram_bytes", 512 << 20, "Samsung 970 Pro 512 GB data sheet"),
    ("dram_bytes_per_second", 12_800_000_000, ASSUMED),
    ("over_provisioning_permille", 70, NVMEVIRT),
    ("gc_own_block", 1, "NVMeVirt, conv_ftl.c: a write pointer for collection"),
    ("channels", 8, NVMEVIRT),
    ("ways", 2, NVMEVIRT),
    ("planes", 1, NVMEVIRT),
    ("blocks_per_plane", 8192, NVMEVIRT),
    ("pages_per_block", 128, "512 GB over NVMeVirt's 8,192 blocks per die"),
    ("page_bytes", 32 << 10, NVMEVIRT),
    ("map_unit_bytes", 4096, "NVMeVirt maps 4 KiB pages"),
    ("transfer_unit_bytes", 4096, NVMEVIRT),
    ("read_ns", 36_000, NVMEVIRT),
    ("program_ns", 185_000, NVMEVIRT),
    ("erase_ns", 0, NVMEVIRT),
    ("channel_bytes_per_second", 800_000_000, NVMEVIRT),
];

const ISC_PAPER: &str = "ISC for Hadoop 2.1";
const SLC: &str = "assumed, as DiskSim's SLC flash; the prototype's is not public";

const ISC: &[(&str, u64, &str)] = &[
    ("link_bytes_per_second", 750_000_000, ISC_PAPER),
    ("link_duplex", 1, "SAS is full duplex"),
    ("queue_depth", 64, ASSUMED),
    ("processor_hz", 400_000_000, ASSUMED),
    (
        "meter_cycles_per_1024",
        21_450,
        "fitted to ISC for Hadoop 4.2.2: the pure map of 64 MB takes 12.81 s / 3.6",
    ),
    ("dram_bytes", 512 << 20, ASSUMED),
    ("dram_bytes_per_second", 12_800_000_000, ASSUMED),
    ("programs_use_memory", 1, "ISC for Hadoop 2.1.1: all channels share the memory"),
    ("over_provisioning_permille", 250, "ISC for Hadoop 4: 400 GB; of 512 GiB of flash, assumed"),
    ("channels", 8, ASSUMED),
    ("ways", 8, ASSUMED),
    ("blocks_per_plane", 4096, "assumed: 512 GiB of flash"),
    ("pages_per_block", 256, ASSUMED),
    ("page_bytes", 8192, "ISC for Hadoop 4"),
    ("map_unit_bytes", 8192, ASSUMED),
    ("read_ns", 25_000, SLC),
    ("program_ns", 200_000, SLC),
    ("erase_ns", 1_500_000, SLC),
    ("channel_bytes_per_second", 400_000_000, "ISC for Hadoop 2.1: 3.2 GB/s over the channels"),
    (
        "channel_overhead_ns",
        2_515,
        "fitted to ISC for Hadoop 4.1.1, footnote 4: 3.8 times the link are measured",
    ),
];

const DIES_830: &str = "Tech Report 22401: 8 packages of 8 dies of 32 Gb";

/// The data sheet gives four rates, and each has one parameter that is fitted to it. All else is
/// from a source or assumed.
const SAMSUNG_830: &[(&str, u64, &str)] = &[
    (
        "link_bytes_per_second",
        522_000_000,
        "fitted to 520 MB/s of reads in order; SATA 6 Gb/s carries 600",
    ),
    ("link_duplex", 0, "SATA is half duplex"),
    ("queue_depth", 32, "SATA NCQ; hdparm of the drive says 32"),
    ("cache_policy", 3, ASSUMED),
    ("cache_bytes", 4 << 20, ASSUMED),
    ("read_ahead_pages", 16, "hdparm of the drive: look-ahead; its length is assumed"),
    ("processor_hz", 214_000_000, "X-bit labs, 840 Pro: the MDX's 300 MHz are 40 % more"),
    (
        "firmware_request_cycles",
        1_820,
        "8.5 us: with the read, fitted to 80,000 random reads per second",
    ),
    ("firmware_read_cycles", 856, "4 us, assumed; the request's share is fitted with it"),
    ("firmware_write_cycles", 3_270, "15.3 us: fitted to 36,000 random writes per second"),
    ("dram_bytes", 256 << 20, "Tech Report 22401: 256 MB of DRAM"),
    ("dram_bytes_per_second", 3_200_000_000, ASSUMED),
    ("map_unit_bytes", 8192, "a page, assumed: a write of 4 KB reads the rest first"),
    ("over_provisioning_permille", 68, "500,118,192 sectors (hdparm) of 256 GiB of flash"),
    ("channels", 8, DIES_830),
    ("ways", 8, DIES_830),
    ("planes", 2, ASSUMED),
    ("blocks_per_plane", 2048, DIES_830),
    ("pages_per_block", 128, ASSUMED),
    ("page_bytes", 8192, ASSUMED),
    ("read_ns", 100_000, "assumed, as other MLC flash of 2x nm"),
    (
        "program_ns",
        1_249_000,
        "fitted to 400 MB/s of writes in order, 64 dies of one plane at a time",
    ),
    ("erase_ns", 3_000_000, "assumed, as other MLC flash of 2x nm"),
    ("endurance_cycles", 3_000, "assumed, as other MLC flash of 2x nm"),
    ("channel_bytes_per_second", 133_000_000, "Tech Report 22401: toggle DDR at 133 Mb/s per pin"),
];

const FEMU: &str = "FEMU, hw/femu/nand/nand.h: TLC after SimpleSSD (CAL 2018)";

/// The flash is from the source; the drive around it is assumed, as FEMU has none.
const TLC: &[(&str, u64, &str)] = &[
    ("link_bytes_per_second", 3_300_000_000, "PCIe 3.0 with four lanes, less its headers; assumed"),
    ("link_latency_ns", 4_250, "assumed, as the preset nvme"),
    ("link_duplex", 1, "PCIe has a lane pair for each direction"),
    ("queue_depth", 1024, ASSUMED),
    ("cache_policy", 3, ASSUMED),
    ("cache_bytes", 64 << 20, ASSUMED),
    ("dram_bytes", 512 << 20, ASSUMED),
    ("dram_bytes_per_second", 12_800_000_000, ASSUMED),
    ("over_provisioning_permille", 70, ASSUMED),
    ("channels", 8, "FEMU's own default: 8 channels of 8 chips"),
    ("ways", 8, "FEMU's own default: 8 channels of 8 chips"),
    ("planes", 2, ASSUMED),
    ("blocks_per_plane", 512, ASSUMED),
    ("pages_per_block", 384, "a multiple of three; assumed"),
    ("page_bytes", 16 << 10, "assumed; FEMU's 52,433 ns of a page on its channel are 312 MB/s"),
    ("map_unit_bytes", 4096, ASSUMED),
    ("transfer_unit_bytes", 4096, ASSUMED),
    ("cell_bits", 3, FEMU),
    ("read_ns", 56_500, FEMU),
    ("read_2_ns", 77_500, FEMU),
    ("read_3_ns", 106_000, FEMU),
    ("program_ns", 820_500, FEMU),
    ("program_2_ns", 2_225_000, FEMU),
    ("program_3_ns", 5_734_000, FEMU),
    ("erase_ns", 3_000_000, FEMU),
    ("channel_bytes_per_second", 312_474_968, "FEMU, nand.h: 52,433 ns a page"),
    ("multi_plane", 1, ASSUMED),
];
