//! `merganser sort`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use merganser_results::output::ResultOutput;
use merganser_shell::args::TypedSize;
use merganser_shell::config::{Destination, machine_bytes, view_name};
use merganser_shell::failure::{Failure, UNNAMED, notice};
use merganser_shell::input::{Input, OpenInputs};
use merganser_shell::opened::open_folder;
use merganser_shell::output::{self, refuse_compressed};
use merganser_shell::progress::WorkSummary;
use merganser_shell::results::create_view;
use merganser_shell::signals::Cancel;
use merganser_shell::space::{FreeSpace, folder_of};
use merganser_shell::{apart, failure, progress, report, standard};
use merganser_sort::activity::{Activity, WorkerState, wait};
use merganser_sort::merge::{Merging, merge_sorted};
use merganser_sort::record::Format;
use merganser_sort::run::Compression;
use merganser_sort::{Budget, CompressionChoice, Explanation, SortOptions, SortOutput, SortReport};
use merganser_storage::file::descriptors;
use merganser_storage::{Directory, Storage};

use super::debug;
use super::debug::Marked;
use super::materialize::CONSUME_CONTINUES;
use super::{consume, space, verify};
use crate::args::CompressionName;
use crate::config::{SortChoices, SortConfig, SortTask};
use crate::temp_folder::TempFolder;

/// Checks or sorts.
pub(super) fn run(config: &SortConfig, cancel: &Cancel) -> Result<(), Failure> {
    failure::offer_no_decompress();
    match &config.task {
        SortTask::Check { diagnose } => verify::check(
            &config.inputs[0],
            &config.order,
            *diagnose,
            &verify::InputReading {
                memory_bytes: config.memory_bytes,
                content: config.content(),
                progress: config.progress,
            },
            cancel,
        ),
        SortTask::Sort(sorting) => sort(config, sorting, cancel),
    }
}

/// Sorts, and says what helps if a disk is full.
fn sort(config: &SortConfig, sorting: &SortChoices, cancel: &Cancel) -> Result<(), Failure> {
    let temp: Vec<_> = sorting.temp_dirs.iter().map(|path| TempFolder::new(path)).collect();
    if let Some(asked) = &config.too_much_memory {
        notice(&format!(
            "{asked} is more than the {} that this machine or its control group has; {} is used",
            TypedSize(machine_bytes()).shown(),
            TypedSize(config.memory_bytes).shown()
        ));
    }
    if !config.inputs.contains(&Input::Stdin) && descriptors::are_few() {
        standard::close_input();
    }
    sort_with(config, sorting, &temp, cancel).map_err(|failure| match failure {
        Failure::FullDisk { file, .. } => full_disk(&file, config, sorting, &temp).into(),
        failure => failure,
    })
}

/// The sentence for a disk that is full: what was written to it, how much that takes, what is free and what helps.
fn full_disk(
    file: &str,
    config: &SortConfig,
    sorting: &SortChoices,
    temp: &[Arc<TempFolder>],
) -> String {
    let free = |folder: &Path| {
        FreeSpace::of_place(folder)
            .map_or_else(String::new, |free| format!(", {} free", TypedSize(free.bytes).shown()))
    };
    let needed = match size_of(&config.inputs) {
        Some(bytes) => format!("about {} needed", TypedSize(bytes).at_least()),
        None => "as much needed as the inputs hold".to_owned(),
    };
    let full = "No space left on device";
    if let Some(folder) = file.strip_suffix(UNNAMED)
        && let Some(temp) = temp.iter().find(|temp| temp.name() == folder)
    {
        let written = TypedSize(temp.written_bytes()).shown();
        return format!(
            "{folder}: {full} for temporary files: {written} written, {needed}{}; name a larger disk with -T, or write less: --compress auto, --view, --consume",
            free(temp.path()),
        );
    }
    let free = free(folder_of(Path::new(file)));
    match sorting.destination {
        Destination::View(_) => format!(
            "{file}: {full} for the view: {needed}{free}; write it to a larger disk, or take less: --compress auto, --consume"
        ),
        _ => format!(
            "{file}: {full} for the result: {needed}{free}; write it to a larger disk, or give space back on the way: --consume"
        ),
    }
}

