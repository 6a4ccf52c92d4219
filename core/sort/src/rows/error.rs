//! Why rows can't be written, read or combined.

/// The errors of rows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowsError {
    /// The view is not what a map leaves.
    #[error("{view}: not the result of a map")]
    NotAResult {
        /// The folder of the view.
        view: String,
    },
    /// The view has other records than keys with values.
    #[error("{view}: its records are not rows of a key and a value in the order of their keys")]
    NotRows {
        /// The folder of the view.
        view: String,
    },
    /// A record of a run does not have its encoding.
    #[error("a spilled record is no record of this map")]
    NoRecord,
    /// A row is longer than a record can be.
    #[error("a key and its value are longer than a record can be")]
    TooLong,
    /// The key of a row is not one of the type that was asked for.
    #[error("the key of a row is not of the type that was asked for")]
    OtherKey,
    /// More producers were asked for than [`RowSorter::producers`](super::RowSorter::producers) announced.
    #[error("there are {announced} producers already, as many as were announced")]
    TooManyProducers {
        /// How many were announced.
        announced: usize,
    },
    /// A view was asked for without [`RowSorter::into_view`](super::RowSorter::into_view).
    #[error("the rows have no folder for a view")]
    NoViewFolder,
    /// A key occurs more often than 64 bits can count.
    #[error("key {key:?}: it occurs more often than 64 bits can count")]
    CountOverflow {
        /// The first bytes of the key, as text.
        key: String,
    },
    /// The sum of a key's values leaves 64 bits.
    #[error("key {key:?}: {error}", error = super::ValueOverflow)]
    Overflow {
        /// The first bytes of the key, as text.
        key: String,
    },
}

impl RowsError {
    /// The sum of the values of `key` is too large.
    #[must_use]
    pub fn overflow(key: &[u8]) -> Self {
        RowsError::Overflow { key: front(key) }
    }

    /// There are too many rows of `key`.
    #[must_use]
    pub fn count_overflow(key: &[u8]) -> Self {
        RowsError::CountOverflow { key: front(key) }
    }
}

fn front(key: &[u8]) -> String {
    String::from_utf8_lossy(&key[..key.len().min(100)]).into_owned()
}
