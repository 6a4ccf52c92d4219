//! The meaning of the arguments.
//!
//! The one conversion from [`crate::args`]: defaults are filled in, conflicts are found, and every
//! refusal names the flag. The types here have no options left that contradict one another.

mod count;
mod export;
mod generate;
mod sort;
mod verify;
mod view;

pub(crate) use count::CountConfig;
pub(crate) use export::ExportConfig;
pub(crate) use generate::GenerateConfig;
pub(crate) use sort::{SortChoices, SortConfig, SortTask};
pub(crate) use verify::{VerifyConfig, VerifySubject};
pub(crate) use view::{CatConfig, CatPart, InfoConfig, MaterializeConfig, MountConfig};

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{CliCommand, CommandLine};
    use merganser_shell::failure::Failure;

    /// The command of these words.
    pub(super) fn config(words: &[&str]) -> CliCommand {
        let words = [&["merganser"], words].concat();
        CommandLine::try_parse_from(words).expect("parses").command
    }

    /// The sentence of the refusal of these words.
    pub(super) fn refusal(words: &[&str]) -> String {
        let refused = match config(words) {
            CliCommand::Sort(typed) => SortConfig::try_from(typed).err(),
            CliCommand::Count(typed) => CountConfig::try_from(typed).err(),
            CliCommand::Cat(typed) => CatConfig::try_from(typed).err(),
            CliCommand::Mount(typed) => MountConfig::try_from(typed).err(),
            CliCommand::Export(typed) => ExportConfig::try_from(typed).err(),
            CliCommand::Materialize(typed) => MaterializeConfig::try_from(typed).err(),
            CliCommand::Verify(typed) => VerifyConfig::try_from(typed).err(),
            CliCommand::Generate(typed) => GenerateConfig::try_from(typed).err(),
            CliCommand::Info(typed) => InfoConfig::try_from(typed).err(),
            CliCommand::Recover(_) | CliCommand::Completions(_) | CliCommand::Man(_) => None,
        };
        refused.as_ref().and_then(Failure::sentence).expect("refused").to_owned()
    }
}
