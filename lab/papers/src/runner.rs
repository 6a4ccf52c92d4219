//! Runs a script of `lab/bench/hadoop`. It is a program of its own because it starts daemons, mounts disks and makes
//! control groups; an experiment needs only the JSON file that it writes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::child::Child;
use crate::error::ExperimentError;
use crate::lab::Lab;

/// The path of a script.
///
/// # Errors
/// [`ExperimentError::RunnerMissing`].
pub fn find(lab: &Lab<'_>, name: &str) -> Result<PathBuf, ExperimentError> {
    let script = lab.setup.bench.join(name);
    if script.is_file() { Ok(script) } else { Err(ExperimentError::RunnerMissing { path: script }) }
}

/// A command that runs a script and prints nothing.
pub fn command(script: &Path) -> Command {
    let mut command = Command::new("python3");
    command.arg(script).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Runs a command of `script` to its end.
///
/// # Errors
/// When it fails, and [`ExperimentError::Cancelled`].
pub fn run(lab: &Lab<'_>, script: &Path, mut command: Command) -> Result<(), ExperimentError> {
    lab.progress.phase("running jobs", None);
    lab.check_cancelled()?;
    let failed = |error: std::io::Error| ExperimentError::on(script, error);
    let running = Child::watched(lab);
    let mut child = command.spawn().map_err(failed)?;
    running.set(Some(child.id()));
    // Not a plain wait: that would reap it while a signal may be on its way to its number.
    let status = loop {
        if let Some(status) = running.poll(&mut child).map_err(failed)? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    lab.check_cancelled()?;
    if status.success() {
        Ok(())
    } else {
        Err(ExperimentError::RunnerFailed { path: script.to_owned(), status })
    }
}
