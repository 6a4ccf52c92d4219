//! `merganser materialize`.

use std::path::{self, Path};

use serde_json::json;
use sort::Budget;
use sort::output::{Materialize, materialize};

use super::{open_folder, report};
use crate::config::MaterializeConfig;
use crate::failure::Failure;
use crate::progress;
use crate::signals::Cancel;

/// Copies a view out.
pub fn run(config: &MaterializeConfig, cancel: &Cancel) -> Result<(), Failure> {
    let watch = report::Watch::start();
    let target =
        path::absolute(&config.output).map_err(|error| Failure::on(&config.output, &error))?;
    let no_name = || Failure::Error(format!("-o: '{}' is no file name", config.output.display()));
    let name = target.file_name().and_then(|name| name.to_str()).ok_or_else(no_name)?;
    if target.is_dir() {
        return Err(format!("{}: is a directory; -o takes a file", config.output.display()).into());
    }
    let output = open_folder(target.parent().unwrap_or(Path::new("/")))?;
    let folder = open_folder(&config.view)?;
    let progress = progress::on_stderr(config.quiet, cancel);
    let what = Materialize {
        folder: &folder,
        output: &output,
        name,
        shown: &target.display().to_string(),
        consume: config.consume,
        budget: &Budget::new(config.memory_bytes),
        threads: config.threads,
    };
    let bytes = materialize(&what, &*progress)?;
    drop(progress);
    if config.consume {
        std::fs::remove_dir(&config.view).map_err(|error| Failure::on(&config.view, &error))?;
    }
    match &config.report {
        Some(path) => watch.write(path, "materialize", &json!({ "output_bytes": bytes })),
        None => Ok(()),
    }
}
