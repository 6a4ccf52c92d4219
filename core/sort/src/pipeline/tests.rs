//! The properties that every stage relies on.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::ordered::{Claim, Desk, Pipeline, Stage};
use super::{Crew, FirstError, Stops, Turns, Workers};
use crate::{Error, Result};

fn failure(text: impl Into<String>) -> Error {
    Error::Io(io::Error::other(text.into()))
}

/// Makes squares. Its fields say how.
#[derive(Default)]
struct Squares {
    items: u64,
    /// Items that the source lets out before the reader gives anything back.
    allowance: u64,
    near: u64,
    fails: Option<u64>,
    panics: Option<u64>,
    /// Panics while it is claimed, so while its worker holds the lock.
    panics_when_claimed: Option<u64>,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    begun: AtomicU64,
    made: AtomicU64,
    benches: AtomicU64,
}

struct Allowed {
    next: u64,
    left: u64,
}

impl Stage for Squares {
    type Source = Allowed;
    type Item = u64;
    type Begun = u64;
    type Loaded = u64;
    type Kept = Bench;
    type Made = u64;

    const ROLE: &'static str = "square";
    const AHEAD: u64 = 2;
    const EAGER: bool = true;

    fn keep(&self) -> Result<Bench> {
        self.seen.benches.fetch_add(1, Ordering::Relaxed);
        Ok(Bench(Arc::clone(&self.seen)))
    }

    fn claim(&self, source: &mut Allowed) -> Result<Claim<u64>> {
        if source.next == self.items {
            return Ok(Claim::End);
        }
        if source.left == 0 {
            return Ok(Claim::Later);
        }
        assert!(self.panics_when_claimed != Some(source.next), "as asked");
        source.left -= 1;
        source.next += 1;
        Ok(Claim::Item(source.next - 1))
    }

    fn begin(&self, _kept: &mut Bench, item: u64) -> Result<u64> {
        self.seen.begun.fetch_add(1, Ordering::Relaxed);
        Ok(item)
    }

    fn load(&self, _kept: &mut Bench, item: u64) -> Result<u64> {
        if self.fails == Some(item) {
            return Err(failure(format!("item {item}")));
        }
        // Others overtake it.
        if item.is_multiple_of(3) {
            std::thread::sleep(Duration::from_micros(300));
        }
        Ok(item)
    }

    fn make(&self, _kept: &mut Bench, item: u64, desk: Desk<'_, Self>) -> Result<u64> {
        assert!(self.panics != Some(item), "as asked");
        desk.near(self.near, |_| ())?;
        self.seen.made.fetch_add(1, Ordering::Relaxed);
        Ok(item * item)
    }
}

/// Leaves with its worker.
struct Bench(Arc<Seen>);

impl Drop for Bench {
    fn drop(&mut self) {
        self.0.benches.fetch_sub(1, Ordering::Relaxed);
    }
}

fn squares(items: u64) -> Squares {
    Squares { items, allowance: u64::MAX, near: u64::MAX / 2, ..Squares::default() }
}

fn start(squares: Squares, threads: usize) -> (Pipeline<Squares>, Arc<Seen>) {
    let (source, seen) = (Allowed { next: 0, left: squares.allowance }, Arc::clone(&squares.seen));
    (Pipeline::new(squares, source, Workers::new(threads)).expect("starts"), seen)
}

/// Waits until a count no longer changes.
fn at_rest(count: &AtomicU64) -> u64 {
    let mut before = u64::MAX;
    loop {
        let now = count.load(Ordering::Relaxed);
        if now == before {
            return now;
        }
        before = now;
        std::thread::sleep(Duration::from_millis(60));
    }
}

/// Waits until a count is as expected, and checks that it stays so.
fn comes_to_rest_at(count: &AtomicU64, expected: u64) {
    let until = Instant::now() + Duration::from_secs(20);
    while count.load(Ordering::Relaxed) < expected && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(count.load(Ordering::Relaxed), expected);
}

#[test]
fn items_leave_in_order_with_any_number_of_threads() {
    for threads in [0, 1, 2, 5] {
        for items in [0, 1, 2, 100] {
            let (mut pipeline, seen) = start(squares(items), threads);
            for item in 0..items {
                assert_eq!(pipeline.next().expect("made"), Some(item * item), "{threads} threads");
            }
            assert_eq!(pipeline.next().expect("ends"), None);
            assert_eq!(pipeline.next().expect("still"), None);
            assert!(pipeline.is_at_end() && pipeline.is_ready());
            drop(pipeline);
            assert_eq!(seen.benches.load(Ordering::Relaxed), 0);
        }
    }
}

