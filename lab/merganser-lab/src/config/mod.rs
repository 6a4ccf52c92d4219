//! The meaning of the arguments.
//!
//! The one conversion from [`crate::args`]: defaults are filled in, conflicts are found, and every
//! refusal names the flag. The types here have no options left that contradict one another.

mod emulate;
mod reproduce;
mod simulate;
mod simulate_array;
mod trace_reading;
mod workload;

pub(crate) use emulate::{BackingConfig, EmulateConfig};
pub(crate) use reproduce::ReproduceConfig;
pub(crate) use simulate::{
    DeviceChoice, PlayedLoad, RecordOf, SimulateConfig, SimulateRates, SimulateRecord, SimulateRun,
    SimulateSort,
};
pub(crate) use simulate_array::SimulateArray;
pub(crate) use trace_reading::TraceReading;
pub(crate) use workload::{StreamChoice, SyntheticRequests};

#[cfg(test)]
mod tests {
    use clap::Parser;
    use merganser_shell::failure::Failure;

    use super::*;
    use crate::args::{LabCommand, LabLine};

    /// The command of these words.
    pub(super) fn config(words: &[&str]) -> LabCommand {
        let words = [&["merganser"], words].concat();
        LabLine::try_parse_from(words).expect("parses").command
    }

    /// The sentence of the refusal of these words.
    pub(super) fn refusal(words: &[&str]) -> String {
        let refused = match config(words) {
            LabCommand::Simulate(typed) => SimulateConfig::try_from(typed).err(),
            LabCommand::Emulate(typed) => EmulateConfig::try_from(typed).err(),
            LabCommand::Reproduce(typed) => ReproduceConfig::try_from(typed).err(),
        };
        refused.as_ref().and_then(Failure::sentence).expect("refused").to_owned()
    }
}
