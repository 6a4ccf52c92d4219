use std::sync::atomic::{AtomicU64, Ordering};

use merganser_storage::memory::MemoryStorage;
use merganser_storage::{StorageExt, Work};
use proptest::prelude::*;

use super::*;
use crate::Silent;

/// A clock that is set by hand.
#[derive(Default)]
struct Hand(AtomicU64);

impl Hand {
    fn pass(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn charge(&self, _work: Work) {}

    fn advance(&self) -> bool {
        false
    }
}

fn recorded() -> (Arc<Hand>, Activity) {
    let clock = Arc::new(Hand::default());
    clock.pass(1_000_000);
    let activity = Activity::new(Arc::clone(&clock) as Arc<dyn Clock>);
    (clock, activity)
}

#[test]
fn a_worker_is_busy_unless_it_says_what_it_waits_for() {
    let (clock, activity) = recorded();
    clock.pass(5);
    {
        let _worker = activity.enroll("sort");
        clock.pass(10);
        {
            let _waiting = wait(WorkerState::Memory);
            clock.pass(20);
            {
                let _writing = wait(WorkerState::Writing);
                clock.pass(40);
            }
            clock.pass(80);
        }
        clock.pass(160);
        {
            let _other = enter("write");
            clock.pass(320);
        }
        {
            let _nobody = leave();
            clock.pass(640);
        }
        clock.pass(1280);
    }
    clock.pass(2560);
    let _nobody = wait(WorkerState::Reading);
    clock.pass(5120);
    let report = activity.report().expect("recorded");
    assert_eq!(report.end_ns, 10235);
    let spent: Vec<_> = report
        .workers
        .iter()
        .map(|w| {
            (
                &*w.name,
                [WorkerState::Busy, WorkerState::Memory, WorkerState::Writing]
                    .map(|s| w.total_ns(s)),
            )
        })
        .collect();
    assert_eq!(spent, [("sort", [1450, 100, 40]), ("write", [320, 0, 0])]);
    assert!(
        !report.workers[0].state_ns.contains_key(&WorkerState::Reading),
        "not enrolled any more"
    );
}

#[test]
fn a_later_thread_takes_the_first_free_row() {
    let (clock, activity) = recorded();
    let main = activity.enroll("sort");
    let team = &Team::here();
    std::thread::scope(|scope| {
        let clock = &clock;
        for _ in 0..3 {
            let helper = scope.spawn(move || {
                let _helper = team.join();
                clock.pass(7);
            });
            helper.join().expect("no panic");
        }
        let nobody = leave();
        let first = scope.spawn(move || {
            let _helper = team.join();
            clock.pass(100);
        });
        first.join().expect("no panic");
        drop(nobody);
    });
    drop(main);
    let report = activity.report().expect("recorded");
    let busy = report.workers.iter().map(|w| (&*w.name, w.total_ns(WorkerState::Busy)));
    assert_eq!(busy.collect::<Vec<_>>(), [("sort 1", 121), ("sort 2", 21)]);
}

#[test]
fn transfers_are_counted_with_their_depth() {
    let (clock, activity) = recorded();
    let recorder = activity.0.as_ref().expect("recorded");
    for _ in 0..3 {
        recorder.began(Transfer::Read);
        clock.pass(100);
    }
    recorder.ended(Transfer::Read, 11);
    clock.pass(100);
    let storage = activity.storage(MemoryStorage::new("file"));
    storage.write_at(0, b"12345").expect("written");
    let report = activity.report().expect("recorded");
    assert_eq!((report.reads.count, report.reads.in_flight_max), (1, 3));
    assert_eq!((report.reads.bytes[0], report.reads.in_flight_ns[0]), (11, 100 + 200 + 300 + 200));
    assert_eq!((report.writes.count, report.writes.bytes[0]), (1, 5));
}

#[test]
fn phases_are_kept_and_passed_on() {
    let (clock, activity) = recorded();
    let phases = activity.phases(&Silent);
    phases.phase("sorting", None);
    clock.pass(3);
    phases.phase("merging", Some(1));
    let names = activity.report().expect("recorded").phases;
    let expected = [("sorting", 0), ("merging", 3)];
    assert_eq!(names, expected.map(|(name, start_ns)| PhaseStart { name, start_ns }));
}

#[test]
fn without_a_record_nothing_happens() {
    let _worker = Activity::off().enroll("sort");
    let _waiting = wait(WorkerState::Input);
    let _other = enter("write");
    let _nobody = leave();
    let _helper = Team::here().join();
    assert!(Activity::here().report().is_none());
}

proptest! {
    /// Every nanosecond of an enrolled worker is in exactly one state, however long the run.
    #[test]
    fn states_sum_to_the_time_that_passed(
        steps in prop::collection::vec((0usize..WorkerState::ALL.len(), 0u64..1 << 34), 1..60),
    ) {
        let (clock, activity) = recorded();
        let worker = activity.enroll("sort");
        let mut expected = [0; WorkerState::ALL.len()];
        for (state, ns) in &steps {
            let _waiting = wait(WorkerState::ALL[*state]);
            clock.pass(*ns);
            expected[*state] += ns;
        }
        drop(worker);
        let report = activity.report().expect("recorded");
        let total: u64 = expected.iter().sum();
        prop_assert_eq!(report.end_ns, total);
        let [worker] = &report.workers[..] else { panic!("one worker") };
        prop_assert_eq!(WorkerState::ALL.map(|state| worker.total_ns(state)), expected);
        let bins = report.reads.bytes.len();
        prop_assert!(bins <= bins::BINS && bins as u64 * report.bin_ns >= total);
        for bin in 0..bins as u64 {
            let ns: u64 = worker.state_ns.values().map(|bins| bins[bin as usize]).sum();
            prop_assert_eq!(ns, report.bin_ns.min(total.saturating_sub(bin * report.bin_ns)));
        }
    }
}
