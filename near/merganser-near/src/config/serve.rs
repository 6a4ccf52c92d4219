//! The settings of `merganser serve`.

use std::path::PathBuf;
use std::time::Duration;

use merganser_hadoop_node::hdfs::server::{MAP_BYTES_MIN, memory_bytes_min as maps_memory_min};
use merganser_serve::session::GuestLimits;
use merganser_shell::config::threads;
use merganser_shell::failure::Failure;

use super::guest;
use crate::args::ServeArgs;

/// The least memory: enough for one merge of 64 spills.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// Where a node listens by default.
const LISTEN: &str = "127.0.0.1:7443";

/// The least memory of a node: runs and streams of a few sessions.
const NODE_BYTES_MIN: u64 = 16 << 20;

/// Fuel for each byte of a map task's input, unless the operator gives another number: eight times what the most hungry
/// guest took that was measured, and about a second for a MiB. Each chunk has 200,000,000 units in addition. A guest that
/// loops without an end fails at its first chunk; one that is slow within its fuel holds its place for about 3 minutes
/// per 128 MiB in chunks of 512 KiB.
const JOB_FUEL_PER_BYTE: u64 = 1000;

/// The services of `merganser serve`, in one process.
#[derive(Debug)]
pub struct ServeConfig {
    /// The merges for Hadoop.
    pub shuffle: Option<ShuffleConfig>,
    /// The map tasks of Hadoop.
    pub hdfs: Option<HdfsConfig>,
    /// The node.
    pub node: Option<NodeConfig>,
    /// Calls through files.
    pub calls: Option<CallsConfig>,
}

/// The folders and limits of `merganser serve --log-folder`.
#[derive(Debug)]
pub struct CallsConfig {
    /// The folder of the calls.
    pub folder: PathBuf,
    /// The folder of the data, as an absolute path.
    pub data: PathBuf,
    /// The folder of SSDlets.
    pub ssdlets: Option<PathBuf>,
    /// What a guest of that folder may use.
    pub guest_limits: GuestLimits,
    /// Where spills go.
    pub temp_dir: PathBuf,
    /// The memory budget of a call; they are served one after another.
    pub memory_bytes: u64,
    /// Threads of a call.
    pub threads: usize,
    /// Whether inotify tells of calls.
    pub inotify: bool,
}

/// The folders and limits of `merganser serve --shuffle`.
#[derive(Debug)]
pub struct ShuffleConfig {
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

/// The folders and limits of `merganser serve --hdfs`.
#[derive(Debug)]
pub struct HdfsConfig {
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

/// The data and limits of `merganser serve --data`.
#[derive(Debug)]
pub struct NodeConfig {
    /// The folder of the data, as an absolute path.
    pub data: PathBuf,
    /// `HOST:PORT`.
    pub listen: String,
    /// The file of the token.
    pub token_file: Option<PathBuf>,
    /// The files of the certificate and its key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether others may come without token and TLS.
    pub insecure: bool,
    /// The folder of SSDlets.
    pub ssdlets: Option<PathBuf>,
    /// Whether clients may add to it.
    pub allow_upload: bool,
    /// What each of them may use at most.
    pub guest_limits: GuestLimits,
    /// Sessions at once.
    pub sessions_max: usize,
    /// How long one may be idle.
    pub idle: Duration,
    /// Bytes that one may keep on disk.
    pub scratch_bytes: u64,
    /// Where.
    pub temp_dir: PathBuf,
    /// The memory budget of all sessions together.
    pub memory_bytes: u64,
    /// Threads of all runs together.
    pub threads: usize,
}

impl TryFrom<ServeArgs> for ServeConfig {
    type Error = Failure;

