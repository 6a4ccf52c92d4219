//! The threads of an engine end with its last handle. A process of its own: it counts threads.

use std::fs;
use std::time::{Duration, Instant};

use merganser_storage::file::{EngineChoice, FileDirectory, FileOptions};
use merganser_storage::{Buffer, Completions, Directory, Operation};

/// How many threads this process has.
fn threads() -> usize {
    fs::read_dir("/proc/self/task").expect("tasks").count()
}

#[test]
fn threads_end_with_the_last_handle_and_after_the_last_operation() {
    let before = threads();
    let place = tempfile::tempdir().expect("temporary directory");
    for engine in [EngineChoice::Auto, EngineChoice::Threads] {
        let options = FileOptions { engine, queue_depth: 2, ..FileOptions::default() };
        let completions = Completions::new();
        {
            let directory = FileDirectory::open_with(place.path(), options).expect("open");
            let first = directory.create_unnamed().expect("create");
            let alone = threads();
            assert!(alone > before);
            let second = FileDirectory::open_with(place.path(), options).expect("open");
            assert_eq!(threads(), alone, "one engine for all");
            drop((directory, second));
            assert_eq!(threads(), alone, "a storage keeps it");
            for block in 0..20 {
                let write = Operation::Write { offset: block << 20, buffer: Buffer::new(1 << 20) };
                first.submit(block, write, &completions);
            }
        }
        for _ in 0..20 {
            let done = completions.poll().expect("all done when the engine has ended");
            assert_eq!(done.result.expect("write"), 1 << 20);
        }
        assert!(completions.poll().is_none());
        // A joined thread may be listed a moment longer.
        let start = Instant::now();
        while threads() > before {
            assert!(start.elapsed() < Duration::from_secs(20), "a thread stays");
            std::thread::yield_now();
        }
    }
}
