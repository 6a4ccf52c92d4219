//! Failures, and their leftovers.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use merganser_map::ssdlet::{Combine, Emitter, SsdletError, Type};
use merganser_map::{MapInput, MapOptions, MapOutput, RowSink, map};
use merganser_sort::run::magic::ContentKind;
use merganser_sort::{Budget, Error, Progress, Silent};
use merganser_storage::memory::MemoryDirectory;
use merganser_storage::{Directory, StorageExt};
use merganser_testkit::faulty::{Fault, FaultPlan, Faulty};
use merganser_testkit::within;

use super::support::{How, LINES, Plain, Rows, storage, text, words};

/// Fails at lines that begin with `!`, and names the place.
fn picky(record: &[u8], offset: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    if record[0] == b'!' {
        return Err(SsdletError::Record { offset, detail: "an exclamation".to_owned() });
    }
    out.records(record);
    Ok(())
}

fn picky_keyed(record: &[u8], offset: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    out.add(record, 1);
    if record[0] == b'!' {
        return Err(SsdletError::Record { offset, detail: "an exclamation".to_owned() });
    }
    Ok(())
}

#[test]
fn the_first_failure_in_the_order_of_the_input_wins() {
    within(&"a map", Duration::from_secs(120), || {
        let mut lines: Vec<Vec<u8>> = (0..4000).map(|n| format!("{n}\n").into_bytes()).collect();
        for at in [1111, 1130, 1200, 3000] {
            lines[at] = b"!\n".to_vec();
        }
        let place = lines[..1111].concat().len() as u64;
        let inputs = [lines.concat()];
        for threads in 1..=4 {
            for chunk in [1, 40, 500, 1 << 20] {
                for streams in [false, true] {
                    let how = How { streams, ..How::chunks(chunk, threads) };
                    let mut rows = Rows::default();
                    let ssdlet = Plain::ordered(LINES, picky);
                    let error = how.map_to(&ssdlet, how.inputs(&inputs), &mut rows);
                    let error = error.expect_err("an exclamation");
                    let found =
                        matches!(error, SsdletError::Input { offset, .. } if offset == place);
                    assert!(found, "{how:?} {error}");
                    assert_eq!(rows.ordered, lines[..1111].concat(), "all before it has left");
                    for temp in [true, false] {
                        let ssdlet = Plain::keyed(LINES, Combine::Sum, Type::I64, picky_keyed);
                        let how = How { temp: temp && chunk > 40, ..how };
                        let error = how.map(&ssdlet, how.inputs(&inputs)).expect_err("one");
                        assert!(
                            matches!(error, SsdletError::Input { offset, .. } if offset == place),
                            "{how:?} {error}"
                        );
                    }
                }
            }
        }
    });
}

fn panics(record: &[u8], _: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    assert!(record[0] != b'!', "as asked");
    out.records(record);
    Ok(())
}

fn panics_keyed(record: &[u8], _: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    assert!(record[0] != b'!', "as asked");
    out.add(record, 1);
    Ok(())
}

#[test]
fn a_panic_of_a_worker_is_one_of_the_map() {
    within(&"a map", Duration::from_secs(60), || {
        let mut lines: Vec<Vec<u8>> = (0..4000).map(|n| format!("{n}\n").into_bytes()).collect();
        lines[2000] = b"!\n".to_vec();
        let inputs = [lines.concat()];
        for (threads, temp) in [(1, false), (3, false), (1, true), (3, true)] {
            let how = How { temp, ..How::chunks(100, threads) };
            let ordered = Plain::ordered(LINES, panics);
            let keyed = Plain::keyed(LINES, Combine::Sum, Type::I64, panics_keyed);
            for ssdlet in [ordered, keyed] {
                let run = || how.map(&ssdlet, how.inputs(&inputs)).map(|_| ());
                assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
            }
        }
    });
}

/// An SSDlet of each kind of output.
fn both() -> [Plain; 2] {
    [Plain::keyed(LINES, Combine::Count, Type::I64, words), Plain::ordered(LINES, panics)]
}

/// Cancels after this number of bytes.
struct Impatient(AtomicU64, u64);

impl Progress for Impatient {
    fn advance(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) > self.1
    }
}

#[test]
fn a_map_that_is_cancelled_ends() {
    within(&"a map", Duration::from_secs(60), || {
        let inputs = [text(2_000_000, 1000, 1)];
        for temp in [true, false] {
            for ssdlet in both() {
                let how = How { temp, ..How::chunks(10_000, 2) };
                let options = how.options();
                let mut rows = Rows::default();
                let progress = Impatient(AtomicU64::new(0), 300_000);
                let output = MapOutput::Rows(&mut rows);
                let error = map(&ssdlet, how.inputs(&inputs), output, &options, &progress);
                let error = error.expect_err("cancelled");
                assert!(matches!(error, SsdletError::Engine(Error::Cancelled)), "{error}");
                assert!(progress.0.load(Ordering::Relaxed) < 500_000);
                assert_eq!(options.budget.free_bytes(), how.memory);
            }
        }
    });
}

/// Fails at its third call.
struct Breaks(u32);

impl RowSink for Breaks {
    fn keyed(&mut self, _: &[u8], _: &[u8]) -> Result<bool, SsdletError> {
        self.records(b"")
    }

