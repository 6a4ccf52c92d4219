//! One sorter sorts records that this program makes: `rust-sorters SORTER records|pairs COUNT MEMORY_MIB FOLDER`.
//!
//! `records` have a key of 10 random bytes and 90 more, as gensort's; `pairs` are `(String, u64)` with strings of 12 to 36
//! letters. What comes out is compared with its order and summed. It prints the seconds and the most memory that the
//! process had; a sorter that counts items and not bytes gets as many as fit into that memory.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Instant;

use ext_sort::{ExternalSorter, ExternalSorterBuilder, LimitedBufferBuilder};
use extsort::Sortable;
use extsort_iter::{ExtsortConfig, ParallelExtSortOrdExtension};
use merganser_sort::Budget;
use merganser_sort::files::FileDirectory;
use merganser_sort::rows::{KeepAll, RowSorter, RowsBy};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const RECORD: usize = 100;
const KEY: usize = 10;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[derive(Clone, Copy)]
struct Record([u8; RECORD]);

impl Record {
    fn key(&self) -> &[u8] {
        &self.0[..KEY]
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Record {}
impl PartialOrd for Record {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Record {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(other.key())
    }
}

impl Sortable for Record {
    fn encode<W: Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(&self.0)
    }
    fn decode<R: Read>(reader: &mut R) -> io::Result<Self> {
        let mut record = [0; RECORD];
        reader.read_exact(&mut record)?;
        Ok(Record(record))
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Record;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("100 bytes")
            }
            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Record, E> {
                bytes.try_into().map(Record).map_err(E::custom)
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pair((String, u64));

impl Sortable for Pair {
    fn encode<W: Write>(&self, writer: &mut W) -> io::Result<()> {
        let (text, number) = &self.0;
        writer.write_all(&(text.len() as u32).to_le_bytes())?;
        writer.write_all(text.as_bytes())?;
        writer.write_all(&number.to_le_bytes())
    }
    fn decode<R: Read>(reader: &mut R) -> io::Result<Self> {
        let (mut len, mut number) = ([0; 4], [0; 8]);
        reader.read_exact(&mut len)?;
        let mut text = vec![0; u32::from_le_bytes(len) as usize];
        reader.read_exact(&mut text)?;
        reader.read_exact(&mut number)?;
        let text = String::from_utf8(text).map_err(io::Error::other)?;
        Ok(Pair((text, u64::from_le_bytes(number))))
    }
}

/// An item of a benchmark.
trait Item: Sized + Ord {
    /// Memory of an item on average, in bytes: itself, and what it has on the heap.
    const MEMORY: u64;
    fn made(random: &mut Random) -> Self;
    /// A number that all of it takes part in.
    fn sum(&self) -> u64;
}

impl Item for Record {
    const MEMORY: u64 = RECORD as u64;
    fn made(random: &mut Random) -> Self {
        let mut record = [b'x'; RECORD];
        record[..8].copy_from_slice(&random.bits().to_be_bytes());
        record[8..16].copy_from_slice(&random.bits().to_be_bytes());
        Record(record)
    }
    fn sum(&self) -> u64 {
        self.0[..16]
            .chunks(8)
            .fold(0, |sum, part| sum ^ u64::from_le_bytes(part.try_into().expect("8 bytes")))
    }
}

impl Item for (String, u64) {
    /// 32 for the pair, and blocks of 32 or 48 of the allocator.
    const MEMORY: u64 = 32 + 40;
    fn made(random: &mut Random) -> Self {
        let (mut bits, number) = (random.bits(), random.bits());
        let len = 12 + bits % 25;
        let mut text = String::with_capacity(len as usize);
        for _ in 0..len {
            bits = bits.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            text.push(char::from(b'a' + (bits >> 59) as u8 % 26));
        }
        (text, number)
    }
    fn sum(&self) -> u64 {
        self.0.len() as u64 + self.1
    }
}

impl Item for Pair {
    const MEMORY: u64 = <(String, u64)>::MEMORY;
    fn made(random: &mut Random) -> Self {
        Pair(Item::made(random))
    }
    fn sum(&self) -> u64 {
        self.0.sum()
    }
}

/// `count` items, always the same ones.
fn made<T: Item>(count: u64) -> impl Iterator<Item = T> {
    let mut random = Random(39);
    (0..count).map(move |_| T::made(&mut random))
}

/// Checks the order and sums up.
fn drain<T: Item>(items: impl Iterator<Item = Outcome<T>>) -> Outcome<(u64, u64)> {
    let (mut count, mut sum, mut before) = (0, 0_u64, None);
    for item in items {
        let item = item?;
        assert!(before.as_ref().is_none_or(|before| *before <= item), "out of order");
        (count, sum) = (count + 1, sum.wrapping_add(item.sum()));
        before = Some(item);
    }
    Ok((count, sum))
}

struct Setup<'a> {
    count: u64,
    memory_bytes: u64,
    folder: &'a Path,
}

impl Setup<'_> {
    /// How many items fit into `share` of the memory.
    fn items<T: Item>(&self, share: f64) -> usize {
        (self.memory_bytes as f64 * share / T::MEMORY as f64) as usize
    }
}

fn extsort<T: Item + Sortable + Sync>(setup: &Setup<'_>) -> Outcome<(u64, u64)> {
    let sorter = extsort::ExternalSorter::new()
        .with_segment_size(setup.items::<T>(0.95))
        .with_sort_dir(setup.folder.to_owned())
        .with_parallel_sort();
    drain(sorter.sort(made::<T>(setup.count))?.map(|item| Ok(item?)))
}

/// Its sort is stable, and takes half as much memory again.
fn ext_sort<T>(setup: &Setup<'_>) -> Outcome<(u64, u64)>
where
    T: Item + Send + Serialize + for<'de> Deserialize<'de>,
{
    let items = setup.items::<T>(0.65);
    let sorter: ExternalSorter<T, Infallible, LimitedBufferBuilder> = ExternalSorterBuilder::new()
        .with_threads_number(2)
        .with_tmp_dir(setup.folder)
        .with_buffer(LimitedBufferBuilder::new(items, true))
        .build()?;
    drain(sorter.sort(made::<T>(setup.count).map(Ok))?.map(|item| Ok(item?)))
}

fn extsort_iter<T: Item + Send>(setup: &Setup<'_>) -> Outcome<(u64, u64)> {
    let config = ExtsortConfig::with_buffer_size((setup.memory_bytes as f64 * 0.95) as usize)
        .temp_file_folder(setup.folder);
    drain(made::<T>(setup.count).par_external_sort(config)?.map(Ok))
}

fn rows(setup: &Setup<'_>) -> Outcome<RowSorter<KeepAll>> {
    let memory = Budget::new(setup.memory_bytes);
    Ok(RowSorter::new(RowsBy::Key, &memory, KeepAll)
        .temp(vec![FileDirectory::open(setup.folder)?])
        .threads(2))
}

fn our_records(setup: &Setup<'_>) -> Outcome<(u64, u64)> {
    let mut sorter = rows(setup)?;
    for Record(record) in made::<Record>(setup.count) {
        sorter.push(&record[..KEY], &record[KEY..])?;
    }
    let mut rows = sorter.finish()?;
    drain(std::iter::from_fn(|| {
        let next = |row: (&[u8], &[u8])| {
            let mut record = [0; RECORD];
            record[..KEY].copy_from_slice(row.0);
            record[KEY..].copy_from_slice(row.1);
            Record(record)
        };
        rows.next().map(|row| row.map(next)).map_err(Into::into).transpose()
    }))
}

fn our_pairs(setup: &Setup<'_>) -> Outcome<(u64, u64)> {
    let mut sorter = rows(setup)?;
    for pair in made::<(String, u64)>(setup.count) {
        sorter.push_key(&pair, b"")?;
    }
    let mut rows = sorter.finish()?;
    drain(std::iter::from_fn(|| {
        let pair = rows.next_as::<(String, u64)>().map(|row| row.map(|(pair, _)| pair));
        pair.map_err(Into::into).transpose()
    }))
}

/// The most memory that this process had, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) >> 10
}

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [sorter, items, count, memory_mib, folder] = &arguments[..] else {
        return Err("rust-sorters SORTER records|pairs COUNT MEMORY_MIB FOLDER".into());
    };
    rayon::ThreadPoolBuilder::new().num_threads(2).build_global()?;
    let setup = Setup {
        count: count.parse()?,
        memory_bytes: memory_mib.parse::<u64>()? << 20,
        folder: Path::new(folder),
    };
    let begun = Instant::now();
    let (found, sum) = match (sorter.as_str(), items.as_str()) {
        ("none", "records") => drain(made::<Record>(1).map(Ok)).and_then(|_| {
            let sums = made::<Record>(setup.count).map(|item| item.sum());
            Ok((setup.count, sums.fold(0, u64::wrapping_add)))
        })?,
        ("extsort", "records") => extsort::<Record>(&setup)?,
        ("extsort", "pairs") => extsort::<Pair>(&setup)?,
        ("ext-sort", "records") => ext_sort::<Record>(&setup)?,
        ("ext-sort", "pairs") => ext_sort::<(String, u64)>(&setup)?,
        ("extsort-iter", "records") => extsort_iter::<Record>(&setup)?,
        ("extsort-iter", "pairs") => extsort_iter::<(String, u64)>(&setup)?,
        ("merganser", "records") => our_records(&setup)?,
        ("merganser", "pairs") => our_pairs(&setup)?,
        _ => return Err(format!("{sorter} {items}: no such sorter or items").into()),
    };
    assert_eq!(found, setup.count, "items are lost");
    println!(
        "{sorter} {items} {:.3} s {} MiB sum {sum:016x}",
        begun.elapsed().as_secs_f64(),
        peak_mib()
    );
    Ok(())
}
