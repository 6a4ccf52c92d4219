//! Why an SSDlet fails.

/// Ends the SSDlet that it comes from, and nothing else.
#[derive(Debug, thiserror::Error)]
pub enum SsdletError {
    /// There is no SSDlet of this name.
    #[error("there is no SSDlet named {name}")]
    Unknown {
        /// The name.
        name: String,
    },
    /// Its arguments make no sense.
    #[error("{ssdlet}: {detail}")]
    Args {
        /// The SSDlet's name.
        ssdlet: String,
        /// The argument, the fault and the remedy.
        detail: String,
    },
    /// A record makes no sense to it. A map says [`SsdletError::Input`] then.
    #[error("at byte {offset}: {detail}")]
    Record {
        /// Place of the record in its input.
        offset: u64,
        /// The fault and the remedy.
        detail: String,
    },
    /// A record of this input makes no sense to it.
    #[error("{file}: at byte {offset}: {detail}")]
    Input {
        /// The name of the input.
        file: String,
        /// Place of the record in it; if it is compressed, in what it holds.
        offset: u64,
        /// The fault and the remedy.
        detail: String,
    },
    /// Its output is records in the order of the input, which are no view.
    #[error(
        "{ssdlet} hands out records in the order of its input, and a view is sorted by key; write them to a file"
    )]
    OrderedView {
        /// The SSDlet's name.
        ssdlet: String,
    },
    /// The view is not what a map leaves.
    #[error("{view}: not the result of a map")]
    NotAResult {
        /// The folder of the view.
        view: String,
    },
    /// It broke a rule, or ran out of something that it may use.
    #[error("{0}")]
    Failed(String),
    /// The engine could not take what it handed out.
    #[error(transparent)]
    Engine(#[from] merganser_sort::Error),
}

impl SsdletError {
    /// With the name of the input, if it is about a record.
    #[must_use]
    pub(crate) fn of_input(self, file: &str) -> Self {
        match self {
            SsdletError::Record { offset, detail } => {
                SsdletError::Input { file: file.to_owned(), offset, detail }
            }
            error => error,
        }
    }
}
