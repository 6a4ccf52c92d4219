//! Any bytes as a bucket file, and a good one with some of its numbers changed and its checksums put
//! right: opening a view of it and reading that gives an error or data, never a panic.

use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::{Compression, SortInput};
use merganser_sort::view::{Manifest, View};
use merganser_sort::{Budget, CompressionChoice, Silent, SortOptions, SortOutput, Strategy, sort};
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};
use merganser_storage::{Directory, StorageExt};

const FOOTER_BYTES: usize = 64;
const FILE_NAME: &str = "000000.buckets";

#[derive(Debug, Arbitrary)]
enum BucketFileCase<'a> {
    Any(&'a [u8]),
    Changed { changes: Vec<(u16, u8)>, sealed: bool, cut: Option<u16> },
}

/// A manifest and its bucket file.
static VIEW: LazyLock<(Manifest, Vec<u8>)> = LazyLock::new(|| {
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let lines: Vec<String> =
        (0..90).map(|i| format!("{:02} {}\n", i * 37 % 60, "x".repeat(i))).collect();
    let options = SortOptions::new(OrderSpec::new(Format::Lines { delimiter: b'\n' })).memory(4 << 20).threads(1).temp(Vec::new()).compression(CompressionChoice::Fixed(Compression::Off)).strategy(Strategy::Distribute { uniform: false });
    let input = SortInput::Storage(MemoryStorage::from_bytes("in", lines.concat().as_bytes()));
    let output = SortOutput::View { folder: Arc::clone(&folder), name: "x".to_owned() };
    sort(vec![input], output, &options, &Silent).expect("sorts");
    let file = folder.open(FILE_NAME, false).expect("opens");
    let bytes = file.read_vec(0, file.size() as usize).expect("reads");
    (Manifest::read(&folder).expect("reads"), bytes)
});

/// Makes the checksums of index and footer right, and returns the checksum of the index.
fn seal(bytes: &mut [u8]) -> Option<u32> {
    let footer = bytes.len().checked_sub(FOOTER_BYTES)?;
    let index = u64::from_le_bytes(bytes[footer..footer + 8].try_into().expect("eight bytes"));
    let crc = crc32c::crc32c(bytes.get(usize::try_from(index).ok()?..footer)?);
    bytes[footer + 40..footer + 44].copy_from_slice(&crc.to_le_bytes());
    let of_footer = crc32c::crc32c(&bytes[footer..footer + 52]);
    bytes[footer + 52..footer + 56].copy_from_slice(&of_footer.to_le_bytes());
    Some(crc)
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(case) = crate::value_of::<BucketFileCase<'_>>(bytes) else { return };
    let (mut manifest, bytes) = match case {
        BucketFileCase::Any(bytes) => (VIEW.0.clone(), bytes.to_vec()),
        BucketFileCase::Changed { changes, sealed, cut } => {
            let (mut manifest, mut bytes) = VIEW.clone();
            let len = bytes.len();
            for (at, value) in changes {
                // Counted from the end, because most bytes there are numbers.
                bytes[len - 1 - usize::from(at) % len] = value;
            }
            bytes.truncate(cut.map_or(len, usize::from));
            if let Some(crc) = sealed.then(|| seal(&mut bytes)).flatten() {
                let segments = manifest.buckets.iter_mut().flat_map(|bucket| &mut bucket.segments);
                segments.for_each(|segment| segment.index_crc = crc);
            }
            (manifest, bytes)
        }
    };
    manifest.made_unix_ns = 1;
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    folder.create(FILE_NAME).expect("new").write_at(0, &bytes).expect("writes");
    manifest.write(&folder).expect("writes");
    let Ok(view) = View::open(&folder, &Budget::new(8 << 20), 1) else { return };
    let Ok(mut stream) = view.stream(0..u64::MAX) else { return };
    while let Ok(Some(bytes)) = stream.next_bytes() {
        assert!(!bytes.is_empty());
    }
}
