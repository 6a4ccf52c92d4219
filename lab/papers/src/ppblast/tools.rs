//! The programs of other projects that are timed.

use std::path::Path;
use std::process::Command;

use crate::error::ExperimentError;

/// The programs that are installed.
#[derive(Debug)]
pub(super) struct InstalledTools {
    /// The first line of `blastp -version`.
    pub blast: String,
    /// The first line of `mpirun --version`, if there is one.
    pub mpirun: Option<String>,
}

impl InstalledTools {
    /// Looks for the programs; without BLAST there is nothing to measure.
    pub(super) fn find(experiment: &'static str) -> Result<Self, ExperimentError> {
        let needs = |what: &str| ExperimentError::Needs { experiment, what: what.to_owned() };
        let blast = first_line("blastp", "-version");
        let (Some(blast), Some(_)) = (blast, first_line("makeblastdb", "-version")) else {
            return Err(needs(
                "makeblastdb and blastp of NCBI BLAST+; `apt-get install ncbi-blast+` installs them on Debian and Ubuntu",
            ));
        };
        if first_line("taskset", "--version").is_none() {
            return Err(needs("the command taskset of util-linux"));
        }
        Ok(InstalledTools { blast, mpirun: first_line("mpirun", "--version") })
    }
}

/// The first line that a program prints; `None` if it is not there or fails.
fn first_line(program: &str, flag: &str) -> Option<String> {
    let output = Command::new(Path::new(program)).arg(flag).output().ok()?;
    let printed = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or("").to_owned();
    output.status.success().then_some(printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_or_fails_has_no_line() {
        assert_eq!(first_line("no-such-program", "--version"), None);
        assert_eq!(first_line("false", "--version"), None);
        assert!(first_line("taskset", "--version").is_none_or(|line| !line.is_empty()));
    }
}
