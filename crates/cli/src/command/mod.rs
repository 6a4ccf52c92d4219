//! One file per subcommand. Each takes its settings from [`crate::config`] and returns its result.

mod advise;
mod array;
mod blast;
mod cat;
mod consume;
mod debug;
mod emulate;
#[cfg(test)]
mod examples;
mod export;
mod generate;
mod in_order;
mod info;
mod kept;
mod manual;
mod map;
mod materialize;
mod mount;
mod nbd;
mod patience;
mod pipeline;
mod recover;
mod report;
mod reproduce;
mod serve;
mod simulate;
mod sort;
mod ssdlet;
mod verify;

use std::path::Path;
use std::sync::Arc;

use merganser_sort::Budget;
use merganser_sort::view::View;
use merganser_storage::Directory;
use merganser_storage::file::FileDirectory;

use crate::args::Command;
use crate::failure::{Failure, notice};
use crate::signals::Cancel;

/// Runs a subcommand to its end.
///
/// # Errors
/// Any failure that keeps the command from its work.
pub fn run(command: Command, cancel: &Cancel) -> Result<(), Failure> {
    match command {
        Command::Sort(typed) => sort::run(&typed.try_into()?, cancel),
        Command::Cat(typed) => cat::run(&typed.try_into()?, cancel),
        Command::Mount(typed) => mount::run(typed.try_into()?, cancel),
        Command::Export(typed) => export::run(typed.try_into()?, cancel),
        Command::Materialize(typed) => materialize::run(&typed.try_into()?, cancel),
        Command::Info(typed) => info::run(&typed.try_into()?),
        Command::Verify(typed) => verify::run(&typed.try_into()?, cancel),
        Command::Recover(typed) => recover::run(&typed),
        Command::Map(typed) => map::run(&typed.try_into()?, cancel),
        Command::Pipeline(typed) => pipeline::run(&typed.try_into()?, cancel),
        Command::Blast(typed) => blast::run(&typed.try_into()?, cancel),
        Command::Generate(typed) => generate::run(typed.try_into()?, cancel),
        Command::Advise(typed) => {
            let assumed = crate::config::assumed_of_job(&typed);
            let config = typed.try_into()?;
            assumed.iter().for_each(|sentence| notice(sentence));
            advise::run(&config)
        }
        Command::Ssdlet(typed) => ssdlet::run(&typed.try_into()?),
        Command::Array(typed) => array::run(typed.try_into()?, cancel),
        Command::Serve(typed) => serve::run(typed.try_into()?, cancel),
        Command::Simulate(typed) => simulate::run(&typed.try_into()?, cancel),
        Command::Emulate(typed) => emulate::run(&typed.try_into()?, cancel),
        Command::Reproduce(typed) => reproduce::run(&typed.try_into()?, cancel),
        Command::Completions(typed) => manual::completions(&typed),
        Command::Man(typed) => manual::pages(&typed),
    }
}

/// The folder at `path`.
fn open_folder(path: &Path) -> Result<Arc<FileDirectory>, Failure> {
    match FileDirectory::open(path) {
        Ok(folder) => Ok(folder),
        Err(error) => Err(Failure::named(&error)),
    }
}

/// The view at `path`.
fn open_view(path: &Path, memory_bytes: u64, threads: usize) -> Result<View, Failure> {
    let folder: Arc<dyn Directory> = open_folder(path)?;
    Ok(View::open(&folder, &Budget::new(memory_bytes), threads)?)
}
