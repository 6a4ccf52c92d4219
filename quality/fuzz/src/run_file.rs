//! Any bytes as a run, and a good run with some of its numbers changed and its checksums put right:
//! opening and reading it gives an error or data, never a panic.

use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use merganser_sort::Budget;
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::RunBuilder;
use merganser_sort::run::{Compression, Run, RunWriter};
use merganser_storage::memory::MemoryStorage;
use merganser_storage::{Storage, StorageExt};

const FOOTER_BYTES: usize = 64;

#[derive(Debug, Arbitrary)]
enum RunFileCase<'a> {
    Any(&'a [u8]),
    Changed { kind: u8, changes: Vec<(u16, u8)>, sealed: bool, cut: Option<u16> },
}

static RUNS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    [Compression::Off, Compression::Lz4, Compression::Zstd].into_iter().map(good_run).collect()
});

fn good_run(compression: Compression) -> Vec<u8> {
    let spec = OrderSpec::new(Format::Lines { delimiter: b'\n' });
    let order = spec.compile(None).expect("compiles");
    let storage: Arc<dyn Storage> = MemoryStorage::new("run");
    let memory = Budget::new(1 << 30).reserve(0, "fences").expect("fits");
    let writer =
        RunWriter::new(Arc::clone(&storage), 4096, compression, None, memory).expect("begins");
    let mut builder = RunBuilder::new(writer, order).expect("there is memory");
    for i in 0..60 {
        let line = format!("{i:04} {}\n", "x".repeat(i * 5));
        builder.append(line.as_bytes()).expect("appends");
    }
    builder.finish("{}", false).expect("finishes");
    storage.read_vec(0, storage.size() as usize).expect("reads")
}

/// Makes the checksums of index and footer right.
fn seal(bytes: &mut [u8]) {
    let Some(footer) = bytes.len().checked_sub(FOOTER_BYTES) else { return };
    let index = u64::from_le_bytes(bytes[footer..footer + 8].try_into().expect("eight bytes"));
    if let Some(index) = usize::try_from(index).ok().and_then(|at| bytes.get(at..footer)) {
        let crc = crc32c::crc32c(index);
        bytes[footer + 40..footer + 44].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = crc32c::crc32c(&bytes[footer..footer + 52]);
    bytes[footer + 52..footer + 56].copy_from_slice(&crc.to_le_bytes());
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(case) = crate::value_of::<RunFileCase<'_>>(bytes) else { return };
    let bytes = match case {
        RunFileCase::Any(bytes) => bytes.to_vec(),
        RunFileCase::Changed { kind, changes, sealed, cut } => {
            let mut bytes = RUNS[usize::from(kind) % RUNS.len()].clone();
            let len = bytes.len();
            for (at, value) in changes {
                // Counted from the end, because most bytes there are numbers.
                bytes[len - 1 - usize::from(at) % len] = value;
            }
            bytes.truncate(cut.map_or(len, usize::from));
            if sealed {
                seal(&mut bytes);
            }
            bytes
        }
    };
    let Ok(run) = Run::open(MemoryStorage::from_bytes("run", &bytes)) else { return };
    for i in 0..run.fences() {
        assert!(run.fence_position(i) < run.fence_position(i + 1));
        assert!(run.fence_record(i) < run.fence_record(i + 1));
        let _ = run.fence_key(i);
    }
    let mut read = 0;
    if run
        .verify_all(|n| {
            read += n;
            Ok(())
        })
        .is_ok()
    {
        assert_eq!(read, run.data_bytes());
    }
}
