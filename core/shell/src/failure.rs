//! The reasons for which a command fails, their sentences, and the exit status of each.

use std::fmt;
use std::fs::Metadata;
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;

use merganser_results::output::SpecialWriteError;
use merganser_results::pipeline::JournalError;
use merganser_results::stopped::{Stopped, inner};
use merganser_results::unfinished::claimed_path;
use merganser_sort::Conflict;
use merganser_sort::key::{KeyError, Records, Setting};
use merganser_sort::run::magic::Foreign;
use merganser_storage::file::FileError;

use crate::args::TypedSize;
use crate::setting::{MEMORY, THREADS, variable_of_temp_dir};
use crate::shown;

/// Whether `error` says that a file is no text.
fn is_foreign(error: &io::Error) -> bool {
    inner::<Foreign>(error).is_some()
}

/// The end of the name of a temporary file, behind its folder.
pub const UNNAMED: &str = " (unnamed)";

/// The longest path, in bytes.
const NAME_BYTES_MAX: usize = 4096;

/// The end of a command that is not plain success.
#[derive(Debug)]
pub enum Failure {
    /// Records are out of order. There is no sentence if the user asked for silence.
    Disorder(Option<String>),
    /// The command failed. The sentence names the file, the offset or the flag, and a remedy.
    Error(String),
    /// A disk is full.
    FullDisk {
        /// The file that was written, as it is called in sentences.
        file: String,
        /// The whole sentence, for commands that know no more.
        sentence: String,
    },
    /// A signal asked for the end.
    Cancelled,
    /// The reader of standard output went away, so the command ends quietly.
    ClosedPipe,
}

impl Failure {
    /// An error on `path`, as the system tells it.
    pub fn on(path: &Path, error: &io::Error) -> Self {
        let failure = Self::of_error(error, || format!("{}: {}", shown::name(path), plain(error)));
        match error.kind() {
            io::ErrorKind::NotFound => failure.and(consumed(path)),
            _ => failure,
        }
    }

    /// An error on an input.
    pub fn on_input(input: &impl fmt::Display, error: &io::Error) -> Self {
        Self::of_error(error, || format!("{input}: {}", plain(error)))
    }

    /// An error whose own text names the file.
    pub fn named(error: &io::Error) -> Self {
        Self::of_error(error, || plain(error))
    }

    /// An error on standard output.
    pub fn on_stdout(error: &io::Error) -> Self {
        Self::of_error(error, || format!("standard output: {}", plain(error)))
    }

    fn of_error(error: &io::Error, sentence: impl Fn() -> String) -> Self {
        match Stopped::of_error(error) {
            Some(Stopped::Cancelled) => Failure::Cancelled,
            Some(Stopped::ClosedPipe) => Failure::ClosedPipe,
            None if is_foreign(error) && OFFERS_NO_DECOMPRESS.get().is_some() => {
                let offer = "--no-decompress takes its bytes as they are";
                Failure::Error(format!("{}; {offer}", sentence()))
            }
            None => match full_disk(error) {
                Some(file) => Failure::FullDisk { file, sentence: sentence() },
                None => Failure::Error(match temp_dir_variable(error) {
                    Some(variable) => format!("{}; {variable} names this folder", sentence()),
                    None => sentence(),
                }),
            },
        }
    }

    /// Adds a remark to the sentence. If a signal ended the command, the remark is printed alone.
    pub fn and(self, also: Option<String>) -> Self {
        match (self, also) {
            (Failure::Error(sentence) | Failure::FullDisk { sentence, .. }, Some(also)) => {
                Failure::Error(format!("{sentence}; {also}"))
            }
            (Failure::Cancelled, Some(also)) => {
                notice(&also);
                Failure::Cancelled
            }
            (failure, _) => failure,
        }
    }

    /// Says why on stderr, if there is anything to say.
    pub fn tell(&self) {
        match self {
            // The tabs of a record are its own.
            Failure::Disorder(sentence) => {
                if let Some(sentence) = sentence {
                    tell(sentence, &['\t']);
                }
            }
            Failure::Error(sentence) | Failure::FullDisk { sentence, .. } => tell(sentence, &[]),
            Failure::ClosedPipe | Failure::Cancelled => {}
        }
    }

    /// The sentence, before unprintable characters are escaped.
    pub fn sentence(&self) -> Option<&str> {
        match self {
            Failure::Disorder(sentence) => sentence.as_deref(),
            Failure::Error(sentence) | Failure::FullDisk { sentence, .. } => Some(sentence),
            Failure::ClosedPipe | Failure::Cancelled => None,
        }
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Failure::ClosedPipe => 0,
            Failure::Disorder(_) => 1,
            Failure::Error(_) | Failure::FullDisk { .. } | Failure::Cancelled => 2,
        }
    }
}

