//! `merganser generate`.

use crate::config::GenerateConfig;
use crate::failure::Failure;
use crate::output::Output;
use crate::signals::Cancel;
use crate::{generate, progress};

/// Makes the data set.
pub fn run(config: GenerateConfig, cancel: &Cancel) -> Result<(), Failure> {
    let mut output = Output::open(config.output.as_deref(), cancel)?;
    let progress = progress::on_stderr(config.quiet, cancel);
    let records = config.numbers.end - config.numbers.start;
    progress
        .phase("generating", Some(records.saturating_mul(config.generator.record_bytes_mean())));
    generate::write(&*config.generator, config.numbers, config.threads, &mut output, &*progress)
        .map_err(|error| Failure::named(&error))?;
    output.finish()
}
