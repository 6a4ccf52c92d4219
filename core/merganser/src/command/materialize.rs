//! `merganser materialize`.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use merganser_results::materialize::{CopyDone, CopyJob, copy_to_file};
use merganser_results::output::{ResultOutput, codec_by_name};
use merganser_shell::apart::Precious;
use merganser_shell::args::RowForm;
use merganser_shell::failure::Failure;
use merganser_shell::opened::{open_view, refuse_table};
use merganser_shell::output::{self, refuse_compressed};
use merganser_shell::progress::WorkSummary;
use merganser_shell::results::tell;
use merganser_shell::signals::Cancel;
use merganser_shell::{progress, report, shown};
use merganser_sort::Progress;
use merganser_sort::budget::OwnerPeak;
use merganser_sort::reduced::ResultView;
use serde_json::json;

use super::result;
use crate::config::MaterializeConfig;
use crate::sentences::Told;

/// Why `--consume` writes no compressed file.
pub(super) const CONSUME_CONTINUES: &str =
    "--consume continues at a place in the output, which a compressed one does not have";

/// Copies a view out.
pub(super) fn run(config: &MaterializeConfig, cancel: &Cancel) -> Result<(), Failure> {
    refuse_table(&config.view)?;
    if config.consume {
        refuse_compressed(&config.output, CONSUME_CONTINUES)?;
    }
    let (view, output) = (&config.view, &config.output);
    let precious = || [Precious::Input(view), Precious::Result(output)];
    let files = || vec![view.clone(), output.clone()];
    let watch = report::ReportWatch::start(config.report.as_ref(), precious, files)?;
    let (activity, started) = (watch.activity(), Instant::now());
    let _worker = activity.enroll("write");
    let progress = progress::in_form(config.progress, cancel);
    let phases = activity.phases(&*progress);
    let known = |done: CopyDone| (Some(done.bytes), done.memory);
    let (bytes, memory) = if let Some(result) = map_result(config)? {
        reduced(config, &result, cancel, &phases)?
    } else if !config.consume && is_streamed(&config.output)? {
        known(write_through(config, cancel, &phases)?)
    } else {
        known(to_file(config, &phases)?)
    };
    drop(phases);
    drop(progress);
    // 0: an earlier command copied all of it. A compressed result is smaller than the copied bytes.
    let copied = bytes.filter(|bytes| *bytes > 0);
    let summary = WorkSummary { done: "copied", records: None, bytes: copied, written_bytes: None };
    summary.tell(config.progress, started.elapsed());
    watch.finish(|| report::CommandFigures {
        command: "materialize",
        inputs: vec![config.view.display().to_string()],
        output: config.output.display().to_string(),
        output_bytes: bytes,
        memory_limit_bytes: config.memory_bytes,
        memory,
        detail: json!({ "output_bytes": bytes }),
        ..report::CommandFigures::default()
    })
}

/// Whether an output can only be written from its beginning to its end.
fn is_streamed(output: &Path) -> Result<bool, Failure> {
    Ok(codec_by_name(output)?.is_some() || ResultOutput::is_special(output)?)
}

/// The view as a map's result, if it is one. A view that is gone may have been consumed.
fn map_result(config: &MaterializeConfig) -> Result<Option<ResultView>, Failure> {
    let result = match config.view.is_dir() {
        true => result::open(&config.view, config.memory_bytes, config.threads)?,
        false => None,
    };
    match &result {
        None => result::refuse_form(config.form)?,
        Some(_) if config.consume => {
            let view = shown::name(&config.view);
            return Err(format!(
                "--consume: the rows of {view} are combined while they are copied, so its space can't be given back meanwhile; leave it out"
            )
            .into());
        }
        Some(_) => {}
    }
    Ok(result)
}

/// Writes the rows of a map's result. Their size is not known beforehand.
fn reduced(
    config: &MaterializeConfig,
    result: &ResultView,
    cancel: &Cancel,
    progress: &dyn Progress,
) -> Result<(Option<u64>, Vec<OwnerPeak>), Failure> {
    let mut output = output::open(Some(&config.output), cancel)?;
    progress.phase("reducing", None);
    let form = config.form.unwrap_or(RowForm::Tsv);
    result::write(result, &result::RowRange::default(), form, &mut output, progress)?;
    output.finish()?;
    Ok((None, Vec::new()))
}

/// Writes the view's bytes into a device or a named pipe.
fn write_through(
    config: &MaterializeConfig,
    cancel: &Cancel,
    progress: &dyn Progress,
) -> Result<CopyDone, Failure> {
    let view = open_view(&config.view, config.memory_bytes, config.threads)?;
    let mut output = output::open(Some(&config.output), cancel)?;
    progress.phase("merging", Some(view.manifest().size_bytes));
    let mut stream = view.stream(0..u64::MAX)?;
    while let Some(bytes) = stream.next_bytes()? {
        output.write_all(bytes).map_err(|error| Failure::named(&error))?;
        progress.advance(bytes.len() as u64);
    }
    output.finish()?;
    Ok(CopyDone { bytes: view.manifest().size_bytes, memory: Vec::new() })
}

/// Copies the view to a file that appears complete.
fn to_file(config: &MaterializeConfig, progress: &dyn Progress) -> Result<CopyDone, Failure> {
    let job = CopyJob {
        view: &config.view,
        output: &config.output,
        consume: config.consume,
        memory_bytes: config.memory_bytes,
        threads: config.threads,
    };
    copy_to_file(&job, progress, &tell).map_err(Told::told)
}
