//! `merganser materialize`.

use std::path::{self, Path};

use serde_json::json;
use sort::activity::Activity;
use sort::budget::OwnerPeak;
use sort::output::{Materialize, materialize};
use sort::{Budget, Progress};

use super::{open_folder, report};
use crate::config::MaterializeConfig;
use crate::failure::Failure;
use crate::progress;
use crate::signals::Cancel;

/// Copies a view out.
pub fn run(config: &MaterializeConfig, cancel: &Cancel) -> Result<(), Failure> {
    let watch = report::Watch::start(config.report.as_ref(), || {
        vec![config.view.clone(), config.output.clone()]
    })?;
    let activity = watch.activity();
    let _worker = activity.enroll("write");
    let progress = progress::on_stderr(config.quiet, cancel);
    let copy = Copy {
        view: &config.view,
        output: &config.output,
        consume: config.consume,
        memory_bytes: config.memory_bytes,
        threads: config.threads,
    };
    let phases = activity.phases(&*progress);
    let (bytes, memory) = copy.run(&phases)?;
    drop(phases);
    drop(progress);
    watch.finish(|| report::Done {
        command: "materialize",
        inputs: vec![config.view.display().to_string()],
        output: config.output.display().to_string(),
        output_bytes: Some(bytes),
        memory_limit_bytes: config.memory_bytes,
        memory,
        detail: json!({ "output_bytes": bytes }),
        ..report::Done::default()
    })
}

/// A view to be copied out to a file.
pub struct Copy<'a> {
    /// The view.
    pub view: &'a Path,
    /// The file.
    pub output: &'a Path,
    /// Whether the view goes on the way.
    pub consume: bool,
    /// The memory budget.
    pub memory_bytes: u64,
    /// How many threads.
    pub threads: usize,
}

impl Copy<'_> {
    /// Copies; returns the bytes of the file, and what took how much memory.
    pub fn run(&self, progress: &dyn Progress) -> Result<(u64, Vec<OwnerPeak>), Failure> {
        let target =
            path::absolute(self.output).map_err(|error| Failure::on(self.output, &error))?;
        let no_name = || Failure::Error(format!("-o: '{}' is no file name", self.output.display()));
        let name = target.file_name().and_then(|name| name.to_str()).ok_or_else(no_name)?;
        if target.is_dir() {
            let output = self.output.display();
            return Err(format!("{output}: is a directory; -o takes a file").into());
        }
        let activity = Activity::here();
        let output = open_folder(target.parent().unwrap_or(Path::new("/")))?;
        let output = activity.directory(output);
        let folder = activity.directory(open_folder(self.view)?);
        let budget = Budget::new(self.memory_bytes);
        let what = Materialize {
            folder: &folder,
            output: &output,
            name,
            shown: &target.display().to_string(),
            consume: self.consume,
            budget: &budget,
            threads: self.threads,
            checkpoint_bytes: None,
        };
        let bytes = materialize(&what, progress)?;
        if self.consume {
            std::fs::remove_dir(self.view).map_err(|error| Failure::on(self.view, &error))?;
        }
        Ok((bytes, budget.owner_peaks()))
    }
}

/// Whether a copy to `output` was interrupted.
pub fn is_interrupted(output: &Path) -> bool {
    let name = output.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    output.with_file_name(sort::output::resume_name(name)).exists()
}
