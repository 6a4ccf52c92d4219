//! `merganser generate`.

use std::ops::Range;

use merganser_results::output::ResultOutput;
use merganser_shell::failure::Failure;
use merganser_shell::output;
use merganser_shell::progress;
use merganser_shell::signals::Cancel;
use merganser_sort::Progress;

use crate::config::GenerateConfig;
use crate::generate;
use crate::generate::Generator;

/// Makes the data set, and the table of the truth about it where it has one.
pub(super) fn run(config: GenerateConfig, cancel: &Cancel) -> Result<(), Failure> {
    let GenerateConfig { generator, numbers, output, truth, threads, quiet } = config;
    let mut output = output::open(output.as_deref(), cancel)?;
    let mut table = match &truth {
        Some((_, path)) => Some(output::open(Some(path), cancel)?),
        None => None,
    };
    let progress = progress::on_stderr(quiet, cancel);
    write("generating", &*generator, numbers.clone(), threads, &mut output, &*progress)?;
    if let (Some((rows, _)), Some(table)) = (&truth, &mut table) {
        write("generating the truth", &**rows, numbers, threads, table, &*progress)?;
    }
    output.finish()?;
    Ok(table.map_or(Ok(()), ResultOutput::finish)?)
}

fn write(
    phase: &'static str,
    generator: &dyn Generator,
    numbers: Range<u64>,
    threads: usize,
    output: &mut ResultOutput,
    progress: &dyn Progress,
) -> Result<(), Failure> {
    let records = numbers.end - numbers.start;
    progress.phase(phase, Some(records.saturating_mul(generator.record_bytes_mean())));
    generate::write(generator, numbers, threads, output, progress)
        .map(|_| ())
        .map_err(|error| Failure::named(&error))
}
