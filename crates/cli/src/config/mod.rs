//! What the arguments mean.
//!
//! The one conversion from [`crate::args`]: defaults are filled in, conflicts are found, and every refusal names the
//! flag. The types here have no options left that contradict one another.

mod generate;
mod memory;

pub use generate::GenerateConfig;

use crate::failure::Failure;

/// The number of threads: what was asked, or one a processor.
fn threads(typed: Option<usize>) -> Result<usize, Failure> {
    match typed {
        Some(0) => Err("--threads: at least 1".to_owned().into()),
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::GenerateConfig;
    use crate::args::{Command, Typed};
    use crate::failure::Failure;

    /// The command of these words.
    pub fn config(words: &[&str]) -> Command {
        let words = [&["merganser"], words].concat();
        Typed::try_parse_from(words).expect("parses").command
    }

    /// The sentence with which the conversion refuses these words.
    pub fn refusal(words: &[&str]) -> String {
        let refused = match config(words) {
            Command::Generate(typed) => GenerateConfig::try_from(typed).err(),
            _ => unreachable!("no conversion"),
        };
        refused.as_ref().and_then(Failure::sentence).expect("refused").to_owned()
    }
}
