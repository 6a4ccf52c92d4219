//! Modelled devices as storages: a volume on one means what a directory in memory means, and time
//! is that of the device.

use std::sync::Arc;

use crate::common::{close, ssd};
use merganser_device::simulated::{HostCosts, SimulatedDirectory, SimulatedStorage, World};
use merganser_random::Random;
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{
    Buffer, Clock, Completions, Directory, Operation, Storage, StorageExt, Work,
};

fn world(settings: &[&str]) -> Arc<World> {
    World::new(vec![Box::new(ssd("msr", settings))], HostCosts::default())
}

#[test]
fn a_file_is_written_and_read_in_the_time_of_the_device() {
    let world = world(&[]);
    let volume = SimulatedDirectory::new(&world, 0);
    let file = volume.create("run").expect("create");
    file.write_at(0, &[5; 10_000]).expect("write");
    assert_eq!(file.read_vec(9_998, 2).expect("read"), [5, 5]);
    assert_eq!(file.size(), 10_000);
    file.sync().expect("sync");
    // Three programs side by side take 306 us, a read 131 us.
    assert!((400_000..1_000_000).contains(&world.now_ns()), "{}", world.now_ns());
    assert_eq!(volume.list().expect("list"), ["run"]);
}

/// The same random operations on a volume and in memory give the same bytes.
#[test]
fn a_volume_means_what_memory_means() {
    for (seed, trim) in [(1, "trim=on"), (2, "trim=off"), (3, "trim=on")] {
        let small = ["blocks_per_plane=64", "cache_policy=lru", "cache_bytes=1M", trim];
        let volume = SimulatedDirectory::new(&world(&small), 0);
        let memory = MemoryDirectory::new();
        let mut random = Random::new(seed);
        let both: Vec<[Arc<dyn Storage>; 2]> = (0..3)
            .map(|i| {
                let name = format!("f{i}");
                [volume.create(&name).expect("create"), memory.create(&name).expect("create")]
            })
            .collect();
        for turn in 0..250_u64 {
            let files = &both[random.below(3) as usize];
            let offset = random.below(5 << 20);
            let most = [600, 70_000, 2 << 20][random.below(3) as usize];
            let len = 1 + random.below(most);
            match random.below(10) {
                0..4 => {
                    let bytes: Vec<u8> = (0..len).map(|i| (i / 97 + turn) as u8).collect();
                    for file in files {
                        file.write_at(offset, &bytes).expect("write");
                    }
                }
                4..7 => {
                    let read = |file: &Arc<dyn Storage>| {
                        let mut out = vec![1; len as usize];
                        let count = file.read_at(offset, &mut out).expect("read");
                        out.truncate(count);
                        out
                    };
                    let [a, b] = files.each_ref().map(read);
                    assert!(a == b, "turn {turn}: {len} bytes at {offset}");
                }
                7 => {
                    let act = |file: &Arc<dyn Storage>| {
                        file.run(Operation::Discard { offset, len }).expect("discard");
                    };
                    files.iter().for_each(act);
                }
                8 => {
                    let act = |file: &Arc<dyn Storage>| {
                        file.run(Operation::SetSize { size: offset }).expect("set the size");
                    };
                    files.iter().for_each(act);
                }
                _ => {
                    let act = |file: &Arc<dyn Storage>| {
                        file.run(Operation::Allocate { offset, len }).expect("allocate");
                    };
                    files.iter().for_each(act);
                }
            }
            let [a, b] = files.each_ref().map(|file| file.size());
            assert_eq!(a, b, "turn {turn}");
        }
        for [a, b] in &both {
            let size = a.size() as usize;
            assert!(a.read_vec(0, size).expect("read") == b.read_vec(0, size).expect("read"));
        }
    }
}

#[test]
fn names_and_space_come_back() {
    let volume = SimulatedDirectory::new(&world(&["blocks_per_plane=16"]), 0);
    let megabytes = |file: &Arc<dyn Storage>, count: u64| {
        file.run(Operation::Allocate { offset: 0, len: count << 20 }).map(|_| ())
    };
    // 8 elements of 8 planes of 13 blocks of 63 pages.
    let all = volume.create("all").expect("create");
    megabytes(&all, 204).expect("there is as much");
    let more = volume.create("more").expect("create");
    let error = megabytes(&more, 1).expect_err("the volume is full");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    volume.remove("all").expect("remove");
    megabytes(&more, 1).expect_err("the handle keeps it");
    drop(all);
    megabytes(&more, 100).expect("its space is free");
    volume.rename("more", "less").expect("rename");
    assert_eq!(volume.list().expect("list"), ["less"]);
    let read_only = volume.open("less", false).expect("open");
    let refused = read_only.write_at(0, b"x").expect_err("refused").kind();
    assert_eq!(refused, std::io::ErrorKind::PermissionDenied);
    volume.open("more", true).map(|_| ()).expect_err("it has another name");
    volume.sync().expect("sync");
}

#[test]
fn a_device_is_a_storage_of_fixed_size() {
    let world = world(&["blocks_per_plane=16"]);
    let device = SimulatedStorage::new(&world, 0);
    let end = device.size();
    device.write_at(end - 3, b"abc").expect("write");
    device.write_at(end - 2, b"abc").expect_err("beyond the end");
    let mut out = [9; 8];
    assert_eq!(device.read_at(end - 3, &mut out).expect("read"), 3);
    assert_eq!(&out[..3], b"abc");
    device.run(Operation::Discard { offset: end - 5000, len: 4998 }).expect("discard");
    assert_eq!(device.read_vec(end - 3, 3).expect("read"), [0, b'b', b'c']);
    assert_eq!(device.geometry().channels, 8);
}

/// Requests to two devices run at the same time; the host's work takes its time.
#[test]
fn devices_share_one_time() {
    let costs = HostCosts { compare_ps: 2_500, ..HostCosts::default() };
    let devices = || -> Vec<Box<dyn merganser_device::device::Device>> {
        vec![Box::new(ssd("msr", &[])), Box::new(ssd("msr", &[]))]
    };
    let world = World::new(devices(), costs);
    world.charge(Work::Compares(3));
    world.charge(Work::Compares(1));
    assert_eq!(world.now_ns(), 10, "fractions of nanoseconds add up");
    let storages = [0, 1].map(|device| SimulatedStorage::new(&world, device));
    let completions = Completions::new();
    let start = world.now_ns();
    for (token, storage) in (0..).zip(&storages) {
        let buffer = Buffer::new(4096);
        storage.submit(token, Operation::Write { offset: 0, buffer }, &completions);
    }
    for _ in 0..2 {
        assert_eq!(completions.wait(&*world).result.expect("written"), 4096);
    }
    let both = (world.now_ns() - start) as f64;
    close("two writes side by side, ns", both, 1_911.0 + 105_600.0 + 200_000.0, 0.01);
    assert!(!world.advance(), "nothing is left to happen");
}
