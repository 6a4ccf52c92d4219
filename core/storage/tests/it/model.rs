//! Every storage against a plain vector of bytes, over random operations.

use std::sync::Arc;

use merganser_storage::file::{Direct, EngineChoice, FileDirectory, FileOptions};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::spread::Spread;
use merganser_storage::{Buffer, Directory, Operation, Storage, StorageExt};
use proptest::prelude::*;

const PAGE: u64 = 4096;

#[derive(Debug, Clone)]
enum Op {
    Read { offset: u64, len: usize, skew: usize },
    Write { offset: u64, len: usize, skew: usize, fill: u8 },
    Discard { offset: u64, len: u64 },
    Allocate { offset: u64, len: u64 },
    SetSize { size: u64 },
    Sync,
}

/// Offsets and lengths up to `max`, half of them page-aligned.
fn position(max: u64) -> impl Strategy<Value = u64> {
    prop_oneof![(0..=max / PAGE).prop_map(|page| page * PAGE), 0..=max]
}

fn op() -> impl Strategy<Value = Op> {
    let skew = || prop_oneof![Just(0_usize), Just(0), 1..4096_usize];
    let len = || position(5 * PAGE).prop_map(|n| n as usize);
    prop_oneof![
        4 => (position(12 * PAGE), len(), skew())
            .prop_map(|(offset, len, skew)| Op::Read { offset, len, skew }),
        4 => (position(8 * PAGE), len(), skew(), any::<u8>())
            .prop_map(|(offset, len, skew, fill)| Op::Write { offset, len, skew, fill }),
        1 => (position(12 * PAGE), position(6 * PAGE))
            .prop_map(|(offset, len)| Op::Discard { offset, len }),
        1 => (position(8 * PAGE), position(5 * PAGE))
            .prop_map(|(offset, len)| Op::Allocate { offset, len }),
        1 => position(13 * PAGE).prop_map(|size| Op::SetSize { size }),
        1 => Just(Op::Sync),
    ]
}

/// A buffer of `len` bytes that begins `skew` bytes behind a page boundary.
fn skewed(len: usize, skew: usize) -> Buffer {
    let mut whole = Buffer::new(len + skew);
    whole.split_off(skew)
}

/// Bytes that differ from one position to the next, so that a shifted transfer shows.
fn pattern(fill: u8, len: usize) -> impl Iterator<Item = u8> {
    (0..len).map(move |i| fill.wrapping_add((i / 7) as u8).wrapping_mul(31) ^ i as u8)
}

fn grow(model: &mut Vec<u8>, end: u64) {
    model.resize(model.len().max(end as usize), 0);
}

fn apply(storage: &dyn Storage, model: &mut Vec<u8>, op: &Op) {
    match *op {
        Op::Read { offset, len, skew } => {
            let read = Operation::Read { offset, buffer: skewed(len, skew) };
            let (buffer, count) = storage.run(read).expect("read");
            let from = model.len().min(offset as usize);
            let wanted = &model[from..model.len().min(from + len)];
            assert_eq!(count, wanted.len(), "count of a read");
            assert!(buffer.expect("comes back")[..count] == *wanted, "content of a read");
        }
        Op::Write { offset, len, skew, fill } => {
            let mut buffer = skewed(len, skew);
            buffer.iter_mut().zip(pattern(fill, len)).for_each(|(to, from)| *to = from);
            let (buffer, count) = storage.run(Operation::Write { offset, buffer }).expect("write");
            assert_eq!((buffer.expect("comes back").len(), count), (len, len));
            if len > 0 {
                grow(model, offset + len as u64);
                let to = &mut model[offset as usize..offset as usize + len];
                to.iter_mut().zip(pattern(fill, len)).for_each(|(to, from)| *to = from);
            }
        }
        Op::Discard { offset, len } => {
            storage.run(Operation::Discard { offset, len }).expect("discard");
            let end = model.len().min((offset + len) as usize);
            let from = end.min(offset as usize);
            model[from..end].fill(0);
        }
        Op::Allocate { offset, len } => {
            storage.run(Operation::Allocate { offset, len }).expect("allocate");
            if len > 0 {
                grow(model, offset + len);
            }
        }
        Op::SetSize { size } => {
            storage.run(Operation::SetSize { size }).expect("set the size");
            model.resize(size as usize, 0);
        }
        Op::Sync => storage.sync().expect("sync"),
    }
    assert_eq!(storage.size(), model.len() as u64, "size after {op:?}");
}

fn check(directory: &dyn Directory, ops: &[Op]) {
    check_storage(&*directory.create_unnamed().expect("create"), ops);
}

fn check_storage(storage: &dyn Storage, ops: &[Op]) {
    let mut model = Vec::new();
    for op in ops {
        apply(storage, &mut model, op);
    }
    assert!(storage.read_vec(0, model.len()).expect("read all") == model, "content at the end");
}

fn every_option() -> impl Iterator<Item = FileOptions> {
    let engines = [EngineChoice::Auto, EngineChoice::Threads];
    engines.into_iter().flat_map(|engine| {
        [Direct::Auto, Direct::Never].into_iter().map(move |direct| FileOptions {
            direct,
            engine,
            queue_depth: 8,
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn memory_is_a_vector(ops in prop::collection::vec(op(), 1..40)) {
        check(&*MemoryDirectory::new(), &ops);
    }

    #[test]
    fn a_spread_is_a_vector_on_any_number_of_disks(
        ops in prop::collection::vec(op(), 1..40),
        disks in 1..4,
        lead in prop_oneof![Just(0), Just(100), Just(PAGE)],
        units in 1..4_u64,
    ) {
        let folder = MemoryDirectory::new();
        let disks = (0..disks).map(|_| folder.create_unnamed().expect("create"));
        check_storage(&*Spread::new(disks.collect(), lead, units * PAGE), &ops);
    }

    #[test]
    fn a_spread_over_files_is_a_vector(ops in prop::collection::vec(op(), 1..40)) {
        let place = tempfile::tempdir().expect("temporary directory");
        let folder = FileDirectory::open(place.path()).expect("open");
        let disks = (0..2).map(|_| folder.create_unnamed().expect("create") as Arc<dyn Storage>);
        check_storage(&*Spread::new(disks.collect(), PAGE, 2 * PAGE), &ops);
    }

    #[test]
    fn a_file_is_a_vector_with_every_engine(ops in prop::collection::vec(op(), 1..40)) {
        let place = tempfile::tempdir().expect("temporary directory");
        for options in every_option() {
            let directory: Arc<dyn Directory> =
                FileDirectory::open_with(place.path(), options).expect("open");
            check(&*directory, &ops);
        }
    }
}
