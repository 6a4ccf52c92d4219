//! The controls: Phoenix 2.0, which McSD extends, and Phoenix++ 1.0, built from the folder that
//! `PHOENIX_DIR` names (a checkout with `phoenix-2.0` and `phoenix++-1.0`).

use std::path::{Path, PathBuf};
use std::process::Command;

use super::job::ContestJob;
use crate::error::ExperimentError;

/// The variable that names the folder.
const VARIABLE: &str = "PHOENIX_DIR";

/// Both programs' builds.
pub(super) struct Phoenix {
    folder: PathBuf,
}

/// A program of Stanford's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PhoenixVersion {
    Two,
    PlusPlus,
}

impl PhoenixVersion {
    fn folder(self) -> &'static str {
        match self {
            PhoenixVersion::Two => "phoenix-2.0",
            PhoenixVersion::PlusPlus => "phoenix++-1.0",
        }
    }
}

impl Phoenix {
    /// Copies the sources into `scratch` and builds them; `None` if the variable is not set.
    pub(super) fn build(scratch: &Path) -> Result<Option<Self>, ExperimentError> {
        let Some(sources) = std::env::var_os(VARIABLE) else { return Ok(None) };
        let phoenix = Phoenix { folder: scratch.join("phoenix") };
        std::fs::create_dir(&phoenix.folder)
            .map_err(|error| ExperimentError::on(&phoenix.folder, error))?;
        for version in [PhoenixVersion::Two, PhoenixVersion::PlusPlus] {
            let from = Path::new(&sources).join(version.folder());
            run(Command::new("cp").arg("-r").arg(&from).arg(&phoenix.folder))?;
            let root = phoenix.folder.join(version.folder());
            // Without the folder, the library is copied to a file of that name; sources that were built by hand have one.
            run(Command::new("rm").arg("-rf").arg(root.join("lib")))?;
            run(Command::new("mkdir").arg(root.join("lib")))?;
            for part in ["src", "tests/word_count", "tests/string_match"] {
                let mut make = Command::new("make");
                // Sources of 2007 to 2011, with what was a warning then.
                make.args(["CC=gcc -w -fcommon", "CXX=g++ -w -fpermissive"]);
                run(make.arg("-C").arg(root.join(part)))?;
            }
        }
        Ok(Some(phoenix))
    }

    /// The program for a job.
    pub(super) fn program(&self, version: PhoenixVersion, job: ContestJob) -> PathBuf {
        let name = match job {
            ContestJob::WordCount => "word_count",
            ContestJob::StringMatch => "string_match",
        };
        self.folder.join(version.folder()).join("tests").join(name).join(name)
    }
}

fn run(command: &mut Command) -> Result<(), ExperimentError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|error| ExperimentError::on(Path::new(&name), error))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said = said.lines().last().unwrap_or("it failed").to_owned();
    let message = format!("{said}; {VARIABLE} is to name a checkout of Phoenix with its sources");
    Err(ExperimentError::Command { command: name, message })
}
