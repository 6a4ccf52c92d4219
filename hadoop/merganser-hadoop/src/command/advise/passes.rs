//! A small model of what a MapReduce job of Hadoop does to its one disk, pass by pass.
//!
//! ```text
//!   map      read the block ─► sort buffer ─► spills ─┬─► merge passes ─► map output     (one segment
//!                                                     └─► left as they are, deferred      or k a reducer)
//!   reduce   fetch a segment of each map (or k) ─► runs on disk ─► merge passes ─► reduce ─► output
//! ```
//!
//! A phase takes at least as long as the slower of the disk and the processors, and longer because each waits for
//! the other at times ([`together`]). The disk's time is its bytes at the rates of [`DiskRates`], and a seek whenever it
//! turns to another stream. A single stream turns after
//! [`STREAM_BYTES`] or at its end. A merge turns after each window of a segment: its segments
//! run out of records at different times. Bytes are read from the page cache if that has room for all that
//! went through it since they were written, and otherwise from the disk: what is read in the order in
//! which it was written has always just been dropped. The processors' time is the same for all settings, but
//! for the start of each task and for the records that merges move.
//!
//! Left out: replication and the network (one node holds everything), speculative and failed tasks,
//! skew, combiners, compression, and reducers that start before the last map ends.

use std::collections::VecDeque;

use crate::config::HadoopJob;

/// Bytes of one stream between two turns to another one: `dfs.datanode.readahead.bytes`, Hadoop's default.
const STREAM_BYTES: f64 = (4 << 20) as f64;
/// Bytes of a segment that a merge of Hadoop's reads at once: what Linux reads ahead of a file
/// (`read_ahead_kb`, its default). Hadoop's own read-ahead, `mapreduce.ifile.readahead.bytes`, is a hint to
/// the kernel. It doesn't exist without the native library, nor for local files with checksums.
const MERGE_WINDOW_BYTES: f64 = (128 << 10) as f64;
/// The same for a merge that was deferred: its largest buffer (`SegmentMerge` of the plugin).
const DEFERRED_WINDOW_BYTES: f64 = (256 << 10) as f64;
/// `mapreduce.map.sort.spill.percent`: a spill begins when this part of the buffer is full.
const SPILL_SHARE: f64 = 0.8;
/// Bytes of the sort buffer that each record takes in addition to its own.
const RECORD_META_BYTES: f64 = 16.0;
/// `mapreduce.reduce.shuffle.input.buffer.percent` times `mapreduce.reduce.shuffle.merge.percent`: the part
/// of a reducer's heap whose content becomes one run on disk.
const REDUCE_RUN_SHARE: f64 = 0.70 * 0.66;
/// The largest part of a task's heap that the sort buffer may take.
const SORT_SHARE_MAX: f64 = 0.7;
/// Seconds that the start of a task takes on a processor of speed 1, assumed: a virtual machine, its
/// classes, a heartbeat.
const TASK_SECONDS: f64 = 1.5;
/// Nanoseconds per byte that a map takes to read, serialize and sort, and a reduce to read and write,
/// assumed.
const WORK_NS: f64 = 20.0;
/// Nanoseconds per byte that one merge pass takes on the processor, assumed.
const MERGE_NS: f64 = 4.0;
/// Requests that a task has under way, assumed: its own work, and the kernel's reads ahead or writes behind for it.
const CUSTOMERS_PER_TASK: f64 = 2.0;
/// With more of them, the longer of the two times is all that counts.
const CUSTOMERS_MAX: f64 = 1000.0;
/// The part of the fetches that are repeated: a deferred merge is repeated with them.
const AGAIN: f64 = 0.1;

/// The disk, as a stream sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DiskRates {
    /// Nanoseconds per byte of reads in order.
    pub read_ns: f64,
    /// Nanoseconds per byte of writes in order.
    pub write_ns: f64,
    /// Nanoseconds that a turn to another stream costs.
    pub seek_ns: f64,
}

