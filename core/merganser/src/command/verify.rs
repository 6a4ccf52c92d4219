//! `merganser verify`, and `sort -c`.

use std::path::Path;

use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_shell::progress::ProgressForm;
use merganser_shell::signals::Cancel;
use merganser_shell::{failure, progress, shown, standard};
use merganser_sort::Budget;
use merganser_sort::key::OrderSpec;
use merganser_sort::run::magic::ContentKind;
use merganser_sort::run::packed::Unpacked;
use merganser_sort::verify::{self, Disorder, Limits, Summary, Verifier};
use merganser_storage::Storage;
use serde_json::json;

use super::result;
use crate::config::{VerifyConfig, VerifySubject};

/// How an input is read.
pub(super) struct InputReading {
    /// The memory budget.
    pub memory_bytes: u64,
    /// What it should hold.
    pub content: ContentKind,
    /// How progress is shown.
    pub progress: ProgressForm,
}

/// Checks, and prints what was found.
pub(super) fn run(config: &VerifyConfig, cancel: &Cancel) -> Result<(), Failure> {
    failure::offer_no_decompress();
    let (name, found) = match &config.subject {
        VerifySubject::Records(input, order) => {
            let reading = InputReading {
                memory_bytes: config.memory_bytes,
                content: match config.decompress {
                    true => order.format.content(),
                    false => ContentKind::AsStored,
                },
                progress: ProgressForm::bar_unless(config.quiet),
            };
            (input.to_string(), stream(input, order, &reading, false, cancel)?)
        }
        VerifySubject::View(path) => (shown::name(path), view(path, config, cancel)?),
    };
    let text = if config.json { json(&found) } else { table(&found) };
    standard::print(text)?;
    match &found.first_disorder {
        None => Ok(()),
        Some(Disorder { record, offset, .. }) => {
            let others = match found.disorders {
                1 => String::new(),
                disorders => format!(", and {} more", disorders - 1),
            };
            Err(Failure::Disorder(Some(format!(
                "{name}: not sorted: record {record} at byte {offset} belongs before the one before it{others}"
            ))))
        }
    }
}

/// Stops at the first disorder and, where asked, names it as GNU sort does.
pub(super) fn check(
    input: &Input,
    order: &OrderSpec,
    diagnose: bool,
    reading: &InputReading,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let found = stream(input, order, reading, true, cancel)?;
    let Some(disorder) = found.first_disorder else {
        return Ok(());
    };
    let sentence = diagnose.then(|| {
        let name = match input {
            Input::Stdin => "-".to_owned(),
            Input::File(path) => shown::name(path),
        };
        let header = u64::from(order.format.has_header()) + found.header_lines;
        let line = disorder.record + 1 + header;
        format!("{name}:{line}: disorder: {}", String::from_utf8_lossy(&disorder.text))
    });
    Err(Failure::Disorder(sentence))
}

fn stream(
    input: &Input,
    order: &OrderSpec,
    reading: &InputReading,
    stop_at_disorder: bool,
    cancel: &Cancel,
) -> Result<Summary, Failure> {
    let InputReading { memory_bytes, content, progress } = *reading;
    let limits = limits(memory_bytes, stop_at_disorder);
    let name = input.to_string();
    let reader = input.open(cancel)?;
    let progress = progress::in_form(progress, cancel);
    // How much a compressed file holds is not known.
    let size = reader.size().filter(|_| !reader.is_packed(content));
    progress.phase("verifying", size);
    let budget = Budget::new(memory_bytes);
    let mut bytes = Unpacked::of_stream(name.clone(), Box::new(reader), content, &budget);
    Ok(verify::stream(&name, &mut bytes, order, limits, &*progress)?)
}

/// Reads a view, as a reader of the sorted file would, in the view's own order.
fn view(path: &Path, config: &VerifyConfig, cancel: &Cancel) -> Result<Summary, Failure> {
    if let Some(result) = result::open(path, config.memory_bytes, config.threads)? {
        let progress = progress::on_stderr(config.quiet, cancel);
        return result::verify(&result, path, limits(config.memory_bytes, false), &*progress);
    }
    let view =
        merganser_shell::opened::open_view_of_any(path, config.memory_bytes, config.threads)?;
    let progress = progress::on_stderr(config.quiet, cancel);
    progress.phase("verifying", Some(view.size()));
    let name = shown::name(path);
    let mut verifier = Verifier::new(&name, view.order(), limits(config.memory_bytes, false));
    // The view knows where its header ends: a record may begin as a header line does.
    let preamble = &view.manifest().preamble;
    let has_lines = !view.manifest().order.header_prefixes.is_empty();
    let records_from = if has_lines { preamble.len() as u64 } else { 0 };
    verifier.pass_header(records_from, 0);
    let mut stream = view.stream(records_from..view.size())?;
    while let Some(bytes) = stream.next_bytes()? {
        verifier.feed(bytes)?;
        progress.advance(bytes.len() as u64);
        if progress.cancelled() {
            return Err(merganser_sort::Error::Cancelled.into());
        }
    }
    Ok(verifier.finish()?)
}

/// While a record is compared, memory holds it twice, in addition to a few megabytes that are being
/// read.
fn limits(memory_bytes: u64, stop_at_disorder: bool) -> Limits {
    let record_bytes_max = usize::try_from(memory_bytes / 4).unwrap_or(usize::MAX).max(1 << 16);
    Limits { record_bytes_max, stop_at_disorder }
}

fn table(found: &Summary) -> String {
    let Summary { records, bytes, duplicates, checksum, disorders, .. } = found;
    let sorted = if *disorders == 0 { "yes" } else { "no" };
    format!(
        "records         {records}\nbytes           {bytes}\nduplicate keys  {duplicates}\n\
         checksum        {checksum:x}\nsorted          {sorted}\n"
    )
}

fn json(found: &Summary) -> String {
    let first = found.first_disorder.as_ref();
    let value = json!({
        "records": found.records,
        "bytes": found.bytes,
        "duplicate_keys": found.duplicates,
        "checksum": format!("{:x}", found.checksum),
        "sorted": found.disorders == 0,
        "disorders": found.disorders,
        "first_disorder": first.map(|first| json!({ "record": first.record, "offset": first.offset })),
    });
    format!("{value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_holds_what_the_table_holds() {
        let disorder = Disorder { record: 7, offset: 99, text: b"x".to_vec() };
        let found = Summary {
            records: 10,
            bytes: 120,
            header_lines: 0,
            duplicates: 3,
            checksum: 0x1ea_6370_b955,
            disorders: 2,
            first_disorder: Some(disorder),
        };
        let value: serde_json::Value = serde_json::from_str(&json(&found)).expect("JSON");
        assert_eq!((&value["records"], &value["checksum"]), (&json!(10), &json!("1ea6370b955")));
        assert_eq!(value["first_disorder"], json!({ "record": 7, "offset": 99 }));
        assert_eq!(value["sorted"], json!(false));
        for text in [
            "records         10\n",
            "duplicate keys  3\n",
            "checksum        1ea6370b955\n",
            "sorted          no\n",
        ] {
            assert!(table(&found).contains(text));
        }
    }
}