/// The name that begins each sentence, where it is not the program's own.
static CALLED: OnceLock<&str> = OnceLock::new();

/// Set by the commands that have `--no-decompress`.
static OFFERS_NO_DECOMPRESS: OnceLock<()> = OnceLock::new();

/// From now on, the sentence about a file that is no text names `--no-decompress`.
pub fn offer_no_decompress() {
    let _ = OFFERS_NO_DECOMPRESS.set(());
}

/// Begins each sentence with `name` from now on.
pub fn call(name: &'static str) {
    // Only `main` calls this, once.
    let _ = CALLED.set(name);
}

/// The name that begins each sentence. It neither waits nor allocates memory.
pub fn called() -> &'static str {
    CALLED.get().unwrap_or(&"merganser")
}

/// Tells something that is no failure, on stderr.
pub fn notice(sentence: &str) {
    tell(sentence, &[]);
}

/// The way of every sentence to stderr: one line, whatever names and damaged bytes are in it.
fn tell(sentence: &str, kept: &[char]) {
    let name = called();
    let line = format!("{name}: {}\n", shown::escaped(sentence, kept));
    // Nobody may be listening; the exit status still tells.
    let _ = io::stderr().write_all(line.as_bytes());
}

impl From<String> for Failure {
    fn from(sentence: String) -> Self {
        Failure::Error(sentence)
    }
}

impl From<merganser_export::Error> for Failure {
    fn from(error: merganser_export::Error) -> Self {
        Failure::Error(export_sentence(&error))
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Failure::Error(key_sentence(&error))
    }
}

impl From<merganser_sort::Error> for Failure {
    fn from(error: merganser_sort::Error) -> Self {
        Failure::from(&error)
    }
}

impl From<&merganser_sort::Error> for Failure {
    fn from(error: &merganser_sort::Error) -> Self {
        match error {
            merganser_sort::Error::Io(error) => Failure::named(error),
            merganser_sort::Error::Cancelled => Failure::Cancelled,
            error => Failure::Error(sort_sentence(error)),
        }
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        Failure::from(&error)
    }
}

impl From<&JournalError> for Failure {
    fn from(error: &JournalError) -> Self {
        match error {
            JournalError::Content(error) => error.into(),
            JournalError::File { path, error } => Failure::on(path, error),
        }
    }
}

/// The sentence for an error of a mount or server.
pub fn export_sentence(error: &merganser_export::Error) -> String {
    match error {
        merganser_export::Error::Read { name, offset, len, source } => {
            format!("{name}: reading {len} bytes at offset {offset} failed: {}", plain(source))
        }
        merganser_export::Error::Request { name, what, offset, len, source } => {
            format!("{name}: {what} of {len} bytes at offset {offset} failed: {}", plain(source))
        }
        error => plain_text(error.to_string()),
    }
}

/// The sentence for an error of the engine, with the flags that help.
fn sort_sentence(error: &merganser_sort::Error) -> String {
    use merganser_sort::Error;
    match error {
        Error::Io(error) => plain(error),
        Error::Key(error) => key_sentence(error),
        Error::Conflict(conflict) => conflict_sentence(*conflict),
        Error::LastRecord { file, offset, detail } => format!(
            "{file}: at byte {offset}: {detail}; repair the input or choose another --format"
        ),
        Error::StrayQuote { .. } => format!(
            "{error}; repair the row, or give --csv-quotes lazy, which takes the quote as a letter and the text as text"
        ),
        Error::RecordTooLong { file, offset, most_bytes, factor } => {
            let give = match factor {
                Some(factor) => format!("give at least {factor} times as much"),
                None => "give more".to_owned(),
            };
            format!(
                "{file}: at byte {offset}: a record is longer than {most_bytes} bytes, the most for this {}; {give}",
                MEMORY.name()
            )
        }
        Error::Memory { owner, least_bytes, limit_bytes } => format!(
            "{} is too small for {owner}: at least {least_bytes} bytes are needed; give {}",
            MEMORY.with(TypedSize(*limit_bytes).shown()),
            TypedSize(*least_bytes).at_least()
        ),
        Error::Threads { threads, most, limit_bytes } => format!(
            "{} are too many for {}; give {most}, or more memory",
            THREADS.with(threads),
            MEMORY.with(TypedSize(*limit_bytes).shown())
        ),
        Error::NoTemp => format!(
            "the data does not fit into {}, and there is no folder for temporary files; give one with --temp-dir",
            MEMORY.name()
        ),
        Error::TempLimit { limit_bytes } => format!(
            "temporary runs need more than --temp-limit {}; raise it or sort to a view",
            TypedSize(*limit_bytes).shown()
        ),
        Error::BeingConsumed { view, output } => {
            being_consumed(view, &shown::name(Path::new(output)))
        }
        Error::ConsumedElsewhere { view, output } => format!(
            "{view}: this view is already being consumed into {output:?}; finish that first with 'merganser materialize --consume'"
        ),
        Error::OtherCopy { folder, view } => format!(
            "{folder}: holds records of {view:?}, whose 'materialize --consume' was interrupted; finish that first"
        ),
        Error::NotAView { .. } => {
            format!("{error}; name a folder made by 'merganser sort --view'")
        }
        Error::Unreduced { view } => format!(
            "{view}: the rows of this map's result are combined when they are read; read them with 'merganser cat', or write them with 'merganser materialize {} -o FILE'",
            shown::shell_word(view)
        ),
        Error::RowsInFiles { view } => format!(
            "{view}: is a view of a table whose rows are in files of Parquet; merganser cat and verify read them"
        ),
        Error::UnknownSize => "--explain: needs inputs whose size is known; name files".to_owned(),
        Error::Indivisible => format!(
            "a key range could not be split into pieces that fit into {}; give more or use --strategy merge",
            MEMORY.name()
        ),
        error => plain_text(error.to_string()),
    }
}