/// The settings that are advised on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AdvisedSettings {
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
pub(super) struct AdvisedCost {
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

impl AdvisedCost {
    /// Seconds of the job.
    pub(super) fn seconds(&self) -> f64 {
        self.map_seconds + self.reduce_seconds
    }
}

/// The largest sort buffer that fits in a task's heap; Hadoop takes less than 2 GiB.
pub(super) fn sort_bytes_max(job: &HadoopJob) -> f64 {
    (job.heap_bytes * SORT_SHARE_MAX).min((2047_u64 << 20) as f64)
}

/// Work of the disk and the processors in one phase.
#[derive(Debug, Clone, Copy, Default)]
struct PhaseLoad {
    read: f64,
    written: f64,
    seeks: f64,
    /// Seconds in which the processors are busy with it.
    processor: f64,
}

impl PhaseLoad {
    /// `bytes` are read once, one segment of `segment_bytes` after the other.
    fn read(&mut self, bytes: f64, segment_bytes: f64) {
        self.read += bytes;
        self.seeks += bytes / segment_bytes.clamp(1.0, STREAM_BYTES);
    }

    /// `bytes` are read once by merges, windows of up to `window` in turn. The largest segment of a merge
    /// is the part `largest` of it. If that is more than half, two of its windows in a row need no turn.
    fn merge(&mut self, bytes: f64, segment_bytes: f64, window: f64, largest: f64) {
        let turns = (2.0 * (1.0 - largest)).clamp(0.0, 1.0);
        self.read += bytes;
        self.seeks += bytes / segment_bytes.clamp(1.0, window) * turns;
        self.seeks += bytes / STREAM_BYTES * (1.0 - turns);
    }

    fn write(&mut self, bytes: f64) {
        self.written += bytes;
        self.seeks += bytes / STREAM_BYTES;
    }

