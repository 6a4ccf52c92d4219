//! Random reads, writes, trims, flushes, moves, seals, reopenings, power cuts, and reads, writes and syncs that fail,
//! against a model. After a cut every flushed byte is there, and each page that was written since holds one of its
//! versions. After a write or a sync failed, the volume is opened again, at once or after a cut. Pages that an opening
//! has found stay there. (Members without space: `faults/members.rs`.)
//!
//! `MERGANSER_ARRAY_OPERATIONS` sets the number of operations of each volume, `MERGANSER_ARRAY_SEED` another
//! seed. docs/array/array.md, "Measuring", has the command for a million, and how long it takes.

use std::io::ErrorKind;
use std::sync::Arc;

use crate::common::delayed::delayed;
use crate::common::{Build, MIB, Model, PAGE, content, unique};
use merganser_array::{Hash, Volume, VolumeCounters, VolumeSettings};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, Operation, StorageExt};
use merganser_testkit::Random;
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

struct Torture {
    build: Build,
    seed: u64,
    operations: u64,
    disk: Arc<Faulty>,
    random: Random,
    model: Model,
    pages: u64,
    cuts: u64,
    /// Operations for which the data members had no room.
    fulls: u64,
    /// Faults that had happened when the volume was opened.
    fired_before: usize,
    /// Operations that failed since a member's write or sync did.
    faults: u64,
    /// Operations that failed since a member's read did.
    unread: u64,
}

/// What became of the volume.
#[derive(PartialEq)]
enum After {
    Works,
    /// A member's write or sync failed.
    Refuses,
    PowerOff,
}

fn is_injected(error: &dyn std::fmt::Display, fault: &str) -> bool {
    error.to_string().contains(&format!("injected fault {fault}"))
}

impl Torture {
    fn new(build: Build, seed: u64) -> Torture {
        let operations = number("MERGANSER_ARRAY_OPERATIONS", 1500);
        let seed = number("MERGANSER_ARRAY_SEED", seed);
        let mut random = Random::new(seed);
        // A change of a member is about what an operation of the volume makes.
        let mut nth = 60;
        let cuts = std::iter::repeat_with(|| {
            nth += 1 + random.below(250);
            Fault::PowerCut { nth }
        });
        // More than there will be: an operation makes fewer than a hundred changes on average.
        let mut faults: Vec<Fault> = cuts.take(operations as usize).collect();
        let (mut read, mut write, mut sync) = (0, 0, 0);
        for _ in 0..operations {
            // A record that could not be read is read again, page by page: about 30 reads.
            read += 120 + random.below(600);
            write += 300 + random.below(1500);
            sync += 100 + random.below(500);
            faults.push(Fault::FailRead { nth: read });
            faults.push(Fault::FailWrite { nth: 60 + write });
            faults.push(Fault::FailSync { nth: 20 + sync });
        }
        let disk = Faulty::new(MemoryDirectory::new(), FaultPlan { seed, faults });
        build.create(&*disk);
        let pages = build.settings.size / PAGE as u64;
        Torture {
            build,
            seed,
            operations,
            disk,
            random,
            model: Model::new(pages as usize),
            pages,
            cuts: 0,
            fulls: 0,
            fired_before: 0,
            faults: 0,
            unread: 0,
        }
    }

    /// Opens the volume, again if the power goes while it opens.
    fn open(&mut self) -> Volume {
        loop {
            // It may have gone while a volume that refuses was dropped.
            if self.disk.list().is_err() {
                self.cut();
            }
            // Writes that end late are another world for the volume: every second opening has them.
            let mut members = self.build.members(&*self.disk);
            if self.random.one_in(2) {
                members = delayed(members, self.random.bits());
            }
            match Volume::open("vol", &members, self.build.options.clone()) {
                Ok(volume) => {
                    self.fired_before = self.disk.fired().len();
                    return volume;
                }
                Err(error) => {
                    let injected = is_injected(&error, "Fail");
                    let off = error.to_string().contains("power");
                    assert!(injected || off, "cut {}: {error}", self.cuts);
                    if !injected || self.random.one_in(2) {
                        self.cut();
                    }
                }
            }
        }
    }

