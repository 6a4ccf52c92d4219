//! A keyed result as bytes: rows of a length of the key, a length of the value, key and value.

use std::io;

/// The rows of a keyed result: key and value, in the order of the runs.
///
/// # Errors
/// A row that is cut short.
pub fn rows(mut result: &[u8]) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let cut = || io::Error::new(io::ErrorKind::InvalidData, "a row of the result is cut short");
    let mut rows = Vec::new();
    while !result.is_empty() {
        let len = |at: usize| {
            let bytes = result.get(at..at + 4).ok_or_else(cut)?;
            Ok::<usize, io::Error>(u32::from_le_bytes(bytes.try_into().expect("four")) as usize)
        };
        let (key, value) = (len(0)?, len(4)?);
        let key_end = 8_usize.checked_add(key).ok_or_else(cut)?;
        let end = key_end.checked_add(value).filter(|end| *end <= result.len()).ok_or_else(cut)?;
        rows.push((result[8..key_end].to_vec(), result[key_end..end].to_vec()));
        result = &result[end..];
    }
    Ok(rows)
}
