//! `merganser sort --consume`: the inputs' space is given back while they are sorted.
//!
//! | module | what it knows |
//! |---|---|
//! | `protocol` | the order of events, and what a command finds after a crash |
//! | `checks` | what is checked before the first byte is given back |
//! | `work` | the steps of the protocol, done to real files |
//! | `model` | (test) every state, crash and next command on a small disk |

mod checks;
#[cfg(test)]
mod model;
mod protocol;
mod work;

use merganser_shell::config::Destination;
use merganser_shell::failure::Failure;
use merganser_shell::progress;
use merganser_shell::signals::Cancel;
use merganser_sort::activity::Activity;
use merganser_sort::{SortOptions, SortReport};

use crate::config::{SortChoices, SortConfig};
use work::ConsumeWork;

/// Sorts while the inputs' space is given back. Interrupted, the same command continues.
///
/// # Errors
/// Whatever keeps it from ending. Every record is then in an input or in the folder of unfinished
/// work, which a notice names.
pub fn run(
    config: &SortConfig,
    sorting: &SortChoices,
    options: &SortOptions,
    cancel: &Cancel,
) -> Result<SortReport, Failure> {
    let path = match &sorting.destination {
        Destination::View(path) | Destination::File(path) => path,
        Destination::Stdout => {
            let why = "--consume: standard output can't be asked again after an interruption; use -o or --view";
            return Err(why.to_owned().into());
        }
    };
    let activity = Activity::here();
    let progress = progress::on_stderr(config.quiet, cancel);
    let phases = activity.phases(&*progress);
    let Some(mut work) = ConsumeWork::open(config, sorting, path, options, &phases)? else {
        return Ok(SortReport::default());
    };
    let ended = protocol::run(&mut work);
    ended.map_err(|failure| failure.and(work.what_is_left()))?;
    Ok(work.report())
}
