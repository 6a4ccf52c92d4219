//! Opens spills, and nothing else: regular files below the folders that were named, whatever a client
//! asks for and whatever links are there ([`beneath`]). YARN makes no links.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::error::SpillRefusal;
use merganser_server::beneath;

/// Folders, below which files may be opened.
#[derive(Debug, Clone)]
pub(super) struct LocalDirs(Vec<PathBuf>);

impl LocalDirs {
    /// Those at `dirs`, absolute paths. They are looked up at each file, so they may be made later, or
    /// mounted again.
    pub(super) fn new(dirs: Vec<PathBuf>) -> Self {
        LocalDirs(dirs)
    }

    /// Opens the file at `path` for reading.
    ///
    /// # Errors
    /// Of kind `PermissionDenied` when it lies elsewhere, a link is on the way to it, or it is no
    /// regular file; any other as the system says.
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        if !path.is_absolute() || !path.components().all(plain) {
            return Err(SpillRefusal::Path.into());
        }
        let (dir, below) = self.place(path).ok_or(SpillRefusal::Outside)?;
        beneath::open_file(&dir, &below).map_err(refused)
    }

    /// The folder that `path` names a file of, by the folder's own name or by what that leads to, and
    /// the rest of the path.
    fn place(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        let below = |dir: &Path| {
            let rest = path.strip_prefix(dir).ok().filter(|rest| !rest.as_os_str().is_empty());
            rest.map(Path::to_path_buf)
        };
        let by_name = self.0.iter().find_map(|dir| Some((dir.clone(), below(dir)?)));
        by_name.or_else(|| {
            let resolved = self.0.iter().filter_map(|dir| dir.canonicalize().ok());
            resolved.into_iter().find_map(|dir| below(&dir).map(|rest| (dir, rest)))
        })
    }
}

/// The reason of a refusal, in the words for spills.
fn refused(error: io::Error) -> io::Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<beneath::PathRefusal>()) {
        Some(beneath::PathRefusal::Nul) => SpillRefusal::Nul.into(),
        Some(beneath::PathRefusal::Link) => SpillRefusal::Link.into(),
        Some(beneath::PathRefusal::NotRegular) => SpillRefusal::NotRegular.into(),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, Mode};

    use super::*;

    #[test]
    fn only_regular_files_below_the_folders_are_opened() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path().canonicalize().expect("there");
        let (dir, outside) = (root.join("local"), root.join("secret"));
        fs::create_dir_all(dir.join("app/output")).expect("made");
        fs::write(&outside, "secret").expect("written");
        let spill = dir.join("app/spill_0.out");
        fs::write(&spill, "spill").expect("written");
        symlink(&outside, dir.join("app/absolute")).expect("made");
        symlink("../../secret", dir.join("app/relative")).expect("made");
        symlink(&root, dir.join("out")).expect("made");
        symlink("app/spill_0.out", dir.join("inside")).expect("made");
        symlink("app", dir.join("same")).expect("made");
        symlink(&dir, root.join("alias")).expect("made");
        rustix::fs::mkfifoat(CWD, dir.join("pipe"), Mode::from(0o600)).expect("made");

        let dirs = LocalDirs::new(vec![root.join("missing"), root.join("alias")]);
        dirs.open(&spill).expect("by what the folder's name leads to");
        dirs.open(&root.join("alias/app/spill_0.out")).expect("by the folder's name");
        let told = |path: PathBuf| {
            let error = dirs.open(&path).expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
            error.to_string()
        };
        // Wherever they lead: who may write there could change them between two looks.
        let link = SpillRefusal::Link.to_string();
        let links =
            ["app/absolute", "app/relative", "out/secret", "inside", "same/spill_0.out", "out/a/b"];
        for path in links {
            assert_eq!(told(dir.join(path)), link, "{path}");
        }
        assert!(told(outside.clone()).contains("below none of the folders"));
        assert!(told(root.join("alias")).contains("below none of the folders"));
        assert!(told(dir.join("../secret")).contains("no .."));
        assert!(told("spill_0.out".into()).contains("absolute"));
        assert!(told(dir.join("app")).contains("no regular file"));
        assert!(told(dir.join("pipe")).contains("no regular file"));
        let gone = dirs.open(&dir.join("gone")).expect_err("it is not there");
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }
}
