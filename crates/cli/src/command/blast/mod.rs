//! `merganser blast`: a pipeline of makeblastdb and a search, whose archives are merged and formatted.
//!
//! ```text
//!   FASTA ─► partition ─► makeblastdb, alias with the counts of all ─► search, as an archive ┐
//!                                                                                            ├─► one archive ─► output
//!   counted before ────────┘                                               all partitions ───┘   (checked)  formatter
//! ```

mod counting;
mod finish;
mod progress;
mod stages;
mod tools;

use merganser_node::blast::count::Counts;
use merganser_node::blast::mark::Mark;

use super::map::sources;
use super::pipeline::{Job, execute};
use crate::config::BlastConfig;
use crate::failure::{self, Failure};
use crate::signals::Cancel;
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
    let tools = Tools::find(config.search.program)?;
    let version = tools.version()?;
    if !version.starts_with(TESTED) {
        failure::notice(&format!(
            "BLAST+ {version} is installed; the results were compared with those of BLAST+ {TESTED}0"
        ));
    }
    let query = Mark::of(&config.query).map_err(|error| Failure::on(&config.query, &error))?;
    let progress = progress::on_stderr(config.quiet);
    progress.says("counting the database");
    let counts = counting::count(config, cancel)?;
    drop(progress);
    if counts.sequences == 0 {
        return Err("-db: the files have no sequence".to_owned().into());
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
