//! The settings of `merganser serve`.

use std::path::PathBuf;

use super::threads;
use crate::args::ServeArgs;
use crate::failure::Failure;

/// The least memory: enough for one merge of 64 spills.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// The folders and limits of `merganser serve`.
#[derive(Debug)]
pub struct ServeConfig {
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

impl TryFrom<ServeArgs> for ServeConfig {
    type Error = Failure;

    fn try_from(typed: ServeArgs) -> Result<Self, Failure> {
        let mode = u32::from_str_radix(&typed.socket_mode, 8).ok().filter(|mode| *mode <= 0o777);
        let socket_mode = mode.ok_or_else(|| {
            let typed = &typed.socket_mode;
            format!("--socket-mode: '{typed}' is no mode of a file; 600 is its user's, 660 its group's too")
        })?;
        if typed.memory.0 < MEMORY_BYTES_MIN {
            return Err("--memory: at least 1M".to_owned().into());
        }
        let merges = match typed.merges {
            Some(0) => return Err("--merges: at least 1".to_owned().into()),
            Some(merges) => merges,
            None => 2 * threads(None)? as u32,
        };
        let mut local_dirs = Vec::new();
        for dir in typed.local_dirs {
            local_dirs.push(std::path::absolute(&dir).map_err(|e| Failure::on(&dir, &e))?);
        }
        Ok(ServeConfig {
            socket: typed.shuffle,
            socket_mode,
            local_dirs,
            memory_bytes: typed.memory.0,
            merges,
            keep_cache: typed.keep_cache,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, refusal};
    use super::*;
    use crate::args::Command;

    #[test]
    fn numbers_have_defaults_and_bounds() {
        let with = |more: &[&'static str]| {
            [&["serve", "--shuffle", "s", "--local-dir", "/d"][..], more].concat()
        };
        let Command::Serve(typed) = config(&with(&["--local-dir", "/e"])) else { unreachable!() };
        let meant = ServeConfig::try_from(typed)
            .unwrap_or_else(|failure| panic!("{:?}", failure.sentence()));
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
