//! Values that the types allow and no caller should use: each gives a result or an error, never a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use merganser_sort::key::OrderSpec;
use merganser_sort::merge::{Merging, merge_sorted};
use merganser_sort::record::Format;
use merganser_sort::run::{Compression, SortInput};
use merganser_sort::view::View;
use merganser_sort::{
    Budget, CompressionChoice, Error, Silent, SortOptions, SortOutput, Strategy, explain, sort,
};
use merganser_storage::Directory;
use merganser_storage::memory::{MemoryDirectory, MemoryStorage};

const LINES: Format = Format::Lines { delimiter: b'\n' };

/// Little, because each of some thousand sorts touches all of it.
const MEMORY_BYTES: u64 = 5 << 20;

/// One sort. [`base`] is an ordinary one.
#[derive(Debug, Clone)]
struct Attempt {
    order: OrderSpec,
    memory_bytes: u64,
    threads: usize,
    temp_folders: usize,
    temp_limit_bytes: Option<u64>,
    compression: CompressionChoice,
    top: Option<u64>,
    strategy: Strategy,
    /// The bytes of each input.
    inputs: Vec<usize>,
    are_streams: bool,
}

/// The inputs repeat these. One is long, because much data of short records takes much time.
const ROWS: &[u8] =
    b"3,c\n1,\"a\"\n2,b\n9,a row that is much longer than all the others, so that there are fewer of them in a megabyte\n";

type Change = (&'static str, fn(&mut Attempt));

fn base() -> Attempt {
    Attempt {
        order: OrderSpec::new(LINES),
        memory_bytes: MEMORY_BYTES,
        threads: 2,
        temp_folders: 1,
        temp_limit_bytes: None,
        compression: CompressionChoice::Fixed(Compression::Off),
        top: None,
        strategy: Strategy::Auto,
        inputs: vec![1000, 0, 300],
        are_streams: false,
    }
}

const CHANGES: &[Change] = &[
    ("no memory", |a| a.memory_bytes = 0),
    ("a byte of memory", |a| a.memory_bytes = 1),
    ("little memory", |a| a.memory_bytes = 4 << 20),
    ("all memory", |a| a.memory_bytes = u64::MAX),
    ("no threads", |a| a.threads = 0),
    ("many threads", |a| a.threads = 100_000),
    ("all threads", |a| a.threads = usize::MAX),
    ("no folder", |a| a.temp_folders = 0),
    ("three folders", |a| a.temp_folders = 3),
    ("no temporary space", |a| a.temp_limit_bytes = Some(0)),
    ("a byte of temporary space", |a| a.temp_limit_bytes = Some(1)),
    ("all temporary space", |a| a.temp_limit_bytes = Some(u64::MAX)),
    ("no records", |a| a.top = Some(0)),
    ("the first record", |a| a.top = Some(1)),
    ("all records", |a| a.top = Some(u64::MAX)),
    ("merge", |a| a.strategy = Strategy::Merge),
    ("distribute", |a| a.strategy = Strategy::Distribute { uniform: false }),
    ("uniform", |a| a.strategy = Strategy::Distribute { uniform: true }),
    ("zstd", |a| a.compression = CompressionChoice::Fixed(Compression::Zstd)),
    ("compression as it pays", |a| a.compression = CompressionChoice::Auto),
    ("unique", |a| a.order.unique = true),
    ("no inputs", |a| a.inputs = vec![]),
    ("an empty input", |a| a.inputs = vec![0]),
    ("much data", |a| a.inputs = vec![3 << 20, 3 << 20]),
    ("streams", |a| a.are_streams = true),
    ("records of no bytes", |a| a.order = OrderSpec::new(Format::Fixed { bytes: 0 })),
    ("records of a byte", |a| a.order = OrderSpec::new(Format::Fixed { bytes: 1 })),
    ("endless records", |a| a.order = OrderSpec::new(Format::Fixed { bytes: usize::MAX })),
    ("keyed records", |a| a.order = OrderSpec::new(Format::Keyed)),
    ("rows", |a| a.order = OrderSpec::new(Format::csv_rows(b',', true))),
    ("quotes as separators", |a| {
        a.order = OrderSpec::new(Format::csv_rows(b'"', false));
        a.order.keys = vec!["2".to_owned()];
    }),
    ("line ends as separators", |a| {
        a.order = OrderSpec::new(Format::csv_rows(b'\n', true));
        a.order.keys = vec!["1:n".to_owned()];
    }),
    ("a key of field 0", |a| a.order.keys = vec!["0".to_owned()]),
    ("a key that ends before it begins", |a| a.order.keys = vec!["9,1n".to_owned()]),
    ("a key of a far field", |a| a.order.keys = vec!["18446744073709551615.9".to_owned()]),
    ("a key of a farther field", |a| a.order.keys = vec!["99999999999999999999999".to_owned()]),
    ("an empty key", |a| a.order.keys = vec![String::new()]),
    ("a key beyond the record", |a| {
        a.order = OrderSpec::new(Format::Fixed { bytes: 8 });
        a.order.keys = vec!["7:2".to_owned()];
    }),
    ("a key of all bytes", |a| {
        a.order = OrderSpec::new(Format::Fixed { bytes: 8 });
        a.order.keys = vec!["18446744073709551615:18446744073709551615".to_owned()];
    }),
    ("a key of no bytes", |a| {
        a.order = OrderSpec::new(Format::Fixed { bytes: 8 });
        a.order.keys = vec!["0:0:u64le".to_owned()];
    }),
    ("unknown letters", |a| a.order.options = "q\0é".to_owned()),
    ("letters that contradict", |a| a.order.options = "nRVMgh".to_owned()),
    ("a zero as separator", |a| a.order.separator = Some(0)),
    ("a newline as separator", |a| a.order.separator = Some(b'\n')),
];

impl Attempt {
    fn options(&self) -> SortOptions {
        SortOptions::new(self.order.clone())
            .memory(self.memory_bytes)
            .threads(self.threads)
            .temp((0..self.temp_folders).map(|_| MemoryDirectory::new() as _).collect())
            .temp_limit_bytes(self.temp_limit_bytes)
            .compression(self.compression)
            .top(self.top)
            .strategy(self.strategy)
    }

    fn inputs(&self) -> Vec<SortInput> {
        let input = |len: &usize| {
            let bytes: Vec<u8> = ROWS.iter().copied().cycle().take(*len).collect();
            if self.are_streams {
                SortInput::Stream {
                    name: "stream".to_owned(),
                    reader: Box::new(std::io::Cursor::new(bytes)),
                }
            } else {
                SortInput::Storage(MemoryStorage::from_bytes("input", &bytes))
            }
        };
        self.inputs.iter().map(input).collect()
    }

    /// Sorts into everything, merges, explains. Returns the error of the sort into a stream.
    fn run(&self) -> Option<Error> {
        let options = self.options();
        let mut bytes = Vec::new();
        let refused = sort(self.inputs(), SortOutput::Writer(&mut bytes), &options, &Silent).err();
        let storage = MemoryStorage::new("output");
        let _ = sort(self.inputs(), SortOutput::Storage(storage), &self.options(), &Silent);
        let folder: Arc<dyn Directory> = MemoryDirectory::new();
        let view = SortOutput::View { folder: Arc::clone(&folder), name: "view".to_owned() };
        if sort(self.inputs(), view, &self.options(), &Silent).is_ok() {
            let _ = View::open(&folder, &Budget::new(self.memory_bytes), self.threads);
        }
        for to_view in [false, true] {
            let _ = explain(self.inputs(), to_view, &self.options());
        }
        for inputs_max in [0, 1, 2, usize::MAX] {
            let with = Merging {
                order: &self.order,
                budget: &Budget::new(self.memory_bytes),
                temp: &options.temp,
                temp_limit_bytes: self.temp_limit_bytes,
                inputs_max,
            };
            let _ = merge_sorted(self.inputs(), &with, &Silent, |_| Ok(true));
        }
        assert_eq!(options.budget.free_bytes(), self.memory_bytes, "all memory was given back");
        refused
    }
}

#[test]
fn every_pair_of_edges_gives_a_result_or_an_error() {
    let pairs = (0..CHANGES.len()).flat_map(|one| (one..CHANGES.len()).map(move |two| (one, two)));
    let pairs: Vec<_> = pairs.collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut panicked = Vec::new();
        while let Some((one, other)) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let ((one, change), (other, also)) = (CHANGES[*one], CHANGES[*other]);
            let mut attempt = base();
            change(&mut attempt);
            also(&mut attempt);
            if catch_unwind(AssertUnwindSafe(|| attempt.run())).is_err() {
                panicked.push(format!("{one}, {other}"));
            }
        }
        panicked
    };
    let panicked: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..3).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("panics are caught")).collect()
    });
    assert!(panicked.is_empty(), "{} panicked: {panicked:#?}", panicked.len());
}

