//! How progress is shown.

use crate::args::{ProgressArgs, ProgressName};
use crate::progress::ProgressForm;

/// The form that the options ask for.
pub fn progress_form(typed: ProgressArgs) -> ProgressForm {
    match typed.progress {
        _ if typed.quiet => ProgressForm::Nothing,
        Some(ProgressName::Log) => ProgressForm::Lines,
        Some(ProgressName::Auto) | None => ProgressForm::Bar,
    }
}
