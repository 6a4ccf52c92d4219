//! How much memory to use: the default, and GNU sort's `-S`.

use std::fs;
use std::path::Path;

use crate::args::{BufferSize, TypedSize};
use crate::failure::Failure;
use crate::setting::MEMORY;

/// The default is this fraction of the available memory, 1 / 4: a sort is rarely alone on a machine.
const SHARE: u64 = 4;
/// Assumed where the system does not say.
const UNKNOWN_BYTES: u64 = 1 << 30;
/// The least that `sort -S` gives a sort, and what it adds for each thread. A sort needs 1.8 MiB and
/// 1 MiB for each thread; with this much it also takes lines of more than a megabyte, where GNU sort
/// takes more memory than it was given.
const LEAST_BYTES: u64 = 14 << 20;
const THREAD_BYTES: u64 = 2 << 20;

/// The memory budget: as much as was asked for, by the option or by `$MERGANSER_MEMORY`, or a share of the memory that
/// is available.
///
/// # Errors
/// For 0 bytes, and for a variable that is no size.
pub fn memory_bytes(typed: Option<TypedSize>) -> Result<u64, Failure> {
    Ok(asked(typed)?.map_or_else(default_bytes, |size| size.0))
}

/// The size that was asked for, by the option or by `$MERGANSER_MEMORY`.
///
/// # Errors
/// For 0 bytes, and for a variable that is no size.
pub fn asked(typed: Option<TypedSize>) -> Result<Option<TypedSize>, Failure> {
    match MEMORY.or_variable(typed)? {
        Some(TypedSize(0)) => Err(format!("{}: at least 1 byte", MEMORY.name()).into()),
        size => Ok(size),
    }
}

/// A quarter of what this process could still get: of the system's available memory, or of its
/// control group's limit when that is less. A whole number of MiB, which is short in a sentence.
pub fn default_bytes() -> u64 {
    let bytes = available_bytes(Path::new("/")).unwrap_or(UNKNOWN_BYTES) / SHARE;
    (bytes >> 20).max(1) << 20
}

/// `typed` bytes, but no more than a part of the machine's memory, 7 / 8, where they are more than all of it: no
/// sort has them, and the system ends a process that tries.
pub fn within_machine(typed: u64) -> u64 {
    let machine = machine_bytes();
    if typed <= machine { typed } else { ((machine / 8 * 7) >> 20) << 20 }
}

/// All memory of the machine, or the limit of this process's control group when that is less.
pub fn machine_bytes() -> u64 {
    least_bytes(Path::new("/"), "MemTotal:").unwrap_or(UNKNOWN_BYTES)
}

/// The memory of `sort -S`: the largest size that is given, as in GNU sort, and never less than a
/// sort of `threads` threads needs.
pub fn buffer_bytes(typed: &[BufferSize], threads: usize) -> Option<u64> {
    let bytes = |size: &BufferSize| match *size {
        BufferSize::Bytes(bytes) => bytes,
        BufferSize::Percent(percent) => {
            u64::try_from(u128::from(total_bytes()) * u128::from(percent) / 100).unwrap_or(u64::MAX)
        }
    };
    let threads = u64::try_from(threads).unwrap_or(u64::MAX);
    let least = THREAD_BYTES.saturating_mul(threads).saturating_add(LEAST_BYTES);
    typed.iter().map(bytes).max().map(|bytes| bytes.max(least))
}

/// All memory of the machine.
fn total_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    meminfo(&text, "MemTotal:").unwrap_or(UNKNOWN_BYTES)
}

/// Bytes available under the system files below `root`.
fn available_bytes(root: &Path) -> Option<u64> {
    least_bytes(root, "MemAvailable:")
}

/// The bytes behind `name` in `/proc/meminfo`, or the least limit of this process's control groups. All system
/// files are below `root`.
fn least_bytes(root: &Path, name: &str) -> Option<u64> {
    let system = meminfo(&fs::read_to_string(root.join("proc/meminfo")).ok()?, name);
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| group_limit(root, line));
    system.into_iter().chain(limits).min()
}

/// The bytes behind `name` in `/proc/meminfo`.
fn meminfo(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The least limit on the way from a line of `/proc/self/cgroup` (`ID:CONTROLLERS:PATH`) up to the
/// root.
fn group_limit(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let mount = root.join(mount);
    let group = mount.join(path.trim_start_matches('/'));
    group
        .ancestors()
        .take_while(|folder| folder.starts_with(&mount))
        .filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        available_bytes(root.path())
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4000 kB\n");

    #[test]
    fn the_system_tells_what_is_available() {
        assert_eq!(system(&[MEMINFO]), Some(4000 * 1024));
        assert_eq!(system(&[]), None);
        assert!(default_bytes() > 0);
    }

    #[test]
    fn a_buffer_size_that_is_too_small_is_the_least_that_works() {
        let least = LEAST_BYTES + 2 * THREAD_BYTES;
        let bytes = |sizes: &[BufferSize]| buffer_bytes(sizes, 2);
        assert_eq!(bytes(&[]), None);
        assert_eq!(bytes(&[BufferSize::Bytes(0)]), Some(least));
        assert_eq!(bytes(&[BufferSize::Percent(0)]), Some(least));
        assert_eq!(bytes(&[BufferSize::Bytes(1 << 40), BufferSize::Bytes(5)]), Some(1 << 40));
        assert!(bytes(&[BufferSize::Percent(50)]) > bytes(&[BufferSize::Percent(0)]));
    }

    #[test]
    fn the_least_limit_of_any_group_above_counts() {
        let v2 = system(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "123000\n"),
        ]);
        assert_eq!(v2, Some(123_000));
        assert!(machine_bytes() >= default_bytes(), "all, and a part of what is left");
        let v1 = system(&[
            MEMINFO,
            ("proc/self/cgroup", "5:cpu:/x\n4:memory:/job\n"),
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "77000\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(v1, Some(77_000));
    }
}