    fn records(&mut self, _: &[u8]) -> Result<bool, SsdletError> {
        self.0 += 1;
        if self.0 == 3 {
            return Err(SsdletError::Failed("the sink broke".to_owned()));
        }
        Ok(true)
    }
}

#[test]
fn the_error_of_a_sink_ends_the_map() {
    within(&"a map", Duration::from_secs(60), || {
        let inputs = [text(200_000, 1000, 1)];
        for temp in [true, false] {
            for ssdlet in both() {
                let how = How { temp, ..How::chunks(10_000, 3) };
                let mut sink = Breaks(0);
                let output = MapOutput::Rows(&mut sink);
                let error = map(&ssdlet, how.inputs(&inputs), output, &how.options(), &Silent);
                assert_eq!(error.expect_err("broken").to_string(), "the sink broke");
                assert_eq!(sink.0, 3);
            }
        }
    });
}

#[test]
fn a_full_disk_is_the_error_of_the_map_and_leaves_nothing() {
    within(&"a map", Duration::from_secs(120), || {
        let inputs = [text(3_000_000, 300_000, 3)];
        let ssdlet = Plain::keyed(LINES, Combine::None, Type::I64, words);
        for threads in [1, 3] {
            let disk: Arc<dyn Directory> = MemoryDirectory::new();
            let plan = FaultPlan { seed: 1, faults: vec![Fault::Full { bytes: 512 << 10 }] };
            let faulty = Faulty::new(Arc::clone(&disk), plan);
            let how = How { memory: 10 << 20, threads, ..How::default() };
            let options = MapOptions { temp: vec![faulty.clone()], ..how.options() };
            let mut rows = Rows::default();
            let output = MapOutput::Rows(&mut rows);
            let error = map(&ssdlet, how.inputs(&inputs), output, &options, &Silent);
            let SsdletError::Engine(Error::Io(error)) = error.expect_err("full") else {
                panic!("another error")
            };
            assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
            assert_eq!(faulty.used_bytes(), 0);
            assert!(disk.list().expect("lists").is_empty());
            assert_eq!(options.budget.free_bytes(), how.memory);
        }
    });
}

#[test]
fn a_failed_read_and_a_file_that_shrinks_name_the_file() {
    within(&"a map", Duration::from_secs(60), || {
        let bytes = text(400_000, 1000, 3);
        for (fault, what) in [
            (Fault::FailRead { nth: 3 }, "input"),
            (Fault::ShortRead { nth: 3 }, "the file ends here"),
        ] {
            for threads in [1, 3] {
                let plan = FaultPlan { seed: 1, faults: vec![fault] };
                let faulty = Faulty::new(MemoryDirectory::new(), plan);
                let input =
                    MapInput::Storage { storage: faulty.wrap(storage(&bytes)), range: None };
                let how = How::chunks(50_000, threads);
                let error = how.map(&Plain::ordered(LINES, panics), vec![input]);
                let error = error.expect_err("fails").to_string();
                assert!(error.contains("input") && error.contains(what), "{error}");
            }
        }
    });
}

/// Gives some lines, and then fails.
struct Breaking(usize);

impl Read for Breaking {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::Error::other("the pipe broke"));
        }
        let n = self.0.min(out.len()).min(1000);
        out[..n].fill(b'\n');
        self.0 -= n;
        Ok(n)
    }
}

#[test]
fn a_stream_that_fails_is_named() {
    within(&"a map", Duration::from_secs(60), || {
        for threads in [1, 3] {
            let reader = Box::new(Breaking(100_000));
            let input = MapInput::Stream { name: "pipe".to_owned(), reader, memory_bytes: 0 };
            let how = How { threads, ..How::default() };
            let error = how.map(&Plain::ordered(LINES, panics), vec![input]).expect_err("fails");
            assert_eq!(error.to_string(), "pipe: the pipe broke");
        }
    });
}

#[test]
fn a_number_of_another_length_is_an_error() {
    fn short(record: &[u8], _: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        out.emit(record, b"1234567");
        Ok(())
    }
    let how = How::default();
    let ssdlet = Plain::keyed(LINES, Combine::Sum, Type::I64, short);
    let error = how.map(&ssdlet, how.inputs(&[b"a\n".to_vec()])).expect_err("wrong");
    assert!(error.to_string().contains("7 bytes"), "{error}");
    let ssdlet = Plain::keyed(LINES, Combine::Sum, Type::Text, words);
    let error = how.map(&ssdlet, how.inputs(&[b"a\n".to_vec()])).expect_err("wrong");
    assert!(error.to_string().contains("i64"), "{error}");
}

/// Reads that come with the wrong size cost no byte: the storage is read again.
#[test]
fn an_input_stays_as_it_was() {
    let bytes = text(10_000, 10, 1);
    let input = storage(&bytes);
    let budget = Budget::new(1 << 20);
    let found = MapInput::detect(Arc::clone(&input), ContentKind::Text, &budget).expect("reads");
    let how = How::default();
    how.map(&Plain::ordered(LINES, panics), vec![found]).expect("maps");
    assert_eq!(input.read_vec(0, bytes.len()).expect("reads"), bytes);
}
