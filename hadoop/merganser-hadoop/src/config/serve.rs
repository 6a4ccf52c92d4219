//! The settings of `merganser hadoop serve`.

use std::path::PathBuf;

use merganser_hadoop_node::hdfs::server::{MAP_BYTES_MIN, memory_bytes_min as maps_memory_min};
use merganser_serve::session::GuestLimits;
use merganser_shell::config::threads;
use merganser_shell::failure::Failure;

use crate::args::HadoopServeArgs;

/// The least memory: enough for one merge of 64 spills.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// Fuel for each byte of a map task's input, unless the operator gives another number: eight times what the most hungry
/// guest took that was measured, and about a second for a MiB. Each chunk has 200,000,000 units in addition. A guest that
/// loops without an end fails at its first chunk; one that is slow within its fuel holds its place for about 3 minutes
/// per 128 MiB in chunks of 512 KiB.
const JOB_FUEL_PER_BYTE: u64 = 1000;

/// The servers of `merganser hadoop serve`, in one process.
#[derive(Debug)]
pub(crate) struct HadoopServeConfig {
    /// The merges.
    pub shuffle: Option<ShuffleConfig>,
    /// The map tasks.
    pub hdfs: Option<HdfsConfig>,
}

/// The folders and limits of `merganser hadoop serve --shuffle`.
#[derive(Debug)]
pub(crate) struct ShuffleConfig {
    /// Where to listen.
    pub socket: PathBuf,
    /// The mode of the socket's file.
    pub socket_mode: u32,
    /// The folders of the spills, as absolute paths.
    pub local_dirs: Vec<PathBuf>,
    /// The memory budget of all merges together.
    pub memory_bytes: u64,
    /// Merges at once.
    pub merges: u32,
    /// Whether served bytes may stay in the page cache.
    pub keep_cache: bool,
}

/// The folders and limits of `merganser hadoop serve --hdfs`.
#[derive(Debug)]
pub(crate) struct HdfsConfig {
    /// Where to listen.
    pub socket: PathBuf,
    /// The mode of the socket's file.
    pub socket_mode: u32,
    /// The folders of the blocks, as absolute paths.
    pub data_dirs: Vec<PathBuf>,
    /// The memory budget of all map tasks together.
    pub memory_bytes: u64,
    /// Map tasks at once.
    pub maps: u32,
    /// What a guest that a job brings may use; `None` if jobs may bring none.
    pub job_ssdlets: Option<GuestLimits>,
}

impl TryFrom<HadoopServeArgs> for HadoopServeConfig {
    type Error = Failure;

    fn try_from(typed: HadoopServeArgs) -> Result<Self, Failure> {
        if let (false, Some(flag)) = (typed.job_ssdlets, merganser_guests::flag(&typed.guest)) {
            return Err(format!("{flag}: only with --job-ssdlets, whose guests it limits").into());
        }
        let parts = u64::from(typed.shuffle.is_some()) + u64::from(typed.hdfs.is_some());
        let memory_bytes = typed.memory.0 / parts.max(1);
        let hdfs = hdfs(&typed, memory_bytes, parts)?;
        let shuffle = shuffle(&typed, memory_bytes)?;
        Ok(HadoopServeConfig { shuffle, hdfs })
    }
}

fn socket_mode(typed: &HadoopServeArgs) -> Result<u32, Failure> {
    let mode = u32::from_str_radix(&typed.socket_mode, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| {
        let typed = &typed.socket_mode;
        format!(
            "--socket-mode: '{typed}' is no mode of a file; 600 is its user's, 660 its group's too"
        )
        .into()
    })
}

fn absolute(dirs: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let absolute = |dir: &PathBuf| std::path::absolute(dir).map_err(|e| Failure::on(dir, &e));
    dirs.iter().map(absolute).collect()
}

fn shuffle(typed: &HadoopServeArgs, memory_bytes: u64) -> Result<Option<ShuffleConfig>, Failure> {
    let Some(socket) = typed.shuffle.clone() else { return Ok(None) };
    let socket_mode = socket_mode(typed)?;
    if memory_bytes < MEMORY_BYTES_MIN {
        return Err("--memory: at least 1M".to_owned().into());
    }
    let merges = match typed.merges {
        Some(0) => return Err("--merges: at least 1".to_owned().into()),
        Some(merges) => merges,
        None => 2 * threads(None)? as u32,
    };
    let local_dirs = absolute(&typed.local_dirs)?;
    let keep_cache = typed.keep_cache;
    Ok(Some(ShuffleConfig { socket, socket_mode, local_dirs, memory_bytes, merges, keep_cache }))
}

