//! Why a result can't be read or written.

/// The errors of rows.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The view is not what a map leaves.
    #[error("{view}: not the result of a map")]
    NotAResult {
        /// The folder of the view.
        view: String,
    },
    /// A record of a run does not have its encoding.
    #[error("a spilled record is no record of this map")]
    NoRecord,
    /// A row is longer than a record can be.
    #[error("a key and its value are longer than a record can be")]
    TooLong,
    /// The sum of a key's values leaves 64 bits.
    #[error("key {key:?}: {error}", error = super::ValueOverflow)]
    Overflow {
        /// The first bytes of the key, as text.
        key: String,
    },
}

impl ResultError {
    /// The sum of the values of `key` is too large.
    #[must_use]
    pub fn overflow(key: &[u8]) -> Self {
        ResultError::Overflow {
            key: String::from_utf8_lossy(&key[..key.len().min(100)]).into_owned(),
        }
    }
}
