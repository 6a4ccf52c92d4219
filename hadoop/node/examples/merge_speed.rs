//! How fast a reduce task's files, all in memory, are merged: the cases of the Hadoop plugin's
//! `merge-speed`, without Java.
//!
//! ```text
//! merge_speed FOLDER [MEGABYTES] [RECORD_BYTES FILES]      128, and all cases unless said otherwise
//! ```

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use merganser_hadoop_node::shuffle::{SegmentMerge, SegmentSpec};
use merganser_sort::record::ifile::{END_MARKER, push_record};

const KEY_BYTES: usize = 10;
/// What a reduce task gives a merge unless told otherwise.
const MEMORY_BYTES: usize = 64 << 20;
/// What one call from Java asks for.
const PIECE_BYTES: usize = 256 << 10;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let numbers: Vec<usize> = words.map(|word| word.parse()).collect::<Result<_, _>>()?;
    let bytes = numbers.first().unwrap_or(&128) << 20;
    let cases = match numbers[..] {
        [_, record, files] => vec![(record, files)],
        _ => vec![(100, 10), (100, 100), (4096, 10), (4096, 100)],
    };
    println!("record  files   MB/s   busy ns a record   compares a record   (medians of {ROUNDS})");
    for (record, files) in cases {
        let segments = write(&folder, bytes, record, files)?;
        let mut seconds = Vec::with_capacity(ROUNDS);
        let mut count = merganser_sort::merge::ifile::IFileCount::default();
        // One round more, not counted.
        for _ in 0..=ROUNDS {
            let (begun, busy) = (Instant::now(), processor_seconds());
            let mut merge = SegmentMerge::open(&"text".parse()?, &segments, MEMORY_BYTES)?;
            let mut piece = vec![0; PIECE_BYTES];
            while merge.read(&mut piece)? > 0 {}
            count = merge.count();
            drop(merge);
            seconds.push((begun.elapsed().as_secs_f64(), processor_seconds() - busy));
        }
        seconds.remove(0);
        let median = |mut times: Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[ROUNDS / 2]
        };
        let elapsed = median(seconds.iter().map(|(elapsed, _)| *elapsed).collect());
        let busy = median(seconds.iter().map(|(_, busy)| *busy).collect());
        let read: u64 = segments.iter().map(|segment| segment.raw).sum();
        println!(
            "{record:6} {files:6} {:6.0} {:18.1} {:19.2}",
            read as f64 / elapsed / 1e6,
            busy * 1e9 / count.records as f64,
            count.compares as f64 / count.records as f64,
        );
        for segment in segments {
            fs::remove_file(segment.path)?;
        }
    }
    Ok(())
}

/// Processor time that this process has used.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Files of sorted records, one segment each.
fn write(
    folder: &Path,
    bytes: usize,
    record: usize,
    files: usize,
) -> std::io::Result<Vec<SegmentSpec>> {
    let mut random = 1_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let mut file = |number: usize| {
        let mut keys: Vec<[u8; KEY_BYTES + 1]> = (0..bytes / files / record)
            .map(|_| {
                let mut key = [KEY_BYTES as u8; KEY_BYTES + 1];
                key[1..].iter_mut().for_each(|byte| *byte = b' ' + (next() >> 32) as u8 % 95);
                key
            })
            .collect();
        keys.sort_unstable();
        let mut value = vec![b'v'; record - KEY_BYTES + 4];
        let mut out = Vec::with_capacity(bytes / files * 5 / 4);
        for key in &keys {
            value
                .chunks_exact_mut(8)
                .for_each(|eight| eight.copy_from_slice(&next().to_ne_bytes()));
            push_record(key, &value, &mut out);
        }
        out.extend(END_MARKER);
        let crc = crc32fast::hash(&out);
        out.extend(crc.to_be_bytes());
        let path = folder.join(format!("map_{number}.out"));
        fs::write(&path, &out)?;
        let part = out.len() as u64;
        Ok(SegmentSpec { path, offset: 0, raw: part - 4, part })
    };
    (0..files).map(&mut file).collect()
}
