//! Ranges of replicas, whole and damaged.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;

const POOL: &str = "BP-7";
const BLOCK: HdfsBlock = HdfsBlock { id: 1_073_741_825, generation: 1001 };

/// A folder with one block, and its two files.
fn replica(root: &Path, data: &[u8], header: MetaHeader) -> (DataDirs, PathBuf, PathBuf) {
    let folder = root.join("current/BP-7/current/finalized/subdir0/subdir0");
    fs::create_dir_all(&folder).expect("made");
    let (path, meta) = (folder.join("blk_1073741825"), folder.join("blk_1073741825_1001.meta"));
    fs::write(&path, data).expect("written");
    let mut sums = header.encode().to_vec();
    if header.checksum != Checksum::Null {
        for piece in data.chunks(header.bytes_per_checksum as usize) {
            sums.extend(header.checksum.of_bytes(piece).to_be_bytes());
        }
    }
    fs::write(&meta, sums).expect("written");
    (DataDirs::new(vec![root.to_owned()]), path, meta)
}

fn range(block_length: u64, offset: u64, length: u64) -> BlockRange {
    BlockRange { block: BLOCK, block_length, offset, length }
}

fn read(dirs: &DataDirs, ranges: &[BlockRange]) -> HdfsResult<(Vec<u8>, u64)> {
    let mut ranges = BlockRanges::open(dirs, POOL, ranges, &Budget::new(8 << 20))?;
    let mut all = Vec::new();
    while ranges.left_bytes() > 0 {
        let before = all.len();
        ranges.more(&mut all)?;
        assert!(all.len() > before && all.len() - before <= ranges.step_bytes());
    }
    Ok((all, ranges.verified_bytes))
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

const HEADER: MetaHeader = MetaHeader { checksum: Checksum::Crc32c, bytes_per_checksum: 512 };

#[test]
fn ranges_are_read_whole_and_checked_in_pieces() {
    let root = tempfile::tempdir().expect("a folder");
    let data = bytes(3 * STEP_BYTES + 700);
    let (dirs, ..) = replica(root.path(), &data, HEADER);
    let len = data.len() as u64;
    let (found, verified) = read(&dirs, &[range(len, 0, len)]).expect("read");
    assert!(found == data && verified == len);
    // Two ranges of one block, neither at the border of a piece: five pieces, and the short one at the end.
    let two = [range(len, 100, 2000), range(len, len - 1, 1)];
    let (found, verified) = read(&dirs, &two).expect("read");
    assert_eq!(found, [&data[100..2100], &data[data.len() - 1..]].concat());
    assert_eq!(verified, 5 * 512 + (len % 512));
    assert_eq!(read(&dirs, &[]).expect("read").0, b"");
}

#[test]
fn every_kind_of_checksum_is_known() {
    let data = bytes(5000);
    for checksum in [Checksum::Null, Checksum::Crc32, Checksum::Crc32c] {
        for bytes_per_checksum in [1, 3, 512, 1 << 20] {
            let root = tempfile::tempdir().expect("a folder");
            let header = MetaHeader { checksum, bytes_per_checksum };
            let (dirs, ..) = replica(root.path(), &data, header);
            let (found, verified) = read(&dirs, &[range(5000, 10, 4000)]).expect("read");
            assert_eq!(found, data[10..4010]);
            assert_eq!(verified == 0, checksum == Checksum::Null);
        }
    }
}

#[test]
fn every_changed_byte_is_found() {
    let root = tempfile::tempdir().expect("a folder");
    let data = bytes(40);
    let header = MetaHeader { bytes_per_checksum: 16, ..HEADER };
    let (dirs, path, meta) = replica(root.path(), &data, header);
    let sums = fs::read(&meta).expect("there");
    for at in 0..data.len() {
        let mut changed = data.clone();
        changed[at] ^= 1;
        fs::write(&path, &changed).expect("written");
        let error = read(&dirs, &[range(40, 0, 40)]).expect_err("damaged");
        let HdfsError::Damaged { block: BLOCK, offset, detail } = error else { panic!("{error}") };
        assert_eq!(offset, at as u64 / 16 * 16);
        let expected = crc32c::crc32c(&data[at / 16 * 16..(at / 16 * 16 + 16).min(40)]);
        assert!(detail.contains(&format!("{expected:08x}")), "{detail}");
        // Pieces that are not read are not judged.
        let other = if at < 16 { range(40, 16, 24) } else { range(40, 3, 13) };
        read(&dirs, &[other]).expect("whole");
    }
    fs::write(&path, &data).expect("written");
    for at in HEADER_BYTES..sums.len() {
        let mut changed = sums.clone();
        changed[at] ^= 0x80;
        fs::write(&meta, &changed).expect("written");
        let error = read(&dirs, &[range(40, 0, 40)]).expect_err("damaged");
        assert!(matches!(error, HdfsError::Damaged { .. }), "{error}");
    }
    for len in 0..sums.len() {
        fs::write(&meta, &sums[..len]).expect("written");
        let error = read(&dirs, &[range(40, 0, 40)]).expect_err("short");
        assert!(matches!(error, HdfsError::Damaged { .. }), "{error}");
    }
    fs::write(&meta, [b"\x00\x02", &sums[2..]].concat()).expect("written");
    let error = read(&dirs, &[range(40, 0, 40)]).expect_err("another version");
    assert!(matches!(error, HdfsError::Checksum { .. }), "{error}");
}

#[test]
fn a_replica_that_is_deleted_or_cut_meanwhile() {
    let root = tempfile::tempdir().expect("a folder");
    let data = bytes(3 * STEP_BYTES);
    let (dirs, path, meta) = replica(root.path(), &data, HEADER);
    let len = data.len() as u64;
    let open = || BlockRanges::open(&dirs, POOL, &[range(len, 0, len)], &Budget::new(8 << 20));
    let (mut deleted, mut cut) = (open().expect("open"), open().expect("open"));
    let mut all = Vec::new();
    cut.more(&mut all).expect("read");
    fs::OpenOptions::new().write(true).open(&path).expect("open").set_len(len - 1).expect("cut");
    cut.more(&mut all).expect("the second step is there");
    let error = cut.more(&mut all).expect_err("the last is not");
    assert!(matches!(error, HdfsError::Io { .. }), "{error}");
    fs::write(&path, &data).expect("written");
    fs::remove_file(&path).expect("removed");
    fs::remove_file(&meta).expect("removed");
    all.clear();
    while deleted.left_bytes() > 0 {
        deleted.more(&mut all).expect("it is open");
    }
    assert!(all == data);
}

#[test]
fn checksums_take_memory() {
    let root = tempfile::tempdir().expect("a folder");
    let data = bytes(1 << 20);
    let header = MetaHeader { bytes_per_checksum: 1, ..HEADER };
    let (dirs, ..) = replica(root.path(), &data, header);
    let ranges = [range(1 << 20, 0, 1 << 20)];
    let error = BlockRanges::open(&dirs, POOL, &ranges, &Budget::new(2 << 20)).expect_err("4 MiB");
    assert!(matches!(error, HdfsError::Memory { .. }), "{error}");
    BlockRanges::open(&dirs, POOL, &ranges, &Budget::new(5 << 20)).expect("enough");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_ranges_of_a_block(
        len in 1_usize..3000,
        bytes_per_checksum in 1_u32..600,
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
    ) {
        let root = tempfile::tempdir().expect("a folder");
        let data = bytes(len);
        let (dirs, ..) = replica(root.path(), &data, MetaHeader { bytes_per_checksum, ..HEADER });
        let mut expected = Vec::new();
        let ranges: Vec<_> = cuts.iter().map(|(a, b)| {
            let (from, bytes) = (a.index(len), 1 + b.index(len));
            let to = (from + bytes).min(len);
            expected.extend_from_slice(&data[from..to]);
            range(len as u64, from as u64, (to - from) as u64)
        }).collect();
        let (found, _) = read(&dirs, &ranges).expect("read");
        prop_assert_eq!(found, expected);
    }
}
