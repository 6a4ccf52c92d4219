//! Block by block, with the panels of the next step read in the meantime.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use merganser_sort::{Error, Progress};
use merganser_storage::thread::{spawn_or_run, spawn_scoped};
use merganser_storage::{Operation, Storage, StorageExt};

use super::kernel::{MatrixValue, ProductSize, SLICE};
use super::panel::{self, Panel};
use super::plan::{BlockPlan, Sides};
use super::{Matrix, MatrixElement, MatrixError, MatrixOptions, MatrixReport, MatrixShape, format};

/// Writes `a` × `b` to `out`, which becomes exactly that long. `out` is neither synced nor renamed: that is
/// the caller's, and so is removing it after an error.
///
/// # Errors
/// Factors that don't fit, too little memory, a failed read or write, a cancelled `progress`.
pub fn multiply(
    a: &Matrix,
    b: &Matrix,
    out: &dyn Storage,
    options: &MatrixOptions,
    progress: &dyn Progress,
) -> Result<MatrixReport, MatrixError> {
    let name = |matrix: &Matrix| matrix.storage.name().to_owned();
    if a.element != b.element {
        let (of_a, of_b) = (a.element.name(), b.element.name());
        return Err(MatrixError::Elements { a: name(a), of_a, b: name(b), of_b });
    }
    let (columns, rows) = (a.shape.columns, b.shape.rows);
    if columns != rows {
        return Err(MatrixError::Shapes { a: name(a), columns, b: name(b), rows });
    }
    match a.element {
        MatrixElement::F32 => typed::<f32>(a, b, out, options, progress),
        MatrixElement::F64 => typed::<f64>(a, b, out, options, progress),
        MatrixElement::I32 => typed::<i32>(a, b, out, options, progress),
    }
}

/// The part that is multiplied at a time: a range of both sides of the product, and of k.
#[derive(Clone, Copy)]
struct ProductStep {
    row: u64,
    column: u64,
    k: u64,
    rows: u64,
    columns: u64,
    ks: u64,
}

/// All steps: blocks row by row, and the panels of each from the first on.
fn steps(sides: Sides, plan: BlockPlan) -> impl Iterator<Item = ProductStep> {
    let parts = |side: u64, part: u64| {
        let step = part.max(1);
        (0..side.div_ceil(step)).map(move |n| (n * step, step.min(side - n * step)))
    };
    parts(sides.rows, plan.rows).flat_map(move |(row, rows)| {
        parts(sides.columns, plan.columns).flat_map(move |(column, columns)| {
            parts(sides.k, plan.k).map(move |(k, ks)| ProductStep {
                row,
                column,
                k,
                rows,
                columns,
                ks,
            })
        })
    })
}

/// The panels of a step.
struct Panels<T> {
    a: Panel<T>,
    b: Panel<T>,
}