/// The sentence for options that cannot be combined.
fn conflict_sentence(conflict: Conflict) -> String {
    let sentence = match conflict {
        Conflict::UniqueView => {
            "-u and --view cannot go together: how many duplicates there are, and so the view's exact size, is known only after merging; use -o FILE"
        }
        Conflict::TopView => {
            "--top and --view cannot go together; use -o FILE, or read the front of a view with 'merganser cat --head'"
        }
        Conflict::TopDistribute => {
            "--strategy distribute and --top cannot go together; leave one of them out: a merge drops unwanted records early"
        }
        Conflict::ConsumeDistribute => {
            "--strategy distribute and --consume cannot go together; use --strategy merge, which gives its inputs back run by run"
        }
        Conflict::CompressDistribute => {
            "--strategy distribute and --compress cannot go together; use --strategy merge"
        }
        Conflict::ConsumeDrops => {
            "--consume keeps every record; leave out -u and --top, or --consume"
        }
        Conflict::UniformKeys => {
            "--uniform trusts the leading bits of a key of fixed length, as --format fixed:N --key OFFSET:LENGTH has; leave it out"
        }
        conflict => return conflict.to_string(),
    };
    sentence.to_owned()
}

/// The sentence for an order that makes no sense.
fn key_sentence(error: &KeyError) -> String {
    let unfit = |flag: String, records: &Records| match records {
        Records::WholeRows => format!("{flag} has no meaning for csv rows without --key"),
        Records::WholeSequences => format!("{flag} has no meaning for sequences without --key"),
        records => format!("{flag} has no meaning for {records}"),
    };
    match error {
        KeyError::Value { of, value, reason } => {
            let flag = match of {
                Setting::LineKey => "-k",
                Setting::Key => "--key",
                Setting::Separator => "-t",
                Setting::Format => "--format",
                Setting::HeaderPrefix => "--header-prefix",
            };
            format!("{flag} '{value}': {reason}")
        }
        KeyError::UnfitLetter { letter, records } => unfit(format!("-{letter}"), records),
        KeyError::UnfitLineKeys { records } => unfit("-k".to_owned(), records),
        KeyError::UnfitSeparator { records } => unfit("-t".to_owned(), records),
        error => error.to_string(),
    }
}

/// Where the records of a missing file are, if an interrupted `sort --consume` has claimed it.
fn consumed(path: &Path) -> Option<String> {
    let hidden = claimed_path(path);
    hidden.symlink_metadata().ok().filter(Metadata::is_file)?;
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    Some(format!(
        "its records are in {} and in the folder of an interrupted 'sort --consume': merganser recover {}",
        shown::name(&hidden),
        shown::shell_word(folder.unwrap_or(Path::new(".")))
    ))
}

/// The marker of a view may hold any text, so it is shown, but never a part of a command.
fn being_consumed(view: &str, output: &str) -> String {
    if output.len() < NAME_BYTES_MAX {
        return format!(
            "{view}: this view is being consumed into {output}; finish that first: merganser recover {}",
            shown::shell_word(view)
        );
    }
    let front = &output[..output.floor_char_boundary(100)];
    format!(
        "{view}: this view is being consumed into {front}..., which is no name of a file; repair its marker"
    )
}

