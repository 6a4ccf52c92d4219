//! How a server's heap gives memory back.
//!
//! glibc's malloc makes up to eight arenas per processor, one for each thread that finds the others busy, and
//! keeps freed memory at the end of each. How much it keeps grows by itself with the largest blocks that were
//! ever freed, to 64 MiB per arena. A command that ends soon gains by that. A server has new threads for each
//! run, whose tables have many MiB, so all arenas kept the largest table that they ever had: after 64 sessions
//! in `--memory 128M`, 200 of 240 MB were free memory in 15 arenas. With these settings it was 72 MB in all.

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

/// Sets it. Called before the server has any thread that allocates.
pub(super) fn keep_little() {
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
