//! The settings of `merganser emulate`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use merganser_device::emulated::PathTime;
use merganser_shell::args::TypedSize;
use merganser_shell::config::report::report_file;
use merganser_shell::config::{DoorConfig, NbdConfig, ReportForm};
use merganser_shell::failure::Failure;

use super::DeviceChoice;
use super::simulate::device;
use crate::args::EmulateArgs;

/// The disk that `merganser emulate` shows.
#[derive(Debug)]
pub(crate) struct EmulateConfig {
    /// The device; `null` takes no time.
    pub device: DeviceChoice,
    /// All bytes count as written before.
    pub filled: bool,
    /// The data.
    pub backing: BackingConfig,
    /// How programs reach it.
    pub door: DoorConfig,
    /// The time of the way to the model and back.
    pub path: PathTime,
    /// The time before an event in which no thread sleeps, in nanoseconds.
    pub spin_ns: u64,
    /// The seconds of the wall clock for one second of the disk.
    pub slower: NonZeroU32,
    /// The processor of the emulation, if it has one.
    pub cpu: Option<usize>,
    /// The file of the trace.
    pub trace: Option<PathBuf>,
    /// The file of the report, and its kind.
    pub report: Option<(PathBuf, ReportForm)>,
}

/// Where the data are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BackingConfig {
    /// In a file.
    File {
        /// Its name.
        path: PathBuf,
        /// The size of the disk; a smaller file grows to it. Without it, the disk is as large as the file.
        size: Option<u64>,
        /// Whether the file may be one that this command did not make.
        existing: bool,
    },
    /// In memory; this many bytes. Without a number, as many as the device has.
    Memory(Option<u64>),
}

impl BackingConfig {
    /// The size that was asked for.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            BackingConfig::File { size, .. } | BackingConfig::Memory(size) => *size,
        }
    }

    /// What to call it in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            BackingConfig::File { path, .. } => path.display().to_string(),
            BackingConfig::Memory(_) => "memory".to_owned(),
        }
    }
}

impl TryFrom<EmulateArgs> for EmulateConfig {
    type Error = Failure;

    fn try_from(typed: EmulateArgs) -> Result<Self, Failure> {
        let size = match typed.size {
            Some(TypedSize(0)) => return Err("--size: at least 1 byte".to_owned().into()),
            size => size.map(|TypedSize(bytes)| bytes),
        };
        let backing = match typed.file {
            Some(path) => BackingConfig::File { path, size, existing: typed.existing },
            None => BackingConfig::Memory(size),
        };
        let door = match (typed.mount, typed.nbd) {
            (_, Some(nbd)) => DoorConfig::Nbd(NbdConfig::new(&nbd, &typed.protection)?),
            (Some(mountpoint), None) => {
                DoorConfig::Mount { mountpoint, allow_other: typed.allow_other }
            }
            (None, None) => return Err("one of --mount and --nbd is needed".to_owned().into()),
        };
        let report = report_file(typed.report)?;
        if let Some(path) = &typed.trace
            && report.as_ref().is_some_and(|(report, _)| report == path)
        {
            return Err("--trace, --report: both would write the same file".to_owned().into());
        }
        Ok(EmulateConfig {
            device: device(typed.device),
            filled: typed.filled,
            backing,
            door,
            path: PathTime {
                fixed_ns: u64::from(typed.path_us) * 1000,
                read_ns_per_mib: u64::from(typed.path_us_per_mib.read) * 1000,
                write_ns_per_mib: u64::from(typed.path_us_per_mib.write) * 1000,
            },
            spin_ns: u64::from(typed.spin_us) * 1000,
            slower: typed.slower,
            cpu: typed.cpu,
            trace: typed.trace,
            report,
        })
    }
}

#[cfg(test)]
mod tests {
    use merganser_export::nbd::Address;

    use super::super::tests::{config, refusal};
    use super::*;
    use crate::args::LabCommand;

    #[test]
    fn a_disk_has_data_a_size_and_a_door() {
        let words =
            ["emulate", "--memory-backed", "--size", "1G", "--mount", "m", "--device", "830"];
        let LabCommand::Emulate(typed) = config(&words) else { unreachable!() };
        let meant = EmulateConfig::try_from(typed).expect("meant");
        let memory = BackingConfig::Memory(Some(1 << 30));
        assert_eq!((meant.backing, &*meant.device.name), (memory, "830"));
        let LabCommand::Emulate(typed) = config(&["emulate", "--memory-backed", "--mount", "m"])
        else {
            unreachable!()
        };
        let meant = EmulateConfig::try_from(typed).expect("meant");
        assert_eq!(meant.backing, BackingConfig::Memory(None));
        let said = |words: &[&str]| refusal(&[&["emulate", "--mount", "m"], words].concat());
        assert_eq!(said(&["--file", "x", "--size", "0"]), "--size: at least 1 byte");
        assert_eq!(
            said(&["--file", "x", "--trace", "a.json", "--report", "a.json"]),
            "--trace, --report: both would write the same file"
        );
        assert!(said(&["--file", "x", "--report", "y"]).starts_with("--report: 'y' ends neither"));
        let words = ["emulate", "--file", "x", "--existing", "--nbd", "host:port"];
        assert!(refusal(&words).starts_with("--nbd: 'port' is no port"));
        let words = ["emulate", "--file", "x", "--existing", "--nbd", "s"];
        let LabCommand::Emulate(typed) = config(&words) else { unreachable!() };
        let meant = EmulateConfig::try_from(typed).expect("meant");
        let path = "x".into();
        assert_eq!(meant.backing, BackingConfig::File { path, size: None, existing: true });
        let DoorConfig::Nbd(nbd) = meant.door else { unreachable!() };
        assert_eq!((nbd.address, nbd.insecure), (Address::Unix("s".into()), false));
    }
}
