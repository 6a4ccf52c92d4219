//! Spills: the rows of full tables go to a sort of rows, which begins with the first of them.
//!
//! ```text
//!   worker: full table ──rows──► producer ──┐
//!   worker: full table ──rows──► producer ──┼──► sort of rows ──► reduced rows, or runs of a view
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use merganser_sort::budget::Reservation;
use merganser_sort::reduced::Encoding;
use merganser_sort::rows::{Combine, CombinedFor, RowProducer, RowSorter, RowsBy, RowsError, Type};
use merganser_sort::run::Compression;
use merganser_sort::{Budget, Error};
use merganser_storage::Directory;
use parking_lot::Mutex;

use super::shares::MapShares;
use super::{MapOptions, MapOutput};
use crate::ssdlet::{SpillSink, SsdletError};
use crate::table::Table;

/// The sort of all spills of one map.
pub(super) type SpillSorter = RowSorter<CombinedFor<SsdletError>>;

/// How values are combined, and how rows have them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Combining {
    pub(super) combine: Combine,
    pub(super) value: Type,
    pub(super) encoding: Encoding,
}

/// What all spills of one map share.
pub(super) struct Spills {
    /// Times that a table was spilled, and rows that went.
    pub(super) count: AtomicU64,
    pub(super) records: AtomicU64,
    plan: SpillPlan,
    sort: Mutex<SpillSort>,
}

/// How the sort begins.
struct SpillPlan {
    how: Combining,
    sort_bytes: u64,
    workers: usize,
    budget: Budget,
    temp: Vec<Arc<dyn Directory>>,
    /// The folder of a result that is a view.
    view: Option<Arc<dyn Directory>>,
}

/// The sort, and its memory: the least is held from the beginning, so that it can't be missing at the first spill.
struct SpillSort {
    memory: Reservation,
    sorter: Option<SpillSorter>,
}

impl Spills {
    /// For a map with these shares.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn new(
        options: &MapOptions,
        shares: &MapShares,
        how: Combining,
        output: &MapOutput<'_>,
    ) -> Result<Arc<Self>, Error> {
        let owner = if shares.spills { "sorting spills" } else { "writing the result" };
        let memory = options.budget.reserve(shares.kept_bytes, owner)?;
        let view = match output {
            MapOutput::View { folder, .. } => Some(Arc::clone(folder)),
            MapOutput::Rows(_) => None,
        };
        let temp = match (&options.temp[..], &view) {
            ([], Some(folder)) => vec![Arc::clone(folder)],
            (temp, _) => temp.to_vec(),
        };
        Ok(Arc::new(Spills {
            count: AtomicU64::new(0),
            records: AtomicU64::new(0),
            plan: SpillPlan {
                how,
                sort_bytes: shares.sort_bytes,
                workers: options.threads.max(1),
                budget: options.budget.clone(),
                temp,
                view,
            },
            sort: Mutex::new(SpillSort { memory, sorter: None }),
        }))
    }

    /// Whether there was one.
    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// A producer for one worker.
    fn producer(&self) -> Result<RowProducer<CombinedFor<SsdletError>>, SsdletError> {
        let mut sort = self.sort.lock();
        let SpillSort { memory, sorter } = &mut *sort;
        let plan = &self.plan;
        if sorter.is_none() {
            if memory.grow_to(plan.sort_bytes).is_err() {
                // A long record has some of it just now.
                let _ = memory.grow_to(memory.bytes() + plan.budget.free_bytes());
            }
            *sorter = Some(plan.sorter(&Budget::new(memory.bytes())));
        }
        sorter.as_mut().expect("made above").producer()
    }

    /// The sort and its memory, when all workers have ended; `None` if nothing was spilled.
    pub(super) fn into_sorter(self: Arc<Self>) -> Option<(SpillSorter, Reservation)> {
        let spills = Arc::into_inner(self).expect("all workers have ended");
        let SpillSort { memory, sorter } = spills.sort.into_inner();
        sorter.map(|sorter| (sorter, memory))
    }
}

impl SpillPlan {
    fn sorter(&self, budget: &Budget) -> SpillSorter {
        let Combining { combine, value, encoding } = self.how;
        let (combined_as, of) = encoding.combined_as(combine, value);
        let by = if combine == Combine::None { RowsBy::KeyAndValue } else { RowsBy::Key };
        let sorter = RowSorter::new(by, budget, CombinedFor::new(combined_as, of))
            .temp(self.temp.clone())
            .producers(self.workers)
            .threads(self.workers);
        match &self.view {
            Some(folder) => {
                let record = move |key: &[u8], value: &[u8], out: &mut Vec<u8>| {
                    encoding.push(key, value, out);
                };
                sorter.into_view(Arc::clone(folder), Arc::new(record), Compression::Off)
            }
            None => sorter,
        }
    }
}

/// The spills of one worker.
pub(super) struct WorkerSpills {
    spills: Arc<Spills>,
    producer: Option<RowProducer<CombinedFor<SsdletError>>>,
}

impl WorkerSpills {
    pub(super) fn new(spills: &Arc<Spills>) -> Self {
        WorkerSpills { spills: Arc::clone(spills), producer: None }
    }
}

impl SpillSink for WorkerSpills {
    fn spill(&mut self, table: &Table) -> Result<(), SsdletError> {
        let producer = match &mut self.producer {
            Some(producer) => producer,
            None => self.producer.insert(self.spills.producer()?),
        };
        self.spills.count.fetch_add(1, Ordering::Relaxed);
        let (mut records, encoding) = (0, self.spills.plan.how.encoding);
        let pushed = table.each(|key, value| {
            // As the record of a view it may be longer.
            if encoding.record_bytes(key, value).is_none() {
                return Err(Error::from(RowsError::TooLong).into());
            }
            records += 1;
            producer.push(key, value)
        });
        self.spills.records.fetch_add(records, Ordering::Relaxed);
        pushed
    }

    fn finish(self: Box<Self>) -> Result<(), SsdletError> {
        self.producer.map_or(Ok(()), RowProducer::finish)
    }
}