/// The map tasks, which get `memory_bytes`: one of `parts` equal parts of `--memory`.
fn hdfs(
    typed: &HadoopServeArgs,
    memory_bytes: u64,
    parts: u64,
) -> Result<Option<HdfsConfig>, Failure> {
    let Some(socket) = typed.hdfs.clone() else { return Ok(None) };
    let socket_mode = socket_mode(typed)?;
    let maps = match typed.maps {
        Some(0) => return Err("--maps: at least 1".to_owned().into()),
        Some(maps) => maps,
        None => (threads(None)? as u64).min((memory_bytes / MAP_BYTES_MIN).max(1)) as u32,
    };
    let data_dirs = absolute(&typed.hdfs_data_dirs)?;
    if maps_memory_min(maps) > memory_bytes {
        let least = (maps_memory_min(maps) * parts).div_ceil(1 << 20);
        return Err(format!(
            "--memory: at least {least}M for {maps} map tasks; give more, or fewer --maps"
        )
        .into());
    }
    let limits = merganser_guests::limits(&typed.guest)?;
    let job_ssdlets = typed.job_ssdlets.then_some(GuestLimits {
        fuel_per_byte: Some(limits.fuel_per_byte.unwrap_or(JOB_FUEL_PER_BYTE)),
        ..limits
    });
    Ok(Some(HdfsConfig { socket, socket_mode, data_dirs, memory_bytes, maps, job_ssdlets }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{config, refusal};
    use super::*;
    use crate::args::HadoopTask;

    fn meant(words: &[&str]) -> HadoopServeConfig {
        let HadoopTask::Serve(typed) = config(words) else { unreachable!() };
        HadoopServeConfig::try_from(typed)
            .unwrap_or_else(|failure| panic!("{:?}", failure.sentence()))
    }

    #[test]
    fn map_tasks_have_defaults_and_bounds() {
        let with = |more: &[&'static str]| {
            [&["hadoop", "serve", "--hdfs", "s", "--hdfs-data-dir", "/d"][..], more].concat()
        };
        let alone = meant(&with(&["--hdfs-data-dir", "/e"])).hdfs.expect("asked for");
        assert_eq!((alone.socket_mode, alone.memory_bytes), (0o600, 256 << 20));
        assert_eq!(alone.data_dirs, [PathBuf::from("/d"), PathBuf::from("/e")]);
        assert!(alone.maps >= 1);
        let both = meant(&with(&["--shuffle", "t", "--local-dir", "/l", "--socket-mode", "660"]));
        let (hdfs, shuffle) = (both.hdfs.expect("asked for"), both.shuffle.expect("asked for"));
        assert_eq!((hdfs.memory_bytes, shuffle.memory_bytes), (128 << 20, 128 << 20));
        assert_eq!((hdfs.socket_mode, shuffle.socket_mode), (0o660, 0o660));
        for (more, told) in [
            (["--maps", "0"], "--maps: at least 1"),
            (["--maps", "100"], "--memory: at least 800M for 100 map tasks"),
            (["--socket-mode", "rw"], "--socket-mode: 'rw' is no mode of a file"),
        ] {
            let sentence = refusal(&with(&more));
            assert!(sentence.starts_with(told), "{sentence}");
        }
        let one = refusal(&with(&["--maps", "1", "--memory", "10M"]));
        assert!(one.starts_with("--memory: at least 11M for 1 map tasks"), "{one}");
        let shared = ["--shuffle", "t", "--local-dir", "/l", "--maps", "4", "--memory", "40M"];
        let shared = refusal(&with(&shared));
        assert!(shared.starts_with("--memory: at least 64M for 4 map tasks"), "{shared}");
        let unused = refusal(&with(&["--fuel-per-byte", "5"]));
        assert!(unused.starts_with("--fuel-per-byte: only with --job-ssdlets"), "{unused}");
        // Guests of jobs have less fuel than those of a node, whose operator chose them.
        assert_eq!(meant(&with(&[])).hdfs.expect("asked for").job_ssdlets, None);
        let guests = meant(&with(&["--job-ssdlets", "--time-limit", "2"])).hdfs.expect("asked for");
        let limits = guests.job_ssdlets.expect("allowed");
        assert_eq!(limits.fuel_per_byte, Some(1000));
        assert_eq!(limits.call_time, Some(Duration::from_secs(2)));
        let more = meant(&with(&["--job-ssdlets", "--fuel-per-byte", "5000"])).hdfs;
        let limits = more.expect("asked for").job_ssdlets.expect("allowed");
        assert_eq!(limits.fuel_per_byte, Some(5000));
        // By default there are as many as the memory allows, whatever the number of processors.
        let little = meant(&with(&["--memory", "16M"])).hdfs.expect("asked for");
        assert!((1..=2).contains(&little.maps), "{}", little.maps);
    }

    #[test]
    fn numbers_have_defaults_and_bounds() {
        let with = |more: &[&'static str]| {
            [&["hadoop", "serve", "--shuffle", "s", "--local-dir", "/d"][..], more].concat()
        };
        let meant = meant(&with(&["--local-dir", "/e"])).shuffle.expect("asked for");
        assert_eq!((meant.socket_mode, meant.memory_bytes), (0o600, 256 << 20));
        assert_eq!(meant.local_dirs, [PathBuf::from("/d"), PathBuf::from("/e")]);
        assert!(meant.merges >= 2);
        assert!(!meant.keep_cache, "as a stock NodeManager");
        for (more, told) in [
            (["--memory", "1000"], "--memory: at least 1M"),
            (["--merges", "0"], "--merges: at least 1"),
            (["--socket-mode", "rw"], "--socket-mode: 'rw' is no mode of a file"),
            (["--socket-mode", "1777"], "--socket-mode: '1777' is no mode"),
        ] {
            let sentence = refusal(&with(&more));
            assert!(sentence.starts_with(told), "{sentence}");
        }
    }
}