    fn cut(&mut self) {
        self.cuts += 1;
        self.disk.crash().expect("crashes");
    }

    /// A stretch of pages, short ones more often.
    fn stretch(&mut self, most: u64) -> (u64, u64) {
        let from = self.random.below(self.pages);
        let count = 1 + self.random.below(most).min(self.random.below(most));
        (from, count.min(self.pages - from))
    }

    /// One operation.
    fn step(&mut self, volume: &Volume) -> After {
        let ended = match self.random.below(100) {
            0..45 => {
                let (from, count) = self.stretch(24);
                let bytes = match self.build.settings.thin {
                    false => content(&mut self.random, count as usize),
                    // So that it becomes full.
                    true => (0..count).flat_map(|_| unique(&mut self.random)).collect(),
                };
                self.write(volume, from * PAGE as u64, &bytes)
            }
            45..55 => {
                let len = 1 + self.random.index(3 * PAGE);
                let offset = self.random.below(self.pages * PAGE as u64 - len as u64);
                let byte = self.random.bits() as u8;
                self.write(volume, offset, &vec![byte; len])
            }
            55..63 => {
                // A thin volume stays full for a while.
                let often = !self.build.settings.thin || self.random.one_in(8);
                let (from, count) = self.stretch(if often { self.pages } else { 24 });
                self.trim(volume, from * PAGE as u64, count * PAGE as u64)
            }
            63..66 => {
                let len = 1 + self.random.below(3 * PAGE as u64);
                let offset = self.random.below(self.pages * PAGE as u64 - len);
                self.trim(volume, offset, len)
            }
            66..80 => {
                let (from, count) = self.stretch(40);
                let result = volume.read_vec(from * PAGE as u64, count as usize * PAGE);
                result.map(|read| {
                    for (page, bytes) in (from..).zip(read.chunks(PAGE)) {
                        assert!(bytes == &self.model.now[page as usize][..], "page {page}");
                    }
                })
            }
            80..90 => {
                let result = volume.sync();
                if result.is_ok() {
                    self.model.flushed();
                }
                result
            }
            90..98 => volume.migrate().map(|_| ()).map_err(|error| error.to_io()),
            _ => volume.seal().map_err(|error| error.to_io()),
        };
        match ended {
            Ok(()) => After::Works,
            Err(error) if error.kind() == ErrorKind::StorageFull => {
                assert!(self.build.settings.thin, "{error}");
                self.fulls += 1;
                After::Works
            }
            Err(error) if is_injected(&error, "FailRead") => {
                assert!(!error.to_string().contains("refused"), "{error}");
                self.unread += 1;
                After::Works
            }
            Err(error) if is_injected(&error, "Fail") => {
                self.faults += 1;
                After::Refuses
            }
            // A page that could not be written. The next flush says why.
            Err(error) if error.kind() == ErrorKind::InvalidData && self.has_lost_a_write() => {
                self.faults += 1;
                volume.sync().expect_err("not all is written");
                After::Refuses
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("power"), "after {} cuts: {text}", self.cuts);
                After::PowerOff
            }
        }
    }

    /// Whether a write of a member has failed since the volume was opened.
    fn has_lost_a_write(&self) -> bool {
        let fired = self.disk.fired();
        fired[self.fired_before..].iter().any(|fault| matches!(fault, Fault::FailWrite { .. }))
    }

    fn write(&mut self, volume: &Volume, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        let result = volume.write_at(offset, bytes);
        self.wrote(volume, offset, bytes, &result);
        result
    }

    fn trim(&mut self, volume: &Volume, offset: u64, len: u64) -> std::io::Result<()> {
        let result = volume.run(Operation::Discard { offset, len }).map(|_| ());
        self.wrote(volume, offset, &vec![0; len as usize], &result);
        result
    }

    fn wrote(&mut self, volume: &Volume, offset: u64, bytes: &[u8], result: &std::io::Result<()>) {
        self.model.write(offset, bytes, result.is_ok());
        match result {
            Ok(()) if self.build.options.durable_writes => self.model.flushed(),
            Err(error)
                if error.kind() == ErrorKind::StorageFull || is_injected(error, "FailRead") =>
            {
                self.model.after_failure(volume, offset, bytes.len());
            }
            _ => {}
        }
    }

    /// Returns the volume's counters at the end.
    #[expect(clippy::print_stderr, reason = "the result of a long run")]
    fn run(&mut self) -> VolumeCounters {
        let (seed, operations) = (self.seed, self.operations);
        let mut volume = self.open();
        for i in 0..operations {
            let after = self.step(&volume);
            if after != After::Works {
                if after == After::Refuses {
                    let error = volume.write_at(0, b"x").expect_err("refused").to_string();
                    assert!(error.contains("refused") || error.contains("power"), "{error}");
                }
                drop(volume);
                if after == After::PowerOff || self.random.one_in(2) {
                    self.cut();
                }
                volume = self.open();
                let what = format!("operation {i}, cut {}", self.cuts);
                self.model.check_after_cut(&volume, &what);
                self.check(&volume);
            } else if self.random.one_in(400) {
                if volume.close().is_ok() {
                    self.model.flushed();
                } else {
                    self.cut();
                }
                drop(volume);
                volume = self.open();
                self.model.check_after_cut(&volume, "closed");
            }
        }
        self.check(&volume);
        let Torture { cuts, faults, unread, .. } = self;
        eprintln!(
            "seed {seed}: {operations} operations, {cuts} power cuts, {faults} failed writes and syncs, {unread} failed reads"
        );
        // They continue to the end of the run.
        assert!(self.cuts >= operations / 300, "{} cuts", self.cuts);
        volume.counters()
    }

    /// All checksums and all reference counts are right.
    fn check(&mut self, volume: &Volume) {
        let fired = self.disk.fired().len();
        match volume.check(&mut |_, _| {}) {
            Ok(check) => {
                // A read that fails is a finding.
                let fired = self.disk.fired().split_off(fired);
                let is_read = |fault: &&Fault| matches!(fault, Fault::FailRead { .. });
                let unread = fired.iter().filter(is_read).count() as u64;
                // At the end of a run, its reads write first what is in memory: the power can go then.
                if self.disk.list().is_err() {
                    return;
                }
                let found = check.problems + check.index_blocks_damaged;
                let cuts = self.cuts;
                assert!(found <= unread, "cut {cuts}, {unread} failed reads: {check:?}");
                assert_eq!(check.pages_leaked, 0, "cut {cuts}: {check:?}");
            }
            // It commits first.
            Err(error) => {
                let known = error.to_string().contains("power") || is_injected(&error, "Fail");
                assert!(known, "{error}");
            }
        }
    }
}

