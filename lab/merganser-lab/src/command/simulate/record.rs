//! `merganser simulate record`.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use merganser_device::trace::{self, TraceError, TraceRecorder, TraceWriter};
use merganser_results::output::ResultOutput;
use merganser_results::stopped::Stopped;
use merganser_shell::failure::Failure;
use merganser_shell::input::{Input, OpenInputs};
use merganser_shell::opened::open_folder;
use merganser_shell::output;
use merganser_shell::progress;
use merganser_shell::signals::Cancel;
use merganser_sort::run::Compression;
use merganser_sort::{CompressionChoice, SortOptions, SortOutput};
use merganser_storage::{Directory, RealClock, Storage};

use super::opened;
use super::play::trace_sentence;
use crate::config::{RecordOf, SimulateRecord, TraceReading};

/// Writes a trace of something else.
pub(super) fn run(config: &SimulateRecord, cancel: &Cancel) -> Result<(), Failure> {
    let path = config.output.as_deref();
    match &config.of {
        RecordOf::Trace(input, reading) => convert(input, reading, path, cancel),
        RecordOf::Sort { inputs, memory_bytes, temp_dir } => {
            sorted(inputs, *memory_bytes, temp_dir, path, cancel)
        }
    }
}

fn convert(
    input: &Input,
    reading: &TraceReading,
    path: Option<&Path>,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let on_input =
        |error: TraceError| Failure::from(format!("{input}: {}", trace_sentence(&error)));
    let mut trace =
        trace::read(opened::open(input, cancel)?, &reading.options).map_err(on_input)?;
    let mut output = output::open(path, cancel)?;
    let mut write = || -> io::Result<Result<(), TraceError>> {
        let mut writer = TraceWriter::new(BufWriter::new(&mut output))?;
        writer.comment(&format!("of {input}, {}", trace.format().name()))?;
        for request in trace.by_ref() {
            match request {
                Ok(request) => writer.write(&request)?,
                Err(error) => return Ok(Err(error)),
            }
            if cancel.is_set() {
                return Ok(Err(io::Error::from(Stopped::Cancelled).into()));
            }
        }
        writer.finish()?;
        Ok(Ok(()))
    };
    match write() {
        Ok(Ok(())) => Ok(output.finish()?),
        Ok(Err(_)) if cancel.is_set() => Err(Failure::Cancelled),
        Ok(Err(error)) => Err(on_input(error)),
        Err(error) => Err(Failure::named(&error)),
    }
}

/// Sorts for real, with every request to a storage noted.
fn sorted(
    inputs: &[Input],
    memory_bytes: u64,
    temp_dir: &Path,
    path: Option<&Path>,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let mut output = output::open(path, cancel)?;
    let recorder =
        TraceRecorder::new(Arc::new(RealClock::new()), Some(merganser_array::content_hash));
    let open = OpenInputs::of_sort();
    let opened: Result<Vec<_>, Failure> = inputs
        .iter()
        .map(|input| match input.open_for_sort(&open, cancel)? {
            merganser_sort::run::SortInput::Storage(storage) => {
                Ok(merganser_sort::run::SortInput::Storage(recorder.storage(storage)))
            }
            _ => Err(Failure::from(format!(
                "{input}: is no file; a sort is recorded of files, whose reads have places"
            ))),
        })
        .collect();
    let folder: Arc<dyn Directory> = open_folder(temp_dir)?;
    // The result is written like a result and thrown away.
    let target: Arc<dyn Storage> =
        folder.create_unnamed().map_err(|error| Failure::named(&error))?;
    let options = SortOptions::new(merganser_sort::key::OrderSpec::new(
        merganser_sort::record::Format::Lines { delimiter: b'\n' },
    ))
    .memory(memory_bytes)
    // One thread, which decides alone when modelled time moves.
    .threads(0)
    .temp(vec![recorder.directory(Arc::clone(&folder))])
    .compression(CompressionChoice::Fixed(Compression::Off));
    let progress = progress::on_stderr(true, cancel);
    let report = merganser_sort::sort(
        opened?,
        SortOutput::Storage(recorder.storage(target)),
        &options,
        &*progress,
    )?;
    let requests = recorder.requests();
    let write = |output: &mut ResultOutput| -> io::Result<()> {
        let mut writer = TraceWriter::new(BufWriter::new(output))?;
        writer.comment(&format!(
            "a sort of {} bytes into {} with {memory_bytes} bytes of memory, {} runs",
            report.input_bytes, report.output_bytes, report.runs
        ))?;
        for request in &requests {
            writer.write(request)?;
        }
        writer.finish()?.flush()
    };
    write(&mut output).map_err(|error| Failure::named(&error))?;
    Ok(output.finish()?)
}
