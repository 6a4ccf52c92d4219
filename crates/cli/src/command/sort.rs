//! `merganser sort`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sort::run::Compression;
use sort::{Budget, CompressionChoice, SortOptions, SortOutput, SortReport};
use storage::{Directory, Storage};

use super::{open_folder, report, verify};
use crate::args::CompressionName;
use crate::config::{Destination, SortConfig, Sorting, Task, view_name};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress;
use crate::signals::Cancel;

/// Checks or sorts.
pub fn run(config: &SortConfig, cancel: &Cancel) -> Result<(), Failure> {
    match &config.task {
        Task::Check { diagnose } => verify::check(
            &config.inputs[0],
            &config.order,
            *diagnose,
            config.memory_bytes,
            config.quiet,
            cancel,
        ),
        Task::Sort(sorting) => sort(config, sorting, cancel),
    }
}

/// Opens everything, sorts, makes the result visible, and reports.
fn sort(config: &SortConfig, sorting: &Sorting, cancel: &Cancel) -> Result<(), Failure> {
    let watch = report::Watch::start();
    let options = options(config, sorting)?;
    let inputs = config.inputs.iter().map(|input| input.open_for_sort(sorting.consume, cancel));
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let progress = progress::on_stderr(config.quiet, cancel);
    let run = |output: SortOutput<'_>| sort::sort(inputs, output, &options, &*progress);
    let done: SortReport = match &sorting.destination {
        Destination::View(path) => {
            let unfinished = UnfinishedView::create(path)?;
            let folder = open_folder(&unfinished.path)?;
            let done = run(SortOutput::View { folder, name: view_name(path) })?;
            unfinished.publish()?;
            done
        }
        Destination::File(_) | Destination::Stdout => {
            let path = match &sorting.destination {
                Destination::File(path) => Some(&**path),
                _ => None,
            };
            let mut output = Output::open(path)?;
            let done = match output.storage() {
                Some(storage) => run(SortOutput::Storage(storage as Arc<dyn Storage>))?,
                None => run(SortOutput::Writer(&mut output))?,
            };
            output.finish()?;
            done
        }
    };
    drop(progress);
    match &sorting.report {
        Some(path) => watch.write(path, "sort", &done),
        None => Ok(()),
    }
}

fn options(config: &SortConfig, sorting: &Sorting) -> Result<SortOptions, Failure> {
    let folders = sorting.temp_dirs.iter().map(|path| open_folder(path));
    Ok(SortOptions {
        order: config.order.clone(),
        budget: Budget::new(config.memory_bytes),
        threads: config.threads,
        temp: folders.collect::<Result<Vec<Arc<dyn Directory>>, _>>()?,
        temp_limit_bytes: sorting.temp_limit_bytes,
        compression: match sorting.compression {
            CompressionName::Off => CompressionChoice::Fixed(Compression::Off),
            CompressionName::Lz4 => CompressionChoice::Fixed(Compression::Lz4),
            CompressionName::Zstd => CompressionChoice::Fixed(Compression::Zstd),
            CompressionName::Auto => CompressionChoice::Auto,
        },
        top: sorting.top,
    })
}

/// The folder of a view that is being made, beside where the view is to be. Dropped before
/// [`UnfinishedView::publish`] it is removed; a killed process leaves it, and the next one that
/// makes the same view removes it then.
struct UnfinishedView {
    path: PathBuf,
    target: PathBuf,
    /// Locked as long as its maker lives, which tells a leftover from work in progress.
    lock: File,
    published: bool,
}

impl UnfinishedView {
    fn create(target: &Path) -> Result<Self, Failure> {
        if target.symlink_metadata().is_ok() {
            let target = target.display();
            return Err(format!("{target}: exists; remove it or give --view another name").into());
        }
        let name = target
            .file_name()
            .ok_or_else(|| format!("--view: '{}' is no name", target.display()))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(".unfinished");
        let path = target.with_file_name(hidden);
        let lock = Self::claim(&path, target)?;
        Ok(UnfinishedView { path, target: target.to_owned(), lock, published: false })
    }

    /// Makes the folder, or empties it if a process left it that is no more.
    fn claim(path: &Path, target: &Path) -> Result<File, Failure> {
        let on_target = |error: io::Error| Failure::on(target, &error);
        loop {
            match fs::create_dir(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(on_target(error));
                }
                _ => {}
            }
            let lock = File::open(path).map_err(on_target)?;
            if lock.try_lock().is_err() {
                let target = target.display();
                return Err(
                    format!("{target}: another process is making this view just now").into()
                );
            }
            let leftover = fs::read_dir(path).map_err(on_target)?.next().is_some();
            if !leftover {
                return Ok(lock);
            }
            fs::remove_dir_all(path).map_err(on_target)?;
        }
    }

    /// Gives the view its name, durably.
    fn publish(mut self) -> Result<(), Failure> {
        let on_target = |error: io::Error| Failure::on(&self.target, &error);
        self.lock.sync_all().map_err(on_target)?;
        fs::rename(&self.path, &self.target).map_err(on_target)?;
        self.published = true;
        let parent = self.target.parent().filter(|parent| *parent != Path::new(""));
        let parent = File::open(parent.unwrap_or(Path::new("."))).map_err(on_target)?;
        parent.sync_all().map_err(on_target)
    }
}

impl Drop for UnfinishedView {
    fn drop(&mut self) {
        if !self.published {
            // What can't be removed is removed by the next process that makes this view.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
