//! `merganser array info` and `report`.

use merganser_array::{Hash, Volume, VolumeDescription, VolumeUsage};
use merganser_shell::failure::Failure;
use merganser_shell::kept::ReportFile;
use merganser_shell::standard;
use serde_json::{Value, json};

use super::{file, page};
use crate::args::{ArrayInfoArgs, ArrayReportArgs};
use crate::sentences::told;

/// A page, in bytes.
const PAGE: u64 = 4096;

/// The facts about a volume that its members tell.
pub struct VolumeFacts {
    /// Its nature, and its counts.
    pub found: VolumeDescription,
    /// How full it is.
    pub usage: VolumeUsage,
}

impl VolumeFacts {
    /// Pages of the data members without data.
    pub fn pages_free(&self) -> u64 {
        self.found.pages.saturating_sub(self.usage.pages_used)
    }

    /// Bytes of the volume that have content on the data members.
    pub fn mapped_bytes(&self) -> u64 {
        PAGE * self.usage.pages_mapped
    }

    /// Pages that were read from members for users, per page that users read. Pages of zeros are read from no member;
    /// reads of maps, of the index and of moves aren't counted.
    pub fn read_amplification(&self) -> f64 {
        let counters = &self.found.counters;
        let read = counters.data_pages_read + counters.buffer_pages_read;
        read as f64 / counters.pages_read.max(1) as f64
    }

    /// Bytes that did not reach the data members, as a share of the bytes that users wrote. Below 0 when the data members
    /// got more.
    pub fn pe_cycles_saved(&self) -> f64 {
        match self.found.counters.pages_written {
            0 => 0.0,
            _ => 1.0 - self.found.counters.write_amplification(),
        }
    }

    /// How full it is, as `info` and `report` print it.
    fn space(&self) -> [(&'static str, Value); 4] {
        [
            ("pages_used", json!(self.usage.pages_used)),
            ("pages_free", json!(self.pages_free())),
            ("mapped_bytes", json!(self.mapped_bytes())),
            ("buffer_bytes_used", json!(self.usage.buffer_bytes_used)),
        ]
    }
}

/// Prints the description of a volume.
pub fn info(typed: &ArrayInfoArgs) -> Result<(), Failure> {
    let (_, facts) = describe(&file::VolumeFile::read(&typed.volume)?)?;
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
pub fn report(typed: &ArrayReportArgs) -> Result<(), Failure> {
    let description = file::VolumeFile::read(&typed.volume)?;
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

/// The name of a volume, and what is known about it.
fn describe(description: &file::VolumeFile) -> Result<(String, VolumeFacts), Failure> {
    let (name, members) = (description.name(), description.open(file::MemberHold::Nothing)?);
    let found = Volume::describe(&name, &members).map_err(told)?;
    let usage = Volume::usage(&name, &members).map_err(told)?;
    Ok((name, VolumeFacts { found, usage }))
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