    fn try_from(typed: ServeArgs) -> Result<Self, Failure> {
        let listens =
            typed.data.is_some() && (typed.log_folder.is_none() || typed.listen.is_some());
        let has_guests = typed.ssdlets.is_some() || typed.job_ssdlets;
        if let (false, Some(flag)) = (has_guests, guest::flag(&typed.guest)) {
            return Err(format!(
                "{flag}: only with --ssdlets or --job-ssdlets, whose guests it limits"
            )
            .into());
        }
        if let (false, Some(flag)) = (listens, of_listeners(&typed)) {
            return Err(format!("{flag}: only with --listen; nothing listens without it").into());
        }
        let parts =
            [typed.shuffle.is_some(), typed.hdfs.is_some(), typed.log_folder.is_some(), listens];
        let parts = parts.iter().filter(|part| **part).count().max(1) as u64;
        let memory_bytes = typed.memory.0 / parts;
        let calls = calls(&typed, memory_bytes)?;
        let node = if listens { node(&typed, memory_bytes)? } else { None };
        let hdfs = hdfs(&typed, memory_bytes, parts)?;
        let shuffle = shuffle(&typed, memory_bytes)?;
        Ok(ServeConfig { shuffle, hdfs, node, calls })
    }
}

/// The first option that was typed of those that protect or open a port.
fn of_listeners(typed: &ServeArgs) -> Option<&'static str> {
    let options = [
        (typed.token_file.is_some(), "--token-file"),
        (typed.tls_cert.is_some(), "--tls-cert"),
        (typed.insecure, "--insecure"),
        (typed.allow_upload, "--allow-upload"),
    ];
    options.iter().find(|(is_typed, _)| *is_typed).map(|(_, option)| *option)
}

/// The refusal of less memory than [`NODE_BYTES_MIN`] for each part.
fn too_little(part: &str, others: &str) -> Failure {
    format!("--memory: at least 16M for {part}, and as much for each of {others}").into()
}

fn calls(typed: &ServeArgs, memory_bytes: u64) -> Result<Option<CallsConfig>, Failure> {
    let (Some(folder), Some(data)) = (&typed.log_folder, &typed.data) else { return Ok(None) };
    if memory_bytes < NODE_BYTES_MIN {
        return Err(too_little("--log-folder", "--listen, --shuffle and --hdfs"));
    }
    let absolute = |dir: &PathBuf| std::path::absolute(dir).map_err(|e| Failure::on(dir, &e));
    Ok(Some(CallsConfig {
        folder: absolute(folder)?,
        data: absolute(data)?,
        ssdlets: typed.ssdlets.clone(),
        guest_limits: guest::limits(&typed.guest)?,
        temp_dir: temp_dir(typed),
        memory_bytes,
        threads: threads(typed.threads)?,
        inotify: !typed.poll,
    }))
}

fn temp_dir(typed: &ServeArgs) -> PathBuf {
    typed.temp_dir.clone().unwrap_or_else(|| {
        let set = std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty());
        set.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
    })
}

