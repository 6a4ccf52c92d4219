//! Files that a command writes besides its result, such as reports, must not be its inputs or its result.

use std::path::{Path, PathBuf};

use merganser_storage::file::resolve_output;

use crate::failure::Failure;
use crate::input::{Input, is_same_file};
use crate::shown;

/// A file that must stay as it is.
#[derive(Debug, Clone, Copy)]
pub enum Precious<'a> {
    /// An input: a file, or the folder of a view.
    Input(&'a Path),
    /// The result, which may not be there yet.
    Result(&'a Path),
}

/// The files among the inputs, and the result if it is named.
pub fn precious<'a>(
    inputs: &'a [Input],
    result: Option<&'a Path>,
) -> impl Iterator<Item = Precious<'a>> {
    let files = inputs.iter().filter_map(|input| match input {
        Input::Stdin => None,
        Input::File(path) => Some(Precious::Input(path)),
    });
    files.chain(result.map(Precious::Result))
}

/// Refuses `path`, which `option` names, if writing it would overwrite one of `others`, by whatever name or link, or
/// a file in the folder of one.
///
/// # Errors
/// A sentence that names the option and the file.
pub fn refuse_overwriting<'a>(
    option: &str,
    path: &Path,
    others: impl IntoIterator<Item = Precious<'a>>,
) -> Result<(), Failure> {
    let place = place_of(path);
    for other in others {
        let (precious, what) = match other {
            Precious::Input(path) => (path, "an input"),
            Precious::Result(path) => (path, "the result"),
        };
        let how = if is_same_file(path, precious) || place == place_of(precious) {
            format!("is {what}, and would be overwritten")
        } else if is_within(&place, precious) {
            format!("is inside {}", shown::name(precious))
        } else {
            continue;
        };
        return Err(format!("{option}: {} {how}; name another file", shown::name(path)).into());
    }
    Ok(())
}

/// The absolute name without links of what is there, or would be made; as it is given where that can't be told.
fn place_of(path: &Path) -> PathBuf {
    resolve_output(path).map_or_else(|_| path.to_owned(), |resolved| resolved.path())
}

fn is_within(place: &Path, folder: &Path) -> bool {
    folder.is_dir() && folder.canonicalize().is_ok_and(|folder| place.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// The sentence for `path`, where `in` is an input, `view` is one too, and `out`, which is not there, is the result.
    fn said(path: &str) -> Option<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("in"), "kept").expect("written");
        fs::create_dir_all(at("view/runs")).expect("made");
        fs::hard_link(at("in"), at("hard")).expect("linked");
        symlink("in", at("soft")).expect("linked");
        symlink("out", at("dangling")).expect("linked");
        symlink("view", at("folder")).expect("linked");
        let (input, view, result) = (at("in"), at("view"), at("out"));
        let others = [Precious::Input(&input), Precious::Input(&view), Precious::Result(&result)];
        let Err(Failure::Error(why)) = refuse_overwriting("--report", &at(path), others) else {
            return None;
        };
        assert_eq!(fs::read(at("in")).expect("read"), b"kept");
        assert!(!at("out").exists());
        let prefix = format!("{}/", folder.path().display());
        Some(why.replace(&prefix, ""))
    }

    #[test]
    fn every_name_of_an_input_or_the_result_is_refused() {
        let names = [
            ("is an input, and would be overwritten", ["in", "hard", "soft", "view/../in"]),
            // It is known before it is there.
            (
                "is the result, and would be overwritten",
                ["out", "./out", "dangling", "view/../out"],
            ),
            ("is inside view", ["view/new", "view/runs/new", "folder/new", "view/../view/new"]),
        ];
        for (why, names) in names {
            for name in names {
                let expected = format!("--report: {name} {why}; name another file");
                assert_eq!(said(name), Some(expected), "{name}");
            }
        }
    }

    #[test]
    fn other_files_are_taken() {
        for name in ["report", "in.json", "viewed", "nowhere/report"] {
            assert_eq!(said(name), None, "{name}");
        }
    }
}
