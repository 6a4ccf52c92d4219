//! A DataNode's folder with a file in blocks, requests for its splits, and spills that are read back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use merganser_hadoop_node::hdfs::meta::{Checksum, MetaHeader};
use merganser_hadoop_node::hdfs::{
    BlockRange, Codec, CombineKind, HdfsBlock, HdfsResult, MapRequest, Order, Partitioner,
    SegmentIndex, Sink, SsdletName, Writable,
};
use merganser_sort::record::ifile::{header, vlong};

pub(super) const POOL: &str = "BP-1-127.0.0.1-1700000000000";
const FIRST_ID: i64 = 1_073_741_825;
const HEADER: MetaHeader = MetaHeader { checksum: Checksum::Crc32c, bytes_per_checksum: 512 };

/// A file of HDFS, all blocks of it on this node.
pub(super) struct HdfsFile {
    pub folder: tempfile::TempDir,
    pub bytes: Vec<u8>,
    block_bytes: usize,
}

impl HdfsFile {
    pub(super) fn new(bytes: &[u8], block_bytes: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = HdfsFile { folder, bytes: bytes.to_vec(), block_bytes };
        for (n, block) in bytes.chunks(block_bytes).enumerate() {
            let (data, meta) = file.paths(n);
            fs::create_dir_all(data.parent().expect("a folder")).expect("made");
            fs::write(&data, block).expect("written");
            let sums =
                block.chunks(512).flat_map(|piece| HEADER.checksum.of_bytes(piece).to_be_bytes());
            fs::write(&meta, [&HEADER.encode()[..], &sums.collect::<Vec<_>>()].concat())
                .expect("written");
        }
        file
    }

    /// The files of block `n`: its bytes, their checksums.
    pub(super) fn paths(&self, n: usize) -> (PathBuf, PathBuf) {
        let id = FIRST_ID + n as i64;
        let below = format!(
            "current/{POOL}/current/finalized/subdir{}/subdir{}",
            id >> 16 & 31,
            id >> 8 & 31
        );
        let folder = self.dir().join(below);
        (folder.join(format!("blk_{id}")), folder.join(format!("blk_{id}_1001.meta")))
    }

    /// The DataNode's folder.
    pub(super) fn dir(&self) -> PathBuf {
        self.folder.path().join("dfs")
    }

    /// The parts of blocks that the bytes `start..end` are in.
    fn ranges(&self, start: usize, end: usize) -> Vec<BlockRange> {
        let blocks = self.bytes.chunks(self.block_bytes).enumerate();
        let range = |(n, block): (usize, &[u8])| {
            let begin = n * self.block_bytes;
            let (from, to) = (start.max(begin), end.min(begin + block.len()));
            (from < to).then(|| BlockRange {
                block: HdfsBlock { id: FIRST_ID + n as i64, generation: 1001 },
                block_length: block.len() as u64,
                offset: (from - begin) as u64,
                length: (to - from) as u64,
            })
        };
        blocks.filter_map(range).collect()
    }

    /// A request for the split `start..end`, with a tail up to the end of the second line behind it.
    pub(super) fn split(&self, ssdlet: &str, start: usize, end: usize) -> MapRequest {
        let rest = &self.bytes[end..];
        let mut lines = rest.split_inclusive(|b| *b == b'\n');
        let two = [lines.next(), lines.next()].into_iter().flatten();
        let tail_bytes = two.map(<[u8]>::len).sum();
        MapRequest {
            attempt: "attempt_1700000000000_0001_m_000000_0".to_owned(),
            ssdlet: SsdletName::BuiltIn(ssdlet.to_owned()),
            arguments: String::new(),
            pool: POOL.to_owned(),
            ranges: self.ranges(start, end),
            start: start as u64,
            end: end as u64,
            tail: rest[..tail_bytes].to_vec(),
            tail_at_eof: tail_bytes == rest.len(),
            delimiter: Vec::new(),
            record_bytes_max: i32::MAX as u32,
            partitions: 3,
            partitioner: Partitioner::Hash,
            order: Order::Text,
            key: Writable::Text,
            value: Writable::Int,
            combine: CombineKind::Sum,
            codec: Codec::None,
            memory_bytes: 16 << 20,
            // The most that there is: no test depends on how fast this machine is.
            patience_ms: 30_000,
        }
    }

    pub(super) fn whole(&self, ssdlet: &str) -> MapRequest {
        self.split(ssdlet, 0, self.bytes.len())
    }
}

/// Changes a byte of a file.
pub(super) fn change(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("there");
    bytes[at] ^= 0x20;
    fs::write(path, bytes).expect("written");
}

