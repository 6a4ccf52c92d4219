//! The programs of BLAST+.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use merganser_pipeline::blast::program::{BlastProgram, Molecule};
use merganser_pipeline::{PlainNames, run_tool};
use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;

/// Before each command: nothing that surrounds it changes results, and BLAST+ neither reports its use over the network nor
/// asks there for sequences that a query names (the setting DATA_LOADERS of .ncbirc, as a variable of NCBI's toolkit).
const SURROUNDINGS: &str = "unset BATCH_SIZE CHUNK_SIZE OVERLAP_CHUNK_SIZE; \
    export BLAST_USAGE_REPORT=false NCBI_CONFIG__BLAST__DATA_LOADERS=none";

/// Letters of queries in a batch of blastn. Without it, blastn chooses the size of a batch by the hits of the one before,
/// so that partitions would have other batches.
const BATCH_LETTERS: u64 = 100_000;

/// Letters of a sequence that nothing is like.
const UNKNOWN_LETTERS: usize = 30;

/// The programs that a search needs, all installed.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlastTools {
    program: BlastProgram,
}

impl BlastTools {
    /// Looks for all programs.
    ///
    /// # Errors
    /// A sentence that says what to install.
    pub(super) fn find(program: BlastProgram) -> Result<Self, Failure> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        for tool in ["makeblastdb", program.name(), "blastdbcmd", "blast_formatter"] {
            if !std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()) {
                return Err(format!(
                    "{tool}: is not installed; install BLAST+ (on Debian and Ubuntu: apt-get install ncbi-blast+), then repeat the command"
                )
                .into());
            }
        }
        Ok(BlastTools { program })
    }

    /// The version of BLAST+, such as `2.12.0+`.
    ///
    /// # Errors
    /// A program that does not say it.
    pub(super) fn version(self) -> Result<String, Failure> {
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
pub(super) struct Said {
    /// To standard output.
    pub printed: Vec<u8>,
    /// To standard error.
    pub warned: Vec<u8>,
}

/// The shell's command for a program in a folder, with the same surroundings for all.
pub(super) fn command(folder: &str, command: &str) -> String {
    format!("cd {folder} && {SURROUNDINGS} && {command}")
}

/// The letters of queries in a batch, for a program; `None` for its own choice.
pub(super) fn usual_batch(program: BlastProgram) -> Option<u64> {
    (program == BlastProgram::Blastn).then_some(BATCH_LETTERS)
}

/// A search of a database in batches of this size, without its output.
pub(super) fn search(
    program: BlastProgram,
    batch: Option<u64>,
    query: &str,
    database: &str,
    options: &[String],
) -> String {
    let batch = batch.map(|letters| format!("BATCH_SIZE={letters} ")).unwrap_or_default();
    let options: String = options.iter().map(|word| format!(" {}", quoted(word))).collect();
    format!("{batch}{} -query {} -db {database}{options}", program.name(), quoted(query))
}

/// A word of a command for sh (which does not know the `$'...'` of [`merganser_shell::shown`]), in which a pipeline finds no places.
pub(super) fn quoted(word: &str) -> String {
    // Two quotes end and begin the quoted text, so that sh joins it again: `'q{''k}.fa'`.
    format!("'{}'", word.replace('\'', "'\\''").replace('{', "{''"))
}

/// Runs a program in a folder of this process; gives what it wrote.
///
/// # Errors
/// The sentence of a program that fails; the end, if it is asked for.
pub(super) fn run(folder: &Path, words: &str, cancel: &Cancel) -> Result<Said, Failure> {
    let names = PlainNames::of_folder(folder).map_err(|error| Failure::on(folder, &error))?;
    let line = command(names.folder(), words);
    let printed = folder.join("printed");
    let on_printed = |error: std::io::Error| Failure::on(&printed, &error);
    let output = File::create(&printed).map_err(on_printed)?;
    let name = words.split_whitespace().find(|word| !word.contains('=')).unwrap_or_default();
    let warned = run_line(name, &line, output, cancel)?;
    Ok(Said { printed: fs::read(&printed).map_err(on_printed)?, warned })
}

/// Runs the search of one sequence of unknown letters, without a database and without an output: options and queries that BLAST
/// refuses are found before anything is counted or formatted.
///
/// # Errors
/// The sentence of BLAST; the end, if it is asked for.
pub(super) fn try_search(
    program: BlastProgram,
    query: &str,
    options: &[String],
    cancel: &Cancel,
) -> Result<(), Failure> {
    let null = Path::new("/dev/null");
    let output = File::create(null).map_err(|error| Failure::on(null, &error))?;
    let options: String = options.iter().map(|word| format!(" {}", quoted(word))).collect();
    let line = format!(
        "{SURROUNDINGS} && printf %s {} | {} -query {} -subject /dev/stdin{options} -out /dev/null",
        quoted(&unknown(program.database())),
        program.name(),
        quoted(query),
    );
    run_line(program.name(), &line, output, cancel).map(drop)
}

/// A sequence of unknown letters, which nothing is like, as FASTA.
pub(super) fn unknown(molecule: Molecule) -> String {
    let letter = match molecule {
        Molecule::Nucleotide => "N",
        Molecule::Protein => "X",
    };
    format!(">frame\n{}\n", letter.repeat(UNKNOWN_LETTERS))
}

/// Runs the shell's command `line`, which is shown as `name`; gives its standard error.
fn run_line(name: &str, line: &str, output: File, cancel: &Cancel) -> Result<Vec<u8>, Failure> {
    let ran = run_tool(OsStr::new(line), output, &|| cancel.is_set());
    let Some(ran) = ran.map_err(|error| Failure::on(Path::new(name), &error))? else {
        return Err(Failure::Cancelled);
    };
    if let Err(ending) = ran.result {
        let last = if ran.last.is_empty() { "nothing" } else { &ran.last };
        return Err(format!("{name} {ending}; it wrote: {last}").into());
    }
    Ok(ran.said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_are_the_same_for_sh_and_have_no_places() {
        for word in
            ["q{k}.fa", "{in}", "it's {out}", "{'{}'}", "${k} `a` \\ \"", "{format.dir}", "{"]
        {
            let quoted = quoted(word);
            for place in ["{k}", "{in}", "{out}", "{format.dir}"] {
                assert!(!quoted.contains(place), "{quoted}");
            }
            let printed = Command::new("sh").args(["-c", &format!("printf %s {quoted}")]).output();
            assert_eq!(String::from_utf8_lossy(&printed.expect("it starts").stdout), word);
        }
    }
}
