//! Any bytes as an input that may be compressed: a file and a pipe of them hold the same, or both are refused, and a
//! decompressor takes no more than its memory.

use std::io::{Cursor, Read};
use std::sync::Arc;

use arbitrary::Arbitrary;
use merganser_sort::Budget;
use merganser_sort::run::magic::{ContentKind, Deed, TABLE, of_head};
use merganser_sort::run::packed::Unpacked;
use merganser_storage::Storage;
use merganser_storage::memory::MemoryStorage;

const MEMORY_BYTES: u64 = 80 << 20;
/// A few bytes can hold gigabytes.
const READ_BYTES: u64 = 1 << 20;

#[derive(Debug, Arbitrary)]
struct UnpackingCase<'a> {
    row: u8,
    kind: u8,
    bytes: &'a [u8],
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(case) = crate::value_of::<UnpackingCase<'_>>(bytes) else { return };
    let content =
        [ContentKind::Text, ContentKind::Binary, ContentKind::AsStored][usize::from(case.kind % 3)];
    // Without a magic nearly all input would be plain.
    let magic = &TABLE[usize::from(case.row) % TABLE.len()];
    let bytes = [&vec![0; magic.at][..], magic.bytes, case.bytes].concat();
    let budget = Budget::new(MEMORY_BYTES);
    let all = |reader: &mut dyn Read| {
        let mut found = Vec::new();
        reader.take(READ_BYTES).read_to_end(&mut found).map(|_| found).ok()
    };
    let storage: Arc<dyn Storage> = MemoryStorage::from_bytes("in", &bytes);
    let stored = match Unpacked::of_storage(&storage, content, &budget) {
        Ok(None) => Some(bytes[..bytes.len().min(READ_BYTES as usize)].to_vec()),
        Ok(Some(mut unpacked)) => all(&mut unpacked),
        Err(_) => None,
    };
    let pipe = Box::new(Cursor::new(bytes.clone()));
    let piped = all(&mut Unpacked::of_stream("in".to_owned(), pipe, content, &budget));
    assert_eq!(stored, piped);
    assert!(budget.peak_bytes() <= MEMORY_BYTES);
    if of_head(&bytes, content).is_some_and(|found| matches!(found.deed, Deed::Refuse(_))) {
        assert_eq!(stored, None);
    }
}