fn socket_mode(typed: &ServeArgs) -> Result<u32, Failure> {
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

fn shuffle(typed: &ServeArgs, memory_bytes: u64) -> Result<Option<ShuffleConfig>, Failure> {
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
fn hdfs(typed: &ServeArgs, memory_bytes: u64, parts: u64) -> Result<Option<HdfsConfig>, Failure> {
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
    let limits = guest::limits(&typed.guest)?;
    let job_ssdlets = typed.job_ssdlets.then_some(GuestLimits {
        fuel_per_byte: Some(limits.fuel_per_byte.unwrap_or(JOB_FUEL_PER_BYTE)),
        ..limits
    });
    Ok(Some(HdfsConfig { socket, socket_mode, data_dirs, memory_bytes, maps, job_ssdlets }))
}

fn node(typed: &ServeArgs, memory_bytes: u64) -> Result<Option<NodeConfig>, Failure> {
    let Some(data) = &typed.data else { return Ok(None) };
    if memory_bytes < NODE_BYTES_MIN {
        return Err(too_little("--data", "--shuffle, --hdfs and --log-folder"));
    }
    let sessions_max = match usize::try_from(typed.sessions.0) {
        Ok(sessions @ 1..=10_000) => sessions,
        _ => return Err("--sessions: 1 to 10000".to_owned().into()),
    };
    if typed.idle.0 == 0 {
        return Err("--idle: at least 1 second".to_owned().into());
    }
    // One thread more than processors: no session gets all, so a single one still uses every processor.
    let threads = typed.threads.map_or_else(|| Ok(threads(None)? + 1), |n| threads(Some(n)))?;
    Ok(Some(NodeConfig {
        data: std::path::absolute(data).map_err(|e| Failure::on(data, &e))?,
        listen: typed.listen.clone().unwrap_or_else(|| LISTEN.to_owned()),
        token_file: typed.token_file.clone(),
        tls: typed.tls_cert.clone().zip(typed.tls_key.clone()),
        insecure: typed.insecure,
        ssdlets: typed.ssdlets.clone(),
        allow_upload: typed.allow_upload,
        guest_limits: guest::limits(&typed.guest)?,
        sessions_max,
        idle: Duration::from_secs(typed.idle.0),
        scratch_bytes: typed.scratch.0,
        temp_dir: temp_dir(typed),
        memory_bytes,
        threads,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, refusal};
    use super::*;
    use crate::args::NearCommand;

    fn meant(words: &[&str]) -> ServeConfig {
        let NearCommand::Serve(typed) = config(words) else { unreachable!() };
        ServeConfig::try_from(typed).unwrap_or_else(|failure| panic!("{:?}", failure.sentence()))
    }

    #[test]
    fn a_node_has_defaults_and_bounds() {
        let node = meant(&["serve", "--data", "/d"]).node.expect("asked for");
        assert_eq!((node.listen.as_str(), node.sessions_max), ("127.0.0.1:7443", 64));
        assert_eq!((node.idle, node.memory_bytes), (Duration::from_secs(600), 256 << 20));
        assert!(node.threads >= 2 && node.tls.is_none() && !node.allow_upload);
        let guests = meant(&["serve", "--data", "/d", "--ssdlets", "/s", "--fuel-per-byte", "5"]);
        assert_eq!(guests.node.expect("asked for").guest_limits.fuel_per_byte, Some(5));
        let both = meant(&["serve", "--data", "/d", "--shuffle", "s", "--local-dir", "/e"]);
        assert_eq!(both.node.expect("asked for").memory_bytes, 128 << 20);
        assert_eq!(both.shuffle.expect("asked for").memory_bytes, 128 << 20);
        for (more, told) in [
            (["--memory", "10M"], "--memory: at least 16M"),
            (["--sessions", "0"], "--sessions: 1 to 10000"),
            (["--idle", "0"], "--idle: at least 1 second"),
            (["--threads", "0"], "--threads: at least 1"),
            (["--fuel-per-byte", "5"], "--fuel-per-byte: only with --ssdlets or --job-ssdlets"),
        ] {
            let sentence = refusal(&[&["serve", "--data", "/d"][..], &more].concat());
            assert!(sentence.starts_with(told), "{sentence}");
        }
    }

    /// A node that answers through files listens only if `--listen` is given, and all parts share the memory.
    #[test]
    fn calls_through_files_need_no_port() {
        let files = meant(&["serve", "--data", "/d", "--log-folder", "/l", "--poll"]);
        let calls = files.calls.expect("asked for");
        assert_eq!((calls.folder, calls.data), ("/l".into(), "/d".into()));
        assert!(files.node.is_none() && !calls.inotify && calls.memory_bytes == 256 << 20);
        let both = &["serve", "--data", "/d", "--log-folder", "/l", "--listen", "127.0.0.1:0"];
        let all = meant(&[&both[..], &["--shuffle", "s", "--local-dir", "/e"]].concat());
        let each = (256 << 20) / 3;
        assert_eq!(all.calls.expect("asked for").memory_bytes, each);
        assert_eq!(all.node.expect("asked for").memory_bytes, each);
        assert_eq!(all.shuffle.expect("asked for").memory_bytes, each);
        for (more, told) in [
            (&["--token-file", "/t"][..], "--token-file: only with --listen"),
            (&["--tls-cert", "/c", "--tls-key", "/k"], "--tls-cert: only with --listen"),
            (&["--insecure"], "--insecure: only with --listen"),
            (&["--ssdlets", "/s", "--allow-upload"], "--allow-upload: only with --listen"),
            (&["--fuel-per-byte", "5"], "--fuel-per-byte: only with --ssdlets"),
        ] {
            let files = &["serve", "--data", "/d", "--log-folder", "/l"];
            let sentence = refusal(&[&files[..], more].concat());
            assert!(sentence.starts_with(told), "{sentence}");
        }
        let less = refusal(&["serve", "--data", "/d", "--log-folder", "/l", "--memory", "1M"]);
        assert!(less.starts_with("--memory: at least 16M for --log-folder"), "{less}");
    }

    #[test]
    fn map_tasks_have_defaults_and_bounds() {
        let with = |more: &[&'static str]| {
            [&["serve", "--hdfs", "s", "--hdfs-data-dir", "/d"][..], more].concat()
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
        let node = refusal(&with(&["--data", "/d", "--memory", "20M"]));
        assert!(node.ends_with("as much for each of --shuffle, --hdfs and --log-folder"), "{node}");
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
            [&["serve", "--shuffle", "s", "--local-dir", "/d"][..], more].concat()
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