#[test]
fn an_error_comes_after_all_items_before_it_and_ends_the_pipeline() {
    for threads in [0, 1, 2, 5] {
        for fails in [0, 1, 7, 50] {
            let (mut pipeline, seen) =
                start(Squares { fails: Some(fails), ..squares(10_000) }, threads);
            for item in 0..fails {
                assert_eq!(pipeline.next().expect("made"), Some(item * item));
            }
            let error = pipeline.next().expect_err("it fails").to_string();
            assert_eq!(error, format!("item {fails}"));
            assert_eq!(pipeline.next().expect("ends"), None);
            let most = fails + 4 * threads.max(1) as u64 * (Squares::AHEAD + 1);
            let begun = at_rest(&seen.begun);
            // Fast workers may be far ahead, but stop.
            assert!(threads > 0 || begun <= most, "{begun} of {most}");
            assert!(begun < 10_000, "{begun}");
        }
    }
}

#[test]
fn a_panic_of_a_worker_panics_in_the_reader() {
    for threads in [1, 2, 5] {
        for (panics, panics_when_claimed) in [(Some(20), None), (None, Some(20))] {
            let asked = Squares { panics, panics_when_claimed, ..squares(1000) };
            let (mut pipeline, seen) = start(asked, threads);
            let read = || while pipeline.next().expect("no error").is_some() {};
            assert!(catch_unwind(AssertUnwindSafe(read)).is_err());
            drop(pipeline);
            assert_eq!(seen.benches.load(Ordering::Relaxed), 0, "all workers have ended");
        }
    }
}

#[test]
fn a_reader_that_leaves_stops_the_workers() {
    for threads in [0, 1, 3] {
        let (mut pipeline, seen) = start(Squares { near: 2, ..squares(u64::MAX) }, threads);
        for _ in 0..10 {
            pipeline.next().expect("made");
        }
        drop(pipeline);
        assert_eq!(seen.benches.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn workers_wait_for_the_reader_and_its_memory() {
    let threads = 3;
    let (mut pipeline, seen) = start(Squares { near: 4, ..squares(1000) }, threads);
    // No more are made than wait for the reader.
    comes_to_rest_at(&seen.made, 4);
    // Each worker makes one item and has begun those ahead.
    let most = 4 + threads as u64 * (1 + Squares::AHEAD);
    assert!(seen.begun.load(Ordering::Relaxed) <= most);
    pipeline.next().expect("made");
    comes_to_rest_at(&seen.made, 5);

    let (mut pipeline, seen) = start(Squares { allowance: 6, ..squares(1000) }, threads);
    comes_to_rest_at(&seen.made, 6);
    for _ in 0..6 {
        pipeline.next().expect("made");
    }
    assert!(!pipeline.is_ready() && !pipeline.is_at_end());
    pipeline.give_back(|source| source.left += 2);
    assert_eq!(pipeline.next().expect("made"), Some(36));
    comes_to_rest_at(&seen.made, 8);
}

#[test]
fn one_thread_makes_nothing_ahead_of_its_reader() {
    let (mut pipeline, seen) = start(squares(100), 0);
    for item in 0..10 {
        assert_eq!(seen.made.load(Ordering::Relaxed), item);
        pipeline.next().expect("made");
    }
    // Their reads are under way.
    assert_eq!(seen.begun.load(Ordering::Relaxed), 10 + Squares::AHEAD);
}

#[test]
fn workers_act_in_turn_until_it_is_stopped() {
    let turns = Turns::new(Vec::new());
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(mut turn) = turns.wait(number) else { return };
                    if number == 300 {
                        return turn.stop();
                    }
                    turn.push(number);
                }
            });
        }
    });
    assert_eq!(turns.into_inner(), (0..300).collect::<Vec<u64>>());
}

#[test]
fn a_panic_in_a_turn_stops_the_turns() {
    let turns = Turns::new(());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| turns.wait(1).is_none());
        let panics = scope.spawn(|| {
            let _turn = turns.wait(0);
            panic!("as asked");
        });
        assert!(panics.join().is_err());
        assert!(waiting.join().expect("does not panic"));
    });
}

/// Work that ends with the first error.
#[derive(Default)]
struct Job {
    first: FirstError,
}

impl Stops for Job {
    fn fail(&self, error: Error) {
        self.first.note(error);
    }
}

#[test]
fn the_first_real_error_of_a_crew_wins() {
    let job = Job::default();
    std::thread::scope(|scope| {
        let crew = Crew::new(scope, &job);
        let gave_up = crew.spawn("gave up", || Err(Error::Cancelled)).expect("starts");
        gave_up.join().expect("does not panic");
        let failed = crew.spawn("failed", || Err(failure("first")));
        failed.expect("starts").join().expect("does not panic");
        let later = crew.spawn("later", || Err(failure("second")));
        later.expect("starts").join().expect("does not panic");
    });
    let error = job.first.into_result().expect_err("failed").to_string();
    assert_eq!(error, "first");
}

#[test]
fn a_panic_of_a_crew_stops_its_work() {
    let job = Job::default();
    std::thread::scope(|scope| {
        let crew = Crew::new(scope, &job);
        let panics = crew.spawn("panics", || panic!("as asked")).expect("starts");
        assert!(panics.join().is_err());
    });
    assert!(job.first.is_set());
    assert!(matches!(job.first.into_result(), Err(Error::Cancelled)));
}
