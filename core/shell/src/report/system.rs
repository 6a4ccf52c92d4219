//! The counters of the system: bytes and busy time of block devices, processor time, energy, memory.
//!
//! All counters are read twice, before and after the work. The report leaves out counters that the
//! system does not have.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::Serialize;

/// `stat` of a block device counts in these, whatever the device's own sectors are.
const SECTOR_BYTES: u64 = 512;

/// The block devices under some files, and the counters of this process.
pub(super) struct SystemWatch {
    disks: Vec<BlockDevice>,
    /// Whether every file is on a known block device.
    all_known: bool,
    energy: Vec<EnergyCounter>,
    before: SystemCounters,
}

/// A whole block device.
struct BlockDevice {
    name: String,
    stat: PathBuf,
}

/// A processor package that counts its energy.
struct EnergyCounter {
    path: PathBuf,
    range_uj: u64,
}

#[derive(Debug, Default)]
struct SystemCounters {
    disks: Vec<DiskCounters>,
    process: ProcessBytes,
    cpu_seconds: f64,
    energy_uj: Vec<u64>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct DiskCounters {
    read_bytes: u64,
    written_bytes: u64,
    busy_ms: u64,
}

/// The traffic of one block device during the work, other programs' requests included.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct DiskUse {
    /// Its name in the system, such as `nvme0n1`.
    pub name: String,
    /// Bytes it read.
    pub read_bytes: u64,
    /// Bytes it wrote.
    pub written_bytes: u64,
    /// Seconds in which it had something to do.
    pub busy_seconds: f64,
}

/// Bytes that this process caused to be moved to and from devices.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct ProcessBytes {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written, without pages that were removed before they reached a device.
    pub written_bytes: u64,
}

/// The difference between two readings of the counters.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SystemUse {
    /// The disks that hold the files of the work; empty if the disk of any file is unknown.
    pub disks: Vec<DiskUse>,
    /// This process alone.
    pub process: ProcessBytes,
    /// Seconds that processors worked for this process.
    pub cpu_seconds: f64,
    /// The energy of the processors in joules, from their own counters.
    pub processor_joules: Option<f64>,
    /// The most memory this process ever had.
    pub peak_rss_bytes: u64,
}

impl SystemWatch {
    /// Reads the counters before work on `files`. Some of the files may not exist yet.
    pub(super) fn look(files: &[PathBuf]) -> Self {
        let places: Option<BTreeSet<_>> = files.iter().filter_map(|file| device_of(file)).collect();
        let disks: Option<Vec<BlockDevice>> = places.and_then(|places| {
            let sys = Path::new("/sys/dev/block");
            places.into_iter().map(|(major, minor)| BlockDevice::find(sys, major, minor)).collect()
        });
        let mut disks = disks.unwrap_or_default();
        disks.sort_by(|a, b| a.stat.cmp(&b.stat));
        disks.dedup_by(|a, b| a.stat == b.stat);
        let mut system = SystemWatch {
            all_known: !disks.is_empty(),
            disks,
            energy: energy_counters(Path::new("/sys/class/powercap")),
            before: SystemCounters::default(),
        };
        system.before = system.counters();
        system
    }

    /// Looks again, `seconds` later.
    pub(super) fn look_again(&self, seconds: f64) -> SystemUse {
        let (before, after) = (&self.before, self.counters());
        let disks = self.disks.iter().zip(before.disks.iter().zip(&after.disks));
        let disks = disks.map(|(disk, (before, after))| DiskUse {
            name: disk.name.clone(),
            read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: after.written_bytes.saturating_sub(before.written_bytes),
            busy_seconds: after.busy_ms.saturating_sub(before.busy_ms) as f64 / 1e3,
        });
        let energy = self.energy.iter().zip(before.energy_uj.iter().zip(&after.energy_uj));
        let joules: Option<Vec<f64>> = energy
            .map(|(counter, (before, after))| counter.joules(*before, *after, seconds))
            .collect();
        SystemUse {
            disks: if self.all_known { disks.collect() } else { Vec::new() },
            process: ProcessBytes {
                read_bytes: after.process.read_bytes.saturating_sub(before.process.read_bytes),
                written_bytes: after
                    .process
                    .written_bytes
                    .saturating_sub(before.process.written_bytes),
            },
            cpu_seconds: after.cpu_seconds - before.cpu_seconds,
            processor_joules: joules.filter(|all| !all.is_empty()).map(|all| all.iter().sum()),
            peak_rss_bytes: peak_rss_bytes(),
        }
    }

