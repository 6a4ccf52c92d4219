//! The settings of the commands on a view.

use std::ffi::OsStr;
use std::path::PathBuf;

use merganser_shell::args::{RowForm, TypedRange};
use merganser_shell::config::{ReportConfig, memory_bytes, progress_form, threads, view_name};
use merganser_shell::failure::Failure;
use merganser_shell::progress::ProgressForm;
use merganser_sort::view::unescape_key;

use crate::args::{CatArgs, InfoArgs, MaterializeArgs, MountArgs};

/// The part of a view that `merganser cat` prints.
#[derive(Debug)]
pub(crate) struct CatConfig {
    /// The view.
    pub view: PathBuf,
    /// Which part of it.
    pub part: CatPart,
    /// The most records of that part.
    pub head: Option<u64>,
    /// The form of a map's rows, if one was asked for.
    pub form: Option<RowForm>,
    /// The memory budget.
    pub memory_bytes: u64,
    /// How many threads.
    pub threads: usize,
}

/// A part of a view.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CatPart {
    /// Records by number.
    Records(TypedRange),
    /// Bytes, wherever records begin.
    Bytes(TypedRange),
    /// Records whose key is not below the first and below the second.
    Keys(Option<Vec<u8>>, Option<Vec<u8>>),
}

impl TryFrom<CatArgs> for CatConfig {
    type Error = Failure;

    fn try_from(typed: CatArgs) -> Result<Self, Failure> {
        let key = |flag, key: &Option<_>| key.as_deref().map(|key| unescape(flag, key)).transpose();
        let part = match (typed.records, typed.bytes) {
            (Some(records), _) => CatPart::Records(records),
            (None, Some(bytes)) => CatPart::Bytes(bytes),
            (None, None) => {
                CatPart::Keys(key("--from-key", &typed.from_key)?, key("--to-key", &typed.to_key)?)
            }
        };
        Ok(CatConfig {
            view: typed.view,
            part,
            head: typed.head.map(|count| count.0),
            form: typed.output_format,
            memory_bytes: memory_bytes(typed.memory)?,
            threads: threads(typed.threads)?,
        })
    }
}

/// The copy that `merganser materialize` makes.
#[derive(Debug)]
pub(crate) struct MaterializeConfig {
    /// The view.
    pub view: PathBuf,
    /// Where to.
    pub output: PathBuf,
    /// The form of a map's rows, if one was asked for.
    pub form: Option<RowForm>,
    /// Whether the view's space is given back.
    pub consume: bool,
    /// The memory budget.
    pub memory_bytes: u64,
    /// How many threads.
    pub threads: usize,
    /// The report to write, if any.
    pub report: Option<ReportConfig>,
    /// How progress is shown.
    pub progress: ProgressForm,
}

impl TryFrom<MaterializeArgs> for MaterializeConfig {
    type Error = Failure;

    fn try_from(typed: MaterializeArgs) -> Result<Self, Failure> {
        Ok(MaterializeConfig {
            view: typed.view,
            output: typed.output,
            form: typed.output_format,
            consume: typed.consume,
            memory_bytes: memory_bytes(typed.memory)?,
            threads: threads(typed.threads)?,
            report: ReportConfig::new(typed.report)?,
            progress: progress_form(typed.progress),
        })
    }
}

/// The file that `merganser mount` shows.
#[derive(Debug)]
pub(crate) struct MountConfig {
    /// The view.
    pub view: PathBuf,
    /// Where.
    pub mountpoint: PathBuf,
    /// The file's name: the view's without `.view`.
    pub file_name: String,
    /// How many threads read.
    pub threads: usize,
    /// Whether other users may read it.
    pub allow_other: bool,
    /// The memory budget.
    pub memory_bytes: u64,
}

impl TryFrom<MountArgs> for MountConfig {
    type Error = Failure;

    fn try_from(typed: MountArgs) -> Result<Self, Failure> {
        // `x.view/.` and `.` have a name, too, once resolved.
        let resolved = typed.view.canonicalize().map_err(|e| Failure::on(&typed.view, &e))?;
        Ok(MountConfig {
            view: typed.view,
            mountpoint: typed.mountpoint,
            file_name: view_name(&resolved),
            threads: threads(None)?,
            allow_other: typed.allow_other,
            memory_bytes: memory_bytes(typed.memory)?,
        })
    }
}

