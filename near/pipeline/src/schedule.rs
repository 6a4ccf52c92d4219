//! The next task of each thread: partitions on their way through the stages.
//!
//! ```text
//!   cut ──► ready: stage 0 ──► a thread of its pool ──► ready: stage 1 ──► … ──► result, to be gathered
//!    ▲ waits for: partitions in flight, temporary space, a full disk
//! ```
//!
//! A pool takes the latest stage first, and of these the first partition: partitions are finished before
//! others are begun, which bounds what they keep on the disk. Nothing here waits for a stage with the lock held;
//! only lines of the journal are written under it.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::mem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::child::Commands;
use super::error::PipelineError;
use super::folder::{WorkPaths, remove};
use super::journal::PipelineJournal;
use super::names::PlainNames;
use super::plan::{PipelinePlan, PipelineSettings};
use super::report::StageRun;
use super::standing::Standing;
use super::summary;
use merganser_results::pipeline::{PartitionCut, PipelineEvent, PipelineProgress, tree_bytes};

/// How long a waiting thread sleeps at most before it looks again.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// Temporary bytes of a partition as a multiple of its own, before one has shown it.
const GROWTH_FIRST: f64 = 3.0;

/// What all threads of a pipeline share.
pub(super) struct PipelineContext<'a> {
    pub(super) settings: &'a PipelineSettings,
    pub(super) plan: &'a PipelinePlan,
    pub(super) folder: &'a WorkPaths,
    pub(super) commands: Commands,
    /// What commands call the files of the folder.
    pub(super) names: PlainNames,
    pub(super) started: Instant,
    state: Mutex<ScheduleState>,
    changed: Condvar,
    /// The pipeline ends early.
    ending: AtomicBool,
    attempts: AtomicU32,
}

/// What changes.
pub(super) struct ScheduleState {
    journal: PipelineJournal,
    pub(super) done: PipelineProgress,
    stages: usize,
    ready: Vec<BTreeSet<(Reverse<usize>, u32)>>,
    /// For each pool, its threads that run a stage; and all of these that wait for space on the disk.
    running: Vec<usize>,
    parked: usize,
    /// A result is being gathered, or removed after that; and the thread that does it waits for space on the disk.
    pub(super) gathering: bool,
    gather_parked: bool,
    /// The folders that stages write into now.
    writing: Vec<PathBuf>,
    /// Partitions that were cut and have not passed all stages.
    pub(super) in_flight: BTreeSet<u32>,
    /// For each stage, how many partitions passed it.
    passed: Vec<usize>,
    /// Bytes of each item of each partition that is in the folder.
    held: Vec<Vec<u64>>,
    /// Bytes of all temporary files, and the most that they were.
    used_bytes: u64,
    pub(super) used_bytes_max: u64,
    learned: f64,
    /// Counts events after which there may be more space.
    freed: u64,
    pub(super) failure: Option<PipelineError>,
    pub(super) runs: Vec<StageRun>,
    pub(super) cut_seconds: Vec<f64>,
    /// When each partition passed its last stage, in the order in which they did.
    pub(super) finished: Vec<u32>,
    /// The time of all stages, predicted when the first two partitions had passed them.
    pub(super) ahead_seconds: Option<f64>,
    /// Seconds before the first cut, in which bytes were counted.
    pub(super) count_seconds: f64,
}

/// A thread that writes, and may find the disk full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiskWriter {
    /// It cuts partitions.
    Cut,
    /// It runs a stage.
    Stage,
    /// It gathers results.
    Gather,
    /// It runs the merge, when all others have ended.
    Merge,
}

/// A stage of a partition to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct StageTask {
    pub(super) k: u32,
    pub(super) stage: usize,
}