    fn counters(&self) -> SystemCounters {
        SystemCounters {
            disks: self.disks.iter().map(|disk| disk.counters().unwrap_or_default()).collect(),
            process: process_bytes(),
            cpu_seconds: cpu_seconds(),
            energy_uj: self.energy.iter().map(|e| number_in(&e.path).unwrap_or(0)).collect(),
        }
    }
}

/// The device that holds or will hold `file`, or the device that `file` is. `Some(None)` if it is
/// unknown; `None` if `file` is on no device, such as a pipe.
fn device_of(file: &Path) -> Option<Option<(u32, u32)>> {
    let found = match fs::metadata(file) {
        Ok(found) => found,
        Err(_) => {
            let parent = file.parent().filter(|parent| *parent != Path::new(""));
            match fs::metadata(parent.unwrap_or(Path::new("."))) {
                Ok(found) => found,
                Err(_) => return Some(None),
            }
        }
    };
    let kind = found.file_type();
    let number = if kind.is_block_device() {
        found.rdev()
    } else if kind.is_file() || kind.is_dir() {
        found.dev()
    } else {
        return None;
    };
    Some(Some((libc::major(number), libc::minor(number))))
}

impl BlockDevice {
    /// The block device of this number; of a partition, the disk that it is a part of.
    fn find(sys: &Path, major: u32, minor: u32) -> Option<Self> {
        let mut folder = fs::canonicalize(sys.join(format!("{major}:{minor}"))).ok()?;
        if folder.join("partition").exists() {
            folder.pop();
        }
        let name = folder.file_name()?.to_string_lossy().into_owned();
        let disk = BlockDevice { name, stat: folder.join("stat") };
        disk.counters().map(|_| disk)
    }

    /// As the kernel's `Documentation/block/stat.rst` numbers them.
    fn counters(&self) -> Option<DiskCounters> {
        let text = fs::read_to_string(&self.stat).ok()?;
        let numbers: Vec<u64> = text.split_whitespace().map_while(|n| n.parse().ok()).collect();
        Some(DiskCounters {
            read_bytes: numbers.get(2)? * SECTOR_BYTES,
            written_bytes: numbers.get(6)? * SECTOR_BYTES,
            busy_ms: *numbers.get(9)?,
        })
    }
}

/// The processor packages that count their energy, and let us look.
fn energy_counters(powercap: &Path) -> Vec<EnergyCounter> {
    let zones = fs::read_dir(powercap).into_iter().flatten().flatten();
    let counter = |zone: fs::DirEntry| {
        let folder = zone.path();
        let package = fs::read_to_string(folder.join("name")).ok()?;
        let path = folder.join("energy_uj");
        number_in(&path).filter(|_| package.starts_with("package"))?;
        Some(EnergyCounter { path, range_uj: number_in(&folder.join("max_energy_range_uj"))? })
    };
    zones.filter_map(counter).collect()
}

impl EnergyCounter {
    /// No package draws more.
    const WATTS_MAX: f64 = 500.0;

    /// The energy between two readings; `None` if the counter may have wrapped more than once.
    fn joules(&self, before_uj: u64, after_uj: u64, seconds: f64) -> Option<f64> {
        let once = seconds * Self::WATTS_MAX * 1e6 < self.range_uj as f64;
        let round = if after_uj < before_uj { self.range_uj } else { 0 };
        let passed_uj = (after_uj + round).checked_sub(before_uj)?;
        once.then_some(passed_uj as f64 / 1e6)
    }
}