fn torture(build: Build, seed: u64) -> VolumeCounters {
    Torture::new(build, seed).run()
}

#[test]
fn a_hybrid_volume_survives() {
    torture(Build::small(true, Some(Hash::Blake3)), 1);
}

#[test]
fn a_volume_that_compares_survives() {
    torture(Build::small(true, Some(Hash::Sha1)), 2);
}

#[test]
fn a_volume_without_deduplication_survives() {
    torture(Build::small(true, None), 3);
}

#[test]
fn a_volume_without_buffer_survives() {
    torture(Build::small(false, Some(Hash::Blake3)), 4);
}

#[test]
fn a_plain_volume_survives() {
    torture(Build::small(false, None), 5);
}

/// It has less space than its pages need, and is full again and again.
#[test]
fn a_thin_volume_survives() {
    for (buffered, dedup, seed) in
        [(true, None, 8), (true, Some(Hash::Blake3), 9), (false, None, 10)]
    {
        let mut build = Build::small(buffered, dedup);
        build.settings = VolumeSettings { size: 8 * MIB, thin: true, ..build.settings };
        build.data_bytes = 5 * MIB;
        let mut torture = Torture::new(build, seed);
        torture.run();
        assert!(torture.fulls > 10, "{} times full", torture.fulls);
    }
}

