//! The sentences for errors of the library of results that name flags and commands of this program.

use merganser_results::materialize::CopyError;
use merganser_shell::failure::Failure;
use merganser_shell::shown;

/// An error that ends a command with a sentence of this program.
pub trait Told {
    /// The end.
    fn told(self) -> Failure;
}

impl Told for CopyError {
    fn told(self) -> Failure {
        Failure::Error(match self {
            CopyError::Results(error) => return error.into(),
            CopyError::Begun { error, view, work, output } => {
                return error.told().and(Some(format!(
                    "every record is in {} and {}: repeat the command to continue, or see 'merganser recover {}'",
                    shown::name(&view),
                    shown::name(&work),
                    shown::shell_word(&output)
                )));
            }
            CopyError::Inside(target) => {
                format!("{}: is inside the view; give -o a name outside of it", target.display())
            }
            CopyError::OtherLinks(file) => format!(
                "{}: --consume: has other hard links, perhaps in a copy of the view, whose content would vanish, too; remove them, or leave out --consume",
                shown::name(&file)
            ),
            CopyError::ViewBusy { view, by } => {
                let by = by.map_or_else(|| "another process".to_owned(), |by| by.to_string());
                format!(
                    "{}: --consume: {by} is reading or consuming this view now; wait for its end, or leave out --consume",
                    shown::name(&view)
                )
            }
        })
    }
}
