//! `merganser simulate sort`.
//!
//! ```text
//!   inputs ──► files on the device ──► the engine, its runs there too ──► a file there ──► checked, out
//!              not counted             counted: virtual time, statistics  not counted
//! ```

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Instant;

use merganser_device::results::{Collector, DeviceResults, PlayedSpan};
use merganser_device::simulated::{HostCosts, SimulatedDirectory, World};
use merganser_pages::text;
use merganser_shell::failure::Failure;
use merganser_shell::input::{Input, StorageReader};
use merganser_shell::output;
use merganser_shell::progress;
use merganser_shell::signals::Cancel;
use merganser_shell::standard::print;
use merganser_sort::run::Compression;
use merganser_sort::verify::{self, Limits, Summary};
use merganser_sort::{CompressionChoice, SortOptions, SortOutput, SortReport};
use merganser_storage::{Clock, Directory, Storage, StorageExt};
use serde_json::json;

use super::model::ModelledDevice;
use super::{data, table};
use crate::config::SimulateSort;

/// Bytes of one copy in or out.
const PIECE: usize = 1 << 20;

/// Sorts on a device, checks the result, and tells.
pub(super) fn run(config: &SimulateSort, cancel: &Cancel) -> Result<(), Failure> {
    let model = ModelledDevice::chosen(&config.device)?;
    let device = model.device(config.device.seed, 0)?;
    // The host takes no time, so that only the device is measured.
    let world = World::new(vec![device], HostCosts::default());
    let folder: Arc<dyn Directory> = SimulatedDirectory::new(&world, 0);
    let mut inputs = Vec::new();
    for (at, input) in config.inputs.iter().enumerate() {
        inputs.push(copy_in(input, &*folder, &format!("input-{at}"), cancel)?);
    }
    let_idle(&world);
    let output = folder.create("sorted").map_err(|error| Failure::named(&error))?;
    let started = Instant::now();
    let (start, collector) = (world.now(), world.with_device(0, Collector::new));
    let options = SortOptions::new(config.order.clone())
        .memory(config.memory_bytes)
        // One thread, which decides alone when modelled time moves.
        .threads(0)
        .temp(vec![Arc::clone(&folder)])
        .compression(CompressionChoice::Fixed(Compression::Off))
        .strategy(config.strategy);
    let engine_inputs =
        inputs.iter().cloned().map(merganser_sort::run::SortInput::Storage).collect();
    let progress = progress::on_stderr(true, cancel);
    let target = SortOutput::Storage(Arc::clone(&output));
    let report = merganser_sort::sort(engine_inputs, target, &options, &*progress)?;
    output.sync().map_err(|error| Failure::named(&error))?;
    let end = world.now();
    let wall_seconds = started.elapsed().as_secs_f64();
    let played = PlayedSpan { requests: 0, start, end };
    // Requests and bytes are the device's own counts, because only the device saw them.
    let results = world.with_device(0, |device| collector.counted(device, played, &model.power()));
    let found = check(config, &inputs, &output, cancel)?;
    if let Some(path) = &config.output {
        copy_out(&*output, path, cancel)?;
    }
    let told = Told { model, config, report, results, found, wall_seconds };
    print(&if config.json { told.data() } else { told.table() })
}

/// Lets the device finish its background work.
fn let_idle(world: &World) {
    while world.advance() {}
}

fn copy_in(
    input: &Input,
    folder: &dyn Directory,
    name: &str,
    cancel: &Cancel,
) -> Result<Arc<dyn Storage>, Failure> {
    let file = folder.create(name).map_err(|error| Failure::named(&error))?;
    let mut reader = input.open(cancel)?;
    let mut piece = vec![0; PIECE];
    let mut offset = 0;
    loop {
        let mut filled = 0;
        while filled < piece.len() {
            match reader.read(&mut piece[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::on_input(input, &error)),
            }
        }
        if filled == 0 {
            break;
        }
        if cancel.is_set() {
            return Err(Failure::Cancelled);
        }
        file.write_at(offset, &piece[..filled]).map_err(|error| Failure::named(&error))?;
        offset += filled as u64;
    }
    file.sync().map_err(|error| Failure::named(&error))?;
    Ok(file)
}

