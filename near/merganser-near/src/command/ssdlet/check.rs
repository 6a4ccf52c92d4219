//! `merganser ssdlet check`: what a file is, whether it is right, and how fast it is.

use std::fmt::Write;
use std::path::Path;

use merganser_map::ssdlet::{Combine, SsdletOutput, Type};
use merganser_shell::failure::Failure;
use merganser_shell::standard;
use merganser_sort::record::Format;
use merganser_wasm::{ABI, CheckedGuest, check};
use serde_json::{Value, json};

use super::{failure, hex, read};
use crate::config::SsdletCheck;

/// The most that is read of a sample, in bytes.
const SAMPLE_BYTES_MAX: usize = 64 << 20;

/// Checks it and prints what was found.
pub(super) fn run(config: &SsdletCheck) -> Result<(), Failure> {
    let limits = merganser_guests::of_engine(config.limits);
    let module = read(&config.file, limits.module_bytes)?;
    let sample = config.sample.as_deref().map(|path| sample(path, &module)).transpose()?;
    let checked = check(&module, &config.args, limits, sample.as_deref()).map_err(|error| {
        let about_sample = matches!(error, merganser_map::ssdlet::SsdletError::Record { .. });
        let failed = failure(&config.file, error);
        match sample {
            None if about_sample => failed.and(Some(
                "these were made-up records; give some of its own with --sample".to_owned(),
            )),
            _ => failed,
        }
    })?;
    let text = match config.json {
        true => format!("{:#}\n", found(&checked)),
        false => table(&checked, config.sample.is_some()),
    };
    standard::print(text)
}

/// The beginning of a sample, up to the end of a record.
fn sample(path: &Path, module: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut bytes = read(path, SAMPLE_BYTES_MAX)?;
    if bytes.len() > SAMPLE_BYTES_MAX {
        bytes.truncate(SAMPLE_BYTES_MAX);
        // A module without a format is refused by the check that follows.
        if let Ok(declared) = merganser_wasm::Declared::of_module(module) {
            let mut cuts = Vec::new();
            declared.input.cut(&bytes, usize::MAX, &mut cuts);
            bytes.truncate(cuts.last().copied().unwrap_or(0));
        }
    }
    Ok(bytes)
}

fn fuel_per_byte(checked: &CheckedGuest) -> f64 {
    checked.fuel as f64 / checked.sample_bytes.max(1) as f64
}

fn found(checked: &CheckedGuest) -> Value {
    let declared = &checked.declared;
    json!({
        "name": declared.name,
        "about": declared.about,
        "arguments": declared.arguments,
        "abi": ABI,
        "sha256": hex(&checked.digest),
        "module_bytes": checked.module_bytes,
        "input": declared.input,
        "output": declared.output,
        "memory_bytes": declared.memory_bytes,
        "worker_bytes": checked.worker_bytes,
        "compile_ns": checked.compile_time.as_nanos() as u64,
        "start_ns": checked.start_time.as_nanos() as u64,
        "sample_bytes": checked.sample_bytes,
        "run_ns": checked.run_time.as_nanos() as u64,
        "fuel": checked.fuel,
        "fuel_per_byte": fuel_per_byte(checked),
        "rows": checked.rows,
    })
}

fn table(checked: &CheckedGuest, is_given: bool) -> String {
    let declared = &checked.declared;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            writeln!(text, "{name:<12}{value}").expect("a string takes all");
        }
    };
    line("name", declared.name.clone());
    line("about", declared.about.clone());
    line("arguments", declared.arguments.clone());
    line("module", format!("{} bytes, interface version {ABI}", checked.module_bytes));
    line("sha256", hex(&checked.digest));
    line("input", format_name(declared.input));
    line("output", output_name(&declared.output));
    line("memory", format!("{} bytes for each worker", declared.memory_bytes));
    line("compile", format!("{:.1} ms", checked.compile_time.as_secs_f64() * 1e3));
    line("start", format!("{:.1} us", checked.start_time.as_secs_f64() * 1e6));
    let made_up = if is_given { "" } else { ", made up" };
    line("sample", format!("{} bytes{made_up}", checked.sample_bytes));
    line("fuel", format!("{:.1} per byte", fuel_per_byte(checked)));
    line("rows", checked.rows.to_string());
    text
}

/// A format in words.
pub(super) fn format_name(format: Format) -> String {
    match format {
        Format::Lines { delimiter } if delimiter != b'\n' => {
            format!("lines that end with byte {delimiter}")
        }
        Format::Csv { header: true, .. } => "csv with a header".to_owned(),
        other => other.typed(),
    }
}

/// An output in words.
pub(super) fn output_name(output: &SsdletOutput) -> String {
    let of = |of: Type| match of {
        Type::Text => "text",
        Type::Bytes => "bytes",
        Type::I64 => "i64",
        Type::F64 => "f64",
        Type::Decimal => "decimal",
    };
    match output {
        SsdletOutput::Keyed { key, value, combine } => {
            let combine = match combine {
                Combine::Sum => "their sum",
                Combine::Min => "the smallest",
                Combine::Max => "the largest",
                Combine::Count => "their count",
                Combine::First => "the first",
                Combine::None => "all of them",
            };
            format!("{} keys with {} values, {combine}", of(*key), of(*value))
        }
        SsdletOutput::Ordered { format } => {
            format!("{}, in the order of the input", format_name(*format))
        }
    }
}
