//! `merganser materialize`.

use std::path::{self, Path};
use std::sync::Arc;

use serde_json::json;
use sort::Budget;
use sort::output::{Materialize, materialize};
use storage::Directory;

use super::{open_folder, report};
use crate::config::MaterializeConfig;
use crate::failure::Failure;
use crate::progress;
use crate::signals::Cancel;

/// Copies a view out.
pub fn run(config: &MaterializeConfig, cancel: &Cancel) -> Result<(), Failure> {
    let watch = report::Watch::start();
    let progress = progress::on_stderr(config.quiet, cancel);
    let copy = Copy {
        view: &config.view,
        output: &config.output,
        consume: config.consume,
        memory_bytes: config.memory_bytes,
        threads: config.threads,
    };
    let bytes = copy.run(&*progress)?;
    drop(progress);
    match &config.report {
        Some(path) => watch.write(path, "materialize", &json!({ "output_bytes": bytes })),
        None => Ok(()),
    }
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
    /// Copies; returns the bytes of the file.
    pub fn run(&self, progress: &dyn sort::Progress) -> Result<u64, Failure> {
        let target =
            path::absolute(self.output).map_err(|error| Failure::on(self.output, &error))?;
        let no_name = || Failure::Error(format!("-o: '{}' is no file name", self.output.display()));
        let name = target.file_name().and_then(|name| name.to_str()).ok_or_else(no_name)?;
        if target.is_dir() {
            let output = self.output.display();
            return Err(format!("{output}: is a directory; -o takes a file").into());
        }
        let output: Arc<dyn Directory> = open_folder(target.parent().unwrap_or(Path::new("/")))?;
        let folder: Arc<dyn Directory> = open_folder(self.view)?;
        let what = Materialize {
            folder: &folder,
            output: &output,
            name,
            shown: &target.display().to_string(),
            consume: self.consume,
            budget: &Budget::new(self.memory_bytes),
            threads: self.threads,
            checkpoint_bytes: None,
        };
        let bytes = materialize(&what, progress)?;
        if self.consume {
            std::fs::remove_dir(self.view).map_err(|error| Failure::on(self.view, &error))?;
        }
        Ok(bytes)
    }
}

/// Whether a copy to `output` was interrupted.
pub fn is_interrupted(output: &Path) -> bool {
    let name = output.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    output.with_file_name(sort::output::resume_name(name)).exists()
}
