//! Reads return the written bytes: through write buffer, collection, trims and partial units.

use merganser_device::device::{CompletedCommand, Device, IoCommand};
use merganser_device::profile::SsdProfile;
use merganser_device::request::RequestKind;
use merganser_device::ssd::Ssd;
use merganser_storage::Buffer;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Act {
    Write { offset: u64, len: u64, fill: u8 },
    Read { offset: u64, len: u64 },
    Trim { offset: u64, len: u64 },
    Flush,
}

const SPACE: u64 = 96 << 10;

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let range = (0..SPACE / 512, 1..40_u64).prop_map(|(at, len)| {
        let offset = at * 512;
        (offset, (len * 512).min(SPACE - offset))
    });
    let act = prop_oneof![
        8 => (range.clone(), 1..=255_u8).prop_map(|((offset, len), fill)| Act::Write { offset, len, fill }),
        4 => range.clone().prop_map(|(offset, len)| Act::Read { offset, len }),
        1 => range.prop_map(|(offset, len)| Act::Trim { offset, len }),
        1 => Just(Act::Flush),
    ];
    proptest::collection::vec(act, 1..300)
}

/// Devices on which a few hundred writes collect often.
fn devices() -> Vec<Ssd> {
    let small = [
        "channels=2",
        "blocks_per_plane=10",
        "pages_per_block=4",
        "planes=1",
        "over_provisioning_permille=500",
        "gc_free_permille=130",
    ];
    let kinds: [&[&str]; 8] = [
        &[],
        &["copy_back=off", "placement=rotating", "gc_policy=choices"],
        &["page_bytes=8K", "cache_policy=lru", "cache_bytes=32K", "block_summary_bytes=0"],
        &["cache_policy=parallel", "cache_bytes=32K", "cache_parallelism=2"],
        &["cache_policy=lru-page", "cache_bytes=32K"],
        &[
            "page_bytes=16K",
            "cache_policy=behind",
            "cache_bytes=64K",
            "placement=rotating",
            "block_summary_bytes=0",
        ],
        &[
            "gc_policy=cost-benefit",
            "wear_spread=2",
            "read_ahead_pages=4",
            "planes=2",
            "multi_plane=on",
        ],
        // Five pages of the map, and room for eight entries.
        &[
            "map_cache_bytes=64",
            "page_bytes=512",
            "map_unit_bytes=512",
            "page_spare_bytes=0",
            "transfer_unit_bytes=512",
            "block_summary_bytes=0",
            "blocks_per_plane=100",
            "over_provisioning_permille=300",
        ],
    ];
    let make = |kind: &&[&str]| {
        let mut profile = SsdProfile::preset("msr").expect("a preset");
        for text in small.iter().chain(kind.iter()) {
            profile.set(text).expect("a setting");
        }
        Ssd::new(&profile, 3).unwrap_or_else(|error| panic!("{kind:?}: {error}"))
    };
    kinds.iter().map(make).collect()
}

fn perform(
    ssd: &mut Ssd,
    id: u64,
    kind: RequestKind,
    offset: u64,
    buffer: Buffer,
    len: u64,
) -> CompletedCommand {
    let buffer = (!buffer.is_empty()).then_some(buffer);
    ssd.submit(ssd.now(), IoCommand { id, kind, offset, len, buffer });
    loop {
        if let Some(done) = ssd.completed() {
            assert_eq!(done.id, id);
            return done;
        }
        assert!(ssd.advance(), "{kind:?} never ends");
    }
}

