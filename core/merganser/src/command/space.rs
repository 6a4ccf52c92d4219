//! The space that a sort takes, compared with what its disks have free before anything is written.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use merganser_results::output::{ResultOutput, codec_by_name};
use merganser_shell::args::TypedSize;
use merganser_shell::config::Destination;
use merganser_shell::failure::Failure;
use merganser_shell::shown;
use merganser_shell::space::{FreeSpace, folder_of};
use merganser_sort::run::SortInput;
use merganser_sort::{SortOptions, space_needed};

use crate::config::SortChoices;

/// The part of what is needed that may be missing without a refusal: what is free changes all the time, and the header
/// rows of all inputs but the first are not written.
const SLACK_PART: u64 = 100;
/// The same in bytes.
const SLACK_BYTES: u64 = 1 << 20;

/// What a sort writes to one or more folders.
struct PlaceNeed {
    /// Its kind of files, in the plural.
    what: &'static str,
    folders: Vec<PathBuf>,
    bytes: u64,
    free: FreeSpace,
    remedy: &'static str,
}

impl PlaceNeed {
    /// Whether it certainly can't be written.
    fn is_short(&self) -> bool {
        let slack = self.bytes / SLACK_PART + SLACK_BYTES;
        self.free.is_exact && self.bytes > self.free.bytes.saturating_add(slack)
    }

    /// Whether all of it is on this device.
    fn is_on(&self, device: u64) -> bool {
        let mut spaces = self.folders.iter().map(|folder| FreeSpace::of_place(folder));
        spaces.all(|space| space.is_some_and(|space| space.device == device))
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.folders.iter().map(|folder| shown::name(folder)).collect();
        names.join(", ")
    }
}

/// Refuses a sort whose disks certainly have too little room.
///
/// # Errors
/// Such a sort.
pub(super) fn check(
    inputs: &[SortInput],
    sorting: &SortChoices,
    options: &SortOptions,
) -> Result<(), Failure> {
    if sorting.force || !may_be_short(inputs, sorting) {
        return Ok(());
    }
    let needs = needs(inputs, sorting, options);
    let Some(need) = needs.iter().find(|need| need.is_short()) else { return Ok(()) };
    Err(format!(
        "{}: {} need at least {}, and {} free; {}, or try it all the same with --force",
        need.names(),
        need.what,
        TypedSize(need.bytes).at_least(),
        match need.free.bytes {
            0 => "nothing is".to_owned(),
            bytes => format!("{} are", TypedSize(bytes).shown()),
        },
        need.remedy
    )
    .into())
}

/// Lines of a plan that say what is needed and what is free.
pub(super) fn lines(inputs: &[SortInput], sorting: &SortChoices, options: &SortOptions) -> String {
    let mut lines = String::new();
    for need in needs(inputs, sorting, options) {
        let short = match need.is_short() {
            true if sorting.force => "; too little, and tried all the same",
            true => "; too little, and refused without --force",
            false => "",
        };
        let bytes = TypedSize(need.bytes).at_least();
        let free = TypedSize(need.free.bytes).shown();
        let (what, names) = (need.what, need.names());
        writeln!(lines, "space           {what} in {names}: {bytes} needed, {free} free{short}")
            .expect("memory takes it");
    }
    lines
}

/// Whether some place has less room than temporary files and result, which are as large as the inputs. If not, nothing
/// needs to be looked at closely.
fn may_be_short(inputs: &[SortInput], sorting: &SortChoices) -> bool {
    let size: Option<u64> = inputs.iter().map(SortInput::size).sum();
    let Some(bytes) = size else { return false };
    let runs = FreeSpace::together(sorting.temp_dirs.iter().map(PathBuf::as_path));
    let result =
        result_folder(&sorting.destination).and_then(|folder| FreeSpace::of_place(&folder));
    [runs, result]
        .into_iter()
        .flatten()
        .any(|free| free.is_exact && bytes.saturating_mul(2) > free.bytes)
}

