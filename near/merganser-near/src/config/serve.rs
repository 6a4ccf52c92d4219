//! The settings of `merganser serve`.

use std::path::PathBuf;
use std::time::Duration;

use merganser_serve::session::GuestLimits;
use merganser_shell::config::threads;
use merganser_shell::failure::Failure;

use crate::args::ServeArgs;

/// Where a node listens by default.
const LISTEN: &str = "127.0.0.1:7443";

/// The least memory of a node: runs and streams of a few sessions.
const NODE_BYTES_MIN: u64 = 16 << 20;

/// The services of `merganser serve`, in one process.
#[derive(Debug)]
pub(crate) struct ServeConfig {
    /// The node.
    pub node: Option<NodeConfig>,
    /// Calls through files.
    pub calls: Option<CallsConfig>,
}

/// The folders and limits of `merganser serve --log-folder`.
#[derive(Debug)]
pub(crate) struct CallsConfig {
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

/// The data and limits of `merganser serve --data`.
#[derive(Debug)]
pub(crate) struct NodeConfig {
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
        let listens = typed.log_folder.is_none() || typed.listen.is_some();
        if let (None, Some(flag)) = (&typed.ssdlets, merganser_guests::flag(&typed.guest)) {
            return Err(format!("{flag}: only with --ssdlets, whose guests it limits").into());
        }
        if let (false, Some(flag)) = (listens, of_listeners(&typed)) {
            return Err(format!("{flag}: only with --listen; nothing listens without it").into());
        }
        let parts = u64::from(typed.log_folder.is_some()) + u64::from(listens);
        let memory_bytes = typed.memory.0 / parts;
        let calls = calls(&typed, memory_bytes)?;
        let node = if listens { Some(node(&typed, memory_bytes)?) } else { None };
        Ok(ServeConfig { node, calls })
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
fn too_little(part: &str, other: &str) -> Failure {
    format!("--memory: at least 16M for {part}, and as much for {other}").into()
}

fn calls(typed: &ServeArgs, memory_bytes: u64) -> Result<Option<CallsConfig>, Failure> {
    let Some(folder) = &typed.log_folder else { return Ok(None) };
    if memory_bytes < NODE_BYTES_MIN {
        return Err(too_little("--log-folder", "--listen"));
    }
    let absolute = |dir: &PathBuf| std::path::absolute(dir).map_err(|e| Failure::on(dir, &e));
    Ok(Some(CallsConfig {
        folder: absolute(folder)?,
        data: absolute(&typed.data)?,
        ssdlets: typed.ssdlets.clone(),
        guest_limits: merganser_guests::limits(&typed.guest)?,
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

fn node(typed: &ServeArgs, memory_bytes: u64) -> Result<NodeConfig, Failure> {
    let data = &typed.data;
    if memory_bytes < NODE_BYTES_MIN {
        return Err(too_little("--data", "--log-folder"));
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
    Ok(NodeConfig {
        data: std::path::absolute(data).map_err(|e| Failure::on(data, &e))?,
        listen: typed.listen.clone().unwrap_or_else(|| LISTEN.to_owned()),
        token_file: typed.token_file.clone(),
        tls: typed.tls_cert.clone().zip(typed.tls_key.clone()),
        insecure: typed.insecure,
        ssdlets: typed.ssdlets.clone(),
        allow_upload: typed.allow_upload,
        guest_limits: merganser_guests::limits(&typed.guest)?,
        sessions_max,
        idle: Duration::from_secs(typed.idle.0),
        scratch_bytes: typed.scratch.0,
        temp_dir: temp_dir(typed),
        memory_bytes,
        threads,
    })
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
        for (more, told) in [
            (["--memory", "10M"], "--memory: at least 16M"),
            (["--sessions", "0"], "--sessions: 1 to 10000"),
            (["--idle", "0"], "--idle: at least 1 second"),
            (["--threads", "0"], "--threads: at least 1"),
            (["--fuel-per-byte", "5"], "--fuel-per-byte: only with --ssdlets"),
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
        let all = meant(both);
        let each = 128 << 20;
        assert_eq!(all.calls.expect("asked for").memory_bytes, each);
        assert_eq!(all.node.expect("asked for").memory_bytes, each);
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
}
