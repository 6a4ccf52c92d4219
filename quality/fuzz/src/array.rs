//! Any bytes as each block of a volume's formats, with checksums that are right: the decoders give a
//! value or nothing, and never panic.

use merganser_array::formats;

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some((&which, rest)) = bytes.split_first() else { return };
    let mut block = vec![0; 4096];
    let len = rest.len().min(block.len());
    block[..len].copy_from_slice(&rest[..len]);
    let magic: &[u8] = match which % 8 {
        0 => b"MGNSRlbl\x02\0\0\0",
        1 => b"MGNSRsup\x03\0\0\0",
        2 => b"MjrT",
        3 => b"MlgR",
        4 => b"MtbB",
        5 => b"MtbS",
        6 => b"MlgS",
        _ => b"MixR",
    };
    if which & 0x80 != 0 {
        block[..magic.len()].copy_from_slice(magic);
    }
    let seal_at = match which % 8 {
        0 => 4092,
        1 => 12,
        _ => 4,
    };
    if which & 0x40 != 0 {
        formats::seal(&mut block, seal_at);
    }
    let _ = formats::label(&block);
    let _ = formats::superblock(&block);
    let _ = formats::record(&block);
    let _ = formats::transaction(&block);
    let _ = formats::blocks(&block, u64::from(which));
    let _ = (formats::label(rest), formats::superblock(rest), formats::record(rest));
    let _ = (formats::transaction(rest), formats::blocks(rest, 0));
}