/// Spills of a map.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Spills {
    /// Bytes of the current one.
    current: Vec<u8>,
    /// Bytes and index of each.
    pub spills: Vec<(Vec<u8>, Vec<SegmentIndex>)>,
    pub progress: Vec<(u64, u64)>,
}

impl Sink for Spills {
    fn data(&mut self, bytes: &[u8]) -> HdfsResult<()> {
        self.current.extend(bytes);
        Ok(())
    }

    fn spill(&mut self, number: u32, records: u64, index: Vec<SegmentIndex>) -> HdfsResult<()> {
        assert_eq!(number as usize, self.spills.len());
        self.spills.push((std::mem::take(&mut self.current), index));
        let found: usize = self.rows_of(number as usize).iter().map(Vec::len).sum();
        assert_eq!(found as u64, records);
        Ok(())
    }

    fn progress(&mut self, split_bytes: u64, records: u64) -> HdfsResult<()> {
        self.progress.push((split_bytes, records));
        Ok(())
    }
}

/// A key and a value, as they are serialized.
pub(super) type Row = (Vec<u8>, Vec<u8>);

impl Spills {
    /// The rows of each partition of spill `n`, whose frame is checked on the way.
    pub(super) fn rows_of(&self, n: usize) -> Vec<Vec<Row>> {
        let (bytes, index) = &self.spills[n];
        let mut at = 0;
        let mut partitions = Vec::new();
        for SegmentIndex { offset, raw, part } in index {
            assert_eq!((*offset, *part), (at, raw + 4));
            let segment = &bytes[*offset as usize..][..*part as usize];
            let (covered, crc) = segment.split_at(*raw as usize);
            assert_eq!(crc32fast::hash(covered).to_be_bytes(), crc);
            partitions.push(rows(covered.strip_suffix(b"\xff\xff").expect("the end marker")));
            at += part;
        }
        assert_eq!(at, bytes.len() as u64);
        partitions
    }

    /// The sums of numbers of all spills, by word, and by the partition that it was found in.
    pub(super) fn sums(&self) -> BTreeMap<(Vec<u8>, usize), i64> {
        let mut sums = BTreeMap::new();
        for n in 0..self.spills.len() {
            for (partition, rows) in self.rows_of(n).into_iter().enumerate() {
                let is_sorted = rows.is_sorted_by(|a, b| text(&a.0) <= text(&b.0));
                assert!(is_sorted, "spill {n}, partition {partition}");
                for (key, value) in rows {
                    *sums.entry((text(&key).to_vec(), partition)).or_default() += number(&value);
                }
            }
        }
        sums
    }
}

fn rows(mut rest: &[u8]) -> Vec<Row> {
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let head = header(rest).expect("a record").expect("whole");
        let (key, after) = rest[head.bytes..].split_at(head.key);
        let (value, after) = after.split_at(head.value);
        rows.push((key.to_vec(), value.to_vec()));
        rest = after;
    }
    rows
}

/// The bytes of a serialized `Text`.
pub(super) fn text(bytes: &[u8]) -> &[u8] {
    let (len, at) = vlong(bytes).expect("a length");
    assert_eq!(bytes.len(), at + len as usize);
    &bytes[at..]
}

fn number(bytes: &[u8]) -> i64 {
    match *bytes {
        [a, b, c, d] => i32::from_be_bytes([a, b, c, d]).into(),
        _ => i64::from_be_bytes(bytes.try_into().expect("a number")),
    }
}

/// The partition that `HashPartitioner` gives a word.
pub(super) fn partition(word: &[u8], partitions: usize) -> usize {
    let code = word.iter().fold(1_i64, |hash, byte| {
        let signed = if *byte > 127 { i64::from(*byte) - 256 } else { i64::from(*byte) };
        (hash * 31 + signed) & 0xffff_ffff
    });
    (code & 0x7fff_ffff) as usize % partitions
}

/// How often each word of `lines` occurs, by partition.
pub(super) fn count(lines: &[u8], partitions: usize) -> BTreeMap<(Vec<u8>, usize), i64> {
    let mut counts = BTreeMap::new();
    let separates = |b: &u8| b" \t\n\r\x0c".contains(b);
    for word in lines.split(separates).filter(|word| !word.is_empty()) {
        *counts.entry((word.to_vec(), partition(word, partitions))).or_default() += 1;
    }
    counts
}

/// Lines of words, with `distinct` different ones.
pub(super) fn lines(count: usize, distinct: u32) -> Vec<u8> {
    let mut text = Vec::new();
    let mut state = 12_345_u32;
    for _ in 0..count {
        for _ in 0..8 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let word = (state >> 8) % distinct;
            text.extend(format!("w{word:x} ").bytes());
        }
        text.push(b'\n');
    }
    text
}
