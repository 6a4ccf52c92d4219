//! The inputs of a map, for the engine: decompressed where their first bytes say that they are compressed.

use std::io::{self, Read};

use merganser_node::map::MapInput;
use merganser_sort::Budget;
use merganser_sort::activity::Activity;

use crate::failure::Failure;
use crate::input::{Input, OpenInputs};
use crate::signals::Cancel;

/// Makes all inputs ready, in order. The memory of decompressors is of `budget`.
///
/// # Errors
/// When one can't be read, or there is too little memory for its decompressor.
pub fn open(inputs: &[Input], budget: &Budget, cancel: &Cancel) -> Result<Vec<MapInput>, Failure> {
    let open = OpenInputs::of_map();
    let activity = Activity::here();
    let ready = |input: &Input| {
        Ok(match input.open_for_sort(&open, cancel)? {
            merganser_sort::run::Input::Storage(storage) => {
                MapInput::detect(activity.storage(storage), budget)?
            }
            merganser_sort::run::Input::Stream { name, reader } => {
                let late =
                    Late { name: name.clone(), budget: budget.clone(), state: Some(Err(reader)) };
                MapInput::Stream { name, reader: Box::new(late) }
            }
        })
    };
    inputs.iter().map(ready).collect()
}

/// A stream whose first bytes are looked at when it is first read: the writer of a named pipe may have
/// to write another one before.
struct Late {
    name: String,
    budget: Budget,
    /// `Ok`: the bytes that it holds. `Err`: the stream before its first bytes are known. `None` after a
    /// failure.
    state: Option<Result<Box<dyn Read + Send>, Box<dyn Read + Send>>>,
}

impl Read for Late {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut reader = match self.state.take() {
            Some(Ok(known)) => known,
            Some(Err(unknown)) => {
                match MapInput::detect_stream(self.name.clone(), unknown, &self.budget)? {
                    MapInput::Stream { reader, .. } => reader,
                    MapInput::Storage { .. } => unreachable!("a stream stays one"),
                }
            }
            None => return Err(io::Error::other("it failed before")),
        };
        let read = reader.read(out);
        self.state = Some(Ok(reader));
        read
    }
}