/// Opens everything, sorts, makes the result visible, and reports.
fn sort_with(
    config: &SortConfig,
    sorting: &SortChoices,
    temp: &[Arc<TempFolder>],
    cancel: &Cancel,
) -> Result<(), Failure> {
    if sorting.explain {
        let options = options(config, sorting, temp);
        let inputs = open_inputs(config, &OpenInputs::of_sort(), &options.budget, cancel)?;
        return match explain(config, sorting, temp, cancel) {
            Ok(plan) => {
                standard::print(plan.to_string() + &space::lines(&inputs, sorting, &options))
            }
            // Not even the data that measures the disk has room there.
            Err(failure @ Failure::FullDisk { .. }) => {
                space::check(&inputs, sorting, &options).and(Err(failure))
            }
            Err(failure) => Err(failure),
        };
    }
    let plan = prediction(config, sorting, temp, cancel);
    let precious = || apart::precious(&config.inputs, sorting.destination.path());
    let watch =
        report::ReportWatch::start(sorting.report.as_ref(), precious, || files(config, sorting))?;
    let (activity, started) = (watch.activity(), Instant::now());
    let _worker = activity.enroll("sort");
    let options = options(config, sorting, temp);
    let told = |done: report::CommandFigures| report::CommandFigures {
        inputs: config.inputs.iter().map(ToString::to_string).collect(),
        output: sorting.destination.to_string(),
        memory_limit_bytes: config.memory_bytes,
        memory: options.budget.owner_peaks(),
        plan,
        ..done
    };
    if sorting.consume {
        if let Destination::File(path) = &sorting.destination {
            refuse_compressed(path, CONSUME_CONTINUES)?;
        }
        let done = consume::run(config, sorting, &options, cancel)?;
        of_work(&done, sorting).tell(config.progress, started.elapsed());
        return watch.finish(|| told(of_sort(&done, Vec::new())));
    }
    if sorting.merge && !matches!(sorting.destination, Destination::View(_)) {
        let records = merge(config, sorting, &options, cancel)?;
        let summary = WorkSummary {
            done: "merged",
            records: Some(records),
            bytes: size_of(&config.inputs),
            written_bytes: None,
        };
        summary.tell(config.progress, started.elapsed());
        return watch.finish(|| {
            told(report::CommandFigures {
                command: "merge",
                input_bytes: size_of(&config.inputs),
                records: Some(records),
                detail: serde_json::json!({ "records": records }),
                ..report::CommandFigures::default()
            })
        });
    }
    let inputs = open_inputs(config, &OpenInputs::of_sort(), &options.budget, cancel)?;
    space::check(&inputs, sorting, &options)?;
    let progress = progress::in_form(config.progress, cancel);
    let phases = activity.phases(&*progress);
    let run = |output: SortOutput<'_>| merganser_sort::sort(inputs, output, &options, &phases);
    let mut io: Vec<(&str, String)> = Vec::new();
    let done: SortReport = match &sorting.destination {
        Destination::View(path) => {
            let unfinished = create_view(path, &config.inputs)?;
            let folder = open_folder(unfinished.path())?;
            let recorded = activity.directory(Arc::clone(&folder) as Arc<dyn Directory>);
            let done = run(SortOutput::View { folder: recorded, name: view_name(path) })?;
            io.push(("runs", folder.mode().to_string()));
            unfinished.publish()?;
            done
        }
        Destination::File(_) | Destination::Stdout => {
            let path = match &sorting.destination {
                Destination::File(path) => Some(&**path),
                _ => None,
            };
            let mut output = output::open(path, cancel)?;
            let done = match output.storage() {
                None if sorting.debug => {
                    let mut marked = marked(config, &mut output)?;
                    run(SortOutput::Writer(&mut marked))?
                }
                Some(storage) => {
                    let target = activity.storage(Arc::clone(&storage) as Arc<dyn Storage>);
                    let done = run(SortOutput::Storage(target))?;
                    io.push(("output", storage.mode().to_string()));
                    done
                }
                None => run(SortOutput::Writer(&mut output))?,
            };
            let modes = temp.iter().filter_map(|folder| folder.mode());
            io.extend(modes.map(|mode| ("runs", mode.to_string())));
            let _waiting = wait(WorkerState::Writing);
            output.finish()?;
            done
        }
    };
    drop(phases);
    drop(progress);
    of_work(&done, sorting).tell(config.progress, started.elapsed());
    watch.finish(|| told(of_sort(&done, io)))
}

