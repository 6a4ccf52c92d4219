//! Random reads, writes, trims, flushes, migrations, reopenings and power cuts against a model. After a
//! cut every flushed byte is there, and each page that was written since holds one of its versions.
//!
//! `MERGANSER_ARRAY_OPERATIONS` sets the number of operations of each volume, `MERGANSER_ARRAY_SEED` another
//! seed. docs/array.md, "Measuring", has the command for a million, and how long it takes.

mod common;

use std::sync::Arc;

use common::{Build, Model, PAGE, content};
use merganser_array::{Counters, Hash, Volume};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, Operation, StorageExt};
use merganser_testkit::Random;
use merganser_testkit::faulty::{Fault, Faulty, Plan};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

struct Torture {
    build: Build,
    disk: Arc<Faulty>,
    random: Random,
    model: Model,
    pages: u64,
    cuts: u64,
}

impl Torture {
    fn new(build: Build, seed: u64, operations: u64) -> Torture {
        let mut random = Random::new(seed);
        // A change of a member is about what an operation of the volume makes.
        let mut nth = 60;
        let cuts = std::iter::repeat_with(|| {
            nth += 1 + random.below(250);
            Fault::PowerCut { nth }
        });
        // More than there will be: an operation makes fewer than a hundred changes on average.
        let faults = cuts.take(operations as usize).collect();
        let disk = Faulty::new(MemoryDirectory::new(), Plan { seed, faults });
        build.create(&*disk);
        let pages = build.settings.size / PAGE as u64;
        Torture { build, disk, random, model: Model::new(pages as usize), pages, cuts: 0 }
    }

    /// Opens the volume, again if the power goes while it opens.
    fn open(&mut self) -> Volume {
        loop {
            match self.build.open(&*self.disk) {
                Ok(volume) => return volume,
                Err(error) => {
                    assert!(error.to_string().contains("power"), "cut {}: {error}", self.cuts);
                    self.cut();
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

    /// One operation; false when the power is off.
    fn step(&mut self, volume: &Volume) -> bool {
        let ended = match self.random.below(100) {
            0..45 => {
                let (from, count) = self.stretch(24);
                let bytes = content(&mut self.random, count as usize);
                self.write(volume, from * PAGE as u64, &bytes)
            }
            45..55 => {
                let len = 1 + self.random.index(3 * PAGE);
                let offset = self.random.below(self.pages * PAGE as u64 - len as u64);
                let byte = self.random.bits() as u8;
                self.write(volume, offset, &vec![byte; len])
            }
            55..63 => {
                let (from, count) = self.stretch(self.pages);
                let (offset, len) = (from * PAGE as u64, count * PAGE as u64);
                let result = volume.run(Operation::Discard { offset, len });
                self.model.write(offset, &vec![0; len as usize], result.is_ok());
                result.map(|_| ())
            }
            63..66 => {
                let len = 1 + self.random.below(3 * PAGE as u64);
                let offset = self.random.below(self.pages * PAGE as u64 - len);
                let result = volume.run(Operation::Discard { offset, len });
                self.model.write(offset, &vec![0; len as usize], result.is_ok());
                result.map(|_| ())
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
            _ => volume.migrate().map(|_| ()).map_err(|error| error.to_io()),
        };
        match ended {
            Ok(()) => true,
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("power"), "after {} cuts: {text}", self.cuts);
                false
            }
        }
    }

    fn write(&mut self, volume: &Volume, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        let result = volume.write_at(offset, bytes);
        self.model.write(offset, bytes, result.is_ok());
        result
    }

    /// Returns the volume's counters at the end.
    fn run(&mut self, operations: u64) -> Counters {
        let mut volume = self.open();
        for i in 0..operations {
            if !self.step(&volume) {
                drop(volume);
                self.cut();
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
        volume.counters()
    }

    /// All checksums and all reference counts are right.
    fn check(&mut self, volume: &Volume) {
        match volume.check(&mut |_, _| {}) {
            Ok(check) => {
                assert_eq!(
                    (check.problems, check.pages_leaked),
                    (0, 0),
                    "cut {}: {check:?}",
                    self.cuts
                );
                assert_eq!(check.index_blocks_damaged, 0, "{check:?}");
            }
            // It commits first.
            Err(error) => assert!(error.to_string().contains("power"), "{error}"),
        }
    }
}

#[expect(clippy::print_stderr, reason = "the result of a long run")]
fn torture(build: Build, seed: u64) -> Counters {
    let operations = number("MERGANSER_ARRAY_OPERATIONS", 1500);
    let seed = number("MERGANSER_ARRAY_SEED", seed);
    let mut torture = Torture::new(build, seed, operations);
    let counters = torture.run(operations);
    eprintln!("seed {seed}: {operations} operations, {} power cuts", torture.cuts);
    // They continue to the end of the run.
    assert!(torture.cuts >= operations / 300, "{} cuts", torture.cuts);
    counters
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

#[test]
fn durable_writes_need_no_flush() {
    for buffered in [true, false] {
        let mut build = Build::small(buffered, Some(Hash::Blake3));
        build.options.durable_writes = true;
        let disk = Faulty::new(MemoryDirectory::new(), Plan::quiet(6));
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
