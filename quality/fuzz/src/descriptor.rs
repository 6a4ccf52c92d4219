//! Any bytes as a merge descriptor, its magic, version, length and checksum put right: an error, or a
//! command that is written as it was read.

use merganser_inside::active_sort::descriptor::{BYTES_MAX, MergeCommand, VERSION};

/// Tries one input.
pub(crate) fn run(body: &[u8]) {
    let _ = MergeCommand::decode(body);
    let len = 16 + body.len() + 4;
    if len > BYTES_MAX {
        return;
    }
    let mut bytes = b"MGNSRmrg".to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((len as u32).to_le_bytes());
    bytes.extend(body);
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    let Ok(command) = MergeCommand::decode(&bytes) else { return };
    // The JSON of the order may have had another form, and may grow; its meaning stays.
    let Ok(again) = command.encode() else { return };
    assert_eq!(MergeCommand::decode(&again), Ok(command));
}