/// The words of an error for a sentence.
pub fn plain(error: &io::Error) -> String {
    let Some(inner) = error.get_ref() else { return plain_text(error.to_string()) };
    if let Some(error) = inner.downcast_ref::<merganser_sort::Error>() {
        return sort_sentence(error);
    }
    match inner.downcast_ref::<SpecialWriteError>() {
        Some(of) => plain_text(format!("{}: {}", shown::name(&of.path), of.error)),
        None => plain_text(error.to_string()),
    }
}

/// The variable that names the folder for temporary files in which `error` happened, if one does.
fn temp_dir_variable(error: &io::Error) -> Option<&'static str> {
    let path = &error.get_ref()?.downcast_ref::<FileError>()?.path;
    let folder = path.strip_suffix(UNNAMED).unwrap_or(path);
    variable_of_temp_dir(Path::new(folder))
}

/// The file for which a disk has no more room, if that is what `error` says.
fn full_disk(error: &io::Error) -> Option<String> {
    let file = error.get_ref()?.downcast_ref::<FileError>()?;
    let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    is_full.then(|| file.path.clone())
}

/// The system's words without the error number.
#[must_use]
pub fn plain_text(mut text: String) -> String {
    if let Some(at) = text.find(" (os error ")
        && let Some(len) = text[at..].find(')')
    {
        text.replace_range(at..=at + len, "");
    }
    text
}

#[cfg(test)]
mod tests {
    use merganser_sort::key::OrderSpec;
    use merganser_sort::record::Format;

    use super::*;

    const FIXED: Format = Format::Fixed { bytes: 8 };

    /// SAFETY finding F9: errors of files are errors, whatever their kind.
    #[test]
    fn f9_only_what_was_stopped_is_quiet() {
        for errno in [libc::EPIPE, libc::ECONNABORTED, libc::EINTR, libc::ECONNRESET] {
            let error = io::Error::from_raw_os_error(errno);
            for failure in [
                Failure::named(&error),
                Failure::on(Path::new("file"), &error),
                Failure::on_stdout(&error),
                Failure::from(merganser_sort::Error::Io(io::Error::from_raw_os_error(errno))),
                Failure::from(merganser_sort::Error::Io(io::Error::from(error.kind()))),
            ] {
                assert_eq!(failure.status(), 2);
                assert!(failure.sentence().is_some_and(|said| !said.is_empty()), "{failure:?}");
            }
        }
    }

    #[test]
    fn flags_are_named_for_the_engines_errors() {
        let separator = merganser_sort::key::parse_separator(b"ab").expect_err("two bytes");
        let key = OrderSpec { keys: vec!["4:8".to_owned()], ..OrderSpec::new(FIXED) };
        let letter = OrderSpec { options: "n".to_owned(), ..OrderSpec::new(FIXED) };
        let csv = Format::csv_rows(b',', false);
        let row = OrderSpec { options: "n".to_owned(), ..OrderSpec::new(csv) };
        let refused = |spec: &OrderSpec| spec.compile(None).expect_err("refused").into();
        let memory =
            || merganser_sort::Error::Memory { owner: "a merge", least_bytes: 2, limit_bytes: 1 };
        let table: [(merganser_sort::Error, &str); 7] = [
            (separator.into(), "-t 'ab': a separator is one byte, such as ; or \\t"),
            (refused(&key), "--key '4:8': the key ends outside the record, which has 8 bytes"),
            (refused(&letter), "-n has no meaning for fixed-length records"),
            (refused(&row), "-n has no meaning for csv rows without --key"),
            (memory(), "--memory 1 is too small for a merge: at least 2 bytes are needed; give 2"),
            // A storage that the engine makes carries its errors through the layers below.
            (
                merganser_sort::Error::Io(memory().into()),
                "--memory 1 is too small for a merge: at least 2 bytes are needed; give 2",
            ),
            (
                Conflict::CompressDistribute.into(),
                "--strategy distribute and --compress cannot go together; use --strategy merge",
            ),
        ];
        for (error, sentence) in table {
            assert_eq!(Failure::from(error).sentence(), Some(sentence));
        }
    }

    #[test]
    fn f9_what_was_stopped_is_found_behind_names() {
        for (stopped, status) in [(Stopped::Cancelled, 2), (Stopped::ClosedPipe, 0)] {
            let inner =
                merganser_sort::error::InputError { name: "in".to_owned(), cause: stopped.into() };
            let error = io::Error::new(io::ErrorKind::BrokenPipe, inner);
            assert_eq!(Stopped::of_error(&error), Some(stopped));
            let failure = Failure::from(merganser_sort::Error::Io(error));
            assert_eq!((failure.status(), failure.sentence()), (status, None));
        }
    }
}