/// The line at the end of a sort. A sort that continued an earlier one has read nothing itself.
fn of_work(done: &SortReport, sorting: &SortChoices) -> WorkSummary {
    let is_whole = done.input_bytes > 0 || done.output_bytes == 0;
    let result_bytes = match &sorting.destination {
        Destination::View(_) => 0,
        // A compressed file is smaller than what was sorted.
        Destination::File(path) => fs::metadata(path)
            .ok()
            .filter(fs::Metadata::is_file)
            .map_or(done.output_bytes, |file| file.len()),
        Destination::Stdout => done.output_bytes,
    };
    WorkSummary {
        done: "sorted",
        records: Some(done.records),
        bytes: Some(if is_whole { done.input_bytes } else { done.output_bytes }),
        written_bytes: is_whole.then_some(done.run_bytes + result_bytes),
    }
}

/// The facts of a sort for its report.
fn of_sort(done: &SortReport, io: Vec<(&'static str, String)>) -> report::CommandFigures {
    report::CommandFigures {
        command: "sort",
        // A sort that continued an earlier one has read nothing.
        input_bytes: Some(done.input_bytes).filter(|bytes| *bytes > 0),
        output_bytes: Some(done.output_bytes),
        records: Some(done.records),
        io,
        detail: serde_json::to_value(done).expect("plain data"),
        ..report::CommandFigures::default()
    }
}

/// The files and folders whose devices do the work.
fn files(config: &SortConfig, sorting: &SortChoices) -> Vec<PathBuf> {
    let inputs = config.inputs.iter().map(|input| match input {
        Input::Stdin => PathBuf::from("/dev/stdin"),
        Input::File(path) => path.clone(),
    });
    let output = match &sorting.destination {
        Destination::File(path) | Destination::View(path) => path.clone(),
        Destination::Stdout => PathBuf::from("/dev/stdout"),
    };
    inputs.chain(sorting.temp_dirs.iter().cloned()).chain([output]).collect()
}

/// Bytes of all inputs, where all are files.
fn size_of(inputs: &[Input]) -> Option<u64> {
    let size = |input: &Input| match input {
        Input::Stdin => None,
        Input::File(path) => fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|m| m.len()),
    };
    inputs.iter().map(size).sum()
}

/// All inputs, for the engine, as many of them open as `open` allows. The memory of decompressors is of
/// `budget`.
fn open_inputs(
    config: &SortConfig,
    open: &OpenInputs,
    budget: &Budget,
    cancel: &Cancel,
) -> Result<Vec<merganser_sort::run::SortInput>, Failure> {
    let activity = Activity::here();
    let open = |input: &Input| {
        let opened = match input.open_for_sort(open, cancel)? {
            merganser_sort::run::SortInput::Storage(storage) => {
                merganser_sort::run::SortInput::Storage(activity.storage(storage))
            }
            stream => stream,
        };
        Ok(opened.unpacked(config.content(), budget)?)
    };
    config.inputs.iter().map(open).collect()
}

/// The plan, and its likely cost.
fn explain(
    config: &SortConfig,
    sorting: &SortChoices,
    temp: &[Arc<TempFolder>],
    cancel: &Cancel,
) -> Result<Explanation, Failure> {
    let mut options = options(config, sorting, temp);
    let to_view = if let Destination::View(path) = &sorting.destination {
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        options.temp = vec![open_folder(parent.unwrap_or(Path::new(".")))?];
        true
    } else {
        false
    };
    let inputs = open_inputs(config, &OpenInputs::of_sort(), &options.budget, cancel)?;
    Ok(merganser_sort::explain(inputs, to_view, &options)?)
}

