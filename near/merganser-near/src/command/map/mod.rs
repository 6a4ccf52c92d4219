//! `merganser map`: an SSDlet over inputs of any size.
//!
//! ```text
//!   program   the SSDlet of a name or a file          explain   what would be done
//!   sources   the inputs, for the engine              matrix    a product of matrices, which is no SSDlet
//!   run       the map: here, or on nodes (farm)       split     how the memory is divided
//!      │
//!      ├─► a view, reduced when it is read            result    a view of rows: cat, materialize, info, ...
//!      ├─► records in the order of the inputs
//!      └─► rows by key ──► all        rows     as tsv, csv, jsonl or length-prefixed
//!                      ├─► by value   by_value (a second sort), rank
//!                      └─► the top    top      (a bounded heap), rank
//! ```

mod by_value;
mod explain;
mod farm;
mod matrix;
mod program;
mod rank;
mod run;
mod sink;
pub(super) mod sources;
mod split;
mod top;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use merganser_map::ssdlet::SsdletOutput as Kind;
use merganser_map::{MapOutput, MapReport};
use merganser_results::output::ResultOutput;
use merganser_shell::args::RowForm;
use merganser_shell::config::{Destination, view_name};
use merganser_shell::failure::Failure;
use merganser_shell::input::Input;
use merganser_shell::opened::open_folder;
use merganser_shell::output;
use merganser_shell::results::create_view;
use merganser_shell::rows::{RowTypes, RowWriter};
use merganser_shell::signals::Cancel;
use merganser_shell::{apart, failure, progress, report, standard};
use merganser_sort::budget::OwnerPeak;
use merganser_sort::{Budget, Progress};
use merganser_storage::file::FileDirectory;

use crate::config::{Choice, MapConfig, MapProgram};
use by_value::ByValue;
use run::{CommandMapper, MapWork, What};
use sink::{ToRecords, ToRows, ToTop};
use split::MemorySplit;
use top::TopRows;

/// Opens everything, maps, makes the result visible, and reports.
pub(super) fn run(config: &MapConfig, cancel: &Cancel) -> Result<(), Failure> {
    failure::offer_no_decompress();
    let mapper = match &config.program {
        MapProgram::Ssdlet { name, args } => CommandMapper::open(config, name, args, cancel)?,
        MapProgram::Matrix { raw } => return matrix::run(config, raw, cancel),
    };
    let what = mapper.what();
    refuse_unfit(config, &what)?;
    let temp = config.temp_dirs.iter().map(|path| open_folder(path));
    let temp = temp.collect::<Result<Vec<_>, _>>()?;
    if config.explain {
        return standard::print(explain::text(config, &what.description, &temp, cancel)?);
    }
    let watch = watch(config)?;
    let activity = watch.activity();
    let _worker = activity.enroll("map");
    let progress = progress::on_stderr(config.quiet, cancel);
    let phases = activity.phases(&*progress);
    let done = map(config, mapper, &temp, &phases, cancel)?;
    drop(phases);
    drop(progress);
    watch.finish(|| report::CommandFigures {
        command: "map",
        inputs: config.inputs.iter().map(ToString::to_string).collect(),
        output: config.destination.to_string(),
        input_bytes: Some(done.counted.input_bytes),
        output_bytes: types_of(&what).is_none().then_some(done.counted.output_bytes),
        records: types_of(&what).map(|_| done.counted.rows),
        memory_limit_bytes: config.memory_bytes,
        memory: done.memory,
        io: done.io,
        detail: serde_json::to_value(&done.counted).expect("plain data"),
        ..report::CommandFigures::default()
    })
}

/// A finished map.
struct FinishedMap {
    counted: MapReport,
    memory: Vec<OwnerPeak>,
    io: Vec<(&'static str, String)>,
}

/// Refuses options that have no meaning for the output of this SSDlet.
fn refuse_unfit(config: &MapConfig, what: &What) -> Result<(), Failure> {
    let name = &what.description.name;
    if let Kind::Keyed { .. } = what.description.output {
        return match (&config.destination, what.rows_most) {
            (Destination::View(_), Some(rows)) => Err(format!(
                "--view: {name} gives {rows} records, which a view can't tell from others; use -o FILE"
            )
            .into()),
            _ => Ok(()),
        };
    }
    let flag = match (&config.destination, config.choice.flag(), config.form) {
        (Destination::View(_), ..) => "--view",
        (_, Some(flag), _) => flag,
        (_, _, Some(_)) => "--output-format",
        _ => return Ok(()),
    };
    Err(format!(
        "{flag}: is for rows of keys and values, and {name} gives records in the order of the input; leave it out"
    )
    .into())
}

/// Refuses an SSDlet that gives the first rows of all only.
fn refuse_on_nodes(name: &str, rows_most: Option<u64>) -> Result<(), Failure> {
    match rows_most {
        Some(rows) => {
            Err(format!("--on: each node would give {rows} records of its own; run {name} here")
                .into())
        }
        None => Ok(()),
    }
}

/// The types of the rows of a keyed result.
fn types_of(what: &What) -> Option<RowTypes> {
    let of = what.description.result()?;
    Some(RowTypes { key: of.key, value: of.value })
}

/// Whether the values of a keyed result are shown alone, as the records that they are: those of an
/// SSDlet that wants the first rows only, whose keys just say which these are.
fn gives_records(config: &MapConfig, what: &What) -> bool {
    what.rows_most.is_some() && config.form.is_none() && config.choice == Choice::ByKey
}

/// Watches the work for the report.
fn watch(config: &MapConfig) -> Result<report::ReportWatch<'_>, Failure> {
    // Those of nodes are not files of this machine.
    let here = if config.nodes.is_none() { &config.inputs[..] } else { &[] };
    let precious = || apart::precious(here, config.destination.path());
    report::ReportWatch::start(config.report.as_ref(), precious, || files(config, here))
}

