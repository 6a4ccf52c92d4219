//! `merganser blast`: a pipeline of makeblastdb and a search, whose archives are merged and formatted.
//!
//! ```text
//!   FASTA ─► partition ─► makeblastdb, alias with the counts of all ─► search, as an archive ┐
//!                                                                                            ├─► one archive ─► output
//!   counted before ────────┘                                               all partitions ───┘   (checked)  formatter
//! ```

mod counting;
mod finish;
mod queries;
mod stages;
mod tools;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use merganser_pipeline::blast::count::DatabaseCounts;
use merganser_pipeline::blast::mark::FileMark;
use merganser_results::unfinished::Target;
use merganser_shell::failure::Failure;
use merganser_shell::output::{self, refuse_compressed};
use merganser_shell::signals::Cancel;
use merganser_shell::{failure, progress, shown};
use merganser_sort::Progress;
use merganser_sort::run::magic::ContentKind;
use merganser_storage::thread::spawn_scoped;

use super::map::sources;
use super::pipeline::{PipelineJob, execute};
use crate::config::BlastConfig;
use queries::Queries;
use tools::BlastTools;

/// The version of BLAST+ that the tests compare with.
const TESTED: &str = "2.12.";

/// Everything that a search depends on and that is looked at once.
struct SearchFacts {
    /// The version of BLAST+.
    version: String,
    /// The counts of the database.
    counts: DatabaseCounts,
    /// The queries, as they are now.
    query: FileMark,
}

/// Searches.
pub(super) fn run(config: &BlastConfig, cancel: &Cancel) -> Result<(), Failure> {
    check_output(config)?;
    let tools = BlastTools::find(config.search.program)?;
    let query =
        FileMark::of_path(&config.query).map_err(|error| Failure::on(&config.query, &error))?;
    if queries::look(config)? == Queries::None {
        let shown = shown::name(&config.query);
        failure::notice(&format!("-query: {shown} has no query, so the output is empty"));
        return Ok(output::open(Some(&config.output), cancel)?.finish()?);
    }
    let progress = progress::on_stderr(config.quiet, cancel);
    let (version, counts) = try_and_count(config, tools, &*progress, cancel)?;
    drop(progress);
    if !version.starts_with(TESTED) {
        failure::notice(&format!(
            "BLAST+ {version} is installed; the results were compared with those of BLAST+ {TESTED}0"
        ));
    }
    if counts.sequences == 0 {
        return Err("-db: the files have no sequence".to_owned().into());
    }
    if counts.with_letters() == 0 {
        return Err("-db: no sequence of the files has letters".to_owned().into());
    }
    if counts.empty > 0 {
        failure::notice(&format!(
            "-db: {} of {} sequences have no letters and are left out, as makeblastdb does",
            counts.empty, counts.sequences
        ));
    }
    let facts = SearchFacts { version, counts, query };
    let job = PipelineJob {
        inputs: &config.inputs,
        content: ContentKind::Text,
        output: &config.output,
        report: config.report.as_ref(),
        quiet: config.quiet,
        settings: &|folder, command, _| stages::settings(config, &facts, folder, command),
        finish: &|folder, partial| finish::finish(config, &facts, (folder, partial), cancel),
    };
    execute(&job, cancel)
}

/// Counts the database, and meanwhile asks BLAST+ for its version and tries the search: in a short search, the starts of
/// programs take most of the time. A search that BLAST refuses ends the counting.
fn try_and_count(
    config: &BlastConfig,
    tools: BlastTools,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<(String, DatabaseCounts), Failure> {
    progress.phase("counting the database", None);
    let options = stages::printed_options(&config.search);
    let refused = AtomicBool::new(false);
    let try_search = || {
        let version = tools.version()?;
        let (program, query) = (config.search.program, config.query_text());
        tools::try_search(program, &query, &options, cancel).map(|()| version)
    };
    let (version, counts) = at_once(
        || {
            let tried = try_search();
            refused.store(tried.is_err(), Ordering::Relaxed);
            tried
        },
        || counting::count(config, progress, cancel, &refused),
    )?;
    Ok((version?, counts?))
}

/// Does `other` in a thread of its own, and `here` in this one.
fn at_once<A: Send, B>(
    other: impl FnOnce() -> A + Send,
    here: impl FnOnce() -> B,
) -> Result<(A, B), Failure> {
    std::thread::scope(|scope| {
        let other = spawn_scoped(scope, "blast", other);
        let other = other.map_err(|error: io::Error| Failure::named(&error))?;
        let here = here();
        match other.join() {
            Ok(other) => Ok((other, here)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Checks before any work that the output can get its name, and that BLAST can work in a folder next to it.
fn check_output(config: &BlastConfig) -> Result<(), Failure> {
    refuse_compressed(&config.output, "BLAST writes plain text")?;
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
