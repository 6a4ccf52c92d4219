//! A small model of what a MapReduce job of Hadoop does to its one disk, pass by pass.
//!
//! ```text
//!   map      read the block ─► sort buffer ─► spills ─┬─► merge passes ─► map output     (one segment
//!                                                     └─► left as they are, deferred      or k a reducer)
//!   reduce   fetch a segment of each map (or k) ─► runs on disk ─► merge passes ─► reduce ─► output
//! ```
//!
//! A phase takes as long as the slower of the disk and the processor. The disk's time is its bytes at the
//! rates of [`Disk`], and a seek whenever it turns to another stream: after [`READ_AHEAD_BYTES`], which is
//! what Hadoop reads ahead of each, or after a segment that is smaller. Bytes that were written recently
//! are still in the page cache, as far as that has room for what all tasks wrote since. The processor's
//! time is the same for all settings, but for the start of each task and for the records that merges move.
//!
//! Left out: replication and the network (one node holds everything), speculative and failed tasks,
//! skew, combiners, compression, and reducers that start before the last map ends.

use std::collections::VecDeque;

use crate::config::HadoopJob;

/// `mapreduce.ifile.readahead.bytes` and `dfs.datanode.readahead.bytes`, Hadoop's defaults.
const READ_AHEAD_BYTES: f64 = (4 << 20) as f64;
/// `mapreduce.map.sort.spill.percent`: a spill begins when this part of the buffer is full.
const SPILL_SHARE: f64 = 0.8;
/// Bytes of the sort buffer that each record takes in addition to its own.
const RECORD_META_BYTES: f64 = 16.0;
/// `mapreduce.reduce.shuffle.input.buffer.percent` times `mapreduce.reduce.shuffle.merge.percent`: the part
/// of a reducer's heap whose content becomes one run on disk.
const REDUCE_RUN_SHARE: f64 = 0.70 * 0.66;
/// The largest part of a task's heap that the sort buffer may take.
const SORT_SHARE_MAX: f64 = 0.7;
/// Seconds that the start of a task takes, assumed: a virtual machine, its classes, a heartbeat.
const TASK_SECONDS: f64 = 1.5;
/// Nanoseconds per byte that a map takes to read, serialize and sort, and a reduce to read and write,
/// assumed.
const WORK_NS: f64 = 20.0;
/// Nanoseconds per byte that one merge pass takes on the processor, assumed.
const MERGE_NS: f64 = 4.0;
/// The part of the fetches that are repeated: a deferred merge is repeated with them.
const AGAIN: f64 = 0.1;

/// The disk, as a stream sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disk {
    /// Nanoseconds per byte of reads in order.
    pub read_ns: f64,
    /// Nanoseconds per byte of writes in order.
    pub write_ns: f64,
    /// Nanoseconds that a turn to another stream costs.
    pub seek_ns: f64,
}

/// The settings that are advised on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// `mapreduce.task.io.sort.mb`, in bytes.
    pub sort_bytes: f64,
    /// `mapreduce.task.io.sort.factor`.
    pub factor: u32,
    /// `dfs.blocksize`.
    pub block_bytes: f64,
    /// Whether spills are left for the fetch to merge.
    pub defer: bool,
}

/// What a job costs with some settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Map tasks.
    pub maps: u64,
    /// Spills of each.
    pub spills: u64,
    /// Bytes that the disk reads and writes.
    pub disk_bytes: f64,
    /// Turns of the disk to another stream.
    pub seeks: f64,
    /// Seconds of the map phase.
    pub map_seconds: f64,
    /// Seconds of the reduce phase.
    pub reduce_seconds: f64,
}

impl Cost {
    /// Seconds of the job.
    pub fn seconds(&self) -> f64 {
        self.map_seconds + self.reduce_seconds
    }
}

/// The largest sort buffer that fits in a task's heap; Hadoop takes less than 2 GiB.
pub fn sort_bytes_max(job: &HadoopJob) -> f64 {
    (job.heap_bytes * SORT_SHARE_MAX).min((2047_u64 << 20) as f64)
}

/// Work of the disk and the processor in one phase.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    read: f64,
    written: f64,
    seeks: f64,
    /// Seconds of one processor.
    processor: f64,
}

impl Load {
    /// `bytes` are read once from streams of `stream_bytes`, `cached` of them from memory.
    fn read(&mut self, bytes: f64, stream_bytes: f64, cached: f64) {
        let bytes = bytes * (1.0 - cached);
        self.read += bytes;
        self.seeks += bytes / stream_bytes.clamp(1.0, READ_AHEAD_BYTES);
    }

    fn write(&mut self, bytes: f64) {
        self.written += bytes;
        self.seeks += bytes / READ_AHEAD_BYTES;
    }

    fn seconds(&self, disk: &Disk, processors: f64) -> f64 {
        let Disk { read_ns, write_ns, seek_ns } = *disk;
        let disk_ns = self.read * read_ns + self.written * write_ns + self.seeks * seek_ns;
        (disk_ns / 1e9).max(self.processor / processors)
    }
}