fn number_in(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn process_bytes() -> ProcessBytes {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let field = |name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0u64)
    };
    ProcessBytes {
        read_bytes: field("read_bytes:"),
        written_bytes: field("write_bytes:").saturating_sub(field("cancelled_write_bytes:")),
    }
}

/// The most memory this process ever had; 0 where the system does not tell.
fn peak_rss_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<u64> = line.and_then(|kib| kib.trim().trim_end_matches(" kB").parse().ok());
    kib.unwrap_or(0) * 1024
}

fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Physical processor cores, two threads of one core counted once; 0 where the system does not tell.
pub(super) fn physical_cores() -> usize {
    let cpus = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let siblings = |cpu: fs::DirEntry| {
        fs::read_to_string(cpu.path().join("topology/thread_siblings_list")).ok()
    };
    cpus.filter_map(siblings).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_counts_as_its_disk() {
        let dir = tempfile::tempdir().expect("a folder");
        let sys = dir.path();
        let disk = sys.join("devices/sdx");
        fs::create_dir_all(disk.join("sdx1")).expect("made");
        fs::write(disk.join("sdx1/partition"), "1\n").expect("written");
        fs::write(disk.join("stat"), "  10 0 2000 30 40 0 5000 60 0 70 80\n").expect("written");
        std::os::unix::fs::symlink(&disk, sys.join("8:0")).expect("linked");
        std::os::unix::fs::symlink(disk.join("sdx1"), sys.join("8:1")).expect("linked");
        for minor in [0, 1] {
            let found = BlockDevice::find(sys, 8, minor).expect("there");
            assert_eq!(found.name, "sdx");
            let counters =
                DiskCounters { read_bytes: 2000 * 512, written_bytes: 5000 * 512, busy_ms: 70 };
            assert_eq!(found.counters(), Some(counters));
        }
        assert!(BlockDevice::find(sys, 0, 42).is_none(), "no block device");
    }

    #[test]
    fn energy_is_of_packages_and_counters_may_go_round_once() {
        let dir = tempfile::tempdir().expect("a folder");
        for (zone, name) in [("rapl:0", "package-0"), ("rapl:0:0", "dram"), ("rapl:1", "psys")] {
            let folder = dir.path().join(zone);
            fs::create_dir(&folder).expect("made");
            fs::write(folder.join("name"), format!("{name}\n")).expect("written");
            fs::write(folder.join("energy_uj"), "123\n").expect("written");
            fs::write(folder.join("max_energy_range_uj"), "100000000000\n").expect("written");
        }
        let [counter] = &energy_counters(dir.path())[..] else { panic!("one package") };
        assert_eq!(counter.joules(1_000_000, 3_000_000, 1.0), Some(2.0));
        assert_eq!(counter.joules(99_999_000_000, 1_000_000, 1.0), Some(2.0));
        assert_eq!(counter.joules(0, 1_000_000, 1000.0), None, "more than once, perhaps");
    }

    #[test]
    fn a_pipe_lies_on_no_device_and_a_new_file_on_that_of_its_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        assert_eq!(device_of(&dir.path().join("new")), device_of(dir.path()));
        assert_eq!(device_of(Path::new("/dev/null")), None);
        assert_eq!(device_of(Path::new("/not/there")), Some(None));
    }

    #[test]
    fn work_takes_processor_time_and_memory() {
        let system = SystemWatch::look(&[]);
        let started = std::time::Instant::now();
        let mut sum = 0u64;
        while started.elapsed().as_millis() < 20 {
            sum = std::hint::black_box(sum.wrapping_mul(3) + 1);
        }
        let used = system.look_again(started.elapsed().as_secs_f64());
        assert!(used.cpu_seconds > 0.0 && used.peak_rss_bytes > 1 << 20 && used.disks.is_empty());
        assert!(physical_cores() <= 4096);
    }
}
