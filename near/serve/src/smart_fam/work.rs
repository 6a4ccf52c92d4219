//! A request's work: its SSDlet over its inputs, and the answer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use merganser_sort::{Budget, Error, Progress};
use merganser_storage::Storage;
use merganser_storage::contained::{self, Cause};

use super::record::{CallOutcome, CallRequest};
use super::result::ResultSink;
use super::serving::Serve;
use crate::session::DataFolder;
use merganser_map::ssdlet::{SsdletError, SsdletOutput};
use merganser_map::{MapInput, MapOptions, MapOutput, PartitionSize, map};

/// Ends a map when the node is to end.
struct Stopping<'a>(&'a AtomicBool);

impl Progress for Stopping<'_> {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Does what a request asks for; `None` if the node is to end before that is done.
pub(super) fn answer(
    (serve, stop): (&Serve, &AtomicBool),
    module: &str,
    folder: &Path,
    client: &str,
    id: u64,
    body: &[u8],
) -> Option<CallOutcome> {
    let mut sink = ResultSink::new(folder, client, id);
    let mapped = contained::run(Cause::Mistake, || run((serve, stop), module, body, &mut sink));
    let mapped = mapped.unwrap_or_else(|_| {
        let told = "the call was ended by a mistake in this program";
        Err(SsdletError::Failed(told.to_owned()))
    });
    let outcome = match mapped {
        Ok(()) => sink.finish().map_err(|e| format!("the result can't be written: {e}")),
        Err(error) => {
            if matches!(error, SsdletError::Engine(Error::Cancelled)) {
                return None;
            }
            Err(error.to_string())
        }
    };
    Some(outcome.unwrap_or_else(|error| CallOutcome::Failed { error: shortened(error) }))
}

/// An error that fits into a record.
fn shortened(mut error: String) -> String {
    let end = (0..=4096.min(error.len())).rev().find(|at| error.is_char_boundary(*at));
    error.truncate(end.unwrap_or(0));
    error
}

fn run(
    (serve, stop): (&Serve, &AtomicBool),
    module: &str,
    body: &[u8],
    sink: &mut ResultSink,
) -> Result<(), SsdletError> {
    let request: CallRequest = serde_json::from_slice(body)
        .map_err(|e| SsdletError::Failed(format!("the request makes no sense: {e}")))?;
    let ssdlet = (serve.installed)(module, &request.args)?;
    sink.set_keyed(matches!(ssdlet.description().output, SsdletOutput::Keyed { .. }));
    let budget = Budget::new(serve.memory_bytes);
    let data = DataFolder::new(serve.data.clone());
    let content = ssdlet.description().input.content();
    let mut inputs = Vec::new();
    // A file is opened once, however often a request names it.
    let mut opened: BTreeMap<&str, Arc<dyn Storage>> = BTreeMap::new();
    for path in &request.inputs {
        let file = match opened.get(path.as_str()) {
            Some(file) => Arc::clone(file),
            None => data.file(path).map_err(|e| SsdletError::Failed(e.to_string()))?,
        };
        opened.insert(path, Arc::clone(&file));
        inputs.push(MapInput::detect(file, content, &budget)?);
    }
    let options = MapOptions {
        budget,
        threads: serve.threads,
        partition: PartitionSize::Auto,
        temp: serve.temp.clone(),
    };
    let options = options.fitting(ssdlet.description(), &inputs);
    map(&*ssdlet, inputs, MapOutput::Rows(sink), &options, &Stopping(stop))?;
    Ok(())
}