impl<'a> PipelineContext<'a> {
    pub(super) fn new(
        settings: &'a PipelineSettings,
        plan: &'a PipelinePlan,
        folder: &'a WorkPaths,
        journal: PipelineJournal,
        done: PipelineProgress,
    ) -> Result<Self, PipelineError> {
        let stages = plan.stages.len();
        let mut ready = vec![BTreeSet::new(); plan.pools.len()];
        let mut held = Vec::new();
        let mut in_flight = BTreeSet::new();
        let passed = |stage: usize| done.ran.iter().filter(|ran| ran.len() > stage).count();
        let passed = (0..stages).map(passed).collect();
        for (cut, ran) in done.cuts.iter().zip(&done.ran) {
            let gathered = cut.k < done.gathered;
            let bytes = [cut.bytes].into_iter().chain(ran.iter().copied()).enumerate();
            let needed = |item: usize| !gathered && plan.is_needed(item, ran.len());
            let held_now = bytes.map(|(item, bytes)| if needed(item) { bytes } else { 0 });
            held.push(held_now.collect::<Vec<u64>>());
            if let Some(stage) = plan.stages.get(ran.len()) {
                ready[stage.pool].insert((Reverse(ran.len()), cut.k));
                in_flight.insert(cut.k);
            }
        }
        let is_temporary = plan.gathers() && plan.merge.is_some();
        let gathered = if is_temporary { done.gathered_bytes } else { 0 };
        let used_bytes = held.iter().flatten().sum::<u64>() + gathered;
        let state = ScheduleState {
            journal,
            done,
            stages,
            ready,
            running: vec![0; plan.pools.len()],
            parked: 0,
            gathering: false,
            gather_parked: false,
            writing: Vec::new(),
            in_flight,
            passed,
            held,
            used_bytes,
            used_bytes_max: used_bytes,
            learned: 1.0,
            freed: 0,
            failure: None,
            runs: Vec::new(),
            cut_seconds: Vec::new(),
            finished: Vec::new(),
            ahead_seconds: None,
            count_seconds: 0.0,
        };
        let commands = Commands::new().map_err(PipelineError::file(folder.path()))?;
        let names =
            PlainNames::of_folder(folder.path()).map_err(PipelineError::file(folder.path()))?;
        Ok(PipelineContext {
            settings,
            plan,
            folder,
            commands,
            names,
            started: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            ending: AtomicBool::new(false),
            attempts: AtomicU32::new(0),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ScheduleState> {
        self.state.lock()
    }

    /// Sleeps until something changes, or for a while.
    pub(super) fn wait(&self, state: &mut MutexGuard<'_, ScheduleState>) {
        self.changed.wait_for(state, LOOK);
    }

    /// Has all waiting threads look again: something changed that is not in the state.
    pub(super) fn wake(&self) {
        let _state = self.lock();
        self.changed.notify_all();
    }

    /// Whether the pipeline ends early.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Ends the pipeline early; the first reason counts.
    pub(super) fn fail(&self, error: PipelineError) {
        let mut state = self.lock();
        state.failure.get_or_insert(error);
        self.ending.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Seconds since the beginning.
    pub(super) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// A number for the name of a try.
    pub(super) fn next_attempt(&self) -> u32 {
        self.attempts.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes a line of the journal.
    pub(super) fn note(
        &self,
        state: &mut MutexGuard<'_, ScheduleState>,
        event: PipelineEvent,
    ) -> Result<(), PipelineError> {
        state.journal.append(&event)?;
        let stages = state.stages;
        state.done.apply(&event, stages).expect("events are noted in order");
        self.changed.notify_all();
        Ok(())
    }

    /// The next task of a pool; `None` when there will be no more. The thread counts as running until
    /// [`PipelineContext::rest`].
    pub(super) fn next_task(&self, pool: usize) -> Option<StageTask> {
        let mut state = self.lock();
        loop {
            if self.is_ending() || state.is_over() {
                return None;
            }
            if let Some((Reverse(stage), k)) = state.ready[pool].pop_first() {
                state.running[pool] += 1;
                return Some(StageTask { k, stage });
            }
            self.wait(&mut state);
        }
    }

    /// The thread runs nothing any more.
    pub(super) fn rest(&self, pool: usize) {
        self.lock().running[pool] -= 1;
        self.changed.notify_all();
    }

    /// A stage writes into this folder from now on, or no longer.
    pub(super) fn writes_into(&self, folder: &std::path::Path, begins: bool) {
        let mut state = self.lock();
        match begins {
            true => state.writing.push(folder.to_owned()),
            false => state.writing.retain(|other| other != folder),
        }
    }

    /// A stage has ended, and its output has its name: the partition moves on. Files that no stage needs any
    /// more are removed.
    pub(super) fn stage_ended(
        &self,
        task: StageTask,
        mut run: StageRun,
        crc: u32,
    ) -> Result<(), PipelineError> {
        let (k, item) = (task.k as usize, task.stage + 1);
        let mut state = self.lock();
        let stage = u32::try_from(task.stage).expect("few stages");
        let (bytes, crc) = (run.bytes_out, Some(crc));
        self.note(&mut state, PipelineEvent::Ran { k: task.k, stage, bytes, crc })?;
        // Its successor can begin now.
        run.end_seconds = self.seconds();
        state.held[k].resize(item, 0);
        state.held[k].push(run.bytes_out);
        state.add_used(run.bytes_out);
        state.learn_growth(k);
        state.runs.push(run);
        state.passed[task.stage] += 1;
        match self.plan.stages.get(item) {
            Some(next) => {
                state.ready[next.pool].insert((Reverse(item), task.k));
            }
            None => {
                state.in_flight.remove(&task.k);
                state.finished.push(task.k);
                summary::predict(self, &mut state);
            }
        }
        self.changed.notify_all();
        drop(state);
        for old in 0..item {
            if !self.plan.is_needed(old, item) {
                self.release(task.k, old)?;
            }
        }
        self.limit()
    }

    /// Removes an item of a partition, if it is still there. Two threads may do it at the same time: the one that ran
    /// a stage, and the one that ran the next stage meanwhile. Its bytes are free once.
    pub(super) fn release(&self, k: u32, item: usize) -> Result<(), PipelineError> {
        // An output of no bytes is there all the same.
        remove(&self.item_path(k, item))?;
        let mut state = self.lock();
        let bytes = state.held[k as usize].get_mut(item).map_or(0, mem::take);
        if bytes > 0 {
            state.used_bytes -= bytes;
            state.freed += 1;
            self.changed.notify_all();
        }
        Ok(())
    }

    /// The path of an item.
    pub(super) fn item_path(&self, k: u32, item: usize) -> PathBuf {
        match item.checked_sub(1) {
            None => self.folder.part(k),
            Some(stage) => self.folder.stage(k, &self.plan.stages[stage].name),
        }
    }

    /// Fails if the temporary files are too large.
    pub(super) fn limit(&self) -> Result<(), PipelineError> {
        let Some(limit_bytes) = self.settings.temp_limit_bytes else { return Ok(()) };
        let (used, writing) = {
            let state = self.lock();
            (state.used_bytes, state.writing.clone())
        };
        let used_bytes = used + writing.iter().map(|path| tree_bytes(path)).sum::<u64>();
        if used_bytes <= limit_bytes {
            return Ok(());
        }
        let who = writing.last().and_then(|path| path.file_name()).map_or_else(
            || "the results".to_owned(),
            |name| name.to_string_lossy().split('.').take(2).collect::<Vec<_>>().join("."),
        );
        Err(PipelineError::TempLimit { who, used_bytes, limit_bytes })
    }

    /// Waits until a partition of about `bytes` may be cut; false if the pipeline ends.
    pub(super) fn wait_to_cut(&self, bytes: u64) -> bool {
        let mut state = self.lock();
        loop {
            if self.is_ending() {
                return false;
            }
            let more = (bytes as f64 * state.growth()) as u64;
            let has_room = match self.settings.temp_limit_bytes {
                // A partition alone has to try.
                Some(limit) => {
                    state.in_flight.is_empty()
                        || state.used_bytes.saturating_add(state.expected()).saturating_add(more)
                            <= limit
                }
                None => true,
            };
            if has_room && state.in_flight.len() < self.plan.in_flight {
                return true;
            }
            self.wait(&mut state);
        }
    }

    /// A partition was cut, which began at `started`.
    pub(super) fn was_cut(&self, cut: PartitionCut, started: f64) -> Result<(), PipelineError> {
        let mut state = self.lock();
        self.note(&mut state, PipelineEvent::Cut(cut))?;
        state.held.push(vec![cut.bytes]);
        state.add_used(cut.bytes);
        state.in_flight.insert(cut.k);
        let seconds = self.seconds() - started;
        state.cut_seconds.push(seconds);
        state.ready[self.plan.stages[0].pool].insert((Reverse(0), cut.k));
        self.changed.notify_all();
        Ok(())
    }

    /// How often space was freed. Asked before a try to write, for [`PipelineContext::wait_for_space`].
    pub(super) fn freed(&self) -> u64 {
        self.lock().freed
    }

    /// The disk is full: waits until there may be more space than at the beginning of the try that found it full, when
    /// [`PipelineContext::freed`] was `freed`. False if no thread is left that could free some.
    pub(super) fn wait_for_space(&self, writer: DiskWriter, freed: u64) -> bool {
        let mut state = self.lock();
        state.parks(writer, true);
        let found = loop {
            if self.is_ending() {
                break false;
            }
            if state.freed != freed {
                break true;
            }
            if !self.may_free(&state, writer) {
                break false;
            }
            self.wait(&mut state);
        };
        state.parks(writer, false);
        found
    }

    /// Whether a thread other than that of `writer` may free space.
    fn may_free(&self, state: &ScheduleState, writer: DiskWriter) -> bool {
        // When nothing but stages that wait is left, one of them is tried alone. The others wait for that, too.
        let parked = if writer == DiskWriter::Stage { state.parked } else { 0 };
        let has_result = self.plan.gathers() && state.next_result().is_some();
        let gathers = (state.gathering || has_result) && !state.gather_parked;
        let pools = state.ready.iter().zip(&state.running).zip(&self.plan.pools);
        let may_begin = |((ready, running), pool): ((&BTreeSet<_>, &usize), &super::StagePool)| {
            !ready.is_empty() && *running < pool.threads
        };
        let running: usize = state.running.iter().sum();
        running > parked || gathers || pools.into_iter().any(may_begin)
    }
}

impl ScheduleState {
    /// The thread of `writer` waits for space from now on, or no longer.
    fn parks(&mut self, writer: DiskWriter, begins: bool) {
        match (writer, begins) {
            (DiskWriter::Stage, true) => self.parked += 1,
            (DiskWriter::Stage, false) => self.parked -= 1,
            (DiskWriter::Gather, _) => self.gather_parked = begins,
            (DiskWriter::Cut | DiskWriter::Merge, _) => {}
        }
    }

    /// The partition whose result is gathered next, if the result is there.
    pub(super) fn next_result(&self) -> Option<u32> {
        let next = self.done.gathered;
        let ran = self.done.ran.get(next as usize)?;
        (ran.len() == self.stages).then_some(next)
    }

    /// Whether all partitions have passed all stages.
    pub(super) fn is_over(&self) -> bool {
        self.done.all_cut && self.in_flight.is_empty()
    }

    /// How far the pipeline is.
    pub(super) fn standing(&self) -> Standing {
        Standing {
            cut_bytes: self.done.cut_bytes(),
            total_bytes: self.done.total,
            cut: self.done.cuts.len(),
            all_cut: self.done.all_cut,
            passed: self.passed.clone(),
        }
    }

    pub(super) fn add_used(&mut self, bytes: u64) {
        self.used_bytes += bytes;
        self.used_bytes_max = self.used_bytes_max.max(self.used_bytes);
    }

    /// How much a partition grows on its way.
    fn learn_growth(&mut self, k: usize) {
        let now: u64 = self.held[k].iter().sum();
        let growth = now as f64 / self.done.cuts[k].bytes as f64;
        self.learned = self.learned.max(growth);
    }

    /// Temporary bytes of a partition as a multiple of its own.
    pub(super) fn growth(&self) -> f64 {
        if self.finished.is_empty() { self.learned.max(GROWTH_FIRST) } else { self.learned }
    }

    /// Bytes that the partitions in flight may still need.
    fn expected(&self) -> u64 {
        let growth = self.growth();
        let missing = |k: &u32| {
            let k = *k as usize;
            let most = (self.done.cuts[k].bytes as f64 * growth) as u64;
            most.saturating_sub(self.held[k].iter().sum())
        };
        self.in_flight.iter().map(missing).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Barrier;

    use merganser_sort::journal::{CommandNote, JournalText};
    use merganser_sort::run::magic::ContentKind;

    use super::super::folder::OUT_NAME;
    use super::super::plan::{PipelineStage, StagePool};
    use super::*;
    use merganser_results::pipeline::{JournalHeader, MergeBy, Partitions, PieceFormat};

    fn settings(folder: PathBuf) -> PipelineSettings {
        let text = |text: &str| JournalText(text.into());
        PipelineSettings {
            records: PieceFormat::Lines { delimiter: b'\n' },
            content: ContentKind::Text,
            partitions: Partitions::Bytes(3),
            partition_bytes_max: None,
            total_bytes: None,
            stages: vec![PipelineStage {
                name: "copy".into(),
                command: "cat".into(),
                pool: "all".into(),
                keep: false,
            }],
            pools: vec![StagePool { name: "all".into(), threads: 2 }],
            merge: MergeBy::Cat,
            in_flight: None,
            temp_limit_bytes: None,
            retries: 0,
            time_limit: None,
            memory_bytes: 1 << 20,
            folder,
            command: CommandNote {
                words: vec![text("merganser")],
                folder: text("/"),
                output: text("/out"),
                view: false,
                mode: 0o600,
                owner: None,
            },
        }
    }

    /// Gives `test` a pipeline of one stage in a new folder.
    fn with_shared(test: impl FnOnce(&PipelineContext<'_>)) {
        let temporary = tempfile::tempdir().expect("a folder");
        let settings = settings(temporary.path().to_owned());
        let plan = settings.plan().expect("it can be");
        let folder = WorkPaths::new(temporary.path());
        folder.create().expect("made");
        let header = JournalHeader::new(settings.command.clone(), settings.work(), Vec::new());
        let journal = PipelineJournal::create(&folder.journal(), &header).expect("made");
        let shared =
            PipelineContext::new(&settings, &plan, &folder, journal, PipelineProgress::default());
        test(&shared.expect("made"));
    }

    /// Cuts a partition of three bytes.
    fn cut(shared: &PipelineContext<'_>, k: u32) {
        fs::write(shared.folder.part(k), b"abc").expect("written");
        let cut = PartitionCut { k, start: u64::from(k) * 3, bytes: 3, records: 1, crc: 0 };
        shared.was_cut(cut, 0.0).expect("noted");
    }

    /// Runs the stage of a partition: its result has three bytes, too.
    fn pass(shared: &PipelineContext<'_>) {
        let task = shared.next_task(0).expect("a partition");
        let made = shared.item_path(task.k, 1);
        fs::create_dir(&made).expect("made");
        fs::write(made.join(OUT_NAME), b"ABC").expect("written");
        let run = StageRun {
            k: task.k,
            stage: 0,
            pool: 0,
            thread: 0,
            start_seconds: 0.0,
            end_seconds: 0.0,
            processor_seconds: 0.0,
            bytes_out: 3,
            failed: false,
        };
        shared.stage_ended(task, run, 0).expect("noted");
        shared.rest(0);
    }

    /// A partition's thread and that of its next stage find an item that is needed no longer at the same moment.
    #[test]
    fn what_two_threads_remove_is_free_once() {
        with_shared(|shared| {
            for k in 0..100 {
                cut(shared, k);
                let both = Barrier::new(2);
                let release = || {
                    both.wait();
                    shared.release(k, 0).expect("removed");
                };
                std::thread::scope(|scope| {
                    scope.spawn(release);
                    release();
                });
                let state = shared.lock();
                assert_eq!((state.used_bytes, state.freed), (0, u64::from(k) + 1));
                assert!(!shared.folder.part(k).exists());
            }
        });
    }

    /// The disk is full for `writer`, and `work` happens meanwhile; whether it is worth another try.
    fn waits_during(
        shared: &PipelineContext<'_>,
        writer: DiskWriter,
        work: impl FnOnce() + Send,
    ) -> bool {
        let freed = shared.freed();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Usually the other thread waits by now. If it does not, it finds that space was freed.
                std::thread::sleep(LOOK / 2);
                work();
            });
            shared.wait_for_space(writer, freed)
        })
    }

    #[test]
    fn a_full_disk_is_waited_for_until_a_result_is_gathered() {
        with_shared(|shared| {
            let mut gather = shared.gather().expect("results are gathered");
            for (k, writer) in (0..).zip([DiskWriter::Cut, DiskWriter::Stage]) {
                cut(shared, k);
                pass(shared);
                // A stage that waits is running; no other one is.
                shared.lock().running[0] = usize::from(writer == DiskWriter::Stage);
                let append = || gather.append(shared, k).expect("appended");
                assert!(waits_during(shared, writer, append), "{writer:?}");
                // Nothing is left that could be removed.
                assert!(!shared.wait_for_space(writer, shared.freed()), "{writer:?}");
                shared.lock().running[0] = 0;
            }
            // A result is gathered, as the journal says, and is not removed yet.
            cut(shared, 2);
            shared.lock().ready[0].clear();
            shared.lock().gathering = true;
            assert!(waits_during(shared, DiskWriter::Cut, || shared
                .release(2, 0)
                .expect("removed")));
        });
    }

    #[test]
    fn space_that_was_freed_during_a_try_is_worth_another_one() {
        with_shared(|shared| {
            let freed = shared.freed();
            cut(shared, 0);
            pass(shared);
            assert_eq!(shared.freed(), freed + 1);
            for writer in
                [DiskWriter::Cut, DiskWriter::Stage, DiskWriter::Gather, DiskWriter::Merge]
            {
                assert!(shared.wait_for_space(writer, freed), "{writer:?}");
            }
            let state = shared.lock();
            assert_eq!((state.parked, state.gather_parked), (0, false));
        });
    }

    /// When all threads wait, a stage is tried alone, and not the gathering thread, whose failure ends the pipeline.
    #[test]
    fn of_those_that_wait_a_stage_is_tried_first() {
        with_shared(|shared| {
            cut(shared, 0);
            pass(shared);
            let freed = shared.freed();
            // Only the result that it gathers is there: nothing will make room for it.
            assert!(!shared.wait_for_space(DiskWriter::Gather, freed));
            cut(shared, 1);
            let task = shared.next_task(0).expect("a partition");
            std::thread::scope(|scope| {
                let stage = scope.spawn(|| {
                    let was_freed = shared.wait_for_space(DiskWriter::Stage, freed);
                    shared.release(task.k, 0).expect("removed");
                    was_freed
                });
                // It waits for the gathering thread, which finds the disk full, too.
                while shared.lock().parked == 0 {
                    std::thread::yield_now();
                }
                let was_freed = shared.wait_for_space(DiskWriter::Gather, freed);
                // A stage that waits in vain would keep this test.
                shared.fail(PipelineError::Cancelled);
                assert!(was_freed && !stage.join().expect("it ends"));
            });
        });
    }

    /// An output that something else has changed is not taken for the whole one.
    #[test]
    fn the_output_has_the_bytes_of_all_results() {
        with_shared(|shared| {
            let mut gather = shared.gather().expect("results are gathered");
            for k in 0..2 {
                cut(shared, k);
                pass(shared);
                gather.append(shared, k).expect("appended");
            }
            shared
                .note(&mut shared.lock(), PipelineEvent::AllCut { partitions: 2 })
                .expect("noted");
            let partial = shared.folder.partial();
            for other in [&b"ABCAB"[..], b"ABCABCA", b""] {
                fs::write(&partial, other).expect("written");
                let error = shared.merge().expect_err("it is not whole").to_string();
                assert!(error.contains("partial: has") && error.contains("had 6"), "{error}");
            }
            fs::remove_file(&partial).expect("removed");
            shared.merge().expect_err("it is not there");
            fs::write(&partial, b"ABCABC").expect("written");
            assert_eq!(shared.merge().expect("whole"), 6);
        });
    }
}
