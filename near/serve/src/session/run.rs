//! A run of a session: its work, in a thread of its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use merganser_sort::budget::Reservation;
use merganser_sort::{Budget, Progress};
use merganser_storage::closable::OpenSet;
use merganser_storage::contained::{self, Cause};
use merganser_storage::{Directory, Storage};

use super::data::DataFolder;
use super::request::RangeSource;
use super::results::{FinishedRows, ResultRecorder};
use super::session::{RunStart, Session};
use super::{SessionError, SessionResult};
use merganser_map::admission::{Admission, Demand};
use merganser_map::ssdlet::SsdletError;
use merganser_map::{MapInput, MapOptions, MapOutput, MapReport, PartitionSize, map};

/// A run works with as little as this fraction of the memory that it wants, 1 / 4.
const LEAST_SHARE: u64 = 4;
/// The least memory of a run, in bytes: one worker of any built-in SSDlet that spills has enough.
pub(super) const MEMORY_BYTES_MIN: u64 = 6 << 20;
/// Files of a run that are open at once, in addition to one for each thread. It may have 65,536 of them, and all runs
/// share the descriptors of the server.
const OPEN_FILES: usize = 8;

/// Memory of a file of a run that may be opened again, and of a range, in bytes. It is reserved where there are many.
const FILE_BYTES: usize = 512;
const RANGE_BYTES: usize = 160;
const RANGES_FREE_BYTES: usize = 1 << 20;

/// Does the run `begun` of `session`, and tells the session how it ended.
pub(super) fn run(
    session: &Session,
    begun: &RunStart,
    admission: &Arc<Admission>,
    data: &DataFolder,
) {
    let work = || {
        let memory_bytes = session.memory_bytes;
        let demand = Demand {
            memory_bytes,
            memory_least_bytes: (memory_bytes / LEAST_SHARE)
                .max(MEMORY_BYTES_MIN)
                .min(memory_bytes),
            threads: session.threads,
        };
        let meter = &*begun.meter;
        let permit = admission.take(demand, None, &|| meter.cancelled())?;
        session.admitted(permit.shares.memory_bytes, permit.shares.threads);
        let result = work(session, begun, data, permit.shares.memory_bytes, permit.shares.threads);
        // A run that ended well although it was cancelled has its results.
        match result {
            Err(_) if meter.cancelled() => Err(SessionError::Cancelled),
            result => result,
        }
    };
    let result = contained::run(Cause::Mistake, work).unwrap_or_else(|_| {
        let told = "the run was ended by a mistake in this program; its session can continue";
        Err(SessionError::Failed(told.to_owned()))
    });
    session.ended(result);
}

fn work(
    session: &Session,
    begun: &RunStart,
    data: &DataFolder,
    memory_bytes: u64,
    threads: usize,
) -> SessionResult<(FinishedRows, MapReport)> {
    let description = session.ssdlet.description();
    let budget = Budget::new(memory_bytes);
    let (inputs, _reserved) = inputs(session, begun, data, &budget, threads)?;
    let mut recorder = ResultRecorder::new(&description.output, &session.temp, &session.space)?;
    let options = MapOptions {
        budget,
        threads,
        partition: PartitionSize::Auto,
        temp: vec![Arc::clone(&session.temp) as Arc<dyn Directory>],
    };
    let options = options.fitting(description, &inputs);
    let output = MapOutput::Rows(&mut recorder);
    let report = map(&*session.ssdlet, inputs, output, &options, &*begun.meter)?;
    Ok((recorder.finish()?, report))
}

/// Looks each file up once, and makes an input of each range. Whole files may be compressed. A part of a compressed
/// one is an error: its bytes are no records.
fn inputs(
    session: &Session,
    begun: &RunStart,
    data: &DataFolder,
    budget: &Budget,
    threads: usize,
) -> SessionResult<(Vec<MapInput>, Reservation)> {
    let failed = |error: merganser_sort::Error| SessionError::from(SsdletError::from(error));
    let mut reserved = budget.reserve(0, "the ranges of a run").map_err(failed)?;
    let open = OpenSet::new(OPEN_FILES + threads);
    let mut opened: HashMap<(bool, &str), Arc<dyn Storage>> = HashMap::new();
    let mut inputs = Vec::with_capacity(begun.ranges.len());
    let mut total = 0;
    let content = session.ssdlet.description().input.content();
    for range in &*begun.ranges {
        let source = range.source()?;
        let key = match source {
            RangeSource::Path(path) => (true, path),
            RangeSource::Blob(name) => (false, name),
        };
        let storage = match opened.get(&key) {
            Some(storage) => Arc::clone(storage),
            None => {
                let storage: Arc<dyn Storage> = match source {
                    RangeSource::Path(path) => Arc::new(data.closable(path, &open)?),
                    RangeSource::Blob(name) => session.blob(name)?.storage(),
                };
                opened.insert(key, Arc::clone(&storage));
                let bytes = opened.len() * FILE_BYTES + begun.ranges.len() * RANGE_BYTES;
                if bytes > RANGES_FREE_BYTES {
                    reserved.grow_to(bytes as u64).map_err(failed)?;
                }
                storage
            }
        };
        let bytes = range.bytes(storage.size())?;
        total += bytes.end - bytes.start;
        let is_whole = bytes == (0..storage.size());
        inputs.push(match MapInput::detect(storage, content, budget).map_err(SsdletError::from)? {
            whole if is_whole => whole,
            MapInput::Storage { storage, .. } => MapInput::Storage { storage, range: Some(bytes) },
            MapInput::Stream { .. } => {
                let (RangeSource::Path(name) | RangeSource::Blob(name)) = source;
                return Err(SessionError::Invalid(format!(
                    "{name}: it is compressed, so that a part of it has no records; leave out start and length"
                )));
            }
        });
    }
    begun.meter.bytes_total.store(total, Ordering::Relaxed);
    Ok((inputs, reserved))
}
