//! `merganser sort`.

use super::verify;
use crate::config::{SortConfig, Sorting, Task};
use crate::failure::Failure;
use crate::signals::Cancel;

/// Checks or sorts.
pub fn run(config: SortConfig, cancel: &Cancel) -> Result<(), Failure> {
    match &config.task {
        Task::Check { diagnose } => verify::check(
            &config.inputs[0],
            &config.order,
            *diagnose,
            config.memory_bytes,
            config.quiet,
            cancel,
        ),
        Task::Sort(sorting) => sort(&config, sorting, cancel),
    }
}

fn sort(_config: &SortConfig, _sorting: &Sorting, _cancel: &Cancel) -> Result<(), Failure> {
    Err("sort: this build has no engine yet".to_owned().into())
}
