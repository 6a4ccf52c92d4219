//! A trace that was named, opened: decompressed if it is compressed.

use std::io::{BufRead, BufReader};

use merganser_map::MapInput;
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_shell::signals::Cancel;
use merganser_sort::Budget;
use merganser_sort::run::magic::ContentKind;

/// Memory for a decompressor: enough for the longest window that `zstd` makes unless it is asked for more.
const MEMORY_BYTES: u64 = 256 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 16;

/// Opens `input`, which may be compressed.
///
/// # Errors
/// When it can't be opened. A damaged one fails when it is read.
pub(super) fn open(input: &Input, cancel: &Cancel) -> Result<impl BufRead + use<>, Failure> {
    let reader = Box::new(input.open(cancel)?);
    let budget = Budget::new(MEMORY_BYTES);
    let MapInput::Stream { reader, .. } =
        MapInput::detect_stream(input.to_string(), reader, ContentKind::Text, &budget)
    else {
        unreachable!("a stream stays one");
    };
    Ok(BufReader::with_capacity(READ_BYTES, reader))
}