fn typed<T: MatrixValue>(
    a: &Matrix,
    b: &Matrix,
    out: &dyn Storage,
    options: &MatrixOptions,
    progress: &dyn Progress,
) -> Result<MatrixReport, MatrixError> {
    let shape = MatrixShape { rows: a.shape.rows, columns: b.shape.columns };
    let header = format::header(options.format, T::ELEMENT, shape);
    let data_offset = header.len() as u64;
    let too_large = MatrixError::TooLarge { rows: shape.rows, columns: shape.columns };
    let size = shape.bytes(T::ELEMENT).and_then(|bytes| bytes.checked_add(data_offset));
    let size = size.filter(|size| i64::try_from(*size).is_ok()).ok_or(too_large)?;

    let sides = Sides { rows: shape.rows, columns: shape.columns, k: a.shape.columns };
    let plan = BlockPlan::new::<T>(sides, options.threads.max(1), &options.budget)?;
    let _memory = options.budget.reserve(plan.bytes, "a product of matrices")?;
    progress.phase("multiplying", Some(all_bytes::<T>(sides, plan)));

    // A sum of nothing is 0, and so is what a file is extended with.
    out.run(Operation::SetSize { size: 0 })?;
    out.run(Operation::SetSize { size })?;
    if !header.is_empty() {
        out.write_at(0, &header)?;
    }
    let mut report = MatrixReport {
        written_bytes: data_offset,
        block_rows: plan.rows,
        block_columns: plan.columns,
        threads: plan.threads,
        ..MatrixReport::default()
    };
    thread::scope(|scope| {
        let (give_back, empty) = channel();
        let (filled, next) = channel();
        for _ in 0..2 {
            let (a, b) = (Panel::new(plan.rows * plan.k)?, Panel::new(plan.columns * plan.k)?);
            give_back.send(Panels::<T> { a, b }).expect("its receiver is here");
        }
        spawn_scoped(scope, "matrix reader", move || {
            read_panels(a, b, steps(sides, plan), &empty, &filled);
        })?;
        let mut block = panel::with_memory(plan.rows * plan.columns)?;
        block.resize((plan.rows * plan.columns) as usize, T::default());
        for step in steps(sides, plan) {
            if progress.cancelled() {
                return Err(Error::Cancelled.into());
            }
            let (panels, read_bytes) = next.recv().expect("the reader sends each step")?;
            report.read_bytes += read_bytes;
            progress.advance(step_bytes::<T>(step));
            let block = &mut block[..(step.rows * step.columns) as usize];
            add_step(step, &panels, block, plan.threads);
            // The reader has ended after the last steps.
            let _ = give_back.send(panels);
            if step.k + step.ks == sides.k {
                let (rows, columns) =
                    (step.row..step.row + step.rows, step.column..step.column + step.columns);
                report.written_bytes +=
                    panel::write(out, data_offset, rows, columns, sides.columns, block)?;
                report.blocks += 1;
            }
        }
        Ok::<(), MatrixError>(())
    })?;
    report.memory_peak_bytes = options.budget.peak_bytes();
    Ok(report)
}

/// Bytes of a step's panels.
fn step_bytes<T: MatrixValue>(step: ProductStep) -> u64 {
    (step.rows + step.columns) * step.ks * T::ELEMENT.bytes()
}

/// Bytes of the panels of all steps; those that are still in memory are not read again, but count.
fn all_bytes<T: MatrixValue>(sides: Sides, plan: BlockPlan) -> u64 {
    let passes = |side: u64, block: u64| side.div_ceil(block.max(1));
    let of_a = sides.rows * passes(sides.columns, plan.columns);
    let of_b = sides.columns * passes(sides.rows, plan.rows);
    of_a.saturating_add(of_b).saturating_mul(sides.k).saturating_mul(T::ELEMENT.bytes())
}

/// Fills empty panels, step by step, until the other side is gone.
fn read_panels<T: MatrixValue>(
    a: &Matrix,
    b: &Matrix,
    steps: impl Iterator<Item = ProductStep>,
    empty: &Receiver<Panels<T>>,
    filled: &Sender<Result<(Panels<T>, u64), MatrixError>>,
) {
    for step in steps {
        let Ok(mut panels) = empty.recv() else { return };
        let k = step.k..step.k + step.ks;
        let read = panels.a.read(a, step.row..step.row + step.rows, k.clone()).and_then(|of_a| {
            let columns = step.column..step.column + step.columns;
            Ok(of_a + panels.b.read(b, k, columns)?)
        });
        let failed = read.is_err();
        if filled.send(read.map(|bytes| (panels, bytes))).is_err() || failed {
            return;
        }
    }
}

/// Adds the product of a step's panels to its block, slice by slice; threads share out its rows.
fn add_step<T: MatrixValue>(
    step: ProductStep,
    panels: &Panels<T>,
    block: &mut [T],
    threads: usize,
) {
    let [rows, columns, ks] = [step.rows, step.columns, step.ks].map(|side| side as usize);
    let add_rows = |row: usize, block: &mut [T]| {
        for k in (0..ks).step_by(SLICE) {
            let size = ProductSize { rows: block.len() / columns, columns, k: SLICE.min(ks - k) };
            let first = step.k == 0 && k == 0;
            T::multiply_add(size, panels.a.from(row, k), panels.b.from(k, 0), block, first);
        }
    };
    let share = rows.div_ceil(threads).max(1);
    let mut parts = block.chunks_mut(share * columns).enumerate();
    let Some((_, own)) = parts.next() else { return };
    let add_rows = &add_rows;
    thread::scope(|scope| {
        for (n, part) in parts {
            spawn_or_run(scope, "matrix", move || add_rows(n * share, part));
        }
        add_rows(0, own);
    });
}
