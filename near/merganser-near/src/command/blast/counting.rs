//! The counts of the database, which have to be known before the first search.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use merganser_map::MapInput;
use merganser_pipeline::blast::count::{DatabaseCounter, DatabaseCounts};
use merganser_results::stopped::Cancellation;
use merganser_shell::failure::Failure;
use merganser_shell::input::StorageReader;
use merganser_shell::signals::Cancel;
use merganser_sort::run::magic::ContentKind;
use merganser_sort::{Budget, Progress};

use super::sources;
use crate::config::BlastConfig;

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// Counts sequences, letters and bytes of all files, decompressed where they are compressed. It ends early, as if it was
/// cancelled, once `vain` is set: the counts are not needed then.
pub(super) fn count(
    config: &BlastConfig,
    progress: &dyn Progress,
    cancel: &Cancel,
    vain: &AtomicBool,
) -> Result<DatabaseCounts, Failure> {
    let budget = Budget::new(config.memory_bytes);
    let mut counter = DatabaseCounter::new(config.search.program.database());
    let mut counts = DatabaseCounts::default();
    let mut buffer = vec![0; READ_BYTES];
    for input in sources::open(&config.inputs, ContentKind::Text, &budget, cancel)? {
        let (name, mut reader): (_, Box<dyn Read>) = match input {
            MapInput::Storage { storage, .. } => (None, Box::new(StorageReader::new(storage))),
            MapInput::Stream { name, reader, .. } => (Some(name), reader),
        };
        loop {
            cancel.check().map_err(|error| Failure::named(&error))?;
            if vain.load(Ordering::Relaxed) {
                return Err(Failure::Cancelled);
            }
            match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    counter.take(&buffer[..read]);
                    progress.advance(read as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A storage names itself.
                Err(error) => {
                    return Err(match name {
                        Some(name) => Failure::on_input(&name, &error),
                        None => Failure::named(&error),
                    });
                }
            }
        }
        counts = counter.end_input();
    }
    Ok(counts)
}
