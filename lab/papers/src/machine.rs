//! The machine at hand, as far as the system describes it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// The machine on which a figure was measured.
#[derive(Debug)]
pub(crate) struct MeasuredMachine {
    /// The processor's name.
    pub processor: String,
    /// How many of them the process may use.
    pub cores: usize,
    /// All memory.
    pub memory_bytes: u64,
    /// Kind of the file system under the data.
    pub file_system: String,
    /// Version of the kernel.
    pub kernel: String,
}

impl MeasuredMachine {
    /// This one, with its data in `dir`.
    pub(crate) fn here(dir: &Path) -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |path: &str, name: &str| {
            let found = text(path);
            let line = found.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.trim_start_matches([' ', '\t', ':']).trim().to_owned()
        };
        let memory_kib: u64 =
            field("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or(0);
        let known = |text: String| if text.is_empty() { "unknown".to_owned() } else { text };
        MeasuredMachine {
            processor: known(field("/proc/cpuinfo", "model name")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_kib * 1024,
            file_system: known(file_system(dir, &text("/proc/self/mounts"))),
            kernel: known(text("/proc/sys/kernel/osrelease").trim().to_owned()),
        }
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "processor": self.processor,
            "cores": self.cores,
            "memory_bytes": self.memory_bytes,
            "file_system": self.file_system,
            "kernel": self.kernel,
        })
    }
}

impl std::fmt::Display for MeasuredMachine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let MeasuredMachine { processor, cores, memory_bytes, file_system, kernel } = self;
        let gib = *memory_bytes as f64 / f64::from(1 << 30);
        write!(f, "{processor}, {cores} cores, {gib:.0} GiB, {file_system}, Linux {kernel}")
    }
}

/// The kind of the file system that holds `dir`, by the mount table's longest mount point.
fn file_system(dir: &Path, mounts: &str) -> String {
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let mut best = (0, String::new());
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(1);
        let (Some(point), Some(kind)) = (fields.next(), fields.next()) else { continue };
        if dir.starts_with(point) && point.len() >= best.0 {
            best = (point.len(), kind.to_owned());
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_says_the_file_system() {
        let mounts = "a / ext4 rw\nb /nowhere xfs rw\nc /nowhere/near btrfs rw\n";
        assert_eq!(file_system(Path::new("/nowhere/near/x"), mounts), "btrfs");
        assert_eq!(file_system(Path::new("/nowhere/nearby"), mounts), "xfs");
        assert_eq!(file_system(Path::new("/elsewhere"), mounts), "ext4");
    }
}
