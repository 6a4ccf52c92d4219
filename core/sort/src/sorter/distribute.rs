//! A sort by distribution.

use std::io::{Cursor, Read};
use std::sync::Arc;
use std::time::Instant;

use merganser_storage::memory::MemoryStorage;
use merganser_storage::{Directory, Storage};

use super::{SortOutput, SortReport, Sorter, Strategy, total_bytes};
use crate::budget::Reservation;
use crate::distribute::{Distributed, Distributor};
use crate::key::OrderSpec;
use crate::output::{FileSink, Out, Top, copy};
use crate::plan::RunPlan;
use crate::run::SortInput;
use crate::view::{Bucket, KeyBytes, Manifest, Segment, unix_ns};
use crate::{Budget, Error, Progress, Result, activity};

/// For a stream that is to be distributed, up to an eighth of the memory is filled with its front.
/// A stream that ends there is sorted at once, without temporary files. Returns the reservation of
/// that memory.
pub(super) fn look_ahead(
    sorter: &mut Sorter<'_>,
    output: &SortOutput<'_>,
) -> Result<Option<Reservation>> {
    let options = sorter.options;
    let distributes = matches!(options.strategy, Strategy::Distribute { .. });
    let one_stream = matches!(&sorter.inputs[..], [SortInput::Stream { .. }]);
    if !distributes || !one_stream || matches!(output, SortOutput::View { .. }) {
        return Ok(None);
    }
    let Some(SortInput::Stream { name, mut reader }) = sorter.inputs.pop() else { return Ok(None) };
    let most = sorter.plan.chunk_bytes.min(options.budget.free_bytes() / 8);
    // Twice: what ends is copied to where its size is known.
    let mut memory = options.budget.reserve(2 * most, "the front of a stream")?;
    let mut front = Vec::with_capacity(most as usize);
    let read = reader.by_ref().take(most).read_to_end(&mut front);
    read.map_err(|error| Error::reading(&name, error))?;
    if (front.len() as u64) < most {
        let stored = MemoryStorage::from_bytes(&name, &front);
        memory.shrink_to(front.len() as u64);
        drop(front);
        sorter.inputs.push(SortInput::Storage(stored));
        sorter.total_bytes = total_bytes(&sorter.inputs);
        let plan = RunPlan::new(
            options.budget.free_bytes(),
            sorter.total_bytes,
            1,
            sorter.sample,
            sorter.order.direct().is_none(),
            sorter.workers.count(),
        );
        // If there is no such plan, the plan for a stream is used.
        sorter.plan = plan.unwrap_or(sorter.plan);
    } else {
        memory.shrink_to(most);
        let reader = Box::new(Cursor::new(front).chain(reader));
        sorter.inputs.push(SortInput::Stream { name, reader });
    }
    Ok(Some(memory))
}

impl Sorter<'_> {
    pub(super) fn distribute(
        &mut self,
        uniform: bool,
        output: SortOutput<'_>,
        started: Instant,
        progress: &dyn Progress,
    ) -> Result<SortReport> {
        let (options, temp_files) = (self.options, &self.temp_files);
        let view = match &output {
            SortOutput::View { folder, .. } => Some(Arc::clone(folder)),
            _ => None,
        };
        let create = |number| -> Result<Vec<Arc<dyn Storage>>> {
            if let Some(folder) = &view {
                return Ok(vec![folder.create(&bucket_file_name(number))?]);
            }
            temp_files.create()
        };
        let distributor = Distributor {
            order: Arc::clone(&self.order),
            budget: options.budget.clone(),
            threads: self.workers.count(),
            sample: self.sample,
            uniform,
            limit_bytes: options.temp_limit_bytes.filter(|_| view.is_none()),
            create: &create,
            progress,
        };
        let done = distributor.distribute(std::mem::take(&mut self.inputs))?;
        let report = &mut self.report;
        report.form_seconds = started.elapsed().as_secs_f64();
        report.input_bytes = done.input_bytes;
        report.run_bytes = done.written_bytes;
        report.buckets = done.buckets() as u64;
        report.buckets_split_again = done.split_again;
        self.check_columns()?;
        let report = &mut self.report;
        let (budget, threads) = (&options.budget, self.workers.count());
        (report.output_bytes, report.records) = match output {
            SortOutput::Storage(storage) => {
                let base = done.header.len() as u64;
                let total = (!done.is_unique()).then_some(base + done.data_bytes());
                let sink = FileSink::new(storage, 0, Vec::new(), total);
                let (out, align) = match total {
                    Some(_) => (Out::File(sink), Some(base)),
                    None => (Out::Copied(sink), None),
                };
                write(&done, out, align, (budget, threads), progress)?
            }
            SortOutput::Writer(writer) => {
                write(&done, Out::Stream(writer, 0), None, (budget, threads), progress)?
            }
            SortOutput::View { folder, name } => {
                make_view(&folder, name, &self.options.order, &self.spec, &done)?
            }
        };
        report.merge_seconds = started.elapsed().as_secs_f64() - report.form_seconds;
        report.memory_peak_bytes = budget.peak_bytes();
        Ok(report.clone())
    }
}

/// Sorts bucket after bucket into `out`. Returns bytes and records written.
fn write(
    done: &Distributed,
    mut out: Out<'_>,
    align: Option<u64>,
    (budget, threads): (&Budget, usize),
    progress: &dyn Progress,
) -> Result<(u64, u64)> {
    let _worker = activity::enter("write");
    progress.phase("sorting buckets", Some(done.header.len() as u64 + done.data_bytes()));
    out.push_bytes(&done.header)?;
    let mut portions = done.portions(align, budget, threads)?;
    let mut top = Top::new(None);
    let counting = done.is_unique().then_some((&mut top, done.order()));
    let bytes = copy(&mut portions, out, counting, &mut (), progress)?;
    Ok((bytes, if done.is_unique() { top.taken } else { done.records() }))
}

fn bucket_file_name(number: usize) -> String {
    format!("{number:06}.buckets")
}

/// Names the buckets in a manifest. Returns bytes and records of the view.
fn make_view(
    folder: &Arc<dyn Directory>,
    name: String,
    order: &OrderSpec,
    spec: &str,
    done: &Distributed,
) -> Result<(u64, u64)> {
    let names: Vec<String> = (0..done.files()).map(bucket_file_name).collect();
    let listed = done.seal(spec)?.into_iter().map(|sealed| Bucket {
        segments: vec![Segment {
            run: names[sealed.file].clone(),
            bytes: sealed.bucket.bytes,
            records: sealed.bucket.records,
            index_crc: sealed.index_crc,
            bucket: Some(sealed.number),
        }],
        from: Some(KeyBytes(sealed.bucket.lower.clone())),
        one_key: sealed.bucket.one_key,
    });
    let buckets: Vec<Bucket> = listed.collect();
    for name in names {
        // It is possible that all buckets of a pass were split again.
        if !buckets.iter().any(|bucket| bucket.segments[0].run == name) {
            folder.remove(&name)?;
        }
    }
    let header = done.header.clone();
    let manifest = Manifest::of_buckets(name, order.clone(), header, unix_ns(), buckets);
    manifest.write(folder)?;
    Ok((manifest.size_bytes, manifest.records))
}