/// What `job` costs on `disk` with `settings`.
pub fn cost(job: &HadoopJob, disk: &Disk, settings: &Settings) -> Cost {
    let maps = (job.input_bytes / settings.block_bytes).ceil().max(1.0);
    let waves = (maps / job.cores).ceil();
    let output = job.input_bytes * job.ratio;
    let of_map = output / maps;
    let room = settings.sort_bytes * SPILL_SHARE * job.record_bytes
        / (job.record_bytes + RECORD_META_BYTES);
    let spills = (of_map / room).ceil().max(1.0);
    let cache = (job.memory_bytes - job.heap_bytes * job.cores).max(0.0);

    let mut map = Load::default();
    map.read(job.input_bytes, settings.block_bytes, 0.0);
    map.write(output);
    // A wave's last tasks leave processors idle.
    map.processor = maps * TASK_SECONDS + (job.input_bytes + output) * WORK_NS / 1e9;
    map.processor *= waves * job.cores / maps;
    let merges = spills > 1.0 && !settings.defer;
    if merges {
        let passes = rewritten(spills as u64, settings.factor);
        // The spills of the tasks that run now are read back.
        let cached = (cache / (of_map * job.cores.min(maps))).min(1.0);
        let segment = of_map / spills / job.reducers;
        map.read(output * passes, segment, cached);
        map.write(output * passes);
        map.processor += output * passes * MERGE_NS / 1e9;
    }

    let mut reduce = Load::default();
    let segments = if settings.defer { spills } else { 1.0 };
    let again = if settings.defer { 1.0 + AGAIN } else { 1.0 };
    let cached = (cache / output.max(1.0)).min(1.0);
    reduce.read(output * again, of_map / segments / job.reducers, cached);
    let processors = job.cores.min(job.reducers);
    let of_reducer = output / job.reducers;
    let runs = (of_reducer / (job.heap_bytes * REDUCE_RUN_SHARE)).ceil().max(1.0);
    // The last pass goes to the reduce function, and is not written.
    let passes = rewritten(runs as u64, settings.factor) - 1.0;
    let passes = if runs > 1.0 { passes.max(0.0) } else { 0.0 };
    reduce.write(output * (1.0 + passes));
    reduce.read(output * (1.0 + passes), of_reducer / runs, cached);
    // The result.
    reduce.write(output);
    reduce.processor = job.reducers * TASK_SECONDS + output * WORK_NS / 1e9;
    reduce.processor += output * (1.0 + passes + again) * MERGE_NS / 1e9;

    Cost {
        maps: maps as u64,
        spills: spills as u64,
        disk_bytes: map.read + map.written + reduce.read + reduce.written,
        seeks: map.seeks + reduce.seeks,
        map_seconds: map.seconds(disk, job.cores),
        reduce_seconds: reduce.seconds(disk, processors),
    }
}

/// How often each byte of `segments` equal ones is written until they are one, by Hadoop's merge: the first
/// pass takes so many that all later ones take `factor`, and each takes the smallest.
///
/// Segments of one size are counted together, so that the time does not grow with their number.
fn rewritten(segments: u64, factor: u32) -> f64 {
    let factor = u64::from(factor).max(2);
    if segments <= 1 {
        return 0.0;
    }
    // Sizes in segments, the smallest first, and how many there are of each. Sums are of 128 bits: each
    // pass writes at most all segments, and there are at most 64 times as many passes over all.
    let mut groups = VecDeque::from([(1_u128, u128::from(segments))]);
    let (mut left, factor) = (u128::from(segments), u128::from(factor));
    let mut written = 0;
    let mut take = match (left - 1) % (factor - 1) {
        _ if left <= factor => left,
        0 => factor,
        rest => rest + 1,
    };
    while left > 1 {
        let (size, count) = groups[0];
        // As many merges at once as take equal segments, and none that should take fewer.
        let merges = match left.saturating_sub(factor) {
            0 => 1,
            more if take == factor => (count / factor).min(more.div_ceil(factor - 1)).max(1),
            _ => 1,
        };
        let merged = if merges > 1 || count >= take {
            groups[0].1 -= merges * take;
            size * take
        } else {
            smallest(&mut groups, take)
        };
        if groups.front().is_some_and(|(_, count)| *count == 0) {
            groups.pop_front();
        }
        written += merges * merged;
        left -= merges * (take - 1);
        let at = groups.partition_point(|(size, _)| *size < merged);
        match groups.get_mut(at) {
            Some((size, count)) if *size == merged => *count += merges,
            _ => groups.insert(at, (merged, merges)),
        }
        take = left.min(factor);
    }
    written as f64 / segments as f64
}

