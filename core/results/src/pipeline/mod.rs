//! The journal of a pipeline: what it does, and how far it is.
//!
//! ```text
//!   journal    the lines of the file           scan      a journal, read in little memory
//!   progress   the sum of its lines            left      what a killed pipeline left in a folder
//! ```

mod error;
mod journal;
mod left;
mod progress;
mod scan;

use merganser_sort::run::magic::ContentKind;
use serde::{Deserialize, Serialize};

pub use error::JournalError;
pub use journal::{
    BYTES_MAX, InputNote, JournalHeader, MergeBy, PartitionCut, Partitions, PipelineEvent,
    PipelineRecord, PipelineWork, line_of,
};
pub use left::{JOURNAL_NAME, LEVELS_MAX, Left, PARTIAL_NAME, PARTS_NAME, left_in, tree_bytes};
pub use progress::{InputDivision, PARTITIONS_MAX, PipelineProgress};

/// The records that are kept whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PieceFormat {
    /// Records end with `delimiter`, which belongs to the record.
    Lines {
        /// The byte that ends a record.
        delimiter: u8,
    },
    /// Every record is `bytes` long, at least 1.
    Fixed {
        /// Length of a record.
        bytes: u64,
    },
    /// A header line that begins with `>`, and all lines up to the next one.
    Fasta,
    /// A header line that begins with `@`, a sequence of any number of lines, a line that begins with `+`,
    /// and as many quality values as the sequence has letters.
    Fastq,
}

impl PieceFormat {
    /// What an input in this format should hold.
    #[must_use]
    pub fn content(self) -> ContentKind {
        match self {
            PieceFormat::Lines { .. } | PieceFormat::Fasta | PieceFormat::Fastq => {
                ContentKind::Text
            }
            PieceFormat::Fixed { .. } => ContentKind::Binary,
        }
    }

    /// The byte that ends the last record of an input if the input does not have it and another one follows.
    #[must_use]
    pub fn terminator(self) -> Option<u8> {
        match self {
            PieceFormat::Lines { delimiter } => Some(delimiter),
            PieceFormat::Fixed { .. } => None,
            PieceFormat::Fasta | PieceFormat::Fastq => Some(b'\n'),
        }
    }
}
