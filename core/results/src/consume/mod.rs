//! A sort whose inputs give their space back while they are sorted.
//!
//! | module | what it knows |
//! |---|---|
//! | `protocol` | the order of events, and what a command finds after a crash |
//! | `checks` | what is checked before the first byte is given back |
//! | `work` | the steps of the protocol, done to real files |
//! | `error` | why it ends early, and what was found |
//! | `interrupted` | (test) the protocol on real files, ended before each step |
//! | `model` | (test) every state, crash and next command on a small disk |

mod checks;
mod error;
#[cfg(test)]
mod interrupted;
#[cfg(test)]
mod model;
mod protocol;
mod work;

use std::path::Path;

use merganser_sort::journal::JournalText;
use merganser_sort::run::magic::ContentKind;
use merganser_sort::{Progress, SortOptions, SortReport};

pub use error::{ConsumeError, UnfitInput, WrittenInput};
use work::ConsumeWork;

use crate::{Notice, ResultSource};

/// A sort that consumes its inputs.
pub struct ConsumeJob<'a> {
    /// The inputs, as they were typed, in order.
    pub inputs: &'a [ResultSource<'a>],
    /// The result, as it was typed.
    pub output: &'a Path,
    /// Whether the result is a view.
    pub is_view: bool,
    /// The name of the view in its manifest.
    pub name: String,
    /// What the inputs should hold.
    pub content: ContentKind,
    /// How records are sorted. The memory of the checks of earlier work is not of this budget.
    pub options: &'a SortOptions,
    /// The memory budget.
    pub memory_bytes: u64,
    /// The words of the command, for the journal.
    pub words: Vec<JournalText>,
    /// The folder that the command was given in, for the journal.
    pub folder: JournalText,
}

/// Sorts while the inputs' space is given back. Interrupted, the same job continues. The report is empty if an earlier
/// command had finished it. `tell` gets what happens on the way that is no failure.
///
/// # Errors
/// Whatever keeps it from ending. Every record is then in an input or in the folder of unfinished work, which
/// [`ConsumeError::Begun`] names.
pub fn consume(
    job: &ConsumeJob<'_>,
    progress: &dyn Progress,
    tell: &dyn Fn(&Notice),
) -> Result<SortReport, ConsumeError> {
    let Some(mut work) = ConsumeWork::open(job, progress, tell)? else {
        return Ok(SortReport::default());
    };
    let ended = protocol::run(&mut work);
    ended.map_err(|error| work.with_place(error))?;
    Ok(work.report())
}
