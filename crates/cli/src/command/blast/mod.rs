//! `merganser blast`: a pipeline of makeblastdb and a search, whose archives are merged and formatted.
//!
//! ```text
//!   FASTA ─► partition ─► makeblastdb, alias with the counts of all ─► search, as an archive ┐
//!                                                                                            ├─► one archive ─► output
//!   counted before ────────┘                                               all partitions ───┘   (checked)  formatter
//! ```

mod counting;
mod finish;
mod stages;
mod tools;

use merganser_node::blast::count::Counts;
use merganser_node::blast::mark::Mark;

use super::map::sources;
use super::pipeline::{Job, execute};
use crate::config::BlastConfig;
use crate::failure::{self, Failure};
use crate::progress;
use crate::shown;
use crate::signals::Cancel;
use crate::unfinished::Target;
use tools::Tools;

/// The version of BLAST+ that the tests compare with.
const TESTED: &str = "2.12.";

/// Everything that a search depends on and that is looked at once.
struct Facts {
    /// The version of BLAST+.
    version: String,
    /// The counts of the database.
    counts: Counts,
    /// The queries, as they are now.
    query: Mark,
}

/// Searches.
pub fn run(config: &BlastConfig, cancel: &Cancel) -> Result<(), Failure> {
    check_output(config)?;
    let tools = Tools::find(config.search.program)?;
    let version = tools.version()?;
    if !version.starts_with(TESTED) {
        failure::notice(&format!(
            "BLAST+ {version} is installed; the results were compared with those of BLAST+ {TESTED}0"
        ));
    }
    let query = Mark::of(&config.query).map_err(|error| Failure::on(&config.query, &error))?;
    let options = stages::printed_options(&config.search);
    let progress = progress::on_stderr(config.quiet, cancel);
    progress.phase("trying the search", None);
    tools::try_search(config.search.program, &config.query_text(), &options, cancel)?;
    progress.phase("counting the database", None);
    let counts = counting::count(config, &*progress, cancel)?;
    drop(progress);
    if counts.sequences == 0 {
        return Err("-db: the files have no sequence".to_owned().into());
    }
    if counts.empty > 0 {
        return Err(format!(
            "-db: {} of {} sequences have no letters, and makeblastdb leaves them out; remove them, then repeat the command",
            counts.empty, counts.sequences
        )
        .into());
    }
    let facts = Facts { version, counts, query };
    let job = Job {
        inputs: &config.inputs,
        output: &config.output,
        report: config.report.as_ref(),
        quiet: config.quiet,
        settings: &|folder, command, _| stages::settings(config, &facts, folder, command),
        finish: &|folder, partial| finish::finish(config, &facts, (folder, partial), cancel),
    };
    execute(&job, cancel)
}

/// Checks before any work that the output can get its name, and that BLAST can work in a folder next to it.
fn check_output(config: &BlastConfig) -> Result<(), Failure> {
    let target = Target::new(&config.output)?;
    target.check_file()?;
    let path = target.path();
    let Some(text) = path.to_str() else {
        return Err("-out: the name of its folder is not UTF-8, which is needed here"
            .to_owned()
            .into());
    };
    // BLAST looks for databases in several folders, and separates their names by colons.
    if text.contains(':') {
        return Err(format!(
            "-out: {} has a ':', and BLAST can't open the database next to it then; give another file",
            shown::name(&path)
        )
        .into());
    }
    Ok(())
}
