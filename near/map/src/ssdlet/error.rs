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
    /// One of its arguments makes no sense.
    #[error("{ssdlet}: argument {argument}: {detail}")]
    Argument {
        /// The SSDlet's name.
        ssdlet: String,
        /// The argument's name.
        argument: String,
        /// The fault and the remedy.
        detail: String,
    },
    /// A row has no column that an argument names. A map adds the name of the input.
    #[error(
        "{}at byte {offset}: argument {argument}: column {wanted} is asked for, and the row has {found}; choose another column, or repair the row",
        of_file(file)
    )]
    ShortRow {
        /// The name of the input, once it is known.
        file: Option<String>,
        /// Place of the row in it.
        offset: u64,
        /// The argument's name.
        argument: &'static str,
        /// The column, from 1.
        wanted: usize,
        /// The columns that there are.
        found: usize,
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
    /// It broke a rule, or ran out of something that it may use.
    #[error("{0}")]
    Failed(String),
    /// The engine could not take what it handed out.
    #[error(transparent)]
    Engine(merganser_sort::Error),
}

impl From<merganser_sort::Error> for SsdletError {
    fn from(error: merganser_sort::Error) -> Self {
        match error {
            // What it handed out makes no result: that is no fault of the engine.
            merganser_sort::Error::Rows(error) => SsdletError::Failed(error.to_string()),
            error => SsdletError::Engine(error),
        }
    }
}

impl SsdletError {
    /// With the name of the input, if it is about a record.
    #[must_use]
    pub(crate) fn of_input(self, file: &str) -> Self {
        match self {
            SsdletError::Record { offset, detail } => {
                SsdletError::Input { file: file.to_owned(), offset, detail }
            }
            SsdletError::ShortRow { offset, argument, wanted, found, .. } => {
                let file = Some(file.to_owned());
                SsdletError::ShortRow { file, offset, argument, wanted, found }
            }
            error => error,
        }
    }
}

fn of_file(file: &Option<String>) -> String {
    file.as_ref().map(|file| format!("{file}: ")).unwrap_or_default()
}
