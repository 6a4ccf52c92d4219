//! `merganser sort --consume`: the inputs' space is given back while they are sorted.

use merganser_results::consume::{ConsumeJob, consume};
use merganser_shell::config::{Destination, view_name};
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_shell::progress;
use merganser_shell::results::tell;
use merganser_shell::signals::Cancel;
use merganser_sort::activity::Activity;
use merganser_sort::journal::JournalText;
use merganser_sort::{SortOptions, SortReport};

use crate::config::{SortChoices, SortConfig};
use crate::sentences::Told;

/// Sorts while the inputs' space is given back. Interrupted, the same command continues.
///
/// # Errors
/// Whatever keeps it from ending. Every record is then in an input or in the folder of unfinished
/// work, which a notice names.
pub(super) fn run(
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
    let progress = progress::in_form(config.progress, cancel);
    let phases = activity.phases(&*progress);
    let inputs: Vec<_> = config.inputs.iter().map(Input::source).collect();
    let here = std::env::current_dir().unwrap_or_default();
    let job = ConsumeJob {
        inputs: &inputs,
        output: path,
        is_view: matches!(sorting.destination, Destination::View(_)),
        name: view_name(path),
        content: config.content(),
        options,
        memory_bytes: config.memory_bytes,
        words: std::env::args_os().map(JournalText::from).collect(),
        folder: JournalText::from(here.as_os_str()),
    };
    consume(&job, &phases, &tell).map_err(Told::told)
}
