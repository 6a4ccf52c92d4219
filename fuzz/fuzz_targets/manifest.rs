//! Any bytes as a manifest, their checksum put right: an error, or a manifest that is written as it
//! was read and whose order is sound or refused.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sort::Budget;
use sort::view::{MANIFEST_NAME, Manifest, View};
use storage::memory::MemoryDirectory;
use storage::{Directory, StorageExt};

fuzz_target!(|body: &[u8]| {
    let _ = Manifest::decode("manifest", body);
    let mut bytes = body.to_vec();
    bytes.extend_from_slice(format!("crc32c {:08x}\n", crc32c::crc32c(body)).as_bytes());
    let Ok(manifest) = Manifest::decode("manifest", &bytes) else { return };
    let again = Manifest::decode("manifest", &manifest.encode()).expect("what was written");
    assert_eq!(again, manifest);
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    folder.create(MANIFEST_NAME).expect("new").write_at(0, &bytes).expect("writes");
    if let Ok(view) = View::open(&folder, &Budget::new(8 << 20), 1) {
        let mut segments = manifest.buckets.iter().flat_map(|bucket| &bucket.segments);
        assert!(segments.next().is_none(), "the runs are nowhere");
        let size = usize::try_from(manifest.size_bytes).expect("nothing but a preamble");
        assert_eq!(view.read_vec(0, size).expect("reads"), manifest.preamble);
    }
});