/// Each write survives that was answered, without a flush.
#[test]
fn a_volume_with_durable_writes_survives() {
    for (buffered, high_water, seed) in [(true, 75, 11), (true, 1, 12), (false, 75, 13)] {
        let mut build = Build::small(buffered, Some(Hash::Blake3));
        build.options.durable_writes = true;
        build.options.high_water_percent = high_water;
        torture(build, seed);
    }
}

/// Its buffer is above the mark most of the time.
#[test]
fn a_volume_whose_writes_go_around_the_buffer_survives() {
    for (dedup, seed) in [(Some(Hash::Blake3), 6), (None, 7)] {
        let mut build = Build::small(true, dedup);
        build.options.high_water_percent = 1;
        // A cut loses the counts since the last checkpoint.
        let around = torture(build, seed).pages_around;
        assert!(around > 50, "{around}");
    }
}

/// Several writers, whose answers wait for one another: after a cut every answered write is there, and each other page
/// is old or new.
#[test]
fn durable_writes_of_many_threads_need_no_flush() {
    const WRITERS: u64 = 6;
    for (buffered, cut) in [(true, 0), (true, 150), (false, 0), (false, 150)] {
        let mut build = Build::small(buffered, Some(Hash::Blake3));
        build.options.durable_writes = true;
        let faults = if cut > 0 { vec![Fault::PowerCut { nth: 200 + cut }] } else { vec![] };
        let disk = Faulty::new(MemoryDirectory::new(), FaultPlan { seed: 7, faults });
        build.create(&*disk);
        let volume = build.open(&*disk).expect("opens");
        // Each has pages of its own.
        let models: Vec<Model> = std::thread::scope(|scope| {
            let writer = |number: u64| {
                let volume = &volume;
                move || {
                    let (mut random, mut model) = (Random::new(number), Model::new(512));
                    for _ in 0..60 {
                        let page = number + WRITERS * random.below(512 / WRITERS);
                        let bytes = unique(&mut random);
                        let result = volume.write_at(page * PAGE as u64, &bytes);
                        model.write(page * PAGE as u64, &bytes, result.is_ok());
                        if result.is_err() {
                            break;
                        }
                        model.flushed();
                    }
                    model
                }
            };
            let writers: Vec<_> = (0..WRITERS).map(|i| scope.spawn(writer(i))).collect();
            writers.into_iter().map(|writer| writer.join().expect("no panic")).collect()
        });
        drop(volume);
        disk.crash().expect("crashes");
        let volume = build.open(&*disk).expect("opens");
        for (number, mut model) in (0..).zip(models) {
            model.check_pages_after_cut(&volume, |page| page % WRITERS == number, "cut");
        }
    }
}

#[test]
fn durable_writes_need_no_flush() {
    for buffered in [true, false] {
        let mut build = Build::small(buffered, Some(Hash::Blake3));
        build.options.durable_writes = true;
        let disk = Faulty::new(MemoryDirectory::new(), FaultPlan::quiet(6));
        build.create(&*disk);
        let mut random = Random::new(6);
        let crashed = || {
            disk.crash().expect("crashes");
            build.open(&*disk).expect("opens")
        };
        for _ in 0..20 {
            let volume = build.open(&*disk).expect("opens");
            let mut bytes = content(&mut random, 5);
            let offset = random.below(400) * PAGE as u64;
            volume.write_at(offset, &bytes).expect("written");
            drop(volume);
            let volume = crashed();
            assert!(volume.read_vec(offset, bytes.len()).expect("read") == bytes);
            let len = 2 * PAGE;
            volume.run(Operation::Discard { offset, len: len as u64 }).expect("trimmed");
            bytes[..len].fill(0);
            drop(volume);
            let volume = crashed();
            assert!(volume.read_vec(offset, bytes.len()).expect("read") == bytes);
        }
        let _: &dyn Directory = &*disk;
    }
}