fn copy_out(output: &dyn Storage, path: &std::path::Path, cancel: &Cancel) -> Result<(), Failure> {
    let mut file = output::open(Some(path), cancel)?;
    let mut reader = StorageReader::new(output);
    let mut piece = vec![0; PIECE];
    loop {
        let read = reader.read(&mut piece).map_err(|error| Failure::named(&error))?;
        if read == 0 {
            return Ok(file.finish()?);
        }
        if cancel.is_set() {
            return Err(Failure::Cancelled);
        }
        file.write_all(&piece[..read]).map_err(|error| Failure::named(&error))?;
    }
}

/// Whether the result on the device is in order and holds the records of the inputs.
fn check(
    config: &SimulateSort,
    inputs: &[Arc<dyn Storage>],
    output: &Arc<dyn Storage>,
    cancel: &Cancel,
) -> Result<Summary, Failure> {
    let limits = Limits {
        record_bytes_max: usize::try_from(config.memory_bytes).unwrap_or(usize::MAX).max(1 << 16),
        stop_at_disorder: false,
    };
    let progress = progress::on_stderr(true, cancel);
    let look = |storage: &Arc<dyn Storage>| {
        let mut reader = StorageReader::new(&**storage);
        verify::stream(storage.name(), &mut reader, &config.order, limits, &*progress)
    };
    let found = look(output)?;
    if let Some(disorder) = &found.first_disorder {
        let record = disorder.record;
        return Err(format!("the result on the device is not sorted: record {record}").into());
    }
    if config.order.unique {
        return Ok(found);
    }
    let (mut records, mut checksum) = (0, 0_u128);
    for input in inputs {
        let part = look(input)?;
        records += part.records;
        checksum = checksum.wrapping_add(part.checksum);
    }
    if (records, checksum) != (found.records, found.checksum) {
        return Err(format!(
            "the result on the device has {} records, its inputs {records}, or others",
            found.records
        )
        .into());
    }
    Ok(found)
}

struct Told<'a> {
    model: ModelledDevice,
    config: &'a SimulateSort,
    report: SortReport,
    results: DeviceResults,
    found: Summary,
    wall_seconds: f64,
}

impl Told<'_> {
    fn table(&self) -> String {
        let Told { model, config, report, results, found, wall_seconds } = self;
        let seconds = results.seconds();
        let rate = report.input_bytes as f64 / seconds.max(1e-9);
        let moved = |name: &str, requests, bytes: u64| {
            format!(
                "{name:<14}{} in {} requests, {} for each byte of input\n",
                text::bytes(bytes),
                text::count(requests),
                text::significant(bytes as f64 / report.input_bytes.max(1) as f64)
            )
        };
        let (reads, writes) = (&results.reads, &results.writes);
        let mut out = format!(
            "device        {}: {}\nsorted        {} of {} in {} of memory, {} runs, {} buckets, {} passes more\n\
             virtual time  {} ({}); the host takes no time\n",
            model.name(),
            model.about(),
            text::bytes(report.input_bytes),
            text::count(report.records),
            text::memory(config.memory_bytes),
            report.runs,
            report.buckets,
            report.extra_passes,
            text::seconds(seconds),
            text::rate(rate)
        );
        out.push_str(&moved("device read", reads.requests, reads.bytes));
        out.push_str(&moved("device wrote", writes.requests, writes.bytes));
        out.push_str(&table::of_parts(results));
        out.push_str(&format!(
            "checked       {} records in order, checksum {:x}\nsimulation    {} here, digest {:016x}\n",
            text::count(found.records),
            found.checksum,
            text::seconds(*wall_seconds),
            results.digest
        ));
        out
    }

    fn data(&self) -> String {
        let Told { model, config, report, results, found, wall_seconds } = self;
        let value = json!({
            "device": data::of_model(model),
            "seed": config.device.seed,
            "inputs": config.inputs.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "memory_bytes": config.memory_bytes,
            "sort": serde_json::to_value(report).expect("plain data"),
            "results": data::of_results(results),
            "records": found.records,
            "checksum": format!("{:x}", found.checksum),
            "wall_seconds": wall_seconds,
        });
        format!("{value:#}\n")
    }
}
