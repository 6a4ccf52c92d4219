//! A whole sort: inputs in, a view, a file or a stream out.
//!
//! ```text
//!   inputs ──► chunks ──► runs ──(too many for memory? merge some)──► view: manifest
//!                 │                                            └────► file: windows written in order,
//!                 └── everything fits ──► straight to the output            blocks given back behind
//! ```
//!
//! ```text
//!   options  what a caller asks for and gets      choice      which strategy to use
//!   setup    sampled and planned, before it begins distribute  the other strategy: buckets
//!   form     chunks become runs                    explain     the plan, and its likely cost
//!   spill    one chunk becomes a run               cost        the model behind choice and plan
//!   emit     the only chunk becomes the output     probe       how fast a disk is
//!   passes   runs become fewer                     consume     inputs given back on the way
//!   result   runs become the result                journal     how far a consuming sort is
//!   files    where runs go, with few open files  unpack      compressed inputs
//!   note     what unfinished work is made from    space       the least that it takes on disks
//! ```

mod choice;
mod consume;
mod cost;
mod distribute;
mod emit;
mod explain;
mod files;
mod form;
pub mod journal;
pub mod note;
mod options;
mod passes;
mod probe;
mod result;
mod setup;
mod space;
mod spill;
mod unpack;

use std::sync::Arc;
use std::time::Instant;

pub use consume::{Consumed, Stamp, sort_consuming};
pub use explain::{Estimate, Explanation, explain};
use files::ViewFolder;
use form::Formed;
pub use options::{CompressionChoice, SortOptions, SortOutput, SortReport, Strategy};
use setup::{Sorter, merge_room, run_name, total_bytes};
pub use space::{SpaceNeed, space_needed};

use crate::run::input::SortInput;
use crate::{Conflict, Progress, Result};

/// Sorts `inputs`.
///
/// # Errors
/// Bad input, a full disk, too little memory or the storage's own. The inputs are never changed,
/// and nothing that bears a name is left of temporary runs; the caller removes an unfinished
/// output or view folder.
pub fn sort(
    inputs: Vec<SortInput>,
    output: SortOutput<'_>,
    options: &SortOptions,
    progress: &dyn Progress,
) -> Result<SortReport> {
    let started = Instant::now();
    if options.order.unique && matches!(output, SortOutput::View { .. }) {
        return Err(Conflict::UniqueView.into());
    }
    if options.top.is_some() && matches!(output, SortOutput::View { .. }) {
        return Err(Conflict::TopView.into());
    }
    let mut sorter = Sorter::prepare(inputs, options, matches!(output, SortOutput::View { .. }))?;
    progress.phase("sorting", sorter.total_bytes);
    sorter.run(output, started, progress)
}

impl Sorter<'_> {
    /// Refuses a key whose column no row had. It is asked when all rows were encoded and nothing is in the output.
    /// A sort that consumes its inputs asked [`Sorter::look_for_columns`] before it gave any back.
    fn check_columns(&self) -> Result<()> {
        let unseen = self.order.unseen_column().filter(|_| self.report.input_bytes > 0);
        match unseen.filter(|_| self.journal.is_none()) {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }

    fn run(
        &mut self,
        mut output: SortOutput<'_>,
        started: Instant,
        progress: &dyn Progress,
    ) -> Result<SortReport> {
        if let SortOutput::View { folder, .. } = &mut output {
            let view = ViewFolder::new(Arc::clone(folder));
            (*folder, self.view_runs_max) = (view.folder, view.runs_max);
        }
        let _front = distribute::look_ahead(self, &output)?;
        if let Some(uniform) = choice::wanted(self, &output)? {
            return self.distribute(uniform, output, started, progress);
        }
        let formed = self.form(&mut output, progress)?;
        self.check_columns()?;
        self.unpacking = None;
        self.report.form_seconds = started.elapsed().as_secs_f64();
        if let Formed::Runs { header } = formed {
            self.report.runs = self.runs.len() as u64;
            match output {
                SortOutput::View { folder, name } => {
                    self.make_mergeable(Some(&folder), progress)?;
                    self.make_view(&folder, name, header)?;
                    if let Some(journal) = &mut self.journal {
                        journal.sorted()?;
                    }
                }
                SortOutput::Storage(storage) => {
                    self.make_mergeable(None, progress)?;
                    self.merge_to_storage(&storage, &header, progress)?;
                }
                SortOutput::Writer(writer) => {
                    self.make_mergeable(None, progress)?;
                    self.merge_to_writer(writer, &header, progress)?;
                }
            }
        }
        self.report.merge_seconds = started.elapsed().as_secs_f64() - self.report.form_seconds;
        self.report.memory_peak_bytes = self.options.budget.peak_bytes();
        Ok(self.report.clone())
    }
}
