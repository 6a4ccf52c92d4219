//! The settings of `merganser export`.

use std::path::PathBuf;

use merganser_export::nbd::REPLY_BYTES_USEFUL;
use merganser_shell::config::{NbdConfig, memory_bytes, threads, view_name};
use merganser_shell::failure::Failure;

use crate::args::ExportArgs;

/// Replies may take this fraction of the memory: 1 / 8.
const REPLIES_SHARE: u64 = 8;

/// The views that `merganser export` serves.
#[derive(Debug)]
pub(crate) struct ExportConfig {
    /// The views, and their names for clients.
    pub views: Vec<(PathBuf, String)>,
    /// Where clients connect.
    pub nbd: NbdConfig,
    /// How many threads read.
    pub threads: usize,
    /// The most bytes of replies that clients have not read yet, beyond one reply per client.
    pub reply_bytes: usize,
    /// The memory budget of each view: an equal share of the memory that replies do not need.
    pub view_memory_bytes: u64,
}

impl TryFrom<ExportArgs> for ExportConfig {
    type Error = Failure;

    fn try_from(typed: ExportArgs) -> Result<Self, Failure> {
        let nbd = NbdConfig::new(&typed.nbd, &typed.protection)?;
        let mut views: Vec<(PathBuf, String)> = Vec::new();
        for view in typed.views {
            // `x.view/.` and `.` have a name, too, once resolved.
            let resolved = view.canonicalize().map_err(|e| Failure::on(&view, &e))?;
            let name = view_name(&resolved);
            if let Some((other, _)) = views.iter().find(|(_, taken)| *taken == name) {
                let (view, other) = (view.display(), other.display());
                let why = format!("{other} and {view} would both be called '{name}'; rename one");
                return Err(why.into());
            }
            views.push((view, name));
        }
        let memory_bytes = memory_bytes(typed.memory)?;
        let reply_bytes = (memory_bytes / REPLIES_SHARE).min(REPLY_BYTES_USEFUL as u64);
        Ok(ExportConfig {
            nbd,
            threads: threads(None)?,
            reply_bytes: reply_bytes as usize,
            view_memory_bytes: (memory_bytes - reply_bytes) / views.len() as u64,
            views,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, refusal};
    use super::*;
    use crate::args::CliCommand;

    #[test]
    fn views_share_the_memory_and_have_names_of_their_own() {
        let dir = tempfile::tempdir().expect("a folder");
        let view = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(&path).expect("made");
            path.to_str().expect("text").to_owned()
        };
        let (a, b, other_a) = (view("a.view"), view("b.view"), view("other/a.view"));
        let words = ["export", &a, &format!("{b}/."), "--nbd", "localhost:0", "-S", "160M"];
        let CliCommand::Export(typed) = config(&words) else { unreachable!() };
        let meant = ExportConfig::try_from(typed)
            .unwrap_or_else(|failure| panic!("{:?}", failure.sentence()));
        let names: Vec<_> = meant.views.iter().map(|(_, name)| &**name).collect();
        assert_eq!((names, meant.view_memory_bytes), (vec!["a", "b"], 70 << 20));
        assert_eq!(meant.reply_bytes, 20 << 20);

        let sentence = refusal(&["export", &a, &other_a, "--nbd", "s"]);
        assert!(sentence.ends_with("would both be called 'a'; rename one"), "{sentence}");
        let sentence = refusal(&["export", &a, "--nbd", "host:port"]);
        assert!(sentence.starts_with("--nbd: 'port' is no port"), "{sentence}");
        let sentence = refusal(&["export", "/missing.view", "--nbd", "s"]);
        assert_eq!(sentence, "/missing.view: No such file or directory");
    }
}
