//! A program that is run outside of stages, and ends with this process like one.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::process::Stdio;

use super::child::{ChildEnd, ChildRun, Commands, last_lines};
use super::error::CommandEnding;

/// A shell's command that was run to its end.
#[derive(Debug)]
pub struct ToolRun {
    /// `Err` if it was not successful.
    pub result: Result<(), CommandEnding>,
    /// The last lines that it wrote to standard error, on one line.
    pub last: String,
    /// The end of all that it wrote to standard error.
    pub said: Vec<u8>,
}

/// Runs a shell's command whose standard output goes to `output`. All its processes are gone on return, and however this
/// process ends. `None` when `stop` asked for the end.
///
/// # Errors
/// The system's own.
pub fn run_tool(
    command: &OsStr,
    output: File,
    stop: &dyn Fn() -> bool,
) -> io::Result<Option<ToolRun>> {
    let run = ChildRun {
        command,
        variables: &[],
        input: Stdio::null(),
        output: Some(output),
        limit: None,
    };
    let ended = Commands::new()?.run(run, stop)?;
    let run = |ChildEnd { result, said, .. }| ToolRun { result, last: last_lines(&said), said };
    Ok(ended.map(run))
}
