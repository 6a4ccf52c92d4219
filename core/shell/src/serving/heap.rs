//! How a server's heap gives memory back.
//!
//! glibc's malloc makes up to eight arenas per processor, one for each thread that finds the others busy, and
//! keeps freed memory at the end of each. How much it keeps grows by itself with the largest blocks that were
//! ever freed, to 64 MiB per arena. A command that ends soon gains by that. A server has new threads for each
//! run, whose tables have many MiB, so all arenas kept the largest table that they ever had: after 64 sessions
//! in `--memory 128M`, 200 of 240 MB were free memory in 15 arenas. With these settings it was 72 MB in all.

#[cfg(target_env = "gnu")]
use std::time::Duration;

#[cfg(target_env = "gnu")]
use rustix::time::{ClockId, clock_gettime};

/// Arenas of all threads. Hot loops do not allocate, so few threads wait for one.
#[cfg(target_env = "gnu")]
const ARENAS: i32 = 4;
/// Blocks from this size on are mapped by themselves, and given back when they are freed. Batches of rows and
/// records are shorter: they are made and freed all the time. Bodies of requests and what is made of them are not.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES: i32 = 1 << 20;
/// Free memory that an arena may keep at its end.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: i32 = 1 << 20;

/// How often free memory in the middle of the arenas is given back, while the server works.
#[cfg(target_env = "gnu")]
const TRIM_EVERY: Duration = Duration::from_millis(250);
/// A server that used less of the processor than this since it was last looked at made little that it could have freed.
#[cfg(target_env = "gnu")]
const AT_WORK: Duration = Duration::from_millis(2);

/// Sets it. Called before the server has any thread that allocates.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    for (setting, value) in [
        (libc::M_ARENA_MAX, ARENAS),
        (libc::M_MMAP_THRESHOLD, MAPPED_BYTES),
        (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
    ] {
        // SAFETY: it sets numbers of the allocator and touches no memory of ours. The only other thread waits
        // for signals and allocates nothing.
        let is_set = unsafe { libc::mallopt(setting, value) };
        debug_assert_eq!(is_set, 1, "glibc has these settings");
    }
}

/// Gives back what was freed in the middle of the arenas, again and again while the server works.
///
/// glibc gives back the end of an arena alone: one small block behind 20 MiB that were freed keeps them. Under every
/// call at its worst at once, 20 to 42 MiB of free memory were kept so, beyond `--memory`.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    {
        let used =
            || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
        let trim = move || {
            let mut before = used();
            loop {
                std::thread::sleep(TRIM_EVERY);
                if used().saturating_sub(before) < AT_WORK {
                    continue;
                }
                // SAFETY: it gives pages back that hold no block in use, under the locks of the arenas.
                unsafe { libc::malloc_trim(0) };
                before = used();
            }
        };
        // Without this thread it serves all the same, and has more memory at its worst.
        let _ = std::thread::Builder::new().name("heap".to_owned()).spawn(trim);
    }
}
