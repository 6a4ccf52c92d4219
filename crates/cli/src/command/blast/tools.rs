//! The programs of BLAST+.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use merganser_node::blast::program::Program;
use merganser_node::pipeline::run_tool;

use crate::failure::Failure;
use crate::signals::Cancel;

/// Before each command: nothing that surrounds it changes results, and BLAST+ does not report its use over the network.
const SURROUNDINGS: &str =
    "unset BATCH_SIZE CHUNK_SIZE OVERLAP_CHUNK_SIZE; export BLAST_USAGE_REPORT=false";

/// Letters of queries in a batch of blastn. Without it, blastn chooses the size of a batch by the hits of the one before,
/// so that partitions would have other batches.
const BATCH_LETTERS: u64 = 100_000;

/// The programs that a search needs, all installed.
#[derive(Debug, Clone, Copy)]
pub struct Tools {
    program: Program,
}

impl Tools {
    /// Looks for all programs.
    ///
    /// # Errors
    /// A sentence that says what to install.
    pub fn find(program: Program) -> Result<Self, Failure> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        for tool in ["makeblastdb", program.name(), "blastdbcmd", "blast_formatter"] {
            if !std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()) {
                return Err(format!(
                    "{tool}: is not installed; install BLAST+ (on Debian and Ubuntu: apt-get install ncbi-blast+), then repeat the command"
                )
                .into());
            }
        }
        Ok(Tools { program })
    }

    /// The version of BLAST+, such as `2.12.0+`.
    ///
    /// # Errors
    /// A program that does not say it.
    pub fn version(self) -> Result<String, Failure> {
        let program = self.program.name();
        let ran = Command::new(program).arg("-version").stdin(Stdio::null()).output();
        let ran = ran.map_err(|error| Failure::on(Path::new(program), &error))?;
        let said = String::from_utf8_lossy(&ran.stdout);
        let version = said.lines().next().and_then(|line| line.split_once(": "));
        match version {
            Some((_, version)) => Ok(version.trim().to_owned()),
            None => Err(format!("{program} -version: does not say its version").into()),
        }
    }
}

/// What a command wrote.
pub struct Said {
    /// To standard output.
    pub printed: Vec<u8>,
    /// To standard error.
    pub warned: Vec<u8>,
}

/// The shell's command for a program in a folder, with the same surroundings for all.
pub fn command(folder: &str, command: &str) -> String {
    format!("cd {folder} && {SURROUNDINGS} && {command}")
}

/// The letters of queries in a batch, for a program; `None` for its own choice.
pub fn usual_batch(program: Program) -> Option<u64> {
    (program == Program::Blastn).then_some(BATCH_LETTERS)
}

/// A search of a database in batches of this size, without its output.
pub fn search(
    program: Program,
    batch: Option<u64>,
    query: &str,
    database: &str,
    options: &[String],
) -> String {
    let batch = batch.map(|letters| format!("BATCH_SIZE={letters} ")).unwrap_or_default();
    let options: String = options.iter().map(|word| format!(" {}", quoted(word))).collect();
    format!("{batch}{} -query {} -db {database}{options}", program.name(), quoted(query))
}

/// A word of a shell's command.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Runs a program in a folder of this process; gives what it wrote.
///
/// # Errors
/// The sentence of a program that fails; the end, if it is asked for.
pub fn run(folder: &Path, words: &str, cancel: &Cancel) -> Result<Said, Failure> {
    let printed = folder.join("printed");
    let on_printed = |error: std::io::Error| Failure::on(&printed, &error);
    let output = File::create(&printed).map_err(on_printed)?;
    let Some(shown) = folder.to_str() else {
        return Err(
            format!("{}: its name is not UTF-8, which is needed here", folder.display()).into()
        );
    };
    let line = command(&quoted(shown), words);
    let name = words.split_whitespace().find(|word| !word.contains('=')).unwrap_or_default();
    let ran = run_tool(OsStr::new(&line), output, &|| cancel.is_set());
    let Some(ran) = ran.map_err(|error| Failure::on(Path::new(name), &error))? else {
        return Err(Failure::Cancelled);
    };
    if let Err(ending) = ran.result {
        let last = if ran.last.is_empty() { "nothing" } else { &ran.last };
        return Err(format!("{name} {ending}; it wrote: {last}").into());
    }
    Ok(Said { printed: fs::read(&printed).map_err(on_printed)?, warned: ran.said })
}
