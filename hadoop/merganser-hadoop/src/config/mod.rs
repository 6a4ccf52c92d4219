//! The meaning of the arguments.
//!
//! The one conversion from [`crate::args`]: defaults are filled in, conflicts are found, and every
//! refusal names the flag. The types here have no options left that contradict one another.

mod advise;
mod serve;

pub(crate) use advise::{
    AdviseConfig, AdviseJob, AdviseMaps, AdviseOn, HadoopJob, ModelChoice, TaskStart,
    assumed as assumed_of_job,
};
pub(crate) use serve::{HadoopServeConfig, HdfsConfig, ShuffleConfig};

#[cfg(test)]
mod tests {
    use clap::Parser;
    use merganser_shell::failure::Failure;

    use super::*;
    use crate::args::{HadoopCommand, HadoopLine, HadoopTask};

    /// The command of these words.
    pub(super) fn config(words: &[&str]) -> HadoopTask {
        let words = [&["merganser"], words].concat();
        let HadoopCommand::Hadoop(typed) =
            HadoopLine::try_parse_from(words).expect("parses").command;
        typed.what
    }

    /// The sentence of the refusal of these words.
    pub(super) fn refusal(words: &[&str]) -> String {
        let refused = match config(words) {
            HadoopTask::Advise(typed) => AdviseConfig::try_from(typed).err(),
            HadoopTask::Serve(typed) => HadoopServeConfig::try_from(typed).err(),
        };
        refused.as_ref().and_then(Failure::sentence).expect("refused").to_owned()
    }
}
