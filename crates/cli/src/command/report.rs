//! What a command did, as JSON.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::failure::Failure;

/// Watches this process while it works.
pub struct Watch {
    started: Instant,
    read_bytes: u64,
    write_bytes: u64,
}

impl Watch {
    /// Counts from now on.
    pub fn start() -> Self {
        let (read_bytes, write_bytes) = device_bytes();
        Watch { started: Instant::now(), read_bytes, write_bytes }
    }

    /// Writes the report of `command`: what it says of itself, and what the system saw.
    ///
    /// # Errors
    /// When `path` can't be written.
    pub fn write(
        &self,
        path: &Path,
        command: &str,
        done: &impl serde::Serialize,
    ) -> Result<(), Failure> {
        self.write_with_io(path, command, done, &[])
    }

    /// As [`Watch::write`]; `io` says how the files in question were reached: directly or through
    /// the page cache, by which engine, and why not the best.
    ///
    /// # Errors
    /// When `path` can't be written.
    pub fn write_with_io(
        &self,
        path: &Path,
        command: &str,
        done: &impl serde::Serialize,
        io: &[(&str, String)],
    ) -> Result<(), Failure> {
        let io: serde_json::Map<String, serde_json::Value> =
            io.iter().map(|(what, mode)| ((*what).to_owned(), mode.clone().into())).collect();
        let (read_bytes, write_bytes) = device_bytes();
        let report = json!({
            "command": command,
            "seconds": self.started.elapsed().as_secs_f64(),
            "device_read_bytes": read_bytes - self.read_bytes,
            "device_written_bytes": write_bytes - self.write_bytes,
            "peak_rss_bytes": peak_rss_bytes(),
            "io": io,
            command: done,
        });
        let text = format!("{report:#}\n");
        fs::write(path, text).map_err(|error| Failure::on(path, &error))
    }
}

/// Bytes that this process had read from and written to devices; zeros where the system does not
/// tell.
fn device_bytes() -> (u64, u64) {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let field = |name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0)
    };
    (field("read_bytes:"), field("write_bytes:"))
}

/// The most memory this process ever had; 0 where the system does not tell.
fn peak_rss_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<u64> = line.and_then(|kib| kib.trim().trim_end_matches(" kB").parse().ok());
    kib.unwrap_or(0) * 1024
}