/// Takes the `take` smallest out; their sum.
fn smallest(groups: &mut VecDeque<(u128, u128)>, mut take: u128) -> u128 {
    let mut sum = 0;
    while take > 0
        && let Some((size, count)) = groups.front_mut()
    {
        let taken = take.min(*count);
        (sum, take, *count) = (sum + *size * taken, take - taken, *count - taken);
        if *count == 0 {
            groups.pop_front();
        }
    }
    sum
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const MIB: f64 = (1 << 20) as f64;

    /// 10 GB through one reducer.
    pub fn job() -> HadoopJob {
        HadoopJob {
            input_bytes: 10e9,
            ratio: 1.0,
            record_bytes: 100.0,
            cores: 4.0,
            memory_bytes: 3.2e9,
            heap_bytes: 0.4e9,
            reducers: 1.0,
        }
    }

    fn settings(sort: f64, factor: u32, block: f64) -> Settings {
        Settings { sort_bytes: sort * MIB, factor, block_bytes: block * MIB, defer: false }
    }

    /// 125 MB/s both ways, 10 ms.
    const DISK: Disk = Disk { read_ns: 8.0, write_ns: 8.0, seek_ns: 10e6 };

    #[test]
    fn hadoops_merge_writes_each_byte_so_often() {
        assert_eq!(rewritten(1, 10), 0.0);
        assert_eq!(rewritten(2, 10), 1.0);
        assert_eq!(rewritten(10, 10), 1.0);
        // Two of eleven first, then ten.
        assert_eq!(rewritten(11, 10), 1.0 + 2.0 / 11.0);
        // All of the first pass are full, and so are the later ones.
        assert_eq!(rewritten(100, 10), 2.0);
        assert_eq!(rewritten(4, 2), 2.0);
    }

    /// Each pass by itself.
    fn one_by_one(segments: u64, factor: u64) -> f64 {
        let mut sizes: VecDeque<u64> = (0..segments).map(|_| 1).collect();
        let (mut written, mut first) = (0, true);
        while sizes.len() > 1 {
            let count = sizes.len() as u64;
            let take = match (first, (count - 1) % (factor - 1)) {
                _ if count <= factor => count,
                (true, rest) if rest > 0 => rest + 1,
                _ => factor,
            };
            first = false;
            let merged: u64 = sizes.drain(..take as usize).sum();
            written += merged;
            let at = sizes.partition_point(|&size| size <= merged);
            sizes.insert(at, merged);
        }
        written as f64 / segments as f64
    }

    #[test]
    fn passes_that_are_counted_together_are_those_of_hadoop() {
        for factor in [2, 3, 4, 10, 25] {
            for segments in 1..700 {
                let expected = if segments == 1 { 0.0 } else { one_by_one(segments, factor) };
                assert_eq!(rewritten(segments, factor as u32), expected, "{segments} by {factor}");
            }
        }
        // So many in no time, and no sum too large.
        assert!((63.0..66.0).contains(&rewritten(u64::MAX, 2)));
        assert!((8.0..9.0).contains(&rewritten(u64::MAX, 200)));
    }

    #[test]
    fn a_map_that_fits_its_buffer_spills_once() {
        // A 75th of 10 GB in records of 100 bytes takes 148 MiB of a buffer, and that is 80 % of 184.4.
        let spills = |sort| cost(&job(), &DISK, &settings(sort, 10, 128.0)).spills;
        assert_eq!((spills(185.0), spills(184.0), spills(94.0), spills(92.0)), (1, 2, 2, 3));
        let (one, two) = (settings(186.0, 10, 128.0), settings(100.0, 10, 128.0));
        let (one, two) = (cost(&job(), &DISK, &one), cost(&job(), &DISK, &two));
        assert!(two.disk_bytes >= one.disk_bytes + 10e9 && two.seconds() > one.seconds());
    }

    #[test]
    fn what_defers_saves_bytes_and_pays_seeks() {
        let many = HadoopJob { reducers: 64.0, input_bytes: 40e9, ..job() };
        let merged = settings(32.0, 10, 128.0);
        let deferred = Settings { defer: true, ..merged };
        let (merged, deferred) = (cost(&many, &DISK, &merged), cost(&many, &DISK, &deferred));
        assert!(deferred.disk_bytes < merged.disk_bytes - 30e9, "{deferred:?} {merged:?}");
        assert!(deferred.seeks > merged.seeks, "{deferred:?} {merged:?}");
        // Without seeks, it pays; where each takes long, it does not.
        let seconds = |seek_ns, defer| {
            let disk = Disk { seek_ns, ..DISK };
            cost(&many, &disk, &Settings { defer, ..settings(32.0, 10, 128.0) }).seconds()
        };
        assert!(seconds(0.0, true) < seconds(0.0, false));
        assert!(seconds(50e6, true) > seconds(50e6, false));
    }

    #[test]
    fn a_job_without_a_shuffle_is_its_reads_and_starts() {
        let none = HadoopJob { ratio: 0.0, ..job() };
        let cost = cost(&none, &DISK, &settings(100.0, 10, 128.0));
        assert_eq!((cost.maps, cost.spills, cost.disk_bytes), (75, 1, 10e9));
        assert!(cost.seconds().is_finite());
    }
}
