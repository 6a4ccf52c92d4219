//! Any bytes as a manifest, their checksum put right: an error, or a manifest that is written as it
//! was read and whose order is sound or refused. Its order is then that of a run that exists: reading
//! this view gives bytes or an error, whatever lengths and keys the order speaks of.

use std::sync::Arc;

use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::RunBuilder;
use merganser_sort::run::{Compression, RunWriter};
use merganser_sort::view::{MANIFEST_NAME, Manifest, Segment, View};
use merganser_sort::{Budget, Result};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, Storage, StorageExt};

/// Writes a run of lines of one length, and returns its entry in a manifest.
fn segment_of_run(folder: &Arc<dyn Directory>) -> Segment {
    let order = OrderSpec::new(Format::Lines { delimiter: b'\n' }).compile(None).expect("an order");
    let memory = Budget::new(1 << 20).reserve(0, "fences").expect("fits");
    let storage = folder.create("000000.run").expect("new");
    let writer = RunWriter::new(storage, 4096, Compression::Off, None, memory).expect("begins");
    let mut builder = RunBuilder::new(writer, order).expect("there is memory");
    for i in 0..1000 {
        builder.append(format!("{i:07}\n").as_bytes()).expect("appends");
    }
    Segment::of_run(&builder.finish("{}", false).expect("finishes"))
}

fn read(view: &View) -> Result<()> {
    let mut stream = view.stream(0..view.size())?;
    while stream.next_bytes()?.is_some() {}
    drop(stream);
    view.read_random(view.size() / 2, &mut [0; 100])?;
    view.offset_of_record(view.records() / 2)?;
    view.offset_of_key(b"0000500")?;
    view.verify_all(|_| Ok(()))
}

/// Tries one input.
pub(crate) fn run(body: &[u8]) {
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
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let segments = vec![segment_of_run(&folder)];
    let Manifest { name, order, preamble, .. } = manifest;
    Manifest::new(name, order, preamble, 0, segments).write(&folder).expect("writes");
    if let Ok(view) = View::open(&folder, &Budget::new(8 << 20), 1) {
        let _ = read(&view);
    }
}

/// Manifests of all versions.
pub(crate) fn examples() -> Vec<Vec<u8>> {
    let golden = [
        include_str!("../../../core/sort/tests/golden/csv-toggled.manifest.txt"),
        include_str!("../../../core/sort/tests/golden/in-files.manifest.txt"),
        include_str!("../../../core/sort/tests/golden/manifest.txt"),
        include_str!("../../../core/sort/tests/golden/mixed.manifest.txt"),
        include_str!("../../../core/sort/tests/golden/unreduced.manifest.txt"),
    ];
    golden.map(crate::without_checksum).to_vec()
}