/// The view or run file that `merganser info` describes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InfoConfig {
    /// The view or the run file.
    pub path: PathBuf,
    /// Whether it is the folder of a view.
    pub is_view: bool,
    /// Whether every checksum is compared.
    pub verify: bool,
    /// Whether the facts are printed as JSON.
    pub json: bool,
    /// The memory budget.
    pub memory_bytes: u64,
}

impl TryFrom<InfoArgs> for InfoConfig {
    type Error = Failure;

    fn try_from(typed: InfoArgs) -> Result<Self, Failure> {
        let is_view = typed.path.is_dir();
        if !is_view && typed.path.extension().is_some_and(|extension| extension == "buckets") {
            let path = typed.path.display();
            return Err(format!(
                "{path}: holds buckets of a view, which say nothing alone; name the view's folder"
            )
            .into());
        }
        Ok(InfoConfig {
            path: typed.path,
            is_view,
            verify: typed.verify,
            json: typed.json,
            memory_bytes: memory_bytes(None)?,
        })
    }
}

/// The bytes of a typed key.
fn unescape(flag: &str, typed: &OsStr) -> Result<Vec<u8>, Failure> {
    let say =
        || format!("{flag} '{}': after \\ comes xHH, t, n, r, 0 or another \\", typed.display());
    Ok(unescape_key(typed.as_encoded_bytes()).ok_or_else(say)?)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, refusal};
    use super::*;
    use crate::args::CliCommand;

    fn part(words: &[&str]) -> CatPart {
        let CliCommand::Cat(typed) = config(&[&["cat", "v.view"], words].concat()) else {
            unreachable!()
        };
        CatConfig::try_from(typed).unwrap_or_else(|failure| panic!("{:?}", failure.sentence())).part
    }

    #[test]
    fn parts_are_records_bytes_or_keys() {
        assert_eq!(part(&[]), CatPart::Keys(None, None));
        assert_eq!(
            part(&["--records", "1K.."]),
            CatPart::Records(TypedRange { start: 1000, end: None })
        );
        assert_eq!(
            part(&["--bytes", "..1K"]),
            CatPart::Bytes(TypedRange { start: 0, end: Some(1024) })
        );
        let keys = CatPart::Keys(Some(b"a\x00\xff\\".to_vec()), Some(b"\t\n\r".to_vec()));
        assert_eq!(part(&["--from-key", r"a\0\xfF\\", "--to-key", r"\t\n\r"]), keys);
    }

    #[test]
    fn keys_that_cannot_be_read_are_named() {
        for key in [r"\", r"\q", r"\x", r"\x1", r"\xg0"] {
            let sentence = refusal(&["cat", "v.view", "--to-key", key]);
            assert!(sentence.starts_with(&format!("--to-key '{key}': after")), "{sentence}");
        }
    }

    #[test]
    fn info_is_about_a_view_or_a_run() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().to_str().expect("text");
        let meant = |words: &[&str]| {
            let CliCommand::Info(typed) = config(&[&["info"], words].concat()) else {
                unreachable!()
            };
            InfoConfig::try_from(typed).unwrap_or_else(|failure| panic!("{:?}", failure.sentence()))
        };
        let view = meant(&[path, "--verify"]);
        assert_eq!((view.is_view, view.verify, view.json), (true, true, false));
        assert!(view.memory_bytes > 0);
        let run = meant(&["0.run", "--json"]);
        assert_eq!((run.is_view, run.verify, run.json), (false, false, true));
        let buckets = "a/0.buckets: holds buckets of a view, which say nothing alone; \
                       name the view's folder";
        assert_eq!(refusal(&["info", "a/0.buckets"]), buckets);
    }

    #[test]
    fn a_mounted_file_has_the_views_name() {
        let dir = tempfile::tempdir().expect("a folder");
        let view = dir.path().join("big.view");
        std::fs::create_dir(&view).expect("made");
        let words = ["mount", &format!("{}/.", view.display()), "/mnt"];
        let CliCommand::Mount(typed) = config(&words) else { unreachable!() };
        let meant = MountConfig::try_from(typed)
            .unwrap_or_else(|failure| panic!("{:?}", failure.sentence()));
        assert_eq!(meant.file_name, "big");
        assert_eq!(
            refusal(&["mount", "/missing.view", "/mnt"]),
            "/missing.view: No such file or directory"
        );
    }
}