/// The files and folders whose devices do the work; `here` are the inputs that this machine has.
fn files(config: &MapConfig, here: &[Input]) -> Vec<PathBuf> {
    let inputs = here.iter().map(|input| match input {
        Input::Stdin => PathBuf::from("/dev/stdin"),
        Input::File(path) => path.clone(),
    });
    let output = match &config.destination {
        Destination::File(path) | Destination::View(path) => path.clone(),
        Destination::Stdout => PathBuf::from("/dev/stdout"),
    };
    inputs.chain(config.temp_dirs.iter().cloned()).chain([output]).collect()
}

fn map(
    config: &MapConfig,
    mapper: CommandMapper,
    temp: &[Arc<FileDirectory>],
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<FinishedMap, Failure> {
    let what = mapper.what();
    let split = MemorySplit::new(config, &what.description.output);
    let budget = Budget::new(split.map_bytes());
    let inputs = match config.nodes {
        // The nodes have them.
        Some(_) => Vec::new(),
        None => {
            let content = config.content(&what.description);
            sources::open(&config.inputs, content, &budget, cancel)?
        }
    };
    let work = MapWork::new(config, mapper, inputs, (budget.clone(), split), temp);
    work.check_memory()?;
    let path = match &config.destination {
        Destination::View(path) => {
            let unfinished = create_view(path, &config.inputs)?;
            let folder = open_folder(unfinished.path())?;
            let output = MapOutput::View { folder: run::recorded(&folder), name: view_name(path) };
            let counted = work.run(output, progress)?;
            unfinished.publish()?;
            let io = vec![("runs", folder.mode().to_string())];
            return Ok(FinishedMap { counted, memory: budget.owner_peaks(), io });
        }
        Destination::File(path) => Some(&**path),
        Destination::Stdout => None,
    };
    let of_choice = Budget::new(split.chosen_bytes());
    let mut output = output::open(path, cancel)?;
    let storage = output.storage();
    let choice = (&of_choice, split);
    let counted = written(config, &what, work, choice, temp, &mut output, progress)?;
    let io = storage.map(|storage| ("output", storage.mode().to_string()));
    let spills = temp.iter().map(|folder| ("spills", folder.mode().to_string()));
    let io = io.into_iter().chain(spills).collect();
    output.finish()?;
    Ok(FinishedMap {
        counted,
        memory: [budget.owner_peaks(), of_choice.owner_peaks()].concat(),
        io,
    })
}

/// Maps, and writes what was chosen of the result.
fn written(
    config: &MapConfig,
    what: &What,
    work: MapWork<'_>,
    (of_choice, split): (&Budget, MemorySplit),
    temp: &[Arc<FileDirectory>],
    output: &mut ResultOutput,
    progress: &dyn Progress,
) -> Result<MapReport, Failure> {
    let types = match types_of(what) {
        Some(types) if !gives_records(config, what) => types,
        _ => {
            let mut sink = ToRecords::new(output, what.description.input);
            let counted = work.run(MapOutput::Rows(&mut sink), progress)?;
            sink.finish()?;
            return Ok(counted);
        }
    };
    let value = types.value;
    let mut rows = RowWriter::new(config.form.unwrap_or(RowForm::Tsv), types, output);
    let on_output = |error: io::Error| Failure::named(&error);
    match config.choice {
        Choice::ByKey => {
            let mut sink = ToRows(&mut rows);
            let counted = work.run(MapOutput::Rows(&mut sink), progress)?;
            rows.flush().map_err(on_output)?;
            Ok(counted)
        }
        Choice::Top { rows: most, by_key } => {
            let mut sink = ToTop(TopRows::new(value, most, of_choice.clone()));
            let counted = work.run(MapOutput::Rows(&mut sink), progress)?;
            let printed = sink.0.finish(by_key, |key, value| rows.row(key, value));
            let printed = printed.map_err(on_output)?;
            rows.flush().map_err(on_output)?;
            Ok(MapReport { rows: printed, ..counted })
        }
        Choice::ByValue => {
            let sorter = ByValue {
                of: value,
                budget: of_choice.clone(),
                split,
                threads: config.threads,
                temp: temp.iter().map(run::recorded).collect(),
            };
            sorter.run(&mut rows, progress, |sink| work.run(MapOutput::Rows(sink), progress))
        }
    }
}
