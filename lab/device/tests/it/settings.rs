//! A setting that changes nothing is a bug: every parameter is varied, and something must differ.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::common::ssd;
use merganser_device::device::{Device, IoCommand};
use merganser_device::profile::ssd_parameters;
use merganser_device::request::{RequestKind, SimTime};
use merganser_device::ssd::Ssd;
use merganser_random::Random;
use merganser_storage::near::{HostRequest, Inside, NearProgram, RequestId, Wake};
use merganser_storage::{Buffer, Work};

/// A small device on which everything happens soon.
const BASE: &[&str] = &[
    "channels=2",
    "ways=2",
    "planes=2",
    "blocks_per_plane=16",
    "pages_per_block=8",
    "page_bytes=8K",
    "map_unit_bytes=4K",
    "page_spare_bytes=0",
    "transfer_unit_bytes=512",
    "block_summary_bytes=0",
    "over_provisioning_permille=400",
    "gc_free_permille=60",
    "placement=rotating",
    "copy_back=off",
];

const CACHE: &[&str] = &["cache_policy=parallel", "cache_bytes=256K"];

/// Parameters, what else is set for both runs, and the value that must make a difference.
fn variations() -> Vec<(&'static str, &'static [&'static str], &'static str)> {
    vec![
        ("link_bytes_per_second", &[], "10M"),
        ("link_latency_ns", &[], "5us"),
        ("link_duplex", &["link_bytes_per_second=50M"], "on"),
        ("whole_transfers", &[], "off"),
        ("command_ns", &[], "3us"),
        ("queue_depth", &[], "1"),
        ("cache_policy", &["cache_bytes=256K"], "lru"),
        ("cache_bytes", CACHE, "512K"),
        ("cache_parallelism", CACHE, "2"),
        ("read_ahead_pages", &[], "4"),
        ("processor_hz", &[], "80000000"),
        ("firmware_request_cycles", &[], "1000"),
        ("firmware_read_cycles", &[], "1000"),
        ("firmware_write_cycles", &[], "1000"),
        ("compare_cycles", &[], "500"),
        ("record_cycles", &[], "500"),
        ("meter_cycles_per_1024", &[], "5000"),
        ("copy_cycles_per_kib", &[], "5000"),
        ("copy_unit_bytes", &[], "4K"),
        ("dram_bytes", &[], "512K"),
        ("dram_bytes_per_second", &[], "100M"),
        ("programs_use_memory", &["dram_bytes_per_second=100M"], "on"),
        ("map_unit_bytes", &[], "8K"),
        ("map_cache_bytes", &[], "64"),
        ("over_provisioning_permille", &[], "500"),
        ("trim", &[], "off"),
        ("placement", &[], "fixed"),
        ("stripe_pages", &[], "4"),
        ("block_summary_bytes", &[], "512"),
        ("gc_policy", &[], "cost-benefit"),
        ("gc_choices", &["gc_policy=choices"], "1"),
        ("gc_free_permille", &[], "200"),
        ("gc_own_block", &[], "on"),
        ("copy_back", &["map_unit_bytes=8K"], "on"),
        ("wear_spread", &[], "1"),
        ("endurance_cycles", &[], "5"),
        ("channels", &[], "4"),
        ("ways", &[], "1"),
        ("planes", &[], "1"),
        ("blocks_per_plane", &[], "32"),
        ("pages_per_block", &[], "16"),
        ("page_bytes", &[], "16K"),
        ("page_spare_bytes", &[], "256"),
        ("transfer_unit_bytes", &[], "4K"),
        ("read_ns", &[], "50us"),
        ("program_ns", &[], "400us"),
        ("erase_ns", &[], "3ms"),
        ("cell_bits", &["read_2_ns=50us"], "2"),
        ("read_2_ns", &["cell_bits=2"], "50us"),
        ("read_3_ns", &["cell_bits=3"], "50us"),
        ("program_2_ns", &["cell_bits=2"], "1ms"),
        ("program_3_ns", &["cell_bits=3"], "1ms"),
        ("reads_first", &[], "8"),
        ("suspend_ns", &["reads_first=8"], "10us"),
        ("channel_bytes_per_second", &[], "80M"),
        ("channel_overhead_ns", &[], "5us"),
        ("multi_plane", &[], "on"),
        ("interleaving", &[], "off"),
    ]
}

/// Answers reads of its address after reads of its own, and then work.
struct Worker {
    asked: Vec<RequestId>,
    left: u32,
}

impl NearProgram for Worker {
    fn claims(&self, write: bool, offset: u64, len: usize) -> bool {
        !write && offset == 0 && len == 3000
    }

    fn request(&mut self, id: RequestId, _: HostRequest<'_>, inside: &mut dyn Inside) {
        if let Err(error) = inside.claim_memory(1 << 20) {
            return inside.answer(id, Err(error));
        }
        self.asked.push(id);
        self.left = 4;
        for page in 0..4 {
            inside.read(page, page * 8192, Buffer::new(8192));
        }
    }

    fn wake(&mut self, wake: Wake, inside: &mut dyn Inside) {
        if let Wake::Read { .. } = wake {
            self.left -= 1;
            if self.left == 0 {
                let copies = [Work::CopiedBytes(100), Work::CopiedBytes(5000)];
                let own = [Work::Metered(4096), Work::ReadBytes(4096)];
                let merge = [Work::Compares(30), Work::Records(20)];
                inside.work(9, [merge, copies, own].as_flattened());
            }
            return;
        }
        inside.release_memory(1 << 20);
        for id in self.asked.drain(..) {
            inside.answer(id, Ok(Buffer::new(3000)));
        }
    }
}

/// Everything that a run shows: the capacity, and when what ended how.
fn fingerprint(mut device: Ssd) -> u64 {
    device.attach(Box::new(Worker { asked: Vec::new(), left: 0 }));
    let capacity = device.capacity_bytes().min(2 << 20);
    let mut hash = DefaultHasher::new();
    device.capacity_bytes().hash(&mut hash);
    let mut random = Random::new(4);
    let mut id = 0;
    let mut run = |device: &mut Ssd, asks: &mut dyn Iterator<Item = (RequestKind, u64, u64)>| {
        let mut flying = 0;
        let mut asks = asks.fuse();
        loop {
            while flying < 16
                && let Some((kind, offset, len)) = asks.next()
            {
                device.submit(device.now(), IoCommand { id, kind, offset, len, buffer: None });
                (id, flying) = (id + 1, flying + 1);
            }
            if !device.advance() {
                break;
            }
            while let Some(done) = device.completed() {
                (done.id, done.at, done.result.is_ok()).hash(&mut hash);
                flying -= 1;
            }
        }
    };
    // A hot half, written, trimmed and read at random; small and large.
    let mut mixed = (0..3000).map(|i| {
        let space = if random.below(4) == 0 { capacity } else { capacity / 2 };
        let at = random.below(space / 4096) * 4096;
        match i % 8 {
            0 => (RequestKind::Read, at + 512, 512),
            1 => (RequestKind::Read, at, 4096),
            2 => (RequestKind::Trim, at, 4096),
            3 => (RequestKind::Write, at + 1024, 1024),
            4 => (RequestKind::Write, at.min(capacity - 32_768), 32_768),
            _ => (RequestKind::Write, at, 4096),
        }
    });
    run(&mut device, &mut mixed);
    let mut in_order = (0..100).map(|i| (RequestKind::Read, i * 16_384 % capacity, 16_384));
    run(&mut device, &mut in_order);
    run(&mut device, &mut std::iter::once((RequestKind::Read, 0, 3000)));
    run(&mut device, &mut std::iter::once((RequestKind::Flush, 0, 0)));
    let flash = device.statistics().flash.expect("it is flash");
    (flash.erases, flash.erases_max - flash.erases_min).hash(&mut hash);
    hash.finish()
}

#[test]
fn every_parameter_makes_a_difference() {
    let variations = variations();
    let mut known = BTreeMap::new();
    let mut still = Vec::new();
    for parameter in ssd_parameters() {
        let found = variations.iter().find(|(name, ..)| *name == parameter.name);
        let &(name, with, value) =
            found.unwrap_or_else(|| panic!("{} is not varied", parameter.name));
        let base: Vec<&str> = [BASE, with].concat();
        let usual = *known.entry(with).or_insert_with(|| fingerprint(ssd("msr", &base)));
        let text = format!("{name}={value}");
        let changed = [base.as_slice(), &[text.as_str()]].concat();
        if fingerprint(ssd("msr", &changed)) == usual {
            still.push(name);
        }
    }
    assert!(still.is_empty(), "these change nothing: {still:?}");
}

#[test]
fn time_of_a_device_begins_at_0() {
    assert_eq!(ssd("msr", BASE).now(), SimTime(0));
}
