//! `merganser map matrix A B -o C`: the product of two matrices that may be larger than memory.

use std::fmt::Write;
use std::sync::Arc;

use merganser_map::PartitionSize;
use merganser_map::matrix::{
    Matrix, MatrixElement, MatrixFormat, MatrixOptions, MatrixReport, MatrixShape, multiply,
};
use merganser_shell::config::Destination;
use merganser_shell::failure::Failure;
use merganser_shell::input::{Input, OpenInputs};
use merganser_shell::output::{self, refuse_compressed};
use merganser_shell::signals::Cancel;
use merganser_shell::{progress, shown, standard};
use merganser_sort::Budget;
use merganser_sort::activity::{Activity, WorkerState, wait};
use merganser_sort::budget::OwnerPeak;
use merganser_sort::run::SortInput;
use merganser_storage::Storage;

use super::report;
use crate::args::RawMatrix;
use crate::config::MapConfig;
use crate::sentences::Told;
use merganser_pages::text;

/// Multiplies, makes the product visible, and reports.
///
/// # Errors
/// Factors that are no matrices, or don't fit; an output that can't be written.
pub(super) fn run(config: &MapConfig, raw: &[RawMatrix], cancel: &Cancel) -> Result<(), Failure> {
    let path = match &config.destination {
        Destination::File(path) => path,
        Destination::Stdout | Destination::View(_) => {
            return Err("matrix: the product is written in blocks, in any order; add -o FILE"
                .to_owned()
                .into());
        }
    };
    refuse_unfit(config)?;
    let watch = super::watch(config)?;
    let activity = watch.activity();
    let _worker = activity.enroll("map");
    let [a, b] = factors(config, raw, cancel)?;
    if config.explain {
        return standard::print(explain(config, &a, &b));
    }
    let progress = progress::on_stderr(config.quiet, cancel);
    let phases = activity.phases(&*progress);
    refuse_compressed(path, "a product is written in blocks, in any order")?;
    let output = output::open(Some(path), cancel)?;
    let Some(storage) = output.storage() else {
        let path = shown::name(path);
        return Err(format!("{path}: a product needs a regular file; give -o one").into());
    };
    let budget = Budget::new(config.memory_bytes);
    let options = MatrixOptions {
        budget: budget.clone(),
        threads: config.threads,
        format: if raw.is_empty() { MatrixFormat::Npy } else { MatrixFormat::Raw },
    };
    let out = activity.storage(Arc::clone(&storage) as Arc<dyn Storage>);
    let done = multiply(&a, &b, &*out, &options, &phases).map_err(Told::told)?;
    let io = vec![("output", storage.mode().to_string())];
    {
        let _waiting = wait(WorkerState::Writing);
        output.finish()?;
    }
    drop(phases);
    drop(progress);
    watch.finish(|| told(config, &done, budget.owner_peaks(), io))
}

fn told(
    config: &MapConfig,
    done: &MatrixReport,
    memory: Vec<OwnerPeak>,
    io: Vec<(&'static str, String)>,
) -> report::CommandFigures {
    report::CommandFigures {
        command: "map",
        inputs: config.inputs.iter().map(ToString::to_string).collect(),
        output: config.destination.to_string(),
        input_bytes: Some(done.read_bytes),
        output_bytes: Some(done.written_bytes),
        memory_limit_bytes: config.memory_bytes,
        memory,
        io,
        detail: serde_json::to_value(done).expect("plain data"),
        ..report::CommandFigures::default()
    }
}

/// Options of SSDlets' results and records.
fn refuse_unfit(config: &MapConfig) -> Result<(), Failure> {
    let form = config.form.map(|_| "--output-format");
    let partition = (config.partition != PartitionSize::Auto).then_some("--partition-size");
    match config.choice.flag().or(form).or(partition) {
        Some(flag) => Err(format!("{flag}: matrix does not take it; leave it out").into()),
        None => Ok(()),
    }
}

/// Both factors.
fn factors(config: &MapConfig, raw: &[RawMatrix], cancel: &Cancel) -> Result<[Matrix; 2], Failure> {
    let [a, b] = &config.inputs[..] else {
        let count = config.inputs.len();
        return Err(format!("matrix: multiplies two files, not {count}; name A and B").into());
    };
    let open = OpenInputs::of_sort();
    let matrix = |storage| Matrix::open(storage).map_err(Told::told);
    let storage = |input: &Input| match input.open_for_sort(&open, cancel)? {
        SortInput::Storage(storage) => Ok(Activity::here().storage(storage)),
        other => Err(Failure::from(format!(
            "{}: the factors of a product are read several times; name files",
            other.name()
        ))),
    };
    Ok(match raw {
        [] => [matrix(storage(a)?)?, matrix(storage(b)?)?],
        [of_a, of_b] => [raw_factor(storage(a)?, of_a)?, raw_factor(storage(b)?, of_b)?],
        _ => return Err("--raw: give it for both factors, or for none".to_owned().into()),
    })
}

fn raw_factor(storage: Arc<dyn Storage>, raw: &RawMatrix) -> Result<Matrix, Failure> {
    let element = match &*raw.element {
        "f32" => MatrixElement::F32,
        "f64" => MatrixElement::F64,
        _ => MatrixElement::I32,
    };
    let shape = MatrixShape { rows: raw.rows, columns: raw.columns };
    Matrix::raw(storage, element, shape).map_err(Told::told)
}

fn explain(config: &MapConfig, a: &Matrix, b: &Matrix) -> String {
    let mut out = String::new();
    let factors =
        [("factor", a.shape(), &config.inputs[0]), ("factor", b.shape(), &config.inputs[1])];
    for (what, MatrixShape { rows, columns }, input) in factors {
        let name = shown::escaped(&input.to_string(), &[]);
        let element = a.element().name();
        writeln!(out, "{what:<10} {name}: {rows} rows, {columns} columns of {element}")
            .expect("a string takes all");
    }
    let MatrixShape { rows, .. } = a.shape();
    let MatrixShape { columns, .. } = b.shape();
    let to = shown::escaped(&config.destination.to_string(), &[]);
    writeln!(out, "result     {to}: {rows} rows, {columns} columns").expect("a string takes all");
    writeln!(out, "workers    {}", config.threads).expect("a string takes all");
    let memory = text::memory(config.memory_bytes);
    writeln!(out, "memory     {memory}: blocks as large as fit").expect("a string takes all");
    out
}
