//! Which process holds a lock, as far as the system tells: for messages only.

use std::borrow::Cow;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

/// A process that has a lock: `process 123 (merganser mount)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// Its number.
    pub process: u32,
    /// The name of its program: any characters.
    pub program: String,
    /// Its first word, if that looks like the name of a command.
    pub command: Option<String>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({}", self.process, self.program)?;
        if let Some(command) = &self.command {
            write!(f, " {command}")?;
        }
        f.write_str(")")
    }
}

/// The process that has `file` locked. `None` where /proc does not say.
pub fn holder_of(file: &File) -> Option<LockHolder> {
    let inode = file.metadata().ok()?.ino();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let process = locks.lines().find_map(|line| holder_in(line, inode))?;
    // The words of a process are any bytes; the caller shows control characters as escapes.
    let words = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let mut words = words.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let program = words.next().filter(|program| !program.is_empty())?;
    let program = program.rsplit('/').next().unwrap_or(&program).to_owned();
    let command = words.next().filter(|word| word.bytes().all(|b| b.is_ascii_lowercase()));
    Some(LockHolder { process, program, command: command.map(Cow::into_owned) })
}

/// The process of a line of /proc/locks, if it holds a lock of the file `inode`. Devices are not compared: on
/// some file systems /proc/locks has other numbers for them than `stat`.
fn holder_in(line: &str, inode: u64) -> Option<u32> {
    // `1: FLOCK  ADVISORY  READ 1234 08:01:5678 0 EOF`; one that waits has `->` after the number.
    let mut words = line.split_whitespace().skip(1);
    if words.next() != Some("FLOCK") {
        return None;
    }
    let (process, file) = (words.nth(2)?, words.next()?);
    let found: u64 = file.rsplit(':').next()?.parse().ok()?;
    process.parse().ok().filter(|process| found == inode && *process > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_lock_names_its_process() {
        let line = "1: FLOCK  ADVISORY  READ 1234 08:01:5678 0 EOF";
        assert_eq!(holder_in(line, 5678), Some(1234));
        assert_eq!(holder_in(line, 678), None);
        for other in [
            "1: POSIX  ADVISORY  READ 1234 08:01:5678 0 EOF",
            "1: -> FLOCK  ADVISORY  READ 1234 08:01:5678 0 EOF",
            "1: FLOCK  ADVISORY  READ 0 08:01:5678 0 EOF",
            "1: FLOCK  ADVISORY  READ",
            "",
        ] {
            assert_eq!(holder_in(other, 5678), None, "{other}");
        }
    }

    #[test]
    fn this_process_is_named() {
        let file = tempfile::tempfile().expect("a file");
        assert_eq!(holder_of(&file), None);
        file.try_lock_shared().expect("locked");
        if let Some(holder) = holder_of(&file) {
            assert_eq!(holder.process, std::process::id());
            assert!(holder.to_string().starts_with("process "), "{holder}");
        }
    }
}
