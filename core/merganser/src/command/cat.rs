//! `merganser cat`.

use std::io::Write;
use std::ops::Range;

use merganser_shell::args::{RowForm, TypedRange};
use merganser_shell::failure::Failure;
use merganser_shell::output;
use merganser_shell::progress::HiddenBar;
use merganser_shell::shown;
use merganser_shell::signals::Cancel;
use merganser_sort::view::{TypedKeyError, View};
use merganser_storage::Storage;

use super::result;
use crate::config::{CatConfig, CatPart};

/// Prints a part of a view.
pub(super) fn run(config: &CatConfig, cancel: &Cancel) -> Result<(), Failure> {
    if let Some(result) = result::open(&config.view, config.memory_bytes, config.threads)? {
        let wanted = result::RowRange::new(&config.part, config.head, &result)?;
        let mut output = output::open(None, cancel)?;
        let form = config.form.unwrap_or(RowForm::Tsv);
        result::write(&result, &wanted, form, &mut output, &HiddenBar(cancel.clone()))?;
        return Ok(output.finish()?);
    }
    result::refuse_form(config.form)?;
    let view =
        merganser_shell::opened::open_view(&config.view, config.memory_bytes, config.threads)?;
    let range = range(&view, config)?;
    let mut output = output::open(None, cancel)?;
    let mut stream = view.stream(range)?;
    while let Some(bytes) = stream.next_bytes()? {
        output.write_all(bytes).map_err(|error| Failure::named(&error))?;
        if cancel.is_set() {
            return Err(merganser_sort::Error::Cancelled.into());
        }
    }
    Ok(output.finish()?)
}

/// The requested bytes of the view. A whole view begins with its header; a range of records or keys
/// leaves the header out.
fn range(view: &View, config: &CatConfig) -> Result<Range<u64>, Failure> {
    let size = view.size();
    let records_from = view.manifest().preamble.len() as u64;
    let (start, end) = match &config.part {
        CatPart::Bytes(TypedRange { start, end }) => {
            refuse_beyond(config, "--bytes", *start, (size, "bytes"))?;
            (*start, end.unwrap_or(size))
        }
        CatPart::Records(TypedRange { start, end }) => {
            refuse_beyond(config, "--records", *start, (view.records(), "records"))?;
            let last = match (end, config.head) {
                (Some(end), Some(head)) => Some(*end.min(&start.saturating_add(head))),
                (None, Some(head)) => Some(start.saturating_add(head)),
                (end, None) => *end,
            };
            let end = last.map_or(Ok(size), |last| view.offset_of_record(last))?;
            (view.offset_of_record(*start)?, end)
        }
        CatPart::Keys(None, None) => {
            (0, config.head.map_or(Ok(size), |head| view.offset_of_record(head))?)
        }
        CatPart::Keys(from, to) => {
            let key = |flag, typed: &Option<Vec<u8>>| {
                typed.as_deref().map(|typed| typed_key(view, flag, typed)).transpose()
            };
            let (from, to) = (key("--from-key", from)?, key("--to-key", to)?);
            if from.as_ref().zip(to.as_ref()).is_some_and(|(from, to)| from > to) {
                return Err(result::upside_down());
            }
            let start = from.map_or(Ok(records_from), |key| view.offset_of_key(&key))?;
            let end = to.map_or(Ok(size), |key| view.offset_of_key(&key))?;
            (start, config.head.map_or(Ok(end), |head| after_records(view, start..end, head))?)
        }
    };
    Ok(start.min(size)..end.max(start).min(size))
}

/// Where the first `count` records of `range`, which begins at one, end.
fn after_records(view: &View, range: Range<u64>, count: u64) -> Result<u64, Failure> {
    let format = view.order().format();
    let mut at = range.start;
    let mut left = count;
    let mut stream = view.stream(range)?;
    // The beginning of a record that a piece broke off.
    let mut pending = Vec::new();
    while left > 0
        && let Some(bytes) = stream.next_bytes()?
    {
        pending.extend_from_slice(bytes);
        let mut framed = 0;
        while left > 0
            && let Some(len) = format.record_len(&pending[framed..])
        {
            framed += len;
            left -= 1;
        }
        at += framed as u64;
        pending.drain(..framed);
    }
    if left > 0
        && let Some(len) = format.first_len(&pending)
    {
        // The last record of the view ends with it.
        at += len as u64;
    }
    Ok(at)
}

/// Refuses a range that begins behind the end. One that begins at the end is empty.
fn refuse_beyond(
    config: &CatConfig,
    flag: &str,
    start: u64,
    (there, what): (u64, &str),
) -> Result<(), Failure> {
    if start <= there {
        return Ok(());
    }
    let view = shown::name(&config.view);
    Err(format!("{flag}: begins at {start}, and {view} has {there} {what}").into())
}

/// The key of the view that was typed.
fn typed_key(view: &View, flag: &str, typed: &[u8]) -> Result<Vec<u8>, Failure> {
    view.typed_key(typed).map_err(|error| match error {
        TypedKeyError::Refused(why) => {
            Failure::Error(format!("{flag}: {why}; use --records or --bytes"))
        }
        TypedKeyError::Engine(error) => error.into(),
    })
}
