//! What a user should know although it is no failure.

use std::path::PathBuf;

/// Something that happened. The program that asked for the work says it in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The files of a killed command in this folder of unfinished work were removed.
    Cleared(PathBuf),
    /// An input keeps this hidden name, since it was changed after it got the name.
    KeepsHiddenName(PathBuf),
    /// An earlier command has finished this result, so nothing is left to do.
    FinishedBefore(PathBuf),
    /// The folder of this view, which was consumed, stays: it holds files that are no part of the view.
    ViewStays(PathBuf),
}
