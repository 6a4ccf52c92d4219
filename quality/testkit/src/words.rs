//! The rows of a word count, as a test compares them.

use std::collections::BTreeMap;

/// Counts by word, of rows whose values are numbers of 8 bytes, little-endian.
///
/// # Panics
/// When a row is not one of a word count.
#[must_use]
pub fn word_counts(rows: Vec<(Vec<u8>, Vec<u8>)>) -> BTreeMap<String, i64> {
    let text = |(word, count): (Vec<u8>, Vec<u8>)| {
        let count = i64::from_le_bytes(count.try_into().expect("a number"));
        (String::from_utf8(word).expect("text"), count)
    };
    rows.into_iter().map(text).collect()
}
