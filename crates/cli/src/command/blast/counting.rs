//! The counts of the database, which have to be known before the first search.

use std::io::{self, Read};
use std::sync::Arc;

use merganser_node::blast::count::{Counter, Counts};
use merganser_node::map::MapInput;
use merganser_sort::Budget;
use merganser_storage::{Storage, StorageExt};

use super::sources;
use crate::config::BlastConfig;
use crate::failure::Failure;
use crate::signals::Cancel;

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// Counts sequences, letters and bytes of all files, decompressed where they are compressed.
pub fn count(config: &BlastConfig, cancel: &Cancel) -> Result<Counts, Failure> {
    let budget = Budget::new(config.memory_bytes);
    let mut counter = Counter::new(config.search.program.database());
    let mut counts = Counts::default();
    let mut buffer = vec![0; READ_BYTES];
    for input in sources::open(&config.inputs, &budget, cancel)? {
        let (name, mut reader): (_, Box<dyn Read>) = match input {
            MapInput::Storage { storage, .. } => {
                (None, Box::new(Bytes { at: 0, size: storage.size(), storage }))
            }
            MapInput::Stream { name, reader, .. } => (Some(name), reader),
        };
        loop {
            cancel.check().map_err(|error| Failure::named(&error))?;
            match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => counter.take(&buffer[..read]),
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

/// A storage from one end to the other.
struct Bytes {
    storage: Arc<dyn Storage>,
    at: u64,
    size: u64,
}

impl Read for Bytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size - self.at).unwrap_or(usize::MAX);
        let want = out.len().min(left);
        if want == 0 {
            return Ok(0);
        }
        let read = self.storage.read_at(self.at, &mut out[..want])?;
        self.at += read as u64;
        Ok(read)
    }
}