/// The needs of a sort, where they and the free space are known. A fault of the inputs or of the memory is the sort's own.
fn needs(inputs: &[SortInput], sorting: &SortChoices, options: &SortOptions) -> Vec<PlaceNeed> {
    if sorting.consume {
        return Vec::new();
    }
    let to_view = matches!(sorting.destination, Destination::View(_));
    let Ok(Some(needed)) = space_needed(inputs, to_view, options) else { return Vec::new() };
    let has_runs = needed.runs_bytes > 0 && !sorting.merge;
    let runs = has_runs.then(|| of_runs(needed.runs_bytes, sorting)).flatten();
    let result = of_result(needed.result_bytes, sorting);
    match (runs, result) {
        (Some(runs), Some(result)) if runs.is_on(result.free.device) => {
            let mut folders = runs.folders;
            for folder in result.folders {
                if !folders.contains(&folder) {
                    folders.push(folder);
                }
            }
            let what = "temporary files and the result";
            let remedy = "name another disk with --temp-dir, write less with --compress auto, or make a --view";
            vec![PlaceNeed { what, folders, bytes: needed.both_bytes, free: result.free, remedy }]
        }
        (runs, result) => runs.into_iter().chain(result).collect(),
    }
}

fn of_runs(bytes: u64, sorting: &SortChoices) -> Option<PlaceNeed> {
    Some(PlaceNeed {
        what: "temporary files",
        free: FreeSpace::together(sorting.temp_dirs.iter().map(PathBuf::as_path))?,
        folders: sorting.temp_dirs.clone(),
        bytes,
        remedy: "name a larger disk with --temp-dir, write less with --compress auto, or make a --view on a larger disk",
    })
}

fn of_result(bytes: u64, sorting: &SortChoices) -> Option<PlaceNeed> {
    let folder = result_folder(&sorting.destination)?;
    let (what, remedy) = match &sorting.destination {
        Destination::View(_) => (
            "the files of the view",
            "write it to a larger disk, write less with --compress auto, or give the space of the inputs back with --consume",
        ),
        _ => (
            "the bytes of the result",
            "write it to a larger disk, compress it with a name that ends in .zst, or give the space of the inputs back with --consume",
        ),
    };
    Some(PlaceNeed {
        what,
        free: FreeSpace::of_place(&folder)?,
        folders: vec![folder],
        bytes,
        remedy,
    })
}

/// The folder in which the result gets all its bytes. An older file of that name keeps its space until the result is whole.
/// `None` for standard output, a device or a pipe, a compressed file, and a name that can't be followed.
fn result_folder(destination: &Destination) -> Option<PathBuf> {
    match destination {
        Destination::Stdout => None,
        Destination::View(path) => Some(folder_of(path).to_owned()),
        Destination::File(path) => {
            let is_plain = matches!(codec_by_name(path), Ok(None));
            let is_file = matches!(ResultOutput::is_special(path), Ok(false));
            (is_plain && is_file).then(|| folder_of(&followed(path)).to_owned())
        }
    }
}

/// The file that a link leads to, or the path itself if it is not a link or leads nowhere.
fn followed(path: &Path) -> PathBuf {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::canonicalize(path).unwrap_or_else(|_| path.into()),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(bytes: u64, free: u64, is_exact: bool) -> PlaceNeed {
        let free = FreeSpace { device: 1, bytes: free, is_exact };
        PlaceNeed { what: "files", folders: vec![".".into()], bytes, free, remedy: "none" }
    }

    #[test]
    fn only_what_certainly_does_not_fit_is_short() {
        assert!(!need(1 << 30, 1 << 30, true).is_short());
        assert!(!need((1 << 30) + SLACK_BYTES, 1 << 30, true).is_short());
        assert!(need(1 << 30, 1 << 29, true).is_short());
        assert!(!need(1 << 30, 1 << 29, false).is_short(), "a figure that is an estimate");
        assert!(!need(u64::MAX, u64::MAX - 1, true).is_short());
    }

    #[test]
    fn only_a_plain_file_and_a_view_have_a_folder() {
        let file = |name: &str| result_folder(&Destination::File(name.into()));
        assert_eq!(file("out.txt").as_deref(), Some(Path::new(".")));
        assert_eq!(file("/tmp/out.txt").as_deref(), Some(Path::new("/tmp")));
        assert_eq!((file("out.zst"), file("/dev/null"), file("/no/such/out")), (None, None, None));
        assert_eq!(result_folder(&Destination::Stdout), None);
        let view = result_folder(&Destination::View("a/b.view".into()));
        assert_eq!(view.as_deref(), Some(Path::new("a")));
    }

    #[test]
    fn the_folder_of_a_link_is_that_of_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("sub/file"), folder.path().join("link"));
        fs::create_dir(folder.path().join("sub")).expect("made");
        fs::write(&file, "").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("made");
        let found = result_folder(&Destination::File(link)).expect("a folder");
        assert_eq!(found.file_name(), Some("sub".as_ref()));
    }
}
