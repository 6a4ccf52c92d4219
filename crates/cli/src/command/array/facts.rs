//! `merganser array info` and `report`.

use std::fs;
use std::path::Path;

use merganser_array::{Hash, Volume};
use serde_json::{Value, json};

use super::file::Description;
use super::page;
use crate::args::{ArrayInfoArgs, ArrayReportArgs};
use crate::failure::Failure;
use crate::standard;

/// Prints the description of a volume.
pub fn info(typed: &ArrayInfoArgs) -> Result<(), Failure> {
    let (_, found) = describe(&typed.volume)?;
    let dedup = match found.dedup {
        None => "off",
        Some(Hash::Blake3) => "blake3",
        Some(Hash::Sha1) => "sha1",
    };
    let facts = [
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
    ];
    print(typed.json, facts.into_iter())
}

/// Prints the counts of a volume, and writes a page of them.
pub fn report(typed: &ArrayReportArgs) -> Result<(), Failure> {
    let (name, found) = describe(&typed.volume)?;
    let counters = found.counters;
    if let Some(path) = &typed.page {
        fs::write(path, page::page(&name, &found)).map_err(|error| Failure::on(path, &error))?;
    }
    let saved = match counters.pages_written {
        0 => 0.0,
        _ => 1.0 - counters.write_amplification(),
    };
    let derived = [
        ("data_bytes_written", json!(counters.data_bytes_written())),
        ("write_amplification", json!(counters.write_amplification())),
        ("dedup_rate", json!(counters.dedup_rate())),
        ("data_writes_saved", json!(saved)),
    ];
    print(typed.json, counters.each().map(|(name, count)| (name, json!(count))).chain(derived))
}

/// The name of a volume, and its description.
fn describe(volume: &Path) -> Result<(String, merganser_array::Description), Failure> {
    let description = Description::read(volume)?;
    let members = description.open(false)?;
    let found = Volume::describe(&description.name(), &members)?;
    Ok((description.name(), found))
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
