//! Any bytes as an NBD client: the server never panics, reads nothing outside its export, and sends
//! nothing but greeting and replies. The first byte says which valid handshake comes before the
//! rest, so that the requests behind it are reached.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock};

use merganser_export::nbd::{Export, serve_streams};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, Storage, StorageExt};

const SIZE: usize = 10_000;
/// The largest answer to one byte of input: a request of 28 bytes for the whole export, or an
/// option of 16 bytes for the list of exports.
const BYTES_OUT_PER_BYTE_IN: usize = SIZE;

static EXPORTED: LazyLock<Arc<dyn Storage>> = LazyLock::new(|| {
    let storage = MemoryDirectory::new().create("exported").expect("new");
    storage.write_at(0, &[0xa5; SIZE]).expect("writes");
    storage
});

/// Counts the bytes that are sent.
struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some((how, rest)) = bytes.split_first() else { return };
    let mut input = Vec::new();
    if how & 1 != 0 {
        input.extend(b"\0\0\0\x03");
    }
    if how & 2 != 0 {
        input.extend(b"IHAVEOPT\0\0\0\x08\0\0\0\0");
        input.extend(b"IHAVEOPT\0\0\0\x0a\0\0\0\x1b\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation");
    }
    if how & 4 != 0 {
        input.extend(b"IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0");
    }
    input.extend(rest);
    let exports = ["a", "b"].map(|name| Export::read_only(name, EXPORTED.clone()));
    let mut sent = Counter(0);
    serve_streams(exports.into(), &input[..], &mut sent).expect("nothing fails but the client");
    assert!(sent.0 <= 1000 + input.len() * BYTES_OUT_PER_BYTE_IN);
}
