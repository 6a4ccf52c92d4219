//! `merganser emulate`.

use std::num::{NonZeroU32, ParseIntError};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args};
use merganser_shell::args::{NbdArgs, TypedSize};

use super::DeviceArgs;

/// Emulate a disk in real time
///
/// Shows a file (--mount) or a network block device (--nbd) whose requests take as long as they would
/// on a modelled SSD or hard disk. Any program can use it, or a file system in it. The data are in a
/// backing file or in memory; the model decides when each request ends. The command runs until it is
/// interrupted or the folder is unmounted. Then it prints what the disk did and how late its answers
/// were.
///
/// A request ends at the later of the modelled end and the real transfer. If more than 1 % of the
/// requests were late, or answers by more than 1 % of the busy time, the run is not valid: the command
/// says so and exits with 2. Put the backing file in memory (tmpfs) or on a fast disk, and leave a core
/// idle.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("backing").required(true).args(["file", "memory_backed"])))]
#[command(group(ArgGroup::new("door").required(true).args(["mount", "nbd"])))]
#[command(after_help = "\
Examples:
  # a hard disk of 40 GB as the file /mnt/slow/disk, with a file system in it
  merganser emulate --device barracuda --file disk.img --size 40G --mount /mnt/slow &
  losetup --find --show --direct-io=on /mnt/slow/disk       then: mkfs.ext4 and mount /dev/loop0
  # an SSD with half its channels, everything recorded
  merganser emulate --device 830 --set channels=4 --memory-backed --size 4G --mount /mnt/ssd \\
      --trace run.trace --report run.html
  # the whole of it for clients of NBD: fio, qemu, nbd-client
  merganser emulate --device 830 --memory-backed --nbd disk.sock
  # the recorded requests on another device, in virtual time
  merganser simulate run --device nvme --trace run.trace
  # what the way to an emulated disk costs: a model that takes no time
  merganser emulate --device null --memory-backed --size 1G --mount /mnt/null")]
pub(crate) struct EmulateArgs {
    #[command(flatten)]
    pub device: DeviceArgs,

    /// Take the whole device as written before: an empty SSD answers reads without flash
    #[arg(long, help_heading = "Device")]
    pub filled: bool,

    /// Keep the data in this file; it is made if there is none. A file with other content is refused
    #[arg(long, value_name = "PATH", help_heading = "Data")]
    pub file: Option<PathBuf>,

    /// Use the file as it is although emulate did not make it: programs may change its content
    #[arg(long, requires = "file", help_heading = "Data")]
    pub existing: bool,

    /// Keep the data in memory, as much as is written
    #[arg(long, help_heading = "Data")]
    pub memory_backed: bool,

    /// Size of the disk [default: of the file, or in memory that of the device]
    #[arg(long, value_name = "SIZE", help_heading = "Data")]
    pub size: Option<TypedSize>,

    /// Show the disk as the file DIR/disk; DIR is an existing empty folder
    #[arg(long, value_name = "DIR", help_heading = "Door")]
    pub mount: Option<PathBuf>,

    /// Let other users use it too
    #[arg(long, requires = "mount", help_heading = "Door")]
    pub allow_other: bool,

    /// Serve the disk as the export 'disk' of an NBD server at a Unix socket, which only this user can
    /// open, or at HOST:PORT, open to any program of this machine
    #[arg(long, value_name = "SOCKET", help_heading = "Door")]
    pub nbd: Option<String>,

    #[command(flatten)]
    pub protection: NbdArgs,

    /// Microseconds that the way from a program to the model and back takes on this machine; each
    /// request counts as having come that much earlier (the mean latency that --device null shows, one
    /// request at a time)
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Door")]
    pub path_us: u32,

    /// Microseconds more of that way for each MiB of a request: the copies of its bytes (what 1 MiB takes
    /// longer than 4 KiB on --device null). R,W are those of reads and of writes
    #[arg(long, value_name = "N|R,W", default_value = "0", help_heading = "Door")]
    pub path_us_per_mib: CopyTime,

    /// Microseconds before each event of the model in which the thread that keeps the time does not sleep.
    /// More of them make fewer requests late, and take more of a processor
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Door")]
    pub spin_us: u32,

    /// Emulate a disk that is N times as slow, with all results in the time of the disk itself: the machine then counts
    /// as N times as fast as it is, and a delay of the emulation as N times as short
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Door")]
    pub slower: NonZeroU32,

    /// Run all threads of the emulation on processor N (numbers begin at 0), and keep that processor awake with a thread of
    /// the lowest priority. Programs that use the disk should run on other processors
    #[arg(long, value_name = "N", help_heading = "Door")]
    pub cpu: Option<usize>,

    /// Write every request to FILE, with its arrival, the hash of each page that is written, and the time
    /// it took (a trace for simulate run and simulate array)
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub trace: Option<PathBuf>,

    /// Write addresses, throughput and queue depth over time as a page (FILE.html) or as data
    /// (FILE.json)
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub report: Option<PathBuf>,
}

/// Microseconds for each MiB of a read and of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyTime {
    pub read: u32,
    pub write: u32,
}

impl FromStr for CopyTime {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let (read, write) = typed.split_once(',').unwrap_or((typed, typed));
        let number = |text: &str| {
            text.parse().map_err(|why: ParseIntError| {
                format!("'{text}': {why}; expected microseconds, as 300, or of reads and writes, as 150,400")
            })
        };
        Ok(CopyTime { read: number(read)?, write: number(write)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_reads_and_of_writes_have_times() {
        assert_eq!("7".parse(), Ok(CopyTime { read: 7, write: 7 }));
        assert_eq!("150,400".parse(), Ok(CopyTime { read: 150, write: 400 }));
        for wrong in ["", "a", "1,", ",1", "1,2,3", "-1", "1.5"] {
            let said = wrong.parse::<CopyTime>().expect_err(wrong);
            assert!(said.contains("expected microseconds, as 300"), "{said}");
        }
    }
}
