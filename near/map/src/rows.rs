//! The rows of several streams, handed to a sink.

use merganser_sort::rows::{Combine, CombinedRows, RowStream, Type};

use super::RowSink;
use crate::ssdlet::SsdletError;

/// Merges the rows of `streams` into `rows`; the number of rows that it took. See [`CombinedRows::merged`].
///
/// # Errors
/// Those of the streams and of `rows`; a sum that leaves 64 bits.
pub fn merge<S: RowStream<Error = SsdletError>>(
    streams: Vec<S>,
    combine: Combine,
    of: Type,
    rows: &mut dyn RowSink,
) -> Result<u64, SsdletError> {
    let mut merged = CombinedRows::merged(streams, combine, of);
    let mut count = 0;
    while merged.advance()? {
        count += 1;
        if !rows.keyed(merged.key(), merged.value())? {
            break;
        }
    }
    Ok(count)
}
