//! A map's result that is a view: its rows are reduced when they are read.

use std::io;
use std::path::Path;
use std::sync::Arc;

use merganser_results::output::ResultOutput;
use merganser_shell::args::RowForm;
use merganser_shell::failure::Failure;
use merganser_shell::opened::open_folder;
use merganser_shell::rows::{RowTypes, RowWriter, keyed};
use merganser_shell::shown;
use merganser_sort::key::decimal::Decimal;
use merganser_sort::reduced::{ResultView, key_of_f64, key_of_i64};
use merganser_sort::rows::Type;
use merganser_sort::verify::{Limits, Summary, Verifier};
use merganser_sort::view::Manifest;
use merganser_sort::{Budget, Progress};
use merganser_storage::{Directory, Storage};

use crate::config::CatPart;

/// The result in the folder at `path`; `None` if no map made it.
///
/// # Errors
/// When there is no folder; when it is damaged, or there is too little memory.
pub(super) fn open(
    path: &Path,
    memory_bytes: u64,
    threads: usize,
) -> Result<Option<ResultView>, Failure> {
    let folder: Arc<dyn Directory> = open_folder(path)?;
    // If a manifest can't be read, opening the view fails later, with a better sentence.
    if Manifest::read(&folder).is_ok_and(|manifest| manifest.result.is_some()) {
        let budget = Budget::new(memory_bytes);
        return Ok(Some(ResultView::open(&folder, &budget, threads)?));
    }
    Ok(None)
}

/// Refuses a form for a view that no map made.
///
/// # Errors
/// When there is one.
pub(super) fn refuse_form(form: Option<RowForm>) -> Result<(), Failure> {
    match form {
        Some(_) => Err(
            "--output-format: is for the result of a map; this view has records of its own format"
                .to_owned()
                .into(),
        ),
        None => Ok(()),
    }
}

/// Which rows of a result.
#[derive(Debug, Default)]
pub(super) struct RowRange {
    /// The least key.
    from: Option<Vec<u8>>,
    /// The key behind the last.
    to: Option<Vec<u8>>,
    /// The most rows.
    head: Option<u64>,
}

impl RowRange {
    /// The rows that were asked for of `result`.
    ///
    /// # Errors
    /// When bytes or numbers of rows were asked for, or no such key can be.
    pub(super) fn new(
        part: &CatPart,
        head: Option<u64>,
        result: &ResultView,
    ) -> Result<Self, Failure> {
        let CatPart::Keys(from, to) = part else {
            let flag = if matches!(part, CatPart::Bytes(_)) { "--bytes" } else { "--records" };
            return Err(format!(
                "{flag}: the rows of a map's result are made when they are read, so they have no numbers and places; use --from-key, --to-key and --head"
            )
            .into());
        };
        let of = result.description().key;
        let key = |flag, typed: &Option<Vec<u8>>| {
            typed.as_deref().map(|typed| key_of(of, flag, typed)).transpose()
        };
        let (from, to) = (key("--from-key", from)?, key("--to-key", to)?);
        if from.as_ref().zip(to.as_ref()).is_some_and(|(from, to)| from > to) {
            return Err(upside_down());
        }
        Ok(RowRange { from, to, head })
    }
}

/// The bytes of a key as it is shown.
fn key_of(of: Type, flag: &str, typed: &[u8]) -> Result<Vec<u8>, Failure> {
    let shown = String::from_utf8_lossy(typed);
    let wrong = |what: &str| Failure::from(format!("{flag} '{shown}': the keys are {what}"));
    match of {
        Type::Text => Ok(typed.to_vec()),
        Type::I64 => match shown.trim().parse() {
            Ok(number) => Ok(key_of_i64(number).to_vec()),
            Err(_) => Err(wrong("whole numbers")),
        },
        Type::F64 => match shown.trim().parse() {
            Ok(number) => Ok(key_of_f64(number).to_vec()),
            Err(_) => Err(wrong("numbers")),
        },
        Type::Decimal => {
            let mut key = Vec::new();
            Decimal::parse(typed).ok_or_else(|| wrong("numbers"))?.push_key(&mut key);
            Ok(key)
        }
        Type::Bytes => {
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            let pair = |pair: &[u8]| match pair {
                [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
                _ => None,
            };
            let key: Option<Vec<u8>> = typed.chunks(2).map(pair).collect();
            key.ok_or_else(|| wrong("hexadecimal digits, two for each byte"))
        }
    }
}

/// Calls `row` for each wanted row.
fn each(
    result: &ResultView,
    wanted: &RowRange,
    progress: &dyn Progress,
    mut row: impl FnMut(&[u8], &[u8]) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut count = 0;
    let mut rows = result.rows(wanted.from.as_deref())?;
    while wanted.head.is_none_or(|head| count < head)
        && let Some((key, value)) = rows.next()?
    {
        if wanted.to.as_deref().is_some_and(|to| key >= to) {
            break;
        }
        row(key, value)?;
        progress.advance((key.len() + value.len()) as u64);
        count += 1;
        if count % 1024 == 0 && progress.cancelled() {
            return Err(Failure::Cancelled);
        }
    }
    Ok(count)
}

/// Writes the wanted rows. Returns how many there are.
///
/// # Errors
/// The view's and the output's own.
pub(super) fn write(
    result: &ResultView,
    wanted: &RowRange,
    form: RowForm,
    output: &mut ResultOutput,
    progress: &dyn Progress,
) -> Result<u64, Failure> {
    let on_output = |error: io::Error| Failure::named(&error);
    let of = result.description();
    let types = RowTypes { key: of.key, value: of.value };
    let mut writer = RowWriter::new(form, types, output);
    let count =
        each(result, wanted, progress, |key, value| writer.row(key, value).map_err(on_output))?;
    writer.flush().map_err(on_output)?;
    Ok(count)
}

/// Reads all rows, and checks their order. They are summed as length-prefixed records, so the checksum
/// does not depend on how often the map spilled.
///
/// # Errors
/// Damage; too little memory.
pub(super) fn verify(
    result: &ResultView,
    path: &Path,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<Summary, Failure> {
    progress.phase("verifying", Some(result.view().size()));
    let name = shown::name(path);
    let mut verifier = Verifier::new(&name, result.view().order(), limits);
    let mut records = Vec::new();
    each(result, &RowRange::default(), progress, |key, value| {
        keyed(key, value, &mut records).map_err(|error| Failure::on(path, &error))?;
        if records.len() >= 1 << 20 {
            verifier.feed(&records)?;
            records.clear();
        }
        Ok(())
    })?;
    verifier.feed(&records)?;
    Ok(verifier.finish()?)
}

/// The sentence about keys in the wrong order.
pub(in crate::command) fn upside_down() -> Failure {
    "--to-key: comes before --from-key in the order of the view; exchange them".to_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_typed_as_they_are_shown() {
        let key = |of, typed: &str| key_of(of, "--from-key", typed.as_bytes());
        assert_eq!(key(Type::Text, "a").expect("a text"), b"a");
        assert_eq!(key(Type::Bytes, "00fF").expect("bytes"), b"\x00\xff");
        assert_eq!(key(Type::I64, "-3").expect("a number"), key_of_i64(-3));
        assert_eq!(key(Type::F64, "1.5").expect("a number"), key_of_f64(1.5));
        for (of, typed) in
            [(Type::Bytes, "0"), (Type::Bytes, "0g"), (Type::I64, "1.5"), (Type::F64, "x")]
        {
            assert!(key(of, typed).is_err(), "{typed}");
        }
    }
}
