//! A result as it is written: one run of rows, or runs whose rows are combined when they are read.

use std::sync::Arc;

use merganser_storage::Directory;

use super::ResultError;
use super::encoding::Encoding;
use super::rows::RowStream;
use super::view::{ResultDescription, order};
use crate::run::{Compression, RunBuilder, RunWriter};
use crate::view::{Manifest, Segment};
use crate::{Budget, Error};

/// Bytes of a block of a result's run.
const BLOCK_BYTES: u32 = 32 << 10;
/// What [`RunBuilder`] holds: four buffers.
const BUILDER_BYTES: u64 = 4 << 20;
/// The least memory in which [`write_reduced`] works, in bytes. Fences take a hundredth of the rows, which are in
/// tables then; what the workers had is free.
pub const WRITER_BYTES: u64 = BUILDER_BYTES + (256 << 10);

/// Writes rows, each key once, as a view of one run in the empty `folder`; how many there are.
pub fn write_reduced<E: From<Error>>(
    rows: &mut dyn RowStream<Error = E>,
    folder: &Arc<dyn Directory>,
    name: String,
    what: &ResultDescription,
    budget: &Budget,
    mut advance: impl FnMut(u64) -> Result<(), E>,
) -> Result<u64, E> {
    let spec = serde_json::to_string(&order()).expect("plain data");
    let (mut count, mut builder, mut record) = (0, None, Vec::new());
    while rows.advance()? {
        if builder.is_none() {
            let memory = budget.reserve(BUILDER_BYTES, "writing the result")?;
            let fences = budget.reserve(0, "writing the result")?;
            let storage = folder.create("000000.run").map_err(Error::from)?;
            let writer = RunWriter::new(storage, BLOCK_BYTES, Compression::Off, None, fences)?;
            let order = order().compile(None).map_err(Error::from)?;
            builder = Some((RunBuilder::new(writer, order)?, memory));
        }
        let (builder, _) = builder.as_mut().expect("made above");
        let (key, value) = (rows.key(), rows.value());
        if Encoding::Plain.record_bytes(key, value).is_none() {
            return Err(Error::from(ResultError::TooLong).into());
        }
        record.clear();
        Encoding::Plain.push(key, value, &mut record);
        builder.append(&record)?;
        count += 1;
        advance(record.len() as u64)?;
    }
    let mut segments = Vec::new();
    if let Some((builder, _memory)) = builder {
        segments.push(Segment::of(&builder.finish(&spec, true)?));
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
    let manifest = Manifest::new(name, order(), Vec::new(), now, segments);
    manifest.of_map(what.stored(false)).write(folder)?;
    Ok(count)
}

/// Says in the manifest of `folder`, which no one else has seen yet, that its records are to be combined. `more` is a
/// run that was added to those that it has.
pub fn mark_unreduced(
    folder: &Arc<dyn Directory>,
    what: &ResultDescription,
    more: Option<Segment>,
) -> Result<Manifest, Error> {
    let Manifest { name, order, preamble, made_unix_ns, buckets, .. } = Manifest::read(folder)?;
    let segments = buckets.into_iter().flat_map(|bucket| bucket.segments).chain(more).collect();
    let manifest = Manifest::new(name, order, preamble, made_unix_ns, segments);
    let manifest = manifest.of_map(what.stored(true));
    manifest.write(folder)?;
    Ok(manifest)
}

/// Writes rows that are still to be combined, of about `bytes`, as one more run in the folder of a view.
pub fn write_run<E: From<Error>>(
    rows: &mut dyn RowStream<Error = E>,
    encoding: Encoding,
    folder: &Arc<dyn Directory>,
    bytes: u64,
    budget: &Budget,
    mut advance: impl FnMut(u64) -> Result<(), E>,
) -> Result<Segment, E> {
    let spec = serde_json::to_string(&order()).expect("plain data");
    let name = free_run_name(&folder.list().map_err(Error::from)?);
    let _memory = budget.reserve(BUILDER_BYTES, "writing the result")?;
    let fences = budget.reserve(0, "writing the result")?;
    let storage = folder.create(&name).map_err(Error::from)?;
    let block_bytes = block_bytes(bytes, budget.limit_bytes());
    let writer = RunWriter::new(storage, block_bytes, Compression::Off, None, fences)?;
    let mut builder = RunBuilder::new(writer, order().compile(None).map_err(Error::from)?)?;
    let mut record = Vec::new();
    while rows.advance()? {
        record.clear();
        encoding.push(rows.key(), rows.value(), &mut record);
        builder.append(&record)?;
        advance(record.len() as u64)?;
    }
    Ok(Segment::of(&builder.finish(&spec, true)?))
}

/// The name after all names of runs.
fn free_run_name(names: &[String]) -> String {
    let number = |name: &String| name.strip_suffix(".run")?.parse::<u64>().ok();
    let last = names.iter().filter_map(number).max();
    format!("{:06}.run", last.map_or(0, |last| last + 1))
}

/// Blocks so long that their fences take a sixteenth of the memory at most, if there are such blocks.
fn block_bytes(bytes: u64, memory_bytes: u64) -> u32 {
    const FENCE_BYTES: u64 = 400;
    let wanted = bytes.saturating_mul(16 * FENCE_BYTES) / memory_bytes.max(1);
    let wanted = wanted.clamp(u64::from(BLOCK_BYTES), 1 << 20);
    wanted.next_power_of_two() as u32
}
