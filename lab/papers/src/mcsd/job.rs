//! The jobs that programs are compared by.

/// The work on the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContestJob {
    WordCount,
    StringMatch,
}

impl ContestJob {
    pub(super) const BOTH: [ContestJob; 2] = [ContestJob::WordCount, ContestJob::StringMatch];

    pub(super) fn name(self) -> &'static str {
        match self {
            ContestJob::WordCount => "word count",
            ContestJob::StringMatch => "string match",
        }
    }
}
