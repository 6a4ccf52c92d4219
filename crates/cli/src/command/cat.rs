//! `merganser cat`.

use std::io::Write;
use std::ops::Range;

use merganser_sort::key::{OrderSpec, column_of};
use merganser_sort::record::Format;
use merganser_sort::view::View;
use merganser_storage::Storage;

use super::map::result;
use crate::args::{RowForm, Span};
use crate::config::{CatConfig, Part};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Silent;
use crate::signals::Cancel;

/// Prints a part of a view.
pub fn run(config: &CatConfig, cancel: &Cancel) -> Result<(), Failure> {
    if let Some(result) = result::open(&config.view, config.memory_bytes, config.threads)? {
        let wanted = result::Rows::new(&config.part, config.head, &result)?;
        let mut output = Output::open(None, cancel)?;
        let form = config.form.unwrap_or(RowForm::Tsv);
        result::write(&result, &wanted, form, &mut output, &Silent(cancel.clone()))?;
        return output.finish();
    }
    result::refuse_form(config.form)?;
    let view = super::open_view(&config.view, config.memory_bytes, config.threads)?;
    let range = range(&view, config)?;
    let mut output = Output::open(None, cancel)?;
    let mut stream = view.stream(range)?;
    while let Some(bytes) = stream.next_bytes()? {
        output.write_all(bytes).map_err(|error| Failure::named(&error))?;
        if cancel.is_set() {
            return Err(merganser_sort::Error::Cancelled.into());
        }
    }
    output.finish()
}

/// The requested bytes of the view. A whole view begins with its header; a range of records or keys
/// leaves the header out.
fn range(view: &View, config: &CatConfig) -> Result<Range<u64>, Failure> {
    let size = view.size();
    let records_from = view.manifest().preamble.len() as u64;
    let (start, end) = match &config.part {
        Part::Bytes(Span { start, end }) => (*start, end.unwrap_or(size)),
        Part::Records(Span { start, end }) => {
            let last = match (end, config.head) {
                (Some(end), Some(head)) => Some(*end.min(&start.saturating_add(head))),
                (None, Some(head)) => Some(start.saturating_add(head)),
                (end, None) => *end,
            };
            let end = last.map_or(Ok(size), |last| view.offset_of_record(last))?;
            (view.offset_of_record(*start)?, end)
        }
        Part::Keys(None, None) => {
            (0, config.head.map_or(Ok(size), |head| view.offset_of_record(head))?)
        }
        Part::Keys(from, to) => {
            let offset = |flag, key: &Vec<u8>| offset_of_key(view, flag, key);
            let start = from.as_ref().map_or(Ok(records_from), |key| offset("--from-key", key))?;
            let end = to.as_ref().map_or(Ok(size), |key| offset("--to-key", key))?;
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
    Ok(at)
}

/// Where the first record lies whose first key is not below `typed`.
fn offset_of_key(view: &View, flag: &str, typed: &[u8]) -> Result<u64, Failure> {
    let spec = &view.manifest().order;
    let refuse = |why: String| Failure::Error(format!("{flag}: {why}; use --records or --bytes"));
    // Only the first key takes part, so that whatever follows it in a record is not below.
    let first = OrderSpec {
        keys: spec.keys.iter().take(1).cloned().collect(),
        stable: true,
        ..spec.clone()
    };
    let header = Some(&*view.manifest().preamble).filter(|header| !header.is_empty());
    let order = first.compile(header)?;
    let record = record_with_key(&first, header, typed).map_err(refuse)?;
    let mut key = Vec::new();
    order.encode(&record, &mut key);
    Ok(view.offset_of_key(&key)?)
}

/// A record whose first key is `typed`; the rest of the record is arbitrary.
fn record_with_key(
    spec: &OrderSpec,
    header: Option<&[u8]>,
    typed: &[u8],
) -> Result<Vec<u8>, String> {
    let first = spec.keys.first().map(String::as_str);
    match spec.format {
        Format::Lines { delimiter } => {
            let number = first.map_or(Ok(1), field_of_line)?;
            let separator = spec.separator.unwrap_or(b' ');
            let mut line = Vec::new();
            for _ in 1..number {
                line.extend_from_slice(&[b'x', separator]);
            }
            if spec.separator.is_none()
                && number > 1
                && typed.first().is_some_and(u8::is_ascii_whitespace)
            {
                // The blanks before a field are a part of it, and typed already.
                line.pop();
            }
            line.extend_from_slice(typed);
            line.push(delimiter);
            Ok(line)
        }
        Format::Csv { separator, .. } => {
            let Some(first) = first else {
                return Ok([typed, b"\n"].concat());
            };
            let column = column_of(first, header, separator)?;
            let mut row = vec![separator; column];
            row.push(b'"');
            for byte in typed {
                row.extend_from_slice(if *byte == b'"' {
                    b"\"\""
                } else {
                    std::slice::from_ref(byte)
                });
            }
            row.extend_from_slice(b"\"\n");
            Ok(row)
        }
        Format::Fixed { bytes } => {
            let offset: usize = match first {
                None => 0,
                Some(first) => {
                    first.split(':').next().and_then(|offset| offset.parse().ok()).unwrap_or(0)
                }
            };
            let mut record = vec![0; bytes];
            let room = &mut record[offset..];
            if typed.len() > room.len() {
                return Err("the key is longer than the record".to_owned());
            }
            room[..typed.len()].copy_from_slice(typed);
            Ok(record)
        }
        Format::Keyed => {
            let len = u32::try_from(typed.len()).map_err(|_| "the key is too long".to_owned())?;
            Ok([&len.to_le_bytes(), &[0; 4][..], typed].concat())
        }
    }
}

/// The field at which a key of lines begins.
fn field_of_line(key: &str) -> Result<usize, String> {
    let start = key.split(',').next().unwrap_or_default();
    let digits = start.find(|c: char| !c.is_ascii_digit()).unwrap_or(start.len());
    let (number, rest) = start.split_at(digits);
    let inside = rest.strip_prefix('.').is_some_and(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse() != Ok(1)
    });
    if inside {
        return Err(format!("the key {key} of this view begins inside a field"));
    }
    number.parse().map_err(|_| format!("the key {key} of this view has no field"))
}
