//! `merganser table sort`.

use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_objects::UploadPlan;
use merganser_shell::config::{Destination, view_name};
use merganser_shell::failure::{Failure, notice};
use merganser_shell::input::Input;
use merganser_shell::opened::open_folder;
use merganser_shell::output::refuse_compressed;
use merganser_shell::results::{create_files, create_view};
use merganser_shell::signals::Cancel;
use merganser_shell::{apart, progress, report, shown};
use merganser_sort::Budget;
use merganser_storage::Directory;
use merganser_storage::address::is_address;
use merganser_storage::file::LazyDirectory;
use merganser_tables::{
    DiskFolder, Table, TableFormat, TableInput, TableOptions, TableOrder, TableOutput, TableReport,
    sort_table,
};

use crate::config::TableSortConfig;
use crate::config::sort::AskedOrder;
use crate::inputs::Stores;
use crate::output::{BytesOutput, tell_aborted};
use crate::sentences::{told, told_of_objects};

/// Opens everything, sorts, makes the result visible, and reports.
pub(super) fn run(config: &TableSortConfig, cancel: &Cancel) -> Result<(), Failure> {
    let stores = Stores::new(cancel);
    let found = stores.find(&config.inputs)?;
    let table = Table::open_inputs(&found, config.hive).map_err(told)?;
    let order = match &config.order {
        AskedOrder::Keys(keys) => TableOrder::Keys(keys.clone()),
        AskedOrder::AllColumns => TableOrder::Keys(table.all_columns()),
        AskedOrder::Shuffled(seed) => TableOrder::Shuffled { seed: *seed },
    };
    let inputs: Vec<_> = found.iter().map(|input| Input::named(input.name())).collect();
    let precious = || apart::precious(&inputs, config.destination.path());
    let watch =
        report::ReportWatch::start(config.report.as_ref(), precious, || touched(&found, config))?;
    let activity = watch.activity();
    let _worker = activity.enroll("sort");
    // A sort that fits into the memory does not look at them.
    let temp = config.temp_dirs.iter().map(|path| LazyDirectory::new(path) as Arc<dyn Directory>);
    let temp = temp.map(|folder| activity.directory(folder));
    let budget = Budget::new(config.memory_bytes);
    let mut options = TableOptions::new(order, budget.clone(), temp.collect());
    options.equal = config.equal;
    options.top = config.top;
    options.sorted_inputs = config.merge;
    options.threads = config.threads;
    options.packed = config.packed;
    options.parquet = config.parquet.clone();
    // Before a folder for unfinished work is made.
    let misuse = config.folder.as_ref().map_or(Ok(()), |files| files.check(&options));
    misuse.map_err(|misuse| told(misuse.into()))?;
    let progress = progress::on_stderr(config.quiet, cancel);
    let phases = activity.phases(&*progress);
    let sort = |to| sort_table(&table, to, &options, &phases).map_err(told);
    let done: TableReport = match (&config.destination, &config.folder) {
        (Destination::View(path), _) => {
            let unfinished = create_view(path, &inputs)?;
            let folder = open_folder(unfinished.path())?;
            let folder = activity.directory(folder as Arc<dyn Directory>);
            let done = sort(TableOutput::View { folder, name: view_name(path) })?;
            unfinished.publish()?;
            if done.in_files {
                // A user who takes the view for a copy may remove the only one.
                notice(&format!(
                    "{}: holds no rows; they stay in the inputs, so keep these files where they are",
                    shown::name(path)
                ));
            }
            done
        }
        (Destination::File(path), Some(files)) if is_address(path) => {
            let memory = UploadPlan::of_file().memory_bytes() * (config.threads as u64 + 2);
            let _memory = budget.reserve(memory, "sending parts of the result")?;
            let stores = stores.get()?;
            let folder =
                stores.create_folder(path, note_folder(config)).map_err(told_of_objects)?;
            tell_aborted(folder.aborted());
            let done = sort(TableOutput::Folder { folder: &folder, files: files.clone() })?;
            folder.finish(stores).map_err(told_of_objects)?;
            done
        }
        (Destination::File(path), Some(files)) => {
            let unfinished = create_files(path, &inputs)?;
            let folder = DiskFolder::new(&unfinished.path());
            let done = sort(TableOutput::Folder { folder: &folder, files: files.clone() })?;
            unfinished.publish()?;
            done
        }
        (Destination::File(_) | Destination::Stdout, _) => {
            let path = config.destination.path();
            let format = match config.format {
                Some(format) => format,
                None => format_of_input(&table, path)?,
            };
            if let Some(path) = path {
                refuse_compressed(path, "a table is packed inside")?;
            }
            let how = (table.bytes(), &budget);
            let mut to = BytesOutput::open(path, (&stores, note_folder(config)), how, cancel)?;
            let done = sort(TableOutput::Bytes { to: &mut to, format })?;
            to.finish()?;
            done
        }
    };
    drop(phases);
    drop(progress);
    watch.finish(|| report::CommandFigures {
        command: "sort",
        inputs: inputs.iter().map(ToString::to_string).collect(),
        output: config.destination.to_string(),
        input_bytes: Some(found.iter().map(TableInput::bytes).sum()),
        records: Some(done.result_rows),
        memory_limit_bytes: config.memory_bytes,
        memory: budget.owner_peaks(),
        detail: serde_json::to_value(done).expect("plain data"),
        ..report::CommandFigures::default()
    })
}

/// The format of the first input, for a result whose name does not say one.
fn format_of_input(table: &Table, output: Option<&Path>) -> Result<TableFormat, Failure> {
    if output.is_none() && stdout().is_terminal() {
        let what = "standard output is a terminal: name a file with -o, or read rows here with";
        return Err(format!("{what} --output-format csv").into());
    }
    Ok(table.kind().into())
}

/// The files and folders whose devices do the work.
fn touched(found: &[TableInput], config: &TableSortConfig) -> Vec<PathBuf> {
    let output = config.destination.path().map_or_else(|| "/dev/stdout".into(), Path::to_owned);
    let inputs = found.iter().map(|input| input.name().to_owned());
    let all = inputs.chain(config.temp_dirs.iter().cloned()).chain([output]);
    all.filter(|path| !is_address(path)).collect()
}

/// The folder for the note of uploads: the first one for temporary files.
fn note_folder(config: &TableSortConfig) -> &Path {
    config.temp_dirs.first().map_or(Path::new("."), PathBuf::as_path)
}
