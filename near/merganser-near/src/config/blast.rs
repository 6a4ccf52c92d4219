//! The settings of `merganser blast`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use merganser_pipeline::Partitions;
use merganser_pipeline::blast::options::BlastSearch;
use merganser_shell::apart::{Precious, refuse_overwriting};
use merganser_shell::args::TypedSize;
use merganser_shell::config::report::report_file;
use merganser_shell::config::{ReportForm, memory_bytes, threads};
use merganser_shell::failure::Failure;
use merganser_shell::input::{Input, is_same_file};

use super::pipeline::{partitions, time_limit};
use crate::args::BlastArgs;

/// Tries after the first one, unless others are asked for.
const RETRIES: u32 = 1;
/// The share of the memory that all partitions in work may have, one half: a formatted partition of proteins has 1.2
/// times its bytes, and a search needs memory of its own.
const PARTITION_SHARE: u64 = 2;
/// Smaller partitions cost more time than they save memory.
const PARTITION_BYTES_MIN: u64 = 1 << 20;

/// The name of a formatted partition.
pub(crate) const VOLUME: &str = "volume";

/// A search over partitions.
#[derive(Debug)]
pub(crate) struct BlastConfig {
    /// The search.
    pub search: BlastSearch,
    /// The queries' absolute path.
    pub query: PathBuf,
    /// The output.
    pub output: PathBuf,
    /// The files of the database, in order.
    pub inputs: Vec<Input>,
    /// The name of the database.
    pub name: String,
    /// How it is divided.
    pub partitions: Partitions,
    /// Bytes of a partition, at most, if their number is not given.
    pub partition_bytes_max: u64,
    /// Threads of the pool.
    pub jobs: usize,
    /// Bytes of temporary files, at most.
    pub temp_limit_bytes: Option<u64>,
    /// Tries after the first one.
    pub retries: u32,
    /// The longest time of a try.
    pub time_limit: Option<Duration>,
    /// Memory for decompressors.
    pub memory_bytes: u64,
    /// The report's file, and its kind.
    pub report: Option<(PathBuf, ReportForm)>,
    /// No progress.
    pub quiet: bool,
}

impl BlastConfig {
    /// The queries' path, which is UTF-8 because it was typed as text.
    pub(crate) fn query_text(&self) -> String {
        self.query.to_string_lossy().into_owned()
    }
}

impl TryFrom<BlastArgs> for BlastConfig {
    type Error = Failure;

    fn try_from(typed: BlastArgs) -> Result<Self, Failure> {
        let Some((program, words)) = typed.words.split_first() else {
            return Err("a command of BLAST+ is missing, such as blastn -query q.fa ..."
                .to_owned()
                .into());
        };
        let search = BlastSearch::parse(&program.to_string_lossy(), words);
        let search = search.map_err(|error| error.to_string())?;
        let output = search.out.clone().ok_or_else(|| {
            "-out FILE is missing: a search over partitions writes to a file".to_owned()
        })?;
        let query = std::path::absolute(&search.query)
            .map_err(|error| Failure::on(&search.query, &error))?;
        if query.to_str().is_none() {
            return Err("-query: the name of its folder is not UTF-8, which is needed here"
                .to_owned()
                .into());
        }
        if is_same_file(&query, &output) {
            return Err("-query, -out: both name the same file".to_owned().into());
        }
        let files = files_of(&search.database)?;
        for path in &files {
            let found = fs::metadata(path).map_err(|error| Failure::on(path, &error))?;
            if !found.is_file() {
                return Err(format!(
                    "{}: is no regular file, and the database is read several times",
                    merganser_shell::shown::name(path)
                )
                .into());
            }
            if is_same_file(path, &output) {
                return Err("-db, -out: both name the same file".to_owned().into());
            }
        }
        let name = typed.name.unwrap_or_else(|| name_of(&files[0]));
        if !merganser_pipeline::is_stage_name(&name) || name == VOLUME {
            return Err(format!(
                "--name: '{name}' can't be a database's name: up to 32 letters, digits, '-' and '_', other than '{VOLUME}'"
            )
            .into());
        }
        let report = report_file(typed.report)?;
        if let Some((report, _)) = &report {
            // The database and the output are looked at with the pipeline's.
            refuse_overwriting("--report", report, [Precious::Input(&query)])?;
        }
        let jobs = match typed.jobs {
            Some(0) => return Err("--jobs: at least 1".to_owned().into()),
            jobs => threads(jobs)?,
        };
        let memory_bytes = memory_bytes(typed.memory)?;
        Ok(BlastConfig {
            query,
            output,
            inputs: files.into_iter().map(Input::File).collect(),
            name,
            partitions: typed.partitions.map_or(Partitions::Auto, partitions),
            partition_bytes_max: (memory_bytes / PARTITION_SHARE / jobs as u64)
                .max(PARTITION_BYTES_MIN),
            jobs,
            temp_limit_bytes: typed.temp_limit.map(|TypedSize(bytes)| bytes),
            retries: typed.retries.unwrap_or(RETRIES),
            time_limit: typed.time_limit.map(time_limit).transpose()?,
            memory_bytes,
            report,
            quiet: typed.quiet,
            search,
        })
    }
}

/// The files that words name; `*` and `?` in the last part of a path stand for any text and any byte.
fn files_of(words: &[OsString]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for word in words {
        let path = Path::new(word);
        let pattern = path.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        if path.exists() || !pattern.iter().any(|byte| b"*?".contains(byte)) {
            files.push(path.to_owned());
            continue;
        }
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let entries = fs::read_dir(folder.unwrap_or(Path::new(".")));
        let entries = entries.map_err(|error| Failure::on(path, &error))?;
        let mut found: Vec<_> = entries
            .flatten()
            .filter(|entry| {
                let name = entry.file_name();
                let hidden = name.as_bytes().starts_with(b".") && !pattern.starts_with(b".");
                !hidden && fits(pattern, name.as_bytes())
            })
            .map(|entry| {
                folder.map_or_else(
                    || entry.file_name().into(),
                    |folder| folder.join(entry.file_name()),
                )
            })
            .collect();
        if found.is_empty() {
            return Err(format!("-db: no file fits {}", merganser_shell::shown::name(path)).into());
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

/// Whether `name` fits the pattern.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    // Where the last star was, and how much of the name it stands for.
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, n) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// The name of a file without its suffixes, as far as a database can have it.
fn name_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or("db");
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = stem.chars().map(|c| if plain(c) { c } else { '_' }).take(32).collect();
    if name.is_empty() || name == VOLUME { "db".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_a_shells_do() {
        for (pattern, name, expected) in [
            ("*.fa", "a.fa", true),
            ("*.fa", "a.fa.gz", false),
            ("*.fa*", "a.fa.gz", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("", "a", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("a*b*c", "abbbc", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_database_is_called_after_its_first_file() {
        for (path, name) in [
            ("db/genomes.fa.gz", "genomes"),
            ("a b.fa", "a_b"),
            (".hidden.fa", "hidden"),
            ("-", "-"),
            ("volume.fa", "db"),
        ] {
            assert_eq!(name_of(Path::new(path)), name);
        }
    }
}