    /// With `tasks` tasks at once.
    fn seconds(&self, disk: &DiskRates, tasks: f64) -> f64 {
        let DiskRates { read_ns, write_ns, seek_ns } = *disk;
        let disk_ns = self.read * read_ns + self.written * write_ns + self.seeks * seek_ns;
        together(disk_ns / 1e9, self.processor, CUSTOMERS_PER_TASK * tasks)
    }
}

/// The time in which `customers` do work that takes `disk` seconds of the disk and `processor` seconds of the
/// processors in all. Each customer is at one of the two, or waits for it. So one customer takes the sum, and the more
/// there are, the nearer the time comes to the longer of the two.
///
/// Mean value analysis of a closed network with two queues (Reiser and Lavenberg, JACM 27, 1980): a customer
/// finds the queue that there is with one customer less.
fn together(disk: f64, processor: f64, customers: f64) -> f64 {
    let demands = [disk, processor];
    let (mut queues, mut time) = ([0.0; 2], 0.0);
    for count in 1..=(customers.clamp(1.0, CUSTOMERS_MAX) as u32) {
        let stays = [0, 1].map(|at: usize| demands[at] * (1.0 + queues[at]));
        let all: f64 = stays.iter().sum();
        if all == 0.0 {
            return 0.0;
        }
        time = all / f64::from(count);
        queues = stays.map(|stay| stay / time);
    }
    time
}

/// The time that `count` tasks take on the processors, `tasks` of them at once, in times of one task that
/// has a processor to itself.
fn task_times(job: &HadoopJob, count: f64) -> f64 {
    let last = count % job.tasks;
    let full = (count - last) / job.tasks.min(job.cores);
    // The last wave leaves processors idle if it has fewer tasks.
    full + if last > 0.0 { last / last.min(job.cores) } else { 0.0 }
}

/// What `job` costs on `disk` with `settings`.
pub(super) fn cost(job: &HadoopJob, disk: &DiskRates, settings: &AdvisedSettings) -> AdvisedCost {
    let maps = (job.input_bytes / settings.block_bytes).ceil().max(1.0);
    let at_once = job.tasks.min(maps);
    let output = job.input_bytes * job.ratio;
    let of_map = output / maps;
    let room = settings.sort_bytes * SPILL_SHARE * job.record_bytes
        / (job.record_bytes + RECORD_META_BYTES);
    let spills = (of_map / room).ceil().max(1.0);
    // All spills but a map's last one fill the buffer.
    let largest = (room / of_map.max(1.0)).min(1.0);
    let cache = (job.memory_bytes - job.heap_bytes * job.tasks).max(0.0);
    // The part that the disk reads, if the cache has passed `since` bytes since they were written.
    let from_disk = |since: f64| if since <= cache { 0.0 } else { 1.0 };
    let (task_seconds, work_ns, merge_ns) =
        (TASK_SECONDS / job.speed, WORK_NS / job.speed, MERGE_NS / job.speed);

    let mut map = PhaseLoad::default();
    map.read(job.input_bytes, settings.block_bytes);
    map.write(output);
    let mut of_task = task_seconds + (job.input_bytes / maps + of_map) * work_ns / 1e9;
    let merges = spills > 1.0 && !settings.defer;
    if merges {
        let passes = rewritten(spills as u64, settings.factor);
        // The tasks that run now have read their blocks and written their spills.
        let read = output * passes * from_disk((job.input_bytes / maps + of_map) * at_once);
        map.merge(read, of_map / spills / job.reducers, MERGE_WINDOW_BYTES, largest);
        map.write(output * passes);
        of_task += of_map * passes * merge_ns / 1e9;
    }
    map.processor = of_task * task_times(job, maps);

    let mut reduce = PhaseLoad::default();
    let again = if settings.defer { 1.0 + AGAIN } else { 1.0 };
    // All maps have read their blocks and written their outputs.
    let fetched = output * again * from_disk(job.input_bytes + output);
    if settings.defer && spills > 1.0 {
        reduce.merge(fetched, of_map / spills / job.reducers, DEFERRED_WINDOW_BYTES, largest);
    } else {
        reduce.read(fetched, of_map / job.reducers);
    }
    let of_reducer = output / job.reducers;
    let run = job.heap_bytes * REDUCE_RUN_SHARE;
    let runs = (of_reducer / run).ceil().max(1.0);
    // The last pass goes to the reduce function, and is not written.
    let passes = rewritten(runs as u64, settings.factor) - 1.0;
    let passes = if runs > 1.0 { passes.max(0.0) } else { 0.0 };
    reduce.write(output * (1.0 + passes));
    let reducers_at_once = job.tasks.min(job.reducers);
    // A reducer fetches all of its part before it merges its runs.
    let read = output * (1.0 + passes) * from_disk(2.0 * of_reducer * reducers_at_once);
    let largest = (run / of_reducer.max(1.0)).min(1.0);
    reduce.merge(read, of_reducer / runs, MERGE_WINDOW_BYTES, largest);
    // The result.
    reduce.write(output);
    let of_task = task_seconds + of_reducer * (work_ns + (1.0 + passes + again) * merge_ns) / 1e9;
    reduce.processor = of_task * task_times(job, job.reducers);

    AdvisedCost {
        maps: maps as u64,
        spills: spills as u64,
        disk_bytes: map.read + map.written + reduce.read + reduce.written,
        seeks: map.seeks + reduce.seeks,
        map_seconds: map.seconds(disk, at_once),
        reduce_seconds: reduce.seconds(disk, reducers_at_once),
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
    pub(crate) fn job() -> HadoopJob {
        HadoopJob {
            input_bytes: 10e9,
            ratio: 1.0,
            record_bytes: 100.0,
            cores: 4.0,
            tasks: 4.0,
            speed: 1.0,
            memory_bytes: 3.2e9,
            heap_bytes: 0.4e9,
            reducers: 1.0,
        }
    }

    fn settings(sort: f64, factor: u32, block: f64) -> AdvisedSettings {
        AdvisedSettings { sort_bytes: sort * MIB, factor, block_bytes: block * MIB, defer: false }
    }

    /// 125 MB/s both ways, 10 ms.
    const DISK: DiskRates = DiskRates { read_ns: 8.0, write_ns: 8.0, seek_ns: 10e6 };

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
        let deferred = AdvisedSettings { defer: true, ..merged };
        let (merged, deferred) = (cost(&many, &DISK, &merged), cost(&many, &DISK, &deferred));
        assert!(deferred.disk_bytes < merged.disk_bytes - 30e9, "{deferred:?} {merged:?}");
        assert!(deferred.seeks > merged.seeks, "{deferred:?} {merged:?}");
        // Without seeks, it pays; where each takes long, it does not.
        let seconds = |seek_ns, defer| {
            let disk = DiskRates { seek_ns, ..DISK };
            cost(&many, &disk, &AdvisedSettings { defer, ..settings(32.0, 10, 128.0) }).seconds()
        };
        assert!(seconds(0.0, true) < seconds(0.0, false));
        assert!(seconds(50e6, true) > seconds(50e6, false));
    }

    #[test]
    fn a_merge_turns_at_each_window_unless_one_segment_is_most_of_it() {
        let turns = |largest: f64| {
            let mut load = PhaseLoad::default();
            load.merge(128.0 * MIB, 64.0 * MIB, MERGE_WINDOW_BYTES, largest);
            load.seeks
        };
        // 1,024 windows of 128 KiB, or 32 streams of 4 MiB.
        assert_eq!((turns(0.1), turns(0.5), turns(1.0)), (1024.0, 1024.0, 32.0));
        // Each of the 256 windows of the smaller one is between two of the larger one.
        assert_eq!(turns(0.75), 512.0 + 16.0);
        let mut small = PhaseLoad::default();
        small.merge(128.0 * MIB, MIB / 64.0, MERGE_WINDOW_BYTES, 0.1);
        assert_eq!(small.seeks, 8192.0, "a window is at most a segment");
    }

    #[test]
    fn a_cache_holds_all_that_went_through_it_or_nothing() {
        // Two spills per map: 128 MiB of input and of spills for each of 4 tasks are 1 GiB.
        let with = |memory_bytes: f64| {
            let job = HadoopJob { memory_bytes, ..job() };
            cost(&job, &DISK, &settings(100.0, 200, 128.0)).disk_bytes
        };
        let heaps = 4.0 * job().heap_bytes;
        let (none, spills) = (with(heaps + 1000.0 * MIB), with(heaps + 1030.0 * MIB));
        assert!((none - spills - 10e9).abs() < 1.0, "{none} {spills}");
        // And with room for everything, neither map outputs nor runs are read.
        assert!((with(heaps + 21e9) - (none - 30e9)).abs() < 1.0);
    }

    #[test]
    fn tasks_share_the_processors_and_a_last_wave_may_leave_some_idle() {
        let times = |cores, tasks, count| task_times(&HadoopJob { cores, tasks, ..job() }, count);
        assert_eq!((times(4.0, 4.0, 8.0), times(4.0, 4.0, 9.0)), (2.0, 3.0));
        // Two tasks on one processor take twice as long each, one doesn't.
        assert_eq!((times(1.0, 2.0, 8.0), times(1.0, 2.0, 7.0)), (8.0, 7.0));
        assert_eq!((times(8.0, 2.0, 8.0), times(4.0, 8.0, 18.0)), (4.0, 5.0));
        // Without a disk, processors of twice the speed take half the time.
        let none = DiskRates { read_ns: 0.0, write_ns: 0.0, seek_ns: 0.0 };
        let seconds = |speed| {
            cost(&HadoopJob { speed, ..job() }, &none, &settings(64.0, 10, 128.0)).seconds()
        };
        assert!((seconds(1.0) / seconds(2.0) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn disk_and_processor_wait_for_each_other() {
        // One customer uses one at a time. With equal demands, n customers take 1 + 1/n of either.
        assert_eq!(together(3.0, 2.0, 1.0), 5.0);
        for customers in 1..50 {
            let (n, time) = (f64::from(customers), together(2.0, 2.0, f64::from(customers)));
            assert!((time - 2.0 * (1.0 + 1.0 / n)).abs() < 1e-9, "{n}: {time}");
        }
        // Never less than the longer one, nor more than both; nearer to it with more customers.
        let times = [1.0, 2.0, 4.0, 8.0, 1e9].map(|customers| together(4.0, 3.0, customers));
        assert!(times.is_sorted_by(|more, less| more > less) && times[4] - 4.0 < 1e-6, "{times:?}");
        assert_eq!((together(0.0, 3.0, 4.0), together(0.0, 0.0, 4.0)), (3.0, 0.0));
    }

    #[test]
    fn a_job_without_a_shuffle_is_its_reads_and_starts() {
        let none = HadoopJob { ratio: 0.0, ..job() };
        let cost = cost(&none, &DISK, &settings(100.0, 10, 128.0));
        assert_eq!((cost.maps, cost.spills, cost.disk_bytes), (75, 1, 10e9));
        assert!(cost.seconds().is_finite());
    }
}