/// The plan that a report compares with the run; `None` without a report, or if no plan can be made
/// beforehand. Errors are ignored here, because the sort finds them again.
fn prediction(
    config: &SortConfig,
    sorting: &SortChoices,
    temp: &[Arc<TempFolder>],
    cancel: &Cancel,
) -> Option<Explanation> {
    let whole = sorting.top.is_none() && !sorting.consume && !sorting.merge;
    let known = sorting.report.is_some() && whole && size_of(&config.inputs).is_some();
    known.then(|| explain(config, sorting, temp, cancel).ok()).flatten()
}

/// Merges inputs that are sorted already.
fn merge(
    config: &SortConfig,
    sorting: &SortChoices,
    options: &SortOptions,
    cancel: &Cancel,
) -> Result<u64, Failure> {
    let open = OpenInputs::of_merge();
    let inputs = open_inputs(config, &open, &options.budget, cancel)?;
    space::check(&inputs, sorting, options)?;
    let progress = progress::in_form(config.progress, cancel);
    let path = match &sorting.destination {
        Destination::File(path) => Some(&**path),
        _ => None,
    };
    let mut output = output::open(path, cancel)?;
    let mut top = FirstRecords { left: sorting.top, format: options.order.format };
    let with = Merging {
        order: &options.order,
        budget: &options.budget,
        temp: &options.temp,
        temp_limit_bytes: options.temp_limit_bytes,
        inputs_max: open.most().min(sorting.batch_max.unwrap_or(usize::MAX)),
    };
    let merge = |output: &mut dyn Write| {
        merge_sorted(inputs, &with, &*progress, |piece| {
            if piece.is_header {
                output.write_all(piece.bytes)?;
                return Ok(top.left != Some(0));
            }
            let (wanted, more) = top.take(piece.bytes);
            output.write_all(wanted)?;
            Ok(more)
        })
    };
    let records =
        if sorting.debug { merge(&mut marked(config, &mut output)?)? } else { merge(&mut output)? };
    output.finish()?;
    Ok(sorting.top.map_or(records, |top| records.min(top)))
}

/// A writer that underlines the keys on the way to `output`. The doubts about the keys are printed
/// first.
fn marked<'a>(
    config: &SortConfig,
    output: &'a mut ResultOutput,
) -> Result<Marked<'a, ResultOutput>, Failure> {
    let Format::Lines { delimiter } = config.order.format else {
        unreachable!("--debug is refused with other records")
    };
    debug::tell_doubts(&config.order)?;
    Ok(Marked::new(output, config.order.marks()?, delimiter))
}

/// The first records of a stream, when only some are wanted.
struct FirstRecords {
    left: Option<u64>,
    format: Format,
}

impl FirstRecords {
    /// The wanted part of some whole records, and whether more is wanted.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> (&'a [u8], bool) {
        let Some(left) = &mut self.left else { return (bytes, true) };
        let mut at = 0;
        while *left > 0
            && let Some(len) = self.format.first_len(&bytes[at..])
        {
            at += len;
            *left -= 1;
        }
        (&bytes[..at], *left > 0)
    }
}

fn options(config: &SortConfig, sorting: &SortChoices, temp: &[Arc<TempFolder>]) -> SortOptions {
    SortOptions::new(config.order.clone())
        .memory(config.memory_bytes)
        .threads(config.threads)
        .temp(
            temp.iter()
                .map(|folder| Activity::here().directory(Arc::clone(folder) as Arc<dyn Directory>))
                .collect(),
        )
        .temp_limit_bytes(sorting.temp_limit_bytes)
        .compression(match sorting.compression {
            CompressionName::Off => CompressionChoice::Fixed(Compression::Off),
            CompressionName::Lz4 => CompressionChoice::Fixed(Compression::Lz4),
            CompressionName::Zstd => CompressionChoice::Fixed(Compression::Zstd),
            CompressionName::Auto => CompressionChoice::Auto,
        })
        .top(sorting.top)
        .strategy(sorting.strategy)
}