#[test]
fn data_that_needs_a_temporary_folder_says_so() {
    let mut attempt = Attempt { temp_folders: 0, ..base() };
    assert!(attempt.run().is_none(), "it fits into the memory");
    attempt.inputs = vec![20 << 20];
    let refused = attempt.run();
    assert!(matches!(refused, Some(Error::NoTemp)), "{refused:?}");
    attempt.order = OrderSpec::new(Format::Fixed { bytes: 16 });
    attempt.strategy = Strategy::Distribute { uniform: false };
    let refused = attempt.run();
    assert!(matches!(refused, Some(Error::NoTemp)), "{refused:?}");
}

#[test]
fn threads_beyond_the_memory_are_named_and_not_the_memory() {
    for threads in [1000, usize::MAX] {
        let refused = Attempt { threads, ..base() }.run();
        let Some(Error::Threads { threads: given, most, limit_bytes }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((given, limit_bytes), (threads, MEMORY_BYTES));
        assert!((1..8).contains(&most), "{most}");
        assert!(Attempt { threads: most, ..base() }.run().is_none(), "{most} are enough");
        let one_more = Attempt { threads: most + 1, ..base() }.run();
        assert!(matches!(one_more, Some(Error::Threads { .. })), "{one_more:?}");
    }
    let refused = Attempt { memory_bytes: 1, threads: 1000, ..base() }.run();
    assert!(matches!(refused, Some(Error::Memory { .. })), "{refused:?}");
}
