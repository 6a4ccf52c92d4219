//! `merganser array info` and `report`.

use merganser_array::Hash;
use merganser_results::kept::ReportFile;
use merganser_shell::failure::Failure;
use merganser_shell::standard;
use serde_json::{Value, json};

use super::facts::describe;
use super::file::VolumeFile;
use super::page;
use crate::args::{ArrayInfoArgs, ArrayReportArgs};

/// Prints the description of a volume.
pub(super) fn info(typed: &ArrayInfoArgs) -> Result<(), Failure> {
    let (_, facts) = describe(&VolumeFile::read(&typed.volume)?)?;
    let found = &facts.found;
    let dedup = match found.dedup {
        None => "off",
        Some(Hash::Blake3) => "blake3",
        Some(Hash::Sha1) => "sha1",
    };
    let nature = [
        ("id", json!(found.id)),
        ("bytes", json!(found.size)),
        ("dedup", json!(dedup)),
        ("compare", json!(found.compare)),
        ("thin", json!(found.thin)),
        ("data_members", json!(found.members.0)),
        ("buffer_members", json!(found.members.1)),
        ("chunk_bytes", json!(found.chunk_bytes.0)),
        ("buffer_chunk_bytes", json!(found.chunk_bytes.1)),
        ("pages", json!(found.pages)),
        ("buffer_bytes", json!(found.buffer_bytes)),
        ("sessions", json!(found.sessions)),
        ("closed_in_order", json!(found.clean)),
        ("table_checksums", json!(found.table_checksums)),
    ];
    print(typed.json, nature.into_iter().chain(facts.space()))
}

/// Prints the counts of a volume, and writes a page of them.
pub(super) fn report(typed: &ArrayReportArgs) -> Result<(), Failure> {
    let description = VolumeFile::read(&typed.volume)?;
    let (name, facts) = describe(&description)?;
    let counters = facts.found.counters;
    if let Some(path) = &typed.page {
        description.refuse_as_result("--page", path)?;
        ReportFile::open(path)?.write(&page::page(&name, &facts))?;
    }
    let derived = [
        ("data_bytes_written", json!(counters.data_bytes_written())),
        ("write_amplification", json!(counters.write_amplification())),
        ("read_amplification", json!(facts.read_amplification())),
        ("dedup_rate", json!(counters.dedup_rate())),
        ("pe_cycles_saved", json!(facts.pe_cycles_saved())),
    ];
    let counts = counters.each().map(|(name, count)| (name, json!(count)));
    print(typed.json, counts.chain(derived).chain(facts.space()))
}

fn print(as_json: bool, facts: impl Iterator<Item = (&'static str, Value)>) -> Result<(), Failure> {
    let text = if as_json {
        let facts: serde_json::Map<_, _> =
            facts.map(|(name, value)| (name.to_owned(), value)).collect();
        format!("{:#}\n", Value::Object(facts))
    } else {
        let line = |(name, value): (&str, Value)| {
            let value = match value {
                Value::String(text) => text,
                Value::Number(number) if number.is_f64() => {
                    format!("{:.4}", number.as_f64().unwrap_or_default())
                }
                other => other.to_string(),
            };
            format!("{:<22}{value}\n", name.replace('_', " "))
        };
        facts.map(line).collect()
    };
    standard::print(text)
}