fn filled(len: u64, fill: u8) -> Buffer {
    let mut buffer = Buffer::new(len as usize);
    for (i, byte) in buffer.iter_mut().enumerate() {
        *byte = fill.wrapping_add((i / 512) as u8).max(1);
    }
    buffer
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_device_holds_what_was_written(acts in acts()) {
        for mut ssd in devices() {
            prop_assert!(ssd.capacity_bytes() >= SPACE, "{}", ssd.capacity_bytes());
            let unit = ssd.settings().map_unit_bytes;
            let mut model = vec![0_u8; SPACE as usize];
            for (id, act) in (0..).zip(&acts) {
                match *act {
                    Act::Write { offset, len, fill } => {
                        let buffer = filled(len, fill);
                        let range = offset as usize..(offset + len) as usize;
                        model[range].copy_from_slice(&buffer);
                        let done = perform(&mut ssd, id, RequestKind::Write, offset, buffer, len);
                        prop_assert_eq!(done.result.expect("written"), len);
                    }
                    Act::Read { offset, len } => {
                        let buffer = Buffer::new(len as usize);
                        let done = perform(&mut ssd, id, RequestKind::Read, offset, buffer, len);
                        let range = offset as usize..(offset + len) as usize;
                        prop_assert_eq!(&done.buffer.expect("it comes back")[..], &model[range]);
                    }
                    Act::Trim { offset, len } => {
                        let whole = offset.div_ceil(unit)..(offset + len) / unit;
                        for number in whole {
                            let at = (number * unit) as usize;
                            model[at..at + unit as usize].fill(0);
                        }
                        let none = Buffer::new(0);
                        perform(&mut ssd, id, RequestKind::Trim, offset, none, len);
                    }
                    Act::Flush => {
                        let none = Buffer::new(0);
                        let done = perform(&mut ssd, id, RequestKind::Flush, 0, none, 0);
                        prop_assert!(done.result.is_ok());
                    }
                }
            }
            let done = perform(&mut ssd, 9999, RequestKind::Read, 0, Buffer::new(SPACE as usize), SPACE);
            prop_assert_eq!(&done.buffer.expect("it comes back")[..], &model[..]);
        }
    }
}

/// Many in flight, to places of their own: each reads what its last write left.
#[test]
fn writes_side_by_side_do_not_disturb_one_another() {
    for mut ssd in devices() {
        let mut model = vec![0_u8; SPACE as usize];
        for round in 0..60_u64 {
            // 512-byte sectors, interleaved over units, all of a round at once.
            for i in 0..24 {
                let offset = ((i * 7 + round) % (SPACE / 4096)) * 4096 + (round % 8) * 512;
                let buffer = filled(512, (round * 24 + i) as u8);
                model[offset as usize..offset as usize + 512].copy_from_slice(&buffer);
                let (kind, len) = (RequestKind::Write, 512);
                let command = IoCommand { id: i, kind, offset, len, buffer: Some(buffer) };
                ssd.submit(ssd.now(), command);
            }
            while ssd.advance() {}
            let ended = std::iter::from_fn(|| ssd.completed()).count();
            assert_eq!(ended, 24);
        }
        let all = Buffer::new(SPACE as usize);
        let done = perform(&mut ssd, 1, RequestKind::Read, 0, all, SPACE);
        assert!(done.buffer.expect("it comes back")[..] == model[..]);
        let flash = ssd.statistics().flash.expect("it is flash");
        assert!(flash.erases > 0, "it collected");
    }
}

/// A device whose blocks are used up says so, and keeps what it has.
#[test]
fn a_worn_out_device_refuses_writes_and_keeps_its_data() {
    for cache in ["cache_policy=none", "cache_policy=lru"] {
        let mut profile = SsdProfile::preset("msr").expect("a preset");
        for text in ["channels=1", "planes=1", "blocks_per_plane=16", "pages_per_block=4"] {
            profile.set(text).expect("a setting");
        }
        for text in
            ["over_provisioning_permille=300", "endurance_cycles=10", "cache_bytes=16K", cache]
        {
            profile.set(text).expect("a setting");
        }
        let mut ssd = Ssd::new(&profile, 1).expect("a device");
        let pages = ssd.capacity_bytes() / 4096;
        let mut model = vec![0_u8; pages as usize];
        let mut refused = false;
        for turn in 0..5000_u64 {
            let page = turn * 7 % pages;
            let fill = turn as u8 | 1;
            let mut buffer = Buffer::new(4096);
            buffer.fill(fill);
            let done = perform(&mut ssd, turn, RequestKind::Write, page * 4096, buffer, 4096);
            match done.result {
                Ok(_) => model[page as usize] = fill,
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
                    refused = true;
                    break;
                }
            }
        }
        assert!(refused, "10 erases a block are used up");
        for page in 0..pages {
            let read = Buffer::new(4096);
            let done = perform(&mut ssd, page, RequestKind::Read, page * 4096, read, 4096);
            let content = done.buffer.expect("it comes back");
            assert!(content.iter().all(|&b| b == model[page as usize]), "page {page}");
        }
    }
}
