//! The meaning of the arguments.
//!
//! The one conversion from [`crate::args`]: defaults are filled in, conflicts are found, and every
//! refusal names the flag. The types here have no options left that contradict one another.

mod array;

pub(crate) use array::{ArrayConfig, ArrayCreate, ArrayServe};

#[cfg(test)]
mod tests {
    use clap::Parser;
    use merganser_shell::failure::Failure;

    use super::*;
    use crate::args::{VolumeCommand, VolumeLine};

    /// The command of these words.
    pub(super) fn config(words: &[&str]) -> VolumeCommand {
        let words = [&["merganser"], words].concat();
        VolumeLine::try_parse_from(words).expect("parses").command
    }

    /// The sentence of the refusal of these words.
    pub(super) fn refusal(words: &[&str]) -> String {
        let refused = match config(words) {
            VolumeCommand::Array(typed) => ArrayConfig::try_from(typed).err(),
        };
        refused.as_ref().and_then(Failure::sentence).expect("refused").to_owned()
    }
}
